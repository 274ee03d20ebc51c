package agent_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"crewhost/runner/agent"
	"crewhost/runner/event"
	"crewhost/runner/llm"
	"crewhost/runner/llm/llmtest"
	"crewhost/tools"
)

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
	out, err := newBench(t, llmtest.New(t, llmtest.Text("bad"), llmtest.Text("bad"), llmtest.Text("worse"))).run(t.Context(), t, in)
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

// A task that was stopped says so, and what stopped it where that is more.
func TestStoppedText(t *testing.T) {
	for want, cause := range map[string]error{
		"the task was stopped (cancelled)":               context.Canceled,
		"the task was stopped: the day ends (cancelled)": errors.New("the day ends"),
	} {
		err := &agent.TaskError{Reason: agent.ReasonCancelled, Detail: "the task was stopped", Err: cause}
		if err.Error() != want || !errors.Is(err, cause) {
			t.Errorf("got %q, want %q", err, want)
		}
	}
}
