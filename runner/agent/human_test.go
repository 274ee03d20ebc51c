package agent_test

import (
	"strings"
	"testing"

	"crewhost/runner/agent"
	"crewhost/runner/llm/llmtest"
	"crewhost/tools"
)

// A task with humanInput is not done before a person has answered: a model that
// does not ask is told to twice, and then the task fails.
func TestHumanInputIsNoMereWish(t *testing.T) {
	asks := llmtest.Calls(toolCall("1", "human_input", `{"prompt":"Good?"}`))
	for name, tt := range map[string]struct {
		model  *llmtest.Script
		person tool
		want   agent.Reason
	}{
		"asked at once":     {llmtest.New(t, asks, llmtest.Text("Done.")), answering("human_input", tools.Text("yes"), nil), ""},
		"asked when told":   {llmtest.New(t, llmtest.Text("Done."), asks, llmtest.Text("Done.")), answering("human_input", tools.Text("yes"), nil), ""},
		"never asked":       {llmtest.New(t, llmtest.Text("Done."), llmtest.Text("Done, truly."), llmtest.Text("Done, really.")), answering("human_input", tools.Text("yes"), nil), agent.ReasonRejected},
		"nobody was asked":  {llmtest.New(t, asks, llmtest.Text("Done."), llmtest.Text("Done."), llmtest.Text("Done.")), answering("human_input", tools.Result{Content: tools.Text("rejected").Content, Unasked: true}, nil), agent.ReasonRejected},
		"nobody could hear": {llmtest.New(t, asks, llmtest.Text("Done."), llmtest.Text("Done."), llmtest.Text("Done.")), answering("human_input", tools.Failure("nobody can be asked"), nil), agent.ReasonRejected},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, tt.model, tt.person)
			in := input()
			in.Task.HumanInput = true
			out, err := b.run(t.Context(), t, in)
			if agent.ReasonOf(err) != tt.want || tt.want == "" && out.Text != "Done." {
				t.Errorf("%+v, %v", out, err)
			}
			if err != nil && !strings.Contains(err.Error(), "humanInput") {
				t.Errorf("%v does not say what was missing", err)
			}
		})
	}
}

// Without a tool to ask with, such a task does not begin.
func TestHumanInputNeedsItsTool(t *testing.T) {
	in := input()
	in.Task.HumanInput = true
	_, err := newBench(t, llmtest.New(t)).run(t.Context(), t, in)
	wantReason(t, err, agent.ReasonTools)
	if !strings.Contains(err.Error(), `"human_input"`) {
		t.Error(err)
	}
}
