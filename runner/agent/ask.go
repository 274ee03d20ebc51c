package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"

	"crewhost/crew"
	"crewhost/runner/llm"
)

// What a model is asked for, as events and accounts tell it. Processes add words
// of their own to these, such as plan, assign, review and vote.
const (
	OperationTask       = "agent"
	OperationDelegation = "delegation"
	OperationQuestion   = "question"
)

// Question is one question to an agent that is no task of its own: a plan, a
// choice, a judgement, a vote. Crew, Agent and Text must be set.
type Question struct {
	Crew  *crew.Crew
	Agent *crew.Agent
	// Task is what it is about, for events; nil: the crew as a whole.
	Task *crew.Task
	// Operation says what for, in a word; empty is [OperationQuestion].
	Operation string
	Text      string
	// Schema is the JSON Schema that the answer should hold to, and Accept
	// judges it; see [Input]. Without a schema any text will do.
	Schema json.RawMessage
	Accept func(ctx context.Context, answer string) error
}

// Ask puts a question in the agent's own role and on its own model, without
// tools, and returns the answer. Empty, cut and refused answers are dealt with as
// in [Loop.Run], and so are errors, limits and deadlines.
func (l *Loop) Ask(ctx context.Context, q Question) (Output, error) {
	if q.Crew == nil || q.Agent == nil {
		return Output{}, errors.New("asking an agent: the question has no crew or no agent")
	}
	// What a task overrides is for doing it, not for talking about it.
	in := Input{Crew: q.Crew, Agent: q.Agent, Task: &crew.Task{}, Schema: q.Schema, Accept: q.Accept}
	if q.Task != nil {
		in.Task.Key = q.Task.Key
	}
	text := strings.TrimSpace(q.Text)
	if len(q.Schema) > 0 {
		text += "\n\n# Form of the answer\n\n" + jsonAnswer(q.Schema)
		in.Format = &llm.ResponseFormat{Type: "json_schema", Name: cmp.Or(q.Operation, OperationQuestion), Schema: q.Schema}
	}
	model, settings, err := l.resolve(in)
	if err != nil {
		return Output{}, &TaskError{Reason: ReasonModel, Detail: "choosing the model", Err: err}
	}
	if len(q.Schema) == 0 {
		settings.Format = nil // the agent's own is for its tasks
	}
	set := &toolset{}
	r := l.begin(in, cmp.Or(q.Operation, OperationQuestion), set, system(in, set, false), text)
	r.model, r.settings = model, settings
	return r.do(ctx)
}
