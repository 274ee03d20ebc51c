package server

import (
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"crewhost/tools"
)

var (
	// ErrNotFound says that there is no such resource or prompt.
	ErrNotFound = errors.New("not found")
	// ErrNoClient says that a tool can't ask: the client did not say that it
	// would answer, too many questions are open, or nobody hears them.
	ErrNoClient = errors.New("the client can't be asked")
)

// The codes of what this server refuses. They are of the range that JSON-RPC
// leaves to implementations and that MCP does not claim.
const (
	CodeBusy             = -32010 // so many requests and streams are open that this one has no place (I9)
	CodeRequestTooLarge  = -32011 // the message is larger than RequestBytes
	CodeResponseTooLarge = -32012 // the answer would be larger than ResponseBytes
	CodeMetadataTooLarge = -32013 // its _meta is larger than MetadataBytes
	CodeTooManyListeners = -32014 // Subscribers or SubscribedURIs are used up (I10)
	CodeTooManyCalls     = -32016 // SearchCalls by tool_call are under way for this client (I11)
)

// codeResourceNotFound is what eras before 2026-07-28 say where a resource is
// not there; since then it is CodeInvalidParams.
const codeResourceNotFound = -32002

// codeUnsupportedVersion is the modern era's for a version in _meta that is not
// spoken here (O7).
const codeUnsupportedVersion = -32022

func rpcError(code int64, message string) *jsonrpc.Error {
	return &jsonrpc.Error{Code: code, Message: message}
}

// The refusals that are the same over every transport.

func noMethod(name string) *jsonrpc.Error {
	return rpcError(jsonrpc.CodeMethodNotFound, fmt.Sprintf("method not found: %q", cut(name, 100)))
}

func requestTooLarge(limit int) *jsonrpc.Error {
	return rpcError(CodeRequestTooLarge, fmt.Sprintf("the message is larger than %d bytes", limit))
}

// errInternal is all that a client learns of a fault of the host.
func errInternal() *jsonrpc.Error {
	return rpcError(jsonrpc.CodeInternalError, "internal error")
}

// errRound is the refusal of what came through [tools.MaxHops] hosts.
var errRound = rpcError(jsonrpc.CodeInvalidRequest, fmt.Sprintf("it came through %d hosts, which looks like hosts that are servers of each other", tools.MaxHops))

func isNotFound(err error) bool { return errors.Is(err, ErrNotFound) }
