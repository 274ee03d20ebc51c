package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"crewhost/mcp/wire"
	"crewhost/tools"
)

// maxSnippet is how much of a body that is no message is looked at, in bytes.
const maxSnippet = 64 << 10

// A mender is the HTTP round trip of one endpoint. For the SDK's Streamable
// HTTP client, much that a server can do in one answer ends the whole session: a
// body that is no JSON, a status without one, a notification refused, an event
// cut short, a session forgotten. The mender turns each into the failure of the one
// request that it answers, and notes what was really said in the request's
// exchange.
type mender struct {
	reach    *reach
	direct   *http.Client  // for requests that the SDK does not make
	shutdown time.Duration // limit of the farewell
	limit    int64         // of a body or an event, in bytes, unpacked (W4)
	redact   func(string) string
	warn     func(string)

	version atomic.Pointer[string] // that is spoken, where it is not the SDK's
	renewed func()                 // told that the server has begun another session; may be nil
	hurry   hurry

	calls     calls
	handshake handshake
	lease     lease

	mu  sync.Mutex
	err *fault // why the session can't go on
}

// RoundTrip implements http.RoundTripper.
func (m *mender) RoundTrip(req *http.Request) (*http.Response, error) {
	out := req.Clone(req.Context())
	if version := m.version.Load(); version != nil {
		out.Header.Set(versionHeader, *version)
	}
	switch req.Method {
	case http.MethodPost:
		return m.post(out)
	case http.MethodGet:
		resp := respond(out, http.StatusOK, &ownStream{mender: m, req: out})
		resp.Header.Set("Content-Type", "text/event-stream")
		return resp, nil
	default:
		return m.farewell(out)
	}
}

// post sends one message.
func (m *mender) post(req *http.Request) (*http.Response, error) {
	msg, err := sending(req)
	if err != nil {
		return nil, err
	}
	call, _ := msg.(*jsonrpc.Request)
	switch {
	case call == nil:
		return m.tell(req)
	case m.handshake.cancelled(call):
		return respond(req, http.StatusAccepted, nil), nil
	case call.Method == methodCancelled: // which a close may have to wait for
		ctx, cancel := context.WithTimeout(req.Context(), m.shutdown)
		defer cancel()
		return m.tell(req.WithContext(ctx))
	case !call.IsCall():
		return m.tell(req)
	}
	m.handshake.note(call)
	if req.Header.Get("Mcp-Method") == methodCallTool && req.Header.Get("Mcp-Name") == "" {
		// The SDK finds no name where the arguments hold a number that no Go
		// type can (K31).
		var p struct {
			Name string `json:"name"`
		}
		if json.Unmarshal(call.Params, &p) == nil {
			req.Header.Set("Mcp-Name", p.Name)
		}
	}
	ex := exchangeOf(req.Context())
	resp, f, err := m.ask(req, call, ex)
	if err != nil {
		ex.failed(unreachable(err))
		return nil, err
	}
	if f != nil {
		ex.failed(f)
		setMessage(resp, &jsonrpc.Response{ID: call.ID, Error: &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: f.detail}})
	}
	return resp, nil
}

// ask sends a call and reads its answer; the fault is why there is none. A call
// that was refused because its session is forgotten is sent again, once, in another
// session (K41): refused, it had no effect.
func (m *mender) ask(req *http.Request, call *jsonrpc.Request, ex *exchange) (*http.Response, *fault, error) {
	begins := call.Method == methodInitialize
	for again := false; ; again = true {
		m.calls.add(req.Context(), call)
		term := m.lease.stamp(req)
		if begins {
			m.lease.greet(req)
		}
		resp, err := m.reach.send(req)
		if ex != nil && !undialled(err) {
			ex.sent.Store(true)
		}
		if err != nil {
			return nil, nil, err
		}
		if begins {
			m.lease.begin(resp.Header)
		} else {
			resp.Header.Del(sessionHeader) // the SDK would want it to be the first one
		}
		f := m.answer(resp, call, ex)
		switch {
		case !forgotten(f, req):
			return resp, f, nil
		case again:
			f.detail = "it forgets each session at once: " + f.detail
			return resp, f, nil
		}
		if f := m.renew(req, term); f != nil {
			return resp, f, nil
		}
		body, err := req.GetBody()
		if err != nil {
			return nil, nil, err
		}
		req.Body = body
	}
}

// lose notes that the session can't go on.
func (m *mender) lose(f *fault) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err == nil {
		m.err = f
	}
}

func (m *mender) fault() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err == nil {
		return nil
	}
	return m.err
}

// unreachable is the fault of a request that got no answer.
func unreachable(err error) *fault {
	var f *fault
	if errors.As(err, &f) {
		return f
	}
	err = cause(err)
	return &fault{code: tools.CodeTransportFailed, detail: strings.ReplaceAll(err.Error(), "\n", "; "), err: err}
}

