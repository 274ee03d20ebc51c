package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"crewhost/crew"
	"crewhost/runner/agent"
	"crewhost/runner/event"
	"crewhost/runner/event/eventtest"
	"crewhost/runner/llm"
	"crewhost/runner/llm/llmtest"
	"crewhost/tools"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// tool is a tool of a test.
type tool struct {
	def tools.Definition
	run func(ctx context.Context, call tools.Call) (tools.Result, error)
}

func (t tool) Definition() tools.Definition { return t.def }

func (t tool) Call(ctx context.Context, call tools.Call) (tools.Result, error) {
	return t.run(ctx, call)
}

// echo answers with its arguments.
func echo(name string) tool {
	return tool{tools.Definition{Name: name, InputSchema: json.RawMessage(`{"type":"object","properties":{"q":{"type":"string"}}}`)},
		func(_ context.Context, c tools.Call) (tools.Result, error) {
			return tools.Text(name + string(c.Arguments)), nil
		}}
}

// answering answers every call alike.
func answering(name string, res tools.Result, err error) tool {
	return tool{tools.Definition{Name: name}, func(context.Context, tools.Call) (tools.Result, error) { return res, err }}
}

// bench is what a test's agent works with: an open toolbox that keeps the calls,
// and the events of the run.
type bench struct {
	registry tools.Registry
	cfg      agent.Config

	mu     sync.Mutex
	calls  []tools.Call
	events []event.Event
}

func newBench(t testing.TB, model llm.Model, held ...tool) *bench {
	b := &bench{}
	for _, h := range held {
		if err := b.registry.Add(h); err != nil {
			t.Fatal(err)
		}
	}
	b.cfg = agent.Config{
		Models:      func(string) (llm.Model, agent.Settings, error) { return model, agent.Settings{}, nil },
		Toolbox:     b,
		Definitions: b.registry.Definitions,
		Events:      event.NewStream("test", clock, eventtest.Sink(t), func(e event.Event) { b.events = append(b.events, e) }),
	}
	return b
}

func (b *bench) Call(ctx context.Context, call tools.Call) (tools.Result, error) {
	b.mu.Lock()
	b.calls = append(b.calls, call)
	b.mu.Unlock()
	t, ok := b.registry.Lookup(call.Name)
	if !ok {
		return tools.Result{}, &tools.Error{Code: tools.CodeToolNotFound, Tool: call.Name, Detail: "not registered"}
	}
	return t.Call(ctx, call)
}

func (b *bench) CallTool(ctx context.Context, tool tools.Tool, call tools.Call) (tools.Result, error) {
	b.mu.Lock()
	b.calls = append(b.calls, call)
	b.mu.Unlock()
	return tool.Call(ctx, call)
}

func (b *bench) run(ctx context.Context, t testing.TB, in agent.Input) (agent.Output, error) {
	t.Helper()
	loop, err := agent.New(b.cfg)
	if err != nil {
		t.Fatal(err)
	}
	return loop.Run(ctx, in)
}

// notices are the texts of the notices so far.
func (b *bench) notices() []string {
	var out []string
	for _, e := range b.events {
		if e.Kind == event.Notice {
			out = append(out, e.Text)
		}
	}
	return out
}

func text(s string) crew.Text { return crew.Text{V: s, Set: true} }

func texts(in ...string) []crew.Text {
	var out []crew.Text
	for _, s := range in {
		out = append(out, text(s))
	}
	return out
}

// input is a task for an agent with those tools.
func input(held ...string) agent.Input {
	a := &crew.Agent{Key: "writer", Role: text("a writer"), Goal: text("write well"), MaxIter: 20, Tools: texts(held...)}
	t := &crew.Task{Key: "write", Description: text("Write about tides."), ExpectedOutput: text("A paragraph.")}
	return agent.Input{
		Crew:  &crew.Crew{Name: text("c"), Agents: []*crew.Agent{a}, Tasks: []*crew.Task{t}},
		Agent: a, Task: t,
	}
}

// asked returns a check that the last message contains want.
func asked(check func(last llm.Message, req llm.Request) error) func(llm.Request) error {
	return func(req llm.Request) error { return check(req.Messages[len(req.Messages)-1], req) }
}

// cut is an answer that the token limit cut.
func cut(text string, calls ...llm.ToolCall) llmtest.Turn {
	m := llm.Message{Role: llm.RoleAssistant, Calls: calls}
	if text != "" {
		m.Parts = []llm.Part{{Text: text}}
	}
	return llmtest.Reply(llm.Response{Message: m, Stop: llm.StopLength})
}

func thought(reasoning string) llmtest.Turn {
	return llmtest.Reply(llm.Response{Message: llm.Message{Role: llm.RoleAssistant, Reasoning: reasoning}, Stop: llm.StopEnd})
}

func toolCall(id, name, args string) llm.ToolCall {
	return llm.ToolCall{ID: id, Name: name, Arguments: args}
}

// results are the tool messages of a request, as "id error text".
func results(req llm.Request) []string {
	var out []string
	for _, m := range req.Messages {
		if m.Role == llm.RoleTool {
			out = append(out, fmt.Sprintf("%s %v %s", m.CallID, m.IsError, m.Text()))
		}
	}
	return out
}

func wantReason(t *testing.T, err error, want agent.Reason) {
	t.Helper()
	if got := agent.ReasonOf(err); got != want {
		t.Fatalf("reason %q, want %q (%v)", got, want, err)
	}
}
