// Package process decides in which order the tasks of a crew are done, by whom
// and with which earlier outputs, and what becomes of a crew when a task fails.
//
// How a task is done is the business of a [TaskRunner]; how an agent answers a
// question, of a [Questioner]; where files are written, of a [Deliverer].
//
// A run is a slot for each task, in the order of [Order]. A process is one
// function in a file of its own: it says what each slot waits for, beside what its
// task depends on, and how one task is brought to its end, by one attempt or
// several. The rest is the same for all. A scheduler begins a slot once all that it
// waits for has ended, and the first in order where several could begin. A task
// sees the outputs of what it depends on and of the latest others that it waited
// for, which follows from the plan and not from what was quick. Tasks that depend
// on a task that failed are skipped, all others run, and the crew fails with a
// [*CrewError] that names every one of them.
//
//	result, err := process.Run(ctx, process.Plan{Crew: c, Runner: tasks, Deliverer: files})
//	fmt.Println(result.Final) // there is a result also with an error
package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"crewhost/crew"
	"crewhost/runner/event"
	"crewhost/runner/llm"
)

// TaskRunner does one task. It must allow concurrent tasks.
type TaskRunner interface {
	// RunTask returns the agent's answer, or an error and what there was till
	// it. It returns soon after ctx ends, with an error.
	RunTask(ctx context.Context, in TaskInput) (Answer, error)
}

// Questioner puts a question to an agent's model that is no task: whom a task
// should go to, whether a result will do, which of several answers is best. It
// must allow concurrent questions.
type Questioner interface {
	// Ask returns the answer, or an error and what it cost till then. It returns
	// soon after ctx ends, with an error.
	Ask(ctx context.Context, q Question) (Answer, error)
}

// Question is one question to an agent.
type Question struct {
	// Agent is who is asked: the question is put in its role, with its goal and
	// on its model, and without tools.
	Agent *crew.Agent
	// Operation says what for, in a word, for events and accounts: assign,
	// review, vote, plan, route.
	Operation string
	// Task is what it is about; nil: the crew as a whole.
	Task *crew.Task
	Text string
	// Schema is the JSON Schema that the answer should hold to; empty: any text.
	Schema json.RawMessage
}

// Section is a titled part that a prompt has beside the task: a manager's
// feedback, what others said, a plan, memories, excerpts.
type Section struct {
	Title string
	Text  string
}

// Deliverer keeps the files that tasks leave.
type Deliverer interface {
	// Deliver writes content to a virtual path, and replaces what is there.
	Deliver(ctx context.Context, path string, content []byte) error
	// Stamp describes the file at a virtual path as it is now; it is the zero
	// Stamp where there is none.
	Stamp(ctx context.Context, path string) (Stamp, error)
}

// Keeper is told what comes of tasks. It must allow concurrent calls.
type Keeper interface {
	// Keep is told once of each task that is completed, when its deliverable is
	// left and before any other task sees its output. What it fails at is its own
	// business: the task stays completed.
	Keep(ctx context.Context, task *crew.Task, out TaskOutput)
}

// Stamp tells one state of a file from another: two that are equal are of a file
// that nobody wrote in between.
type Stamp struct {
	Modified time.Time
	Size     int64
}

// TaskInput is one task to do.
type TaskInput struct {
	Task  *crew.Task
	Agent *crew.Agent
	// Prior are the earlier outputs that the task gets to see, in the order of
	// the plan.
	Prior []TaskOutput
	// Sections are further parts of the prompt, in order.
	Sections []Section
	// Attempt counts the tries of the task, from 1.
	Attempt int
	// Schema is the JSON Schema that the answer must hold to, or empty.
	Schema json.RawMessage
	// Accept judges an answer while the agent can still mend it: what its error
	// says is for the model to read. Nil accepts any answer.
	Accept func(ctx context.Context, answer string) error
	// Budget, where set, bounds what the task uses.
	Budget Budget
}

