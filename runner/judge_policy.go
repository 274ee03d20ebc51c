package runner

import (
	"fmt"
	"slices"

	"crewhost/crew"
	"crewhost/runner/agent"
	"crewhost/tools/permission"
)

// The codes of warnings about tools that an agent has for nothing.
const (
	CodeUnanswered = "unanswered" // each call would need an answer that nobody can give
	CodeRefused    = "refused"    // the policy denies each call
)

// judgePolicy warns of the tools of agents whose every call will be refused: a run that
// can't come to anything says so before it begins.
func (h *Host) judgePolicy(c *crew.Crew) (issues, warnings crew.Issues) {
	guard, err := h.guardFor(c)
	if err != nil {
		return crew.Issues{{Code: CodeBadRule, Message: err.Error()}}, nil
	}
	for _, a := range c.Agents {
		var unanswered, refused []string
		for _, name := range h.heldBy(c, a) {
			switch {
			case guard.Unanswered(a.Key, name):
				unanswered = append(unanswered, name)
			case guard.Prospect(a.Key, name) == permission.Deny:
				refused = append(refused, name)
			}
		}
		if len(unanswered) > 0 {
			warnings = append(warnings, crew.Issue{
				Pos: a.Pos, Code: CodeUnanswered,
				Message: fmt.Sprintf("agent %q: the policy asks about each call of %s, and nobody can be asked here: all of them will be refused", a.Key, join(unanswered)),
				Hint:    "write a rule that allows them, pass --approve allow, or set permissions.headless: allow",
			})
		}
		if len(refused) > 0 {
			warnings = append(warnings, crew.Issue{
				Pos: a.Pos, Code: CodeRefused,
				Message: fmt.Sprintf("agent %q: the policy denies each call of %s", a.Key, join(refused)),
				Hint:    "crewhost policy explain says by which rule",
			})
		}
	}
	return nil, warnings
}

// heldBy returns the names of the registered tools that an agent may come to have in
// some task, sorted: those of tasks that no agent is named for are anybody's.
func (h *Host) heldBy(c *crew.Crew, a *crew.Agent) []string {
	defs := h.Tools()
	names := agent.Held(a, nil, defs)
	for _, t := range c.Tasks {
		if t.Agent.V == a.Key || t.Agent.V == "" {
			names = append(names, agent.Held(a, t, defs)...)
			if t.HumanInput {
				names = append(names, humanInput)
			}
		}
	}
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(name string) bool {
		_, there := h.registry.Lookup(name)
		return !there
	})
}
