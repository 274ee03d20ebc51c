package runner_test

import (
	"errors"
	"fmt"
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

// A form that a crew asks of a model is told in the prompt, too, and answers are
// held to it: not every model keeps to what its API is asked for.
func TestAResponseSchemaIsHeld(t *testing.T) {
	const formed = `
name: Papers
goal: Write papers
agents:
  writer: {goal: Write, llm: {responseSchema: {schema: {type: object, required: [n], properties: {n: {type: integer}}}}}}
tasks:
  count: {description: Count., expectedOutput: A number}
  any: {description: Count., expectedOutput: A number, llmOverride: {responseFormat: json_object}}
  free: {description: Count., expectedOutput: A number, llmOverride: {responseFormat: text}}
`
	says := func(want string) func(llm.Request) error {
		return func(req llm.Request) error {
			if last := req.Messages[len(req.Messages)-1].Text(); !strings.Contains(last, want) {
				return errors.New(last)
			}
			return nil
		}
	}
	files := map[string]string{"crewhost.yaml": "llm: {provider: openai, model: plain}\n", "crew.yaml": formed}
	m := llmtest.New(t,
		llmtest.Text(`{"n":"one"}`).Expect(says("valid against this JSON Schema")),
		llmtest.Text("Mended: {\"n\":1}").Expect(says("/n: got string, want integer")),
		llmtest.Text(`one`).Expect(says("Answer with one JSON value")),
		llmtest.Text("Here it is:\n```json\n{\"one\":1}\n```").Expect(says("holds no JSON")),
		llmtest.Text("one").Expect(func(req llm.Request) error {
			if strings.Contains(req.Messages[0].Text(), "# Form of the answer") || req.Format != nil {
				return errors.New(req.Messages[0].Text())
			}
			return nil
		}),
	)
	r := open(t, files, with(m))
	out, err := r.host.Run(t.Context(), r.crew(nil), nil)
	if err != nil || out.Final != "one" {
		t.Fatalf("%v %+v", err, out)
	}
	// What has the form is the output, without the words around it.
	if out.Tasks[0].Text != `{"n":1}` || out.Tasks[1].Text != `{"one":1}` {
		t.Errorf("%+v", out.Tasks)
	}
}

// K63: a schema that no answer could be judged by is found before the run.
func TestSchemasAreJudgedAhead(t *testing.T) {
	const wrong = `
name: Papers
goal: Write papers
llm: {responseSchema: {schema: {type: strange}}}
agents:
  writer: {goal: Write, llm: {responseSchema: {schema: {$ref: "http://example.com/s"}}}}
tasks:
  a: {description: Count., expectedOutput: A number, deliverable: {path: /out/a, source: structured_output, schemaInline: {$ref: "#"}}}
  b: {description: Count., expectedOutput: A number, deliverable: {path: /out/b, source: structured_output, schemaPath: /crew/none.json}}
  c: {description: Count., expectedOutput: A number, deliverable: {path: /out/c, source: structured_output, schemaPath: /crew/bad.json}}
  d: {description: Count., expectedOutput: A number, deliverable: {path: /out/d, source: structured_output, schemaPath: /crew/good.json}}
`
	r := open(t, map[string]string{
		"crewhost.yaml": "llm: {provider: openai, model: plain}\nmounts: [\"./out:/out:rw\"]\n", "crew.yaml": wrong,
		"bad.json": `{"type":`, "good.json": `{"type":"object"}`,
	}, with(llmtest.New(t)))
	c, err := crew.Load(filepath.Join(r.dir, "crew.yaml"))
	var got []string
	for _, i := range r.host.Judge(c, err, nil).Issues {
		got = append(got, fmt.Sprintf("%d %s %s", i.Line, i.Code, i.Message))
	}
	want := []string{
		"4 schema llm.responseSchema: the schema is no JSON Schema: /type: it fits none of the alternatives",
		"6 schema agents.writer.llm.responseSchema: the schema is no JSON Schema: failing loading \"http://example.com/s\": a schema refers to nothing but itself",
		"8 schema tasks.a.deliverable.schemaInline: the schema is no JSON Schema: a reference in it leads back to itself",
		"9 schema tasks.b.deliverable.schemaPath: ",
		"10 schema tasks.c.deliverable.schemaPath: the schema is no JSON Schema: it is not JSON",
	}
	if len(got) != len(want) {
		t.Fatalf("%q", got)
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("%q, want %q", got[i], want[i])
		}
	}
}

// A file that nobody could write is found before a model is asked.
func TestSomebodyMustHoldATool(t *testing.T) {
	for name, tt := range map[string]struct {
		process, one, other, task string
		ok                        bool
	}{
		"nobody":         {"sequential", "", "", "agent: one", false},
		"the agent":      {"sequential", "tools: [file_write]", "", "agent: one", true},
		"the task":       {"sequential", "", "", "agent: one, tools: [file_write]", true},
		"a coworker":     {"sequential", "", "tools: [file_write]", "agent: one", true},
		"no delegation":  {"sequential", "allowDelegation: false", "tools: [file_write]", "agent: one", false},
		"in parallel":    {"parallel", "", "tools: [file_write]", "agent: one", false},
		"whoever it is":  {"parallel", "", "tools: [file_write]", "", true},
		"by the planner": {"autonomous", "", "tools: [file_write]", "agent: one", true},
		"by agreement":   {"consensual", "", "", "agent: one", true},
	} {
		t.Run(name, func(t *testing.T) {
			file := fmt.Sprintf("name: c\ngoal: g\nprocess: %s\nagents:\n  one: {goal: g, %s}\n  other: {goal: g, %s}\n"+
				"tasks:\n  a: {description: d, expectedOutput: e, deliverable: {path: /out/a}, %s}\n", tt.process, tt.one, tt.other, tt.task)
			file = strings.ReplaceAll(file, ", }", "}")
			r := open(t, map[string]string{"crewhost.yaml": "llm: {provider: echo}\nmounts: [\"./out:/out:rw\"]\n", "crew.yaml": file})
			c, err := crew.Load(filepath.Join(r.dir, "crew.yaml"))
			if v := r.host.Judge(c, err, nil); len(v.Issues) == 0 != tt.ok || !tt.ok && v.Issues[0].Code != runner.CodeDeliverable {
				t.Errorf("%+v", v.Issues)
			}
		})
	}
}

// Two tasks that leave one file are warned of: the later one has the last word.
func TestTwoTasksForOneFile(t *testing.T) {
	const twice = `
name: Papers
goal: Write papers
agents:
  writer: {goal: Write}
tasks:
  draft: {description: Draft., expectedOutput: A page, deliverable: {path: /out/paper.md, source: final_message}}
  notes: {description: Note., expectedOutput: A page, deliverable: {path: /out/notes.md, source: final_message}}
  final: {description: Finish., expectedOutput: A page, deliverable: {path: "/out/./{name}.md", source: final_message}}
`
	inputs := crew.Inputs{"name": "paper"}
	r := open(t, map[string]string{"crewhost.yaml": "llm: {provider: openai, model: plain}\nmounts: [\"./out:/out:rw\"]\n", "crew.yaml": twice}, with(nil))
	v := r.host.Judge(r.crew(inputs), nil, inputs)
	if len(v.Issues) > 0 || len(v.Warnings) != 1 || v.Warnings[0].Line != 9 || !strings.Contains(v.Warnings[0].Message, "tasks.final.deliverable is the file of tasks.draft") {
		t.Errorf("%+v, %+v", v.Issues, v.Warnings)
	}
}
