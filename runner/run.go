package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"crewhost/config"
	"crewhost/crew"
	"crewhost/runner/agent"
	"crewhost/runner/event"
	"crewhost/runner/llm"
	"crewhost/runner/process"
	"crewhost/tools/mount"
)

// Output is what came of a run. After a failure it holds what there was.
type Output struct {
	Final string // the output of the last task that was completed
	Tasks []process.TaskResult
	Usage llm.Usage
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
// damaged file is a plain error. From the first task on an error is a [*RunError],
// and there is an Output beside it. What happens is told to the Events of the host.
func (h *Host) Run(ctx context.Context, c *crew.Crew, inputs crew.Inputs) (*Output, error) {
	return h.run(ctx, c, inputs, h.cfg.Events)
}

// run is Run, and tells what happens to events.
func (h *Host) run(ctx context.Context, c *crew.Crew, inputs crew.Inputs, events *event.Stream) (*Output, error) {
	if err := h.models.prepare(ctx, profilesOf(c)...); err != nil {
		return nil, err
	}
	began := time.Now()
	c = c.Expand(inputs)
	if c.Planning && h.models.gives(c.LLM, config.ProviderEcho) {
		c.Planning = false
		events.Emit(event.Event{Kind: event.Notice, Text: "planning is left out: the provider echo makes no plans"})
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	book := newLedger(h.models.llm, stop)
	mind, err := h.recollect(ctx, c, book, events)
	if err != nil {
		return nil, err
	}
	defer func() {
		if closeErr := mind.Close(); closeErr != nil {
			h.log.Warn("closing what the crew remembers", "err", closeErr)
		}
	}()
	ctx = mind.bind(ctx)

	loop, err := agent.New(agent.Config{
		Models: func(profile string) (llm.Model, agent.Settings, error) {
			m, err := h.models.model(ctx, profile)
			if err != nil {
				return nil, agent.Settings{}, err
			}
			return book.meter(m, h.models.profile(profile)), h.models.settings(profile), nil
		},
		Toolbox: h.guard, Definitions: h.guard.Definitions, Forms: process.FormOf,
		Known: func(ctx context.Context, a *crew.Agent, t *crew.Task) []agent.Section {
			return sectionsOf(mind.sections(ctx, process.TaskInput{Agent: a, Task: t}))
		},
		Events: events, Logger: h.log, Stream: h.cfg.Stream,
	})
	if err != nil {
		return nil, err
	}
	result, err := process.Run(ctx, process.Plan{
		Crew:       c,
		Runner:     &taskRunner{loop: loop, crew: c, mind: mind},
		Keeper:     mind,
		Questioner: questioner{loop: loop, crew: c},
		Deliverer:  deliverer{h.fs},
		Schema:     schemaReader(c.Path),
		Events:     events,
	})
	cost, spent := book.total()
	if spent != nil && !errors.Is(err, spent) {
		err = errors.Join(spent, err)
	}
	var out *Output
	if result != nil {
		out = &Output{Final: result.Final, Tasks: result.Tasks, Usage: result.Usage, Cost: cost, Took: time.Since(began)}
	}
	if err != nil {
		err = &RunError{err}
	}
	return out, err
}

// taskRunner has the agent loop do the tasks of a process.
type taskRunner struct {
	loop *agent.Loop
	crew *crew.Crew
	mind *recollection
}

// RunTask implements [process.TaskRunner].
func (r *taskRunner) RunTask(ctx context.Context, in process.TaskInput) (process.Answer, error) {
	input := agent.Input{
		Crew: r.crew, Agent: in.Agent, Task: in.Task, Inputs: r.crew.Inputs,
		Attempt: in.Attempt, Schema: in.Schema, Accept: in.Accept, Budget: in.Budget,
	}
	for _, p := range in.Prior {
		input.Prior = append(input.Prior, agent.Prior{Task: p.Task, Agent: p.Agent, Text: p.Text})
	}
	input.Sections = sectionsOf(slices.Concat(in.Sections, r.mind.sections(ctx, in)))
	if len(in.Schema) > 0 {
		input.Format = &llm.ResponseFormat{Type: "json_schema", Name: in.Task.Key, Schema: in.Schema}
	}
	out, err := r.loop.Run(ctx, input)
	return process.Answer{Text: out.Text, Usage: out.Usage, Turns: out.Turns, ToolCalls: out.ToolCalls}, err
}

func sectionsOf(sections []process.Section) []agent.Section {
	all := make([]agent.Section, len(sections))
	for i, s := range sections {
		all[i] = agent.Section(s)
	}
	return all
}

// questioner has the agent loop put the questions of a process, which judges the
// answers itself: one that it can't read need not be a failure.
type questioner struct {
	loop *agent.Loop
	crew *crew.Crew
}

// Ask implements [process.Questioner].
func (q questioner) Ask(ctx context.Context, in process.Question) (process.Answer, error) {
	out, err := q.loop.Ask(ctx, agent.Question{
		Crew: q.crew, Agent: in.Agent, Task: in.Task,
		Operation: in.Operation, Text: in.Text, Schema: in.Schema,
	})
	return process.Answer{Text: out.Text, Usage: out.Usage, Turns: out.Turns}, err
}

// deliverer leaves deliverables in the mounts.
type deliverer struct{ fs *mount.FS }

// Deliver implements [process.Deliverer]. Folders that are missing are made.
func (d deliverer) Deliver(ctx context.Context, name string, content []byte) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	if err := d.fs.MkdirAll(path.Dir(path.Clean(name))); err != nil {
		return err
	}
	return d.fs.WriteFile(name, content)
}

// Stamp implements [process.Deliverer].
func (d deliverer) Stamp(_ context.Context, path string) (process.Stamp, error) {
	info, err := d.fs.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return process.Stamp{}, nil
	case err != nil:
		return process.Stamp{}, err
	case info.IsDir():
		return process.Stamp{}, nil
	default:
		return process.Stamp{Modified: info.ModTime, Size: info.Size}, nil
	}
}

// maxSchema bounds a schema file, in bytes.
const maxSchema = 1 << 20

// schemaReader reads the schema files of a crew.
func schemaReader(crewPath string) func(context.Context, string) ([]byte, error) {
	return func(_ context.Context, path string) ([]byte, error) { return readSchema(crewPath, path) }
}

// readSchema reads a schema file that stands beside or below the crew; it reads
// no others.
func readSchema(crewPath, path string) ([]byte, error) {
	dir := crewPath
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		dir = filepath.Dir(dir)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("opening the crew's folder: %w", err)
	}
	defer root.Close()
	name := filepath.FromSlash(strings.TrimPrefix(path, "/crew/"))
	info, err := root.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // a pipe would hold the run up for ever
		return nil, fmt.Errorf("%s is no regular file", path)
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxSchema+1))
	if err == nil && len(data) > maxSchema {
		err = fmt.Errorf("%s is larger than %d bytes", path, maxSchema)
	}
	return data, err
}
