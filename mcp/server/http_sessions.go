package server

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// errSessionEnded is why a call of a session that is no more is cancelled.
var errSessionEnded = errors.New("the session has ended")

// sessions are those of the initialize lineage, which outlive their requests.
// Their number is bounded: when one more comes, the one that has been idle longest
// makes room.
type sessions struct {
	limit int
	idle  time.Duration
	log   func(msg string, args ...any)

	mu      sync.Mutex
	open    map[string]*httpSession
	opening int // that have a place and no id yet
	closed  bool

	// Those that were taken out and end.
	ending  sync.WaitGroup
	leaving int
	empty   chan struct{} // closed when none is left, once close was called
}

// An httpSession is one client's, and nobody else's.
type httpSession struct {
	id     string
	owner  identity
	cancel context.CancelCauseFunc // its calls
	sdk    *mcp.ServerSession
	ended  func() // tells that it has

	// The mutex of the sessions is theirs.
	users int // requests and streams
	since time.Time
	timer *time.Timer
}

func newSessions(limit int, idle time.Duration, log func(string, ...any)) *sessions {
	return &sessions{limit: limit, idle: idle, log: log, open: map[string]*httpSession{}, empty: make(chan struct{})}
}

// use returns the session of an id, which stays until done is called. It is nil
// where there is none, or it is another's: whose it is, is nobody else's business.
func (s *sessions) use(id string, who identity) (*httpSession, func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.open[id]
	if one == nil || one.owner != who {
		return nil, nil
	}
	one.users++
	return one, func() { s.leave(one) }
}

func (s *sessions) leave(one *httpSession) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one.users--
	one.since = time.Now() // the timer goes by it when it fires, and is left alone till then
}

// reserve has a place for one more session, until it is opened or forgone.
func (s *sessions) reserve() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	if len(s.open)+s.opening >= s.limit {
		var longest *httpSession
		for _, one := range s.open {
			if one.users == 0 && (longest == nil || one.since.Before(longest.since)) {
				longest = one
			}
		}
		if longest == nil {
			return false
		}
		s.log("a session makes room for another", "session", brief(longest.id))
		s.removeLocked(longest)
	}
	s.opening++
	return true
}

func (s *sessions) forgo() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opening--
}

// opened takes the place that was reserved. It is used until done is called. Where
// the sessions have ended meanwhile, it has too.
func (s *sessions) opened(one *httpSession) (done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opening--
	if s.closed {
		one.cancel(errSessionEnded)
		return func() { _ = one.sdk.Close(); one.ended() }
	}
	one.users, one.since = 1, time.Now()
	one.timer = time.AfterFunc(s.idle, func() { s.expire(one) })
	s.open[one.id] = one
	return func() { s.leave(one) }
}

func (s *sessions) expire(one *httpSession) {
	s.mu.Lock()
	defer s.mu.Unlock()
	wait := s.idle - time.Since(one.since)
	if one.users > 0 {
		wait = s.idle
	}
	switch {
	case s.open[one.id] != one:
	case wait > 0:
		one.timer.Reset(wait)
	default:
		s.log("a session was idle for long and ends", "session", brief(one.id))
		s.removeLocked(one)
	}
}

// end ends a session: its calls are cancelled, and it is known no more.
func (s *sessions) end(one *httpSession) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.removeLocked(one)
}

func (s *sessions) removeLocked(one *httpSession) {
	if s.open[one.id] != one {
		return
	}
	delete(s.open, one.id)
	one.timer.Stop()
	one.cancel(errSessionEnded)
	if one.sdk == nil {
		return
	}
	s.leaving++
	s.ending.Go(func() {
		_ = one.sdk.Close()
		one.ended()
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.leaving--; s.leaving == 0 && s.closed {
			close(s.empty)
		}
	})
}

// close ends all sessions, and waits until they have, or ctx ends: a session ends
// with the last of its calls.
func (s *sessions) close(ctx context.Context) error {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		for _, one := range s.open {
			s.removeLocked(one)
		}
		if s.leaving == 0 {
			close(s.empty)
		}
	}
	s.mu.Unlock()
	select {
	case <-s.empty:
		s.ending.Wait()
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// brief is enough of a session's id to tell it from others in the log, and not
// enough to use it.
func brief(id string) string { return id[:min(len(id), 6)] }

type lifeKey struct{}

// withLife has the calls of a session end with it: the SDK keeps the values of the
// context that a session began with, and not its end.
func withLife(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) { //nolint:contextcheck // two contexts end one call
		life, ok := ctx.Value(lifeKey{}).(context.Context)
		if !ok {
			return next(ctx, method, req)
		}
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		defer context.AfterFunc(life, func() { cancel(context.Cause(life)) })() //nolint:contextcheck // as above
		return next(ctx, method, req)
	}
}
