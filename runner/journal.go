package runner

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"crewhost/config"
	"crewhost/crew"
	"crewhost/runner/event"
	"crewhost/runner/journal"
	"crewhost/runner/process"
	"crewhost/tools"
	"crewhost/tools/permission"
)

// Life is a life of a run that has had others before: it is resumed.
type Life struct {
	// Log is the journal of the run, as it was opened.
	Log *journal.Log
	// AcceptChanges has the run go on although what it depends on has changed.
	AcceptChanges bool
}

// ChangedError says that a run can't be resumed as it is, since what it depends on is
// not what it was.
type ChangedError struct {
	Run     string
	Changes []string // a line each
}

// Error lists the changes.
func (e *ChangedError) Error() string {
	return fmt.Sprintf("run %s began with something else: %s; if it is to go on with what there is now, say --accept-changes", e.Run, strings.Join(e.Changes, "; "))
}

// Resume is [Host.Run] of a run that did not come to its end: what it has done is not
// done again. Where what it depends on has changed, the error is a [*ChangedError]. The
// journal is closed when Resume returns.
func (h *Host) Resume(ctx context.Context, life Life, c *crew.Crew, inputs crew.Inputs) (*Output, error) {
	defer func() { _ = life.Log.Close() }() // where the run did not begin; else it is closed
	life.Log.OnUnknown(h.askAgain)
	return h.run(ctx, c, inputs, h.cfg.Events, &life)
}

// history is the journal of one run; nil: it has none.
type history struct{ *journal.Log }

// id is that of the run, or "".
func (j *history) id() string {
	if j == nil {
		return ""
	}
	return j.Header().Run
}

// answered reports whether the journal has the next answer of a model in the scope of
// ctx.
func (j *history) answered(ctx context.Context) bool {
	return j != nil && j.Ahead(journal.Model, scopeOf(ctx))
}

// openHistory begins the journal of a run, or the next life of one. Where nobody asked
// for journals, a run that can't have one goes on without.
func (h *Host) openHistory(ctx context.Context, c *crew.Crew, inputs crew.Inputs, events *event.Stream, life *Life) (*history, error) {
	if life != nil {
		return h.relive(ctx, c, inputs, events, life)
	}
	s := h.cfg.Settings.Journal
	if !s.Enabled || h.cfg.Replay != nil {
		return nil, nil
	}
	basis, err := h.basis(ctx, c)
	if err != nil {
		return nil, err
	}
	log, err := journal.Create(journal.Config{Dir: s.Dir, Mask: h.cfg.Redactor.Redact, Write: h.cfg.WriteJournal}, journal.Header{
		Host: h.cfg.Version, Crew: c.Name.V, Path: c.Path, Settings: h.cfg.Settings.Path, Profile: h.cfg.Profile,
		Mounts: h.cfg.Mounts, MountIDs: h.cfg.MountIDs, Dir: h.cfg.Dir, Inputs: inputs, Basis: basis,
	})
	switch {
	case err != nil && s.Named:
		return nil, err
	case err != nil:
		events.Emit(event.Event{Kind: event.Notice, Code: "no_journal", Text: fmt.Sprintf("the run keeps no journal, and can't be resumed: %v", err)})
		return nil, nil
	}
	if _, err := journal.Prune(s.Dir, journal.Keep{Runs: s.Runs, Age: s.Age}, time.Now()); err != nil {
		h.log.Warn("removing the journals of old runs", "err", err)
	}
	h.log.Info("the run keeps a journal", "run", log.Header().Run, "file", log.Path())
	return &history{log}, nil
}

// relive begins the next life of a run.
func (h *Host) relive(ctx context.Context, c *crew.Crew, inputs crew.Inputs, events *event.Stream, life *Life) (*history, error) {
	log := life.Log
	basis, err := h.basis(ctx, c)
	if err != nil {
		return nil, err
	}
	changes := h.changes(log, basis, c, inputs)
	if len(changes) > 0 && !life.AcceptChanges {
		return nil, &ChangedError{log.Header().Run, changes}
	}
	next := journal.Life{Host: h.cfg.Version, Changes: changes}
	if len(changes) > 0 {
		next.Basis = basis
	}
	if err := log.Resume(next); err != nil {
		return nil, err
	}
	steps, ends := log.Done()
	var done []string
	for _, t := range c.Tasks {
		if ends[t.Key].State == journal.TaskCompleted {
			done = append(done, fmt.Sprintf("%q", t.Key))
		}
	}
	text := fmt.Sprintf("run %s is resumed: %d steps are not done again", log.Header().Run, steps)
	if steps == 1 {
		text = fmt.Sprintf("run %s is resumed: 1 step is not done again", log.Header().Run)
	}
	if len(done) > 0 {
		text += ", and these tasks are completed: " + several(done)
	}
	events.Emit(event.Event{Kind: event.Notice, Text: text, Code: "run_resumed"})
	return &history{log}, nil
}

