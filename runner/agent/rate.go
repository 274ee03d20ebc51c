package agent

import (
	"context"

	"golang.org/x/time/rate"

	"crewhost/runner/event"
	"crewhost/runner/llm"
)

// wait returns when the agent and its crew may ask a model once more, by their
// maxRpm: at once where the answer is known, and nobody is asked. It fails when ctx
// ends, or at once where a deadline of the task itself comes first. A deadline from
// outside it is waited for, since it ends more than this task, and its cause says what.
func (r *run) wait(ctx context.Context) error {
	if r.answered != nil && r.answered(event.NewContext(ctx, r.asking())) {
		return nil
	}
	in := r.in
	for _, w := range []struct {
		who any
		rpm int
	}{{in.Agent, in.Agent.MaxRPM.V}, {in.Crew, in.Crew.MaxRPM.V}} {
		if w.rpm <= 0 {
			continue
		}
		if err := r.limiter(w.who, w.rpm).Wait(ctx); err != nil {
			if ctx.Err() == nil && r.bounded {
				return &TaskError{Reason: ReasonTimeout, Detail: "waiting for a request within maxRpm would outlast the deadline of the task", Err: context.DeadlineExceeded}
			}
			<-ctx.Done()
			return ended(ctx)
		}
	}
	return nil
}

func (l *Loop) limiter(who any, rpm int) *rate.Limiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	lim, ok := l.limiters[who]
	if !ok {
		lim = llm.PerMinute(rpm)
		l.limiters[who] = lim
	}
	return lim
}
