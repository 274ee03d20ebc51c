package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"crewhost/tools"
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
	over  chan struct{} // closed at the end

	mu    sync.Mutex
	asked int      // questions of the legacy era
	notes []string // what was asked in vain, in the legacy era
	sole  bool     // whether the notes are of this operation for certain
}

// opens notes an operation until close is called.
func (a *asking) opens(what, tool string, l *limit) (op *operation, closes func()) {
	op = &operation{what: what, tool: tool, limit: l, over: make(chan struct{})}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.operations = append(a.operations, op)
	return op, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		for i, other := range a.operations {
			if other == op {
				a.operations = append(a.operations[:i:i], a.operations[i+1:]...)
			}
		}
		close(op.over)
	}
}

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

// elicit answers a question by what the settings declare, or else by a person.
func (s *session) elicit(ctx context.Context, ops []*operation, params json.RawMessage) (*sdk.ElicitResult, error) {
	what, tool := s.subject(ops)
	q, err := s.question(tool, params)
	if err != nil {
		return nil, unansweredf("%s asked for input before it goes on, and was not understood: %s.", what, s.masks.line(err.Error(), maxDetail))
	}
	answer, declared := q.declared()
	switch {
	case declared:
		s.warn(q.disclosure(answer))
	case s.opts.Respondent == nil:
		return nil, unansweredf("%s asked for input before it goes on: %s. Nobody can be asked here, and the settings declare no answers that fit.", what, q.asked())
	default:
		if answer, err = s.opts.Respondent.Elicit(ctx, q); err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			return nil, unansweredf("%s asked for input before it goes on: %s. No answer could be had: %s.", what, q.asked(), s.masks.line(err.Error(), maxDetail))
		}
	}
	switch answer.Action {
	case Accept:
		content, err := q.content(answer)
		if err != nil {
			return nil, unansweredf("%s asked for input before it goes on: %s. The answer does not fit: %s.", what, q.asked(), s.masks.line(err.Error(), maxDetail))
		}
		if q.URL != "" {
			content = nil
		}
		return &sdk.ElicitResult{Action: string(Accept), Content: content}, nil
	case Cancel:
		return &sdk.ElicitResult{Action: string(Cancel)}, nil
	default:
		return &sdk.ElicitResult{Action: string(Decline)}, nil
	}
}

// disclosure is the line of the report for an answer that the settings gave.
func (q Question) disclosure(a Answer) string {
	var names []string
	for _, f := range q.Fields {
		if v, ok := a.Values[f.Name]; ok {
			names = append(names, fmt.Sprintf("%s=%s", f.Name, v))
		}
	}
	asker := "a question"
	if q.Tool != "" {
		asker = fmt.Sprintf("a question of the tool %q", q.Tool)
	}
	return asker + " was answered as the settings declare: " + strings.Join(names, ", ")
}

// codeVisit is the refusal of a server that wants a page to be visited first.
const codeVisit = -32042

// visits reports whether a request was refused until pages have been visited,
// and returns the questions for that.
func visits(err error) (pages []json.RawMessage, ok bool) {
	var refusal *jsonrpc.Error
	if !errors.As(err, &refusal) || refusal.Code != codeVisit {
		return nil, false
	}
	var data struct {
		Elicitations []json.RawMessage `json:"elicitations"`
	}
	if json.Unmarshal(refusal.Data, &data) != nil || len(data.Elicitations) == 0 || len(data.Elicitations) > maxRequests {
		return nil, false
	}
	return data.Elicitations, true
}

// visit has a person visit pages. Who does not accept ends the operation: there
// is no way to tell the server.
func (s *session) visit(ctx context.Context, op *operation, pages []json.RawMessage) error {
	for _, params := range pages {
		res, err := s.elicit(ctx, []*operation{op}, params)
		if err != nil {
			return err
		}
		if res.Action != string(Accept) {
			return unansweredf("The %s wants a page to be visited before it goes on, and the person who was asked declined.", op.what)
		}
	}
	return nil
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

// serve answers what a server of the legacy era asks. It stands before the SDK's
// own handlers.
func (s *session) serve(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		switch method {
		case methodElicit, methodSample, methodRoots:
		default:
			return next(ctx, method, req)
		}
		var params string
		if p := req.GetParams(); p != nil {
			params, _ = p.GetMeta()[wholeParams].(string)
		}
		if method == methodRoots {
			roots, err := s.roots()
			return roots, refusal(err)
		}
		ops := s.asking.current()
		if len(ops) == 0 {
			s.warn("asked for input outside of any call, which is declined: " + method)
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "there is no call that this could be for"}
		}
		if !s.admit(ops) {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: fmt.Sprintf("more than %d questions in one call", maxRounds)}
		}
		ctx, cancel := context.WithCancel(ctx)
		var watched sync.WaitGroup
		defer watched.Wait()
		defer cancel()
		watched.Go(func() { // nobody is asked for what is over
			for _, op := range ops {
				select {
				case <-op.over:
				case <-ctx.Done():
					return
				}
			}
			cancel()
		})
		response, err := s.respond(ctx, ops, method, json.RawMessage(params))
		var u *unanswered
		if errors.As(err, &u) {
			if method == methodElicit {
				note(ops, u.text)
				return &sdk.ElicitResult{Action: string(Decline)}, nil
			}
			s.warn(u.text)
		}
		if err != nil {
			return nil, refusal(err)
		}
		result, _ := response.(sdk.Result)
		return result, nil
	}
}

// refusal is err as an answer to the server, which learns nothing of the host.
func refusal(err error) error {
	if err == nil {
		return nil
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "declined"}
}

// admit counts a question against the operations that it may belong to, and
// reports whether it may be asked.
func (s *session) admit(ops []*operation) bool {
	admitted := false
	for _, op := range ops {
		op.mu.Lock()
		if op.asked++; op.asked <= maxRounds {
			admitted = true
		}
		op.mu.Unlock()
	}
	return admitted
}

// note keeps what was asked in vain for the results of the operations.
func note(ops []*operation, text string) {
	for _, op := range ops {
		op.mu.Lock()
		op.notes = append(op.notes, text)
		op.sole = op.sole || len(ops) == 1
		op.mu.Unlock()
	}
}

// noted is a result with what was asked in vain while it was made. Where there
// is no doubt whose question that was, it is a failure (O19): what the server
// made of no answer is not what was wanted.
func (op *operation) noted(res tools.Result) tools.Result {
	op.mu.Lock()
	defer op.mu.Unlock()
	if len(op.notes) == 0 {
		return res
	}
	content := make([]tools.Content, 0, len(op.notes)+len(res.Content))
	for _, text := range op.notes {
		content = append(content, tools.Content{Kind: tools.KindText, Text: text})
	}
	res.Content = append(content, res.Content...)
	res.IsError = res.IsError || op.sole
	return res
}
