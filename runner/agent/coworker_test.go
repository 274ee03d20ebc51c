package agent_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"crewhost/crew"
	"crewhost/runner/agent"
	"crewhost/runner/event"
	"crewhost/runner/llm"
	"crewhost/runner/llm/llmtest"
	"crewhost/tools"
)

// team is a task for the first of several agents that may put work to one another.
func team(roles ...string) agent.Input {
	in := input()
	in.Crew.Agents = nil
	for _, role := range roles {
		key, role, ok := strings.Cut(role, "=")
		if !ok {
			role = key
		}
		in.Crew.Agents = append(in.Crew.Agents, &crew.Agent{Key: key, Role: text(role), Goal: text("be " + role), MaxIter: 20, AllowDelegation: true})
	}
	in.Agent = in.Crew.Agents[0]
	return in
}

// of reports whether a request is of that agent.
func of(role string) func(llm.Request) bool {
	return func(req llm.Request) bool { return strings.HasPrefix(req.System, "You are "+role+".") }
}

func delegate(id, task, role, more string) llm.ToolCall {
	return toolCall(id, agent.DelegateWork, fmt.Sprintf(`{"task":%q,"coworker_role":%q%s}`, task, role, more))
}

func offered(req llm.Request) []string {
	var names []string
	for _, t := range req.Tools {
		names = append(names, t.Name)
	}
	return names
}

func TestWorkIsHandedToACoworker(t *testing.T) {
	in := team("editor=Editor", "finder=Researcher", "critic=Critic")
	in.Crew.Agents[1].Tools = texts("search")
	in.Crew.Agents[2].AllowDelegation = false
	in.Prior = []agent.Prior{{Task: "plan", Agent: "critic", Text: "The plan."}}
	in.Task.Guardrails = &crew.Guardrails{Rules: texts("No tables.")}
	in.Inputs = crew.Inputs{"topic": "tides"}
	model := llmtest.New(t,
		llmtest.Calls(
			delegate("d", "Find facts.", "researcher", `,"context":"For pupils."`),
			toolCall("a", agent.AskCoworker, `{"question":"Is it good?","coworker_role":"CRITIC"}`),
		).When(of("Editor")).Expect(func(req llm.Request) error {
			if diff := cmp.Diff([]string{agent.AskCoworker, agent.DelegateWork}, offered(req)); diff != "" {
				return errors.New(diff)
			}
			if d := req.Tools[1].Description; !strings.Contains(d, "- Researcher: be Researcher\n- Critic: be Critic") {
				return errors.New(d)
			}
			if s := string(req.Tools[1].Schema); !strings.Contains(s, `"enum":["Researcher","Critic"]`) || !strings.Contains(s, "wait_for_result") {
				return errors.New(s)
			}
			return nil
		}),
		llmtest.Calls(toolCall("d", "search", `{"q":"x"}`)).When(of("Researcher")).Expect(func(req llm.Request) error {
			prompt := req.Messages[0].Text()
			for _, want := range []string{"Find facts.", "Editor", "For pupils.", "The plan.", "topic: tides", "# Memories\n\nwhat finder knows"} {
				if !strings.Contains(prompt, want) {
					return fmt.Errorf("%q is not in %q", want, prompt)
				}
			}
			if !strings.Contains(req.System, "No tables.") {
				return errors.New(req.System)
			}
			// It may ask the third, and not the one that waits for it.
			if want := []string{agent.AskCoworker, agent.DelegateWork, "search"}; !slices.Equal(offered(req), want) ||
				!strings.Contains(string(req.Tools[0].Schema), `"enum":["Critic"]`) {
				return fmt.Errorf("%v %s", offered(req), req.Tools[0].Schema)
			}
			return nil
		}),
		llmtest.Text("Facts.").When(of("Researcher")),
		llmtest.Text("Very.").When(of("Critic")).Expect(func(req llm.Request) error {
			if len(req.Tools) > 0 || !strings.Contains(req.Messages[0].Text(), "asks you:\n\nIs it good?") {
				return fmt.Errorf("%v %s", offered(req), req.Messages[0].Text())
			}
			return nil
		}),
		llmtest.Text("done").When(of("Editor")).Expect(func(req llm.Request) error {
			if diff := cmp.Diff([]string{"d false Facts.", "a false Very."}, results(req)); diff != "" {
				return errors.New(diff)
			}
			return nil
		}),
	)
	b := newBench(t, model, echo("search"))
	b.cfg.Known = func(_ context.Context, a *crew.Agent, task *crew.Task) []agent.Section {
		if !strings.Contains(task.Description.V, "Find facts.") {
			return nil
		}
		return []agent.Section{{Title: "Memories", Text: "what " + a.Key + " knows"}}
	}
	out, err := b.run(t.Context(), t, in)
	if err != nil || out.Text != "done" {
		t.Fatalf("%+v %v", out, err)
	}
	// What coworkers used counts, their turns do not.
	if out.Usage.Input != 50 || out.Turns != 2 || out.ToolCalls != 2 {
		t.Errorf("%+v", out)
	}
	var told []string
	handed := map[string]string{} // correlation by coworker
	for _, e := range b.events {
		if e.Kind == event.DelegationStarted {
			handed[e.ToAgent] = e.Correlation
		}
		if e.Kind == event.ModelCalled && e.Agent != "editor" && (e.Cause == "" || e.Cause != handed[e.Agent]) {
			t.Errorf("%+v does not name the call that it came of", e)
		}
		switch e.Kind {
		case event.DelegationStarted, event.DelegationFinished:
			if e.Agent != "editor" || e.Task != "write" {
				t.Errorf("%+v", e)
			}
			told = append(told, fmt.Sprintf("%s %s %s", e.Kind, e.ToAgent, e.Call))
		case event.ModelReturned:
			if want := map[bool]string{true: agent.OperationTask, false: agent.OperationDelegation}[e.Agent == "editor"]; e.Operation != want {
				t.Errorf("%+v", e)
			}
		}
	}
	slices.Sort(told)
	if diff := cmp.Diff([]string{
		"delegation.finished critic a", "delegation.finished finder d", "delegation.started critic a", "delegation.started finder d",
	}, told); diff != "" {
		t.Error(diff)
	}
	// The guard saw who calls what.
	var calls []string
	for _, c := range b.calls {
		calls = append(calls, c.Agent+" "+c.Name)
	}
	slices.Sort(calls)
	if diff := cmp.Diff([]string{"editor " + agent.AskCoworker, "editor " + agent.DelegateWork, "finder search"}, calls); diff != "" {
		t.Error(diff)
	}
}

