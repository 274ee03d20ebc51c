package process

import (
	"context"
	"fmt"
	"time"

	"crewhost/crew"
)

// graph does the tasks one after another by a graph of two states: one executes
// a task, the other routes to the next one, or back to a task that failed, at most
// maxRetryCycles times each. Who tries again is told what went wrong.
//
// Limits on the transitions, on the visits of a state and on the time end the
// run.
func graph(ctx context.Context, r *run) error {
	limits := limitsOf(r.plan.Crew.Graph, len(r.slots))
	ctx, cancel := context.WithTimeoutCause(ctx, limits.duration, &LimitError{
		Limit: "maxTotalDurationSeconds", Value: fmt.Sprintf("%g", limits.duration.Seconds()),
	})
	defer cancel()
	r.inLine()
	trail := trail{limits: limits}
	return r.stopped(ctx, r.each(ctx, 1, func(ctx context.Context, s *slot) error {
		return s.execute(ctx, &trail)
	}))
}

// execute tries a task until it is done, no retries are left or a limit is
// reached, which is the error.
func (s *slot) execute(ctx context.Context, t *trail) error {
	if err := t.enter(); err != nil {
		return err
	}
	try := attempt{by: s.agent}
	var limit error
	try.again = func(error) bool {
		if s.result.Attempts > t.limits.retries {
			return false
		}
		limit = t.enter()
		return limit == nil
	}
	for {
		again, err := s.try(ctx, try)
		if !again {
			return limit
		}
		try.sections = []Section{{
			Title: "An earlier attempt at this task failed",
			Text:  fmt.Sprintf("Attempt %d ended with: %s\n\nDo the task anew, and avoid what led to that.", s.result.Attempts, oneLine(err.Error())),
		}}
	}
}

// LimitError says which limit of the graph process ended a run. It is the Cause
// of a [CrewError].
type LimitError struct {
	Limit string // its key in the crew
	Value string
}

// Error names the limit.
func (e *LimitError) Error() string {
	return fmt.Sprintf("Graph execution stopped by circuit breaker: %s (%s) is reached", e.Limit, e.Value)
}

// limits are those of a run by the graph process.
type limits struct {
	retries     int // of a task
	visits      int // of each state
	transitions int // into either state
	duration    time.Duration
}

// limitsOf are what the crew says, and where it says nothing what the tasks with
// all their retries can need, within the time of the preset.
func limitsOf(c *crew.GraphConfig, tasks int) limits {
	l := limits{retries: 2, duration: 10 * time.Minute}
	if c == nil {
		c = &crew.GraphConfig{MaxRetryCycles: l.retries}
	}
	l.retries = c.MaxRetryCycles
	l.visits = tasks * (1 + l.retries)
	if c.MaxStateVisits != nil {
		l.visits = *c.MaxStateVisits
	}
	l.transitions = 2*l.visits + 1
	if c.MaxTransitions != nil {
		l.transitions = *c.MaxTransitions
	}
	switch c.Preset {
	case "default":
		l.duration = 30 * time.Minute
	case "permissive":
		l.duration = 2 * time.Hour
	}
	if c.MaxTotalSeconds != nil {
		l.duration = time.Duration(*c.MaxTotalSeconds) * time.Second
	}
	return l
}

// trail counts the way through the graph.
type trail struct {
	limits      limits
	visits      int // of the state that executes; the one that routes has as many
	transitions int
}

// enter goes to the state that executes a task, and on to the one that routes. A
// limit only ever keeps a task from being begun: it fails no run that is through.
func (t *trail) enter() error {
	switch {
	case t.visits >= t.limits.visits:
		return &LimitError{"maxStateVisits", fmt.Sprint(t.limits.visits)}
	case t.transitions >= t.limits.transitions:
		return &LimitError{"maxTransitions", fmt.Sprint(t.limits.transitions)}
	}
	t.visits++
	t.transitions += 2
	return nil
}
