package runner

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"crewhost/config"
	"crewhost/config/secret"
	"crewhost/config/vault"
	"crewhost/mcp"
	"crewhost/mcp/admission"
	"crewhost/mcp/gateway"
	"crewhost/tools"
	"crewhost/tools/audit"
)

// All that a host asks of MCP servers over HTTP goes through one gateway, with the
// credentials of the vault, and on record where calls are.

// gate is the gateway of a host.
type gate struct {
	*gateway.Gateway
	vault *vault.Vault
	keys  *gateway.Keys
	run   string // by which the servers of agents are entered
}

// openGate makes the gateway that the settings describe. Nothing is sent, and the vault
// is not read.
func openGate(cfg Config, t *trail) (*gate, error) {
	g := &gate{run: rand.Text()}
	network, err := gateway.Network(cfg.Settings.MCP.Gateway)
	if err != nil {
		return nil, err
	}
	g.vault = OpenVault(cfg.Settings.Vault, cfg.Environ, cfg.Redactor)
	g.keys = gateway.NewKeys(g.vault, cfg.Redactor, func(line string) {
		cfg.Logger.Warn(line)
	})
	g.Gateway, err = gateway.New(gateway.Config{
		Network: network, Allowed: cfg.Settings.MCP.Allows, Keys: g.keys, Logger: cfg.Logger,
		Audit: func(ctx context.Context, f gateway.Forward) { _ = t.put(ctx, forwarded(ctx, f)) }, // which ends the run, if it must
	})
	return g, err
}

// entered returns the settings with the servers of agents as their side of the gateway
// knows them. Their URLs are nobody's business from here on.
func (g *gate) entered(settings config.MCP, redactor *secret.Redactor) config.MCP {
	settings.Servers = slices.Clone(settings.Servers)
	for i, s := range settings.Servers {
		if len(s.Agents) > 0 && s.Transport.Remote() {
			redactor.Add(s.URL.Secrets()...)
			redactor.Add(secret.New(s.URL.Reveal()))
		}
		settings.Servers[i] = g.Enter(g.run, s)
	}
	return settings
}

// route is the way to a server.
func (g *gate) route(s config.Server) mcp.Route { return mcp.Route(g.Route(s)) }

// close ends the gateway, after the servers.
func (g *gate) close() {
	if g == nil {
		return
	}
	g.Close()
	g.keys.Close(renewalGrace)
}

// forwarded is a request on record, with the call of a tool of the host's own that it is
// made for.
func forwarded(ctx context.Context, f gateway.Forward) audit.Record {
	r := audit.Record{
		Kind: audit.Forward, Server: f.Server, Tool: f.Tool, Agent: strings.Join(f.Agents, ", "),
		Request: &audit.Request{Origin: f.Origin, Method: f.Method, Credential: f.Credential, Kind: f.Kind, Status: f.Status},
		Outcome: "answered", Bytes: f.Received, Millis: f.Took.Milliseconds(),
	}
	if call, ok := ctx.Value(callKey{}).(audit.Record); ok && f.Tool != "" {
		r.ID, r.Tool, r.Agent, r.Task = call.ID, call.Tool, call.Agent, call.Task
	}
	switch {
	case errors.As(f.Err, new(*admission.Error)), errors.Is(f.Err, gateway.ErrElsewhere), errors.Is(f.Err, gateway.ErrNotAllowed):
		r.Outcome = "refused"
	case errors.Is(f.Err, context.Canceled), errors.Is(f.Err, context.DeadlineExceeded):
		r.Outcome, r.Code = "stopped", string(tools.CodeCancelled)
	case f.Err != nil:
		r.Outcome, r.Code = "failed", string(tools.CodeTransportFailed)
	}
	return r
}

// LoginRoute is the way to the servers of the settings by which somebody logs in to
// one: that of runs, without what the vault has for it.
func LoginRoute(settings *config.Settings) (func(config.Server) mcp.Route, error) {
	network, err := gateway.Network(settings.MCP.Gateway)
	if err != nil {
		return nil, err
	}
	g, err := gateway.New(gateway.Config{Network: network, Allowed: settings.MCP.Allows})
	if err != nil {
		return nil, err
	}
	return (&gate{Gateway: g}).route, nil
}

// lockOf is the server at a URL as its credential sees it, and the way to it.
func lockOf(settings *config.Settings, target string) (gateway.Lock, *admission.Transport, error) {
	u, err := url.Parse(target)
	if err != nil {
		return gateway.Lock{}, nil, errors.New("its url is not a URL")
	}
	if !settings.MCP.Allows(u) {
		return gateway.Lock{}, nil, fmt.Errorf("its host %s is not one of mcp.allowed_hosts", u.Host)
	}
	network, err := gateway.Network(settings.MCP.Gateway)
	if err != nil {
		return gateway.Lock{}, nil, err
	}
	own := network.Transport(admission.Loopback)
	return gateway.Lock{Name: u.Host, URL: target, Endpoints: own, Rules: network.Rules}, own, nil
}
