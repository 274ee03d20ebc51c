package runner

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"crewhost/config"
	"crewhost/config/strict"
	"crewhost/mcp/server"
	"crewhost/runner/event"
	"crewhost/tools"
	"crewhost/tools/permission"
)

// The codes of issues that the host finds in what is to be served.
const (
	CodeUnknownTool = "unknown-tool" // the settings serve a tool that is not there
	CodeNotServed   = "not-served"   // a tool that makes no sense for a client
	CodeCollision   = "collision"    // two things have one name
)

// ServeConfig says what a host serves, and who is told.
type ServeConfig struct {
	// Served is what clients may use: a surface of the settings, or another one.
	Served config.Served
	// OnEvent is told of the events of served crews' runs, which go on side by
	// side. Nil: nobody is.
	OnEvent event.Sink
}

// Surface is what MCP clients may use of a host: the tools that were named, crews
// as tools, and what servers offer besides. Every call goes through the host's
// policy, as an agent's does; there is no other way to a tool (R3).
//
//	surface, err := host.Surface(ctx, runner.ServeConfig{Served: settings.MCP.Served[0]})
//	err = surface.ServeStdio(ctx, os.Stdin, os.Stdout)
//
// It follows the host: tools of servers that come and go, come and go here.
type Surface struct {
	host     *Host
	cfg      ServeConfig
	selects  *permission.Policy // allows what is served
	registry tools.Registry     // what is served now
	guard    *permission.Guard
	server   *server.Server
	warnings []string

	mu   sync.Mutex
	held []string        // names of the registry that are the host's tools
	lost map[string]bool // tools whose names others have, which the log knows
}

// humanInput is the tool that asks the person at this host: a client has no
// business with it.
const humanInput = "human_input"

// Surface composes what is to be served, and starts nothing. Crews are loaded and
// judged as for a run, and the models that they name are made. The error is
// [strict.Issues] with all that is wrong.
func (h *Host) Surface(ctx context.Context, cfg ServeConfig) (*Surface, error) {
	s := &Surface{host: h, cfg: cfg}
	var issues strict.Issues
	fail := func(pos strict.Pos, code, message, hint string) {
		issues = append(issues, strict.Issue{Pos: pos, Code: code, Message: message, Hint: hint})
	}
	s.selection(fail)
	s.addCrews(ctx, fail)
	config := server.Config{
		Name: first(h.cfg.Settings.MCP.Serving.Name, "crewhost"), Title: cfg.Served.Title,
		Version:      first(h.cfg.Settings.MCP.Serving.Version, h.cfg.Version, "0"),
		Instructions: cfg.Served.Instructions,
		Budgets:      budgetsOf(h.cfg.Settings.MCP.Serving), Logger: h.log,
	}
	if to := h.cfg.Telemetry; to != nil {
		config.Calling, config.Session = to.Served, to.ServedSession
	}
	if len(cfg.Served.Resources) > 0 {
		config.Resources = (&passedResources{host: h, offers: cfg.Served.Resources}).passed()
	}
	if len(cfg.Served.Prompts) > 0 {
		prompts := &passedPrompts{host: h, offers: cfg.Served.Prompts}
		prompts.collisions(ctx, fail)
		config.Prompts = prompts.passed()
	}
	s.idleOffers()
	drift, unknown := h.Drift()
	issues = append(issues, drift...)
	for _, w := range unknown {
		s.warnings = append(s.warnings, w.Error())
	}
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	issues.Sort()
	issues = slices.Compact(issues) // each crew is judged against the lock file
	if err := issues.Err(); err != nil {
		return nil, err
	}
	s.guard = h.guard.Before(&s.registry)
	s.sync()
	config.Guard = s.guard
	var err error
	s.server, err = server.New(config)
	return s, err
}

func first(words ...string) string {
	for _, w := range words {
		if w != "" {
			return w
		}
	}
	return ""
}

// selection compiles the patterns of the tools, and finds those that fit nothing.
// A name that a server may bring which could not be connected is a warning: one
// server's failure does not fail the host (O11).
func (s *Surface) selection(fail func(pos strict.Pos, code, message, hint string)) {
	var rules []permission.Rule
	for _, t := range s.cfg.Served.Tools {
		rule := permission.Rule{Pattern: t.Pattern, Place: t.Pos.String()}
		one, err := permission.New(permission.Config{Default: permission.Deny, Allow: []permission.Rule{rule}})
		switch {
		case err != nil:
			fail(t.Pos, CodeBadRule, err.Error(), "")
			continue
		case conditional(t.Pattern):
			fail(t.Pos, CodeBadRule, fmt.Sprintf("the tool %q: a condition on arguments has no place here", t.Pattern), "write it as a rule of permissions")
			continue
		case t.Pattern == humanInput:
			fail(t.Pos, CodeNotServed, humanInput+" asks the person at this host, and is not served", "a served crew's questions go to the client's person")
			continue
		case ofARun(t.Pattern):
			fail(t.Pos, CodeNotServed, t.Pattern+" is for the agents of a crew that runs, and is not served", "serve a crew whose agents have it")
			continue
		case slices.Contains(harmlessTools(), t.Pattern):
			fail(t.Pos, CodeNotServed, t.Pattern+" touches nothing but an agent's own conversation, and is not served", "leave it out: clients have their own")
			continue
		}
		rules = append(rules, rule)
		defs := slices.DeleteFunc(s.host.Tools(), s.host.isOfAgents)
		if slices.ContainsFunc(defs, func(d tools.Definition) bool { return allows(one, d) }) {
			continue
		}
		missing := s.host.catalog().Missing(t.Pattern)
		switch off := s.host.whyOff(t.Pattern); {
		case off != "":
			s.warn(t.Pos, fmt.Sprintf("the tool %q %s", t.Pattern, off))
		case strings.ContainsAny(t.Pattern, "*?") || strings.HasPrefix(t.Pattern, "mcp__"):
			s.warn(t.Pos, fmt.Sprintf("the pattern %q fits no tool that is there", t.Pattern))
		case missing != "":
			s.warn(t.Pos, fmt.Sprintf("the tool %q is not there: %s", t.Pattern, missing))
		default:
			fail(t.Pos, CodeUnknownTool, fmt.Sprintf("there is no tool %q", t.Pattern), strict.DidYouMean(t.Pattern, names(defs)))
		}
	}
	// What is wrong with a rule has been said.
	s.selects, _ = permission.New(permission.Config{Default: permission.Deny, Allow: rules})
}

