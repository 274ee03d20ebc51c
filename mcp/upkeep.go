package mcp

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"crewhost/config"
	"crewhost/tools"
)

const (
	// settleTime is how long a refresh waits for more of a burst of
	// notifications, and refreshPause the least time between two of them.
	settleTime   = 100 * time.Millisecond
	refreshPause = time.Second

	// missedPings is how many in a row make a server faulted.
	missedPings = 2
)

// tend begins to look after a session that Startup has connected, until it is
// closed or given up: its list of tools is refreshed, it is asked for signs of
// life, and connected again when it is gone.
func (s *session) tend(ctx context.Context) {
	ctx, stop := context.WithCancel(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing || s.conn == nil {
		stop()
		return
	}
	s.stop = stop
	s.tending.Go(func() {
		failures := 0
		for conn := s.conn; conn != nil; {
			began := time.Now()
			s.attend(ctx, conn)
			if ctx.Err() != nil {
				return
			}
			if err := conn.endBy(ctx); err != nil {
				s.warn(err.Error())
			}
			// One that breaks down as soon as it is up is as good as failed.
			if time.Since(began) > s.reconnect.Max {
				failures = 0
			}
			conn = s.recover(ctx, &failures)
		}
	})
}

// attend looks after one connection, until it is lost or ctx ends.
func (s *session) attend(ctx context.Context, conn *connection) {
	var refreshing sync.WaitGroup
	defer refreshing.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var beat <-chan time.Time
	if s.keepalive > 0 {
		ticker := time.NewTicker(s.keepalive)
		defer ticker.Stop()
		beat = ticker.C
	}
	var due <-chan time.Time
	var refreshed chan bool // of a refresh that runs
	var pace pace
	missed := 0
	for {
		stale := conn.stale
		if refreshed != nil {
			stale = nil // what changes during a refresh is for the next one
		}
		select {
		case <-ctx.Done():
			return
		case <-conn.over:
			return
		case <-conn.down:
			return
		case <-stale:
			if due == nil {
				due = time.After(pace.wait(time.Now()))
			}
		case <-due:
			// Beside this loop: a server that does not answer is asked for signs of
			// life all the while.
			due, refreshed = nil, make(chan bool, 1)
			refreshing.Go(func() { refreshed <- s.refresh(ctx, conn) })
		case same := <-refreshed:
			refreshed = nil
			pace.refreshed(time.Now(), same)
		case <-beat:
			if missed = s.missed(ctx, conn, missed); missed == missedPings {
				s.frozen(conn)
				return
			}
		}
	}
}

// pace is how often the list of tools is read again: the least time between two
// readings doubles, up to lastPause, while a server says for nothing that it changed.
type pace struct {
	last  time.Time
	pause time.Duration
}

// wait is how long the next reading is put off.
func (p *pace) wait(now time.Time) time.Duration {
	return max(settleTime, p.pause-now.Sub(p.last))
}

// refreshed notes a reading, and whether the list was the same as before.
func (p *pace) refreshed(now time.Time, same bool) {
	if quiet := now.Sub(p.last) > lastPause; same && !quiet {
		p.pause = min(2*p.pause, lastPause)
	} else {
		p.pause = refreshPause
	}
	p.last = now
}

// missed asks for a sign of life, unless calls run: a server that works on one
// may have no time for more. It returns how many in a row were missed. Any answer
// is a sign of life, also one that refuses.
func (s *session) missed(ctx context.Context, conn *connection, before int) int {
	s.mu.Lock()
	busy := len(s.running) > s.keeping
	s.mu.Unlock()
	if busy {
		return before
	}
	_, err := s.pingOn(ctx, conn, min(pingTimeout, s.keepalive))
	switch tools.CodeOf(err) {
	case tools.CodePingTimeout, tools.CodeTransportFailed:
		return before + 1
	}
	return 0
}

// frozen moves to faulted for a server that gives no sign of life. There is no
// point in asking it to leave.
func (s *session) frozen(conn *connection) {
	defer s.changes.flush()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing || s.report.State != StateConnected {
		return
	}
	s.fault(s.wrap(tools.CodeTransportClosed, fmt.Sprintf("no sign of life: %d pings in a row were not answered", missedPings), nil))
	conn.link.abandon()
}

// recover connects a faulted server again. It returns nil when it is given up, or
// closed.
func (s *session) recover(ctx context.Context, failures *int) *connection {
	for *failures < s.reconnect.MaxAttempts {
		pause := time.NewTimer(pauseBefore(s.reconnect, *failures, rand.Float64()))
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return nil
		}
		*failures++
		conn, err := s.again(ctx)
		switch {
		case err == nil:
			return conn
		case ctx.Err() != nil:
			return nil
		}
		s.log.Warn("MCP server could not be connected again", "attempt", *failures, "error", err)
	}
	defer s.changes.flush()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recovering = false
	s.move(StateFaulted, s.report.Err)
	return nil
}

// pauseBefore is the pause before an attempt, after so many that failed: between
// half and all of what doubles each time, so that many servers that broke
// down together don't come back together.
func pauseBefore(r config.Reconnect, failures int, random float64) time.Duration {
	pause := r.Initial << min(failures, 30)
	if pause > r.Max || pause < r.Initial {
		pause = r.Max
	}
	return pause/2 + time.Duration(random*float64(pause/2))
}

// again is one attempt to connect the server again, whose tools then take the
// place of those that it had.
func (s *session) again(ctx context.Context) (*connection, error) {
	defer s.changes.flush()
	leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	leave = sync.OnceFunc(leave)
	defer leave()
	s.mu.Lock()
	s.move(StateConnecting, s.report.Err)
	s.mu.Unlock()
	s.changes.flush()

	conn, catalog, err := s.establish(ctx, leave)
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.move(StateFaulted, err)
		return nil, err
	}
	s.mu.Lock()
	s.conn, s.catalog = conn, catalog
	s.report.Reconnects++
	s.mu.Unlock()
	s.publish()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recovering = false
	s.move(StateConnected, nil)
	s.log.Info("MCP server is connected again")
	return conn, nil
}

// recovers reports whether another connection takes, or will take, the place of one
// on which an operation failed.
func (s *session) recovers(ctx context.Context, conn *connection, err error) bool {
	if errors.Is(err, sdk.ErrConnectionClosed) {
		select { // which is about to be noticed
		case <-conn.over:
		case <-conn.down:
		case <-ctx.Done():
			return false
		}
	}
	defer s.changes.flush()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notice(conn)
	return !s.closing && (s.recovering || s.conn != conn)
}
