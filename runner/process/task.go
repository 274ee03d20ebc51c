package process

import (
	"context"
	"fmt"
	"strings"
	"time"

	"crewhost/runner/event"
)

// do does the task and leaves its deliverable. Whatever goes wrong fails the
// task, unless the run was stopped.
func (s *slot) do(ctx context.Context, prior []TaskOutput) {
	start := time.Now()
	s.emit(event.Event{Kind: event.TaskStarted})
	answer, file, err := s.attempt(ctx, prior)

	r := &s.result
	r.Text, r.Usage, r.Turns, r.ToolCalls = answer.Text, answer.Usage, answer.Turns, answer.ToolCalls
	r.State, r.Err, r.File, r.Took = Completed, err, file, time.Since(start)
	e := event.Event{
		Kind: event.TaskCompleted, Success: new(err == nil), DurationMS: r.Took.Milliseconds(),
		InputTokens: r.Usage.Input, OutputTokens: r.Usage.Output,
	}
	if err != nil {
		r.State = Failed
		if ctx.Err() != nil {
			r.State = Stopped
		}
		e.Kind, e.Error = event.TaskFailed, strings.Join(strings.Fields(err.Error()), " ")
	}
	s.emit(e)
}

// attempt does the task once and returns the path of the file that it left.
func (s *slot) attempt(ctx context.Context, prior []TaskOutput) (Answer, string, error) {
	if s.agent == nil {
		return Answer{}, "", fmt.Errorf("task %q has no agent: %q is none of the crew", s.task.Key, s.task.Agent.V)
	}
	d, err := newDeliverable(ctx, s.plan, s.task)
	if err != nil {
		return Answer{}, "", err
	}
	answer, err := s.plan.Runner.RunTask(ctx, TaskInput{
		Task: s.task, Agent: s.agent, Prior: prior, Attempt: 1,
		Schema: d.schema, Accept: d.accept(),
	})
	if err != nil {
		return answer, "", err
	}
	file, err := d.leave(ctx, answer.Text)
	return answer, file, err
}

func (s *slot) skip(why string) {
	s.result.State, s.result.Why = Skipped, why
	s.emit(event.Event{Kind: event.TaskSkipped, Text: why})
}

func (s *slot) emit(e event.Event) {
	e.Task, e.Agent, e.Attempt = s.task.Key, s.result.Agent, 1
	s.plan.Events.Emit(e)
}
