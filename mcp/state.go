package mcp

import (
	"context"
	"sync"

	"crewhost/config"
	"crewhost/tools"
)

// StateChange is a step of a server from one state to another.
type StateChange struct {
	Server   string
	From, To State
	// Transport and Protocol are how the server is spoken to, or was until now.
	Transport config.Transport
	Protocol  string
	// Err is why it failed or faulted, a *tools.Error.
	Err error
}

// changes tells of changes of state, in their order and one at a time, outside
// the locks under which they are made.
type changes struct {
	tell func(StateChange) // nil: nobody

	mu      sync.Mutex
	queue   []StateChange
	telling bool
}

func (c *changes) add(change StateChange) {
	if c.tell == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queue = append(c.queue, change)
}

// flush tells what is queued, unless somebody is telling already, who goes on then.
func (c *changes) flush() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.telling {
		return
	}
	c.telling = true
	defer func() { c.telling = false }()
	for len(c.queue) > 0 {
		change := c.queue[0]
		c.queue = c.queue[1:]
		c.mu.Unlock()
		c.tell(change)
		c.mu.Lock()
	}
}

// move changes the state and wakes who waits for that. The caller holds mu, and
// flushes the changes when it has let go of it.
func (s *session) move(to State, err error) {
	from := s.report.State
	s.report.State, s.report.Err = to, err
	close(s.moved)
	s.moved = make(chan struct{})
	if from != to {
		s.changes.add(StateChange{
			Server: s.server.Name, From: from, To: to, Err: err,
			Transport: s.server.Transport, Protocol: s.report.Protocol,
		})
	}
}

// notice moves to faulted if c was the connection and is lost (W6). The caller
// holds mu.
func (s *session) notice(c *connection) {
	if s.closing || s.report.State != StateConnected || c != s.conn {
		return
	}
	if e := s.lost(c); e != nil {
		s.fault(e)
	}
}

// fault moves from connected to faulted. The caller holds mu.
func (s *session) fault(e *tools.Error) {
	close(s.conn.down)
	s.recovering = s.reconnect.MaxAttempts > 0
	s.move(StateFaulted, e)
	s.log.Warn("MCP server is gone", "error", e)
}

// begin registers an operation on the connection, which is cancelled when the
// session is closed. While the server is being connected again, it waits for
// that as long as ctx lasts. After an error the context is ctx.
func (s *session) begin(ctx context.Context) (context.Context, *connection, func(), error) {
	defer s.changes.flush()
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		if s.conn != nil {
			s.notice(s.conn)
		}
		switch {
		case s.closing:
			return ctx, nil, nil, s.wrap(tools.CodeTransportClosed, errSessionClosed.Error(), nil)
		case s.report.State == StateConnected:
			ctx, end := s.enlist(ctx, 0)
			return ctx, s.conn, end, nil
		case !s.recovering && s.report.Err == nil:
			return ctx, nil, nil, s.wrap(tools.CodeTransportFailed, "it is not connected", nil)
		case !s.recovering:
			return ctx, nil, nil, s.report.Err
		}
		moved, why := s.moved, s.report.Err
		s.mu.Unlock()
		select {
		case <-moved:
		case <-ctx.Done():
			s.mu.Lock()
			return ctx, nil, nil, &waited{why}
		}
		s.mu.Lock()
	}
}

// waited is the error of an operation whose time was over before the server was
// connected again.
type waited struct{ why error }

func (w *waited) Error() string { return "not connected again in time, after: " + w.why.Error() }
func (w *waited) Unwrap() error { return w.why }

// beginOn is begin for what belongs to a connection that is being made or kept.
func (s *session) beginOn(ctx context.Context) (context.Context, func(), error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return nil, nil, s.wrap(tools.CodeTransportClosed, errSessionClosed.Error(), nil)
	}
	ctx, end := s.enlist(ctx, 1)
	return ctx, end, nil
}

// enlist makes ctx end with the session; keeping is 1 for what keeps the connection
// up, and is no call. The caller holds mu.
func (s *session) enlist(ctx context.Context, keeping int) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	s.calls++
	id := s.calls
	s.running[id] = cancel
	s.keeping += keeping
	return ctx, func() {
		cancel(nil)
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.running, id)
		s.keeping -= keeping
	}
}
