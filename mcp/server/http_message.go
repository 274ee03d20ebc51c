package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"crewhost/mcp/wire"
)

// maxNesting is how deep a message may nest: deeper than any that is meant, and
// not so deep that reading it costs more than its bytes.
const maxNesting = 256

// A message is what a client sent, as far as it must be known before it goes on.
type message struct {
	body    []byte
	id      jsonrpc.ID // invalid: a notification, or a response
	request bool       // with a method, be it a call or a notification
	method  string
	tool    string // or prompt, for the log
	version string // of the protocol, as its _meta says
	resumes bool   // whether it answers what an earlier one was asked
}

func (m *message) call() bool { return m.request && m.id.IsValid() }

// readMessage judges what is in a body (K81, I3). It looks at the text before it
// is decoded, so that what is deep or no JSON at all costs no more than its bytes.
func readMessage(body []byte) (message, *refusal) {
	m := message{body: body}
	parse := &refusal{status: http.StatusBadRequest, code: jsonrpc.CodeParseError, message: "the body is not JSON"}
	if !utf8.Valid(body) {
		return m, parse
	}
	if wire.Nesting(body) > maxNesting {
		return m, malformed("the message is nested too deep")
	}
	if !json.Valid(body) {
		return m, parse
	}
	switch text := bytes.TrimLeft(body, " \t\r\n"); text[0] {
	case '{':
	case '[':
		return m, malformed("batches are not taken: send each message for itself")
	default:
		return m, malformed("the body is no JSON-RPC message")
	}
	msg, err := wire.Decode(body)
	if err != nil {
		r := malformed("the body is no JSON-RPC 2.0 message")
		r.id = idOf(body)
		return m, r
	}
	req, ok := msg.(*jsonrpc.Request)
	if !ok {
		return m, nil
	}
	m.request, m.id, m.method = true, req.ID, req.Method
	var params struct {
		Name  json.RawMessage            `json:"name"`
		Meta  map[string]json.RawMessage `json:"_meta"`
		State json.RawMessage            `json:"requestState"`
	}
	// What is of another type here, the SDK refuses.
	_ = json.Unmarshal(req.Params, &params)
	_ = json.Unmarshal(params.Name, &m.tool)
	_ = json.Unmarshal(params.Meta[mcp.MetaKeyProtocolVersion], &m.version)
	m.resumes = params.State != nil
	return m, nil
}

// idOf returns the id that a mismade message has, if it has one.
func idOf(body []byte) jsonrpc.ID {
	var members map[string]json.RawMessage
	var raw any
	if json.Unmarshal(body, &members) != nil || json.Unmarshal(members["id"], &raw) != nil {
		return jsonrpc.ID{}
	}
	id, err := jsonrpc.MakeID(raw)
	if err != nil {
		return jsonrpc.ID{}
	}
	return id
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
			return nil, release, busy()
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
