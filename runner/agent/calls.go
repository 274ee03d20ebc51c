package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"crewhost/runner/event"
	"crewhost/runner/llm"
	"crewhost/tools"
)

// call is one call of a turn on its way.
type call struct {
	id     string
	about  string // the correlation of its events
	tool   held
	known  bool
	name   string // as the model wrote it
	args   json.RawMessage
	fault  string // why it is not run; the model reads it
	broken bool   // its arguments can't be understood
	result llm.Message
	late   *TaskError // the deadline that passed while it ran
}

// callTools runs the calls of a turn and adds the turn and the results to the
// conversation in the order of the calls.
func (r *run) callTools(ctx context.Context, msg llm.Message) error {
	calls := make([]call, len(msg.Calls))
	msg.Calls = slices.Clone(msg.Calls)
	for i := range msg.Calls {
		c := &calls[i]
		wrote := &msg.Calls[i]
		wrote.ID = r.uniqueID(wrote.ID, i)
		r.judge(c, *wrote)
		if i >= callsOfTurn {
			c.fault = fmt.Sprintf("%s was not run: at most %d calls of one turn are", c.name, callsOfTurn)
		}
		if !c.known {
			wrote.Name = fitName(wrote.Name)
		}
		// Many APIs refuse a conversation that holds arguments which are no
		// object, so the model reads what it wrote in the fault instead.
		if c.args == nil {
			wrote.Arguments = noArguments
		} else if strings.TrimSpace(wrote.Arguments) == "" || len(c.args) == len(noArguments) {
			wrote.Arguments = string(c.args)
		}
	}
	if err := r.runCalls(ctx, calls); err != nil {
		return err
	}
	r.history.add(msg)
	for i := range calls {
		r.history.add(calls[i].result)
	}
	return r.wentWrong(calls)
}

// judge looks up what a call is of, and whether it can be run.
func (r *run) judge(c *call, wrote llm.ToolCall) {
	c.id, c.name = wrote.ID, wrote.Name
	c.tool, c.known = r.set.lookup(wrote.Name)
	args, err := c.tool.arguments(wrote.Arguments)
	c.args = args
	switch {
	case !c.known:
		c.fault = r.set.unknown(wrote.Name)
	case err != nil:
		c.misshapen(err, wrote.Arguments)
	}
}

// misshapen says to the model why a call of a known tool was not run.
func (c *call) misshapen(err error, wrote string) {
	c.broken = true
	c.fault = fmt.Sprintf("%s was not run: %v. You wrote: %s", c.name, err, excerpt(line(wrote, ""), 200))
}

// runCalls runs the calls of a turn, several at once. The tool.called events come
// in their order; a tool.returned comes when its tool is done.
func (r *run) runCalls(ctx context.Context, calls []call) error {
	sound := 0
	for i := range calls {
		if calls[i].fault == "" {
			sound++
		}
	}
	if err := r.afford(sound); err != nil {
		return err
	}
	for i := range calls {
		r.called(&calls[i])
	}

	var group errgroup.Group
	group.SetLimit(r.limits.ConcurrentCalls)
	for i := range calls {
		c := &calls[i]
		if c.fault != "" {
			c.result = r.faultMessage(c)
			continue
		}
		r.out.ToolCalls++
		group.Go(func() error {
			r.call(ctx, c)
			return nil
		})
	}
	_ = group.Wait() // the calls report in their results
	if ctx.Err() != nil {
		return ended(ctx)
	}
	for i := range calls {
		if calls[i].late != nil {
			return calls[i].late
		}
	}
	return r.settleHandovers(ctx, calls)
}

// wentWrong ends a task whose turns go wrong again and again.
func (r *run) wentWrong(calls []call) error {
	malformed := 0
	for _, c := range calls {
		if c.broken {
			malformed++
		}
	}
	if malformed < len(calls) {
		r.malformed = 0
	} else if r.malformed++; r.malformed >= malformedTurns {
		return fail(ReasonMalformedCalls, "the model wrote malformed calls in %d turns in a row; the last: %s", r.malformed, calls[len(calls)-1].fault)
	}
	return r.failedAlike(calls)
}

// failedAlike stops a task whose turns fail with the same errors again and
// again. A turn that has any success counts as none.
func (r *run) failedAlike(calls []call) error {
	var texts []string
	for _, c := range calls {
		if !c.result.IsError {
			r.alike, r.failure = 0, ""
			return nil
		}
		texts = append(texts, c.result.Text())
	}
	slices.Sort(texts)
	failure := strings.Join(slices.Compact(texts), "\n")
	if failure != r.failure {
		r.alike, r.failure = 0, failure
	}
	if r.alike++; r.alike >= sameErrors {
		return fail(ReasonRepeatedError, "%d turns in a row failed alike: %s", r.alike, excerpt(line(failure, ""), 500))
	}
	return nil
}

