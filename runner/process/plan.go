package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"crewhost/crew"
	"crewhost/runner/event"
)

// Bounds of a plan.
const (
	maxPlanned   = 200    // tasks of a crew that are planned; the others are done without
	maxPlanText  = 60_000 // characters of the tasks in the question, all together
	maxPlanSteps = 4_000  // characters of a task's part
)

// planSchema is what the answer to the question for a plan holds.
const planSchema = `{"type":"object","properties":{"plan":{"type":"array","items":{"type":"object",` +
	`"properties":{"task":{"type":"string"},"steps":{"type":"string"}},"required":["task","steps"],"additionalProperties":false}}},` +
	`"required":["plan"],"additionalProperties":false}`

// planOf is a plan as a model gives it.
type planOf struct {
	Plan []struct {
		Task  string `json:"task"`
		Steps string `json:"steps"`
	} `json:"plan"`
}

// planAhead has a crew that wants it planned before its first task, in one
// question to the crew's own model; each task then sees its part. Without a plan
// the crew goes on as if it had not wanted one, and says why.
func (r *run) planAhead(ctx context.Context) {
	if !r.plan.Crew.Planning || len(r.slots) == 0 {
		return
	}
	planned := r.slots[:min(len(r.slots), maxPlanned)]
	if n := len(r.slots) - len(planned); n > 0 {
		r.notice("the plan is of the first %d tasks; the other %d are done without one", maxPlanned, n)
	}
	parts := make(map[string]string, len(planned))
	_, err := query(ctx, r, Question{
		Agent: &crew.Agent{
			Key:  free(r.plan.Crew.Agents, "planner"),
			Role: crew.Text{V: "the planner of the crew " + oneLine(r.plan.Crew.Name.V), Set: true},
			Goal: crew.Text{V: "Have the tasks of the crew fit together, and each done well at the first try.", Set: true},
		},
		Operation: "plan", Text: r.planQuestion(planned), Schema: json.RawMessage(planSchema),
	}, func(p planOf) error {
		clear(parts)
		for _, of := range p.Plan {
			for _, s := range planned {
				if s.task.Key == of.Task && strings.TrimSpace(of.Steps) != "" {
					parts[of.Task] = strings.TrimSpace(of.Steps)
				}
			}
		}
		if len(parts) == 0 {
			return errors.New("it plans none of the tasks; name them by their keys")
		}
		return nil
	})
	switch {
	case err == nil:
		r.parts = parts
		if n := len(planned) - len(parts); n > 0 {
			r.notice("the plan says nothing of %d of %d tasks", n, len(planned))
		}
	case ctx.Err() == nil:
		r.notice("the crew has no plan, and goes on without: %v", err)
	}
}

// planQuestion asks for a plan.
func (r *run) planQuestion(tasks []*slot) string {
	c := r.plan.Crew
	var b strings.Builder
	b.WriteString("# Plan ahead\n\nBefore the crew begins, plan how each of its tasks is to be done:" +
		" the steps, what to look out for, what the tasks after it need of it. Keep to what the tasks say." +
		" Nobody has done anything yet, so invent no results.\n\n# The agents\n")
	for _, a := range r.workers() {
		fmt.Fprintf(&b, "\n- %s (%s): %s", a.Key, oneLine(a.Role.V), shorten(oneLine(a.Goal.V), 300))
		if names := r.plan.toolsOf(a); len(names) > 0 {
			fmt.Fprintf(&b, " Tools: %s.", strings.Join(names[:min(len(names), 30)], ", "))
		}
	}
	b.WriteString("\n\n# The tasks, in their order")
	each := maxPlanText / len(tasks)
	for _, s := range tasks {
		t := s.task
		fmt.Fprintf(&b, "\n\n## %s\n\n%s\n\nExpected: %s", t.Key,
			shorten(strings.TrimSpace(t.Description.V), each*3/4), shorten(strings.TrimSpace(t.ExpectedOutput.V), each/4))
		if t.Agent.V != "" && c.Process != crew.Autonomous {
			fmt.Fprintf(&b, "\n\nBy: %s", t.Agent.V)
		}
		if len(t.Dependencies) > 0 {
			var needs []string
			for _, d := range t.Dependencies {
				needs = append(needs, d.V)
			}
			fmt.Fprintf(&b, "\n\nBuilds on: %s", strings.Join(needs, ", "))
		}
	}
	return b.String()
}

// planned puts a task's part of the plan before the other sections.
func (r *run) planned(task string, sections []Section) []Section {
	steps, ok := r.parts[task]
	if !ok {
		return sections
	}
	return append([]Section{{Title: "The plan for this task", Text: shorten(steps, maxPlanSteps)}}, sections...)
}

// notice tells of something that a person should know of the run.
func (r *run) notice(format string, args ...any) {
	r.plan.Events.Emit(event.Event{Kind: event.Notice, Text: oneLine(fmt.Sprintf(format, args...))})
}
