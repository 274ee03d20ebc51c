// Package server serves tools, resources and prompts to MCP clients: over stdio
// and over Streamable HTTP, to clients of the modern era (2026-07-28) and of the
// initialize lineage alike, on one stream and on one URL (R1, O16, O22).
//
// Tools come by a [permission.Guard], so that a client's call goes through the
// same policy as an agent's; there is no other way in.
//
//	s, err := server.New(server.Config{Name: "crewhost", Version: "1.0.0", Guard: guard})
//	err = s.ServeStdio(ctx, os.Stdin, os.Stdout)
//
// Over HTTP it listens on loopback unless told otherwise, and what it asks of
// clients is in its [HTTPConfig]:
//
//	h, err := s.ListenHTTP(ctx, server.HTTPConfig{Tokens: []server.Token{server.NewToken("ci", value)}})
//	err = h.Serve(ctx) // until ctx ends
package server

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"crewhost/tools"
	"crewhost/tools/permission"
)

// Config is what a server serves. Name, Version and Guard must be set.
type Config struct {
	Name, Title, Version string // of this server, told to clients
	Instructions         string // for a client's model; may be empty

	// Guard is the way to the tools, and Tools are the names of those that are
	// served, in any order; nil: all that the guard knows, also those that come
	// later. A name that the guard does not know is not listed; it is when the
	// tool comes, after [Server.Refresh].
	Guard *permission.Guard
	Tools []string

	// Resources and Prompts are passed through; nil: none are offered.
	Resources Resources
	Prompts   Prompts

	Budgets Budgets
	Logger  *slog.Logger // nil: discard
}

// Resources are what clients may read. An implementation may also be a
// [Watcher], and a [Completer].
type Resources interface {
	// Resources returns all resources, in a stable order.
	Resources(ctx context.Context) ([]Resource, error)
	// Templates returns all templates of resources, in a stable order.
	Templates(ctx context.Context) ([]Template, error)
	// Read returns the contents, as blocks of [tools.KindResource]. A URI that
	// is not served is [ErrNotFound], wrapped or not.
	Read(ctx context.Context, uri string) ([]tools.Content, error)
}

// Watcher is told which resources somebody wants to hear of.
type Watcher interface {
	// Watch has changed be called, from any goroutine, whenever the resource has
	// changed, until stop is called.
	Watch(ctx context.Context, uri string, changed func()) (stop func(), err error)
}

// Completer completes the argument of a prompt or of a resource template.
type Completer interface {
	// Complete returns at most 100 values that begin with, or otherwise fit, what
	// was written so far. ref is the prompt's name or the template.
	Complete(ctx context.Context, ref, argument, written string, others map[string]string) ([]string, error)
}

// Prompts are texts that clients may have filled in. An implementation may also
// be a [Completer].
type Prompts interface {
	// Prompts returns all prompts, in a stable order.
	Prompts(ctx context.Context) ([]Prompt, error)
	// Prompt fills in a prompt. A name that is not served is [ErrNotFound].
	Prompt(ctx context.Context, name string, arguments map[string]string) (PromptText, error)
}

// Resource is something that can be read.
type Resource struct {
	URI, Name, Title, Description, MIME string
	Size                                int64 // bytes; 0: not known
}

// Template is a family of resources, by a URI template of RFC 6570.
type Template struct {
	Template, Name, Title, Description, MIME string
}

// Prompt is a text with arguments.
type Prompt struct {
	Name, Title, Description string
	Arguments                []PromptArgument
}

// PromptArgument is an argument of a prompt.
type PromptArgument struct {
	Name, Title, Description string
	Required                 bool
}

// PromptText is a prompt, filled in.
type PromptText struct {
	Description string
	Messages    []PromptMessage
}

// PromptMessage is one message of a prompt.
type PromptMessage struct {
	Role    string // user or assistant
	Content tools.Content
}

// Budgets bound what clients may ask (I9, I10, I6). A zero field means its
// default; [Budgets.Check] refuses what can't be meant (I13).
type Budgets struct {
	RequestBytes       int           // of one message; 1 MiB
	ConcurrentRequests int           // and open streams, together; 32
	ResponseBytes      int           // of one answer; 4 MiB
	MetadataBytes      int           // of a message's _meta, and of HTTP headers; 64 KiB
	PageSize           int           // of lists; 50, at most 100
	Grace              time.Duration // for answers after the end of input, and for cleaning up; 5 s

	SubscriptionBuffer int           // events that wait for one stream; 64
	Subscribers        int           // streams and sessions that listen; 1,024
	SubscribedURIs     int           // resources that one of them watches; 64
	Keepalive          time.Duration // between signs of life on an open stream; 15 s

	SearchThreshold int // tools above which tool_search and tool_call stand in for the list; 0: never
	SearchResults   int // of one search; 20
	SearchCalls     int // tool_call calls at a time for one client; 5
	SearchBytes     int // of the output of tool_search and tool_call; 256 KiB
}

// Caller is who called a tool, as far as a tool may ask it something. What it
// says is never taken for an identity (I8).
type Caller interface {
	// Elicit asks the person behind the client to fill in a form: schema is a
	// flat JSON Schema of an object. It blocks until there is an answer, in both
	// eras. [ErrNoClient] says that the client has no such ability.
	Elicit(ctx context.Context, message string, schema json.RawMessage) (Elicited, error)
	// Sample asks the client's model. request and the answer are the params and
	// the result of sampling/createMessage.
	Sample(ctx context.Context, request json.RawMessage) (json.RawMessage, error)
	// Roots asks which folders the client works in: the result of roots/list.
	Roots(ctx context.Context) (json.RawMessage, error)
	// Log sends a line to the client's log where it has asked for its level.
	Log(ctx context.Context, level, logger string, data any)
}

// Elicited is what a person answered.
type Elicited struct {
	Action  string // accept, decline or cancel
	Content map[string]any
}
