package mcp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"crewhost/config"
	"crewhost/mcp/child"
	"crewhost/tools"
)

// pingTimeout bounds a ping (W6).
const pingTimeout = 5 * time.Second

// A session is the connection with one server, from its start to its close.
type session struct {
	server          config.Server
	opts            Options
	log             *slog.Logger
	masks           *masks
	limits          config.Limits
	guard           *child.Guard
	probeTimeout    time.Duration
	toolTimeout     time.Duration
	shutdownTimeout time.Duration

	// Set by connect, before anybody else sees the session.
	link    link
	client  *sdk.ClientSession
	catalog catalog

	watching sync.WaitGroup
	slots    chan struct{} // a token for each running call

	mu         sync.Mutex
	report     ServerReport
	at         string // the stage of a connect
	closing    bool
	running    map[int]context.CancelCauseFunc // of calls
	calls      int
	registered []string

	close    sync.Once
	closeErr error
}

// connect goes through the stages of W5. Enter waits for a turn to start and
// returns how to give it up; the server's own time begins then.
func (s *session) connect(ctx context.Context, enter func(context.Context) (leave func(), err error)) error {
	leave, err := enter(ctx)
	if err != nil {
		return s.failed(time.Now(), s.wrap(tools.CodeCancelled, "not started", err))
	}
	leave = sync.OnceFunc(leave)
	defer leave()
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, s.server.ConnectTimeout)
	defer cancel()
	if err := s.negotiate(ctx, leave); err != nil {
		return s.failed(began, err)
	}
	s.identity()
	s.watching.Go(s.watch)

	// The answer to the probe was the ping of a modern server, whose protocol
	// has no other.
	if s.current().Era == Legacy {
		s.stage("ping")
		if _, err := s.ping(ctx); err != nil && ctx.Err() == nil {
			s.warn(err.Error())
		}
	}
	s.stage("list")
	if err := s.list(ctx); err != nil {
		err = s.failed(began, err)
		if ctx.Err() != nil {
			s.link.abandon()
		}
		return errors.Join(err, s.end())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.report.State != StateConnecting { // it faulted meanwhile
		return s.report.Err
	}
	s.report.State = StateConnected
	s.report.Took = time.Since(began)
	s.report.Skipped = slices.Clone(s.catalog.skipped)
	s.report.Warnings = append(s.report.Warnings, s.catalog.warnings...)
	for _, d := range s.catalog.defs {
		s.report.Tools = append(s.report.Tools, d.Name)
		s.report.DefinitionBytes += size(d)
	}
	return nil
}

// failed notes why the session was never connected.
func (s *session) failed(began time.Time, err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.report.State, s.report.Err, s.report.Took = StateFailed, err, time.Since(began)
	return err
}

// watch notices when the connection ends by itself.
func (s *session) watch() {
	err := s.client.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.wrap(tools.CodeTransportClosed, "the connection ended", nil)
	if err != nil {
		e.Detail += ": " + s.masks.line(cause(err).Error(), maxDetail)
	}
	s.faulted(e)
}

// faulted notes that the connection ended by itself (W6). What the link says of it
// comes before e, which may be nil where only the link would know. The caller holds mu.
func (s *session) faulted(e *tools.Error) {
	if s.closing || s.report.State == StateFailed || s.report.State == StateFaulted {
		return
	}
	var f *fault
	if errors.As(s.link.fault(), &f) {
		e = s.wrap(f.code, f.detail, nil)
	}
	if e != nil {
		s.report.State, s.report.Err = StateFaulted, e
		s.log.Warn("MCP server is gone", "error", e)
	}
}

// ping asks the server for a sign of life and returns how long it took.
func (s *session) ping(ctx context.Context) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	ctx, end, err := s.begin(ctx)
	if err != nil {
		return 0, err
	}
	defer end()
	ctx, ex := withExchange(ctx)
	began := time.Now()
	if s.current().Era == Modern {
		// The modern era has no ping. Its first question does as well.
		_, err = sdk.CallCustomMethod[*discoverParams, *sdk.DiscoverResult](ctx, s.client, methodDiscover, new(discoverParams))
	} else {
		err = s.client.Ping(ctx, nil)
	}
	took := time.Since(began)
	if err == nil {
		return took, nil
	}
	if over, late := ended(ctx); over && late {
		return took, s.wrap(tools.CodePingTimeout, fmt.Sprintf("no answer to ping within %v", pingTimeout), context.DeadlineExceeded)
	}
	e := s.explain(ctx, ex, err)
	e.Detail = "ping: " + e.Detail
	return took, e
}

type discoverParams struct{ sdk.ParamsBase }

// begin registers an operation, which is cancelled when the session is closed.
func (s *session) begin(ctx context.Context) (context.Context, func(), error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.report.State == StateConnected {
		s.faulted(nil)
	}
	switch {
	case s.closing:
		return nil, nil, s.wrap(tools.CodeTransportClosed, errSessionClosed.Error(), nil)
	case s.report.State == StateFaulted:
		return nil, nil, s.report.Err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	s.calls++
	id := s.calls
	s.running[id] = cancel
	return ctx, func() {
		cancel(nil)
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.running, id)
	}, nil
}

// end closes the session: nothing new begins, what runs is cancelled, the server
// is ended (W11). It may be called again and returns the same.
func (s *session) end() error {
	s.close.Do(func() {
		s.mu.Lock()
		s.closing = true
		for _, cancel := range s.running {
			cancel(errSessionClosed)
		}
		s.mu.Unlock()
		if s.client == nil {
			return
		}
		if _, http := s.link.(*endpoint); http {
			// The farewell is a request: first it, then the connections.
			_ = s.client.Close() // whether the server heard it is its own affair
			s.closeErr = s.link.end()
		} else {
			s.closeErr = s.link.end()
			_ = s.client.Close() // the process is gone
		}
		s.watching.Wait()
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.report.State == StateConnected || s.report.State == StateFaulted {
			s.report.State = StateClosed
		}
	})
	return s.closeErr
}

// current is the report as it stands.
func (s *session) current() ServerReport {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.report.State == StateConnected {
		s.faulted(nil)
	}
	r := s.report
	r.Tools = slices.Clone(r.Tools)
	r.Skipped = slices.Clone(r.Skipped)
	r.Warnings = slices.Clone(r.Warnings)
	return r
}

func (s *session) stage(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at = name
}

// warn adds a line to the report, which is masked here, once. The log has it as a
// warning too, unless whoever started the session is about to get the report.
func (s *session) warn(line string) {
	line = s.masks.line(line, maxDetail)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.report.Warnings) == maxWarnings || slices.Contains(s.report.Warnings, line) {
		return
	}
	s.report.Warnings = append(s.report.Warnings, line)
	log := s.log.Warn
	if s.report.State == StateConnecting {
		log = s.log.Debug
	}
	log(line)
}

// maxWarnings bounds the warnings of a session while it runs.
const maxWarnings = 100
