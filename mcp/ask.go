package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Methods by which a server asks.
const (
	methodElicit = "elicitation/create"
	methodSample = "sampling/createMessage"
	methodRoots  = "roots/list"
)

// asking is what a session knows of its operations in which the server may ask:
// calls, reads and prompts. A question of the modern era is part of one; one of
// the legacy era comes from aside and may be of any. The zero asking is of none.
type asking struct {
	mu         sync.Mutex
	operations []*operation // that run, in the order of their begin
	samples    int          // requests of the model so far
}

// An operation is one request to the server, which may ask back before it answers.
type operation struct {
	what  string // `tool "x"`
	tool  string // x; empty for what is no call
	limit *limit
	value func(key any) any // of its context: on whose behalf it is, among others
	over  chan struct{}     // closed at the end

	mu    sync.Mutex
	asked int      // questions of the legacy era
	notes []string // what was asked in vain, in the legacy era
	sole  bool     // whether the notes are of this operation for certain
}

// opens notes an operation until closes is called.
func (a *asking) opens(ctx context.Context, what, tool string, l *limit) (op *operation, closes func()) {
	op = &operation{what: what, tool: tool, limit: l, value: ctx.Value, over: make(chan struct{})}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.operations = append(a.operations, op)
	return op, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.operations = slices.DeleteFunc(slices.Clone(a.operations), func(other *operation) bool { return other == op })
		close(op.over)
	}
}

// A behalf is the context of a question of the legacy era that is of one operation for
// certain: it ends by itself, and knows what the operation's context does.
type behalf struct {
	context.Context //nolint:containedctx // it is one itself
	value           func(key any) any
}

func (b behalf) Value(key any) any { return b.value(key) }

// current are the operations that run.
func (a *asking) current() []*operation {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.operations
}

// An unanswered is the error of a question that nobody here can answer. Its text
// says what was asked.
type unanswered struct{ text string }

func (u *unanswered) Error() string { return u.text }

func unansweredf(format string, args ...any) error {
	return &unanswered{fmt.Sprintf(format, args...)}
}

// A round is what goes with a request that is sent again.
type round struct {
	responses sdk.InputResponseMap
	state     string
}

// converse sends a request, and again with answers as long as the server has
// questions (O19), each of which is answered in the order in which it was
// written. Send returns the result as it came over the wire. The error is that
// of send, of ctx, or an *unanswered.
func (s *session) converse(ctx context.Context, op *operation, send func(context.Context, round) (json.RawMessage, error)) (json.RawMessage, error) {
	var r round
	for n := 1; ; n++ {
		result, err := send(ctx, r)
		pages, visits := visits(err)
		switch {
		case visits:
			if err := s.visit(ctx, op, pages); err != nil {
				return nil, err
			}
		case err != nil || !wantsInput(result):
			return result, err
		default:
			if r, err = s.answers(ctx, op, result); err != nil {
				return nil, err
			}
		}
		if n == maxRounds {
			return nil, unansweredf("The %s asked for more in %d rounds and came to no end.", op.what, n)
		}
		if !visits && len(r.responses) == 0 {
			// It asks for nothing but patience.
			if err := pause(ctx, time.Duration(n)*busyPause); err != nil {
				return nil, err
			}
		}
	}
}

// busyPause is how long a server that asks to be asked again is left alone, times
// the number of the round.
const busyPause = 100 * time.Millisecond

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// wantsInput reports whether a result is a question rather than an answer.
func wantsInput(result json.RawMessage) bool {
	var r struct {
		ResultType string `json:"resultType"`
	}
	return json.Unmarshal(result, &r) == nil && r.ResultType == "input_required"
}

// answers answers the questions of one result.
func (s *session) answers(ctx context.Context, op *operation, result json.RawMessage) (round, error) {
	var r struct {
		InputRequests json.RawMessage `json:"inputRequests"`
		RequestState  string          `json:"requestState"`
	}
	if err := json.Unmarshal(result, &r); err != nil {
		return round{}, unansweredf("The %s asked for something that can't be read.", op.what)
	}
	next := round{state: r.RequestState, responses: make(sdk.InputResponseMap)}
	if len(r.InputRequests) == 0 || string(r.InputRequests) == "null" {
		return next, nil
	}
	requests, err := membersOf(r.InputRequests)
	if err != nil || len(requests) > maxRequests {
		return round{}, unansweredf("The %s asked for something that can't be read, or too much at once.", op.what)
	}
	for _, m := range requests {
		var request struct {
			Method string          `json:"method"`
			Params json.RawMessage `json:"params"`
		}
		if err := json.Unmarshal(m.value, &request); err != nil {
			return round{}, unansweredf("The %s asked for something that can't be read.", op.what)
		}
		response, err := s.respond(ctx, []*operation{op}, request.Method, request.Params)
		if err != nil {
			return round{}, err
		}
		next.responses[m.name] = response
	}
	return next, nil
}

// respond answers one request of the server, in whichever form it came. Ops are
// the operations that it may belong to.
func (s *session) respond(ctx context.Context, ops []*operation, method string, params json.RawMessage) (sdk.InputResponse, error) {
	// How long a person or a model takes says nothing about the server.
	for _, op := range ops {
		resume := op.limit.pause()
		defer resume()
	}
	switch method {
	case methodElicit:
		return s.elicit(ctx, ops, params)
	case methodSample:
		return s.sample(ctx, ops, params)
	case methodRoots:
		return s.roots()
	}
	return nil, unansweredf("MCP server %q asked for what is not known here, %q.", s.server.Name, oneLine(method, 64))
}

// subject is what a question may be part of, for a sentence, and the tool's name
// where it is certain.
func (s *session) subject(ops []*operation) (what, tool string) {
	if len(ops) == 1 {
		return "The " + ops[0].what, ops[0].tool
	}
	return fmt.Sprintf("MCP server %q", s.server.Name), ""
}

// capabilities are what is announced to the server: what will be served, and
// nothing else.
func (s *session) capabilities() *sdk.ClientCapabilities {
	c := new(sdk.ClientCapabilities)
	if s.opts.Respondent != nil || len(s.server.Answers) > 0 {
		c.Elicitation = &sdk.ElicitationCapabilities{Form: &sdk.FormElicitationCapabilities{}}
		if s.opts.Respondent != nil {
			c.Elicitation.URL = &sdk.URLElicitationCapabilities{}
		}
	}
	if s.samples() {
		c.Sampling = &sdk.SamplingCapabilities{}
	}
	if s.server.Roots {
		c.RootsV2 = &sdk.RootCapabilities{}
	}
	return c
}
