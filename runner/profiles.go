package runner

import (
	"slices"

	"crewhost/crew"
)

// profilesOf returns the profiles that a run of the crew is sure, or free, to use,
// sorted; the default one, "", only where some request has no other. Which agents
// do a task, and who is asked besides, is the process's business.
func profilesOf(c *crew.Crew) []string {
	p := profiles{crew: c}
	manager := c.Agent(c.ManagerAgent.V)
	var workers []*crew.Agent
	for _, a := range c.Agents {
		if a != manager {
			workers = append(workers, a)
		}
	}
	all := c.Process == crew.Hierarchical || c.Process == crew.Consensual || c.Process == crew.Autonomous
	for _, t := range c.Tasks {
		if a := c.Agent(t.Agent.V); a != nil && !all {
			p.add(t.LLM, a.LLM)
			continue
		}
		for _, a := range workers {
			p.add(t.LLM, a.LLM)
		}
	}
	switch c.Process {
	case crew.Consensual: // who votes, and who decides
		for _, a := range workers {
			p.add(a.LLM)
		}
	case crew.Autonomous: // the planner and its specialists
		p.add()
	}
	if manager != nil {
		p.add(manager.LLM)
	}
	slices.Sort(p.ids)
	return slices.Compact(p.ids)
}

type profiles struct {
	crew *crew.Crew
	ids  []string
}

// add adds the profile of a request with these overrides, the narrowest first.
func (p *profiles) add(overrides ...*crew.LLM) {
	id := ""
	for _, l := range append(overrides, p.crew.LLM) {
		if id == "" && l != nil {
			id = l.Profile.V
		}
	}
	p.ids = append(p.ids, id)
}
