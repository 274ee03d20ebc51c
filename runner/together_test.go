package runner_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crewhost/crew"
	"crewhost/runner"
	"crewhost/runner/event"
	"crewhost/runner/llm"
	"crewhost/runner/llm/llmtest"
	"crewhost/runner/process"
)

const jury = `
name: Jury
goal: Agree on an answer
process: consensual
maxConcurrency: 1
consensus: {strategy: superMajority, fallback: fail}
agents:
  ann: {role: Ann, goal: Answer, llm: {model: ann-1}}
  bob: {role: Bob, goal: Answer, llm: {model: bob-1}}
  cem: {role: Cem, goal: Answer}
tasks:
  name: {description: Name the boat., expectedOutput: A name, deliverable: {path: /output/name.md}}
`

var shown = regexp.MustCompile(`## Answer (\w+)\n\n> (\w+)`)

// votes is a turn that ranks the answers that begin with these words, by the
// labels that the voter was shown.
func votes(words ...string) llmtest.Turn {
	turn := llmtest.Text("")
	return llmtest.Turn{Answer: func(ctx context.Context, req llm.Request) (*llm.Response, error) {
		labels := map[string]string{}
		for _, m := range shown.FindAllStringSubmatch(req.Messages[0].Text(), -1) {
			labels[m[2]] = m[1]
		}
		var ranking []string
		for _, w := range words {
			if labels[w] == "" {
				return nil, fmt.Errorf("the voter was shown no %q:\n%s", w, req.Messages[0].Text())
			}
			ranking = append(ranking, fmt.Sprintf("%q", labels[w]))
		}
		res, err := turn.Answer(ctx, req)
		res.Message.Parts[0].Text = fmt.Sprintf("```json\n{\"ranking\":[%s],\"abstain\":false,\"confidence\":0.5,\"justification\":\"sounds well\"}\n```", strings.Join(ranking, ","))
		return res, err
	}}
}

func from(role, model string, words ...string) func(llm.Request) error {
	return func(req llm.Request) error {
		text := req.System + req.Messages[0].Text()
		if req.Model != model {
			return fmt.Errorf("asked of model %q", req.Model)
		}
		for _, w := range append([]string{"You are " + role + "."}, words...) {
			if !strings.Contains(text, w) {
				return fmt.Errorf("the prompt lacks %q:\n%s", w, text)
			}
		}
		return nil
	}
}

// Each agent answers and votes in its own role and on its own model; a ballot
// that can't be read is mended in the conversation; and the file that is left is
// the answer that is kept, though a tool was to write it.
func TestAJuryAgrees(t *testing.T) {
	saved := "Your answer is saved as /output/name.md"
	m := llmtest.New(t,
		llmtest.Text("Alba").Expect(from("Ann", "ann-1", "Name the boat.", saved)),
		llmtest.Text("Brisa").Expect(from("Bob", "bob-1", saved)),
		llmtest.Text("Corvus").Expect(from("Cem", "plain", saved)),
		votes("Brisa", "Corvus").Expect(from("Ann", "ann-1", "Name the boat.", "Your ballot")),
		llmtest.Text("Mine is best.").Expect(from("Bob", "bob-1", "Your ballot")),
		votes("Corvus"),
		votes("Alba"), // a circle: they talk it over
		llmtest.Text("Alba").Expect(from("Ann", "ann-1", "What the other members answered and said", "> Brisa", "sounds well")),
		llmtest.Text("Brisa"),
		llmtest.Text("Delfin").Expect(from("Cem", "plain", "> Corvus", "> Alba")),
		votes("Brisa"), votes("Alba"), votes("Brisa"),
	)
	r := open(t, map[string]string{
		"crewhost.yaml": "llm: {provider: openai, model: plain}\nmounts: [\"./out:/output:rw\"]\n", "crew.yaml": jury, "out/keep": "",
	}, with(m))
	out, err := r.host.Run(t.Context(), r.crew(nil), nil)
	if err != nil || !strings.HasPrefix(out.Final, "Brisa") {
		t.Fatalf("%v, %+v", err, out)
	}
	if res := out.Tasks[0]; res.Attempts != 2 || res.Turns != 6 || out.Usage.Input != 130 || res.Usage.Input != 60 {
		t.Errorf("%+v", out)
	}
	file, err := os.ReadFile(filepath.Join(r.dir, "out", "name.md"))
	if err != nil || strings.TrimSpace(string(file)) != out.Final {
		t.Errorf("%q, %v", file, err)
	}
	var told []string
	for _, e := range r.events {
		if e.Kind == event.ModelReturned {
			told = append(told, fmt.Sprintf("%s %s %d", e.Agent, e.Operation, e.Attempt))
		}
	}
	if diff := cmp.Diff("ann agent 1", told[0]); diff != "" || len(told) != 13 {
		t.Errorf("%q", told)
	}
}

