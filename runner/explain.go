package runner

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"crewhost/config/strict"
	"crewhost/crew"
	"crewhost/runner/agent"
	"crewhost/tools"
	"crewhost/tools/permission"
)

// Explanation says what the policy says to calls of one tool by one agent.
type Explanation struct {
	Agent string // its key; empty: a call that is no agent's, as of mcp call and of clients
	Tool  string // the registered name
	// Server is the MCP server that the calls concern, or empty, and ServerTool the
	// tool's name there.
	Server, ServerTool string
	// Outlook is about calls with whatever arguments.
	permission.Outlook
	// Call is about the call that was asked about, with its arguments; nil: about none.
	Call *permission.Decision
	// Held says that the agent has the tool, or that no agent was named.
	Held bool
	// There says that the tool is there; of another one the policy knows by its name
	// alone.
	There bool
	// Approved says that calls which meet no condition were allowed always.
	Approved bool
}

// ExplainError says what can't be explained.
type ExplainError struct{ Text string }

// Error says it.
func (e *ExplainError) Error() string { return e.Text }

// Headless is the answer to calls that the policy asks about where nobody can be asked.
func (h *Host) Headless() permission.Verdict { return h.policy.Headless() }

// Explain says what the policy says to a call of a tool, by an agent of the crew, or
// by nobody's; the crew may be nil then. Empty arguments are none in particular.
// Nothing is called, and nobody asked. The error is an [*ExplainError].
func (h *Host) Explain(c *crew.Crew, key, tool string, arguments json.RawMessage) (Explanation, error) {
	guard, err := h.explaining(c, key)
	if err != nil {
		return Explanation{}, err
	}
	held := []string{tool}
	if key != "" {
		held = h.holds(c, c.Agent(key))
	}
	e, err := h.explain(guard, key, tool, held)
	if err != nil || len(arguments) == 0 {
		return e, err
	}
	call := tools.Call{Name: tool, Agent: key, Arguments: arguments}
	if !e.There {
		var object map[string]json.RawMessage
		if err := json.Unmarshal(arguments, &object); err != nil {
			return e, &ExplainError{"the arguments are not a JSON object"}
		}
		d := guard.Policy().Decide(permission.Request{Tool: tool, Server: e.Server, ServerTool: e.ServerTool, Agent: key, Arguments: arguments})
		e.Call = &d
		return e, nil
	}
	r, d, err := guard.Explain(call)
	if err != nil {
		return e, &ExplainError{err.Error()}
	}
	e.Call, e.Server, e.ServerTool = &d, r.Server, r.ServerTool
	return e, nil
}

// Matrix says it of every tool that an agent of the crew has, by agent in the order of
// the crew and then by name: of one agent, or with "" of all. Without a crew it is
// about every tool, called by no agent. The error is an [*ExplainError].
func (h *Host) Matrix(c *crew.Crew, key string) ([]Explanation, error) {
	guard, err := h.explaining(c, key)
	if err != nil {
		return nil, err
	}
	var all []Explanation
	add := func(key string, names []string) error {
		for _, name := range names {
			e, err := h.explain(guard, key, name, names)
			if err != nil {
				return err
			}
			all = append(all, e)
		}
		return nil
	}
	if c == nil {
		return all, add("", h.registry.Names())
	}
	var errs error
	for _, a := range c.Agents {
		if key == "" || a.Key == key {
			if err := add(a.Key, h.holds(c, a)); err != nil {
				errs = err
			}
		}
	}
	return all, errs
}

// explaining is the guard to explain.
func (h *Host) explaining(c *crew.Crew, key string) (*permission.Guard, error) {
	switch {
	case c == nil && key != "":
		return nil, &ExplainError{fmt.Sprintf("agent %q is of no crew that was named", key)}
	case c == nil:
		return h.guard, nil
	}
	if key != "" && c.Agent(key) == nil {
		var keys []string
		for _, a := range c.Agents {
			keys = append(keys, a.Key)
		}
		return nil, &ExplainError{fmt.Sprintf("the crew has no agent %q%s", key, hintOf(strict.DidYouMean(key, keys)))}
	}
	guard, err := h.guardFor(c)
	if err != nil {
		return nil, &ExplainError{err.Error()}
	}
	return guard, nil
}

// holds are the tools that an agent may come to have, those by which it puts work to
// others included, and of a server that is not there those that a toolset names; * is
// all others of it.
func (h *Host) holds(c *crew.Crew, a *crew.Agent) []string {
	names := h.heldBy(c, a)
	for _, set := range a.Toolsets {
		server := set.Server.V
		if server == "" || slices.ContainsFunc(h.Tools(), func(d tools.Definition) bool { return d.Server == server }) {
			continue
		}
		for _, entry := range set.Tools {
			names = append(names, crew.ToolName(server, entry.Tool.V))
		}
		names = append(names, crew.ToolName(server, "*"))
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if a.AllowDelegation && len(c.Agents) > 1 {
		names = append([]string{agent.AskCoworker, agent.DelegateWork}, names...)
	}
	return names
}

func (h *Host) explain(guard *permission.Guard, key, tool string, held []string) (Explanation, error) {
	e := Explanation{Agent: key, Tool: tool}
	for _, name := range held {
		e.Held = e.Held || name == tool
	}
	if o, r, ok := guard.Outlook(key, tool); ok {
		e.There, e.Outlook, e.Server, e.ServerTool = true, o, r.Server, r.ServerTool
		e.Approved = guard.Approved(key, tool)
		return e, nil
	}
	r := permission.Request{Tool: tool, Agent: key}
	switch {
	case tool == agent.AskCoworker, tool == agent.DelegateWork:
	case strings.HasPrefix(tool, "mcp__"):
		r.Server, r.ServerTool = h.split(tool)
	default:
		return e, &ExplainError{fmt.Sprintf("there is no tool %q%s", tool, hintOf(nearTool(tool, h.registry.Names())))}
	}
	e.Outlook, e.Server, e.ServerTool = guard.Policy().Outlook(r), r.Server, r.ServerTool
	return e, nil
}

// split tells the server from the tool in a name of the form mcp__<server>__<tool>,
// by the servers that are declared.
func (h *Host) split(name string) (server, tool string) {
	rest := strings.TrimPrefix(name, "mcp__")
	for _, s := range h.everyServer() {
		if t, ok := strings.CutPrefix(rest, s.Name+"__"); ok && len(s.Name) > len(server) {
			server, tool = s.Name, t
		}
	}
	if server == "" {
		server, tool, _ = strings.Cut(rest, "__")
	}
	return server, tool
}

// nearTool names the tool that was meant, also where it was called by the name that a
// server of an agent has for it.
func nearTool(tool string, names []string) string {
	for _, name := range names {
		if strings.HasPrefix(name, "mcp__") && strings.HasSuffix(name, "__"+tool) {
			return fmt.Sprintf("did you mean %q?", name)
		}
	}
	return strict.DidYouMean(tool, names)
}

func hintOf(hint string) string {
	if hint == "" {
		return ""
	}
	return " (" + hint + ")"
}