func TestWhoHasNobodyToPutWorkTo(t *testing.T) {
	for name, change := range map[string]func(*agent.Input){
		"no delegation": func(in *agent.Input) { in.Agent.AllowDelegation = false },
		"alone":         func(in *agent.Input) { in.Crew.Agents = in.Crew.Agents[:1] },
		"parallel":      func(in *agent.Input) { in.Crew.Process = crew.Parallel },
		"hierarchical":  func(in *agent.Input) { in.Crew.Process = crew.Hierarchical },
		"consensual":    func(in *agent.Input) { in.Crew.Process = crew.Consensual },
	} {
		in := team("a", "b")
		change(&in)
		model := llmtest.New(t, llmtest.Text("done"))
		if _, err := newBench(t, model).run(t.Context(), t, in); err != nil {
			t.Error(err)
		}
		if tools := offered(model.Requests()[0]); len(tools) > 0 {
			t.Errorf("%s: %v", name, tools)
		}
	}
	for _, process := range []crew.Process{crew.Sequential, crew.Graph, crew.Autonomous, ""} {
		in := team("a", "b")
		in.Crew.Process = process
		model := llmtest.New(t, llmtest.Text("done"))
		if _, err := newBench(t, model).run(t.Context(), t, in); err != nil {
			t.Error(err)
		}
		if tools := offered(model.Requests()[0]); len(tools) != 2 {
			t.Errorf("%s: %v", process, tools)
		}
	}
}

