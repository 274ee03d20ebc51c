package runner

import (
	"cmp"
	"context"
	"errors"
	"time"

	"crewhost/config"
	"crewhost/crew"
	"crewhost/runner/agent"
	"crewhost/runner/event"
	"crewhost/runner/llm"
	"crewhost/runner/process"
	"crewhost/tools"
	"crewhost/tools/permission"
)

// Output is what came of a run. After a failure it holds what there was.
type Output struct {
	Final string // the output of the last task that was completed
	Tasks []process.TaskResult
	Usage llm.Usage // of everything that was measured; Measured where all of it was
	// Asked is the part of Usage that no task's is, by operation: what the process
	// asked of agents besides (plan, assign, review, vote, decide), texts that were
	// embedded (embed), and what MCP servers asked the model in the run's calls
	// (sample).
	Asked map[string]llm.Usage
	Cost  Cost
	Took  time.Duration
}

// RunError says that a run began and failed, as opposed to settings or a crew
// that could not be run at all.
type RunError struct{ Err error }

// Error returns why the run failed.
func (e *RunError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *RunError) Unwrap() error { return e.Err }

// Run runs a crew that [Host.Judge] found no issue in. The models that the crew
// names are made first, and its memory and documents opened: a missing key or a
// damaged file is a plain error. From the first task on, and where the budget is
// spent, an error is a [*RunError], and there is an Output beside it. What happens is told to the Events of the host.
func (h *Host) Run(ctx context.Context, c *crew.Crew, inputs crew.Inputs) (*Output, error) {
	return h.run(ctx, c, inputs, h.cfg.Events, nil)
}

// run is Run, and tells what happens to events. life is that of a run that is resumed,
// or nil.
func (h *Host) run(ctx context.Context, c *crew.Crew, inputs crew.Inputs, events *event.Stream, life *Life) (out *Output, err error) {
	if err := h.unopened(c); err != nil {
		return nil, err
	}
	if err := h.models.prepare(ctx, profilesOf(c)...); err != nil {
		return nil, err
	}
	guard, err := h.guardFor(c)
	if err != nil {
		return nil, err
	}
	if err := h.recordRun(c, inputs); err != nil {
		return nil, err
	}
	past, err := h.openHistory(ctx, c, inputs, events, life)
	if err != nil {
		return nil, err
	}
	out, err = h.traceRun(ctx, c, inputs, guard, events, past)
	if unsaid := past.close(ctx, out, err, events); err == nil && unsaid != nil {
		err = &RunError{unsaid}
	}
	return h.settle(out, err)
}

// doRun is run, once all is there that it needs.
func (h *Host) doRun(ctx context.Context, c *crew.Crew, inputs crew.Inputs, guard *permission.Guard, events *event.Stream, past *history) (out *Output, err error) {
	began := time.Now()
	c = c.Expand(inputs)
	if h.replays() {
		unhurried(c)
	}
	if c.Planning && h.models.gives(c.LLM, config.ProviderEcho) {
		c.Planning = false
		events.Emit(event.Event{Kind: event.Notice, Text: "planning is left out: the provider echo makes no plans"})
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	if ctx, err = h.trail.began(ctx, c, cmp.Or(past.id(), events.Run()), h.cfg.Version, stop); err != nil {
		return nil, err
	}
	defer func() {
		if unsaid := h.trail.ended(ctx, began, err); err == nil && unsaid != nil {
			err = &RunError{unsaid}
		}
	}()
	book := newLedger(h.models.llm, stop)
	own := account{book, events}
	ctx = own.bind(ctx)
	if carry := h.steps(past); carry != nil {
		ctx = (&steps{carry, h.cfg.Redactor.Redact, stop}).bind(ctx)
	}
	mind, err := h.recollect(ctx, c, own)
	switch cost, spent := book.total(); {
	case err != nil && spent != nil:
		return &Output{Cost: cost, Took: time.Since(began)}, &RunError{err}
	case err != nil:
		return nil, err
	}
	defer func() {
		if closeErr := mind.Close(); closeErr != nil {
			h.log.Warn("closing what the crew remembers", "err", closeErr)
		}
	}()
	ctx = mind.bind(ctx)

	defs := func() []tools.Definition { return h.pins.keep(guard.Definitions()) }
	loop, err := agent.New(agent.Config{
		Models: func(profile string) (llm.Model, agent.Settings, error) {
			m, err := h.models.model(ctx, profile)
			if err != nil {
				return nil, agent.Settings{}, err
			}
			p := h.models.profile(profile)
			m = h.cfg.Telemetry.Model(book.meter(stepped{m, h.models.named(profile)}, p), p.Provider, p.Model)
			return m, h.models.settings(profile), nil
		},
		Toolbox: guard, Definitions: defs, Forms: process.FormOf,
		Known: func(ctx context.Context, a *crew.Agent, t *crew.Task) []agent.Section {
			return sectionsOf(mind.sections(ctx, process.TaskInput{Agent: a, Task: t}))
		},
		Handing: func(ctx context.Context, a *crew.Agent, t *crew.Task) (context.Context, func(error)) {
			return h.cfg.Telemetry.Agent(ctx, a.Key, t.Key)
		},
		Answered: past.answered,
		Limits:   agent.Limits{ResultCharsOf: h.resultChars()},
		Events:   events, Logger: h.log, Stream: h.cfg.Stream,
	})
	if err != nil {
		return nil, err
	}
	work := h.traceTasks(&taskRunner{loop: loop, crew: c, mind: mind}, questioner{loop: loop, crew: c})
	result, err := process.Run(ctx, process.Plan{
		Crew:       c,
		Runner:     work,
		Keeper:     keeperOf(mind, past, stop),
		Questioner: work,
		Deliverer:  fileSteps{deliverer{h.fs}},
		Schema:     schemaReader(c.Path),
		Events:     events,
		Held:       func(a *crew.Agent) []string { return agent.Held(a, nil, defs()) },
	})
	cost, spent := book.total()
	if spent != nil && !errors.Is(err, spent) {
		err = errors.Join(spent, err)
	}
	if result != nil {
		for operation, usage := range book.asked() {
			if result.Asked == nil {
				result.Asked = map[string]llm.Usage{}
			}
			result.Asked[operation] = result.Asked[operation].Add(usage)
			result.Usage = result.Usage.Add(usage)
		}
		if book.unmeasured.Load() {
			result.Usage.Measured = false
		}
		out = &Output{Final: result.Final, Tasks: result.Tasks, Usage: result.Usage, Asked: result.Asked, Cost: cost, Took: time.Since(began)}
	}
	if err != nil {
		err = &RunError{err}
	}
	return out, err
}