// idleOffers warns where a server that is connected has nothing of what is to be
// passed on.
func (s *Surface) idleOffers() {
	judge := func(what string, list []config.Offer, has func(resources, prompts bool) bool) {
		for _, o := range list {
			if len(offering(s.host, []config.Offer{o})) > 0 && !has(s.host.servers.Offers(o.Server)) {
				s.warn(o.Pos, fmt.Sprintf("MCP server %q has no %s", o.Server, what))
			}
		}
	}
	judge("resources", s.cfg.Served.Resources, func(resources, _ bool) bool { return resources })
	judge("prompts", s.cfg.Served.Prompts, func(_, prompts bool) bool { return prompts })
}

func (s *Surface) warn(pos strict.Pos, message string) {
	if place := pos.String(); place != "" {
		message = place + ": " + message
	}
	s.warnings = append(s.warnings, message)
}

func names(defs []tools.Definition) []string {
	all := make([]string, len(defs))
	for i, d := range defs {
		all[i] = d.Name
	}
	return all
}

// conditional reports whether a pattern has conditions after its name.
func conditional(pattern string) bool {
	for i := 0; i < len(pattern); i++ {
		switch pattern[i] {
		case '\\':
			i++
		case ':':
			return true
		}
	}
	return false
}

func allows(p *permission.Policy, d tools.Definition) bool {
	r := permission.Request{Tool: d.Name, Server: d.Server}
	if d.Server != "" {
		r.ServerTool = d.ServerName()
	}
	return p.Decide(r).Verdict == permission.Allow
}

// sync brings the registry of the surface up to date with the host's.
func (s *Surface) sync() {
	s.mu.Lock()
	defer s.mu.Unlock()
	var now []tools.Tool
	for _, d := range s.host.Tools() {
		if d.Name == humanInput || ofARun(d.Name) || slices.Contains(harmlessTools(), d.Name) || s.host.isOfAgents(d) || !allows(s.selects, d) {
			continue
		}
		if t, ok := s.host.registry.Lookup(d.Name); ok && s.host.pins.holds(t.Definition()) {
			now = append(now, t)
		}
	}
	errs := s.registry.Replace(s.held, now)
	s.held = s.held[:0:0]
	lost := map[string]bool{}
	for i, t := range now {
		name := t.Definition().Name
		if errs[i] == nil {
			s.held = append(s.held, name)
			continue
		}
		if lost[name] = true; !s.lost[name] { // a crew has the name
			s.host.log.Warn("a tool is not served", "tool", name, "error", errs[i])
		}
	}
	s.lost = lost
}

// Tools returns the definitions of the tools that are served now, sorted by name.
func (s *Surface) Tools() []tools.Definition { return s.guard.Definitions() }

// Warnings are what the operator should know, a line each.
func (s *Surface) Warnings() []string { return s.warnings }

// Refused returns the names of the served tools that the policy refuses whatever
// the arguments, be it that it would ask and nobody can be asked.
func (s *Surface) Refused() []string {
	var refused []string
	for _, d := range s.Tools() {
		if s.guard.Prospect("", d.Name) == permission.Deny {
			refused = append(refused, d.Name)
		}
	}
	return refused
}

// ServeStdio serves one client that speaks by in and out, one message a line,
// until in ends (I6) or ctx does.
func (s *Surface) ServeStdio(ctx context.Context, in io.Reader, out io.Writer) error {
	return s.follow(ctx, func(ctx context.Context) error { return s.server.ServeStdio(ctx, in, out) })
}

// follow keeps the surface up to date while serve runs.
func (s *Surface) follow(ctx context.Context, serve func(context.Context) error) error {
	changed := make(chan struct{}, 1)
	change := func() {
		select {
		case changed <- struct{}{}:
		default: // it is known
		}
	}
	defer s.host.registry.Watch(change)()
	defer s.host.offers.hear(change)()
	over := make(chan struct{})
	var following sync.WaitGroup
	following.Go(func() {
		for {
			select {
			case <-changed:
				s.sync()
				s.server.Refresh()
			case <-over:
				return
			}
		}
	})
	defer following.Wait()
	defer close(over)
	s.sync() // it may have changed before
	s.server.Refresh()
	return serve(ctx)
}

func budgetsOf(c config.Serving) server.Budgets {
	return server.Budgets{
		RequestBytes:       c.RequestBytes,
		ConcurrentRequests: c.ConcurrentRequests,
		ResponseBytes:      c.ResponseBytes,
		MetadataBytes:      c.MetadataBytes,
		PageSize:           c.PageSize,
		Grace:              c.Grace,
		SubscriptionBuffer: c.SubscriptionBuffer,
		Subscribers:        c.Subscribers,
		SubscribedURIs:     c.SubscribedURIs,
		Keepalive:          c.Keepalive,
		SearchThreshold:    c.SearchThreshold,
		SearchResults:      c.SearchResults,
		SearchCalls:        c.SearchCalls,
		SearchBytes:        c.SearchBytes,
	}
}
