// Package process decides in which order the tasks of a crew are done, by whom
// and with which earlier outputs, and what becomes of a crew when a task fails.
//
// How a task is done is the business of a [TaskRunner]; where files are written,
// of a [Deliverer]. One rule holds for failures: tasks that depend on a task that
// failed are skipped, all others run, and the crew fails with a [*CrewError] that
// names every one of them.
//
//	result, err := process.Run(ctx, process.Plan{Crew: c, Runner: tasks, Deliverer: files})
//	fmt.Println(result.Final) // there is a result also with an error
package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
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
	// Spent is told what each request to a model used.
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

// State is how a task stands at the end of a run.
type State string

// The states.
const (
	Completed State = "completed"
	Failed    State = "failed"
	Skipped   State = "skipped" // a task that it depends on failed or was skipped
	Stopped   State = "stopped" // the run was stopped while it ran
	NotRun    State = "not_run" // the run was stopped before it began
)

// TaskResult is what became of a task.
type TaskResult struct {
	TaskOutput // Text is the last text of a task that is not completed
	State      State
	Err        error         // why it failed or stopped
	Why        string        // why it was skipped, in one line
	File       string        // the virtual path of its deliverable, where it was left
	Took       time.Duration // from its start to its end
	Usage      llm.Usage
	Turns      int // calls to the model
	ToolCalls  int
}

// Result is what became of a crew.
type Result struct {
	Final string       // the output of the last completed task in the plan's order
	Tasks []TaskResult // every task, in the plan's order
	Usage llm.Usage
}

// Plan is a crew to run and what it is run with.
type Plan struct {
	Crew   *crew.Crew // valid, with its variables put in
	Runner TaskRunner
	// Questioner may be nil where the process asks nothing: sequential, parallel
	// and graph.
	Questioner Questioner
	// Deliverer may be nil where no task leaves a file.
	Deliverer Deliverer
	// Schema reads the file of a deliverable's schemaPath. It may be nil where
	// no task names one.
	Schema func(ctx context.Context, path string) ([]byte, error)
	Events *event.Stream // nil: dropped
}

// Run does the tasks of a crew by its process. There is a result with every
// error that comes after the first task could begin: a [*CrewError] where tasks
// failed, or ctx's cause, wrapped, where the run was stopped.
func Run(ctx context.Context, plan Plan) (*Result, error) {
	if plan.Crew == nil || plan.Runner == nil {
		return nil, errors.New("running a crew: the plan has no crew or no runner")
	}
	order, err := Order(plan.Crew)
	if err != nil {
		return nil, fmt.Errorf("running crew %q: %w", plan.Crew.Name.V, err)
	}
	switch plan.Crew.Process {
	case crew.Sequential, "":
		return sequential(ctx, plan, order)
	default:
		return nil, fmt.Errorf("running crew %q: process %q is not supported", plan.Crew.Name.V, plan.Crew.Process)
	}
}

// CrewError names the tasks for which a crew failed, in the plan's order.
type CrewError struct {
	Crew    string
	Failed  []TaskResult
	Skipped []TaskResult
}

// Error says in one line which tasks failed and why, and which were skipped.
func (e *CrewError) Error() string {
	var parts []string
	for _, t := range e.Failed {
		parts = append(parts, fmt.Sprintf("task %q failed: %v", t.Task, t.Err))
	}
	for _, t := range e.Skipped {
		parts = append(parts, fmt.Sprintf("task %q was skipped: %s", t.Task, t.Why))
	}
	return fmt.Sprintf("crew %q: %s", e.Crew, strings.Join(parts, "; "))
}

// Unwrap returns why the tasks failed.
func (e *CrewError) Unwrap() []error {
	errs := make([]error, len(e.Failed))
	for i, t := range e.Failed {
		errs[i] = t.Err
	}
	return errs
}

// result makes the end of a run of what became of its tasks.
func result(ctx context.Context, c *crew.Crew, tasks []TaskResult) (*Result, error) {
	res := &Result{Tasks: tasks}
	failure := &CrewError{Crew: c.Name.V}
	done, stopped := 0, false
	for _, t := range tasks {
		res.Usage = res.Usage.Add(t.Usage)
		switch t.State {
		case Completed:
			done++
			res.Final = t.Text
		case Failed:
			failure.Failed = append(failure.Failed, t)
		case Skipped:
			failure.Skipped = append(failure.Skipped, t)
		default:
			stopped = true
		}
	}
	switch {
	case stopped:
		return res, fmt.Errorf("running crew %q: stopped with %d of %d tasks completed: %w", c.Name.V, done, len(tasks), context.Cause(ctx))
	case len(failure.Failed) > 0:
		return res, failure
	}
	return res, nil
}
