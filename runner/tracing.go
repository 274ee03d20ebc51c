package runner

import (
	"cmp"
	"context"
	"path/filepath"
	"sync"
	"time"

	"crewhost/crew"
	"crewhost/mcp"
	"crewhost/runner/event"
	"crewhost/runner/process"
	"crewhost/runner/telemetry"
	"crewhost/tools"
	"crewhost/tools/permission"
)

// traceRun is doRun as a span, of which all others are a part.
func (h *Host) traceRun(ctx context.Context, c *crew.Crew, inputs crew.Inputs, guard *permission.Guard, events *event.Stream, past *history) (*Output, error) {
	ctx, end := h.cfg.Telemetry.Crew(ctx, cmp.Or(c.Name.V, filepath.Base(c.Path)), events.Run())
	out, err := h.doRun(ctx, c, inputs, guard, events, past)
	end(err)
	return out, err
}

// spanOfTool returns what tells of each call that may be made, or nil where nobody is
// told.
func (h *Host) spanOfTool() around {
	to := h.cfg.Telemetry
	if to == nil {
		return nil
	}
	return func(ctx context.Context, o permission.Observation, run func(context.Context) (tools.Result, error)) (tools.Result, error) {
		call := telemetry.Call{Server: o.Request.Server}
		if call.Server != "" {
			call = h.spoken(call.Server)
		}
		call.Tool, call.ID, call.Arguments = o.Call.Name, o.Call.ID, o.Call.Arguments
		ctx, end := to.Tool(ctx, call)
		res, err := run(ctx)
		end(res, err)
		return res, err
	}
}

// spoken is how a server is spoken to.
func (h *Host) spoken(server string) telemetry.Call {
	call := telemetry.Call{Server: server}
	if h.servers == nil {
		return call
	}
	for _, r := range h.Servers() {
		if r.Name == server {
			call.Protocol, call.Remote = r.Protocol, r.Transport.Remote()
		}
	}
	return call
}

// traceTasks is what does the work of a process, as spans.
func (h *Host) traceTasks(runner process.TaskRunner, asks process.Questioner) tracedTasks {
	return tracedTasks{runner, asks, h.cfg.Telemetry}
}

// tracedTasks tells of the work of agents, and of what a process asks them besides.
type tracedTasks struct {
	runner process.TaskRunner
	asks   process.Questioner
	to     *telemetry.Telemetry
}

// RunTask implements [process.TaskRunner].
func (t tracedTasks) RunTask(ctx context.Context, in process.TaskInput) (process.Answer, error) {
	ctx, end := t.to.Agent(ctx, in.Agent.Key, in.Task.Key)
	answer, err := t.runner.RunTask(ctx, in)
	end(err)
	return answer, err
}

// Ask implements [process.Questioner].
func (t tracedTasks) Ask(ctx context.Context, in process.Question) (process.Answer, error) {
	name := "" // it is the crew's own question
	if in.Agent != nil {
		name = in.Agent.Key
	}
	ctx, end := t.to.Agent(ctx, name, "")
	answer, err := t.asks.Ask(ctx, in)
	end(err)
	return answer, err
}

// connections tells how long servers were connected, and what they were asked.
type connections struct {
	host *Host

	mu    sync.Mutex
	since map[string]time.Time
}

// request has requests to servers be told of, or nil where nobody is.
func (c *connections) request() func(context.Context, mcp.Asked) func(mcp.Answered) {
	to := c.host.cfg.Telemetry
	if to == nil {
		return nil
	}
	return func(ctx context.Context, a mcp.Asked) func(mcp.Answered) {
		ended := to.Request(ctx, telemetry.Call{Server: a.Server, Protocol: a.Protocol, Remote: a.Transport.Remote()}, a.Method)
		return func(answer mcp.Answered) { ended(answer.ID, answer.Code, answer.Err) }
	}
}

// change notes a change of a server's state, and tells it on.
func (c *connections) change(ctx context.Context, on func(mcp.StateChange)) func(mcp.StateChange) {
	to := c.host.cfg.Telemetry
	if to == nil {
		return on
	}
	return func(change mcp.StateChange) {
		on(change)
		c.mu.Lock()
		began, connected := c.since[change.Server]
		delete(c.since, change.Server)
		if change.To == mcp.StateConnected {
			if c.since == nil {
				c.since = map[string]time.Time{}
			}
			c.since[change.Server] = time.Now()
		}
		c.mu.Unlock()
		if connected {
			call := telemetry.Call{Server: change.Server, Protocol: change.Protocol, Remote: change.Transport.Remote()}
			to.Connected(ctx, call, time.Since(began), change.Err)
		}
	}
}
