package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"crewhost/runner/agent"
	"crewhost/runner/event"
	"crewhost/runner/llm"
	"crewhost/runner/llm/llmtest"
	"crewhost/tools"
)

// The model calls a tool by a name that its API takes; the tool gets its own name
// and the arguments digit for digit.
func TestNamesAreChangedBackK23AndDigitsKeptK31(t *testing.T) {
	args := `{"id":725653563933458433,"e":1e400,"f":0.1000000000000000055}`
	model := llmtest.New(t,
		llmtest.Calls(toolCall("1", "files_list", args)).Expect(func(req llm.Request) error {
			if len(req.Tools) != 1 || req.Tools[0].Name != "files_list" {
				return fmt.Errorf("offered: %+v", req.Tools)
			}
			return nil
		}),
		llmtest.Text("done"),
	)
	b := newBench(t, model, echo("files.list"))
	if _, err := b.run(t.Context(), t, input("files.list")); err != nil {
		t.Fatal(err)
	}
	if b.calls[0].Name != "files.list" || string(b.calls[0].Arguments) != args {
		t.Errorf("%+v", b.calls[0])
	}
	if got := results(model.Requests()[1]); got[0] != "1 false files.list"+args {
		t.Errorf("%q", got)
	}
}

func TestOnlyNamedToolsTravelK27(t *testing.T) {
	var held []tool
	for i := range 1500 {
		held = append(held, echo(fmt.Sprintf("tool_%04d", i)))
	}
	for _, tt := range []struct {
		name  string
		agent []string
		task  []string
		want  []string
	}{
		{"two", []string{"tool_1200", "tool_0007"}, nil, []string{"tool_0007", "tool_1200"}},
		{"none", nil, nil, nil},
		{"the task's too, once", []string{"tool_0001"}, []string{"tool_0002", "tool_0001"}, []string{"tool_0001", "tool_0002"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			model := llmtest.New(t, llmtest.Text("ok"))
			b := newBench(t, model, held...)
			in := input(tt.agent...)
			in.Task.Tools = texts(tt.task...)
			if _, err := b.run(t.Context(), t, in); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, d := range model.Requests()[0].Tools {
				got = append(got, d.Name)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			if len(b.notices()) != 0 {
				t.Errorf("notices: %q", b.notices())
			}
		})
	}
	t.Run("too many are told before the call", func(t *testing.T) {
		var names []string
		for i := range 129 {
			names = append(names, fmt.Sprintf("tool_%04d", i))
		}
		model := llmtest.New(t, llmtest.Text("ok"))
		b := newBench(t, model, held...)
		if _, err := b.run(t.Context(), t, input(names...)); err != nil {
			t.Fatal(err)
		}
		if b.events[0].Kind != event.Notice || !strings.Contains(b.events[0].Text, "129 tools") {
			t.Errorf("first event: %+v", b.events[0])
		}
	})
	t.Run("a tool that is not there", func(t *testing.T) {
		b := newBench(t, llmtest.New(t), held...)
		_, err := b.run(t.Context(), t, input("tool_0001", "gone", "also_gone"))
		wantReason(t, err, agent.ReasonTools)
		if !strings.Contains(err.Error(), `"also_gone", "gone"`) {
			t.Error(err)
		}
	})
}

func TestUnknownToolsAreAnsweredK69(t *testing.T) {
	model := llmtest.New(t,
		llmtest.Calls(toolCall("a", "serch", `{}`)),
		llmtest.Calls(toolCall("b", "list", `{}`)),
		llmtest.Calls(toolCall("c", "theirs", `{}`)),
		llmtest.Calls(toolCall("d", "GET:/x", `{}`), toolCall("e", "search", `{"q":"1"}`)),
		llmtest.Text("done"),
	)
	b := newBench(t, model, echo("search"), echo("mcp__files__list"), echo("theirs"))
	out, err := b.run(t.Context(), t, input("search", "mcp__files__list"))
	if err != nil || out.Text != "done" {
		t.Fatal(out, err)
	}
	if len(b.calls) != 1 || b.calls[0].Name != "search" || out.ToolCalls != 1 {
		t.Errorf("what ran: %+v", b.calls)
	}
	last := model.Requests()[4]
	want := []string{
		`a true Error: you have no tool "serch"; did you mean "search"? Your tools: mcp__files__list, search`,
		`b true Error: you have no tool "list"; did you mean "mcp__files__list"? Your tools: mcp__files__list, search`,
		`c true Error: you have no tool "theirs" Your tools: mcp__files__list, search`,
		`d true Error: you have no tool "GET:/x" Your tools: mcp__files__list, search`,
		`e false search{"q":"1"}`,
	}
	if diff := cmp.Diff(want, results(last)); diff != "" {
		t.Error(diff)
	}
	// A name that no API takes must not go back in the conversation.
	for _, m := range last.Messages {
		for _, c := range m.Calls {
			if strings.ContainsAny(c.Name, ":/") {
				t.Errorf("the conversation holds the name %q", c.Name)
			}
		}
	}
}

func TestUnknownToolWithoutTools(t *testing.T) {
	model := llmtest.New(t, llmtest.Calls(toolCall("a", "shell", `{`)), llmtest.Text("x"))
	b := newBench(t, model)
	if _, err := b.run(t.Context(), t, input()); err != nil {
		t.Fatal(err)
	}
	if got := results(model.Requests()[1]); len(got) != 1 || !strings.Contains(got[0], "you have no tools") {
		t.Error(got)
	}
}

// Three calls of one answer wait for each other, so they can end only if they
// run at once; the first of them ends last.
func TestCallsOfOneAnswerRunAtOnceAndKeepTheirOrder(t *testing.T) {
	arrived := make(chan struct{})
	release := make([]chan struct{}, 4)
	for i := range release {
		release[i] = make(chan struct{})
	}
	close(release[3])
	waiting := tool{tools.Definition{Name: "wait"}, func(_ context.Context, c tools.Call) (tools.Result, error) {
		n := int(c.ID[0] - '0')
		arrived <- struct{}{}
		<-release[n+1]
		close(release[n])
		return tools.Text("result " + c.ID), nil
	}}
	model := llmtest.New(t,
		llmtest.Calls(toolCall("0", "wait", ""), toolCall("1", "wait", "null"), toolCall("2", "wait", "{}")),
		llmtest.Text("done"),
	)
	b := newBench(t, model, waiting)
	ended := make(chan error, 1)
	go func() {
		_, err := b.run(t.Context(), t, input("wait"))
		ended <- err
	}()
	for range 3 {
		<-arrived
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	want := []string{"0 false result 0", "1 false result 1", "2 false result 2"}
	if diff := cmp.Diff(want, results(model.Requests()[1])); diff != "" {
		t.Error(diff)
	}
	var called []string
	for _, e := range b.events {
		if e.Kind == event.ToolCalled {
			called = append(called, e.Call)
		}
	}
	if diff := cmp.Diff([]string{"0", "1", "2"}, called); diff != "" {
		t.Error(diff)
	}
}

func TestConcurrentCallsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		running, most := 0, 0
		b := newBench(t, nil)
		count := tool{tools.Definition{Name: "count"}, func(context.Context, tools.Call) (tools.Result, error) {
			b.mu.Lock()
			running++
			most = max(most, running)
			b.mu.Unlock()
			<-gate
			b.mu.Lock()
			running--
			b.mu.Unlock()
			return tools.Text("ok"), nil
		}}
		var calls []llm.ToolCall
		for i := range 10 {
			calls = append(calls, toolCall(fmt.Sprint(i), "count", "{}"))
		}
		model := llmtest.New(t, llmtest.Calls(calls...), llmtest.Text("done"))
		if err := b.registry.Add(count); err != nil {
			t.Fatal(err)
		}
		b.cfg.Models = func(string) (llm.Model, agent.Settings, error) { return model, agent.Settings{}, nil }
		b.cfg.Limits.ConcurrentCalls = 3
		ended := make(chan error, 1)
		go func() {
			_, err := b.run(t.Context(), t, input("count"))
			ended <- err
		}()
		synctest.Wait()
		close(gate)
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		if most != 3 {
			t.Errorf("%d ran at once, want 3", most)
		}
	})
}

