package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"crewhost/runner/agent"
	"crewhost/runner/event"
	"crewhost/runner/journal"
	"crewhost/runner/llm"
	"crewhost/tools"
)

// Whatever a run cannot come to by itself is a step: a turn of a model, a call of a
// tool, a person's answer, a file, a memory, the time at which it began. Steps are
// carried out by the [journal.Steps] of the run, which go with its context, so that
// hosts that do several runs at once keep them apart. Where a context has none, what
// asks for a step does it itself, and nothing is encoded.
//
// What came of a step is an [outcome] in JSON. Failures are outcomes, too, with all
// that agents and accounts read of them; only what the end of the run cuts off is
// none, and whether it was done nobody knows then.

type stepsKey struct{}

// steps are those of one run.
type steps struct {
	journal.Steps
	redact func(string) string
	stop   context.CancelCauseFunc // ends the run, which can't go on without its steps
}

// steps returns what carries out the steps of a run, or nil where they are just done.
func (h *Host) steps(past *history) journal.Steps {
	var all journal.Steps
	if past != nil {
		all = past.Log
	}
	if h.cfg.Replay != nil {
		all = h.cfg.Replay
	}
	if h.cfg.Steps != nil {
		all = h.cfg.Steps(orLive(all))
	}
	if h.cfg.Record != nil {
		all = h.cfg.Record.Steps(orLive(all))
	}
	return all
}

func orLive(s journal.Steps) journal.Steps {
	if s == nil {
		return journal.Live{}
	}
	return s
}

func (s *steps) bind(ctx context.Context) context.Context {
	return context.WithValue(ctx, stepsKey{}, s)
}

// stepless is a context whose work is in no step.
func stepless(ctx context.Context) context.Context {
	return context.WithValue(ctx, stepsKey{}, (*steps)(nil))
}

func stepsOf(ctx context.Context) *steps {
	s, _ := ctx.Value(stepsKey{}).(*steps)
	return s
}

// step is what is asked of the world, before it is encoded.
type step struct {
	kind    journal.Kind
	name    string
	request any
	effect  journal.Effect
}

// outcome is what came of a step.
type outcome[T any] struct {
	Value T      `json:"value"`
	Fault *fault `json:"fault,omitempty"`
	// Beside is what was asked of models in the step that is no agent's own doing, to
	// be accounted for where the step is not done again.
	Beside []spending `json:"beside,omitempty"`
}

// StepError says that a run was stopped because of its steps: they can't be kept, or
// what is known of an earlier life of the run does not fit.
type StepError struct{ Err error }

// Error returns the cause, which says it all.
func (e *StepError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *StepError) Unwrap() error { return e.Err }

// take has a step carried out by the steps of the run of ctx, or does it by live
// where there are none.
func take[T any](ctx context.Context, st step, live func(context.Context) (T, error)) (T, error) {
	s := stepsOf(ctx)
	if s == nil {
		return live(ctx)
	}
	var none T
	request, err := json.Marshal(st.request)
	if err != nil {
		return none, s.fail(fmt.Errorf("encoding what is asked in step %s %s: %w", st.kind, st.name, err))
	}
	var (
		done  bool
		came  outcome[T]
		cause error
	)
	raw, err := s.Do(ctx, journal.Step{
		Kind: st.kind, Scope: scopeOf(ctx), Name: s.redact(st.name), Request: journal.Mask(request, s.redact), Effect: st.effect,
	}, func(ctx context.Context) (json.RawMessage, error) {
		ctx, purse := withPurse(ctx)
		came.Value, cause = live(ctx)
		if cause != nil && cutOff(ctx) {
			return nil, cause
		}
		done = true
		came.Fault, came.Beside = faultOf(ctx, cause), purse.all()
		return json.Marshal(came)
	})
	switch {
	case err != nil && cause != nil && errors.Is(err, cause):
		return came.Value, cause // the run is being stopped anyway
	case err != nil:
		return none, s.fail(err)
	case done:
		return came.Value, cause
	}
	came = outcome[T]{}
	if err := json.Unmarshal(raw, &came); err != nil {
		return none, s.fail(fmt.Errorf("reading what came of step %s %s: %w", st.kind, st.name, err))
	}
	for _, spent := range came.Beside {
		spent.again(ctx)
	}
	return came.Value, came.Fault.err()
}

