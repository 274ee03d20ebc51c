// Package tools holds what a host and its agents mean by a tool: a name with a
// JSON Schema, a call with JSON arguments, and a result made of typed content.
//
// The package knows neither MCP nor models. An MCP server's tool, a built-in and
// a crew served as a tool all implement [Tool] and meet in one [Registry]; a
// permission guard stands in front of the registry, so that nothing here decides
// who may call what.
//
//	var reg tools.Registry
//	if err := reg.Add(tool); err != nil { … } // errors.Is(err, tools.ErrDuplicate)
//	t, ok := reg.Lookup("file_read")
//	res, err := t.Call(ctx, tools.Call{Name: "file_read", Arguments: args})
//
// A tool that ran and failed returns a [Result] with IsError set: the model reads
// it and may try something else. An error means that the host could not carry
// the call out (the server is gone, the deadline passed); it carries a stable
// [Code] when it is an [*Error].
package tools

import (
	"context"
	"encoding/json"
)

// Tool is something an agent can call. Implementations must allow concurrent
// calls: one answer of a model may ask for several at once.
type Tool interface {
	// Definition describes the tool. It is cheap, and two calls between which
	// the tool was not replaced in its registry return the same.
	Definition() Definition

	// Call runs the tool and returns when it is done or ctx ends. A failure of
	// the tool itself is a Result with IsError; an error is a failure of the
	// host, and then the outcome of the call may be unknown.
	Call(ctx context.Context, call Call) (Result, error)
}

// Definition is a tool as it is offered to a model and listed in a manifest.
type Definition struct {
	// Name is the name that agents, crew files and the policy use. Names are
	// case-sensitive.
	Name string
	// Title is a name for people; it may be empty.
	Title string
	// Description is untrusted text when Server is set (R4).
	Description string
	// InputSchema is a JSON Schema kept whole, byte for byte as it came,
	// unknown keywords included (W7). Empty means that nothing is known.
	InputSchema json.RawMessage
	// OutputSchema describes Result.Structured; it may be empty.
	OutputSchema json.RawMessage
	// Annotations are hints of whoever offers the tool. They never grant
	// anything (R4).
	Annotations Annotations
	// Server names the MCP server that offers the tool; it is empty for a
	// built-in.
	Server string
	// Original is the name that the server itself uses. It is empty when it
	// equals Name.
	Original string
	// Given are the digests of what the server gave, where this is less: without what
	// can't be seen, or cut. A pin holds on to all of it (R4).
	Given *Digests
}

// ServerName is the tool's name as its own server knows it.
func (d Definition) ServerName() string {
	if d.Original != "" {
		return d.Original
	}
	return d.Name
}

// Annotations are the hints of MCP's ToolAnnotations; nil means not said.
type Annotations struct {
	ReadOnly    *bool `json:"readOnlyHint,omitempty"`
	Destructive *bool `json:"destructiveHint,omitempty"`
	Idempotent  *bool `json:"idempotentHint,omitempty"`
	OpenWorld   *bool `json:"openWorldHint,omitempty"`
}

// Call is one request to run a tool.
type Call struct {
	// ID is the model's id of the call, or empty outside a conversation.
	ID string
	// Name is the registered name of the tool.
	Name string
	// Arguments is one JSON object. Its numbers and unknown members reach the
	// tool as they are (W8). Empty means no arguments.
	Arguments json.RawMessage
	// Agent and Task are the keys of who calls, for policy and audit; both are
	// empty when a person or another client calls.
	Agent, Task string
	// Progress, where set, is told how far the tool is, as often as it likes and
	// from any goroutine, until Call returns. It returns at once.
	Progress func(Progress) `json:"-"`
}

// Progress is how far a call is.
type Progress struct {
	Done    float64 // grows with each
	Total   float64 // 0: not known
	Message string  // one line; may be empty
}

// Result is what a tool gives back.
type Result struct {
	// Content is what the model reads, in order.
	Content []Content
	// Structured is the machine-readable form of the result, or empty.
	Structured json.RawMessage
	// IsError says that the tool failed; Content then says how.
	IsError bool
	// Unasked says of a tool that asks a person that nobody was asked: Content is
	// what the host says in that person's place, and nobody's word.
	Unasked bool
}

// Bytes is the size of what there is to read: texts, data and structure.
func (r Result) Bytes() int {
	n := len(r.Structured)
	for _, c := range r.Content {
		n += len(c.Text) + len(c.Data) + len(c.Raw)
	}
	return n
}

// Text returns a successful result of one text block.
func Text(s string) Result {
	return Result{Content: []Content{{Kind: KindText, Text: s}}}
}

// Failure returns a failed result of one text block.
func Failure(s string) Result {
	r := Text(s)
	r.IsError = true
	return r
}

// Kind is the kind of a content block.
type Kind string

// The kinds of content (W10).
const (
	KindText     Kind = "text"
	KindImage    Kind = "image"
	KindAudio    Kind = "audio"
	KindResource Kind = "resource"      // an embedded resource: URI, and Text or Data
	KindLink     Kind = "resource_link" // a link to a resource: URI, Name
	KindUnknown  Kind = "unknown"       // a block of a type unknown here: Raw
)

// Content is one block of a result. Which fields are set depends on Kind.
type Content struct {
	Kind Kind            `json:"type"`
	Text string          `json:"text,omitempty"`
	Data []byte          `json:"data,omitempty"`     // decoded bytes
	MIME string          `json:"mimeType,omitempty"` // of Data, or of the resource
	URI  string          `json:"uri,omitempty"`
	Name string          `json:"name,omitempty"`
	Raw  json.RawMessage `json:"raw,omitempty"` // bounded JSON of an unknown block
}
