package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"crewhost/tools"
)

type callerKey struct{}

// CallerFrom returns who asked for what is done under ctx, where that is a request
// of a client: a tool's call, a read or a prompt.
func CallerFrom(ctx context.Context) (Caller, bool) {
	c, ok := ctx.Value(callerKey{}).(Caller)
	return c, ok
}

// progressOf returns where a tool reports how far it is, or nil where the client
// doesn't want to know.
func progressOf(ctx context.Context) func(tools.Progress) {
	switch c := ctx.Value(callerKey{}).(type) {
	case *session:
		if c.d.tell != nil {
			return c.d.report
		}
	case *guest:
		if d := c.r.desk(); d != nil && d.tell != nil {
			return func(p tools.Progress) {
				if d := c.r.desk(); d != nil {
					d.report(p)
				}
			}
		}
	}
	return nil
}

// A question is one that a run waits for.
type question struct {
	key, method string
	params      []byte
	fits        func(mcp.InputResponse) bool // whether that can be the answer
	reply       chan mcp.InputResponse       // holds the answer
	failure     chan error                   // or why there is none
}

// take takes what a client answers, unless it is no answer to this.
func (q *question) take(r mcp.InputResponse) bool {
	if !q.fits(r) {
		return false
	}
	q.reply <- r
	return true
}

func (q *question) fail(err error) { q.failure <- err }

type questionKey struct{}

// AskAs names what is asked under the context that it returns. A client of the
// modern era gets its questions by names, and may send an answer with the call,
// before it is asked, where it knows the name from an earlier one. Questions
// without a name have one of their own for each call.
func AskAs(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, questionKey{}, name)
}

// A guest is a caller of the modern era: it is asked by an answer to its request,
// and comes back.
type guest struct {
	s    *Server
	r    *run
	caps func() *mcp.ClientCapabilities
}

// ask puts a question and blocks until the client has come back with its answer.
func (g *guest) ask(ctx context.Context, method string, params []byte, fits func(mcp.InputResponse) bool) (mcp.InputResponse, error) {
	r := g.r
	q := &question{method: method, params: params, fits: fits, reply: make(chan mcp.InputResponse, 1), failure: make(chan error, 1)}
	name, _ := ctx.Value(questionKey{}).(string)
	r.mu.Lock()
	if brought, ok := r.brought[name]; ok && name != "" {
		delete(r.brought, name) // it answers one question
		if fits(brought) {
			r.mu.Unlock()
			return brought, nil
		}
	}
	r.n++
	q.key = name
	if name == "" || slices.ContainsFunc(r.open, func(other *question) bool { return other.key == name }) {
		q.key = "q" + strconv.Itoa(r.n)
	}
	r.open = append(r.open, q)
	r.remind()
	r.mu.Unlock()
	select {
	case reply := <-q.reply:
		return reply, nil
	case err := <-q.failure:
		return nil, err
	case <-ctx.Done():
	case <-r.done:
	}
	r.mu.Lock()
	for i, other := range r.open {
		if other == q {
			r.open = append(r.open[:i:i], r.open[i+1:]...)
			break
		}
	}
	r.mu.Unlock()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	return nil, errOver
}

func (g *guest) Elicit(ctx context.Context, message string, schema json.RawMessage) (Elicited, error) {
	if !elicits(g.caps()) {
		return Elicited{}, lacking("elicitation", "forms")
	}
	form, err := newForm(schema)
	if err != nil {
		return Elicited{}, err
	}
	o := newObject()
	o.text("mode", "form")
	o.text("message", message)
	o.raw("requestedSchema", schema)
	res, err := g.ask(ctx, "elicitation/create", o.end(), form.accepts)
	if err != nil {
		return Elicited{}, err
	}
	answered := res.(*mcp.ElicitResult)
	return Elicited{Action: answered.Action, Content: answered.Content}, nil
}

func (g *guest) Sample(ctx context.Context, request json.RawMessage) (json.RawMessage, error) {
	if caps := g.caps(); caps == nil || caps.Sampling == nil {
		return nil, lacking("sampling", "sampling")
	}
	if !isObject(request) {
		return nil, errNoObject
	}
	res, err := g.ask(ctx, "sampling/createMessage", request, func(r mcp.InputResponse) bool {
		switch r.(type) {
		case *mcp.CreateMessageResult, *mcp.CreateMessageWithToolsResult:
			return true
		}
		return false
	})
	if err != nil {
		return nil, err
	}
	return json.Marshal(res)
}

func (g *guest) Roots(ctx context.Context) (json.RawMessage, error) {
	if !hasRoots(g.caps()) {
		return nil, lacking("roots", "roots")
	}
	res, err := g.ask(ctx, "roots/list", []byte("{}"), func(r mcp.InputResponse) bool {
		_, ok := r.(*mcp.ListRootsResult)
		return ok
	})
	if err != nil {
		return nil, err
	}
	return json.Marshal(res)
}

