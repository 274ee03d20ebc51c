package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"crewhost/mcp/wire"
	"crewhost/tools"
)

// Headers of Streamable HTTP that are looked at here.
const (
	sessionHeader  = "Mcp-Session-Id"
	versionHeader  = "Mcp-Protocol-Version"
	lastSeenHeader = "Last-Event-ID"
)

// codeSessionNotFound is what some servers put into the body of a 404 whose
// meaning is that they know no such session.
const codeSessionNotFound = -32001

// A lease is the session that a server of the legacy era keeps for this client: an
// id that goes with each request. It belongs to the mender, which puts it on
// what it sends; the SDK knows the first id alone. When the server has forgotten the
// session, which it says with 404, the lease is renewed by another initialize, once
// for all who need it (K41).
type lease struct {
	mu    sync.Mutex
	id    string // empty: there is none
	shown bool   // whether the SDK knows one
	term  int    // how often it was renewed
	hello greeting
	own   context.CancelFunc // breaks off the server's own stream
	next  *renewal           // under way, or nil
}

// A greeting is how initialize was sent.
type greeting struct {
	header http.Header
	body   []byte
}

// A renewal is one attempt to renew a lease, which many may wait for.
type renewal struct {
	done  chan struct{}
	fault *fault // why it failed, from before done is closed
	left  bool   // whether who carried it out gave up
}

// stamp puts the session on a request and returns the term that it is of.
func (l *lease) stamp(req *http.Request) (term int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.id == "" {
		req.Header.Del(sessionHeader)
	} else {
		req.Header.Set(sessionHeader, l.id)
	}
	return l.term
}

// greet notes how initialize is sent, which is without a session.
func (l *lease) greet(req *http.Request) {
	req.Header.Del(sessionHeader)
	body, err := copyBody(req)
	if err != nil {
		return // it is said when the request is sent
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hello = greeting{header: req.Header.Clone(), body: body}
}

// begin notes the session that an answer to initialize began, and hides it from
// the SDK if that knows another.
func (l *lease) begin(header http.Header) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.id = header.Get(sessionHeader)
	if l.shown {
		header.Del(sessionHeader)
	}
	l.shown = l.shown || l.id != ""
}

// attach makes cancel break off the server's own stream when the lease is
// renewed, and returns the term that it is of.
func (l *lease) attach(cancel context.CancelFunc) (term int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.own = cancel
	return l.term
}

// renew sees to it that the lease is of a later term than the given one. Of all
// who want that, one has initialize sent; the others wait for what comes of it.
func (l *lease) renew(ctx context.Context, term int, initialize func(context.Context, greeting) (id string, f *fault)) *fault {
	for {
		l.mu.Lock()
		if l.term > term {
			l.mu.Unlock()
			return nil
		}
		r := l.next
		if r == nil {
			r = &renewal{done: make(chan struct{})}
			l.next = r
			hello := l.hello
			l.mu.Unlock()
			id, f := initialize(ctx, hello)
			l.mu.Lock()
			l.next = nil
			r.fault, r.left = f, ctx.Err() != nil
			if f == nil {
				l.id = id
				l.term++
				if l.own != nil {
					l.own()
				}
			}
			l.mu.Unlock()
			close(r.done)
			return f
		}
		l.mu.Unlock()
		select {
		case <-r.done:
		case <-ctx.Done():
			return unreachable(ctx.Err())
		}
		if r.fault != nil && !r.left {
			return r.fault
		}
	}
}

// forgotten reports whether a fault says that the session of the request is gone.
func forgotten(f *fault, req *http.Request) bool {
	return f != nil && f.status == http.StatusNotFound && req.Header.Get(sessionHeader) != ""
}

// renew renews the lease after req was refused in a term.
func (m *mender) renew(req *http.Request, term int) *fault {
	return m.lease.renew(req.Context(), term, func(ctx context.Context, hello greeting) (string, *fault) {
		id, f := m.initialize(ctx, req, hello)
		if f == nil {
			if m.renewed != nil {
				m.renewed()
			}
			return id, nil
		}
		return "", &fault{code: f.code, detail: "it has forgotten the session, and begins no other: " + f.detail, err: f.err}
	})
}

