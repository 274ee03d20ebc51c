package runner_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"crewhost/config"
	"crewhost/crew"
	"crewhost/runner"
	"crewhost/runner/event"
	"crewhost/runner/llm"
	"crewhost/runner/llm/llmtest"
	"crewhost/runner/process"
)

const managed = `
name: Papers
goal: Write papers
process: hierarchical
managerAgent: boss
hierarchical: {maxReviews: 2}
agents:
  boss: {role: Head of papers, goal: Papers without faults, backstory: Twenty years of it., llm: {model: wise}}
  reader: {goal: Read}
  writer: {goal: Write}
tasks:
  draft: {description: Draft the paper., expectedOutput: A page, agent: writer}
`

// The manager is asked in its own role and on its own model, what it says reaches
// the worker, and an answer that names nobody stops nothing.
func TestAManagerIsAnAgentOfItsOwn(t *testing.T) {
	boss := func(req llm.Request) error {
		if req.Model != "wise" || len(req.Tools) > 0 {
			return fmt.Errorf("asked of %q with %d tools", req.Model, len(req.Tools))
		}
		for _, want := range []string{"You are Head of papers.", "Papers without faults", "Twenty years of it."} {
			if !strings.Contains(req.System, want) {
				return fmt.Errorf("the system prompt lacks %q:\n%s", want, req.System)
			}
		}
		return nil
	}
	holds := func(words ...string) func(llm.Request) error {
		return func(req llm.Request) error {
			text := req.System + req.Messages[0].Text()
			for _, w := range words {
				if !strings.Contains(text, w) {
					return fmt.Errorf("the prompt lacks %q:\n%s", w, text)
				}
			}
			return nil
		}
	}
	m := llmtest.New(t,
		llmtest.Text(`{"agent_id":"editor","reason":"sharp"}`).Expect(boss),
		llmtest.Text(`The editor, I said.`).Expect(holds("Head of papers", "none of: reader, writer")),
		llmtest.Text("A page without a year").Expect(holds("You are writer", "Draft the paper.")),
		llmtest.Text(`{"approved":false,"feedback":"Name the year."}`).Expect(boss),
		llmtest.Text("A page of 1066").Expect(holds("You are writer", "Name the year.", "A page without a year")),
		llmtest.Text("```json\n{\"approved\":true,\"feedback\":\"\"}\n```").Expect(boss),
	)
	r := open(t, map[string]string{"crewhost.yaml": "llm: {provider: openai, model: plain}\n", "crew.yaml": managed}, with(m))
	out, err := r.host.Run(t.Context(), r.crew(nil), nil)
	if err != nil || out.Final != "A page of 1066" {
		t.Fatalf("%v, %+v", err, out)
	}
	if out.Usage.Input != 60 || out.Tasks[0].Usage.Input != 20 || out.Tasks[0].Attempts != 2 || out.Asked["assign"].Input != 20 || out.Asked["review"].Input != 20 {
		t.Errorf("%+v", out)
	}
	var told []string
	for _, e := range r.events {
		switch e.Kind {
		case event.ModelReturned:
			told = append(told, fmt.Sprintf("%s asked to %s %s", e.Agent, e.Operation, e.Task))
		case event.TaskStarted, event.TaskRetried, event.TaskAssigned, event.TaskReviewed, event.TaskCompleted, event.TaskFailed, event.Notice:
			told = append(told, fmt.Sprintf("%s %s %d", e.Kind, e.Agent, e.Attempt))
		}
	}
	want := []string{
		"boss asked to assign draft", "boss asked to assign draft", "notice writer 1", "task.assigned boss 1",
		"task.started writer 1", "writer asked to agent draft", "boss asked to review draft", "task.reviewed boss 1", "task.retried writer 1",
		"task.started writer 2", "writer asked to agent draft", "boss asked to review draft", "task.reviewed boss 2", "task.completed writer 2",
	}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Error(diff)
	}
}

// A run that lasts too long fails with what was done; nobody interrupted it.
func TestARunThatLastsTooLongFails(t *testing.T) {
	c := strings.Replace(managed, "process: hierarchical\nmanagerAgent: boss\nhierarchical: {maxReviews: 2}", "maxDuration: 20m", 1) +
		"  never: {description: Wait., expectedOutput: Nothing, agent: reader}\n"
	m := modelFunc(func(req llm.Request) *llm.Response {
		if strings.Contains(req.Messages[0].Text(), "Wait.") {
			return nil
		}
		return answer("drafted")
	})
	r := open(t, map[string]string{"crewhost.yaml": "llm: {provider: openai, model: plain}\n", "crew.yaml": c}, with(waiting{m}))
	loaded := r.crew(nil)
	synctest.Test(t, func(t *testing.T) {
		out, err := r.host.Run(t.Context(), loaded, nil)
		var failed *runner.RunError
		var late *process.DeadlineError
		if !errors.As(err, &failed) || !errors.As(err, &late) || errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), `task "never" was stopped`) {
			t.Errorf("%v", err)
		}
		if out == nil || out.Final != "drafted" || out.Tasks[1].State != process.Stopped || out.Took != 20*time.Minute {
			t.Errorf("%+v", out)
		}
	})
}

// waiting is a model that never answers where the one below it has no answer.
type waiting struct{ modelFunc }

func (w waiting) Generate(ctx context.Context, req llm.Request) (*llm.Response, error) {
	if res, err := w.modelFunc.Generate(ctx, req); res != nil || err != nil {
		return res, err
	}
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

// BenchmarkTasks measures what a task costs from the host down to a model that
// takes no time, in a chain and all beside each other.
func BenchmarkTasks(b *testing.B) {
	for _, shape := range []string{"sequential", "parallel"} {
		for _, n := range []int{100, 1000, 4000} {
			b.Run(fmt.Sprintf("%s/%d", shape, n), func(b *testing.B) {
				host, err := runner.Open(b.Context(), runner.Config{
					Settings: &config.Settings{LLM: config.LLM{Profile: config.Profile{Provider: config.ProviderEcho}}},
					Events:   event.NewStream("bench", time.Now, func(event.Event) {}),
					Models: func(context.Context, config.Profile, runner.Credentials) (llm.Model, error) {
						return modelFunc(func(llm.Request) *llm.Response { return answer(strings.Repeat("The tide is out. ", 20)) }), nil
					},
				})
				if err != nil {
					b.Fatal(err)
				}
				defer host.Close()
				text := func(s string) crew.Text { return crew.Text{V: s, Set: true} }
				c := &crew.Crew{Name: text("many"), Goal: text("Much"), Process: crew.Process(shape), Agents: []*crew.Agent{{Key: "a", Goal: text("Work"), MaxIter: 1}}}
				for i := range n {
					task := &crew.Task{Key: fmt.Sprintf("t%d", i), Description: text("Do it."), ExpectedOutput: text("It")}
					if i > 0 && shape == "sequential" {
						task.Dependencies = []crew.Text{text(c.Tasks[i-1].Key)}
					}
					if i >= 100 && shape == "parallel" {
						task.Dependencies = []crew.Text{text(c.Tasks[i-100].Key), text(c.Tasks[(i/100-1)*100].Key)}
					}
					c.Tasks = append(c.Tasks, task)
				}
				b.ReportAllocs()
				for b.Loop() {
					if _, err := host.Run(b.Context(), c, nil); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/task")
			})
		}
	}
}
