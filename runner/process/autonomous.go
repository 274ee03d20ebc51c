package process

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"crewhost/crew"
)

// autonomous has a planner, who speaks for the crew on the crew's own model, say
// before each step which agent takes it: one of the crew, or a specialist that it
// makes up for the purpose and who stays for the rest of the run. A task that fails
// is handed on to somebody else, who is told how it failed, if who failed may
// delegate.
//
// All of it keeps within the crew's budget. Once that has no more tool calls,
// tokens or time, the run ends; what was finished stays.
func autonomous(ctx context.Context, r *run) error {
	m := &meter{limit: r.allowed()}
	if err := m.Spent(r.drawn); err != nil {
		return err
	}
	r.budget = m
	p := &planner{run: r, agent: plannerOf(r.plan.Crew), pool: slices.Clone(r.plan.Crew.Agents), meter: m}
	r.inLine()
	for _, s := range r.slots {
		s.result.Agent = "" // nobody's, till somebody is chosen
	}
	return r.stopped(ctx, r.each(ctx, 1, p.see))
}

// allowed is the budget of an autonomous crew.
func (r *run) allowed() crew.Budget {
	if r.plan.Crew.Autonomous != nil {
		return r.plan.Crew.Autonomous.Budget
	}
	return crew.DefaultBudget()
}

// wallTime begins the time that an autonomous crew has, in which it is also planned
// ahead. Other crews have no such bound.
func (r *run) wallTime(ctx context.Context) (context.Context, context.CancelFunc) {
	if r.plan.Crew.Process != crew.Autonomous {
		return ctx, func() {}
	}
	limit := r.allowed().WallTime
	return context.WithTimeoutCause(ctx, limit, &BudgetError{axisWallTime, limit.String()})
}

// planner hands out the tasks of an autonomous crew.
type planner struct {
	run   *run
	agent *crew.Agent   // who is asked
	pool  []*crew.Agent // who may be given a task: the crew's agents, then the specialists
	meter *meter
}

// plannerOf is the agent that plans for a crew: none of its members, with the
// crew's goal and the crew's model.
func plannerOf(c *crew.Crew) *crew.Agent {
	return &crew.Agent{
		Key:  free(c.Agents, "planner"),
		Role: crew.Text{V: "the planner of the crew " + oneLine(c.Name.V), Set: true},
		Goal: crew.Text{V: "Have each task done by who can do it best, within the budget.", Set: true},
	}
}

// free is a key like name that no agent has.
func free(agents []*crew.Agent, name string) string {
	for key, n := name, 2; ; key, n = fmt.Sprintf("%s_%d", name, n), n+1 {
		if !slices.ContainsFunc(agents, func(a *crew.Agent) bool { return a.Key == key }) {
			return key
		}
	}
}

// failedTry is one try of a task that came to nothing.
type failedTry struct {
	agent *crew.Agent
	err   error
	left  string // what it had till then
}

// see brings a task to its end. Its error ends the run.
func (p *planner) see(ctx context.Context, s *slot) error {
	var tries []failedTry
	for {
		agent, err := p.assign(ctx, s, tries)
		if err != nil {
			s.begin(ctx, nil)
			return ends(s.end(ctx, Answer{}, err))
		}
		var stays error
		s.budget = deeper{p.meter, len(tries)}
		again, err := s.try(ctx, attempt{by: agent, sections: handedOn(tries), again: func(err error) bool {
			tries = append(tries, failedTry{agent, err, s.result.Text})
			stays = p.stays(s, tries)
			return stays == nil
		}})
		if stays != nil && !errors.Is(err, stays) {
			s.result.Err = fmt.Errorf("%w; it is not handed on: %w", err, stays)
		}
		if !again {
			return ends(err)
		}
	}
}

// ends returns err if it ends the run with its task, or nil.
func ends(err error) error {
	var budget *BudgetError
	if errors.As(err, &budget) && budget.shared() {
		return budget
	}
	return nil
}

// stays is why a task is not handed on after its last try, or nil.
func (p *planner) stays(s *slot, tries []failedTry) error {
	last := tries[len(tries)-1]
	var budget *BudgetError
	switch {
	case errors.As(last.err, &budget), s.work.fault != nil: // which nobody else can mend
		return last.err
	case !last.agent.AllowDelegation:
		return fmt.Errorf("agent %q does not delegate (allowDelegation)", last.agent.Key)
	case len(p.untried(tries)) == 0 && p.meter.maySpawn() != nil:
		return errors.New("nobody is left who has not tried it, and no specialist")
	}
	return p.meter.Delegate(len(tries))
}

// handedOn is what an agent is told of the tries before its own.
func handedOn(tries []failedTry) []Section {
	if len(tries) == 0 {
		return nil
	}
	var b strings.Builder
	for i, t := range tries {
		if i > 0 {
			b.WriteString("\n\n")
		}
		fmt.Fprintf(&b, "%s tried and failed: %s", t.agent.Key, shorten(oneLine(t.err.Error()), maxFailure))
		if strings.TrimSpace(t.left) != "" {
			fmt.Fprintf(&b, "\n\nThis is as far as it came:\n\n%s", quote(shorten(t.left, maxLeft)))
		}
	}
	b.WriteString("\n\nThe task is yours now. Do it whole, and avoid what led to that.")
	return []Section{{Title: "Earlier tries at this task", Text: b.String()}}
}

// What others are told of a failed try, in characters.
const (
	maxFailure = 1_000
	maxLeft    = 4_000
)

// untried are those of the pool that have not failed at a task yet.
func (p *planner) untried(tries []failedTry) []*crew.Agent {
	return slices.DeleteFunc(slices.Clone(p.pool), func(a *crew.Agent) bool {
		return slices.ContainsFunc(tries, func(t failedTry) bool { return t.agent == a })
	})
}
