package agent

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Reason says in a stable word why a task ended without an answer.
type Reason string

// The reasons.
const (
	ReasonMaxIterations  Reason = "max_iterations"  // maxIter calls to the model, and no answer
	ReasonRepeatedError  Reason = "repeated_error"  // the same tool errors three turns over
	ReasonMalformedCalls Reason = "malformed_calls" // calls without proper arguments, three turns over
	ReasonEmptyAnswer    Reason = "empty_answer"    // no text, or reasoning alone, also when asked again (K75)
	ReasonCut            Reason = "cut"             // cut at the token limit, also when continued (K71)
	ReasonFiltered       Reason = "filtered"        // withheld by the vendor, or refused (K71)
	ReasonRejected       Reason = "rejected"        // the answer or its deliverable is not what the task asks for
	ReasonBudget         Reason = "budget"          // the caller's budget refused more
	ReasonTooLong        Reason = "too_long"        // does not fit into the model's context, also when shortened
	ReasonModel          Reason = "model"           // the model could not be asked
	ReasonTools          Reason = "tools"           // a tool that the crew names is not there
	ReasonTimeout        Reason = "timeout"         // the task's timeout or the agent's maxExecutionTime has passed
	ReasonCancelled      Reason = "cancelled"       // the caller's context ended
)

// TaskError says why a task ended without an answer.
type TaskError struct {
	Reason Reason
	Detail string // one line for a person
	Err    error  // the cause; may be nil
}

// Error returns the detail, the cause and the reason in one line.
func (e *TaskError) Error() string {
	s := e.Detail
	if e.Err != nil && e.Err != context.Canceled { //nolint:errorlint // which alone says no more than the reason
		s += ": " + e.Err.Error()
	}
	return s + " (" + string(e.Reason) + ")"
}

// Unwrap returns the cause.
func (e *TaskError) Unwrap() error { return e.Err }

// ReasonOf returns the reason of the first [*TaskError] in err's chain, or "".
func ReasonOf(err error) Reason {
	var e *TaskError
	if errors.As(err, &e) {
		return e.Reason
	}
	return ""
}

func fail(reason Reason, format string, args ...any) *TaskError {
	return &TaskError{Reason: reason, Detail: fmt.Sprintf(format, args...)}
}

// DeadlineError is the cause of a context that a task's own deadline ended. Whoever
// answers for a model or a tool may return one of a deadline that passed before, in
// an earlier life of the run: the task ends by it as it did then.
type DeadlineError struct {
	Of    string        // the key that sets it
	After time.Duration // what it is set to
}

// Error names the key and the time.
func (e *DeadlineError) Error() string {
	return fmt.Sprintf("it took longer than its %s of %v", e.Of, e.After)
}

// Unwrap lets a caller ask for the field's own sign of a timeout.
func (e *DeadlineError) Unwrap() error { return context.DeadlineExceeded }

// ended tells a task's deadline from the end of the caller's context.
func ended(ctx context.Context) *TaskError {
	cause := context.Cause(ctx)
	if late := lateBy(cause); late != nil {
		return late
	}
	return &TaskError{Reason: ReasonCancelled, Detail: "the task was stopped", Err: cause}
}

// lateBy is how a task ends by the deadline in err; nil where there is none in it.
func lateBy(err error) *TaskError {
	var deadline *DeadlineError
	if !errors.As(err, &deadline) {
		return nil
	}
	return &TaskError{Reason: ReasonTimeout, Detail: "the task was stopped", Err: deadline}
}
