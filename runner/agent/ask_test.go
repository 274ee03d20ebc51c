package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crewhost/crew"
	"crewhost/runner/agent"
	"crewhost/runner/event"
	"crewhost/runner/llm"
	"crewhost/runner/llm/llmtest"
)

func TestAQuestionIsPutInTheAgentsRoleWithoutTools(t *testing.T) {
	in := input("search")
	hot := 0.9
	in.Agent.LLM = &crew.LLM{Model: text("big")}
	in.Task.LLM = &crew.LLM{Temperature: &hot}
	model := llmtest.New(t, llmtest.Text("me"), llmtest.Text(`{"agent":"writer"}`))
	b := newBench(t, model, echo("search"))
	loop, err := agent.New(b.cfg)
	if err != nil {
		t.Fatal(err)
	}
	out, err := loop.Ask(t.Context(), agent.Question{
		Crew: in.Crew, Agent: in.Agent, Task: in.Task, Operation: "assign", Text: "Who should do it?",
		Schema: json.RawMessage(`{"type":"object"}`),
		Accept: func(_ context.Context, answer string) error {
			if !strings.HasPrefix(answer, "{") {
				return errors.New("the answer holds no JSON")
			}
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if out.Text != `{"agent":"writer"}` || out.Turns != 2 || out.Usage.Input != 20 {
		t.Errorf("%+v", out)
	}
	req := model.Requests()[0]
	if !strings.Contains(req.System, "You are a writer.") || !strings.Contains(req.Messages[0].Text(), "Who should do it?") {
		t.Errorf("%q %q", req.System, req.Messages[0].Text())
	}
	if len(req.Tools) > 0 || req.Temperature != nil || req.Model != "big" {
		t.Errorf("%+v", req)
	}
	want := &llm.ResponseFormat{Type: "json_schema", Name: "assign", Schema: json.RawMessage(`{"type":"object"}`)}
	if diff := cmp.Diff(want, req.Format); diff != "" {
		t.Error(diff)
	}
	for _, e := range b.events {
		if e.Kind == event.ModelReturned && (e.Operation != "assign" || e.Task != "write" || e.Agent != "writer") {
			t.Errorf("%+v", e)
		}
	}
}

func TestAQuestionWithoutATaskOrASchema(t *testing.T) {
	in := input()
	in.Agent.LLM = &crew.LLM{ResponseFormat: text("json_object")}
	model := llmtest.New(t, llmtest.Text("Tides first."))
	b := newBench(t, model)
	loop, err := agent.New(b.cfg)
	if err != nil {
		t.Fatal(err)
	}
	out, err := loop.Ask(t.Context(), agent.Question{Crew: in.Crew, Agent: in.Agent, Text: "What first?"})
	if err != nil || out.Text != "Tides first." {
		t.Fatalf("%+v %v", out, err)
	}
	if f := model.Requests()[0].Format; f != nil {
		t.Errorf("the format of the agent's tasks was asked for: %+v", f)
	}
	if _, err := loop.Ask(t.Context(), agent.Question{}); err == nil {
		t.Error("a question to nobody")
	}
}