func TestCallIDsAreMadeUnique(t *testing.T) {
	model := llmtest.New(t,
		llmtest.Calls(toolCall("", "search", `{"q":"1"}`), toolCall("x", "search", `{"q":"2"}`), toolCall("x", "search", `{"q":"3"}`)),
		llmtest.Calls(toolCall("x", "search", `{"q":"4"}`)),
		llmtest.Text("done"),
	)
	b := newBench(t, model, echo("search"))
	if _, err := b.run(t.Context(), t, input("search")); err != nil {
		t.Fatal(err)
	}
	want := []string{
		`call_1_1 false search{"q":"1"}`, `x false search{"q":"2"}`,
		`call_1_3 false search{"q":"3"}`, `call_2_1 false search{"q":"4"}`,
	}
	if diff := cmp.Diff(want, results(model.Requests()[2])); diff != "" {
		t.Error(diff)
	}
}

func TestToolFailuresAreReadAndTheRunGoesOnK33(t *testing.T) {
	held := []tool{
		answering("empty", tools.Result{IsError: true}, nil),
		answering("two", tools.Result{IsError: true, Content: []tools.Content{{Kind: tools.KindText, Text: "no"}, {Kind: tools.KindText, Text: "way"}}}, nil),
		answering("protocol", tools.Result{}, &tools.Error{Code: tools.CodeProtocolError, Server: "s", Tool: "protocol", Detail: "code -32000"}),
		answering("lost", tools.Result{}, &tools.Error{Code: tools.CodeTransportClosed, Server: "s", Tool: "lost", Detail: "the server is gone"}),
		answering("plain", tools.Result{}, errors.New("denied by rule 3")),
	}
	var calls []llm.ToolCall
	var names []string
	for i, h := range held {
		calls = append(calls, toolCall(fmt.Sprint(i), h.def.Name, "{}"))
		names = append(names, h.def.Name)
	}
	model := llmtest.New(t, llmtest.Calls(calls...), llmtest.Text("done"))
	b := newBench(t, model, held...)
	if _, err := b.run(t.Context(), t, input(names...)); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"0 true Error: the tool failed and did not say why",
		"1 true Error: no\nway",
		`2 true Error: server "s", tool "protocol": code -32000 (mcp_protocol_error)`,
		`3 true Error: server "s", tool "lost": the server is gone (mcp_transport_closed); whether the call took effect is not known`,
		"4 true Error: denied by rule 3",
	}
	if diff := cmp.Diff(want, results(model.Requests()[1])); diff != "" {
		t.Error(diff)
	}
	for _, e := range b.events {
		if e.Kind == event.ToolReturned && (e.Success == nil || *e.Success || e.Error == "") {
			t.Errorf("a failure that is not told: %+v", e)
		}
	}
}