func (s *steps) fail(err error) error {
	var already *StepError
	if !errors.As(err, &already) {
		err = &StepError{err}
	}
	s.stop(err)
	return err
}

func scopeOf(ctx context.Context) journal.Scope {
	s := event.ScopeOf(ctx)
	return journal.Scope{Task: s.Task, Agent: s.Agent, Attempt: s.Attempt, Operation: s.Operation, Call: s.Path}
}

// cutOff reports whether the run ended while a step was done. A deadline of a task
// ends the task alone, and the run has seen that.
func cutOff(ctx context.Context) bool {
	if ctx.Err() == nil {
		return false
	}
	var deadline *agent.DeadlineError
	return !errors.As(context.Cause(ctx), &deadline)
}

// fault is an error in an outcome: its text, and what is asked of it by type.
type fault struct {
	Text     string               `json:"text"`
	API      *llm.APIError        `json:"api,omitempty"`
	Tool     *tools.Error         `json:"tool,omitempty"`
	Deadline *agent.DeadlineError `json:"deadline,omitempty"` // of the task, which passed meanwhile
	Timeout  bool                 `json:"timeout,omitempty"`
}

func faultOf(ctx context.Context, err error) *fault {
	if err == nil {
		return nil
	}
	f := &fault{Text: err.Error(), Timeout: errors.Is(err, context.DeadlineExceeded)}
	if api := (*llm.APIError)(nil); errors.As(err, &api) {
		own := *api
		own.Err, f.API = nil, &own
	}
	if tool := (*tools.Error)(nil); errors.As(err, &tool) {
		own := *tool
		own.Err, f.Tool = nil, &own
	}
	if ctx.Err() != nil {
		errors.As(context.Cause(ctx), &f.Deadline)
	}
	return f
}

// err is the error that a fault was made of, as far as anybody can tell them apart.
func (f *fault) err() error {
	if f == nil {
		return nil
	}
	e := &foundError{text: f.Text}
	if f.API != nil {
		e.causes = append(e.causes, f.API)
	}
	if f.Tool != nil {
		e.causes = append(e.causes, f.Tool)
	}
	if f.Deadline != nil {
		e.causes = append(e.causes, f.Deadline)
	}
	if f.Timeout {
		e.causes = append(e.causes, context.DeadlineExceeded)
	}
	return e
}

// foundError is an error of a step that was not done again.
type foundError struct {
	text   string
	causes []error
}

func (e *foundError) Error() string   { return e.text }
func (e *foundError) Unwrap() []error { return e.causes }

// spending is one answer of a model that no agent asked for.
type spending struct {
	Operation string      `json:"operation"`
	Model     string      `json:"model,omitempty"`
	Usage     llm.Usage   `json:"usage"`
	Estimate  llm.Usage   `json:"estimate,omitzero"`
	Charge    *llm.Charge `json:"charge,omitempty"`
	Reported  string      `json:"reported,omitempty"` // the model's name as the vendor says it
}

// purse collects what is spent in a step.
type purse struct {
	outer *purse // of the step that this one is a part of, or nil

	mu    sync.Mutex
	spent []spending
}

type purseKey struct{}

func withPurse(ctx context.Context) (context.Context, *purse) {
	p := &purse{}
	p.outer, _ = ctx.Value(purseKey{}).(*purse)
	return context.WithValue(ctx, purseKey{}, p), p
}

func (p *purse) all() []spending {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.spent
}

// note has the step of a context remember what was spent in it, and those that it is
// a part of.
func note(ctx context.Context, s spending) {
	p, _ := ctx.Value(purseKey{}).(*purse)
	for ; p != nil; p = p.outer {
		p.mu.Lock()
		p.spent = append(p.spent, s)
		p.mu.Unlock()
	}
}

// again accounts for what was spent in a step that is not done again.
func (s spending) again(ctx context.Context) {
	a, ok := ctx.Value(accountKey{}).(account)
	if !ok {
		return
	}
	p := a.book.profileOf(s.Operation)
	res := llm.Response{Usage: s.Usage, Estimate: s.Estimate, Charge: s.Charge, Model: s.Reported}
	if res.Estimate != (llm.Usage{}) {
		a.book.unmeasured.Store(true)
	}
	res.Charge = a.book.write(llm.Request{Model: s.Model}, &res, p)
	a.tell(ctx, s.Operation, p, s.Model, res)
}
