package runner_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"crewhost/runner/event"
	"crewhost/runner/llm"
	"crewhost/runner/llm/llmtest"
)

const planned = `
name: Papers
goal: Write papers
planning: true
agents:
  writer: {goal: Write, allowDelegation: false}
  reader: {goal: Read, allowDelegation: false}
tasks:
  draft: {description: Draft the paper., expectedOutput: A page, agent: writer}
`

func TestAPlanReachesThePrompt(t *testing.T) {
	m := llmtest.New(t,
		llmtest.Text(`{"plan":[{"task":"draft","steps":"Outline it first."}]}`).Expect(func(req llm.Request) error {
			if !strings.Contains(req.System, "the planner of the crew Papers") || req.Format == nil || req.Format.Name != "plan" {
				return fmt.Errorf("%s %+v", req.System, req.Format)
			}
			return nil
		}),
		llmtest.Text("A page").Expect(func(req llm.Request) error {
			if text := req.Messages[0].Text(); !strings.Contains(text, "# The plan for this task\n\nOutline it first.") {
				return errors.New(text)
			}
			return nil
		}),
	)
	r := open(t, map[string]string{"crewhost.yaml": "llm: {provider: openai, model: plain}\n", "crew.yaml": planned}, with(m))
	if v := r.host.Judge(r.crew(nil), nil, nil); len(v.Issues)+len(v.Warnings) > 0 {
		t.Errorf("%+v", v)
	}
	out, err := r.host.Run(t.Context(), r.crew(nil), nil)
	if err != nil || out.Final != "A page" || out.Usage.Input != 20 {
		t.Fatalf("%v, %+v", err, out)
	}
}

// What gives the prompt back makes no plan, and says so.
func TestEchoMakesNoPlan(t *testing.T) {
	r := open(t, map[string]string{"crewhost.yaml": "llm: {provider: echo}\n", "crew.yaml": planned})
	out, err := r.host.Run(t.Context(), r.crew(nil), nil)
	if err != nil || !strings.Contains(out.Final, "Draft the paper.") || strings.Contains(out.Final, "plan") {
		t.Fatalf("%v, %+v", err, out)
	}
	if !slices.ContainsFunc(r.events, func(e event.Event) bool {
		return e.Kind == event.Notice && strings.Contains(e.Text, "echo makes no plans")
	}) {
		t.Errorf("%+v", r.events)
	}
}

// Agents may put work to one another unless a rule says otherwise, also where
// nobody can be asked.
func TestDelegationIsAllowedUnlessARuleDeniesIt(t *testing.T) {
	crew := strings.ReplaceAll(strings.Replace(planned, "planning: true", "planning: false", 1), ", allowDelegation: false", "")
	for rules, want := range map[string]string{
		"": "It is read.", `permissions: {deny: [delegate_work_to_coworker]}`: "The policy denied this call",
	} {
		asked := 0
		model := modelFunc(func(req llm.Request) *llm.Response {
			switch {
			case strings.HasPrefix(req.System, "You are reader."):
				return answer("It is read.")
			case len(req.Messages) == 1:
				return calls(llm.ToolCall{ID: "1", Name: "delegate_work_to_coworker", Arguments: `{"task":"Read it.","coworker_role":"reader"}`})
			}
			asked++
			return answer(req.Messages[2].Text())
		})
		r := open(t, map[string]string{"crewhost.yaml": "llm: {provider: openai, model: plain}\n" + rules + "\n", "crew.yaml": crew}, with(model))
		out, err := r.host.Run(t.Context(), r.crew(nil), nil)
		if err != nil || !strings.Contains(out.Final, want) || asked != 1 {
			t.Errorf("%s: %v, %+v", rules, err, out)
		}
		if lines := r.host.IdleRules(); len(lines) > 0 {
			t.Errorf("%v", lines)
		}
	}
}
