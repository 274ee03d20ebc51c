package gateway

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"crewhost/config"
	"crewhost/config/secret"
	"crewhost/mcp/admission"
)

// Config is what a [Gateway] is made of. The zero value admits what is admitted
// anyway, has no credentials and tells nobody.
type Config struct {
	// Network is what may be reached, and how.
	Network admission.Config
	// Allowed, if set, says whether a server may be called, beside what is admitted
	// (mcp.allowed_hosts).
	Allowed func(*url.URL) bool
	// Keys are the credentials; nil is none. Who made them closes them, after the
	// gateway.
	Keys *Keys
	// Audit, if set, is told of each request once its answer was read to its end, was
	// given up, or did not come. The context has the values of the request's. It must
	// not block.
	Audit func(context.Context, Forward)
	// Logger takes what agents are not told, such as where a server is. Nil discards.
	Logger *slog.Logger
	// Now is the time, by which passes expire; nil is the clock's.
	Now func() time.Time
}

// A Forward is a request that the gateway was asked to forward, and what became of it.
type Forward struct {
	At     time.Time
	Run    string   // that entered the server; empty for one of the settings
	Agents []string // that bring the server along; nil for one of the settings
	Server string
	Tool   string // of the host's own that asked for it; Server is empty then
	Origin string // scheme, host and port of where it went, or would have gone
	Method string
	Status int   // of the answer, or zero
	Sent   int64 // bytes of the body, or -1
	// Received are bytes of the answer's body, unpacked.
	Received int64
	// Credential is the name of the one that the vault had for it, and Kind its kind;
	// empty where there was none.
	Credential, Kind string
	Took             time.Duration
	Err              error // why there is no answer, or not all of it
}

// Network is the network as the settings describe it.
func Network(settings config.Gateway) (admission.Config, error) {
	rules, err := admission.Allow(settings.Allow...)
	if err != nil {
		return admission.Config{}, fmt.Errorf("mcp.gateway.allow: %w", err)
	}
	rules.Loopback = settings.Loopback
	network := admission.Config{Rules: rules}
	if !settings.Proxy.IsZero() {
		if network.Proxy, err = url.Parse(settings.Proxy.Reveal()); err != nil {
			return admission.Config{}, errors.New("mcp.gateway.proxy is not a URL")
		}
	}
	return network, nil
}

// A Gateway forwards requests to servers. It is safe for concurrent use. Create it
// with [New].
type Gateway struct {
	cfg    Config
	passes passes

	mu      sync.Mutex
	closed  bool
	entered map[place]*line
	errands []*errand
}

// place is where the gateway has a server of an agent.
type place struct{ run, server string }

// New makes a gateway. Nothing is sent yet.
func New(cfg Config) (*Gateway, error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	g := &Gateway{cfg: cfg, entered: make(map[place]*line)}
	if _, err := rand.Read(g.passes.key[:]); err != nil {
		return nil, fmt.Errorf("making the key of the gateway: %w", err)
	}
	return g, nil
}

// A Route is where requests for one server go.
type Route struct {
	// Server carries those to the server itself.
	Server http.RoundTripper
	// OAuth carries those to OAuth endpoints that the server leads to. Nil: credentials
	// are the gateway's business.
	OAuth http.RoundTripper
	// Rules are what the operator allows beyond what is admitted anyway.
	Rules admission.Rules
}

// Enter takes over a server of an agent that is called over HTTP, for a run: what it
// returns has an address of the gateway in place of the URL, and no header. Others are
// returned as they are.
func (g *Gateway) Enter(run string, server config.Server) config.Server {
	if len(server.Agents) == 0 || !server.Transport.Remote() {
		return server
	}
	l := g.line(server, admission.Public)
	l.run, l.agents = run, slices.Clone(server.Agents)
	g.mu.Lock()
	g.entered[place{run, server.Name}] = l
	g.mu.Unlock()
	server.URL, server.Headers, server.OAuth = secret.Literal(address(run, server.Name)), nil, nil
	return server
}

// Route returns what carries the requests for a server: one of the settings, or one
// that was entered.
func (g *Gateway) Route(server config.Server) Route {
	if len(server.Agents) > 0 {
		return Route{Server: g.door(server)}
	}
	l := g.line(server, admission.Loopback)
	return Route{Server: l, OAuth: l.led, Rules: g.cfg.Network.Rules}
}

// Leave forgets what a run has entered, whose passes are good for nothing from then
// on.
func (g *Gateway) Leave(run string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for at, l := range g.entered {
		if at.run == run {
			l.CloseIdleConnections()
			delete(g.entered, at)
		}
	}
}

// Close has the gateway forward nothing more for agents, and lets go of the connections
// of tools. It may be called again.
func (g *Gateway) Close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	for at, l := range g.entered {
		l.CloseIdleConnections()
		delete(g.entered, at)
	}
	for _, e := range g.errands {
		e.CloseIdleConnections()
	}
}

// at returns the server that was entered at a place.
func (g *Gateway) at(p place) (*line, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	l, ok := g.entered[p]
	return l, ok && !g.closed
}
