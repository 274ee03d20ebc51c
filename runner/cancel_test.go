package runner_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"crewhost/config"
	"crewhost/crew"
	"crewhost/mcp/mcptest"
	"crewhost/runner"
	"crewhost/runner/event"
	"crewhost/runner/event/eventtest"
	"crewhost/runner/llm"
	"crewhost/runner/process"
)

// actor plays every part in a crew: it hands tasks to "two", approves, ranks,
// plans, calls the tools that it has in its first turn, and else says who it is.
type actor struct{}

func (actor) Generate(ctx context.Context, req llm.Request) (*llm.Response, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	res := &llm.Response{Stop: llm.StopEnd, Usage: llm.Usage{Input: 10, Output: 2, Measured: true}}
	res.Message.Role = llm.RoleAssistant
	say := func(text string) (*llm.Response, error) {
		if req.OnDelta != nil {
			for piece := range strings.FieldsSeq(text) {
				req.OnDelta(llm.Delta{Text: piece + " "})
			}
		}
		res.Message.Parts = []llm.Part{{Text: text}}
		return res, nil
	}
	format := ""
	if req.Format != nil {
		format = req.Format.Name
	}
	switch format {
	case "assign":
		return say(`{"agent_id":"two","reason":"Two is free"}`)
	case "review":
		return say(`{"approved":true,"feedback":""}`)
	case "vote":
		return say(`{"ranking":[],"abstain":true,"confidence":0.5,"justification":"none"}`)
	case "plan":
		return say(`{"steps":[]}`)
	}
	if req.Messages[len(req.Messages)-1].Role == llm.RoleTool || len(req.Tools) == 0 {
		who, _, _ := strings.Cut(req.System, "\n")
		return say(who)
	}
	for i, t := range req.Tools {
		arguments := map[string]string{
			"json_tool": `{"input":"{}","operation":"parse"}`, "echo": `{"word":"tide"}`,
			"ask_question_to_coworker": `{"question":"Why?","coworker_role":"Two"}`,
		}[t.Name]
		if arguments != "" {
			res.Message.Calls = append(res.Message.Calls, llm.ToolCall{ID: fmt.Sprint("c", i), Name: t.Name, Arguments: arguments})
		}
	}
	res.Stop = llm.StopTools
	return res, nil
}

// cancelled are crews that are stopped at each of their events.
var cancelled = map[string]string{
	"sequential": `
name: Sequential
goal: Do things
agents:
  one: { role: One, goal: Do, tools: [json_tool], allowDelegation: true }
  two: { role: Two, goal: Do, tools: [echo], allowDelegation: false }
tasks:
  beside: { description: Beside, expectedOutput: A word, agent: two, asyncExecution: true }
  first: { description: First, expectedOutput: A word, agent: one }
  last: { description: Last, expectedOutput: A word, agent: two, dependencies: [beside, first] }
`,
	"parallel": `
name: Parallel
goal: Do things
process: parallel
agents: { one: { role: One, goal: Do, tools: [json_tool], allowDelegation: false } }
tasks:
  a: { description: A, expectedOutput: A word, agent: one, deliverable: { path: /out/a.md, source: final_message } }
  b: { description: B, expectedOutput: A word, agent: one }
  c: { description: C, expectedOutput: A word, agent: one, dependencies: [a, b] }
`,
	"hierarchical": `
name: Hierarchical
goal: Do things
process: hierarchical
managerAgent: boss
agents:
  boss: { role: Boss, goal: Hand out }
  two: { role: Two, goal: Do, tools: [json_tool], allowDelegation: false }
tasks:
  a: { description: A, expectedOutput: A word }
  b: { description: B, expectedOutput: A word, dependencies: [a] }
`,
	"consensual": `
name: Consensual
goal: Agree
process: consensual
agents: { one: { role: One, goal: Do }, two: { role: Two, goal: Do }, three: { role: Three, goal: Do } }
tasks: { a: { description: A, expectedOutput: A word } }
`,
	"graph": `
name: Graph
goal: Do things
process: graph
graphConfig: { maxRetryCycles: 1 }
agents: { one: { role: One, goal: Do, allowDelegation: false } }
tasks:
  fails: { description: Fails, expectedOutput: JSON, agent: one, deliverable: { path: /out/x.json, source: structured_output, schemaInline: '{"type":"object"}' } }
  skipped: { description: Skipped, expectedOutput: A word, agent: one, dependencies: [fails] }
`,
}

// has is a kind of event that is of the crew's own process.
var has = map[string]string{
	"sequential": "delegation.finished", "parallel": "task.started", "hierarchical": "task.reviewed",
	"consensual": "vote.cast", "graph": "task.retried",
}

// stage is one run from its settings to its end, told in JSON lines, that is
// stopped at an event.
type stage struct {
	lines bytes.Buffer
	out   *runner.Output
	err   error
}

