package runner_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"crewhost/config"
	"crewhost/config/secret"
	"crewhost/config/strict"
	"crewhost/mcp"
	"crewhost/runner"
	"crewhost/runner/llm"
	"crewhost/tools"
)

// surface composes the only surface of the settings.
func (r *rig) surface(t *testing.T) *runner.Surface {
	t.Helper()
	settings, err := config.Load(config.Source{CrewDir: r.dir, Environ: []string{"SERVER=" + self(t)}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := r.host.Surface(t.Context(), runner.ServeConfig{Served: settings.MCP.Served[0]})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// listen serves the only surface of the settings over HTTP until the test ends,
// and returns its URL.
func (r *rig) listen(t *testing.T) string {
	t.Helper()
	l, err := r.surface(t).ListenHTTP(t.Context(), config.ServedHTTP{Listen: "127.0.0.1:0", Path: "/mcp"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := l.Serve(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { stop(); serving.Wait() })
	return l.URL()
}

// behind opens a host that has another one for a server.
func behind(t *testing.T, url, protocol string, change ...func(*runner.Config)) *runner.Host {
	t.Helper()
	return open(t, map[string]string{"crewhost.yaml": fmt.Sprintf(`
mcp: { servers: { inner: { url: %q, protocol: %s, required: true } } }
permissions: { default: allow }
`, url, protocol)}, change...).host
}

var eras = []string{"modern", "legacy"}

// overStdio serves the only surface of the settings to a client that speaks by pipes
// until the test ends, and returns how that client calls tools.
func (r *rig) overStdio(t *testing.T, era string) func(tool, arguments string) string {
	t.Helper()
	surface := r.surface(t)
	in, say := io.Pipe()
	hear, out := io.Pipe()
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := surface.ServeStdio(context.WithoutCancel(t.Context()), in, out); err != nil {
			t.Error(err)
		}
		_ = out.Close()
	})
	lines := bufio.NewScanner(hear)
	t.Cleanup(func() {
		_ = say.Close()
		for lines.Scan() { // what it still says
		}
		serving.Wait()
	})
	write := func(line string) {
		if _, err := io.WriteString(say, line+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	type said struct {
		ID     int
		Result struct{ Content []struct{ Text string } }
		Error  json.RawMessage
	}
	until := func(id int) string {
		for lines.Scan() {
			var m said
			if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
				t.Fatalf("%v: %s", err, lines.Bytes())
			}
			switch {
			case m.ID != id:
			case m.Error != nil:
				return string(m.Error)
			case len(m.Result.Content) > 0:
				return m.Result.Content[0].Text
			default:
				return ""
			}
		}
		t.Fatal("the server says nothing more")
		return ""
	}
	meta := ""
	if era == "modern" {
		meta = `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
	} else {
		write(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
		until(1)
		write(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	}
	id := 1
	return func(tool, arguments string) string {
		id++
		write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s%s}}`, id, tool, arguments, meta))
		return until(id)
	}
}

// eventually waits for what another goroutine is about to do.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(20 * time.Second)
	for !done() {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatal("in vain waited for " + what)
		}
	}
}

// O22: a host behind a host, over HTTP in each era. Tools are called through both,
// digit for digit (K31), and those that come are followed.
func TestChainOverHTTP(t *testing.T) {
	for _, era := range eras {
		t.Run(era, func(t *testing.T) {
			inner := open(t, map[string]string{"crewhost.yaml": `
mcp:
  servers: { standard: { command: "${SERVER}", args: [mcptest-server, standard, -tools, "echo,fail,add,count,big"] } }
  served: { demo: { tools: ["mcp__standard__*", json_tool] } }
permissions: { allow: [echo, fail, add], deny: [count] }
`})
			outer := behind(t, inner.listen(t), era)
			if r := outer.Servers()[0]; string(r.Era) != era {
				t.Errorf("the era is %s", r.Era)
			}
			if got, failed := said(t, outer, "echo", `{"id":725653563933458433}`); failed || got != `{"id":725653563933458433}` {
				t.Errorf("got %s", got)
			}
			if _, failed := said(t, outer, "fail", `{}`); !failed {
				t.Error("a failure is none behind two hosts")
			}
			// R3: the inner policy stands, whatever the outer one allows.
			for _, tool := range []string{"count", "big"} {
				if got, failed := said(t, outer, tool, `{"bytes":1}`); !failed || !strings.Contains(got, "The policy denied") {
					t.Errorf("%s: %s", tool, got)
				}
			}
			if _, failed := said(t, outer, "add", `{"name":"late"}`); failed {
				t.Fatal("add failed")
			}
			eventually(t, "the tool that came", func() bool {
				return slices.ContainsFunc(outer.Tools(), func(d tools.Definition) bool { return d.Name == "late" && d.Server == "inner" })
			})
		})
	}
}