// Whatever a model asks for, the errors say which coworkers there are, and no
// chain closes.
func TestDelegationIsGuarded(t *testing.T) {
	for name, tt := range map[string]struct {
		args string
		want string
	}{
		"nobody":     {`{"task":"x"}`, `"coworker_role" is missing. Your coworkers: Researcher, w2, w3`},
		"unknown":    {`{"task":"x","coworker_role":"Reseacher"}`, `did you mean "Researcher"? Your coworkers: Researcher, w2, w3`},
		"itself":     {`{"task":"x","coworker_role":"editor"}`, "That is you"},
		"ambiguous":  {`{"task":"x","coworker_role":"Writer"}`, `2 coworkers "Writer". Your coworkers: Researcher, w2, w3`},
		"no task":    {`{"task":" ","coworker_role":"w2"}`, `"task" is missing`},
		"wrong type": {`{"task":1,"coworker_role":"w2"}`, "not what the tool takes"},
	} {
		t.Run(name, func(t *testing.T) {
			in := team("e=Editor", "r=Researcher", "w2=Writer", "w3=writer")
			model := llmtest.New(t, llmtest.Calls(toolCall("1", agent.DelegateWork, tt.args)), llmtest.Text("done"))
			if _, err := newBench(t, model).run(t.Context(), t, in); err != nil {
				t.Fatal(err)
			}
			if got := results(model.Requests()[1])[0]; !strings.Contains(got, tt.want) || !strings.HasPrefix(got, "1 true") {
				t.Errorf("%q has no %q", got, tt.want)
			}
		})
	}
	t.Run("cycle", func(t *testing.T) {
		model := llmtest.New(t,
			llmtest.Calls(delegate("1", "x", "b", "")).When(of("a")),
			llmtest.Calls(delegate("2", "y", "a", "")).When(of("b")),
			llmtest.Text("alone, then").When(of("b")).Expect(func(req llm.Request) error {
				if got := results(req)[0]; !strings.Contains(got, "waits for your own answer") || !strings.Contains(got, "Your coworkers: c") {
					return errors.New(got)
				}
				return nil
			}),
			llmtest.Text("done").When(of("a")),
		)
		if _, err := newBench(t, model).run(t.Context(), t, team("a", "b", "c")); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("depth", func(t *testing.T) {
		model := llmtest.New(t,
			llmtest.Calls(delegate("1", "x", "b", "")).When(of("a")),
			llmtest.Calls(delegate("2", "y", "c", "")).When(of("b")),
			llmtest.Text("c").When(of("c")).Expect(func(req llm.Request) error {
				if len(req.Tools) > 0 {
					return errors.New("it is as deep as it may be, and can go on")
				}
				return nil
			}),
			llmtest.Text("b").When(of("b")), llmtest.Text("a").When(of("a")),
		)
		b := newBench(t, model)
		b.cfg.Limits.DelegationDepth = 2
		if _, err := b.run(t.Context(), t, team("a", "b", "c", "d")); err != nil {
			t.Fatal(err)
		}
	})
}

func TestACoworkerThatFails(t *testing.T) {
	in := team("a", "b")
	in.Crew.Agents[1].MaxIter = 1
	in.Crew.Agents[1].Tools = texts("search")
	model := llmtest.New(t,
		llmtest.Calls(delegate("1", "x", "b", "")).When(of("a")),
		llmtest.Reply(llm.Response{Message: llm.Message{Parts: []llm.Part{{Text: "I look."}}, Calls: []llm.ToolCall{toolCall("", "search", "{}")}}}).When(of("b")),
		llmtest.Text("done").When(of("a")),
	)
	if _, err := newBench(t, model, echo("search")).run(t.Context(), t, in); err != nil {
		t.Fatal(err)
	}
	want := "1 true Error: b did not come to an answer: no answer after the one call to the model that maxIter allows (max_iterations)\nTheir last words were:\n\nI look."
	if got := results(model.Requests()[2])[0]; got != want {
		t.Errorf("%q", got)
	}
}

// Work that a call does not wait for is done beside, and read before the answer.
func TestWorkIsDoneBeside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := func(text string, d time.Duration) llmtest.Turn {
			return llmtest.Turn{Answer: func(ctx context.Context, _ llm.Request) (*llm.Response, error) {
				select {
				case <-time.After(d):
				case <-ctx.Done():
				}
				return &llm.Response{Message: llm.Message{Parts: []llm.Part{{Text: text}}}, Usage: llm.Usage{Input: 1, Measured: true}}, ctx.Err()
			}}
		}
		model := llmtest.New(t,
			llmtest.Calls(delegate("1", "x", "b", `,"wait_for_result":false`), delegate("2", "y", "c", `,"wait_for_result":false`)).When(of("a")),
			slow("B", 5*time.Second).When(of("b")), slow("C", 3*time.Second).When(of("c")),
			llmtest.Text("half").When(of("a")).Expect(func(req llm.Request) error {
				if got := results(req)[0]; got != "1 false b works on it. You get the result when you answer." {
					return errors.New(got)
				}
				return nil
			}),
			llmtest.Text("whole").When(of("a")).Expect(asked(func(last llm.Message, _ llm.Request) error {
				if !strings.Contains(last.Text(), "## b\n\nB\n\n## c\n\nC\n\nNow answer") {
					return errors.New(last.Text())
				}
				return nil
			})),
		)
		b := newBench(t, model)
		start := time.Now()
		out, err := b.run(t.Context(), t, team("a", "b", "c"))
		if err != nil || out.Text != "whole" || out.Usage.Input != 32 {
			t.Errorf("%+v %v", out, err)
		}
		if took := time.Since(start); took != 5*time.Second {
			t.Errorf("it took %v", took)
		}
	})
	synctest.Test(t, func(t *testing.T) { // a task that fails stops it
		stopped := false
		model := llmtest.New(t,
			llmtest.Calls(delegate("1", "x", "b", `,"wait_for_result":false`)).When(of("a")),
			llmtest.Turn{Answer: func(ctx context.Context, _ llm.Request) (*llm.Response, error) {
				<-ctx.Done()
				stopped = true
				return nil, ctx.Err()
			}}.When(of("b")),
			llmtest.Turn{Answer: func(context.Context, llm.Request) (*llm.Response, error) {
				synctest.Wait() // b is at work
				return nil, errors.New("down")
			}}.When(of("a")),
		)
		_, err := newBench(t, model).run(t.Context(), t, team("a", "b"))
		wantReason(t, err, agent.ReasonModel)
		if !stopped {
			t.Error("the coworker works on")
		}
	})
}

