package agent_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"crewhost/runner/agent"
	"crewhost/runner/llm"
	"crewhost/runner/llm/llmtest"
	"crewhost/tools"
)

// A task has a deadline of its own and its agent's, whichever comes first; both
// hold for the tools and the coworkers that it waits for.
func TestDeadlinesOfATask(t *testing.T) {
	for name, tt := range map[string]struct {
		timeout, agents time.Duration
		want            string
	}{
		"the task's":  {3 * time.Second, 9 * time.Second, "stopped: it took longer than its timeout of 3s (timeout)"},
		"the agent's": {9 * time.Second, 3 * time.Second, "its agent's maxExecutionTime of 3s (timeout)"},
		"one alone":   {3 * time.Second, 0, "its timeout"},
	} {
		synctest.Test(t, func(t *testing.T) {
			in := team("a", "b")
			in.Crew.Agents[1].Tools = texts("wait")
			in.Task.Timeout, in.Agent.MaxExecutionTime = tt.timeout, tt.agents
			model := llmtest.New(t,
				llmtest.Calls(delegate("1", "x", "b", "")).When(of("a")),
				llmtest.Calls(toolCall("2", "wait", "{}")).When(of("b")),
			)
			wait := tool{tools.Definition{Name: "wait"}, func(ctx context.Context, _ tools.Call) (tools.Result, error) {
				<-ctx.Done()
				return tools.Result{}, ctx.Err()
			}}
			start := time.Now()
			_, err := newBench(t, model, wait).run(t.Context(), t, in)
			if agent.ReasonOf(err) != agent.ReasonTimeout || !strings.Contains(err.Error(), tt.want) || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v", name, err)
			}
			if took := time.Since(start); took != 3*time.Second {
				t.Errorf("%s: it took %v", name, took)
			}
		})
	}
}

// What a vendor finds too long for its model is sent once more, shortened.
func TestAConversationThatIsTooLongForTheModel(t *testing.T) {
	refused := llmtest.Fail(&llm.APIError{Provider: "acme", Status: 400, Code: "context_length_exceeded"})
	search := func(n int) llmtest.Turn { return llmtest.Calls(toolCall("", "search", fmt.Sprintf(`{"q":"%d"}`, n))) }
	orphans := asked(func(_ llm.Message, req llm.Request) error {
		open := map[string]bool{}
		for _, m := range req.Messages {
			for _, c := range m.Calls {
				open[c.ID] = true
			}
			if m.Role == llm.RoleTool && !open[m.CallID] {
				return fmt.Errorf("an orphan: %+v", m)
			}
		}
		return nil
	})
	long := answering("search", tools.Text(strings.Repeat("long ", 700)), nil)
	for name, tt := range map[string]struct {
		turns   []llmtest.Turn
		maxIter int
		want    agent.Reason
		notice  string
		shorter func(before, after llm.Request) bool
	}{
		"older turns go": {
			[]llmtest.Turn{search(1), search(2), search(3), refused, llmtest.Text("done").Expect(orphans)}, 20, "", "oldest messages",
			func(before, after llm.Request) bool { return len(after.Messages) < len(before.Messages) },
		},
		"the last results shrink": {
			[]llmtest.Turn{search(1), refused, llmtest.Text("done").Expect(orphans)}, 20, "", "1 results of tools are shortened",
			func(before, after llm.Request) bool {
				return len(after.Messages) == 3 && len(after.Messages[2].Text()) < len(before.Messages[2].Text())
			},
		},
		"also then":            {[]llmtest.Turn{search(1), refused, refused}, 20, agent.ReasonTooLong, "shortened", nil},
		"nothing to leave out": {[]llmtest.Turn{refused}, 20, agent.ReasonTooLong, "", nil},
		"no turn is left":      {[]llmtest.Turn{search(1), refused}, 2, agent.ReasonTooLong, "", nil},
		"another refusal":      {[]llmtest.Turn{search(1), refused, llmtest.Fail(&llm.APIError{Status: 400})}, 20, agent.ReasonModel, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			in := input("search")
			in.Agent.MaxIter = tt.maxIter
			model := llmtest.New(t, tt.turns...)
			b := newBench(t, model, long)
			_, err := b.run(t.Context(), t, in)
			if agent.ReasonOf(err) != tt.want || err != nil && tt.want == "" {
				t.Errorf("%v, want %q", err, tt.want)
			}
			if told := strings.Join(b.notices(), "\n"); !strings.Contains(told, tt.notice) {
				t.Errorf("told: %s", told)
			}
			if requests := model.Requests(); tt.shorter != nil && !tt.shorter(requests[len(requests)-2], requests[len(requests)-1]) {
				t.Error("it is not shorter")
			}
		})
	}
}