// changes says in a line each what is not as it was when the run began.
func (h *Host) changes(log *journal.Log, basis map[string]string, c *crew.Crew, inputs crew.Inputs) []string {
	was := log.Basis()
	var lines []string
	names := slices.Collect(maps.Keys(was))
	names = slices.AppendSeq(names, maps.Keys(basis))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		before, had := was[name]
		now, has := basis[name]
		switch {
		case had && !has:
			lines = append(lines, name+" is gone")
		case has && !had:
			lines = append(lines, name+" is new")
		case before != now:
			lines = append(lines, name+" has changed")
		}
	}
	head := log.Header()
	if head.Path != c.Path {
		lines = append(lines, fmt.Sprintf("the crew is %s, and was %s", c.Path, head.Path))
	}
	if head.Settings != h.cfg.Settings.Path {
		lines = append(lines, fmt.Sprintf("the settings are %s, and were %s", orNone(h.cfg.Settings.Path), orNone(head.Settings)))
	}
	names = slices.Collect(maps.Keys(head.Inputs))
	names = slices.AppendSeq(names, maps.Keys(inputs))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		before, had := head.Inputs[name]
		if now, has := inputs[name]; had != has || h.cfg.Redactor.Redact(now) != before {
			lines = append(lines, fmt.Sprintf("the variable %s has changed", name))
		}
	}
	return lines
}

func orNone(path string) string {
	if path == "" {
		return "none"
	}
	return path
}

// placelessDigest is that of what a run depends on, without the places of files that it
// stands in.
func placelessDigest(name string, v any) (string, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("taking down what the run depends on: %s: %w", name, err)
	}
	var tree any
	if err := json.Unmarshal(raw, &tree); err != nil {
		return "", fmt.Errorf("taking down what the run depends on: %s: %w", name, err)
	}
	if raw, err = json.Marshal(placeless(tree)); err != nil {
		return "", fmt.Errorf("taking down what the run depends on: %s: %w", name, err)
	}
	return tools.DigestJSON(raw), nil
}

// crewDigest is the digest of all that a crew says, wherever its files are.
func crewDigest(c *crew.Crew) (string, error) {
	all := *c
	all.Path, all.Warnings = "", nil
	return placelessDigest("the crew", all)
}

// basis are the digests of what a run depends on: its crew, part by part and without
// the places of its files that they stand in, the schemas and documents that it names,
// the tools that there are, and the lock.
func (h *Host) basis(ctx context.Context, c *crew.Crew) (map[string]string, error) {
	basis := map[string]string{}
	put := func(name string, v any) (err error) {
		basis[name], err = placelessDigest(name, v)
		return err
	}
	rest := *c
	rest.Agents, rest.Tasks, rest.Path, rest.Warnings = nil, nil, "", nil
	errs := []error{put("the crew", rest)}
	for _, a := range c.Agents {
		errs = append(errs, put(fmt.Sprintf("agent %q", a.Key), a))
	}
	for _, t := range c.Tasks {
		errs = append(errs, put(fmt.Sprintf("task %q", t.Key), t))
		if d := t.Deliverable; d != nil && d.SchemaPath.V != "" {
			schema, err := readSchema(c.Path, d.SchemaPath.V)
			if err != nil {
				schema = []byte(err.Error()) // the task will say so, if it comes to that
			}
			basis[fmt.Sprintf("the schema %q", d.SchemaPath.V)] = digestOf(schema)
		}
	}
	h.documents(ctx, c, basis)
	for _, def := range h.registry.Definitions() {
		basis[fmt.Sprintf("tool %q", def.Name)] = def.Digests().Definition
	}
	lock := h.cfg.Settings.MCP.LockFile
	if lock == "" && h.cfg.Settings.Path != "" {
		lock = filepath.Join(filepath.Dir(h.cfg.Settings.Path), "crewhost.lock")
	}
	if lock != "" {
		data, err := os.ReadFile(lock)
		switch {
		case err == nil:
			basis["the lock"] = digestOf(data)
		case !errors.Is(err, fs.ErrNotExist):
			errs = append(errs, fmt.Errorf("taking down what the run depends on: %w", err))
		}
	}
	return basis, errors.Join(errs...)
}

func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// documents puts the digests of a crew's documents into the basis of a run. What can't
// be read has the digest of why: the run itself will say so.
func (h *Host) documents(ctx context.Context, c *crew.Crew, basis map[string]string) {
	if c.RAG == nil {
		return
	}
	files, err := newSources(c.Path, h.fs)
	if err != nil {
		return
	}
	defer func() { _ = files.Close() }()
	collections, err := h.collections(c, files)
	if err != nil {
		basis["the documents"] = digestOf([]byte(err.Error()))
	}
	for _, one := range collections {
		for _, d := range one.Documents {
			data, err := d.Read(ctx, h.cfg.Settings.Knowledge.Bytes)
			if err != nil {
				data = []byte(err.Error())
			}
			basis[fmt.Sprintf("the document %q", d.Name)] = digestOf(data)
		}
	}
}

