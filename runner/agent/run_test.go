package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"crewhost/crew"
	"crewhost/runner/agent"
	"crewhost/runner/event"
	"crewhost/runner/llm"
	"crewhost/runner/llm/llmtest"
	"crewhost/tools"
)

func clock() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

func TestATaskWithToolsEndToEnd(t *testing.T) {
	model := llmtest.New(t,
		llmtest.Reply(llm.Response{
			Message: llm.Message{
				Parts: []llm.Part{{Text: "Let me look."}},
				Calls: []llm.ToolCall{toolCall("1", "search", `{"q":"tides"}`)},
			},
			Stop: llm.StopTools, Usage: llm.Usage{Input: 7, Output: 3, Measured: true}, Model: "m-1",
		}),
		llmtest.Text("Tides rise.").Expect(func(req llm.Request) error {
			// Text beside a call is kept, and the call is run (K75).
			var roles []string
			for _, m := range req.Messages {
				roles = append(roles, string(m.Role)+":"+m.Text())
			}
			want := []string{"assistant:Let me look.", `tool:search{"q":"tides"}`}
			if diff := cmp.Diff(want, roles[1:]); diff != "" {
				return errors.New(diff)
			}
			return nil
		}),
	)
	b := newBench(t, model, echo("search"), echo("other"))
	out, err := b.run(t.Context(), t, input("search"))
	if err != nil {
		t.Fatal(err)
	}
	out.Took = 0
	want := agent.Output{Text: "Tides rise.", Turns: 2, ToolCalls: 1, Model: "script",
		Usage: llm.Usage{Input: 17, Output: 8, Measured: true}}
	if diff := cmp.Diff(want, out); diff != "" {
		t.Error(diff)
	}
	b.calls[0].Progress = nil
	if diff := cmp.Diff([]tools.Call{{ID: "1", Name: "search", Arguments: json.RawMessage(`{"q":"tides"}`), Agent: "writer", Task: "write"}}, b.calls); diff != "" {
		t.Error(diff)
	}
	var told []string
	for _, e := range b.events {
		if e.Task != "write" || e.Agent != "writer" || e.Attempt != 1 {
			t.Errorf("event of nobody: %+v", e)
		}
		told = append(told, fmt.Sprintf("%s %d %s %v %d", e.Kind, e.Turn, e.Tool, e.Arguments, e.InputTokens))
	}
	wantTold := []string{
		"model.called 1  [] 0", "model.returned 1  [] 7", "cost.updated 0  [] 7",
		"tool.called 1 search [q] 0", "tool.returned 1 search [] 0",
		"model.called 2  [] 0", "model.returned 2  [] 10", "cost.updated 0  [] 17",
	}
	if diff := cmp.Diff(wantTold, told); diff != "" {
		t.Error(diff)
	}
}

