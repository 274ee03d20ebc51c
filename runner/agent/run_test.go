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
		"model.called 1  [] 0", "model.returned 1  [] 7",
		"tool.called 1 search [q] 0", "tool.returned 1 search [] 0",
		"model.called 2  [] 0", "model.returned 2  [] 10",
	}
	if diff := cmp.Diff(wantTold, told); diff != "" {
		t.Error(diff)
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

func TestCutTurns_K71(t *testing.T) {
	write := toolCall("1", "search", `{"path":"/a","content":""}`)
	t.Run("no call of a cut turn runs, and the model is told", func(t *testing.T) {
		model := llmtest.New(t, cut("I write it.", write), cut("", write),
			llmtest.Text("done").Expect(asked(func(last llm.Message, req llm.Request) error {
				if last.Role != llm.RoleUser || !strings.Contains(last.Text(), "cut at the token limit") || len(results(req)) != 0 {
					return fmt.Errorf("last message: %+v", last)
				}
				return nil
			})))
		b := newBench(t, model, echo("search"))
		out, err := b.run(t.Context(), t, input("search"))
		if err != nil || out.Text != "done" || len(b.calls) != 0 {
			t.Error(out, err, b.calls)
		}
	})
	t.Run("bounded", func(t *testing.T) {
		model := llmtest.New(t, cut("", write), cut("", write), cut("half", write))
		b := newBench(t, model, echo("search"))
		out, err := b.run(t.Context(), t, input("search"))
		wantReason(t, err, agent.ReasonCut)
		if len(b.calls) != 0 || out.Text != "half" {
			t.Error(out, b.calls)
		}
	})
	t.Run("text is continued and joined", func(t *testing.T) {
		model := llmtest.New(t, cut("one "), cut("two "), llmtest.Text("three"))
		out, err := newBench(t, model).run(t.Context(), t, input())
		if err != nil || out.Text != "one two three" {
			t.Errorf("%q, %v", out.Text, err)
		}
	})
	t.Run("text that is never complete is no success", func(t *testing.T) {
		model := llmtest.New(t, cut("a"), cut("b"), cut("c"), cut("d"))
		out, err := newBench(t, model).run(t.Context(), t, input())
		wantReason(t, err, agent.ReasonCut)
		if out.Text != "abcd" {
			t.Errorf("partial text %q", out.Text)
		}
	})
	t.Run("an empty continuation does not complete it", func(t *testing.T) {
		model := llmtest.New(t, cut("a"), llmtest.Text(""), llmtest.Text(" "), llmtest.Text(""))
		out, err := newBench(t, model).run(t.Context(), t, input())
		wantReason(t, err, agent.ReasonCut)
		if out.Text != "a" {
			t.Errorf("partial text %q", out.Text)
		}
	})
	t.Run("maxIter within a continuation", func(t *testing.T) {
		in := input()
		in.Agent.MaxIter = 1
		_, err := newBench(t, llmtest.New(t, cut("a"))).run(t.Context(), t, in)
		wantReason(t, err, agent.ReasonCut)
	})
	t.Run("content_filter", func(t *testing.T) {
		model := llmtest.New(t, llmtest.Reply(llm.Response{
			Message: llm.Message{Parts: []llm.Part{{Text: "I was"}}, Calls: []llm.ToolCall{write}}, Stop: llm.StopFilter}))
		b := newBench(t, model, echo("search"))
		out, err := b.run(t.Context(), t, input("search"))
		wantReason(t, err, agent.ReasonFiltered)
		if len(b.calls) != 0 || out.Text != "I was" {
			t.Error(out, b.calls)
		}
	})
}

func TestEmptyAnswers_K75(t *testing.T) {
	t.Run("reasoning alone is no answer", func(t *testing.T) {
		model := llmtest.New(t, thought("hm"), thought("hm hm"), thought("hm hm hm"))
		b := newBench(t, model, echo("search"))
		out, err := b.run(t.Context(), t, input("search"))
		wantReason(t, err, agent.ReasonEmptyAnswer)
		if out.Text != "" || !strings.Contains(err.Error(), "maxTokens") {
			t.Errorf("%q, %v", out.Text, err)
		}
		var choices []llm.ToolChoice
		for _, r := range model.Requests() {
			choices = append(choices, r.ToolChoice)
			for _, m := range r.Messages {
				if len(m.Parts) == 0 && len(m.Calls) == 0 {
					t.Error("an empty message goes back to the model")
				}
			}
		}
		if diff := cmp.Diff([]llm.ToolChoice{"", llm.ToolNone, llm.ToolNone}, choices); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("a nudge helps", func(t *testing.T) {
		model := llmtest.New(t, llmtest.Text(" \n"), llmtest.Text("here"))
		out, err := newBench(t, model).run(t.Context(), t, input())
		if err != nil || out.Text != "here" {
			t.Error(out, err)
		}
	})
	t.Run("the markup of a call in place of an answer", func(t *testing.T) {
		model := llmtest.New(t, llmtest.Text(""), llmtest.Text(`<invoke name="x">`), llmtest.Text("here"))
		out, err := newBench(t, model).run(t.Context(), t, input())
		if err != nil || out.Text != "here" {
			t.Error(out, err)
		}
	})
	t.Run("cut before a word", func(t *testing.T) {
		_, err := newBench(t, llmtest.New(t, cut(""), cut(""), cut(""))).run(t.Context(), t, input())
		wantReason(t, err, agent.ReasonEmptyAnswer)
	})
	t.Run("maxIter within a nudge", func(t *testing.T) {
		in := input()
		in.Agent.MaxIter = 1
		_, err := newBench(t, llmtest.New(t, thought("hm"))).run(t.Context(), t, in)
		wantReason(t, err, agent.ReasonEmptyAnswer)
	})
	t.Run("an answer is not unescaped", func(t *testing.T) {
		out, err := newBench(t, llmtest.New(t, llmtest.Text(`{"a":"x\ny"}`))).run(t.Context(), t, input())
		if err != nil || out.Text != `{"a":"x\ny"}` {
			t.Error(out, err)
		}
	})
}

func TestMaxIterKeepsTheLastText(t *testing.T) {
	turn := func(q string) llmtest.Turn {
		return llmtest.Reply(llm.Response{Message: llm.Message{
			Parts: []llm.Part{{Text: "so far " + q}}, Calls: []llm.ToolCall{toolCall("", "search", `{"q":"`+q+`"}`)}}, Stop: llm.StopTools})
	}
	in := input("search")
	in.Agent.MaxIter = 3
	out, err := newBench(t, llmtest.New(t, turn("1"), turn("2"), turn("3")), echo("search")).run(t.Context(), t, in)
	wantReason(t, err, agent.ReasonMaxIterations)
	if out.Text != "so far 3" || out.Turns != 3 || out.ToolCalls != 3 {
		t.Errorf("%+v", out)
	}
}

func TestAnAnswerIsJudgedAndMayBeMended(t *testing.T) {
	accept := func(_ context.Context, answer string) error {
		if answer != "good" {
			return fmt.Errorf("%q is not good", answer)
		}
		return nil
	}
	in := input()
	in.Accept = accept
	model := llmtest.New(t, llmtest.Text("bad"), llmtest.Text("good").Expect(asked(func(last llm.Message, _ llm.Request) error {
		if !strings.Contains(last.Text(), `"bad" is not good`) {
			return errors.New(last.Text())
		}
		return nil
	})))
	if out, err := newBench(t, model).run(t.Context(), t, in); err != nil || out.Text != "good" {
		t.Error(out, err)
	}
	out, err := newBench(t, llmtest.New(t, llmtest.Text("bad"), llmtest.Text("worse"))).run(t.Context(), t, in)
	wantReason(t, err, agent.ReasonRejected)
	if out.Text != "worse" {
		t.Error(out)
	}
}

func TestTheModelFails(t *testing.T) {
	refusal := &llm.APIError{Provider: "acme", Status: 400, Message: "no such model"}
	b := newBench(t, llmtest.New(t, llmtest.Fail(refusal)))
	_, err := b.run(t.Context(), t, input())
	wantReason(t, err, agent.ReasonModel)
	var api *llm.APIError
	if !errors.As(err, &api) || api != refusal {
		t.Errorf("the cause is lost: %v", err)
	}
	last := b.events[len(b.events)-1]
	if last.Kind != event.ModelReturned || *last.Success || !strings.Contains(last.Error, "no such model") {
		t.Errorf("%+v", last)
	}
	b = newBench(t, nil)
	b.cfg.Models = func(string) (llm.Model, agent.Settings, error) { return nil, agent.Settings{}, errors.New("no key") }
	_, err = b.run(t.Context(), t, input())
	wantReason(t, err, agent.ReasonModel)
}

func TestCancellationAndDeadlineAreToldApart(t *testing.T) {
	blocks := llmtest.Turn{Answer: func(ctx context.Context, _ llm.Request) (*llm.Response, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}}
	hang := tool{tools.Definition{Name: "hang"}, func(ctx context.Context, _ tools.Call) (tools.Result, error) {
		<-ctx.Done()
		return tools.Result{}, ctx.Err()
	}}
	errStop := errors.New("interrupted")
	for _, tt := range []struct {
		name  string
		turns []llmtest.Turn
	}{
		{"in the model", []llmtest.Turn{blocks}},
		{"in a tool", []llmtest.Turn{llmtest.Calls(toolCall("1", "hang", ""))}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(time.Minute, func() { cancel(errStop) })
				_, err := newBench(t, llmtest.New(t, tt.turns...), hang).run(ctx, t, input("hang"))
				wantReason(t, err, agent.ReasonCancelled)
				if !errors.Is(err, errStop) {
					t.Error(err)
				}
			})
			synctest.Test(t, func(t *testing.T) {
				in := input("hang")
				in.Agent.MaxExecutionTime = time.Minute
				out, err := newBench(t, llmtest.New(t, tt.turns...), hang).run(t.Context(), t, in)
				wantReason(t, err, agent.ReasonTimeout)
				if !errors.Is(err, context.DeadlineExceeded) || out.Took != time.Minute {
					t.Error(out, err)
				}
			})
		})
	}
}

// A tool whose own time is up is a tool that failed.
func TestAToolsDeadlineIsNotTheTasks(t *testing.T) {
	model := llmtest.New(t, llmtest.Calls(toolCall("1", "slow", "")), llmtest.Text("done"))
	slow := answering("slow", tools.Result{}, &tools.Error{Code: tools.CodeCallTimeout, Tool: "slow", Detail: "no answer within 2s", Err: context.DeadlineExceeded})
	if _, err := newBench(t, model, slow).run(t.Context(), t, input("slow")); err != nil {
		t.Fatal(err)
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
		_, err := newBench(t, llmtest.New(t, turns(3)[0]), echo("search")).run(t.Context(), t, in)
		wantReason(t, err, agent.ReasonTimeout)
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
