package agent

import (
	"context"

	"golang.org/x/time/rate"

	"crewhost/runner/llm"
)

// wait returns when the agent and its crew may ask a model once more, by their
// maxRpm. It fails when ctx ends, or would end first.
func (l *Loop) wait(ctx context.Context, in Input) error {
	for _, w := range []struct {
		who any
		rpm int
	}{{in.Agent, in.Agent.MaxRPM.V}, {in.Crew, in.Crew.MaxRPM.V}} {
		if w.rpm <= 0 {
			continue
		}
		if err := l.limiter(w.who, w.rpm).Wait(ctx); err != nil {
			if ctx.Err() != nil {
				return ended(ctx)
			}
			return &TaskError{Reason: ReasonTimeout, Detail: "waiting for a request within maxRpm would outlast the deadline of the task or the run", Err: context.DeadlineExceeded}
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
