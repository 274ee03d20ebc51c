package agent_test

import (
	"errors"
	"strings"
	"testing"

	"crewhost/runner/agent"
	"crewhost/runner/llm"
	"crewhost/runner/llm/llmtest"
)

// purse is a budget for tests, which are not concurrent.
type purse struct{ calls, tokens, depth int }

func (p *purse) Call() error {
	if p.calls--; p.calls < 0 {
		return errors.New("no calls of tools are left")
	}
	return nil
}

func (p *purse) Spent(u llm.Usage) error {
	if p.tokens -= u.Input + u.Output; p.tokens < 0 {
		return errors.New("no tokens are left")
	}
	return nil
}

func (p *purse) Delegate(depth int) error {
	if depth > p.depth {
		return errors.New("too deep")
	}
	return nil
}

func TestABudgetEndsATask(t *testing.T) {
	search := func(n int) llmtest.Turn {
		return llmtest.Calls([]llm.ToolCall{toolCall("", "search", `{}`), toolCall("", "search", `{}`)}[:n]...)
	}
	for name, tt := range map[string]struct {
		budget purse
		turns  []llmtest.Turn
		want   string // in the error
		runs   int    // of the tool
	}{
		"enough":              {purse{calls: 1, tokens: 30}, []llmtest.Turn{search(1), llmtest.Text("done")}, "", 1},
		"one call short":      {purse{calls: 2, tokens: 90}, []llmtest.Turn{search(1), search(2)}, "no calls of tools are left", 1},
		"tokens are gone":     {purse{calls: 9, tokens: 29}, []llmtest.Turn{search(1), llmtest.Text("done")}, "no tokens are left", 1},
		"tokens before calls": {purse{calls: 9, tokens: 14}, []llmtest.Turn{search(1)}, "no tokens are left", 0},
	} {
		t.Run(name, func(t *testing.T) {
			in := input("search")
			in.Budget = &tt.budget
			b := newBench(t, llmtest.New(t, tt.turns...), echo("search"))
			out, err := b.run(t.Context(), t, in)
			if len(b.calls) != tt.runs || out.ToolCalls != tt.runs {
				t.Errorf("the tool ran %d times, want %d", len(b.calls), tt.runs)
			}
			if tt.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			wantReason(t, err, agent.ReasonBudget)
			if !strings.Contains(err.Error(), tt.want) || out.Usage.Input == 0 {
				t.Errorf("%v, %+v", err, out)
			}
		})
	}
}
