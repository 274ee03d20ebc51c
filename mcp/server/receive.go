package server

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The methods that matter here by name. Others are the SDK's.
const (
	initializeMethod = "initialize"
	discoverMethod   = "server/discover"
	pingMethod       = "ping"
	setLevelMethod   = "logging/setLevel"
	listenMethod     = "subscriptions/listen"

	cancelledMethod   = "notifications/cancelled"
	initializedMethod = "notifications/initialized"
	rootsMethod       = "notifications/roots/list_changed"
	progressMethod    = "notifications/progress"
)

// isMethod reports whether a request of that name is known in some era.
func isMethod(name string) bool {
	switch name {
	case initializeMethod, discoverMethod, pingMethod, setLevelMethod, listenMethod,
		"tools/list", "tools/call", "resources/list", "resources/templates/list", "resources/read",
		"resources/subscribe", "resources/unsubscribe", "prompts/list", "prompts/get", "completion/complete":
		return true
	}
	return false
}

// modernVersion is the first revision without a handshake.
const modernVersion = "2026-07-28"

// supported are the revisions that are spoken here, newest first.
func supported() []string { return mcp.SupportedProtocolVersions() }

// legacyVersions are the revisions of the initialize lineage, newest first.
func legacyVersions() []string {
	return slices.DeleteFunc(supported(), func(v string) bool { return v >= modernVersion })
}

// An exchange is what is known of who sent a request.
type exchange struct {
	session   *mcp.ServerSession
	modern    bool
	version   string // of the protocol
	principal string // who the transport says it is; empty: nobody was asked
	// caps are what the client says that it can; they may be nil.
	caps func() *mcp.ClientCapabilities
}

// asked finds that out. A modern request says everything itself; of another, the
// session knows.
func asked[P mcp.Params](r *mcp.ServerRequest[P]) exchange {
	x := exchange{session: r.Session, version: r.ProtocolVersion(), caps: r.ClientCapabilities}
	x.modern = x.version >= modernVersion
	if r.Extra != nil && r.Extra.TokenInfo != nil {
		x.principal = r.Extra.TokenInfo.UserID
	}
	return x
}

// receive stands before everything that the SDK does with a request of either era
// over any transport. It keeps the budget of concurrent requests, turns a panic
// into an error, and answers all that is about what is served.
func (s *Server) receive(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (res mcp.Result, err error) {
		defer func() {
			if p := recover(); p != nil {
				s.log.ErrorContext(ctx, "a request broke down", "method", method, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
				res, err = nil, errInternal()
			}
		}()
		switch r := req.(type) {
		case *mcp.CallToolRequest:
			return result(s.callTool(ctx, asked(r), r.Params))
		case *mcp.GetPromptRequest:
			return result(s.getPrompt(ctx, asked(r), r.Params))
		case *mcp.ReadResourceRequest:
			return result(s.readResource(ctx, asked(r), r.Params))
		case *mcp.ServerRequest[*mcp.InitializeParams]:
			return s.initialize(ctx, r, next)
		}
		switch method {
		case pingMethod, discoverMethod, setLevelMethod,
			cancelledMethod, initializedMethod, rootsMethod, progressMethod:
			return next(ctx, method, req) // what costs nothing takes no place
		case "resources/unsubscribe":
		default:
			if !s.places.enter() {
				return nil, s.busy()
			}
			defer s.places.leave()
		}
		switch r := req.(type) {
		case *mcp.ListToolsRequest:
			return result(s.listTools(asked(r), given(r.Params).Cursor))
		case *mcp.ListResourcesRequest:
			return result(s.listResources(ctx, asked(r), given(r.Params)))
		case *mcp.ListResourceTemplatesRequest:
			return result(s.listTemplates(ctx, asked(r), given(r.Params)))
		case *mcp.ListPromptsRequest:
			return result(s.listPrompts(ctx, asked(r), given(r.Params)))
		case *mcp.CompleteRequest:
			return result(s.complete(ctx, asked(r), r.Params))
		case *mcp.SubscribeRequest:
			return result(s.subscribe(ctx, asked(r), r.Params.URI))
		case *mcp.UnsubscribeRequest:
			return result(s.unsubscribe(asked(r), r.Params.URI))
		case *mcp.SubscriptionsListenRequest:
			return s.listen(ctx, r, next)
		}
		return next(ctx, method, req)
	}
}

// result is what a method answers, where an answer that isn't there is none.
func result(a *answer, err error) (mcp.Result, error) {
	if err != nil {
		return nil, err
	}
	return a, nil
}

// given are parameters, which may be missing.
func given[P any](params *P) *P {
	if params == nil {
		return new(P)
	}
	return params
}

// busy is the refusal of what finds no place (I9).
func (s *Server) busy() *jsonrpc.Error {
	return rpcError(CodeBusy, fmt.Sprintf("%d requests and streams are open, and no more are served at a time: try again when one has ended", s.budgets.ConcurrentRequests))
}

// initialize settles the version before the SDK remembers it: what a client asks
// for and nobody here speaks would make its session one of the modern era.
func (s *Server) initialize(ctx context.Context, r *mcp.ServerRequest[*mcp.InitializeParams], next mcp.MethodHandler) (mcp.Result, error) {
	if versions := legacyVersions(); !slices.Contains(versions, r.Params.ProtocolVersion) {
		r.Params.ProtocolVersion = versions[0]
	}
	res, err := next(ctx, initializeMethod, r)
	if err == nil {
		s.member(ctx, r.Session) // where there is room, it hears of changes
	}
	return res, err
}

// failed is the answer to a fault of the host while it did something for a client.
// The client learns that, and the log learns what.
func (s *Server) failed(ctx context.Context, doing string, err error) error {
	var told *jsonrpc.Error
	var lacks *lack
	switch {
	case errors.As(err, &lacks):
		return lacks.refusal()
	case errors.As(err, &told):
		return told
	case ctx.Err() != nil:
		return rpcError(jsonrpc.CodeInternalError, "cancelled")
	}
	s.log.ErrorContext(ctx, "a request could not be carried out", "doing", doing, "error", err)
	return errInternal()
}
