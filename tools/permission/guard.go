package permission

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"crewhost/tools"
)

// Scoped is a tool of the host whose calls each concern one MCP server, which
// their arguments name. The policy judges such a call as one of a tool of that
// server, too: mcp__files__* speaks of it.
type Scoped interface {
	// Server returns the server that a call with these arguments concerns, in
	// the way in which the tool itself will read them, or "" where they name none.
	Server(arguments json.RawMessage) string
}

// Outcome says how a call through a [Guard] ended.
type Outcome string

// The outcomes.
const (
	Succeeded Outcome = "succeeded" // the tool ran
	ToolError Outcome = "error"     // the tool ran and reported a failure
	Denied    Outcome = "denied"    // the tool did not run
	Refused   Outcome = "refused"   // no such tool, or bad arguments; it did not run
	Failed    Outcome = "failed"    // the host could not carry the call out
)

// Observation is one call, after its end.
type Observation struct {
	Number  uint64 // of the call, from 1, among those of the guard and of all that were made of it
	Call    tools.Call
	Request Request
	// Definition is that of the very tool that the call is for; zero where there is
	// none of its name.
	Definition tools.Definition
	Decision   Decision // the zero Decision where Outcome is Refused
	Answer     *Answer  // where the policy asked: what was said, be it that nobody can be asked
	Outcome    Outcome
	Ran        bool          // the tool's own Call was made, whatever came of it
	Bytes      int           // of the result: texts, data and structure
	Err        error         // of Refused and Failed, and of a tool that panicked
	Took       time.Duration // of the whole, waiting for a person included
}

// Guard is the way to the tools of a registry: no call reaches a tool but by a
// decision of its policy. Tools that agents have beside it take the same way, by
// [Guard.CallTool]. It is safe for concurrent use.
type Guard struct {
	// Observe, where set before the first call, is told of each call when it
	// has ended, from the calling goroutine. It must be safe for concurrent
	// use.
	Observe func(Observation)

	// Around, where set before the first call, carries out each call that may be
	// made: run is the tool's own Call, with its panics caught. It calls run once, or
	// not at all where it has the result already, and may change what comes back. o
	// is as far as the call is. It must be safe for concurrent use.
	Around func(ctx context.Context, o Observation, run func(context.Context) (tools.Result, error)) (tools.Result, error)

	// Attest, where set before the first call, is told of each call as Observe is, and
	// before what came of it goes out: an error of it takes the place of the result, so
	// that nobody gets to read what could not be put on record. It must be safe for
	// concurrent use.
	Attest func(ctx context.Context, o Observation) error

	// Concurrent, where set before the first call, has calls be asked about side
	// by side: behind each stands a person of its own, and none waits for another.
	Concurrent bool

	// Answers, where set before the first call, finds the answer to each call that the
	// policy asks about: get is how it would be found otherwise. It calls get once, or
	// not at all where it has the answer already. It must be safe for concurrent use.
	Answers func(ctx context.Context, q Question, get func(context.Context) (Answer, error)) (Answer, error)

	// Approvals, where set before the first call, keep what a person allows always.
	Approvals Approvals

	registry *tools.Registry
	policy   *Policy
	approver Approver
	asking   chan struct{} // holds one token while a person is asked
	run      *approvedForRun
	calls    *atomic.Uint64
}

// NewGuard returns a guard before the tools of registry. A nil approver means
// that nobody can be asked: the policy's headless answer stands in.
func NewGuard(registry *tools.Registry, policy *Policy, approver Approver) *Guard {
	return &Guard{
		registry: registry, policy: policy, approver: approver,
		asking: make(chan struct{}, 1), run: &approvedForRun{}, calls: new(atomic.Uint64),
	}
}

// With returns a guard before the same tools for one run, with a policy of its own:
// what a person allows for the run ends with it. One question at a time is asked by
// both together.
func (g *Guard) With(policy *Policy) *Guard {
	run := *g
	run.policy, run.run = policy, &approvedForRun{}
	return &run
}

// Before returns a guard before other tools that is g in everything else.
func (g *Guard) Before(registry *tools.Registry) *Guard {
	other := *g
	other.registry = registry
	return &other
}

// Policy returns the policy that decides.
func (g *Guard) Policy() *Policy { return g.policy }

// Definitions returns the definitions of all tools, sorted by name, those that
// the policy denies included: what a call may do depends on its arguments.
func (g *Guard) Definitions() []tools.Definition { return g.registry.Definitions() }

// Call has the policy decide and then runs the tool. Arguments that are empty or
// null reach the tool as {}; others reach it as they are (W8, K29).
//
// A denied call is a Result with IsError that says so, since the model should
// read it; so is a tool's panic. An error is an [*tools.Error] with
// CodeToolNotFound, CodeArgumentsInvalid or CodeCancelled, or the error of the
// tool or the approver.
func (g *Guard) Call(ctx context.Context, call tools.Call) (tools.Result, error) {
	tool, _ := g.registry.Lookup(call.Name)
	return g.observed(ctx, tool, call)
}

// CallTool is [Guard.Call] for a tool that is not in the registry, as agents have
// some of their own for the time of one task. The policy knows it by call.Name.
func (g *Guard) CallTool(ctx context.Context, tool tools.Tool, call tools.Call) (tools.Result, error) {
	return g.observed(ctx, tool, call)
}

func (g *Guard) observed(ctx context.Context, tool tools.Tool, call tools.Call) (tools.Result, error) {
	start := time.Now()
	o := Observation{Number: g.calls.Add(1), Call: call, Request: Request{Tool: call.Name, Agent: call.Agent, Arguments: call.Arguments}}
	res, err := g.call(ctx, tool, call, &o)
	o.Took, o.Bytes = time.Since(start), res.Bytes()
	if err != nil {
		o.Err = err
	}
	if g.Attest != nil {
		if unsaid := g.Attest(ctx, o); unsaid != nil {
			res, err = tools.Result{}, unsaid
		}
	}
	if g.Observe != nil {
		g.Observe(o)
	}
	return res, err
}

