package mcp_test

import (
	"regexp"
	"testing"

	"crewhost/config"
	"crewhost/mcp"
	"crewhost/mcp/admission"
	"crewhost/mcp/gateway"
	"crewhost/tools"
)

// A way is how a server is reached: directly, or through the gateway, as a server of
// the settings or of an agent.
type way string

const (
	direct      way = "direct"
	forSettings way = "settings"
	forAgents   way = "agents"
)

// route has the servers of cfg be reached that way, and returns the name that a tool of
// theirs has then.
func (by way) route(cfg *config.MCP, opts *mcp.Options, tool string) (name string, end func()) {
	if by == direct {
		return tool, func() {}
	}
	g, err := gateway.New(gateway.Config{Network: admission.Config{Rules: admission.Rules{Loopback: true}}})
	if err != nil {
		panic(err)
	}
	opts.Route = func(s config.Server) mcp.Route { return mcp.Route(g.Route(s)) }
	if by == forSettings {
		return tool, g.Close
	}
	for i, s := range cfg.Servers {
		if s.Transport.Remote() {
			s.Agents = []string{"scribe"}
			cfg.Servers[i] = g.Enter("run", s)
			if tool != "" {
				tool = "mcp__" + s.Name + "__" + tool
			}
		}
	}
	return tool, g.Close
}

// Each case of servers over HTTP, with the gateway in between (K39, K41, K43, K45, K47,
// W4). For agents some lines say less: not where the server is.
func TestFaultsThroughGateway(t *testing.T) {
	cited := regexp.MustCompile(`K39|K41|K43|K45|K47|W4`)
	less := map[string]fault{
		"nobody listens":                                {code: tools.CodeTransportFailed, says: `it refuses connections`},
		"is plain HTTP to another host":                 {code: tools.CodeTransportFailed, says: `https is required`},
		"has a certificate that nobody signed":          {code: tools.CodeTransportFailed, says: `its certificate is not valid`},
		"redirects to another origin":                   {code: tools.CodeTransportFailed, says: `redirects to another origin, where no header or message is sent`},
		"breaks the connection in the middle of a body": {code: tools.CodeTransportFailed, says: `the connection to it broke`},
	}
	var rows, ofAgents []fault
	for _, f := range faults {
		if !cited.MatchString(f.cites) || f.long {
			continue
		}
		rows = append(rows, f)
		if l, ok := less[f.does]; ok {
			f.code, f.says = l.code, l.says
			delete(less, f.does)
		}
		ofAgents = append(ofAgents, f)
	}
	if len(rows) < 15 || len(less) > 0 {
		t.Fatalf("%d rows; no such rows: %v", len(rows), less)
	}
	t.Run(string(forSettings), func(t *testing.T) { judged(t, rows, forSettings) })
	t.Run(string(forAgents), func(t *testing.T) { judged(t, ofAgents, forAgents) })
}

// The transport of 2024-11-05 through the gateway: the address for messages is the
// gateway's for agents, whether it was asked for or found out; sessions that were
// forgotten are begun anew (K41).
func TestTransportsThroughGateway(t *testing.T) {
	for _, by := range []way{forSettings, forAgents} {
		for name, serve := range map[string]func(*testing.T) config.Server{
			"sse": func(t *testing.T) config.Server { return sse("a", new(older).serve(t)) },
			"auto": func(t *testing.T) config.Server {
				s := sse("a", new(older).serve(t))
				s.Transport = config.TransportAuto
				return s
			},
			"a URL for messages":  func(t *testing.T) config.Server { return sse("a", (&older{address: "%s/messages"}).serve(t)) },
			"a forgotten session": func(t *testing.T) config.Server { return remote("a", new(amnesiac).serve(t)) },
		} {
			t.Run(string(by)+" "+name, func(t *testing.T) {
				cfg, opts := settings(serve(t)), mcp.Options{}
				tool, end := by.route(&cfg, &opts, "note")
				defer end()
				r := startWith(t, cfg, opts).connected()
				for range 2 {
					if got := text(r.call(tool, "")); got != "noted" {
						t.Error(got)
					}
				}
				if err := r.Close(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}