// call runs one tool and keeps what the model is to read of it.
func (r *run) call(ctx context.Context, c *call) {
	if ctx.Err() != nil {
		return
	}
	start := time.Now()
	run := r.toolbox.Call
	if own := c.tool.own; own != nil {
		run = func(ctx context.Context, call tools.Call) (tools.Result, error) {
			return r.toolbox.CallTool(ctx, own, call)
		}
	}
	far := r.follow(c)
	res, err := run(event.NewContext(ctx, r.scope(c)), tools.Call{
		ID: c.id, Name: c.tool.def.Name, Arguments: c.args,
		Agent: r.in.Agent.Key, Task: r.in.Task.Key, Progress: far.report,
	})
	far.end()
	returned := r.toolEvent(event.ToolReturned, c)
	returned.DurationMS = time.Since(start).Milliseconds()
	switch {
	case err != nil:
		c.late = lateBy(err)
		res = tools.Failure(hostFailure(err))
		returned.Error = excerpt(line(err.Error(), ""), 500)
	case res.IsError:
		returned.Error = excerpt(line(resultText(res), "the tool reported an error without a word"), 500)
	case c.tool.def.Name == humanInput && !res.Unasked:
		r.heard.Store(true)
	}
	returned.Success = new(!res.IsError)
	c.result = r.limits.message(c.id, res, r.limits.resultChars(c.tool.def.Name))
	r.emit(returned)
}

// resultText joins the texts of a result.
func resultText(res tools.Result) string {
	var texts []string
	for _, c := range res.Content {
		texts = append(texts, c.Text)
	}
	return strings.Join(texts, " ")
}

// hostFailure is what the model reads of a call that the host could not carry
// out (K33).
func hostFailure(err error) string {
	text := line(err.Error(), "the host could not carry out the call")
	switch tools.CodeOf(err) {
	case tools.CodeTransportFailed, tools.CodeTransportClosed, tools.CodeCallTimeout, tools.CodeCancelled:
		text += "; whether the call took effect is not known"
	}
	return text
}

func (r *run) called(c *call) {
	c.about = r.events.ID()
	e := r.toolEvent(event.ToolCalled, c)
	e.Arguments = argumentNames(c.args)
	r.emit(e)
}

// faultMessage answers a call that is not run.
func (r *run) faultMessage(c *call) llm.Message {
	e := r.toolEvent(event.ToolReturned, c)
	e.Success, e.Error = new(false), excerpt(line(c.fault, ""), 500)
	r.emit(e)
	return r.limits.message(c.id, tools.Failure(c.fault), r.limits.ResultChars)
}

func (r *run) toolEvent(kind event.Kind, c *call) event.Event {
	e := event.Event{
		Kind: kind, Correlation: c.about, Cause: r.about,
		Call: c.id, Tool: c.tool.def.Name, Server: c.tool.def.Server, Turn: r.out.Turns,
	}
	if !c.known {
		e.Tool = excerpt(line(c.name, "(no name)"), maxWireName)
	}
	return e
}

// scope is where what comes of a call happens: what its tool asks a person, a
// task that it hands on.
func (r *run) scope(c *call) event.Scope {
	return event.Scope{
		Task: r.in.Task.Key, Agent: r.in.Agent.Key, Role: r.in.Agent.Role.V, Attempt: r.in.Attempt,
		Call: c.id, Tool: c.tool.def.Name, Server: c.tool.def.Server, Correlation: c.about,
		Path: strings.TrimPrefix(r.path+"/"+c.id, "/"),
	}
}

// uniqueID returns id, or another one where it is missing or was used before in
// the conversation: each result must name its own call.
func (r *run) uniqueID(id string, i int) string {
	for n := 0; id == "" || r.ids[id]; n++ {
		id = fmt.Sprintf("call_%d_%d", r.out.Turns, i+1)
		if n > 0 {
			id += "_" + strconv.Itoa(n)
		}
	}
	r.ids[id] = true
	return id
}

// callNames lists the tools of calls, for a person or a model.
func callNames(calls []llm.ToolCall) string {
	const shown = 5
	var names []string
	for _, c := range calls[:min(len(calls), shown)] {
		names = append(names, strconv.Quote(excerpt(c.Name, maxWireName)))
	}
	s := strings.Join(names, ", ")
	if n := len(calls) - shown; n > 0 {
		s += fmt.Sprintf(" and %d more", n)
	}
	return s
}