func (g *guest) Log(_ context.Context, level, logger string, data any) {
	if d := g.r.desk(); d != nil {
		d.note(level, logger, data)
	}
}

// A session is a caller of the initialize lineage: it is sent requests.
type session struct {
	d *desk
	x exchange
}

func (c *session) Elicit(ctx context.Context, message string, schema json.RawMessage) (Elicited, error) {
	switch {
	case c.d.over():
		return Elicited{}, errOver
	case !elicits(c.x.caps()):
		return Elicited{}, noAbility("forms")
	}
	if _, err := newForm(schema); err != nil {
		return Elicited{}, err
	}
	res, err := c.x.session.Elicit(ctx, &mcp.ElicitParams{Mode: "form", Message: message, RequestedSchema: schema})
	if err != nil {
		return Elicited{}, fmt.Errorf("asking the client for input: %w", departed(err))
	}
	return Elicited{Action: res.Action, Content: res.Content}, nil
}

func (c *session) Sample(ctx context.Context, request json.RawMessage) (json.RawMessage, error) {
	switch caps := c.x.caps(); {
	case c.d.over():
		return nil, errOver
	case caps == nil || caps.Sampling == nil:
		return nil, noAbility("sampling")
	}
	var params mcp.CreateMessageWithToolsParams
	if !isObject(request) {
		return nil, errNoObject
	}
	if err := json.Unmarshal(request, &params); err != nil {
		return nil, fmt.Errorf("reading what the client's model is asked: %w", err)
	}
	res, err := c.x.session.CreateMessageWithTools(ctx, &params)
	if err != nil {
		return nil, fmt.Errorf("asking the client's model: %w", departed(err))
	}
	return json.Marshal(res)
}

func (c *session) Roots(ctx context.Context) (json.RawMessage, error) {
	switch {
	case c.d.over():
		return nil, errOver
	case !hasRoots(c.x.caps()):
		return nil, noAbility("roots")
	}
	res, err := c.x.session.ListRoots(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("asking the client for its roots: %w", departed(err))
	}
	return json.Marshal(res)
}

func (c *session) Log(_ context.Context, level, logger string, data any) {
	c.d.note(level, logger, data)
}

// departed says of a client that left that it did.
func departed(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, mcp.ErrConnectionClosed) {
		return errEnded
	}
	return err
}

var (
	errNoObject = errors.New("what the client's model is asked is not a JSON object")
	errOver     = fmt.Errorf("%w: the call is over", ErrNoClient)
)

func noAbility(what string) error {
	return fmt.Errorf("%w: it has not said that it has %s", ErrNoClient, what)
}

// A lack is an ability that a client of the modern era has not said that it has.
// Where a tool, a resource or a prompt can't do without and returns it, the client
// is told in the way of that era.
type lack struct {
	error
	capability string
}

func lacking(capability, what string) error { return &lack{noAbility(what), capability} }

func (l *lack) Unwrap() error { return l.error }

// codeLacksCapability is the modern era's for a request that its client does not
// say enough for.
const codeLacksCapability = mcp.CodeMissingRequiredClientCapabilities

// refusal is the answer to a request that fails for the lack of an ability.
func (l *lack) refusal() *jsonrpc.Error {
	e := rpcError(codeLacksCapability, l.Error())
	e.Data = encode(map[string]any{"requiredCapabilities": map[string]any{l.capability: struct{}{}}})
	return e
}

func elicits(c *mcp.ClientCapabilities) bool {
	return c != nil && c.Elicitation != nil && (c.Elicitation.Form != nil || c.Elicitation.URL == nil)
}

func hasRoots(c *mcp.ClientCapabilities) bool { return c != nil && c.RootsV2 != nil }

// A form is what a person is asked to fill in.
type form struct{ schema *jsonschema.Resolved }

func newForm(schema json.RawMessage) (*form, error) {
	var s jsonschema.Schema
	if !isObject(schema) {
		return nil, errors.New("the schema of a form is not a JSON object")
	}
	if err := json.Unmarshal(schema, &s); err != nil {
		return nil, fmt.Errorf("reading the schema of a form: %w", err)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		return nil, fmt.Errorf("reading the schema of a form: %w", err)
	}
	return &form{schema: resolved}, nil
}

// accepts reports whether an answer is one to this form. What is filled in wrongly
// is asked for again.
func (f *form) accepts(r mcp.InputResponse) bool {
	res, ok := r.(*mcp.ElicitResult)
	if !ok {
		return false
	}
	switch res.Action {
	case "decline", "cancel":
		return true
	case "accept":
		content := res.Content
		if content == nil {
			content = map[string]any{}
		}
		return f.schema.Validate(content) == nil
	}
	return false
}
