package runner

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"crewhost/config/secret"
	"crewhost/crew"
	"crewhost/mcp/server"
	"crewhost/tools"
	"crewhost/tools/audit"
	"crewhost/tools/permission"
)

// Where the settings say so, every call is put on record: a line before its tool runs,
// and one with all that came of it before anybody reads that. What can't be put on
// record does not happen, if the settings require it: the tool is not run, or what it
// came to is an error, and the run ends.

// The ways that a call may come (Path of a record).
const (
	byAgent   = "agent"   // of a run
	byClient  = "client"  // an MCP client's, of a surface
	byCommand = "command" // of whoever has the host, such as a person at a command line
)

// pathOf is the way that what is done under ctx came.
func pathOf(ctx context.Context) string {
	if _, ofRun := ctx.Value(trailKey{}).(trailRun); ofRun {
		return byAgent
	}
	if _, served := server.CallerFrom(ctx); served {
		return byClient
	}
	return byCommand
}

// AuditError says that something could not be put on record, and was not done, or was
// done and nobody reads what came of it.
type AuditError struct{ Err error }

// Error returns the cause.
func (e *AuditError) Error() string { return "it could not be put on record: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *AuditError) Unwrap() error { return e.Err }

// trail is where a host puts calls on record. A nil trail does nothing.
type trail struct {
	log      *audit.Log
	required bool
	warn     func(error)      // of what is not required
	told     func(audit.Head) // where the log stands at the end of a run
	mask     func(string) string
	approver string // who stands behind the approver
	life     string // begins the ids of calls
	failed   atomic.Bool
}

// openTrail opens the log that the settings name, or returns nil where they name none.
func openTrail(ctx context.Context, cfg Config, approver string) (*trail, error) {
	settings := cfg.Settings.Audit
	if !settings.Enabled {
		return nil, nil //nolint:nilnil // nothing is a trail, and no error
	}
	t := &trail{
		required: settings.Required, approver: approver, life: rand.Text()[:10],
		mask: func(s string) string { return secret.MaskTokens(cfg.Redactor.Redact(s)) },
		warn: func(err error) { cfg.Logger.Error("calls are not put on record", "err", err) },
		told: func(head audit.Head) {
			cfg.Logger.Info("the audit log at the end of the run, for crewhost audit verify --expect", "head", head.String(), "file", settings.File)
		},
	}
	log, err := audit.Open(ctx, audit.Config{Path: settings.File, MaxBytes: settings.MaxBytes, Keep: settings.Keep, Mask: t.mask})
	switch {
	case err == nil:
		t.log = log
		return t, nil
	case t.required:
		return nil, &AuditError{err}
	default:
		t.warn(err)
		return nil, nil //nolint:nilnil // as if there were none
	}
}

// Spoken is an approver that says itself who gives its answers, in a word for the log.
type Spoken interface{ Speaker() string }

// standsBehind is who gives the answers of an approver.
func standsBehind(a permission.Approver) string {
	switch a := a.(type) {
	case permission.Constant:
		return "flag"
	case ClientPerson:
		return "client"
	case Spoken:
		return a.Speaker()
	}
	return "person"
}

// put puts a record on the trail. An error is an [*AuditError], and there is none where
// the settings do not require the log.
func (t *trail) put(ctx context.Context, r audit.Record) error {
	if t == nil {
		return nil
	}
	run, _ := ctx.Value(trailKey{}).(trailRun)
	r.Run, r.Crew = run.id, run.crew
	err := t.log.Append(ctx, r)
	switch {
	case err == nil:
		return nil
	case t.required:
		err = &AuditError{err}
		if run.stop != nil {
			run.stop(err)
		}
		return err
	}
	if !t.failed.Swap(true) {
		t.warn(err)
	}
	return nil
}

// close ends the log.
func (t *trail) close() error {
	if t == nil {
		return nil
	}
	return t.log.Close()
}

type trailKey struct{}

// trailRun is the run that a context is of.
type trailRun struct {
	id, crew string
	stop     context.CancelCauseFunc // ends the run
}

// began puts on record that a run begins, and binds its calls to it: by its id, or one
// that is made up. A run whose beginning can't be recorded does not begin.
func (t *trail) began(ctx context.Context, c *crew.Crew, id, version string, stop context.CancelCauseFunc) (context.Context, error) {
	if t == nil {
		return ctx, nil
	}
	if id == "" {
		id = rand.Text()
	}
	path := pathOf(ctx)
	ctx = context.WithValue(ctx, trailKey{}, trailRun{id: id, crew: c.Path, stop: stop})
	return ctx, t.put(ctx, audit.Record{
		Kind: audit.RunStarted, Path: path, Client: server.CallerName(ctx), Host: strings.TrimSpace("crewhost " + version), PID: os.Getpid(),
	})
}

// ended puts on record how a run has ended.
func (t *trail) ended(ctx context.Context, began time.Time, err error) error {
	outcome := "completed"
	switch {
	case err != nil && ctx.Err() != nil:
		outcome = "stopped"
	case err != nil:
		outcome = "failed"
	}
	unsaid := t.put(ctx, audit.Record{Kind: audit.RunFinished, Outcome: outcome, Code: string(tools.CodeOf(err)), Millis: time.Since(began).Milliseconds()})
	if t != nil && unsaid == nil {
		t.told(t.log.Head())
	}
	return unsaid
}

// callOf is what is told of a call at its start as well as at its end.
func (t *trail) callOf(ctx context.Context, o permission.Observation) audit.Record {
	r := audit.Record{
		ID: fmt.Sprintf("%s-%d", t.life, o.Number), Path: pathOf(ctx), Client: server.CallerName(ctx),
		Agent: o.Call.Agent, Task: o.Call.Task, Server: o.Request.Server, Tool: o.Request.Tool,
		Arguments: &audit.Arguments{
			Digest: tools.DigestJSON(o.Request.Arguments), Bytes: len(o.Request.Arguments), Shape: audit.Shape(o.Request.Arguments, t.mask),
		},
	}
	if o.Definition.Name != "" {
		r.Definition = o.Definition.Digests().Definition
	}
	if d := o.Decision; d.Verdict != "" {
		r.Decision = &audit.Decision{Verdict: string(d.Verdict)}
		if d.Rule != nil {
			r.Decision.Rule, r.Decision.Place = d.Rule.Pattern, d.Rule.Place
		}
	}
	if a := o.Answer; a != nil {
		r.Answer = &audit.Answer{Allow: a.Allow, Who: t.approver, Scope: string(a.Scope), Earlier: a.Stands}
		if a.Unasked {
			r.Answer.Who = "nobody"
		}
	}
	return r
}

// aroundTool returns what puts a call on record before its tool runs, or nil.
func (t *trail) aroundTool() around {
	if t == nil {
		return nil
	}
	return t.start
}

// start puts a call on record whose tool is about to run.
func (t *trail) start(ctx context.Context, o permission.Observation, run func(context.Context) (tools.Result, error)) (tools.Result, error) {
	r := t.callOf(ctx, o)
	r.Kind = audit.CallStarted
	if err := t.put(ctx, r); err != nil {
		return tools.Result{}, fmt.Errorf("the tool %q was not run: %w", o.Request.Tool, err)
	}
	return run(context.WithValue(ctx, callKey{}, r))
}

// callKey is what the context of a call keeps its record by.
type callKey struct{}

// attest puts a call on record that has ended.
func (t *trail) attest(ctx context.Context, o permission.Observation) error {
	r := t.callOf(ctx, o)
	r.Kind, r.Outcome, r.Ran = audit.Call, string(o.Outcome), &o.Ran
	r.Code, r.Bytes, r.Millis = string(tools.CodeOf(o.Err)), int64(o.Bytes), o.Took.Milliseconds()
	if err := t.put(ctx, r); err != nil {
		return fmt.Errorf("what came of a call of the tool %q is kept back: %w", o.Request.Tool, errors.Join(err, o.Err))
	}
	return nil
}
