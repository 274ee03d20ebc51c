package runner

import (
	"crewhost/crew"
	"crewhost/tools/permission"
)

// toolsetsOf are the toolsets of a crew's agents as the policy takes them: what an
// entry leaves open is as its toolset's default says (A3).
func toolsetsOf(c *crew.Crew) []permission.Toolset {
	if c == nil {
		return nil
	}
	var sets []permission.Toolset
	for _, a := range c.Agents {
		for _, t := range a.Toolsets {
			set := permission.Toolset{
				Agent: a.Key, Server: t.Server.V, Place: t.Pos.String(),
				Default: toolRule(t.Default),
			}
			for _, entry := range t.Tools {
				set.Tools = append(set.Tools, toolRule(t.Filled(entry)))
			}
			sets = append(sets, set)
		}
	}
	return sets
}

func toolRule(entry crew.ToolsetEntry) permission.ToolRule {
	rule := permission.ToolRule{Tool: entry.Tool.V}
	if entry.Pos.File != "" {
		rule.Place = entry.Pos.String()
	}
	rule.Disabled = entry.Enabled != nil && !*entry.Enabled
	switch entry.Policy.V {
	case crew.AlwaysAsk:
		rule.Verdict = permission.Ask
	case crew.AlwaysAllow:
		rule.Verdict = permission.Allow
	}
	return rule
}
