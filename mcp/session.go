package mcp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"crewhost/config"
	"crewhost/mcp/child"
	"crewhost/mcp/oauth"
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
	route           Route             // of servers over HTTP
	tokens          *oauth.Authorizer // nil where requests go as they are
	probeTimeout    time.Duration
	toolTimeout     time.Duration
	shutdownTimeout time.Duration
	allows          func(*url.URL) bool // whether the settings allow an address

	keepalive time.Duration
	reconnect config.Reconnect
	names     *names
	changes   *changes
	enter     func(context.Context) (leave func(), err error) // waits for a turn to start

	slots     chan struct{} // a token for each running call
	following following
	asking    asking
	tending   sync.WaitGroup

	mu         sync.Mutex
	conn       *connection // since it was first connected
	catalog    catalog
	report     ServerReport
	moved      chan struct{} // closed and replaced with each change of state
	recovering bool          // whether it will be connected again, unless that fails
	at         string        // the stage of a connect
	closing    bool
	stop       context.CancelFunc              // of tend
	running    map[int]context.CancelCauseFunc // of calls
	keeping    int                             // of running, those that keep the connection up
	calls      int

	close    sync.Once
	closeErr error
}

// connect connects the server for the first time. Its own time begins when it
// has its turn.
func (s *session) connect(ctx context.Context) error {
	defer s.changes.flush()
	leave, err := s.enter(ctx)
	if err != nil {
		return s.failed(time.Now(), s.wrap(tools.CodeCancelled, "not started", err))
	}
	leave = sync.OnceFunc(leave)
	defer leave()
	began := time.Now()
	conn, catalog, err := s.establish(ctx, leave)
	if err != nil {
		return s.failed(began, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conn, s.catalog = conn, catalog
	s.report.Took = time.Since(began)
	s.report.offer(catalog.defs)
	s.move(StateConnected, nil)
	return nil
}

// establish makes a connection and goes through the stages of W5, within the
// server's own time. Settled is called when the server has begun to answer. An
// error leaves nothing open.
func (s *session) establish(ctx context.Context, settled func()) (*connection, catalog, error) {
	ctx, cancel := context.WithTimeout(ctx, s.server.ConnectTimeout)
	defer cancel()
	conn, err := s.negotiate(ctx, settled)
	if err != nil {
		return nil, catalog{}, err
	}
	s.identity(conn)
	s.watch(conn)

	// The answer to the probe was the ping of a modern server, whose protocol
	// has no other.
	if conn.era() == Legacy {
		s.stage("ping")
		switch _, err := s.pingOn(ctx, conn, pingTimeout); {
		case ctx.Err() != nil:
			return nil, catalog{}, errors.Join(s.failure(ctx, conn.link, nil, ctx.Err()), conn.endBy(ctx))
		case err != nil:
			s.warn(unnamed(err))
		}
	}
	s.heed(ctx, conn)
	s.stage(stageList)
	catalog, err := s.list(ctx, conn)
	if err == nil {
		if e := s.lost(conn); e != nil {
			err = e
		}
	}
	if err != nil {
		return nil, catalog, errors.Join(err, conn.endBy(ctx))
	}
	return conn, catalog, nil
}

// Stages that errors are told apart by.
const (
	stageNegotiate = "negotiate"
	stageList      = "list"
	stageRefresh   = "refresh" // of a connection that stands
)

// failed notes why the session was never connected.
func (s *session) failed(began time.Time, err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.report.Took = time.Since(began)
	s.move(StateFailed, err)
	return err
}

// ping asks the server for a sign of life and returns how long it took. It does
// not wait for a server that is being connected again.
func (s *session) ping(ctx context.Context) (time.Duration, error) {
	defer s.changes.flush()
	s.mu.Lock()
	conn := s.conn
	if conn != nil {
		s.notice(conn)
	}
	state, err := s.report.State, s.report.Err
	s.mu.Unlock()
	switch {
	case state == StateConnected:
		return s.pingOn(ctx, conn, pingTimeout)
	case err == nil || state == StateClosed:
		err = s.wrap(tools.CodeTransportClosed, errSessionClosed.Error(), nil)
	}
	return 0, err
}

// pingOn pings on a connection. The error has the code of a timeout only where
// there was no answer at all.
func (s *session) pingOn(ctx context.Context, conn *connection, limit time.Duration) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	ctx, end, err := s.beginOn(ctx)
	if err != nil {
		return 0, err
	}
	defer end()
	ctx, ex := withExchange(ctx)
	began := time.Now()
	if conn.era() == Modern {
		// The modern era has no ping. Its first question does as well.
		_, err = sdk.CallCustomMethod[*discoverParams, *sdk.DiscoverResult](ctx, conn.client, methodDiscover, new(discoverParams))
	} else {
		err = conn.client.Ping(ctx, nil)
	}
	took := time.Since(began)
	if err == nil {
		return took, nil
	}
	if over, late := ended(ctx); over && late {
		return took, s.wrap(tools.CodePingTimeout, fmt.Sprintf("no answer to ping within %v", limit), context.DeadlineExceeded)
	}
	e := s.explain(ctx, ex, err)
	e.Detail = "ping: " + e.Detail
	return took, e
}

// unnamed is the text of err for a line that names the server already.
func unnamed(err error) string {
	if e, ok := errors.AsType[*tools.Error](err); ok {
		return fmt.Sprintf("%s (%s)", e.Detail, e.Code)
	}
	return err.Error()
}

type discoverParams struct{ sdk.ParamsBase }

// end closes the session: nothing new begins, what runs is cancelled, the server
// is ended (W11). It may be called again and returns the same.
func (s *session) end() error {
	s.close.Do(func() {
		defer s.changes.flush()
		s.mu.Lock()
		s.closing = true
		if s.stop != nil {
			s.stop()
		}
		for _, cancel := range s.running {
			cancel(errSessionClosed)
		}
		close(s.moved) // of those who wait
		s.moved = make(chan struct{})
		s.mu.Unlock()
		s.tending.Wait()
		s.mu.Lock()
		conn := s.conn
		s.mu.Unlock()
		began := time.Now()
		if conn != nil {
			s.closeErr = conn.end()
		}
		if s.tokens != nil {
			s.tokens.Close(max(0, s.shutdownTimeout-time.Since(began)))
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.report.State != StateFailed {
			s.move(StateClosed, s.report.Err)
		}
	})
	return s.closeErr
}

// current is the report as it stands.
func (s *session) current() ServerReport {
	defer s.changes.flush()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != nil {
		s.notice(s.conn)
	}
	r := s.report
	r.Tools = slices.Clone(r.Tools)
	r.Skipped = slices.Concat(s.catalog.skipped, r.Skipped)
	r.Warnings = slices.Concat(r.Warnings, s.catalog.warnings)
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
