package agent

import "crewhost/runner/llm"

// Budget bounds what a task uses, together with whatever else draws on it. Its
// errors say which bound was reached; the first ends the task with
// [ReasonBudget]. It must allow concurrent calls.
type Budget interface {
	// Call is asked before each call of a tool that would be run. Where one of
	// the calls of an answer is refused, none of them is run.
	Call() error
	// Spent is told what each request to a model used, or is reckoned to have
	// used where nobody measured it.
	Spent(llm.Usage) error
	// Delegate is asked before a coworker begins, with how many agents deep that
	// is, from 1.
	Delegate(depth int) error
}

// overspent ends a task whose budget refused more.
func overspent(err error) *TaskError {
	return &TaskError{Reason: ReasonBudget, Detail: "the budget is exhausted", Err: err}
}

// spent counts what a request used.
func (r *run) spent(req llm.Request, res llm.Response) error {
	r.out.Usage = r.out.Usage.Add(res.Usage)
	if !res.Usage.Measured {
		r.unmeasured.Store(true)
	}
	if r.in.Budget == nil {
		return nil
	}
	if err := r.in.Budget.Spent(llm.Used(req, res)); err != nil {
		return overspent(err)
	}
	return nil
}

// afford asks whether n calls of tools may be run.
func (r *run) afford(n int) error {
	if r.in.Budget == nil {
		return nil
	}
	for range n {
		if err := r.in.Budget.Call(); err != nil {
			return overspent(err)
		}
	}
	return nil
}
