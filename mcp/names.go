package mcp

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"crewhost/tools"
)

// agentToolName is the registered name of a tool of a server that agents bring along
// (A9). Plain names are for the servers of the settings.
func agentToolName(server, tool string) string { return "mcp__" + server + "__" + tool }

// names are the names that servers hold in the registry. A server that has held a
// name keeps it until all are closed, also while it offers no such tool or is
// gone: what a crew was judged to use never turns into a tool of somebody else in
// the middle of a run (O12). A name that is new while servers run is given to
// whoever offers it first. A server that goes through ever more names loses those
// that it doesn't offer.
type names struct {
	registry *tools.Registry

	mu     sync.Mutex
	owners map[string]*session
	owned  map[*session]int      // how many of them
	held   map[*session][]string // what is registered now
	closed bool
}

func newNames(reg *tools.Registry) *names {
	return &names{registry: reg, owners: make(map[string]*session), owned: make(map[*session]int), held: make(map[*session][]string)}
}

// publish replaces, in one step, what a server has in the registry with the tools
// of a new list. It returns what it holds now, and what it can't have.
func (n *names) publish(s *session, defs []tools.Definition) (held []tools.Definition, skipped []Skip) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil, nil
	}
	var free []tools.Tool
	for _, def := range defs {
		if owner := n.owners[def.Name]; owner != nil && owner != s {
			skipped = append(skipped, Skip{
				Server: s.server.Name, Tool: def.Name, Reason: ReasonCollision, Holder: fmt.Sprintf("server %q", owner.server.Name),
			})
			continue
		}
		free = append(free, &tool{def: def, session: s})
	}
	var names []string
	for i, err := range n.registry.Replace(n.held[s], free) {
		def := free[i].Definition()
		switch {
		case err == nil:
			held = append(held, def)
			names = append(names, def.Name)
			if n.owners[def.Name] == nil {
				n.owners[def.Name] = s
				n.owned[s]++
			}
		case errors.Is(err, tools.ErrDuplicate):
			skipped = append(skipped, Skip{Server: s.server.Name, Tool: def.Name, Reason: ReasonCollision, Holder: n.holder(def.Name)})
		default:
			skipped = append(skipped, Skip{Server: s.server.Name, Tool: def.Name, Reason: ReasonMalformed})
		}
	}
	n.held[s] = names
	if n.owned[s] > maxOwned+len(names) {
		n.disown(s)
	}
	slices.SortFunc(skipped, func(a, b Skip) int { return strings.Compare(a.Tool, b.Tool) })
	return held, skipped
}

// maxOwned is how many names a server keeps that it doesn't offer.
const maxOwned = 10_000

// disown frees the names of a server that are not registered now. The caller
// holds mu.
func (n *names) disown(s *session) {
	for name, owner := range n.owners {
		if owner == s {
			delete(n.owners, name)
		}
	}
	for _, name := range n.held[s] {
		n.owners[name] = s
	}
	n.owned[s] = len(n.held[s])
}

// holder says who holds a name.
func (n *names) holder(name string) string {
	t, ok := n.registry.Lookup(name)
	if !ok {
		return "another tool"
	}
	if server := t.Definition().Server; server != "" {
		return fmt.Sprintf("server %q", server)
	}
	return "a built-in tool"
}

// close unregisters the tools of all servers (O1); nothing is registered after it.
func (n *names) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed = true
	for _, names := range n.held {
		n.registry.Replace(names, nil)
	}
	clear(n.held)
}
