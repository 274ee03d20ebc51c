package process

import (
	"context"
	"fmt"
	"time"

	"crewhost/crew"
	"crewhost/runner/event"
)

// work is what is known of a task's present attempt.
type work struct {
	leaves *deliverable // what it is to leave: a file of its own, not one of an attempt before
	fault  error        // why that can't be left
	tried  time.Time    // when it began
	began  time.Time    // when the first attempt did
}

// attempt is how a task is tried.
type attempt struct {
	by       *crew.Agent
	sections []Section
	judge    func(Answer) error // says whether an answer will do; nil takes any
	again    func(error) bool   // says whether a failure leads to another attempt; nil: none does
}

// try is one attempt at a task from its beginning to its end: an agent does it,
// its answer is judged, and the deliverable is left. The error is why it failed.
// Where another attempt is to follow, again is true, and the caller makes it.
func (s *slot) try(ctx context.Context, a attempt) (again bool, err error) {
	s.begin(ctx, a.by)
	answer, err := s.answer(ctx, a.by, a.sections)
	if err == nil && a.judge != nil {
		err = a.judge(answer)
	}
	return s.finish(ctx, answer, err, a.again)
}

// begin begins an attempt; by may be nil where it is not known who is to do it.
// Each attempt that is begun must be ended.
func (s *slot) begin(ctx context.Context, by *crew.Agent) {
	s.result.Agent = ""
	if by != nil {
		s.result.Agent = by.Key
	}
	s.result.Attempts++
	s.work.tried = time.Now()
	if s.result.Attempts == 1 {
		s.work.began = s.work.tried
	}
	s.emit(event.Event{Kind: event.TaskStarted})
	s.work.leaves, s.work.fault = newDeliverable(ctx, s.run.plan, s.task)
}

// answer has an agent do the task within the attempt that was begun. It changes
// nothing of the slot, so that several agents may be at it at once.
func (s *slot) answer(ctx context.Context, by *crew.Agent, sections []Section) (Answer, error) {
	if by == nil {
		return Answer{}, fmt.Errorf("task %q has no agent: %q is none of the crew", s.task.Key, s.task.Agent.V)
	}
	if s.work.fault != nil {
		return Answer{}, s.work.fault
	}
	return s.run.plan.Runner.RunTask(ctx, TaskInput{
		Task: s.task, Agent: by, Prior: s.prior, Sections: s.run.planned(s.task.Key, sections), Attempt: s.result.Attempts,
		Schema: s.work.leaves.schema, Accept: s.work.leaves.accept(), Budget: s.budget,
	})
}

// end ends an attempt that no other follows: with its answer, once the
// deliverable is left, or with why it failed. It returns the latter, also where
// that is the deliverable. A task whose context has ended is stopped, and not
// failed.
func (s *slot) end(ctx context.Context, answer Answer, err error) error {
	_, err = s.finish(ctx, answer, err, nil)
	return err
}

// finish is end, and asks again whether a failure leads to another attempt.
func (s *slot) finish(ctx context.Context, answer Answer, err error, again func(error) bool) (bool, error) {
	file := ""
	if err == nil {
		file, err = s.work.leaves.leave(ctx, answer.Text)
	}
	if err == nil {
		answer.Text = s.work.leaves.output(answer.Text)
	}
	r := &s.result
	r.Text, r.Err, r.File = answer.Text, err, file
	r.Usage = r.Usage.Add(answer.Usage)
	r.Turns += answer.Turns
	r.ToolCalls += answer.ToolCalls
	r.Took = time.Since(s.work.began)
	e := event.Event{
		DurationMS:  time.Since(s.work.tried).Milliseconds(),
		InputTokens: answer.Usage.Input, OutputTokens: answer.Usage.Output, CacheHitTokens: answer.Usage.CacheRead,
		Turns: answer.Turns, ToolCalls: answer.ToolCalls, File: file, Text: answer.Text, Success: new(err == nil),
	}
	switch {
	case err == nil:
		r.State, e.Kind = Completed, event.TaskCompleted
	case ctx.Err() != nil:
		r.State, e.Kind = Stopped, event.TaskFailed
	case again != nil && again(err):
		r.State, e.Kind = Failed, event.TaskRetried
	default:
		r.State, e.Kind = Failed, event.TaskFailed
	}
	if err != nil {
		e.Error = oneLine(err.Error())
	}
	s.emit(e)
	if k := s.run.plan.Keeper; k != nil && err == nil {
		k.Keep(ctx, s.task, r.TaskOutput)
	}
	return e.Kind == event.TaskRetried, err
}

func (s *slot) skip(why string) {
	s.result.State, s.result.Why = Skipped, why
	s.emit(event.Event{Kind: event.TaskSkipped, Reason: why})
}

// emit tells of the task, and of its agent unless e names one.
func (s *slot) emit(e event.Event) {
	if e.Agent == "" {
		e.Agent = s.result.Agent
	}
	if a := s.run.agents[e.Agent]; a != nil {
		e.Role = a.Role.V
	}
	e.Task, e.Attempt = s.task.Key, max(1, s.result.Attempts)
	s.run.plan.Events.Emit(e)
}

// notice tells of something that a person should know of the task.
func (s *slot) notice(format string, args ...any) {
	s.emit(event.Event{Kind: event.Notice, Text: oneLine(fmt.Sprintf(format, args...))})
}
