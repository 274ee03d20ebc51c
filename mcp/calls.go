package mcp

import (
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// calls are the requests that a transport has sent and not seen answered.
type calls struct {
	mu   sync.Mutex
	sent map[jsonrpc.ID]*sent
}

type sent struct {
	method string
	ex     *exchange
	stop   func() bool // ends the watch of the request's context
}

// add notes a request until it is answered or its context ends.
func (c *calls) add(ctx context.Context, req *jsonrpc.Request) {
	s := &sent{method: req.Method, ex: exchangeOf(ctx)}
	s.ex.asks(req.ID)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sent == nil {
		c.sent = make(map[jsonrpc.ID]*sent)
	}
	c.sent[req.ID] = s
	s.stop = context.AfterFunc(ctx, func() { c.take(req.ID) })
}

// take forgets a request and returns what was noted of it, or nil.
func (c *calls) take(id jsonrpc.ID) *sent {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.sent[id]
	if s != nil {
		delete(c.sent, id)
		s.stop()
	}
	return s
}

// settle matches an answer with its request and prepares it for the SDK. It
// reports whether there is such a request.
func (c *calls) settle(resp *jsonrpc.Response) bool {
	s := c.take(resp.ID)
	if s == nil {
		return false
	}
	s.ex.answered(resp)
	if resp.Error == nil {
		resp.Result = reduce(s.method, resp.Result)
	}
	return true
}

// A handshake knows the requests that make a connection. They are never
// cancelled aloud: a server that let the probe of another era pass in silence has not
// been introduced yet, and some hang up on any other message before initialize.
type handshake struct{ discover, initialize atomic.Value } // of jsonrpc.ID

// note remembers a request that is sent.
func (h *handshake) note(req *jsonrpc.Request) {
	switch req.Method {
	case methodDiscover:
		h.discover.Store(req.ID)
	case methodInitialize:
		h.initialize.Store(req.ID)
	}
}

// cancelled reports whether a message cancels one of them.
func (h *handshake) cancelled(msg jsonrpc.Message) bool {
	req, ok := msg.(*jsonrpc.Request)
	if !ok || req.Method != methodCancelled {
		return false
	}
	var params struct {
		RequestID any `json:"requestId"`
	}
	if json.Unmarshal(req.Params, &params) != nil {
		return false
	}
	id, err := jsonrpc.MakeID(params.RequestID)
	return err == nil && id.IsValid() && (h.discover.Load() == id || h.initialize.Load() == id)
}
