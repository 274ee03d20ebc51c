package runner

import (
	"slices"

	"crewhost/crew"
	"crewhost/runner/agent"
)

// ask is a request that a run is sure, or free, to put to a model.
type ask struct {
	task  *crew.Task  // nil: beside the tasks
	agent *crew.Agent // nil: the crew's own request
	// levels are the overrides of the profile, from the widest to the narrowest.
	levels []*crew.LLM
}

// asksOf returns the requests of a run, one for each way in which a model can be
// chosen. Which agents do a task, and who is asked besides, is the process's
// business.
func asksOf(c *crew.Crew) []ask {
	var asks []ask
	add := func(t *crew.Task, a *crew.Agent) {
		levels := []*crew.LLM{c.LLM}
		if a != nil {
			levels = append(levels, a.LLM)
		}
		if t != nil {
			levels = append(levels, t.LLM)
		}
		asks = append(asks, ask{t, a, levels})
	}
	manager := c.Agent(c.ManagerAgent.V)
	var workers, delegating []*crew.Agent
	for _, a := range c.Agents {
		if a != manager {
			workers = append(workers, a)
		}
	}
	all := c.Process == crew.Hierarchical || c.Process == crew.Consensual || c.Process == crew.Autonomous
	for _, t := range c.Tasks {
		doers := workers
		if a := c.Agent(t.Agent.V); a != nil && !all {
			doers = []*crew.Agent{a}
		}
		for _, a := range doers {
			add(t, a)
			if a.AllowDelegation && agent.Delegates(c.Process) {
				delegating = append(delegating, a)
			}
		}
	}
	for _, a := range c.Agents { // whom others put work to
		if slices.ContainsFunc(delegating, func(by *crew.Agent) bool { return by != a }) {
			add(nil, a)
		}
	}
	switch c.Process {
	case crew.Consensual: // who votes, and who decides
		for _, a := range workers {
			add(nil, a)
		}
	case crew.Autonomous: // the planner and its specialists, who delegate
		add(nil, nil)
		for _, a := range workers {
			add(nil, a)
		}
	}
	if c.Planning {
		add(nil, nil)
	}
	if manager != nil {
		add(nil, manager)
	}
	return asks
}

// profilesOf returns the profiles that a run of the crew is sure, or free, to use,
// sorted; the default one, "", only where some request has no other.
func profilesOf(c *crew.Crew) []string {
	var ids []string
	for _, a := range asksOf(c) {
		ids = append(ids, agent.Elect(a.levels...))
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}
