package agent_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crewhost/runner/event"
	"crewhost/runner/llm/llmtest"
	"crewhost/tools"
)

// What a tool says of how far it is is told as long as its call lasts.
func TestProgressIsToldUntilTheCallReturns(t *testing.T) {
	model := llmtest.New(t, llmtest.Calls(toolCall("c1", "slow", `{}`)), llmtest.Text("Done."))
	var report func(tools.Progress)
	slow := tool{def: tools.Definition{Name: "slow"}, run: func(_ context.Context, call tools.Call) (tools.Result, error) {
		report = call.Progress
		report(tools.Progress{Done: 1, Total: 4, Message: "one\nof four"})
		return tools.Text("slow, but done"), nil
	}}
	b := newBench(t, model, slow)
	if _, err := b.run(t.Context(), t, input("slow")); err != nil {
		t.Fatal(err)
	}
	report(tools.Progress{Done: 4}) // too late
	var told []event.Event
	for _, e := range b.events {
		switch e.Kind {
		case event.ToolCalled, event.ToolProgress, event.ToolReturned:
			if e.Correlation != "2" || e.Cause != "1" || e.Call != "c1" || e.Tool != "slow" {
				t.Errorf("%+v", e)
			}
			told = append(told, e)
		}
	}
	if len(told) != 3 {
		t.Fatalf("%d events", len(told))
	}
	want := &event.Progress{Done: 1, Total: 4, Message: "one of four"}
	if diff := cmp.Diff(want, told[1].Progress); diff != "" || told[1].Kind != event.ToolProgress {
		t.Error(diff)
	}
}
