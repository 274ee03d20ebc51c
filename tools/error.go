package tools

import (
	"errors"
	"fmt"
)

// ErrDuplicate is wrapped by [Registry.Add] when the name is already held.
var ErrDuplicate = errors.New("name already registered")

// Code says in a stable word why a call, or another operation on a server,
// could not be carried out (W9).
type Code string

// The codes of W9, and two of HTTP servers that want credentials.
const (
	CodeInitializationFailed Code = "mcp_initialization_failed"
	CodeTransportFailed      Code = "mcp_transport_failed"
	CodeTransportClosed      Code = "mcp_transport_closed"
	CodeUnauthorized         Code = "mcp_unauthorized" // it wants credentials, or refuses those it got (401)
	CodeForbidden            Code = "mcp_forbidden"    // the credentials it got don't allow this (403)
	CodeProtocolError        Code = "mcp_protocol_error"
	CodeMethodNotFound       Code = "mcp_method_not_found"
	CodeToolNotFound         Code = "tool_not_found"
	CodeArgumentsInvalid     Code = "tool_arguments_invalid"
	CodeResultTooLarge       Code = "mcp_result_too_large"
	CodeCancelled            Code = "operation_cancelled"
	CodeConnectTimeout       Code = "mcp_connect_timeout"
	CodePingTimeout          Code = "mcp_ping_timeout"
	CodeListTimeout          Code = "mcp_list_timeout"
	CodeCallTimeout          Code = "tool_call_timeout"
)

// Error is a host's failure with a stable code. Its text is one line, fit for
// a report: it names the server or the tool and holds no secret.
type Error struct {
	Code   Code
	Server string // the MCP server, or empty
	Tool   string // the tool, or empty
	Detail string // what happened, in one line
	Err    error  // the cause, for errors.Is; may be nil
}

// Error returns the code and what happened.
func (e *Error) Error() string {
	where := ""
	switch {
	case e.Server != "" && e.Tool != "":
		where = fmt.Sprintf("server %q, tool %q: ", e.Server, e.Tool)
	case e.Server != "":
		where = fmt.Sprintf("server %q: ", e.Server)
	case e.Tool != "":
		where = fmt.Sprintf("tool %q: ", e.Tool)
	}
	detail := e.Detail
	if detail == "" && e.Err != nil {
		detail = e.Err.Error()
	}
	return where + detail + " (" + string(e.Code) + ")"
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// CodeOf returns the code of the first [*Error] in err's chain, or "".
func CodeOf(err error) Code {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}
