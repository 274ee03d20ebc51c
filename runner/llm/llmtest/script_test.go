package llmtest_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"crewhost/runner/llm"
	"crewhost/runner/llm/llmtest"
)

func ask(text string) llm.Request { return llm.Request{Messages: []llm.Message{llm.User(text)}} }

func TestScriptTakesTurnsInOrderAndByCondition(t *testing.T) {
	broken := errors.New("broken")
	m := llmtest.New(t,
		llmtest.Text("for b").When(func(r llm.Request) bool { return r.Messages[0].Text() == "b" }),
		llmtest.Text("first"),
		llmtest.Calls(llm.ToolCall{ID: "1", Name: "add", Arguments: `{}`}),
		llmtest.Fail(broken),
	)
	var streamed []string
	req := ask("a")
	req.OnDelta = func(d llm.Delta) { streamed = append(streamed, d.Text) }
	for _, step := range []struct {
		req  llm.Request
		text string
		stop llm.StopReason
	}{{req, "first", llm.StopEnd}, {ask("b"), "for b", llm.StopEnd}, {ask("c"), "", llm.StopTools}} {
		res, err := m.Generate(t.Context(), step.req)
		if err != nil || res.Message.Text() != step.text || res.Stop != step.stop {
			t.Errorf("got %+v, %v; want %q, %s", res, err, step.text, step.stop)
		}
	}
	if _, err := m.Generate(t.Context(), ask("d")); !errors.Is(err, broken) {
		t.Errorf("got %v, want the scripted error", err)
	}
	if strings.Join(streamed, "|") != "first" {
		t.Errorf("streamed %q", streamed)
	}
	if n := len(m.Requests()); n != 4 {
		t.Errorf("%d requests kept, want 4", n)
	}
}

// failures stands for a test that a script judges.
type failures struct {
	testing.TB
	errs    int
	cleanup func()
}

func (f *failures) Error(...any)          { f.errs++ }
func (f *failures) Errorf(string, ...any) { f.errs++ }
func (f *failures) Cleanup(fn func())     { f.cleanup = fn }

func TestScriptFailsTheTest(t *testing.T) {
	f := &failures{TB: t}
	m := llmtest.New(f,
		llmtest.Text("x").Expect(func(llm.Request) error { return errors.New("wrong") }),
		llmtest.Text("left").When(func(llm.Request) bool { return false }),
	)
	if _, err := m.Generate(t.Context(), ask("a")); err != nil || f.errs != 1 {
		t.Errorf("a failed check: %v, %d failures, want an answer and 1", err, f.errs)
	}
	if _, err := m.Generate(t.Context(), ask("a")); err == nil || f.errs != 2 {
		t.Errorf("no turn: %v, %d failures, want an error and 2", err, f.errs)
	}
	if f.cleanup(); f.errs != 3 {
		t.Errorf("a turn left: %d failures, want 3", f.errs)
	}
}

func TestScriptEndsWithContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := llmtest.New(t, llmtest.Text("x")).Generate(ctx, ask("a")); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
