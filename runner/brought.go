package runner

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"crewhost/config"
	"crewhost/config/secret"
	"crewhost/config/strict"
	"crewhost/crew"
	"crewhost/mcp"
	"crewhost/runner/agent"
	"crewhost/tools"
)

// Agents may bring MCP servers along (A1). A host connects those of the crews that
// it is opened for in one step with the servers of its settings. For all of a host
// one name is one server: the same declaration by two agents is one connection; of
// different ones the first is connected, and a crew that means another is refused
// when it is judged.

// CodeServer is the code of an issue about a server that an agent brings along.
const CodeServer = crew.CodeServer

// brought are the servers that agents bring along, by name.
type brought map[string]crew.Server

// names returns the names, sorted.
func (b brought) names() []string { return slices.Sorted(maps.Keys(b)) }

// joined returns the settings with the servers of the crews' agents after those of
// their own. A name that the settings have is theirs.
func joined(settings *config.Settings, crews []*crew.Crew) (*config.Settings, brought) {
	taken := map[string]bool{}
	for _, s := range settings.MCP.Servers {
		taken[s.Name] = true
	}
	all, place, own := slices.Clip(settings.MCP.Servers), map[string]int{}, brought{}
	for _, c := range crews {
		for _, a := range c.Agents {
			for _, s := range a.Servers {
				name := s.Name.V
				before, there := own[name]
				switch {
				case taken[name], there && !before.Same(s):
				case there:
					if at := &all[place[name]]; !slices.Contains(at.Agents, a.Key) {
						at.Agents = append(at.Agents, a.Key)
					}
				default:
					own[name], place[name] = s, len(all)
					all = append(all, serverOf(a.Key, s))
				}
			}
		}
	}
	with := *settings
	with.MCP.Servers = all
	return &with, own
}

// serverOf is a server of an agent as the settings would have it.
func serverOf(key string, s crew.Server) config.Server {
	text := func(t crew.Text) secret.Text { return secret.NewText(t.V, t.V) }
	to := config.Server{Name: s.Name.V, Agents: []string{key}, Pos: s.Name.Pos}
	switch s.Kind {
	case crew.ServerStdio:
		to.Transport, to.Command = config.TransportStdio, text(s.Command)
		for _, a := range s.Args {
			to.Args = append(to.Args, text(a))
		}
		for _, v := range s.Env {
			to.Env = append(to.Env, config.Variable{Name: v.Name, Value: text(v.Value)})
		}
	case crew.ServerHTTP:
		to.Transport, to.URL = config.TransportHTTP, text(s.URL)
	case crew.ServerSSE:
		to.Transport, to.URL = config.TransportSSE, text(s.URL)
	default:
		to.Transport, to.URL = config.TransportAuto, text(s.URL)
	}
	return to.Hidden()
}

// unknown says why a server that an agent brings along is not the one that this host
// has under its name; "" where it is.
func (h *Host) unknown(s crew.Server) string {
	own, there := h.brought[s.Name.V]
	switch {
	case !h.cfg.Settings.MCP.Enabled:
		return "the settings switch MCP off (mcp.enabled)"
	case slices.ContainsFunc(h.cfg.Settings.MCP.Servers, func(of config.Server) bool { return of.Name == s.Name.V }):
		return "the settings have an MCP server of that name; give it another"
	case !there:
		return "this host was not opened for the crew"
	case !own.Same(s):
		return fmt.Sprintf("another crew of this host declares another server of that name (%s)", own.Name.Pos)
	}
	return ""
}

// unopened refuses a crew whose agents bring servers along that this host was not
// opened for. One that could not be connected, or is lost, is another matter: its
// calls say so.
func (h *Host) unopened(c *crew.Crew) error {
	var issues strict.Issues
	for _, a := range c.Agents {
		for _, s := range a.Servers {
			if why := h.unknown(s); why != "" {
				issues = append(issues, strict.Issue{
					Pos: s.Name.Pos, Code: CodeServer, Message: fmt.Sprintf("agents.%s.mcpServers: %s: %s", a.Key, strict.Quote(s.Name.V), why),
				})
			}
		}
	}
	issues.Sort()
	return issues.Err()
}

// Offers implements [crew.Catalog].
func (c catalog) Offers(server *crew.Server) (offers []crew.Offer, why string) {
	of := ""
	if server != nil {
		of = server.Name.V
		if why := c.host.unknown(*server); why != "" {
			return nil, why
		}
		for _, r := range c.servers {
			if r.Name == of && r.State != mcp.StateConnected && r.Err != nil {
				return nil, "it could not be connected: " + reasonOf(r.Err)
			}
		}
	}
	for _, d := range c.defs {
		if d.Server == of {
			offers = append(offers, agent.OfferOf(d))
		}
	}
	return offers, ""
}

// reasonOf is why a server failed, for a line that names the server already.
func reasonOf(err error) string {
	var e *tools.Error
	if errors.As(err, &e) {
		return fmt.Sprintf("%s (%s)", e.Detail, e.Code)
	}
	return err.Error()
}

// held are the registered names of the tools that agents and tasks of a crew have,
// sorted, each once.
func (h *Host) held(c *crew.Crew) []string {
	var names []string
	for _, a := range c.Agents {
		names = append(names, agent.Held(a, nil, h.Tools())...)
	}
	for _, t := range c.Tasks {
		for _, n := range t.Tools {
			names = append(names, n.V)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// unarmed is a copy of a crew whose agents bring nothing along.
func unarmed(c *crew.Crew) *crew.Crew {
	bare := *c
	bare.Agents = make([]*crew.Agent, len(c.Agents))
	for i, a := range c.Agents {
		agent := *a
		agent.Servers, agent.Toolsets = nil, nil
		bare.Agents[i] = &agent
	}
	return &bare
}

// isOfAgents reports whether a tool is of a server that agents brought along.
func (h *Host) isOfAgents(d tools.Definition) bool {
	_, is := h.brought[d.Server]
	return is && d.Server != ""
}