// initialize begins another session where req was sent.
func (m *mender) initialize(ctx context.Context, refused *http.Request, hello greeting) (id string, f *fault) {
	req := refused.Clone(ctx)
	req.Header = hello.header.Clone()
	req.Header.Del(versionHeader) // none is agreed on (K13)
	req.Method = http.MethodPost
	setBody(req, hello.body)
	msg, err := wire.Decode(hello.body)
	if err != nil {
		return "", unreachable(err)
	}
	resp, err := m.reach.send(req)
	if err != nil {
		return "", unreachable(err)
	}
	defer resp.Body.Close()
	id = resp.Header.Get(sessionHeader)
	call, _ := msg.(*jsonrpc.Request)
	version, f := m.welcome(resp, call)
	if f != nil {
		return "", f
	}
	if spoken := refused.Header.Get(versionHeader); spoken != "" && version != spoken {
		f = faultf(tools.CodeTransportClosed, "it came back with protocol version %q in place of %q", version, spoken)
		m.lose(f)
		return "", f
	}
	req = req.Clone(ctx)
	req.Header.Del("Mcp-Method") // that was of initialize
	req.Header.Set(versionHeader, version)
	if id != "" {
		req.Header.Set(sessionHeader, id)
	}
	setBody(req, []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`))
	told, err := m.reach.send(req)
	if err != nil {
		return "", unreachable(err)
	}
	drop(told)
	return id, nil
}

// welcome is the version in the answer to initialize.
func (m *mender) welcome(resp *http.Response, call *jsonrpc.Request) (version string, f *fault) {
	answer, f := m.only(resp, call)
	switch {
	case f != nil:
		return "", f
	case answer.Error != nil:
		var refusal *jsonrpc.Error
		if !errors.As(answer.Error, &refusal) {
			return "", unreachable(answer.Error)
		}
		return "", faultf(tools.CodeTransportFailed, "%s (JSON-RPC error %d)", refusal.Message, refusal.Code)
	}
	return versionOf(answer.Result), nil
}

// versionOf is the version of the protocol in a result of initialize.
func versionOf(result json.RawMessage) string {
	var r struct {
		ProtocolVersion string `json:"protocolVersion"`
	}
	if json.Unmarshal(result, &r) != nil {
		return ""
	}
	return r.ProtocolVersion
}

// only is the answer to a call which the SDK does not know of.
func (m *mender) only(resp *http.Response, call *jsonrpc.Request) (*jsonrpc.Response, *fault) {
	var ex exchange
	if f := m.answer(resp, call, &ex); f != nil {
		return nil, f
	}
	if events, ok := resp.Body.(*answerStream); ok {
		for {
			var e event
			err := events.events.read(&e)
			for _, msg := range events.events.messages(&e) {
				if answer, ok := msg.(*jsonrpc.Response); ok && answer.ID == call.ID {
					return answer, nil
				}
			}
			if err != nil {
				return nil, unreachable(fmt.Errorf("reading its answer: %w", err))
			}
		}
	}
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, unreachable(err)
	}
	answer, _ := m.find(data, call)
	if answer == nil {
		return nil, faultf(tools.CodeProtocolError, "its answer to initialize is none (HTTP status %d)", resp.StatusCode)
	}
	return answer, nil
}

// copyBody is the body of a request that can be sent again.
func copyBody(req *http.Request) ([]byte, error) {
	if req.GetBody == nil {
		return nil, fmt.Errorf("%s without a body", req.Method)
	}
	body, err := req.GetBody()
	if err != nil {
		return nil, err
	}
	defer body.Close()
	return io.ReadAll(body)
}

// setBody gives a request a body.
func setBody(req *http.Request, body []byte) {
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	req.Body, _ = req.GetBody()
	req.ContentLength = int64(len(body))
}
