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

	"crewhost/tools"
)

// versionHeader says which version of the protocol a request speaks.
const versionHeader = "Mcp-Protocol-Version"

// maxSnippet is how much of a body that is no message is looked at, in bytes.
const maxSnippet = 64 << 10

// A mender is the HTTP round trip of one endpoint. For the SDK's Streamable
// HTTP client, much that a server can do in one answer ends the whole session: a
// body that is no JSON, a status without one, a notification refused, an event
// cut short. The mender turns each into the failure of the one request
// that it answers, and notes what was really said in the request's exchange.
type mender struct {
	next     http.RoundTripper
	origin   string
	header   http.Header   // the configured headers
	shutdown time.Duration // limit of the farewell
	limit    int64         // of a body or an event, in bytes, unpacked (W4)
	redact   func(string) string

	version atomic.Pointer[string] // that is spoken, where it is not the SDK's
	hurry   chan struct{}          // closed when farewells must not take time
	hurried sync.Once

	calls     calls
	handshake handshake
}

// RoundTrip implements http.RoundTripper.
func (m *mender) RoundTrip(req *http.Request) (*http.Response, error) {
	if origin(req.URL) != m.origin {
		return nil, faultf(tools.CodeTransportFailed, "it leads to another origin, %s", origin(req.URL))
	}
	out := req.Clone(req.Context())
	for name, values := range m.header {
		out.Header[name] = values
	}
	if version := m.version.Load(); version != nil {
		out.Header.Set(versionHeader, *version)
	}
	switch req.Method {
	case http.MethodPost:
		return m.post(out)
	case http.MethodGet:
		return m.stream(out)
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
	m.calls.add(req.Context(), call)
	resp, err := m.next.RoundTrip(req)
	if ex != nil && !undialled(err) {
		ex.sent.Store(true)
	}
	if err != nil {
		ex.failed(unreachable(err))
		return nil, err
	}
	if f := m.answer(resp, call, ex); f != nil {
		ex.failed(f)
		if passed(resp.StatusCode) {
			return resp, nil
		}
		setMessage(resp, &jsonrpc.Response{ID: call.ID, Error: &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: f.detail}})
	}
	return resp, nil
}

// passed reports whether the SDK, or http.Client, has to see a status: redirects,
// what asks for authorization, and that the session is gone.
func passed(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound:
		return true
	}
	return status >= 300 && status < 400
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
	if req.GetBody == nil {
		return nil, fmt.Errorf("%s without a body", req.Method)
	}
	body, err := req.GetBody()
	if err != nil {
		return nil, err
	}
	defer body.Close()
	data, err := io.ReadAll(body)
	if err != nil {
		return nil, err
	}
	return jsonrpc.DecodeMessage(data)
}

// tell sends what has no answer: a notification, or the answer to a server's own
// request. Whatever comes back, the session goes on (K43).
func (m *mender) tell(req *http.Request) (*http.Response, error) {
	ctx, done := m.hurrying(req.Context())
	defer done()
	resp, err := m.next.RoundTrip(req.WithContext(ctx))
	if err != nil {
		return nil, err
	}
	if passed(resp.StatusCode) && resp.StatusCode < 400 {
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
		resp.Body = m.mendStream(resp.Body, ex)
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
	case answer != nil:
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
			m.calls.settle(resp)
			return resp, true
		}
	}
	return nil, ok
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

// stream opens the stream for the server's own messages, or resumes that of an answer.
func (m *mender) stream(req *http.Request) (*http.Response, error) {
	ex := exchangeOf(req.Context())
	if ex == nil || ex.connecting {
		resp := respond(req, http.StatusOK, &ownStream{next: m.next, mend: m.mendStream, req: req})
		resp.Header.Set("Content-Type", "text/event-stream")
		return resp, nil
	}
	resp, err := m.next.RoundTrip(req)
	if err == nil && isStream(resp) {
		resp.Body = m.mendStream(resp.Body, ex)
	}
	return resp, err
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
	ctx, done := m.hurrying(ctx)
	defer done()
	resp, err := m.next.RoundTrip(req.WithContext(ctx))
	if err == nil {
		drop(resp)
		resp.Body = http.NoBody
	}
	return resp, err
}

// hurrying returns a context that also ends when there is no time any more for
// what nobody waits for. The SDK does, when it closes a session.
func (m *mender) hurrying(ctx context.Context) (_ context.Context, done func()) {
	ctx, cancel := context.WithCancel(ctx)
	told := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		select {
		case <-m.hurry:
			cancel()
		case <-told:
		}
	})
	return ctx, func() {
		close(told)
		watching.Wait()
		cancel()
	}
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
