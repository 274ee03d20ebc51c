package process

import (
	"context"
	"fmt"
	"strings"
	"time"

	"crewhost/runner/llm"
)

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

// TaskResult is what became of a task. What it took and cost is that of all its
// attempts.
type TaskResult struct {
	TaskOutput // Text is the last text of a task that is not completed
	State      State
	Err        error         // why it failed or stopped
	Why        string        // why it was skipped, in one line
	File       string        // the virtual path of its deliverable, where it was left
	Attempts   int           // times that it was begun
	Took       time.Duration // from its start to its end
	Usage      llm.Usage     // of the agents' work; what the process asked is not in it
	Turns      int           // calls to the model
	ToolCalls  int
}

// Result is what became of a crew.
type Result struct {
	Final string       // the output of the last completed task in the plan's order
	Tasks []TaskResult // every task, in the plan's order
	Usage llm.Usage    // of everything
	// Asked is the part of Usage that the process's own questions cost, by
	// their operation; nil where it asked none.
	Asked map[string]llm.Usage
}

// DeadlineError says that a run was stopped because it took as long as its crew
// lets it. It is the Cause of a [CrewError].
type DeadlineError struct{ MaxDuration time.Duration }

// Error names the bound.
func (e *DeadlineError) Error() string {
	return fmt.Sprintf("the run took longer than its maxDuration of %v", e.MaxDuration)
}

// CrewError is the failure of a crew: it names the tasks for which it failed, in
// the plan's order.
type CrewError struct {
	Crew string
	// Cause is why the run was ended before its tasks were, such as a limit of
	// the process or a [*DeadlineError]; nil where it was not.
	Cause   error
	Failed  []TaskResult
	Skipped []TaskResult
	// Unfinished are the tasks that Cause stopped, or kept from beginning.
	Unfinished []TaskResult
}

// Error says in one line why the run ended, which tasks failed and why, and
// which were skipped or not finished.
func (e *CrewError) Error() string {
	var parts []string
	if e.Cause != nil {
		parts = append(parts, e.Cause.Error())
	}
	for _, t := range e.Failed {
		parts = append(parts, fmt.Sprintf("task %q failed: %v", t.Task, t.Err))
	}
	for _, t := range e.Skipped {
		parts = append(parts, fmt.Sprintf("task %q was skipped: %s", t.Task, t.Why))
	}
	for _, t := range e.Unfinished {
		state := "was not begun"
		if t.State == Stopped {
			state = "was stopped"
		}
		parts = append(parts, fmt.Sprintf("task %q %s", t.Task, state))
	}
	return fmt.Sprintf("crew %q: %s", e.Crew, strings.Join(parts, "; "))
}

// Unwrap returns why the run ended and why the tasks failed.
func (e *CrewError) Unwrap() []error {
	var errs []error
	if e.Cause != nil {
		errs = append(errs, e.Cause)
	}
	for _, t := range e.Failed {
		errs = append(errs, t.Err)
	}
	return errs
}

// result makes the end of a run of what became of its tasks. cause is why it was
// ended early, unless ctx was, which is the caller's doing and no failure of the
// crew.
func (r *run) result(ctx context.Context, cause error) (*Result, error) {
	name := r.plan.Crew.Name.V
	res := &Result{Tasks: make([]TaskResult, len(r.slots)), Asked: r.asked}
	for _, u := range r.asked {
		res.Usage = res.Usage.Add(u)
	}
	failure := &CrewError{Crew: name, Cause: cause}
	done := 0
	for i, s := range r.slots {
		t := s.result
		res.Tasks[i] = t
		res.Usage = res.Usage.Add(t.Usage)
		switch t.State {
		case Completed:
			done++
			res.Final = t.Text
		case Failed:
			failure.Failed = append(failure.Failed, t)
		case Skipped:
			failure.Skipped = append(failure.Skipped, t)
		case Stopped, NotRun:
			failure.Unfinished = append(failure.Unfinished, t)
		}
	}
	switch {
	case len(failure.Unfinished) > 0 && ctx.Err() != nil:
		return res, fmt.Errorf("running crew %q: stopped with %d of %d tasks completed%w", name, done, len(r.slots), because{context.Cause(ctx)})
	case cause != nil || len(failure.Failed)+len(failure.Unfinished) > 0:
		return res, failure
	}
	return res, nil
}

// stopped returns err, or ctx's cause where ctx ended before all tasks had.
func (r *run) stopped(ctx context.Context, err error) error {
	if err != nil || ctx.Err() == nil {
		return err
	}
	for _, s := range r.slots {
		if s.result.State == Stopped || s.result.State == NotRun {
			return context.Cause(ctx)
		}
	}
	return nil
}

// because ends a sentence with a cause, unless it says no more than the sentence.
type because struct{ cause error }

func (b because) Error() string {
	if b.cause == context.Canceled { //nolint:errorlint // a cause that wraps it says more
		return ""
	}
	return ": " + b.cause.Error()
}

func (b because) Unwrap() error { return b.cause }