func TestTheSameErrorsStopTheTask(t *testing.T) {
	bad := answering("bad", tools.Failure("no such file"), nil)
	again := llmtest.Calls(toolCall("", "bad", "{}"))
	t.Run("three in a row", func(t *testing.T) {
		model := llmtest.New(t, again, again, again)
		out, err := newBench(t, model, bad).run(t.Context(), t, input("bad"))
		wantReason(t, err, agent.ReasonRepeatedError)
		if out.Turns != 3 || !strings.Contains(err.Error(), "no such file") {
			t.Error(out, err)
		}
	})
	t.Run("unknown tools", func(t *testing.T) {
		unknown := llmtest.Calls(toolCall("", "nope", "{}"))
		_, err := newBench(t, llmtest.New(t, unknown, unknown, unknown), bad).run(t.Context(), t, input("bad"))
		wantReason(t, err, agent.ReasonRepeatedError)
	})
	t.Run("a success between counts as none", func(t *testing.T) {
		good := llmtest.Calls(toolCall("", "bad", "{}"), toolCall("", "search", "{}"))
		model := llmtest.New(t, again, again, good, again, again, llmtest.Text("done"))
		if _, err := newBench(t, model, bad, echo("search")).run(t.Context(), t, input("bad", "search")); err != nil {
			t.Error(err)
		}
	})
	t.Run("many in one answer are one", func(t *testing.T) {
		model := llmtest.New(t, llmtest.Calls(toolCall("", "bad", "{}"), toolCall("", "bad", "{}"), toolCall("", "bad", "{}")), llmtest.Text("done"))
		if _, err := newBench(t, model, bad).run(t.Context(), t, input("bad")); err != nil {
			t.Error(err)
		}
	})
}

func TestMalformedArgumentsAreHandedBackBounded(t *testing.T) {
	model := llmtest.New(t,
		llmtest.Calls(toolCall("1", "search", `{"q":"a"}{"q":"b"}`)),
		llmtest.Calls(toolCall("2", "search", `{"q":`)),
		llmtest.Calls(toolCall("3", "search", `{"q":"fine"}`)),
		llmtest.Calls(toolCall("4", "search", `["q"]`)),
		llmtest.Calls(toolCall("5", "search", `{"q":1,"q":2}`)),
		llmtest.Calls(toolCall("6", "search", `q=1`)),
	)
	b := newBench(t, model, echo("search"))
	_, err := b.run(t.Context(), t, input("search"))
	wantReason(t, err, agent.ReasonMalformedCalls)
	if len(b.calls) != 1 {
		t.Errorf("%d calls ran, want 1", len(b.calls))
	}
	got := results(model.Requests()[5])
	for i, want := range []string{`"{\"q\":\"b\"}" follows it`, "end too early", `search{"q":"fine"}`, "one JSON object", `two members "q"`} {
		if !strings.Contains(got[i], want) {
			t.Errorf("result %d: %s, want %s", i, got[i], want)
		}
	}
	// What the conversation holds is valid JSON, or many APIs refuse it.
	for _, m := range model.Requests()[5].Messages {
		for _, c := range m.Calls {
			if !json.Valid([]byte(c.Arguments)) {
				t.Errorf("the conversation holds the arguments %q", c.Arguments)
			}
		}
	}
}

// A turn of very many calls is answered in full, and runs so many.
func TestATurnRunsSoManyCalls(t *testing.T) {
	var calls []llm.ToolCall
	for i := range 130 {
		calls = append(calls, toolCall(fmt.Sprint(i), "search", "{}"))
	}
	b := newBench(t, llmtest.New(t, llmtest.Calls(calls...), llmtest.Text("done").Expect(func(req llm.Request) error {
		got := results(req)
		if len(got) != 130 || got[127] != "127 false search{}" || got[128] != "128 true Error: search was not run: at most 128 calls of one turn are" {
			return fmt.Errorf("%d results: %q", len(got), got[127:])
		}
		return nil
	})), echo("search"))
	if out, err := b.run(t.Context(), t, input("search")); err != nil || len(b.calls) != 128 || out.ToolCalls != 128 {
		t.Errorf("%v, %d calls, %+v", err, len(b.calls), out)
	}
}
