package agent

import (
	"slices"

	"crewhost/crew"
	"crewhost/tools"
)

// Apart returns the names of the tools of the host that a toolset brings only by name,
// sorted: asking a person is no tool like others, what servers let be read is not the
// host's own, and memory and documents are what the crew says of them.
func Apart() []string {
	return []string{humanInput, "mcp_list_resources", "mcp_read_resource", "memory_store", "rag_search", "semantic_search"}
}

// OfferOf is a tool as toolsets choose it.
func OfferOf(d tools.Definition) crew.Offer {
	return crew.Offer{Tool: d.ServerName(), Apart: d.Server == "" && slices.Contains(Apart(), d.Name)}
}

// Held returns the registered names of the tools that an agent has for a task, sorted:
// those that it and the task name, be they there or not, and what the agent's toolsets
// bring of defs. What a toolset switches off is not among them, whoever names it
// besides. The task may be nil.
func Held(a *crew.Agent, t *crew.Task, defs []tools.Definition) []string {
	named := a.Tools
	if t != nil {
		named = slices.Concat(a.Tools, t.Tools)
	}
	var names []string
	for _, n := range named {
		names = append(names, n.V)
	}
	for _, set := range a.Toolsets {
		for _, d := range defs {
			if d.Server != set.Server.V {
				continue
			}
			if offer := OfferOf(d); set.Has(offer) {
				names = append(names, d.Name)
			} else if !offer.Apart || set.Names(offer.Tool) {
				names = slices.DeleteFunc(names, func(name string) bool { return name == d.Name })
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