func play(t *testing.T, settings *config.Settings, path, dir string, stopAt int) *stage {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s := &stage{}
	write, failed := event.JSONL(&s.lines)
	began, n := time.Now(), 0
	events := event.NewStream("run", time.Now, write, func(event.Event) {
		if n++; n == stopAt {
			cancel()
		}
	})
	events.Emit(event.Event{Kind: event.RunStarted, Begin: &event.Begin{Target: path, Stream: true}})
	loaded, loadErr := crew.Load(path)
	host, err := runner.Open(ctx, runner.Config{
		Settings: settings, Mounts: []string{dir + ":/out:rw"}, Events: events, Stream: true,
		Models: func(context.Context, config.Profile, runner.Credentials) (llm.Model, error) { return actor{}, nil },
	})
	if s.err = err; err == nil {
		if v := host.Judge(loaded, loadErr, nil); len(v.Issues) > 0 {
			t.Fatal(v.Issues)
		}
		s.out, s.err = host.Run(ctx, loaded, nil)
		if err := host.Close(); err != nil {
			t.Error(err)
		}
	}
	finished := event.Event{Kind: event.RunFinished, Success: new(s.err == nil), DurationMS: time.Since(began).Milliseconds()}
	switch {
	case errors.Is(s.err, context.Canceled):
		finished.ExitCode = 130
	case s.err != nil:
		finished.ExitCode = 2
	}
	events.Emit(finished)
	if err := failed(); err != nil {
		t.Error(err)
	}
	return s
}

// A run that is stopped at any of its events ends at once: what it told is whole
// lines with an end to every task, what it had done is in its output, and nothing
// runs on.
func TestStoppedAtEveryEvent(t *testing.T) {
	handler, err := mcptest.Handler("-tools", "echo")
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	defer server.Close()
	for name, text := range cancelled {
		t.Run(name, func(t *testing.T) {
			defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
			dir := t.TempDir()
			path := filepath.Join(dir, "crew.yaml")
			for file, text := range map[string]string{
				"crew.yaml":     text,
				"crewhost.yaml": "llm: { provider: echo }\npermissions: { default: allow }\n",
			} {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			settings, err := config.Load(config.Source{CrewDir: dir})
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(text, "[echo]") {
				served, err := config.Load(config.Source{CrewDir: serverDir(t, server.URL)})
				if err != nil {
					t.Fatal(err)
				}
				settings.MCP = served.MCP
			}
			whole := play(t, settings, path, dir, 0)
			if err := eventtest.Run(whole.lines.Bytes()); err != nil {
				t.Fatalf("%v\n%s", err, &whole.lines)
			}
			if fails := name == "graph"; (whole.err != nil) != fails {
				t.Fatalf("%v\n%s", whole.err, &whole.lines)
			}
			if kind := has[name]; !strings.Contains(whole.lines.String(), `"kind":"`+kind+`"`) {
				t.Errorf("no %s in\n%s", kind, &whole.lines)
			}
			last := bytes.Count(whole.lines.Bytes(), []byte("\n"))
			if last < 15 {
				t.Errorf("only %d events", last)
			}
			for k := 1; k < last; k++ {
				s := play(t, settings, path, dir, k)
				if err := eventtest.Run(s.lines.Bytes()); err != nil {
					t.Errorf("stopped at %d: %v\n%s", k, err, &s.lines)
				}
				if s.err != nil && !errors.Is(s.err, context.Canceled) && name != "graph" {
					t.Errorf("stopped at %d: %v", k, s.err)
				}
				if s.err == nil && k < last-8 {
					t.Errorf("stopped at %d of %d, and went on", k, last)
				}
				partial(t, k, s)
			}
			server.CloseClientConnections()
		})
	}
}

func serverDir(t *testing.T, url string) string {
	dir := t.TempDir()
	text := "llm: { provider: echo }\nmcp: { servers: { far: { url: " + url + " } } }\n"
	if err := os.WriteFile(filepath.Join(dir, "crewhost.yaml"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// partial holds the output of a stopped run against its events: every task that
// was told to be completed is there with its text, and no other.
func partial(t *testing.T, k int, s *stage) {
	t.Helper()
	told := map[string]string{}
	for line := range bytes.Lines(s.lines.Bytes()) {
		var e struct {
			Kind, TaskID, Text string
			Success            bool
		}
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatal(err)
		}
		if e.Kind == "task.completed" && e.Success {
			told[e.TaskID] = e.Text
		}
	}
	if s.out == nil {
		if len(told) > 0 {
			t.Errorf("stopped at %d: no output, though %v were told", k, told)
		}
		return
	}
	for _, r := range s.out.Tasks {
		text, completed := told[r.Task]
		if completed != (r.State == process.Completed) || completed && text != r.Text {
			t.Errorf("stopped at %d: task %s is %s with %q; told: %v", k, r.Task, r.State, r.Text, told)
		}
	}
}
