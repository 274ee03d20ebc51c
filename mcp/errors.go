package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"crewhost/tools"
)

// RequiredError says which servers that the settings require could not be
// connected.
type RequiredError struct {
	// Failed are the errors of these servers, in the settings' order.
	Failed []error
}

// Error names every server that failed, in one line.
func (e *RequiredError) Error() string {
	lines := make([]string, len(e.Failed))
	for i, err := range e.Failed {
		lines[i] = err.Error()
	}
	return "required MCP servers could not be connected: " + strings.Join(lines, "; ")
}

// Unwrap returns the errors of the servers.
func (e *RequiredError) Unwrap() []error { return e.Failed }

// A fault is why an answer can't be used, or a transport can't go on. Its text
// is not yet redacted.
type fault struct {
	code   tools.Code
	detail string
	err    error // the cause, may be nil

	// Of answers over HTTP.
	status      int  // or zero
	unsupported bool // whether the server doesn't speak this transport (W3)
}

func (f *fault) Error() string { return f.detail }
func (f *fault) Unwrap() error { return f.err }

func faultf(code tools.Code, format string, args ...any) *fault {
	return &fault{code: code, detail: fmt.Sprintf(format, args...)}
}

// tooLarge is the fault of an answer beyond a limit in bytes.
func tooLarge(limit int) *fault {
	return faultf(tools.CodeResultTooLarge, "the answer is larger than %s", byteCount(limit))
}

// errSessionClosed is the cause that ends the calls of a session being closed.
var errSessionClosed = errors.New("the session is closed")

// cause is the plain reason in err: without the layers that would repeat
// the URL, whose query may be secret.
func cause(err error) error {
	for {
		var u *url.Error
		if !errors.As(err, &u) {
			return err
		}
		err = u.Err
	}
}

// ended reports whether ctx is over, and whether a deadline was the reason.
func ended(ctx context.Context) (over, late bool) {
	return ctx.Err() != nil, errors.Is(ctx.Err(), context.DeadlineExceeded)
}

// wrap makes the error of this server. The cause is for errors.Is and must hold
// no secret; the detail is masked here.
func (s *session) wrap(code tools.Code, detail string, cause error) *tools.Error {
	return &tools.Error{Code: code, Server: s.server.Name, Detail: s.masks.line(detail, 2*maxDetail), Err: cause}
}

// startFailure is why there is nothing to speak over.
func (s *session) startFailure(ctx context.Context, err error) *tools.Error {
	if ctx.Err() != nil {
		return s.failure(ctx, nil, nil, err)
	}
	return s.wrap(tools.CodeInitializationFailed, err.Error(), err)
}

// failure is why a stage of a connect went wrong.
func (s *session) failure(ctx context.Context, link link, ex *exchange, err error) *tools.Error {
	s.mu.Lock()
	stage := s.at
	s.mu.Unlock()
	if over, late := ended(ctx); over {
		if !late {
			return s.wrap(tools.CodeCancelled, "cancelled while connecting", ctx.Err())
		}
		if stage == stageRefresh {
			return s.wrap(tools.CodeListTimeout, fmt.Sprintf("its list of tools was not read within %v", s.server.ConnectTimeout), context.DeadlineExceeded)
		}
		detail := fmt.Sprintf("not connected within %v (stage: %s)", s.server.ConnectTimeout, stage)
		if p, ok := link.(*pipe); ok {
			if words := lastWords(s.masks.redact(p.process.Stderr())); words != "" {
				detail += "; stderr: " + words
			}
		}
		return s.wrap(tools.CodeConnectTimeout, detail, context.DeadlineExceeded)
	}
	if link != nil {
		var f *fault
		if errors.As(link.fault(), &f) {
			code := f.code
			if code == tools.CodeTransportClosed {
				code = tools.CodeInitializationFailed
			}
			return s.wrap(code, f.detail, nil)
		}
	}
	e := s.explain(ctx, ex, err)
	if e.Code == tools.CodeProtocolError && stage == stageNegotiate {
		e.Code = tools.CodeInitializationFailed
	}
	return e
}

// explain says why a request failed, where neither its time nor its link is over.
func (s *session) explain(ctx context.Context, ex *exchange, err error) *tools.Error {
	result, refusal, f := ex.get()
	var own *fault
	if errors.As(err, &own) { // what the SDK was told
		f = own
	}
	switch {
	case errors.Is(context.Cause(ctx), errSessionClosed):
		return s.wrap(tools.CodeTransportClosed, errSessionClosed.Error(), nil)
	case f != nil:
		return s.wrap(f.code, f.detail, nil)
	case refusal != nil:
		code := tools.CodeProtocolError
		if refusal.Code == jsonrpc.CodeMethodNotFound {
			code = tools.CodeMethodNotFound
		}
		return s.wrap(code, s.refusalText(refusal), nil)
	case result != nil: // of which the SDK could make nothing
		return s.wrap(tools.CodeProtocolError, unusable(result), nil)
	case errors.Is(err, sdk.ErrConnectionClosed):
		return s.wrap(tools.CodeTransportClosed, "the connection is closed", nil)
	default:
		return s.wrap(tools.CodeTransportFailed, cause(err).Error(), nil)
	}
}

// unusable says what is wrong with a result in our own words: those of the SDK
// are about its types.
func unusable(result json.RawMessage) string {
	var r struct {
		ProtocolVersion string `json:"protocolVersion"`
	}
	if json.Unmarshal(result, &r) == nil && r.ProtocolVersion != "" {
		return fmt.Sprintf("it speaks the version %q of the protocol, which is not spoken here", cut(r.ProtocolVersion, 64))
	}
	return "its answer is not what the protocol says"
}

// refusalText is what a server says in a JSON-RPC error, never empty (K33).
func (s *session) refusalText(refusal *jsonrpc.Error) string {
	message := s.masks.line(refusal.Message, maxDetail)
	if message == "" {
		message = "no reason given"
	}
	return fmt.Sprintf("the server answered with an error: %s (JSON-RPC error %d)", message, refusal.Code)
}

// faultOf is the fault of a link, or nil.
func faultOf(l link) *fault {
	var f *fault
	if errors.As(l.fault(), &f) {
		return f
	}
	return nil
}