// placeless is a value without the places that it stands at.
func placeless(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range []string{"Pos", "File", "Line", "Column"} {
			delete(v, name)
		}
		for name, member := range v {
			v[name] = placeless(member)
		}
	case []any:
		for i, item := range v {
			v[i] = placeless(item)
		}
	}
	return v
}

// close notes how the run ended. out is nil where it did not begin.
func (j *history) close(ctx context.Context, out *Output, failure error, events *event.Stream) error {
	if j == nil {
		return nil
	}
	var errs []error
	end := journal.End{}
	if failure != nil {
		end = journal.End{Code: 2, Error: oneLine(failure)}
		if ctx.Err() != nil {
			end.Code = 130
		}
	}
	if out != nil {
		_, ends := j.Done()
		for _, t := range out.Tasks {
			why := t.Why
			if t.Err != nil {
				why = oneLine(t.Err)
			}
			if ends[t.Task].State != string(t.State) {
				errs = append(errs, j.Task(journal.TaskEnd{Task: t.Task, State: string(t.State), Error: why}))
			}
		}
	}
	if end.Code != 0 {
		run := j.Header().Run
		events.Emit(event.Event{Kind: event.Notice, Code: "run_resumable", Text: fmt.Sprintf("the run can be gone on with: crewhost run --resume %s", run)})
	}
	return errors.Join(append(errs, j.End(end), j.Close())...)
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// keeper has the journal know of each task as it is completed.
type keeper struct {
	process.Keeper
	history *history
	fail    func(error)
}

func keeperOf(inner process.Keeper, past *history, stop context.CancelCauseFunc) process.Keeper {
	if past == nil {
		return inner
	}
	return keeper{inner, past, func(err error) { stop(&StepError{err}) }}
}

// Keep implements [process.Keeper].
func (k keeper) Keep(ctx context.Context, task *crew.Task, out process.TaskOutput) {
	k.Keeper.Keep(ctx, task, out)
	if _, ends := k.history.Done(); ends[out.Task].State == journal.TaskCompleted {
		return
	}
	if err := k.history.Task(journal.TaskEnd{Task: out.Task, State: journal.TaskCompleted}); err != nil {
		k.fail(err)
	}
}

// askAgain asks a person whether a call that may not be made twice is to be made
// although it was begun before. Who answers without being asked is no person.
func (h *Host) askAgain(ctx context.Context, s journal.Step) error {
	refusal := fmt.Errorf("%w. Look whether it was, then: resume at a terminal, or with --events, to be asked whether to call it again; or, if calling it twice does no harm, name it in the settings: journal.repeatable: [%s]",
		&journal.UnknownError{Step: s}, s.Name)
	person := h.person
	if _, constant := person.(permission.Constant); constant || person == nil {
		return refusal
	}
	request := permission.Request{Tool: s.Name, Agent: s.Scope.Agent, Arguments: s.Request}
	if tool, ok := h.registry.Lookup(s.Name); ok {
		def := tool.Definition()
		request.Server, request.ServerTool = def.Server, def.ServerName()
	}
	answer, err := person.Approve(ctx, permission.Question{
		Request: request,
		Decision: permission.Decision{
			Verdict: permission.Ask,
			Reason:  "it was called before the run was cut short, and whether that was carried out is not known: called now, it may be done twice",
		},
		Scopes: []permission.Scope{permission.Once},
	})
	switch {
	case err != nil:
		return fmt.Errorf("asking whether to call the tool %q again: %w", s.Name, err)
	case answer.Unasked:
		return refusal
	case !answer.Allow:
		return fmt.Errorf("%w, and a person said not to call it again", &journal.UnknownError{Step: s})
	}
	return nil
}

// declared are the tools that the settings say may be called twice.
type declared struct{ readOnly, repeatable *permission.Policy }

func declaredOf(j config.Journal, base string) (declared, error) {
	policy := func(rules []config.Rule) (*permission.Policy, error) {
		cfg := permission.Config{Default: permission.Deny, Base: base}
		for _, r := range rules {
			cfg.Allow = append(cfg.Allow, permission.Rule{Pattern: r.Pattern, Place: r.Pos.String()})
		}
		return permission.New(cfg)
	}
	readOnly, err := policy(j.ReadOnly)
	repeatable, more := policy(j.Repeatable)
	return declared{readOnly, repeatable}, errors.Join(err, more)
}

// effect is what the settings say of a call, or that it may not be made twice.
func (d declared) effect(r permission.Request) journal.Effect {
	switch {
	case d.readOnly.Decide(r).Verdict == permission.Allow:
		return journal.NoEffect
	case d.repeatable.Decide(r).Verdict == permission.Allow:
		return journal.Repeatable
	}
	return journal.Once
}

// Withheld returns the variables of a run whose values its journal does not have, for
// they hold secrets, and that are not given.
func Withheld(h journal.Header, given crew.Inputs) []string {
	var names []string
	for _, name := range h.Withheld {
		if _, ok := given[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