func (g *Guard) call(ctx context.Context, tool tools.Tool, call tools.Call, o *Observation) (tools.Result, error) {
	o.Outcome = Refused
	if tool == nil {
		return tools.Result{}, &tools.Error{Code: tools.CodeToolNotFound, Tool: call.Name, Detail: "there is no tool of this name"}
	}
	def := tool.Definition()
	o.Definition = def
	args, err := object(call.Arguments)
	if err != nil {
		return tools.Result{}, &tools.Error{Code: tools.CodeArgumentsInvalid, Server: def.Server, Tool: call.Name, Detail: err.Error()}
	}
	call.Arguments = args
	o.Call, o.Request = call, requestOf(tool, def, call)

	o.Decision = g.policy.Decide(o.Request)
	refusal, err := g.settle(ctx, def, o)
	if err != nil {
		o.Outcome = Failed
		return tools.Result{}, err
	}
	if refusal != "" {
		o.Outcome = Denied
		return tools.Failure(refusal), nil
	}
	if err := cancelled(ctx, call.Name); err != nil {
		o.Outcome = Failed
		return tools.Result{}, err
	}
	carry := func(ctx context.Context) (tools.Result, error) { return run(ctx, tool, call, o) }
	var res tools.Result
	if g.Around != nil {
		res, err = g.Around(ctx, *o, carry)
	} else {
		res, err = carry(ctx)
	}
	switch {
	case err != nil:
		o.Outcome = Failed
	case res.IsError:
		o.Outcome = ToolError
	default:
		o.Outcome = Succeeded
	}
	return res, err
}

// requestOf is a call as the policy sees it.
func requestOf(tool tools.Tool, def tools.Definition, call tools.Call) Request {
	r := Request{Tool: call.Name, Agent: call.Agent, Arguments: call.Arguments}
	server := def.Server
	if scoped, ok := tool.(Scoped); ok && server == "" {
		server = scoped.Server(call.Arguments)
	}
	if server != "" {
		r.Server, r.ServerTool = server, def.ServerName()
	}
	return r
}

// Explain returns what the policy says to a call, which is not made. The error is that
// of a call that could not be made: there is no such tool, or its arguments are none.
func (g *Guard) Explain(call tools.Call) (Request, Decision, error) {
	tool, ok := g.registry.Lookup(call.Name)
	if !ok {
		return Request{}, Decision{}, &tools.Error{Code: tools.CodeToolNotFound, Tool: call.Name, Detail: "there is no tool of this name"}
	}
	args, err := object(call.Arguments)
	if err != nil {
		return Request{}, Decision{}, &tools.Error{Code: tools.CodeArgumentsInvalid, Tool: call.Name, Detail: err.Error()}
	}
	call.Arguments = args
	r := requestOf(tool, tool.Definition(), call)
	return r, g.policy.Decide(r), nil
}

// settle turns the decision into yes (no text) or into what a model is told.
func (g *Guard) settle(ctx context.Context, def tools.Definition, o *Observation) (refusal string, err error) {
	const final = " Repeating the call will not help; do without it, or say that it was not permitted."
	d := o.Decision
	switch d.Verdict {
	case Allow:
		return "", nil
	case Ask:
	default:
		return fmt.Sprintf("The policy denied this call of the tool %q: %s.", o.Request.Tool, d.Brief()) + final, nil
	}
	answer, err := g.answer(ctx, def, o)
	if err != nil {
		return "", err
	}
	o.Answer = &answer
	switch {
	case answer.Allow:
		return "", nil
	case answer.Unasked:
		return fmt.Sprintf("The policy denied this call of the tool %q: it needs a person's approval (%s), and %s.", o.Request.Tool, d.Brief(), answer.Reason) + final, nil
	}
	text := fmt.Sprintf("A person denied this call of the tool %q, which the policy had asked about (%s).", o.Request.Tool, d.Brief())
	if answer.Reason != "" {
		text += " Their reason: " + answer.Reason + "."
	}
	return text + final, nil
}

// cancelled returns the error of a call that ended before its tool ran.
func cancelled(ctx context.Context, tool string) error {
	if ctx.Err() == nil {
		return nil
	}
	return &tools.Error{
		Code:   tools.CodeCancelled,
		Tool:   tool,
		Detail: "the call was cancelled before the tool ran",
		Err:    context.Cause(ctx),
	}
}

// run calls the tool and turns its panic into a failure of the tool. The stack
// is for the observer; the model is told nothing of the host's insides.
func run(ctx context.Context, tool tools.Tool, call tools.Call, o *Observation) (res tools.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			o.Err = fmt.Errorf("tool %q panicked: %v\n%s", call.Name, p, debug.Stack())
			res, err = tools.Failure(fmt.Sprintf("The tool %q broke down while it ran. This is a fault of the tool, not of the call.", call.Name)), nil
		}
	}()
	o.Ran = true
	return tool.Call(ctx, call)
}

// object returns the arguments as one JSON object.
func object(raw json.RawMessage) (json.RawMessage, error) {
	trimmed := bytes.TrimSpace(raw)
	switch {
	case len(trimmed) == 0 || string(trimmed) == "null":
		return json.RawMessage("{}"), nil
	case !json.Valid(trimmed):
		return nil, errors.New("the arguments are not valid JSON")
	case trimmed[0] != '{':
		return nil, errors.New("the arguments are not a JSON object")
	}
	return raw, nil
}
