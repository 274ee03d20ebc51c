package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"crewhost/tools"
)

// A tool is one tool of one server. It implements tools.Tool.
type tool struct {
	def     tools.Definition
	session *session
	promise promise // of its results
}

// Definition implements tools.Tool.
func (t *tool) Definition() tools.Definition { return t.def }

// Call implements tools.Tool. What the server answers is a Result, also where it
// answers with a JSON-RPC error: a model can read it and go on (K33). Errors are
// *tools.Error: the limit passed, and the server was told that nobody waits
// any more (K37); the answer was too large; the session is gone.
func (t *tool) Call(ctx context.Context, call tools.Call) (tools.Result, error) {
	ctx, end := t.session.follow(ctx, t.def.Name, call)
	defer end()
	res, err := t.session.call(ctx, t.def.ServerName(), call.Arguments)
	if err == nil {
		var f *fault
		if res, f = fit(t.judged(res), t.session.limits); f != nil {
			err = t.session.wrap(f.code, f.detail, nil)
		}
	}
	if err != nil {
		err.Tool = t.def.Name
		return tools.Result{}, err
	}
	return res, nil
}

// call calls a tool by the server's own name for it.
func (s *session) call(ctx context.Context, name string, arguments json.RawMessage) (tools.Result, *tools.Error) {
	arguments, err := object(arguments, s.limits.ArgumentsBytes)
	if err != nil {
		return tools.Result{}, s.wrap(tools.CodeArgumentsInvalid, err.Error(), nil)
	}
	ctx, limit, stop := withLimit(ctx, s.toolTimeout)
	defer stop()
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-ctx.Done():
		e := s.interrupted(ctx)
		if e.Code == tools.CodeCallTimeout {
			e.Detail = s.outwaited()
		}
		return tools.Result{}, e
	}
	op, closes := s.asking.opens(ctx, fmt.Sprintf("tool %q", name), name, limit)
	defer closes()
	for {
		res, again, err := s.send(ctx, op, name, arguments)
		if !again {
			return op.noted(res), err
		}
	}
}

// send carries a call to the server, in as many rounds as it takes. Again says
// that the connection was lost before anything of the call went out, so that
// another may carry it.
func (s *session) send(ctx context.Context, op *operation, name string, arguments json.RawMessage) (res tools.Result, again bool, _ *tools.Error) {
	ctx, conn, end, err := s.begin(ctx)
	if err != nil {
		return res, false, s.coded(ctx, err)
	}
	defer end()
	s.used(conn)
	var ex *exchange // of the last round
	sent := false
	result, err := s.converse(ctx, op, func(ctx context.Context, r round) (json.RawMessage, error) {
		ctx, ex = withExchange(ctx)
		_, err := conn.client.CallTool(ctx, labelled(ctx, &sdk.CallToolParams{
			Name: name, Arguments: arguments, InputResponses: r.responses, RequestState: r.state,
		}))
		sent = sent || ex.sent.Load()
		return ex.outcome(err)
	})
	_, refusal, _ := ex.get()
	var u *unanswered
	switch {
	case err == nil && result != nil:
		res, err := parseResult(name, result)
		if err != nil {
			return tools.Result{}, false, s.wrap(tools.CodeProtocolError, err.Error(), nil)
		}
		return res, false, nil
	case ctx.Err() != nil:
		return res, false, s.interrupted(ctx)
	case errors.As(err, &u):
		return tools.Failure(u.text), false, nil
	case refusal != nil && refusal.Code == jsonrpc.CodeMethodNotFound: // it calls no tools at all
		return res, false, s.wrap(tools.CodeMethodNotFound, s.refusalText(refusal), nil)
	case refusal != nil:
		return tools.Failure(s.refusalText(refusal)), false, nil
	case err == nil:
		return res, false, s.wrap(tools.CodeProtocolError, "its answer has no result", nil)
	}
	if s.recovers(ctx, conn, err) && !sent {
		return res, true, nil
	}
	e := s.explain(ctx, ex, err)
	if f := faultOf(conn.link); f != nil {
		e = s.wrap(f.code, f.detail, nil)
	}
	if sent && (e.Code == tools.CodeTransportClosed || e.Code == tools.CodeTransportFailed) {
		e.Detail += "; whether the call had an effect is not known"
	}
	return res, false, e
}

// outwaited says why a call never had its turn.
func (s *session) outwaited() string {
	if n := cap(s.slots); n > 1 {
		return fmt.Sprintf("not sent within %v: %d other calls ran, as many as are allowed at a time", s.toolTimeout, n)
	}
	return fmt.Sprintf("not sent within %v: another call ran, and one at a time is allowed", s.toolTimeout)
}

// errToolTimeout is the cause that ends a call at its limit.
var errToolTimeout = errors.New("the call's limit passed")

// interrupted says why the context of a call ended.
func (s *session) interrupted(ctx context.Context) *tools.Error {
	switch why := context.Cause(ctx); {
	case errors.Is(why, errToolTimeout):
		return s.wrap(tools.CodeCallTimeout, fmt.Sprintf("no answer within %v", s.toolTimeout), context.DeadlineExceeded)
	case errors.Is(why, errSessionClosed):
		return s.wrap(tools.CodeTransportClosed, errSessionClosed.Error(), nil)
	default:
		return s.wrap(tools.CodeCancelled, "the call was cancelled", ctx.Err())
	}
}

// coded is the error of a call that did not begin. Those of a session have a code
// already; the copy lets the caller name its tool.
func (s *session) coded(ctx context.Context, err error) *tools.Error {
	var w *waited
	var e *tools.Error
	if errors.As(err, &w) {
		e = s.interrupted(ctx)
		e.Detail += "; the server is being connected again after this: " + w.why.Error()
		return e
	}
	if errors.As(err, &e) {
		own := *e
		return &own
	}
	return s.wrap(tools.CodeTransportClosed, err.Error(), nil)
}

// object is arguments as they go out: always one JSON object, its digits and
// members untouched (K29, K31).
func object(arguments json.RawMessage, limit int) (json.RawMessage, error) {
	arguments = bytes.TrimSpace(arguments)
	switch {
	case len(arguments) == 0 || string(arguments) == "null":
		return json.RawMessage("{}"), nil
	case len(arguments) > limit:
		return nil, fmt.Errorf("the arguments are larger than %s", byteCount(limit))
	case arguments[0] != '{' || !json.Valid(arguments):
		return nil, errors.New("the arguments are not a JSON object")
	}
	return arguments, nil
}
