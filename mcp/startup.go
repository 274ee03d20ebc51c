package mcp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"crewhost/config"
	"crewhost/config/secret"
	"crewhost/mcp/child"
	"crewhost/tools"
)

// HostsVariable is the variable of the environment that says which hosts a process
// runs under. Servers get it from [Options].Environ.
const HostsVariable = child.HostsVariable

// Options are what Startup needs besides the settings.
type Options struct {
	// Name and Version are the client's identity, which every server sees.
	Name, Version string
	// Logger takes the servers' stderr and what the reports have (debug), and
	// what goes wrong afterwards (warn). Nil discards.
	Logger *slog.Logger
	// Redactor gets to know every secret of the settings before anything is
	// started. Nil: one of its own.
	Redactor *secret.Redactor
	// Guard is the command line of the guard process, which ends the
	// servers' processes should this one be killed; see package child. Empty:
	// none.
	Guard []string
	// Environ is the environment that servers' processes inherit a part of, as
	// NAME=value lines. Nil means this process's own.
	Environ []string
	// Browse sends a person to a URL of loopback where a server wants a login, and
	// returns when they are on their way. Nil, as in a run: nobody is sent anywhere,
	// and such a server fails with a line that says what to do (O20).
	Browse func(ctx context.Context, url string) error
	// Respondent answers what servers ask (O19); nil: what the settings declare
	// is answered, and everything else declined.
	Respondent Respondent
	// Sampler asks the model for servers whose settings allow it; nil: none is
	// asked.
	Sampler Sampler
	// Roots are the folders that servers are told of whose settings allow it.
	Roots []Root
	// Route is where requests for a server over HTTP end: what stands between this
	// process and the world, and adds the server's credentials (A6). It is asked once
	// for each server. Nil, or the zero Route: the network, as far as package admission
	// lets the operator's own URLs lead.
	Route func(config.Server) Route
	// OnReport, if set, is called as each server is connected or has failed,
	// one call at a time. Names are registered after all of them.
	OnReport func(ServerReport)
	// OnProgress, if set, is told of the progress of calls, ten times a second
	// and call at most; what comes quicker is left out. It must return at once:
	// the server's messages wait for it.
	OnProgress func(Progress)
	// OnRequest, if set, is told of each request to a server as it goes out, and what
	// it returns of how that ended; notifications and subscriptions are none. It is
	// called by whoever asks, in the context of that, and must return at once.
	OnRequest func(ctx context.Context, a Asked) (ended func(Answered))
	// OnOffers, if set, is called where the resources or the prompts of a server may
	// have changed. It must return at once: the server's messages wait for it. Servers
	// of the modern era tell of that only where it is set.
	OnOffers func()
	// OnChange, if set, is called with each change of a server's state, in the
	// order in which a server goes through them, one call at a time, by whoever
	// caused or noticed one. Be quick: that may be a call which has its limit.
	// It may use the Sessions.
	OnChange func(StateChange)

	// dial stands in for starting or calling a server, in tests that measure
	// what is left without either.
	dial func() link
}

// complete fills in what is not set.
func (o Options) complete() Options {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Redactor == nil {
		o.Redactor = new(secret.Redactor)
	}
	if o.Environ == nil {
		o.Environ = os.Environ()
	}
	return o
}

// Sessions are the connections with all servers of the settings. Who called
// Startup closes them.
type Sessions struct {
	sessions []*session // in the settings' order
	names    *names
	guard    *child.Guard
	own      []string // tools that are not of one server

	close    sync.Once
	closeErr error
}

// Startup connects every server of cfg, and those of agents among them, at once, each within its own
// ConnectTimeout, and returns when all are connected or have failed (O10). At most
// cfg.MaxStarting processes are starting together: a process is, until it
// answers, and at most for the probe's limit. Then the tools are registered in reg, in the
// settings' order, whatever finished first (O12), and before them those of the servers
// that agents bring along, which have names of their own kind (A9).
//
// A server that fails is no error of Startup (O11); one that is required is a
// [*RequiredError]. The end of ctx is its error. The Sessions are never nil:
// after an error they are closed, and still have their reports.
func Startup(ctx context.Context, cfg config.MCP, reg *tools.Registry, opts Options) (*Sessions, error) {
	opts = opts.complete()
	all := &Sessions{names: newNames(reg)}
	if !cfg.Enabled {
		return all, nil
	}
	tokens, err := tokenStore(cfg, opts.Environ)
	if err != nil {
		return all, err
	}
	told := &changes{tell: opts.OnChange}
	turn := turns(cfg.MaxStarting)
	processes := false
	for _, server := range cfg.Servers {
		s := newSession(server, cfg, opts)
		s.names, s.changes, s.enter = all.names, told, func(context.Context) (func(), error) { return func() {}, nil }
		if server.Transport.Remote() {
			s.equip(tokens)
		} else {
			processes, s.enter = true, turn
		}
		all.sessions = append(all.sessions, s)
	}
	if processes && len(opts.Guard) > 0 {
		guard, err := child.StartGuard(opts.Guard)
		if err != nil {
			return all, errors.Join(fmt.Errorf("starting the guard of the MCP servers: %w", err), all.Close())
		}
		all.guard = guard
		for _, s := range all.sessions {
			s.guard = guard
		}
	}
	all.connect(ctx, opts.OnReport)
	if err := ctx.Err(); err != nil {
		return all, errors.Join(err, all.Close())
	}
	var failed []error
	for _, s := range all.sessions {
		if r := s.current(); r.Required && r.State != StateConnected {
			failed = append(failed, r.Err)
		}
	}
	if len(failed) > 0 {
		return all, errors.Join(&RequiredError{Failed: failed}, all.Close())
	}
	if cfg.ResourceTools { // before the servers' own, as other built-in tools are (O12)
		for _, t := range all.resourceTools() {
			if err := reg.Add(t); err != nil {
				return all, errors.Join(err, all.Close())
			}
			all.own = append(all.own, t.def.Name)
		}
	}
	for _, own := range []bool{true, false} { // no tool of the settings' servers takes a name like mcp__notes__search first
		for _, s := range all.sessions {
			if (len(s.server.Agents) > 0) == own {
				s.publish()
			}
		}
	}
	for _, s := range all.sessions {
		s.tend(context.WithoutCancel(ctx))
	}
	return all, nil
}

