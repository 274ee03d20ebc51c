package server

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

const (
	eventStream = "text/event-stream"
	// signOfLife is a comment, which clients pass over.
	signOfLife = ": keepalive\n\n"
)

// A reply is the answer to one request. Each piece of it must be taken within the
// timeout, so that who doesn't read does not keep others waiting; an answer that is
// long in coming shows signs of life; and an error that the SDK tells as plain text
// becomes one of JSON-RPC.
type reply struct {
	w       http.ResponseWriter
	rc      *http.ResponseController
	timeout time.Duration
	outbox  *outbox
	header  http.Header // the handler's: a sign of life may have gone out before it

	// These are set before the handler runs.
	id      json.RawMessage   // of the request, for errors
	call    bool              // whether it must be answered
	started func(http.Header) // is told before anything is sent; may be nil

	mu     sync.Mutex
	status int
	text   *bytes.Buffer // of an error in plain text; nil: there is none
	late   bool          // the status came after a sign of life
	ended  bool

	// The timer sends what was written and is not yet sent, or a sign of life. It is
	// nil where there are none, and everything is sent at once.
	timer    *time.Timer
	every    time.Duration // a sign of life
	unsent   bool
	extended time.Time // when the client last got its time
}

func newReply(w http.ResponseWriter, timeout time.Duration, outbox *outbox) *reply {
	return &reply{w: w, rc: http.NewResponseController(w), timeout: timeout, outbox: outbox, header: http.Header{}}
}

// Header returns the headers that the first write sends.
func (r *reply) Header() http.Header { return r.header }

// WriteHeader sends the status and the headers.
func (r *reply) WriteHeader(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.start(status)
}

func (r *reply) start(status int) {
	if r.status != 0 {
		r.late = r.late || status >= http.StatusBadRequest
		return
	}
	r.status = status
	if r.started != nil {
		r.started(r.header)
	}
	if status >= http.StatusBadRequest && status != http.StatusNotFound && strings.HasPrefix(r.header.Get("Content-Type"), "text/plain") {
		r.text = new(bytes.Buffer)
		return
	}
	maps.Copy(r.w.Header(), r.header)
	r.extend()
	r.w.WriteHeader(status)
}

// extend gives the client its time for one more piece, or nine tenths of it.
func (r *reply) extend() {
	now := time.Now()
	if r.ended || now.Sub(r.extended) < r.timeout/10 {
		return
	}
	r.extended = now
	_ = r.rc.SetWriteDeadline(now.Add(r.timeout)) // in tests there is no connection
}

// maxErrorText bounds an error in plain text.
const maxErrorText = 1 << 10

// Write sends a piece.
func (r *reply) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.start(http.StatusOK)
	if r.text != nil {
		r.text.Write(p[:min(len(p), maxErrorText-min(r.text.Len(), maxErrorText))])
		return len(p), nil
	}
	if r.late {
		p = asEvent(p)
	}
	r.extend()
	defer r.outbox.put(len(p), func() { _ = r.rc.SetWriteDeadline(time.Now()) })()
	if _, err := r.w.Write(p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// flushAfter is how long what was written waits for the end, so that a short answer
// goes out at once and whole: most calls say one thing, and are over.
const flushAfter = time.Millisecond

// FlushError has what was written sent.
func (r *reply) FlushError() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.text != nil || r.ended:
		return nil
	case r.timer == nil:
		return r.rc.Flush()
	}
	r.unsent = true
	r.timer.Reset(flushAfter) // the next write has the error
	return nil
}

// asEvent frames an answer that is to come by itself as one of the stream that has
// begun meanwhile. What is no JSON is nothing for a client.
func asEvent(p []byte) []byte {
	var line bytes.Buffer
	if json.Compact(&line, p) != nil {
		return nil
	}
	return append(append([]byte("event: message\ndata: "), line.Bytes()...), "\n\n"...)
}

// live has signs of life sent from time to time, on a stream or where an answer
// may come as one.
func (r *reply) live(every time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.every = every
	r.timer = time.AfterFunc(every, r.tick)
}

// tick is what the timer does.
func (r *reply) tick() {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.ended || r.text != nil:
		return
	case r.unsent:
		r.unsent = false
		if r.rc.Flush() == nil {
			r.timer.Reset(r.every)
		}
		return
	case r.status == 0:
		r.status = http.StatusOK
		r.w.Header().Set("Content-Type", eventStream)
		r.w.Header().Set("Cache-Control", "no-cache, no-transform")
	case r.w.Header().Get("Content-Type") != eventStream:
		return
	}
	r.extend()
	if _, err := r.w.Write([]byte(signOfLife)); err == nil && r.rc.Flush() == nil {
		r.timer.Reset(r.every)
	}
}

// end ends the reply once the handler has: nothing is sent after it. The client
// has the timeout, once, for all that is still on its way.
func (r *reply) end() (status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.timer != nil {
		r.timer.Stop()
	}
	r.extend()
	r.ended = true
	switch {
	case r.text != nil:
		r.header.Del("Content-Length")
		maps.Copy(r.w.Header(), r.header)
		refusal{status: r.status, id: r.id, code: jsonrpc.CodeInvalidRequest, message: strings.TrimSpace(r.text.String())}.reply(r.w)
	case r.status == 0 && r.call:
		r.status = http.StatusServiceUnavailable
		refusal{status: r.status, id: r.id, code: CodeBusy, message: "the request was not answered: the session or the server ended"}.reply(r.w)
	case r.status == 0:
		r.status = http.StatusOK
	}
	return r.status
}