func TestABudgetEndsDelegation(t *testing.T) {
	t.Run("depth", func(t *testing.T) {
		in := team("a", "b")
		in.Budget = &purse{calls: 9, tokens: 999}
		_, err := newBench(t, llmtest.New(t, llmtest.Calls(delegate("1", "x", "b", "")))).run(t.Context(), t, in)
		wantReason(t, err, agent.ReasonBudget)
	})
	t.Run("tokens of the coworker", func(t *testing.T) {
		in := team("a", "b")
		in.Budget = &purse{calls: 9, tokens: 20, depth: 1}
		out, err := newBench(t, llmtest.New(t, llmtest.Calls(delegate("1", "x", "b", "")), llmtest.Text("b"))).run(t.Context(), t, in)
		wantReason(t, err, agent.ReasonBudget)
		if out.Usage.Input != 20 {
			t.Errorf("%+v", out)
		}
	})
}

// A tool of a server that is called like one of the agent's own keeps its name.
func TestARegisteredToolKeepsItsName(t *testing.T) {
	in := team("a", "b")
	in.Agent.Tools = texts(agent.AskCoworker)
	model := llmtest.New(t, llmtest.Calls(toolCall("1", agent.AskCoworker, `{}`)), llmtest.Text("done"))
	b := newBench(t, model, answering(agent.AskCoworker, tools.Text("from afar"), nil))
	if _, err := b.run(t.Context(), t, in); err != nil {
		t.Fatal(err)
	}
	if got := results(model.Requests()[1]); !slices.Equal(got, []string{"1 false from afar"}) || len(b.notices()) != 1 {
		t.Errorf("%v %v", got, b.notices())
	}
}

// Usage is not said to be measured where an answer, the agent's own or a
// coworker's, came without figures.
func TestUsageIsMeasuredWhereAllOfItIs(t *testing.T) {
	bare := llmtest.Reply(llm.Response{Message: llm.Message{Parts: []llm.Part{{Text: "ok"}}}, Stop: llm.StopEnd})
	for name, tt := range map[string]struct {
		coworker, last llmtest.Turn
		want           llm.Usage
	}{
		"all":            {llmtest.Text("ok"), llmtest.Text("ok"), llm.Usage{Input: 30, Output: 15, Measured: true}},
		"not the last":   {llmtest.Text("ok"), bare, llm.Usage{Input: 20, Output: 10}},
		"not a coworker": {bare, llmtest.Text("ok"), llm.Usage{Input: 20, Output: 10}},
	} {
		model := llmtest.New(t, llmtest.Calls(delegate("1", "x", "b", "")).When(of("a")), tt.coworker.When(of("b")), tt.last.When(of("a")))
		if out, err := newBench(t, model).run(t.Context(), t, team("a", "b")); err != nil || out.Usage != tt.want {
			t.Errorf("%s: %v %+v", name, err, out.Usage)
		}
	}
}
