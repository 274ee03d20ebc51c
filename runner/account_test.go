package runner_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"crewhost/config"
	"crewhost/runner"
	"crewhost/runner/event"
	"crewhost/runner/llm"
	"crewhost/runner/llm/llmtest"
)

const askingCrew = `
name: Asking
goal: Ask
agents: { one: { role: One, goal: Answer, tools: [ask_model] } }
tasks: { only: { description: d, expectedOutput: e, agent: one } }
`

func bounded(llmKeys string) string {
	return strings.Replace(asker, "max_tokens: 30 }", "max_tokens: 30, "+llmKeys+" }", 1)
}

// measured is an answer with figures.
func measured(res *llm.Response, input, output int) llmtest.Turn {
	res.Usage = llm.Usage{Input: input, Output: output, Measured: true}
	return llmtest.Reply(*res)
}

// What a server asks of the model in a call of a run is the run's: in its usage, its
// cost, its budget and what is told.
func TestWhatServersAskIsTheRuns(t *testing.T) {
	ask := func() llmtest.Turn {
		return measured(calls(llm.ToolCall{ID: "1", Name: "ask_model", Arguments: `{"prompt":"Say hello.","max_tokens":20}`}), 100, 10)
	}
	r := open(t, map[string]string{"crewhost.yaml": bounded(`prices: { gpt: { input: 1, output: 1 } }`), "crew.yaml": askingCrew},
		with(llmtest.New(t, ask(), measured(answer("Hello."), 1000, 100), measured(answer("done"), 10, 1))))
	out, err := r.host.Run(t.Context(), r.crew(nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	if out.Cost.Amount != llm.Millionths(1221) || out.Usage.Input != 1110 || !out.Usage.Measured || out.Asked["sample"].Input != 1000 || out.Tasks[0].Usage.Input != 110 {
		t.Errorf("%+v", out)
	}
	var sampled, last event.Event
	for _, e := range r.events {
		if e.Kind == event.CostUpdated {
			if last = e; e.Operation == "sample" {
				sampled = e
			}
		}
	}
	if sampled.Task != "only" || sampled.Agent != "" || sampled.Cause == "" || sampled.Totals.Operation.OutputTokens != 100 || last.InputTokens != 1110 || last.Cost != out.Cost.Amount.Float() {
		t.Errorf("%+v, at last %+v", sampled, last)
	}

	r = open(t, map[string]string{"crewhost.yaml": bounded(`budget: { tokens: 500 }`), "crew.yaml": askingCrew},
		with(llmtest.New(t, ask(), measured(answer("Hello."), 1000, 100))))
	var spent *runner.BudgetError
	if _, err := r.host.Run(t.Context(), r.crew(nil), nil); !errors.As(err, &spent) || spent.Reason != "1210 tokens of 500 (llm.budget.tokens)" {
		t.Error(err)
	}
}

// What servers ask outside of runs has a budget of its own, as large as a run's, and
// is told as well.
func TestWhatServersAskHasABudget(t *testing.T) {
	m := &model{res: *answer("Hello.")}
	m.res.Usage = llm.Usage{Input: 200, Output: 100, Measured: true}
	ours := func(c *runner.Config) {
		c.Models = func(context.Context, config.Profile, runner.Credentials) (llm.Model, error) { return m, nil }
	}
	const prompt = `{"prompt":"Say hello.","max_tokens":20}`
	for name, tt := range map[string]struct {
		keys, reason string
		answers      int
	}{
		"tokens":        {"budget: { tokens: 500 }", "the budget of what servers ask outside of runs is spent: 600 tokens of 500 (llm.budget.tokens)", 2},
		"cost":          {"budget: { cost: 0.0003 }, prices: { gpt: { input: 1, output: 1 } }", "(llm.budget.cost)", 1},
		"without price": {"budget: { cost: 0.0003 }", "llm.budget.cost can't be kept", 0},
	} {
		r := open(t, map[string]string{"crewhost.yaml": bounded(tt.keys)}, ours)
		for range tt.answers {
			if got, failed := said(t, r.host, "ask_model", prompt); failed {
				t.Errorf("%s: %s", name, got)
			}
		}
		if got, failed := said(t, r.host, "ask_model", prompt); !failed || !strings.Contains(got, tt.reason) {
			t.Errorf("%s: %s", name, got)
		}
		told := 0
		for _, e := range r.events {
			if e.Kind == event.CostUpdated && e.Operation == "sample" && e.Task == "" {
				told++
			}
		}
		if told != tt.answers {
			t.Errorf("%s: %d were told", name, told)
		}
	}
}