const explorers = `
name: Explorers
goal: Know what is in the folder
process: autonomous
autonomous: {budget: {toolCalls: 2, tokens: 1000, spawns: 1}}
agents:
  scout: {role: Scout, goal: Look, tools: [directory_read], llm: {model: small}}
tasks:
  look: {description: Look around., expectedOutput: A list}
  tell: {description: Tell of it., expectedOutput: A tale, dependencies: [look]}
`

func exploring(t *testing.T, crewFile string, turns ...llmtest.Turn) (*rig, *runner.Output, error) {
	t.Helper()
	r := open(t, map[string]string{
		"crewhost.yaml": "llm: {provider: openai, model: plain}\nmounts: [\"./out:/output:rw\"]\npermissions: {allow: [directory_read]}\n",
		"crew.yaml":     crewFile, "out/keep": "",
	}, with(llmtest.New(t, turns...)))
	out, err := r.host.Run(t.Context(), r.crew(nil), nil)
	return r, out, err
}

func looks(ids ...string) llmtest.Turn {
	var calls []llm.ToolCall
	for _, id := range ids {
		calls = append(calls, llm.ToolCall{ID: id, Name: "directory_read", Arguments: `{"path":"/output"}`})
	}
	return llmtest.Calls(calls...)
}

// The planner speaks for the crew on the crew's model; the specialist that it
// makes has the tools that it was given, and no others.
func TestAnAutonomousCrewMakesSpecialists(t *testing.T) {
	r, out, err := exploring(t, explorers,
		llmtest.Text(`{"agent_id":"scout","reason":"it looks"}`).Expect(from("the planner of the crew Explorers", "plain", "task look", "2 of 2 calls of tools")),
		looks("1").Expect(from("Scout", "small")),
		llmtest.Text("keep"),
		llmtest.Text(`{"specialist":{"role":"Bard","goal":"Tell tales","tools":["directory_read"]},"reason":"the scout is no poet"}`).
			Expect(from("the planner of the crew Explorers", "plain", "1 of 2 calls of tools", "look, by scout: keep")),
		looks("2").Expect(from("Bard", "plain", "Tell tales", "Tell of it.")),
		llmtest.Text("Once there was a file."),
	)
	if err != nil || out.Final != "Once there was a file." || out.Tasks[1].Agent != "specialist" {
		t.Fatalf("%v, %+v", err, out)
	}
	var spawned []string
	for _, e := range r.events {
		if e.Kind == event.AgentSpawned {
			spawned = append(spawned, e.ToAgent+", "+e.ToRole+": "+e.Reason)
		}
	}
	if diff := cmp.Diff([]string{"specialist, Bard: the scout is no poet"}, spawned); diff != "" {
		t.Error(diff)
	}
}

// A call that would go beyond the budget is not made, nor a request after the
// tokens are gone; the run fails and names the axis, and what was done stays.
func TestAnAutonomousBudgetIsHeld(t *testing.T) {
	assign := llmtest.Text(`{"agent_id":"scout"}`)
	for _, tt := range []struct {
		name  string
		crew  string
		turns []llmtest.Turn
		axis  string
		calls int
		final string
	}{
		{"calls", explorers, []llmtest.Turn{assign, looks("1", "2"), llmtest.Text("keep"), assign, looks("3")}, "toolCalls (2)", 2, "keep"},
		{"tokens", strings.Replace(explorers, "tokens: 1000", "tokens: 80", 1),
			[]llmtest.Turn{assign, looks("1"), llmtest.Text("keep"), assign, looks("2"), looks("3")}, "tokens (80)", 2, "keep"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, out, err := exploring(t, tt.crew, tt.turns...)
			var failed *runner.RunError
			var budget *process.BudgetError
			if !errors.As(err, &failed) || !errors.As(err, &budget) || !strings.Contains(err.Error(), tt.axis) {
				t.Errorf("%v", err)
			}
			called := 0
			for _, e := range r.events {
				if e.Kind == event.ToolReturned && *e.Success {
					called++
				}
			}
			if called != tt.calls || out == nil || out.Final != tt.final || out.Tasks[0].State != process.Completed {
				t.Errorf("%d calls, %+v", called, out)
			}
		})
	}
}

// Both processes are judged as any crew is, and their warnings told.
func TestJuriesAreJudged(t *testing.T) {
	r := open(t, map[string]string{"crewhost.yaml": "llm: {provider: echo}\n", "crew.yaml": strings.Replace(jury, "  cem: {role: Cem, goal: Answer}\n", "", 1)})
	c, err := crew.Load(filepath.Join(r.dir, "crew.yaml"))
	v := r.host.Judge(c, err, nil)
	if len(v.Issues) != 1 || v.Issues[0].Code != runner.CodeDeliverable || len(v.Warnings) != 1 || !strings.Contains(v.Warnings[0].Message, "are always tied") {
		t.Errorf("%v\n%v", v.Issues, v.Warnings)
	}
}