// defaultStarting is how many processes start together where the settings don't say.
const defaultStarting = 8

// turns hands out turns to start, so many at a time.
func turns(starting int) func(context.Context) (leave func(), err error) {
	turns := make(chan struct{}, first(starting, defaultStarting))
	return func(ctx context.Context) (func(), error) {
		select {
		case turns <- struct{}{}:
			return func() { <-turns }, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// connect connects all servers and waits for them.
func (all *Sessions) connect(ctx context.Context, done func(ServerReport)) {
	var running sync.WaitGroup
	var one sync.Mutex
	for _, s := range all.sessions {
		running.Go(func() {
			_ = s.connect(ctx) // the report has it
			if done != nil {
				one.Lock()
				defer one.Unlock()
				done(s.current())
			}
		})
	}
	running.Wait()
}

// newSession prepares the session of a server and makes its secrets known.
func newSession(server config.Server, cfg config.MCP, opts Options) *session {
	m := &masks{shared: opts.Redactor}
	texts := append([]secret.Text{server.Command, server.URL}, server.Args...)
	for _, v := range server.Env {
		texts = append(texts, v.Value)
		m.add(v.Value.Reveal())
	}
	for _, v := range server.Answers {
		texts = append(texts, v.Value)
	}
	for _, v := range server.Headers {
		value := v.Value.Reveal()
		texts = append(texts, v.Value)
		m.add(value)
		if _, credential, ok := strings.Cut(value, " "); ok { // "Bearer …"
			m.add(credential)
		}
	}
	for _, t := range texts {
		opts.Redactor.Add(t.Secrets()...)
	}
	if u, err := url.Parse(server.URL.Reveal()); err == nil {
		for _, values := range u.Query() {
			for _, value := range values {
				m.add(value)
			}
		}
		if password, ok := u.User.Password(); ok {
			m.add(password)
		}
	}
	server.ConnectTimeout = first(server.ConnectTimeout, cfg.ConnectTimeout, 30*time.Second)
	transport := server.Transport
	if transport == "" {
		transport = config.TransportStdio
	}
	return &session{
		server:          server,
		opts:            opts,
		log:             opts.Logger.With("server", server.Name),
		masks:           m,
		limits:          limitsOf(cfg.Limits),
		probeTimeout:    first(cfg.ProbeTimeout, 2*time.Second),
		toolTimeout:     first(server.ToolTimeout, cfg.ToolTimeout, 60*time.Second),
		shutdownTimeout: first(cfg.ShutdownTimeout, child.DefaultShutdownTimeout),
		allows:          cfg.Allows,
		slots:           make(chan struct{}, first(server.MaxCalls, cfg.MaxCalls, maxCalls)),
		keepalive:       cfg.Keepalive,
		reconnect:       cfg.Reconnect,
		moved:           make(chan struct{}),
		running:         make(map[int]context.CancelCauseFunc),
		report: ServerReport{
			Name:      server.Name,
			State:     StateConnecting,
			Required:  server.Required,
			Transport: transport,
			Agents:    server.Agents,
		},
	}
}

// first is the first number or duration that is set.
func first[T int | time.Duration](values ...T) T {
	for _, v := range values {
		if v > 0 {
			return v
		}
	}
	return 0
}

// Reports returns what became of the servers, as it stands, in the settings' order.
func (all *Sessions) Reports() []ServerReport {
	reports := make([]ServerReport, len(all.sessions))
	for i, s := range all.sessions {
		reports[i] = s.current()
	}
	return reports
}

// Ping asks a server for a sign of life, within five seconds, and returns how long
// it took. The error is a *tools.Error with [tools.CodePingTimeout] where none
// came; the server stays connected (W6).
func (all *Sessions) Ping(ctx context.Context, server string) (time.Duration, error) {
	for _, s := range all.sessions {
		if s.server.Name != server {
			continue
		}
		if r := s.current(); r.State == StateFailed {
			return 0, r.Err
		}
		return s.ping(ctx)
	}
	return 0, &tools.Error{Code: tools.CodeTransportFailed, Server: server, Detail: "the settings declare no such MCP server"}
}

// Close unregisters the tools of all servers (O1) and closes their sessions, all
// at once: calls are cancelled, processes ended with all that came of them. It takes
// no longer than the shutdown timeout of the settings and a little, whatever the
// servers do, and may be called again. An error says what could not be ended.
func (all *Sessions) Close() error {
	all.close.Do(func() {
		all.names.close()
		for _, name := range all.own {
			all.names.registry.Remove(name)
		}
		errs := make([]error, len(all.sessions)+1)
		var running sync.WaitGroup
		for i, s := range all.sessions {
			running.Go(func() { errs[i] = s.end() })
		}
		running.Wait()
		if all.guard != nil {
			errs[len(all.sessions)] = all.guard.Close()
		}
		all.closeErr = errors.Join(errs...)
	})
	return all.closeErr
}
