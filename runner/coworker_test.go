package runner_test

import (
	"errors"
	"strings"
	"testing"

	"crewhost/runner/llm"
)

// A coworker has in its prompt what stands in its own documents, and not in those
// of who asks it.
func TestACoworkerKnowsItsDocuments(t *testing.T) {
	const crew = `
name: Harbour
goal: Answer ships
agents:
  clerk: {goal: Answer}
  pilot: {goal: Find the way, knowledge: [guides]}
tasks:
  answer: {description: Answer the ship., expectedOutput: An hour, agent: clerk}
rag:
  collections:
    guides: {sources: [docs]}
`
	model := modelFunc(func(req llm.Request) *llm.Response {
		prompt := req.Messages[0].Text()
		knows := strings.Contains(prompt, "two hours before high tide")
		switch pilot := strings.HasPrefix(req.System, "You are pilot."); {
		case pilot != knows:
			t.Error(errors.New(prompt))
			fallthrough
		case pilot:
			return answer("Two hours before.")
		case len(req.Messages) == 1:
			return calls(llm.ToolCall{ID: "1", Name: "ask_question_to_coworker", Arguments: `{"question":"When may ships enter the harbour at high tide?","coworker_role":"pilot"}`})
		}
		return answer(req.Messages[2].Text())
	})
	r := open(t, map[string]string{
		"crewhost.yaml": "llm: {provider: openai, model: plain}\n", "crew.yaml": crew,
		"docs/harbour.md": "# Entering\n\nShips may enter the harbour two hours before high tide.\n",
	}, with(model))
	if out, err := r.host.Run(t.Context(), r.crew(nil), nil); err != nil || out.Final != "Two hours before." {
		t.Errorf("%v %+v", err, out)
	}
}