// undialled reports whether a request failed before there was a connection for it.
func undialled(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// sending is the message in the body of a request.
func sending(req *http.Request) (jsonrpc.Message, error) {
	data, err := copyBody(req)
	if err != nil {
		return nil, err
	}
	return wire.Decode(data)
}

// tell sends what has no answer: a notification, or the answer to a server's own
// request. Whatever comes back, the session goes on (K43).
func (m *mender) tell(req *http.Request) (*http.Response, error) {
	ctx, done := m.hurry.within(req.Context())
	defer done()
	req = req.WithContext(ctx)
	m.lease.stamp(req)
	resp, err := m.reach.send(req)
	if err != nil {
		return nil, err
	}
	resp.Header.Del(sessionHeader)
	if resp.StatusCode >= 300 && resp.StatusCode < 400 {
		return resp, nil
	}
	drop(resp)
	resp.StatusCode, resp.Body = http.StatusAccepted, http.NoBody
	return resp, nil
}

// answer reads and mends the answer to a call. The fault is why there is none.
func (m *mender) answer(resp *http.Response, call *jsonrpc.Request, ex *exchange) *fault {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	success := resp.StatusCode >= 200 && resp.StatusCode < 300
	switch {
	case success && kind == "text/event-stream":
		resp.Body = &answerStream{mender: m, req: resp.Request, events: m.mendStream(resp.Body, ex)}
		resp.Header.Set("Content-Type", kind)
		resp.ContentLength = -1
		return nil
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		return nil // the client decides
	}
	limit := m.limit
	if !success {
		limit = maxSnippet
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	drop(resp)
	resp.Body = http.NoBody
	switch {
	case err != nil:
		return unreachable(fmt.Errorf("reading its answer: %w", err))
	case int64(len(data)) > limit && success:
		return tooLarge(int(limit))
	}
	answer, known := m.find(data, call)
	switch {
	case answer != nil && !noSession(resp, answer):
		m.calls.settle(answer)
		// The SDK reads an error in the body whatever the status is.
		setMessage(resp, answer)
		return nil
	case !success:
		f := refused(resp, m.snippet(data))
		resp.Body = io.NopCloser(bytes.NewReader(data))
		return f
	case known:
		return faultf(tools.CodeProtocolError, "its answer has another id than the request")
	case len(bytes.TrimSpace(data)) == 0:
		return faultf(tools.CodeProtocolError, "it gave no answer (HTTP status %d)", resp.StatusCode)
	default:
		return faultf(tools.CodeProtocolError, "its answer is not JSON-RPC but %q: %s", kind, m.snippet(data))
	}
}

// find is the answer to call in a body; known says that there is JSON-RPC in
// it at all.
func (m *mender) find(data []byte, call *jsonrpc.Request) (answer *jsonrpc.Response, known bool) {
	data = bytes.TrimSpace(data)
	if len(data) == 0 {
		return nil, false
	}
	msgs, ok := parse(data)
	for _, msg := range msgs {
		if resp, ok := msg.(*jsonrpc.Response); ok && resp.ID == call.ID {
			return resp, true
		}
	}
	return nil, ok
}

// noSession reports whether an answer says that the session is gone.
func noSession(resp *http.Response, answer *jsonrpc.Response) bool {
	var refusal *jsonrpc.Error
	return resp.StatusCode == http.StatusNotFound && resp.Request.Header.Get(sessionHeader) != "" &&
		errors.As(answer.Error, &refusal) && refusal.Code == codeSessionNotFound
}

// setMessage makes msg the whole of a successful answer.
func setMessage(resp *http.Response, msg jsonrpc.Message) {
	data, err := jsonrpc.EncodeMessage(msg)
	if err != nil {
		data = nil // a message that was decoded can be encoded
	}
	resp.StatusCode = http.StatusOK
	resp.Status = ""
	resp.Header.Set("Content-Type", "application/json")
	resp.Header.Del("Content-Length")
	resp.ContentLength = int64(len(data))
	resp.Body = io.NopCloser(bytes.NewReader(data))
}

// isStream reports whether an answer is a stream of events.
func isStream(resp *http.Response) bool {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	return resp.StatusCode == http.StatusOK && kind == "text/event-stream"
}

// farewell ends the session at the server, in bounded time.
func (m *mender) farewell(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(req.Context(), m.shutdown)
	defer cancel()
	ctx, done := m.hurry.within(ctx)
	defer done()
	req = req.WithContext(ctx)
	m.lease.stamp(req)
	resp, err := m.reach.send(req)
	if err == nil {
		drop(resp)
		resp.Body = http.NoBody
	}
	return resp, err
}

// respond makes an answer to a request that is not sent.
func respond(req *http.Request, status int, body io.ReadCloser) *http.Response {
	if body == nil {
		body = http.NoBody
	}
	return &http.Response{
		StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: make(http.Header), Body: body, ContentLength: -1, Request: req,
	}
}

// drop closes a body. A short one is read before, so that the connection can be
// used again; one of unknown length may never end.
func drop(resp *http.Response) {
	if resp.ContentLength > 0 && resp.ContentLength <= maxSnippet {
		_, _ = io.CopyN(io.Discard, resp.Body, resp.ContentLength)
	}
	_ = resp.Body.Close()
}

// snippet is the beginning of a body, as text.
func (m *mender) snippet(data []byte) string {
	return oneLine(m.redact(string(data[:min(len(data), maxSnippet)])), maxDetail)
}