// meeting is a model that says who has come, and answers when told to.
type meeting struct {
	arrived chan struct{}
	leave   chan struct{}
	stopped chan struct{}
}

func (m *meeting) Generate(ctx context.Context, req llm.Request) (*llm.Response, error) {
	select {
	case m.arrived <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	select {
	case <-m.leave:
	case <-ctx.Done():
		m.stopped <- struct{}{}
		return nil, ctx.Err()
	}
	return answer("about " + req.Messages[len(req.Messages)-1].Text()), nil
}

const servedCrew = `
name: Harbour Log!
goal: Say what is known of {Topic}
inputs: { depth: two }
agents: { one: { role: One, goal: Answer } }
tasks:
  first: { description: "Look at {topic}, {depth} deep", expectedOutput: A word, agent: one }
  last: { description: "Sum up {topic}", expectedOutput: A word, agent: one, dependencies: [first] }
`

const servesCrew = `
mcp: { served: { demo: { crews: [crew.yaml] } } }
permissions: { allow: [harbour_log, human_input] }
`

// O22: a crew is a tool. Its variables are the arguments, its output the result,
// and its tasks the progress; it is no tool of the host's own, so that it can't
// call itself.
func TestServedCrew(t *testing.T) {
	for _, era := range eras {
		t.Run(era, func(t *testing.T) {
			heard := make(chan struct{})
			inner := open(t, map[string]string{"crewhost.yaml": servesCrew, "crew.yaml": servedCrew}, with(patient(heard)))
			outer := behind(t, inner.listen(t), era)
			defs := outer.Tools()
			at := slices.IndexFunc(defs, func(d tools.Definition) bool { return d.Name == "harbour_log" })
			if at < 0 || defs[at].Description != "Say what is known of {Topic}" || defs[at].Title != "Harbour Log!" {
				t.Fatalf("got %+v", defs)
			}
			want := `{"type":"object","properties":{"depth":{"type":"string","default":"two"},"initial_context":{"type":"string","description":"What the run begins with, for all agents to read."},"topic":{"type":"string"}},"required":["topic"],"additionalProperties":false}`
			if got := string(defs[at].InputSchema); got != want {
				t.Errorf("the schema is %s", got)
			}
			if slices.ContainsFunc(inner.host.Tools(), func(d tools.Definition) bool { return d.Name == "harbour_log" }) {
				t.Error("the host has its own crew for a tool")
			}
			var mu sync.Mutex
			var told []tools.Progress
			res, err := outer.Call(t.Context(), tools.Call{Name: "harbour_log", Arguments: json.RawMessage(`{"topic":"tides"}`), Progress: func(p tools.Progress) {
				mu.Lock()
				defer mu.Unlock()
				if told = append(told, p); len(told) == 1 {
					close(heard)
				}
			}})
			if err != nil || res.IsError || res.Content[0].Text != "Tides, in short." {
				t.Fatalf("%+v, %v", res, err)
			}
			var structured struct {
				OK    bool
				Final string
				Tasks []struct{ Task, Agent, State string }
			}
			if err := json.Unmarshal(res.Structured, &structured); err != nil || !structured.OK || structured.Final != "Tides, in short." {
				t.Errorf("%s, %v", res.Structured, err)
			}
			if diff := cmp.Diff([]struct{ Task, Agent, State string }{{"first", "one", "completed"}, {"last", "one", "completed"}}, structured.Tasks); diff != "" {
				t.Error(diff)
			}
			mu.Lock()
			defer mu.Unlock()
			for i, p := range told {
				if p.Total != 2 || i > 0 && p.Done <= told[i-1].Done {
					t.Errorf("progress %+v", told)
				}
			}
			for arguments, want := range map[string]string{
				`{}`:                        `The argument "topic" is missing.`,
				`{"topic":1}`:               `The argument "topic" is not a text.`,
				`{"topic":"x","depht":"y"}`: `There is no argument "depht"; did you mean "depth"?`,
			} {
				if got, failed := said(t, outer, "harbour_log", arguments); !failed || got != want {
					t.Errorf("%s: %s", arguments, got)
				}
			}
		})
	}
}

// patient is a model that sums up when somebody has heard how far it is.
type patient chan struct{}

func (p patient) Generate(ctx context.Context, r llm.Request) (*llm.Response, error) {
	if !strings.Contains(r.Messages[len(r.Messages)-1].Text(), "Sum up tides") {
		return answer("Tides, at length."), nil
	}
	select {
	case <-p:
		return answer("Tides, in short."), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(20 * time.Second):
		return nil, errors.New("nobody heard how far it is")
	}
}

// What went wrong with a crew is told task by task, with what there was till then,
// and without secrets.
func TestServedCrewFails(t *testing.T) {
	m := &faltering{}
	inner := open(t, map[string]string{"crewhost.yaml": servesCrew, "crew.yaml": servedCrew + `
  after: { description: "More", expectedOutput: A word, agent: one, dependencies: [last] }
`}, with(m), func(c *runner.Config) {
		c.Redactor = &secret.Redactor{}
		c.Redactor.Add(secret.New("hush-hush-1234"))
	})
	outer := behind(t, inner.listen(t), "modern")
	res, err := outer.Call(t.Context(), tools.Call{Name: "harbour_log", Arguments: json.RawMessage(`{"topic":"tides"}`)})
	if err != nil || !res.IsError {
		t.Fatalf("%+v, %v", res, err)
	}
	got := res.Content[0].Text
	for _, want := range []string{`The crew "Harbour Log!" failed: `, "- first: completed", "- last: failed: ", "- after: skipped: ", "What the last completed task had said:\nTides, at length."} {
		if !strings.Contains(got, want) {
			t.Errorf("it does not say %q:\n%s", want, got)
		}
	}
	if strings.Contains(got+string(res.Structured), "hush-hush") || !strings.Contains(string(res.Structured), `"ok":false`) {
		t.Errorf("got %s\n%s", got, res.Structured)
	}
}

// faltering is a model that fails at the second task, and gives a secret away.
type faltering struct{}

func (faltering) Generate(_ context.Context, r llm.Request) (*llm.Response, error) {
	if strings.Contains(r.Messages[len(r.Messages)-1].Text(), "Sum up") {
		return nil, errors.New("refused: hush-hush-1234 is no key")
	}
	return answer("Tides, at length."), nil
}

// Calls are runs of their own, side by side; a call that is cancelled stops its run
// and no other.
func TestServedCrewRuns(t *testing.T) {
	for _, era := range eras {
		t.Run(era, func(t *testing.T) {
			m := &meeting{arrived: make(chan struct{}), leave: make(chan struct{}), stopped: make(chan struct{}, 3)}
			inner := open(t, map[string]string{"crewhost.yaml": servesCrew, "crew.yaml": servedCrew}, with(m))
			outer := behind(t, inner.listen(t), era)
			call := func(ctx context.Context, topic string) (tools.Result, error) {
				return outer.Call(ctx, tools.Call{Name: "harbour_log", Arguments: json.RawMessage(`{"topic":"` + topic + `"}`)})
			}
			doomed, cancel := context.WithCancel(t.Context())
			var running sync.WaitGroup
			running.Go(func() {
				if res, err := call(doomed, "nothing"); tools.CodeOf(err) != tools.CodeCancelled {
					t.Errorf("%+v, %v", res, err)
				}
			})
			for _, topic := range []string{"tides", "winds"} {
				running.Go(func() {
					res, err := call(t.Context(), topic)
					if err != nil || res.IsError || !strings.Contains(res.Content[0].Text, topic) {
						t.Errorf("%s: %+v, %v", topic, res, err)
					}
				})
			}
			for range 3 {
				<-m.arrived
			}
			cancel()
			<-m.stopped
			running.Go(func() {
				for range 2 { // the two that go on ask once more, whichever is first
					<-m.arrived
				}
			})
			for range 4 {
				m.leave <- struct{}{}
			}
			running.Wait()
		})
	}
}

// R5: resources and prompts of servers are passed on where they are named.
func TestServedOffers(t *testing.T) {
	for _, era := range eras {
		t.Run(era, func(t *testing.T) {
			inner := open(t, map[string]string{"crewhost.yaml": `
mcp:
  servers:
    gone: { command: no-such-command }
    notes: { command: "${SERVER}", args: [mcptest-server, standard, -tools, echo, -contents] }
    other: { command: "${SERVER}", args: [mcptest-server, standard, -tools, count, -contents] }
  served: { demo: { resources: ["notes/notes:///ti*", gone], prompts: [other/greet, gone] } }
`})
			outer := behind(t, inner.listen(t), era)
			list, err := outer.Resources(t.Context(), "inner")
			if err != nil || len(list.Resources) != 1 || list.Resources[0].URI != "notes:///tide" || len(list.Templates) != 0 {
				t.Fatalf("%+v, %v", list, err)
			}
			contents, err := outer.ReadResource(t.Context(), "inner", "notes:///tide")
			if err != nil || len(contents) == 0 || !strings.Contains(contents[0].Text, "high at six") {
				t.Errorf("%+v, %v", contents, err)
			}
			for _, uri := range []string{"notes:///logo", "notes:///tie", "file:///etc/passwd"} {
				if contents, err := outer.ReadResource(t.Context(), "inner", uri); err == nil {
					t.Errorf("%s: %+v", uri, contents)
				}
			}
			prompts, err := outer.Prompts(t.Context(), "inner")
			if err != nil || len(prompts.Prompts) != 1 || prompts.Prompts[0].Name != "greet" {
				t.Fatalf("%+v, %v", prompts, err)
			}
			text, err := outer.GetPrompt(t.Context(), "inner", "greet", map[string]string{"who": "Ada"})
			if err != nil || len(text.Messages) != 2 {
				t.Errorf("%+v, %v", text, err)
			}
			for _, tt := range []struct {
				q    mcp.Incomplete
				want string
			}{
				{mcp.Incomplete{Prompt: "greet", Argument: "who", Written: "A", Others: map[string]string{"other": "B"}}, "greet who A B"},
				{mcp.Incomplete{Prompt: "greet", Argument: "who", Written: "more"}, "greet who more"},
			} {
				c, err := outer.Complete(t.Context(), "inner", tt.q)
				if err != nil || len(c.Values) != 1 || c.Values[0] != tt.want || c.More != (tt.q.Written == "more") {
					t.Errorf("%+v: %+v, %v", tt.q, c, err)
				}
			}
			for _, q := range []mcp.Incomplete{
				{Prompt: "asks", Argument: "who"},               // not named
				{Template: "notes:///{name}", Argument: "name"}, // not named
			} {
				if c, err := outer.Complete(t.Context(), "inner", q); tools.CodeOf(err) != tools.CodeProtocolError {
					t.Errorf("%+v: %+v, %v", q, c, err)
				}
			}
			for _, d := range outer.Tools() {
				if d.Server == "inner" {
					t.Errorf("%s is served, which nobody named", d.Name)
				}
			}
		})
	}
}

// Completion is passed through for templates that are named, of the server that has
// them; it is announced only where some server of what is passed on has it.
func TestServedCompletion(t *testing.T) {
	for _, era := range eras {
		t.Run(era, func(t *testing.T) {
			const settings = `
mcp:
  servers:
    plain: { command: "${SERVER}", args: [mcptest-server, standard, -tools, echo] }
    notes: { command: "${SERVER}", args: [mcptest-server, standard, -tools, count, -contents] }
  served: { demo: { resources: [plain, %s], prompts: [plain] } }
`
			inner := open(t, map[string]string{"crewhost.yaml": fmt.Sprintf(settings, "notes")})
			outer := behind(t, inner.listen(t), era)
			c, err := outer.Complete(t.Context(), "inner", mcp.Incomplete{Template: "notes:///{name}", Argument: "name", Written: "t"})
			if err != nil || len(c.Values) != 1 || c.Values[0] != "notes:///{name} name t" {
				t.Errorf("%+v, %v", c, err)
			}
			for _, q := range []mcp.Incomplete{
				{Template: "file:///{name}", Argument: "name"},
				{Template: "notes:///{name}", Argument: "name", Written: "fail"},
			} {
				if c, err := outer.Complete(t.Context(), "inner", q); tools.CodeOf(err) != tools.CodeProtocolError || strings.Contains(err.Error(), "comes to mind") {
					t.Errorf("%+v: %+v, %v", q, c, err)
				}
			}
			inner = open(t, map[string]string{"crewhost.yaml": fmt.Sprintf(settings, "plain")})
			outer = behind(t, inner.listen(t), era)
			if c, err := outer.Complete(t.Context(), "inner", mcp.Incomplete{Template: "notes:///{name}", Argument: "name"}); tools.CodeOf(err) != tools.CodeMethodNotFound {
				t.Errorf("where nobody completes: %+v, %v", c, err)
			}
		})
	}
}

// O17: a client is told that a server has another resource or another prompt.
func TestServedOffersChange(t *testing.T) {
	r := open(t, map[string]string{"crewhost.yaml": `
mcp:
  servers: { notes: { command: "${SERVER}", args: [mcptest-server, standard, -tools, add, -contents] } }
  served: { demo: { tools: [add], resources: [notes], prompts: [notes] } }
permissions: { default: allow }
`})
	surface := r.surface(t)
	in, say := io.Pipe()
	hear, out := io.Pipe()
	var serving sync.WaitGroup
	serving.Go(func() {
		limit, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		if err := surface.ServeStdio(limit, in, out); err != nil {
			t.Error(err)
		}
		_ = out.Close()
	})
	serving.Go(func() {
		lines := bufio.NewScanner(hear)
		write := func(line string) { _, _ = io.WriteString(say, line+"\n") }
		until := func(text string) {
			for lines.Scan() {
				if strings.Contains(lines.Text(), text) {
					return
				}
			}
			t.Errorf("nothing says %s", text)
		}
		write(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
		until(`"id":1`)
		write(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		for _, kind := range []string{"resource", "prompt"} {
			write(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"add","arguments":{"name":"new","kind":"` + kind + `"}}}`)
			until(kind + "s/list_changed")
		}
		_ = say.Close()
		_, _ = io.Copy(io.Discard, hear) // until out is closed
	})
	serving.Wait()
}

// Everything that can't be served as it is written is said at once, with its place.
func TestSurfaceFaults(t *testing.T) {
	r := open(t, map[string]string{
		"crewhost.yaml": `
mcp:
  servers:
    notes: { command: "${SERVER}", args: [mcptest-server, standard, -tools, "echo,tides", -contents] }
    other: { command: "${SERVER}", args: [mcptest-server, standard, -tools, count, -contents] }
  served:
    demo:
      tools: [eho, "echo:a=b", "[", human_input, "nothing_*", "mcp__notes__*", rag_search, todo]
      crews: [a.yaml, b.yaml, {path: c.yaml, name: tides}, gone.yaml, broken.yaml]
      prompts: [notes, other]
`,
		"a.yaml":      strings.Replace(servedCrew, "Harbour Log!", "Same", 1),
		"b.yaml":      strings.Replace(servedCrew, "Harbour Log!", "same", 1),
		"c.yaml":      servedCrew,
		"broken.yaml": strings.Replace(servedCrew, "goal: Answer", "goal: Answer, tools: [nothing]", 1),
	}, with(modelFunc(func(llm.Request) *llm.Response { return answer("x") })))
	settings, err := config.Load(config.Source{CrewDir: r.dir, Environ: []string{"SERVER=" + self(t)}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.host.Surface(t.Context(), runner.ServeConfig{Served: settings.MCP.Served[0]})
	var issues strict.Issues
	if !errors.As(err, &issues) {
		t.Fatalf("got %v", err)
	}
	got := strings.ReplaceAll(issues.Error(), r.dir+"/", "")
	for _, want := range []string{
		`broken.yaml:5:51: agents.one.tools: `,
		`crewhost.yaml:8:15: there is no tool "eho" (did you mean "echo"?) [unknown-tool]`,
		`crewhost.yaml:8:20: the tool "echo:a=b": a condition on arguments has no place here`,
		`crewhost.yaml:8:32: allow rule "["`,
		`crewhost.yaml:8:37: human_input asks the person at this host, and is not served`,
		`crewhost.yaml:8:80: rag_search is for the agents of a crew that runs, and is not served`,
		`crewhost.yaml:8:92: todo touches nothing but an agent's own conversation, and is not served`,
		`crewhost.yaml:9:23: the crews a.yaml and b.yaml would both be served as "same"`,
		`crewhost.yaml:9:38: the crew c.yaml would be served as "tides", which is the name of a tool of MCP server "notes"`,
		`crewhost.yaml:9:60: there is no crew gone.yaml [not-found]`,
		`the MCP servers "notes" and "other" both have a prompt "greet"`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no line says %s\n%s", want, got)
		}
	}
	if strings.Contains(got, "nothing_*") {
		t.Errorf("a pattern that fits nothing yet is no fault:\n%s", got)
	}
}

// Where all is served, what makes sense within a crew alone is not.
func TestSurfaceOfAll(t *testing.T) {
	r := open(t, map[string]string{"crewhost.yaml": "mcp: { served: { all: { tools: ['*'] } } }\n"})
	var names []string
	for _, d := range r.surface(t).Tools() {
		names = append(names, d.Name)
	}
	if !slices.Contains(names, "file_read") {
		t.Errorf("served are %q", names)
	}
	for _, name := range []string{"human_input", "think", "todo", "memory_store", "semantic_search", "rag_search"} {
		if slices.Contains(names, name) {
			t.Errorf("%s is served", name)
		}
	}
}

// A crew whose model can't be made is refused before anybody calls it, and what the
// policy will always refuse is known.
func TestSurfaceJudges(t *testing.T) {
	files := map[string]string{
		"crewhost.yaml": `
llm: { provider: openai, model: m, api_key: "${NO_SUCH_KEY}" }
mcp: { served: { demo: { tools: [json_tool, file_read, "nothing_*"], crews: [crew.yaml] } } }
permissions: { allow: [json_tool] }
`, "crew.yaml": servedCrew}
	r := open(t, files)
	settings, err := config.Load(config.Source{CrewDir: r.dir})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.host.Surface(t.Context(), runner.ServeConfig{Served: settings.MCP.Served[0]}); err == nil || !strings.Contains(err.Error(), "NO_SUCH_KEY") {
		t.Errorf("got %v", err)
	}
	r = open(t, files, with(llm.Echo{}))
	s := r.surface(t)
	if diff := cmp.Diff([]string{"file_read", "harbour_log"}, s.Refused()); diff != "" {
		t.Error(diff)
	}
	if got := s.Warnings(); len(got) != 1 || !strings.Contains(got[0], `the pattern "nothing_*" fits no tool`) {
		t.Errorf("warnings %q", got)
	}
}

// What is to be passed on of a server that has nothing of the kind is a warning.
func TestIdleOffers(t *testing.T) {
	r := open(t, map[string]string{"crewhost.yaml": `
mcp:
  servers:
    bare: { command: "${SERVER}", args: [mcptest-server, standard, -tools, echo] }
    full: { command: "${SERVER}", args: [mcptest-server, standard, -tools, count, -contents] }
    gone: { command: no-such-command }
  served: { demo: { resources: [bare, full, gone], prompts: [bare/x, full] } }
`})
	var got []string
	for _, w := range r.surface(t).Warnings() {
		got = append(got, strings.TrimPrefix(w, r.dir+string(filepath.Separator)))
	}
	want := []string{
		`crewhost.yaml:7:33: MCP server "bare" has no resources`,
		`crewhost.yaml:7:62: MCP server "bare" has no prompts`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A rule about a served crew is no slip, whoever reads the settings.
func TestIdleRulesKnowServedCrews(t *testing.T) {
	r := open(t, map[string]string{"crewhost.yaml": servesCrew, "crew.yaml": servedCrew})
	if lines := r.host.IdleRules(); len(lines) != 0 {
		t.Errorf("got %q", lines)
	}
}

// Where hosts are servers of each other a call does not go round for ever: it says
// through how many hosts it came.
func TestCallsDoNotGoRoundForEver(t *testing.T) {
	for _, era := range eras {
		t.Run(era, func(t *testing.T) {
			inner := open(t, map[string]string{"crewhost.yaml": `
mcp:
  servers: { standard: { command: "${SERVER}", args: [mcptest-server, standard, -tools, echo, -contents] } }
  served: { demo: { tools: [echo], resources: [standard], prompts: [standard] } }
permissions: { default: allow }
`})
			middle := open(t, map[string]string{"crewhost.yaml": fmt.Sprintf(`
mcp: { servers: { inner: { url: %q, protocol: %s } }, served: { demo: { tools: [echo], resources: [inner], prompts: [inner] } } }
permissions: { default: allow }
`, inner.listen(t), era)})
			outer := behind(t, middle.listen(t), era)
			for hops, refused := range map[int]bool{0: false, tools.MaxHops - 2: false, tools.MaxHops - 1: true, tools.MaxHops + 5: true} {
				res, err := outer.Call(tools.WithHops(t.Context(), hops), tools.Call{Name: "echo", Arguments: json.RawMessage(`{"a":1}`)})
				if err != nil || res.IsError != refused {
					t.Errorf("after %d hosts: %+v, %v", hops, res, err)
				}
				if refused && !strings.Contains(res.Content[0].Text, "servers of each other") {
					t.Errorf("got %s", res.Content[0].Text)
				}
				ctx := tools.WithHops(t.Context(), hops)
				list, _ := outer.Resources(ctx, "inner")
				if _, err := outer.ReadResource(ctx, "inner", "notes:///tide"); err != nil != refused || len(list.Resources) == 0 != refused {
					t.Errorf("after %d hosts: %+v, %v", hops, list, err)
				}
				prompts, _ := outer.Prompts(ctx, "inner")
				if _, err := outer.GetPrompt(ctx, "inner", "greet", map[string]string{"who": "Ada"}); err != nil != refused || len(prompts.Prompts) == 0 != refused {
					t.Errorf("after %d hosts: %+v, %v", hops, prompts, err)
				}
			}
		})
	}
}

// What is wrong with HTTP is said before a port is opened, with the name of a token
// and never its value.
func TestListenHTTPRefuses(t *testing.T) {
	r := open(t, map[string]string{"crewhost.yaml": "mcp: { served: { demo: { tools: [json_tool] } } }"}, func(c *runner.Config) {
		c.Environ = append(c.Environ, "SHORT=hush", "GOOD=long-enough-to-be-a-token")
	})
	s := r.surface(t)
	token := func(name string) []config.NamedToken {
		return []config.NamedToken{{Name: "ci", Token: secret.Ref{Source: secret.FromEnv, Name: name}}}
	}
	for name, tt := range map[string]struct {
		cfg  config.ServedHTTP
		want string
	}{
		"no such token":   {config.ServedHTTP{Listen: "127.0.0.1:0", Tokens: token("NO_SUCH")}, `finding the token "ci"`},
		"a short token":   {config.ServedHTTP{Listen: "127.0.0.1:0", Tokens: token("SHORT")}, `token "ci"`},
		"beyond loopback": {config.ServedHTTP{Listen: "0.0.0.0:0"}, "not loopback"},
		"no certificate":  {config.ServedHTTP{Listen: "127.0.0.1:0", Cert: "/no/such.pem", Key: "/no/such.pem"}, "TLS"},
		"no issuer":       {config.ServedHTTP{Listen: "127.0.0.1:0", OAuth: &config.ServedOAuth{Resource: "https://x.example.com/mcp"}}, "issuer"},
	} {
		l, err := s.ListenHTTP(t.Context(), tt.cfg)
		if err == nil {
			_ = l.Close()
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: %v", name, err)
		}
	}
	l, err := s.ListenHTTP(t.Context(), config.ServedHTTP{
		Listen: "127.0.0.1:0", Path: "/x", Tokens: token("GOOD"), AllowedOrigins: []string{"https://app.example.com"}, AllowedHosts: []string{"gateway"},
		OAuth: &config.ServedOAuth{Resource: "https://x.example.com/x", Issuers: []config.Issuer{{URL: "https://login.example.com", JWKS: "https://login.example.com/keys"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(l.URL(), "/x") {
		t.Errorf("got %s", l.URL())
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}
