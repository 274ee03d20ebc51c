package server

import (
	"encoding/json"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// CodeUnauthorized is that of answers with status 401 and 403 to somebody who is
// not let in, and 503 where that can't be told.
const CodeUnauthorized = -32015

// retryAfter is how many seconds later something may be free.
const retryAfter = "1"

// A refusal is the answer to a request that goes no further: a status of HTTP,
// and in the body an error of JSON-RPC.
type refusal struct {
	status  int
	id      json.RawMessage // where it is known
	code    int64
	message string
	data    any
	close   bool // the connection too: where the next request begins is not known
}

func malformed(message string) *refusal {
	return &refusal{status: http.StatusBadRequest, code: jsonrpc.CodeInvalidRequest, message: message}
}

// full is the refusal of what finds no place (I9), as over every transport.
func full(s *Server) *refusal { return refusing(http.StatusServiceUnavailable, s.busy()) }

// crammed is the refusal of what finds no room of another kind: why says which.
func crammed(why string) *refusal {
	return &refusal{status: http.StatusServiceUnavailable, code: CodeBusy, message: why + ": try again in a moment"}
}

func tooLarge(limit int) *refusal {
	r := refusing(http.StatusRequestEntityTooLarge, requestTooLarge(limit))
	r.close = true
	return r
}

// refusing is a refusal by an error, with a status.
func refusing(status int, e *jsonrpc.Error) *refusal {
	r := &refusal{status: status, code: e.Code, message: e.Message}
	if e.Data != nil {
		r.data = e.Data
	}
	return r
}

// reply answers with a refusal.
func (r refusal) reply(w http.ResponseWriter) {
	if r.close {
		w.Header().Set("Connection", "close")
	}
	if r.status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", retryAfter)
	}
	answerJSON(w, r.status, errorMessage(r.id, r.code, r.message, r.data))
}

// errorMessage is an error of JSON-RPC. The id is null where it isn't known, which
// the SDK would leave out.
func errorMessage(id json.RawMessage, code int64, message string, data any) any {
	type body struct {
		Code    int64  `json:"code"`
		Message string `json:"message"`
		Data    any    `json:"data,omitempty"`
	}
	return struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   body            `json:"error"`
	}{"2.0", id, body{code, message, data}}
}

func answerJSON(w http.ResponseWriter, status int, body any) {
	data, err := json.Marshal(body)
	if err != nil {
		http.Error(w, "internal error", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(append(data, '\n'))
}

func methodNotAllowed(w http.ResponseWriter, allow string) {
	w.Header().Set("Allow", allow)
	refusal{status: http.StatusMethodNotAllowed, code: jsonrpc.CodeInvalidRequest, message: "the method is not allowed here"}.reply(w)
}
