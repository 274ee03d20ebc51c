package runner_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"crewhost/crew"
	"crewhost/runner"
	"crewhost/runner/agent"
	"crewhost/runner/llm"
	"crewhost/runner/llm/llmtest"
	"crewhost/runner/process"
)

const delivering = `
name: Papers
goal: Write papers
agents:
  writer: {goal: Write}
tasks:
  draft:
    description: Draft a paper on {topic}.
    expectedOutput: A page
    deliverable: {path: "/out/{topic}/{Year}/paper.json", source: structured_output, schemaInline: {
      type: object, required: [title, year], additionalProperties: false,
      properties: {title: {type: string}, year: {type: integer}, date: {type: string, format: date}}}}
`

// A deliverable's path holds the variables of the crew; its folders are made, and
// an answer that does not hold to its schema is handed back with every fault.
func TestADeliverableWithVariablesAndASchema(t *testing.T) {
	inputs := crew.Inputs{"topic": "tides", "year": "1066"}
	files := map[string]string{"crewhost.yaml": "llm: {provider: openai, model: plain}\nmounts: [\"./out:/out:rw\"]\n", "crew.yaml": delivering}
	m := llmtest.New(t,
		llmtest.Text(`{"year":"1066","date":"soon","more":1}`),
		llmtest.Text("```json\n{\"title\":\"a\\nb\",\"year\":1066}\n```").Expect(func(req llm.Request) error {
			last := req.Messages[len(req.Messages)-1].Text()
			for _, want := range []string{"missing property 'title'", "/year: got string, want integer", "/date: 'soon' is not valid date", "'more' not allowed"} {
				if !strings.Contains(last, want) {
					return errors.New(last)
				}
			}
			return nil
		}),
	)
	r := open(t, files, with(m))
	if v := r.host.Judge(r.crew(inputs), nil, inputs); len(v.Issues) > 0 {
		t.Fatalf("%+v", v.Issues)
	}
	out, err := r.host.Run(t.Context(), r.crew(inputs), inputs)
	if err != nil || out.Tasks[0].File != "/out/tides/1066/paper.json" {
		t.Fatalf("%v %+v", err, out)
	}
	data, err := os.ReadFile(filepath.Join(r.dir, "out", "tides", "1066", "paper.json"))
	if err != nil || string(data) != "{\"title\":\"a\\nb\",\"year\":1066}\n" {
		t.Errorf("%v %q", err, data)
	}

	never := llmtest.Text(`{"year":1}`)
	r = open(t, files, with(llmtest.New(t, never, never, never)))
	out, err = r.host.Run(t.Context(), r.crew(inputs), inputs)
	var failed *runner.RunError
	if !errors.As(err, &failed) || agent.ReasonOf(err) != agent.ReasonRejected || out.Tasks[0].State != process.Failed {
		t.Errorf("%v %+v", err, out)
	}
	if _, err := os.Stat(filepath.Join(r.dir, "out", "tides")); !os.IsNotExist(err) {
		t.Errorf("something was left: %v", err)
	}
}

// A deliverable that can't be written fails its task.
func TestADeliverableThatCannotBeWritten(t *testing.T) {
	inputs := crew.Inputs{"topic": "tides", "year": "1066"}
	files := map[string]string{
		"crewhost.yaml": "llm: {provider: openai, model: plain}\nmounts: [\"./out:/out:rw\"]\n", "crew.yaml": delivering,
		"out/a": "",
	}
	dir := ""
	r := open(t, files, with(modelFunc(func(llm.Request) *llm.Response {
		if err := os.WriteFile(filepath.Join(dir, "out", "tides"), nil, 0o600); err != nil { // where its folder was to be
			t.Error(err)
		}
		return answer(`{"title":"a","year":1}`)
	})))
	dir = r.dir
	out, err := r.host.Run(t.Context(), r.crew(inputs), inputs)
	var why *process.DeliverableError
	if !errors.As(err, &why) || out.Tasks[0].State != process.Failed || out.Tasks[0].Text == "" {
		t.Errorf("%v %+v", err, out)
	}
}
