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
//
// # A request
//
// The SDK keeps sessions and knows what belongs to which era; nothing is registered
// with it. A request comes to one place, [Server].receive, whatever it came over and
// of whichever era it is. There it takes its place in the budget, and is answered by
// what the [Config] says. Before that a transport has looked at it as a message: its
// size, its depth, its envelope, its _meta.
//
// On stdio a stream sorts messages by what they say of themselves, and has a session
// of the SDK for each era that is spoken on it. It reads no further than it can hold
// answers for.
//
// # What is refused, and how
//
// A message that is none, a method or a name that isn't there, and what a budget
// does not allow are errors of JSON-RPC, each with its code ([CodeBusy] and the
// others). What the policy denies, what a tool fails at and what the host could not
// carry out are results with isError, since a model should read them. Of the host's
// insides clients learn nothing but a [tools.Code]; the log has all of it. A tool
// that panics fails its call and nothing else.
//
// # Changes
//
// [Server.Refresh] and what a [Watcher] says come to listeners: a stream of
// subscriptions/listen, or a session of the initialize lineage. Equal events that
// wait are one. A stream on which more would wait than its buffer holds ends with
// its result, and a session is told that the list of resources has changed: either
// client reads again.
//
// # Asking
//
// A tool, a resource or a prompt may ask its [Caller]. An older client is sent a
// request. In the modern era the client's request is answered with the question and
// a state that nobody can guess or change; the call is parked, and goes on when the
// client comes back with both. It holds its place until then, for at most five
// minutes and no longer than its connection, and at most half of all places are held
// so: where there is one, nobody is asked. What a person fills in wrongly is asked again.
//
// # Where things are
//
//   - what is served: shelf.go decides which tools are offered and what a call
//     reaches, and search.go what stands in for too many; call.go calls, passed.go has
//     resources, prompts and completion, page.go lists, answer.go writes results, and
//     object.go JSON
//   - a request: receive.go is where it comes to, places.go the budget, desk.go what
//     is said before its answer, errors.go the codes
//   - asking: ask.go is how a caller asks in each era, converse.go how a call outlives
//     its request, home.go what ends with a connection
//   - changes: audience.go knows who listens, send.go tells them
//   - stdio: stdio.go serves, stream.go sorts messages, line.go has lines; and for HTTP
//     too, envelope.go says what is a message
//   - HTTP: http_config.go is what it may be, http_listen.go the port and its
//     connections, http.go the endpoint; http_visit.go takes a request from its first
//     line to its answer, by http_message.go (the body), http_params.go (headers that
//     mirror arguments), http_sessions.go, http_refuse.go, http_reply.go and
//     http_outbox.go (the answer), http_log.go; http_health.go
//   - who calls: auth.go has tokens and OAuth's metadata, auth_jwt.go judges tokens of
//     issuers, auth_jwks.go has their keys
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

	// Calling, where set, is told of each call of a tool as it begins, with the
	// protocol's version, in the trace that the client says it is part of. The call is
	// made in the context that it returns, and done told how it ended.
	Calling func(ctx context.Context, tool, protocol string) (_ context.Context, done func(tools.Result, error))

	// Session, where set, is told of each session as it begins, and what it returns
	// when that has ended. One on stdio lasts as long as its stream; over HTTP there are
	// those of the legacy era alone.
	Session func(ctx context.Context, remote bool) (ended func())

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
	// changed, until stop is called. ctx is for the beginning alone.
	Watch(ctx context.Context, uri string, changed func()) (stop func(), err error)
}

// Completer completes the argument of a prompt or of a resource template.
type Completer interface {
	// Complete returns at most 100 values that begin with, or otherwise fit, what
	// was written so far, and whether there are more. ref is the prompt's name or
	// the template; one that is not served is [ErrNotFound].
	Complete(ctx context.Context, ref, argument, written string, others map[string]string) (values []string, more bool, err error)
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

	SubscriptionBuffer int           // different events that wait for one stream; 64
	Subscribers        int           // streams and sessions that listen; 1,024
	SubscribedURIs     int           // resources that one of them watches; 64
	Keepalive          time.Duration // between signs of life on an open stream over HTTP; 15 s

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
	// eras. [ErrNoClient] says that the client has no such ability. The question has
	// a name where [AskAs] gave it one.
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