// Budget bounds what tasks use together. Its errors say which bound was reached;
// the first ends the task that met it. It must allow concurrent calls.
type Budget interface {
	// Call is asked before each call of a tool.
	Call() error
	// Spent is told what each request to a model used, or is reckoned to have
	// used where nobody measured it.
	Spent(llm.Usage) error
	// Delegate is asked before a coworker begins, with how many agents deep that
	// is, from 1.
	Delegate(depth int) error
}

// Answer is what a [TaskRunner] makes of a task.
type Answer struct {
	Text      string
	Usage     llm.Usage
	Turns     int // calls to the model
	ToolCalls int
}

// TaskOutput is the output of a task that is done.
type TaskOutput struct {
	Task  string // key
	Agent string // key
	Text  string
}

// Plan is a crew to run and what it is run with.
type Plan struct {
	Crew   *crew.Crew // valid, with its variables put in
	Runner TaskRunner
	// Questioner may be nil where nothing is asked: by a crew without planning
	// in the processes sequential, parallel and graph.
	Questioner Questioner
	// Deliverer may be nil where no task leaves a file.
	Deliverer Deliverer
	// Keeper may be nil where nobody wants to know.
	Keeper Keeper
	// Schema reads the file of a deliverable's schemaPath. It may be nil where
	// no task names one.
	Schema func(ctx context.Context, path string) ([]byte, error)
	Events *event.Stream // nil: dropped
	// Held returns the names of all tools that an agent has, those that its toolsets
	// bring among them; where it is nil, agents have those that they name.
	Held func(*crew.Agent) []string
}

// toolsOf are the tools of an agent as its crew gets to know them: those that it names,
// in its order, and then what its toolsets bring.
func (p Plan) toolsOf(a *crew.Agent) []string {
	var names []string
	for _, t := range a.Tools {
		names = append(names, t.V)
	}
	if len(a.Toolsets) == 0 || p.Held == nil {
		return names
	}
	held := p.Held(a)
	names = slices.DeleteFunc(names, func(name string) bool { return !slices.Contains(held, name) })
	for _, name := range held {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// Run does the tasks of a crew by its process. There is a result with every
// error that comes after the first task could begin: a [*CrewError] where tasks
// failed, where the process gave up or where the crew's maxDuration has passed,
// and ctx's cause, wrapped, where ctx ended the run.
func Run(ctx context.Context, plan Plan) (*Result, error) {
	if plan.Crew == nil || plan.Runner == nil {
		return nil, errors.New("running a crew: the plan has no crew or no runner")
	}
	do := processOf(plan.Crew.Process)
	if do == nil {
		return nil, fmt.Errorf("running crew %q: there is no process %q", plan.Crew.Name.V, plan.Crew.Process)
	}
	order, err := Order(plan.Crew)
	if err != nil {
		return nil, fmt.Errorf("running crew %q: %w", plan.Crew.Name.V, err)
	}
	r := newRun(plan, order)
	return r.result(ctx, r.within(ctx, plan.Crew.MaxDuration, func(ctx context.Context, r *run) error {
		ctx, end := r.wallTime(ctx)
		defer end()
		r.planAhead(ctx)
		return do(ctx, r)
	}))
}

// processOf returns a way to run a crew, or nil. Each arranges who waits for whom,
// has every task done, and returns why it gave up before it was through with them,
// or nil: that a task failed is no reason.
func processOf(p crew.Process) func(context.Context, *run) error {
	switch p {
	case crew.Sequential, "":
		return sequential
	case crew.Parallel:
		return parallel
	case crew.Graph:
		return graph
	case crew.Hierarchical:
		return hierarchical
	case crew.Consensual:
		return consensual
	case crew.Autonomous:
		return autonomous
	}
	return nil
}

// within has a process stop at the deadline, and returns why it did not finish.
func (r *run) within(ctx context.Context, limit time.Duration, do func(context.Context, *run) error) error {
	if limit <= 0 {
		return do(ctx, r)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, &DeadlineError{limit})
	defer cancel()
	return r.stopped(ctx, do(ctx, r))
}
