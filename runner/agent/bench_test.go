package agent_test

import (
	"context"
	"fmt"
	"testing"

	"crewhost/runner/agent"
	"crewhost/runner/llm"
	"crewhost/tools"
)

// instant answers at once: with a call, then with a text.
type instant struct{ turns int }

func (m instant) Generate(_ context.Context, req llm.Request) (*llm.Response, error) {
	if n := len(req.Messages) / 2; n < m.turns-1 {
		return &llm.Response{Message: llm.Message{Calls: []llm.ToolCall{{Name: "search", Arguments: fmt.Sprintf(`{"q":"%d"}`, n)}}}, Stop: llm.StopTools}, nil
	}
	return &llm.Response{Message: llm.Message{Parts: []llm.Part{{Text: "done"}}}, Stop: llm.StopEnd}, nil
}

// BenchmarkTurn measures the loop's own cost of one turn with one call, in a
// task of twenty turns, with a model and a tool that take no time.
func BenchmarkTurn(b *testing.B) {
	const turns = 20
	bench := newBench(b, instant{turns})
	if err := bench.registry.Add(echo("search")); err != nil {
		b.Fatal(err)
	}
	loop, err := agent.New(agent.Config{
		Models:      bench.cfg.Models,
		Toolbox:     direct{&bench.registry},
		Definitions: bench.registry.Definitions,
	})
	if err != nil {
		b.Fatal(err)
	}
	in := input("search")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := loop.Run(b.Context(), in); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/turns, "ns/turn")
}

// direct calls what is registered.
type direct struct{ registry *tools.Registry }

func (d direct) Call(ctx context.Context, call tools.Call) (tools.Result, error) {
	t, _ := d.registry.Lookup(call.Name)
	return t.Call(ctx, call)
}

func (d direct) CallTool(ctx context.Context, tool tools.Tool, call tools.Call) (tools.Result, error) {
	return tool.Call(ctx, call)
}

// BenchmarkTeam measures the loop's own cost of a task in one turn, for an agent
// that may put work to nineteen others.
func BenchmarkTeam(b *testing.B) {
	bench := newBench(b, instant{1})
	loop, err := agent.New(agent.Config{Models: bench.cfg.Models, Toolbox: direct{&bench.registry}, Definitions: bench.registry.Definitions})
	if err != nil {
		b.Fatal(err)
	}
	var roles []string
	for i := range 20 {
		roles = append(roles, fmt.Sprintf("agent%d=Role %d", i, i))
	}
	in := team(roles...)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := loop.Run(b.Context(), in); err != nil {
			b.Fatal(err)
		}
	}
}