func TestMaxRPMWaits(t *testing.T) {
	turns := func(n int) []llmtest.Turn {
		var out []llmtest.Turn
		for i := range n - 1 {
			out = append(out, llmtest.Calls(toolCall("", "search", fmt.Sprintf(`{"q":"%d"}`, i))))
		}
		return append(out, llmtest.Text("done"))
	}
	for _, tt := range []struct {
		rpm, turns int
		want       time.Duration
	}{
		{0, 10, 0}, {10, 5, 0}, {10, 10, time.Minute}, {1, 3, 2 * time.Minute}, {3, 4, 90 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			in := input("search")
			in.Agent.MaxRPM.V = tt.rpm
			start := time.Now()
			if _, err := newBench(t, llmtest.New(t, turns(tt.turns)...), echo("search")).run(t.Context(), t, in); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(start).Round(time.Millisecond); took != tt.want {
				t.Errorf("%d requests at %d a minute took %v, want %v", tt.turns, tt.rpm, took, tt.want)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) { // the crew's own, and a deadline that is nearer
		in := input("search")
		in.Crew.MaxRPM.V = 1
		in.Agent.MaxExecutionTime = 30 * time.Second
		start := time.Now()
		_, err := newBench(t, llmtest.New(t, turns(3)[0]), echo("search")).run(t.Context(), t, in)
		wantReason(t, err, agent.ReasonTimeout)
		if waited := time.Since(start); waited != 0 {
			t.Errorf("it was waited %v for what can't be", waited)
		}
	})
	synctest.Test(t, func(t *testing.T) { // a deadline of the run ends the run, when it comes
		in := input("search")
		in.Crew.MaxRPM.V = 1
		in.Agent.MaxExecutionTime = time.Hour
		over := errors.New("the run is over")
		ctx, cancel := context.WithTimeoutCause(t.Context(), 30*time.Second, over)
		defer cancel()
		start := time.Now()
		_, err := newBench(t, llmtest.New(t, turns(3)[0]), echo("search")).run(ctx, t, in)
		wantReason(t, err, agent.ReasonCancelled)
		if waited := time.Since(start); waited != 30*time.Second || !errors.Is(err, over) {
			t.Errorf("%v after %v", err, waited)
		}
	})
}

func TestStreamedAnswersAreTold(t *testing.T) {
	b := newBench(t, llmtest.New(t, llmtest.Text("hello")))
	b.cfg.Stream = true
	if _, err := b.run(t.Context(), t, input()); err != nil {
		t.Fatal(err)
	}
	var deltas []string
	for _, e := range b.events {
		if e.Kind == event.ModelDelta {
			deltas = append(deltas, e.Text)
		}
	}
	if !slices.Equal(deltas, []string{"hello"}) {
		t.Errorf("%q", deltas)
	}
}

func TestLongConversationsAreTrimmed(t *testing.T) {
	var turns []llmtest.Turn
	for i := range 15 {
		turns = append(turns, llmtest.Calls(
			toolCall("", "search", fmt.Sprintf(`{"q":"%d a"}`, i)), toolCall("", "search", fmt.Sprintf(`{"q":"%d b"}`, i))))
	}
	model := llmtest.New(t, append(turns, llmtest.Text("done"))...)
	b := newBench(t, model, echo("search"))
	b.cfg.Limits.HistoryMessages = 20
	if _, err := b.run(t.Context(), t, input("search")); err != nil {
		t.Fatal(err)
	}
	trimmed := false
	for n, req := range model.Requests() {
		if len(req.Messages) > 21 { // the notice is one more
			t.Errorf("request %d has %d messages", n+1, len(req.Messages))
		}
		if !strings.Contains(req.Messages[0].Text(), "tides") {
			t.Errorf("request %d lost the task", n+1)
		}
		trimmed = trimmed || len(req.Messages) > 1 && strings.Contains(req.Messages[1].Text(), "earlier messages")
		asked := map[string]bool{}
		answered := map[string]bool{}
		for _, m := range req.Messages {
			for _, c := range m.Calls {
				asked[c.ID] = true
			}
			if m.Role == llm.RoleTool {
				answered[m.CallID] = true
				if !asked[m.CallID] {
					t.Errorf("request %d holds an orphan result %s", n+1, m.CallID)
				}
			}
		}
		if len(asked) != len(answered) {
			t.Errorf("request %d: %d calls, %d results", n+1, len(asked), len(answered))
		}
	}
	if !trimmed || len(b.notices()) == 0 {
		t.Error("nothing was trimmed, or nobody was told")
	}
}

func TestSettingsCascade(t *testing.T) {
	half, one := 0.5, 1.0
	yes, many := true, 900
	in := input()
	in.Crew.LLM = &crew.LLM{Model: text("crew-model"), Temperature: &half, MaxTokens: &many}
	in.Agent.LLM = &crew.LLM{Profile: text("cheap"), Thinking: &crew.Thinking{Enabled: &yes, Effort: text("low")}}
	in.Task.LLM = &crew.LLM{Temperature: &one, Thinking: &crew.Thinking{Effort: text("high")},
		ResponseSchema: &crew.ResponseSchema{Name: "r", Schema: `{"type":"object"}`, Strict: true}}
	model := llmtest.New(t, llmtest.Text("{}"))
	b := newBench(t, model)
	b.cfg.Models = func(profile string) (llm.Model, agent.Settings, error) {
		return model, agent.Settings{Model: "model of " + profile, TopP: &half}, nil
	}
	if _, err := b.run(t.Context(), t, in); err != nil {
		t.Fatal(err)
	}
	got := model.Requests()[0]
	want := llm.Request{
		Model: "model of cheap", Temperature: &one, TopP: &half, MaxTokens: 900,
		Thinking: &llm.Thinking{Enabled: true, Effort: "high"},
		Format:   &llm.ResponseFormat{Type: "json_schema", Name: "r", Schema: json.RawMessage(`{"type":"object"}`), Strict: true},
	}
	got.System, got.Messages = "", nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAFormatOfTheTaskGoesFirstAndItsNameFits(t *testing.T) {
	in := input()
	in.Agent.LLM = &crew.LLM{ResponseFormat: text("json_object")}
	in.Format = &llm.ResponseFormat{Type: "json_schema", Name: "größe.v2", Schema: json.RawMessage(`{}`)}
	model := llmtest.New(t, llmtest.Text("{}"))
	if _, err := newBench(t, model).run(t.Context(), t, in); err != nil {
		t.Fatal(err)
	}
	want := &llm.ResponseFormat{Type: "json_schema", Name: "gr__e_v2", Schema: json.RawMessage(`{}`)}
	if diff := cmp.Diff(want, model.Requests()[0].Format); diff != "" {
		t.Error(diff)
	}
	if in.Format.Name != "größe.v2" {
		t.Error("the caller's format was changed")
	}
}

func TestNewRefusesHalfAToolbox(t *testing.T) {
	if _, err := agent.New(agent.Config{}); err == nil {
		t.Error("no models")
	}
	b := newBench(t, nil)
	b.cfg.Definitions = nil
	if _, err := agent.New(b.cfg); err == nil {
		t.Error("a toolbox without definitions")
	}
}
