package server

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"crewhost/mcp/wire"
)

// A message is what a client sent, as far as it must be known before it goes on.
type message struct {
	body    []byte
	id      json.RawMessage // as the client wrote it; nil: it is no call
	request bool            // with a method, be it a call or a notification
	method  string
	params  json.RawMessage
	name    string // of the tool or the prompt, for the log
	modern  bool   // whether its _meta says so
	resumes bool   // whether it answers what an earlier one was asked
}

func (m *message) call() bool { return m.request && m.id != nil }

// unheard reports whether a message is one that nobody does anything with: a
// notification that nobody knows, or a call's method without the id that would
// make it one.
func (m *message) unheard() bool {
	return m.body == nil || m.request && m.id == nil && !isNotification(m.method)
}

// isNotification reports whether a notification of that name means something. The
// SDK answers others with a status of fault, though nobody answers a notification
// (K79).
func isNotification(name string) bool {
	switch name {
	case initializedMethod, cancelledMethod, progressMethod, rootsMethod:
		return true
	}
	return false
}

// readMessage judges what is in a body (K81, I3).
func (s *Server) readMessage(body []byte) (message, *refusal) {
	msg, bad := openEnvelope(body)
	if bad != nil {
		r := refusing(http.StatusBadRequest, bad.err)
		r.id = bad.id
		return message{}, r
	}
	if msg == nil {
		return message{}, nil // it is passed over
	}
	req, ok := msg.(*jsonrpc.Request)
	if !ok {
		return message{body: body}, nil
	}
	m := message{body: body, request: true, method: req.Method, params: req.Params}
	if !req.IsCall() {
		return m, nil
	}
	m.id = giveID(req.ID.Raw())
	if _, isText := req.ID.Raw().(string); isText && m.id[0] != '"' {
		// The SDK, which reads the body again, would answer by another number.
		return m, malformed("the id is neither a text nor a number without a fraction, at most 2^53")
	}
	modern, wrong := s.checkMeta(req.Params)
	if wrong != nil {
		return m, refusing(http.StatusBadRequest, wrong)
	}
	m.modern = modern
	if name, ok := wire.Member(req.Params, "name"); ok {
		_ = json.Unmarshal(name, &m.name) // what is no text, the SDK refuses
	}
	_, m.resumes = wire.Member(req.Params, "requestState")
	return m, nil
}

// freeBytes of a body are read for anybody. What is beyond them takes of the
// room that all bodies share, so that neither many small ones nor a few large ones
// hold more than was allowed for.
const freeBytes = 8 << 10

// A room is how many bytes bodies may hold together.
type room struct {
	mu   sync.Mutex
	left int
}

func (r *room) take(n int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n > r.left {
		return false
	}
	r.left -= n
	return true
}

func (r *room) give(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left += n
}

// read reads a body of at most limit bytes, whatever its Content-Length claims
// (K83). The room that it takes is given back by release, which may always be
// called.
func (r *room) read(req *http.Request, limit int) (body []byte, release func(), refused *refusal) {
	taken := 0
	release = func() {
		r.give(taken)
		taken = 0
	}
	if req.ContentLength > int64(limit) {
		return nil, release, tooLarge(limit)
	}
	size := min(limit+1, freeBytes)
	if n := req.ContentLength; n >= 0 && n < int64(size) {
		size = int(n) + 1 // and one to find the end in
	}
	body = make([]byte, 0, size)
	for {
		n, err := req.Body.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		switch {
		case len(body) > limit:
			return nil, release, tooLarge(limit)
		case errors.Is(err, io.EOF):
			return body, release, nil
		case errors.Is(err, os.ErrDeadlineExceeded):
			return nil, release, &refusal{status: http.StatusRequestTimeout, code: jsonrpc.CodeInvalidRequest, message: "the body did not come in time", close: true}
		case err != nil:
			r := malformed("the body ended early")
			r.close = true
			return nil, release, r
		}
		if len(body) < cap(body) {
			continue
		}
		more := min(2*cap(body), limit+1) - cap(body)
		if !r.take(more) {
			return nil, release, crammed("too many bodies are being read")
		}
		taken += more
		grown := make([]byte, len(body), cap(body)+more)
		copy(grown, body)
		body = grown
	}
}

// checkContent wants a body of JSON, by whatever name in whatever case, and not
// compressed: that would be larger than it says.
func checkContent(h http.Header) *refusal {
	kind, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	if err != nil || kind != "application/json" || len(h.Values("Content-Type")) > 1 {
		return &refusal{status: http.StatusUnsupportedMediaType, code: jsonrpc.CodeInvalidRequest, message: "the Content-Type is not application/json"}
	}
	if coding := h.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return &refusal{status: http.StatusUnsupportedMediaType, code: jsonrpc.CodeInvalidRequest, message: "bodies are not taken compressed"}
	}
	return nil
}

// accepts reports whether the Accept headers of a request take each of the types.
// Without any, all are taken.
func accepts(values []string, types ...string) bool {
	if len(values) == 0 {
		return true
	}
	taken := map[string]bool{}
	for _, value := range values {
		for part := range strings.SplitSeq(value, ",") {
			kind, params, _ := strings.Cut(part, ";")
			taken[strings.ToLower(strings.TrimSpace(kind))] = !refusedQuality(params)
		}
	}
	for _, t := range types {
		family, _, _ := strings.Cut(t, "/")
		best, said := taken[t]
		if !said {
			if best, said = taken[family+"/*"]; !said {
				best = taken["*/*"]
			}
		}
		if !best {
			return false
		}
	}
	return true
}

// refusedQuality reports whether the parameters of a type say q=0.
func refusedQuality(params string) bool {
	for param := range strings.SplitSeq(params, ";") {
		name, value, _ := strings.Cut(param, "=")
		if strings.EqualFold(strings.TrimSpace(name), "q") {
			value = strings.TrimSpace(value)
			return value != "" && strings.Trim(value, "0.") == ""
		}
	}
	return false
}
