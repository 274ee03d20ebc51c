package mcp

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"crewhost/tools"
)

// A connection is one link with a server, and the SDK's session over it. A session
// has one at a time; after a fault another takes its place.
type connection struct {
	link   link
	client *sdk.ClientSession
	spoken spoken

	shutdown time.Duration // limit of end

	stale chan struct{} // holds a token while the list of tools may have changed

	// Of the subscription to changes, in the modern era.
	acknowledged chan struct{} // closed when the server first says that it will tell
	acknowledge  func()        // closes it
	listed       atomic.Bool   // whether the list was asked for before that
	silence      context.CancelFunc

	down     chan struct{}  // closed when the session has noticed that it is lost
	watching sync.WaitGroup // what runs until the connection is over
	over     chan struct{}  // closed when the SDK's session has ended, whoever ended it
	err      error          // why, from before over is closed

	ending sync.Once
	endErr error
}

// watch notices when the connection ends by itself, and tells the session.
func (s *session) watch(c *connection) {
	c.watching.Go(func() {
		c.err = c.client.Wait()
		close(c.over)
		defer s.changes.flush()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.notice(c)
	})
}

// lost is why the connection can't be used any more, or nil. What the link says
// of it comes before what the SDK made of that.
func (s *session) lost(c *connection) *tools.Error {
	if f := faultOf(c.link); f != nil {
		return s.wrap(f.code, f.detail, nil)
	}
	select {
	case <-c.over:
		e := s.wrap(tools.CodeTransportClosed, "the connection ended", nil)
		if c.err != nil {
			e.Detail += ": " + s.masks.line(cause(c.err).Error(), maxDetail)
		}
		return e
	default:
		return nil
	}
}

// end ends the connection and what it started, within the shutdown timeout. It may
// be called again and returns the same.
func (c *connection) end() error {
	c.ending.Do(func() {
		// The SDK waits for every message that is still on its way.
		late := time.AfterFunc(c.shutdown, c.link.abandon)
		defer late.Stop()
		if c.silence != nil {
			c.silence()
		}
		if _, process := c.link.(*pipe); process {
			c.endErr = c.link.end()
			_ = c.client.Close() // the process is gone
		} else {
			// The farewell is a request: first it, then the connections.
			_ = c.client.Close() // whether the server heard it is its own affair
			c.endErr = c.link.end()
		}
		c.watching.Wait()
	})
	return c.endErr
}

// endBy ends the connection, and quickly once ctx is over.
func (c *connection) endBy(ctx context.Context) error {
	stop := context.AfterFunc(ctx, c.link.abandon)
	defer stop()
	return c.end()
}

// endBy ends a link, and quickly once ctx is over.
func endBy(ctx context.Context, l link) error {
	stop := context.AfterFunc(ctx, l.abandon)
	defer stop()
	return l.end()
}

func newConnection(link link, client *sdk.ClientSession, p *probing) *connection {
	c := &connection{
		link: link, client: client, shutdown: p.session.shutdownTimeout, stale: p.stale,
		acknowledged: make(chan struct{}), over: make(chan struct{}), down: make(chan struct{}),
	}
	c.acknowledge = sync.OnceFunc(func() { close(c.acknowledged) })
	p.conn.Store(c)
	return c
}
