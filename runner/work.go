package runner

import (
	"context"
	"slices"

	"crewhost/crew"
	"crewhost/runner/agent"
	"crewhost/runner/event"
	"crewhost/runner/llm"
	"crewhost/runner/process"
)

// taskRunner has the agent loop do the tasks of a process.
type taskRunner struct {
	loop *agent.Loop
	crew *crew.Crew
	mind *recollection
}

// RunTask implements [process.TaskRunner].
func (r *taskRunner) RunTask(ctx context.Context, in process.TaskInput) (process.Answer, error) {
	input := agent.Input{
		Crew: r.crew, Agent: in.Agent, Task: in.Task, Inputs: r.crew.Inputs,
		Attempt: in.Attempt, Schema: in.Schema, Accept: in.Accept, Budget: in.Budget,
	}
	for _, p := range in.Prior {
		input.Prior = append(input.Prior, agent.Prior{Task: p.Task, Agent: p.Agent, Text: p.Text})
	}
	scope := event.Scope{Task: in.Task.Key, Agent: in.Agent.Key, Role: in.Agent.Role.V, Attempt: in.Attempt}
	input.Sections = sectionsOf(slices.Concat(in.Sections, r.mind.sections(event.NewContext(ctx, scope), in)))
	if len(in.Schema) > 0 {
		input.Format = &llm.ResponseFormat{Type: "json_schema", Name: in.Task.Key, Schema: in.Schema}
	}
	out, err := r.loop.Run(ctx, input)
	return process.Answer{Text: out.Text, Usage: out.Usage, Turns: out.Turns, ToolCalls: out.ToolCalls}, err
}

func sectionsOf(sections []process.Section) []agent.Section {
	all := make([]agent.Section, len(sections))
	for i, s := range sections {
		all[i] = agent.Section(s)
	}
	return all
}

// questioner has the agent loop put the questions of a process, which judges the
// answers itself: one that it can't read need not be a failure.
type questioner struct {
	loop *agent.Loop
	crew *crew.Crew
}

// Ask implements [process.Questioner].
func (q questioner) Ask(ctx context.Context, in process.Question) (process.Answer, error) {
	out, err := q.loop.Ask(ctx, agent.Question{
		Crew: q.crew, Agent: in.Agent, Task: in.Task,
		Operation: in.Operation, Text: in.Text, Schema: in.Schema,
	})
	return process.Answer{Text: out.Text, Usage: out.Usage, Turns: out.Turns}, err
}
