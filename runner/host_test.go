package runner_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"go.uber.org/goleak"

	"crewhost/config"
	"crewhost/crew"
	"crewhost/mcp"
	"crewhost/mcp/mcptest"
	"crewhost/runner"
	"crewhost/runner/event"
	"crewhost/runner/event/eventtest"
	"crewhost/runner/llm"
	"crewhost/tools"
	"crewhost/tools/builtin/people"
	"crewhost/tools/builtin/shell"
	"crewhost/tools/permission"
)

func TestMain(m *testing.M) {
	if mcptest.IsServer() {
		os.Exit(mcptest.Main())
	}
	if mcptest.IsNotes() {
		os.Exit(mcptest.RunNotes())
	}
	if len(os.Args) == 3 && os.Args[1] == confineArgument {
		fmt.Fprintln(os.Stderr, shell.ConfineMain(os.Args[2:]))
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// confineArgument makes the test binary the helper that confines programs.
const confineArgument = "runner-test-confine"

// rig is a folder with settings and a crew, and a host on them.
type rig struct {
	t      *testing.T
	dir    string
	events []event.Event
	heard  func(event.Event)
	host   *runner.Host
}

// open writes files into a folder and opens a host on its crewhost.yaml.
func open(t *testing.T, files map[string]string, change ...func(*runner.Config)) *rig {
	t.Helper()
	r := &rig{t: t, dir: t.TempDir()}
	for name, text := range files {
		path := filepath.Join(r.dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	environ := append(os.Environ(), "SERVER="+self(t))
	settings, err := config.Load(config.Source{CrewDir: r.dir, Environ: environ})
	if err != nil {
		t.Fatal(err)
	}
	cfg := runner.Config{
		Settings: settings, Environ: environ,
		Events: event.NewStream("test", time.Now, eventtest.Sink(t), func(e event.Event) {
			r.events = append(r.events, e)
			if r.heard != nil {
				r.heard(e)
			}
		}),
	}
	for _, f := range change {
		f(&cfg)
	}
	r.host, err = runner.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.host.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func self(t *testing.T) string {
	t.Helper()
	command, _ := mcptest.Command(mcptest.Standard)
	return command
}

// crew loads crew.yaml and fails the test where the host finds fault with it.
func (r *rig) crew(inputs crew.Inputs) *crew.Crew {
	r.t.Helper()
	c, err := crew.Load(filepath.Join(r.dir, "crew.yaml"))
	if v := r.host.Judge(c, err, inputs); len(v.Issues) > 0 {
		r.t.Fatal(v.Issues)
	}
	return c
}

func (r *rig) kinds() []event.Kind {
	var kinds []event.Kind
	for _, e := range r.events {
		kinds = append(kinds, e.Kind)
	}
	return kinds
}

const oneTask = `
name: One
goal: Do one thing
agents: { one: { role: One, goal: Answer, tools: [echo] } }
tasks: { only: { description: "Echo {word}", expectedOutput: A word, agent: one } }
`

const echoServer = `
mcp: { servers: { standard: { command: "${SERVER}", args: [mcptest-server, standard, -tools, "echo,sleep"] } } }
permissions: { allow: [mcp__standard] }
`

// A run, whole: a server's tool is called for a model behind an OpenAI-compatible
// API, with the digits that the model wrote (K31), and the events say who did what.
func TestRunAgainstAnOpenAICompatibleServer(t *testing.T) {
	var mu sync.Mutex
	var requests []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		mu.Lock()
		requests = append(requests, string(body))
		n := len(requests)
		mu.Unlock()
		if got := req.Header.Get("Authorization"); got != "Bearer sk-test-1" {
			http.Error(w, "no key", http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if n == 1 {
			_, _ = io.WriteString(w, `{"choices":[{"index":0,"finish_reason":"tool_calls","message":{"role":"assistant","content":null,"tool_calls":[
				{"id":"c1","type":"function","function":{"name":"echo","arguments":"{\"id\":725653563933458433}"}}]}}],
				"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}}`)
			return
		}
		_, _ = io.WriteString(w, `{"choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"Echoed."}}],
			"usage":{"prompt_tokens":20,"completion_tokens":2,"total_tokens":22}}`)
	}))
	defer server.Close()

	r := open(t, map[string]string{
		"crewhost.yaml": "llm: { provider: openai, model: m, base_url: " + server.URL + "/v1, api_key: { env: TEST_KEY } }\n" + echoServer,
		"crew.yaml":     oneTask,
	}, func(c *runner.Config) { c.Environ = append(c.Environ, "TEST_KEY=sk-test-1") })
	inputs := crew.Inputs{"word": "tide"}
	out, err := r.host.Run(t.Context(), r.crew(inputs), inputs)
	if err != nil {
		t.Fatal(err)
	}
	if out.Final != "Echoed." || out.Usage != (llm.Usage{Input: 30, Output: 7, Measured: true}) {
		t.Errorf("output %+v", out)
	}
	if len(requests) != 2 || !strings.Contains(requests[0], "Echo tide") || !strings.Contains(requests[1], "725653563933458433") {
		t.Errorf("requests: %s", requests)
	}
	want := []event.Kind{
		event.MCPServer, event.MCPStartup, event.TaskStarted,
		event.ModelCalled, event.ModelReturned, event.CostUpdated, event.ToolCalled, event.ToolReturned,
		event.ModelCalled, event.ModelReturned, event.CostUpdated, event.TaskCompleted,
	}
	if got := r.kinds(); !slices.Equal(got, want) {
		t.Errorf("events %q, want %q", got, want)
	}
	for _, e := range r.events {
		if e.Kind == event.ToolCalled && (e.Server != "standard" || e.Task != "only" || e.Agent != "one" || !slices.Equal(e.Arguments, []string{"id"})) {
			t.Errorf("tool.called: %+v", e)
		}
	}
}

// The same crew against an Anthropic API.
func TestRunAgainstAnAnthropicServer(t *testing.T) {
	var bodies []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		bodies = append(bodies, string(body))
		w.Header().Set("Content-Type", "application/json")
		if len(bodies) == 1 {
			_, _ = io.WriteString(w, `{"id":"m1","type":"message","role":"assistant","model":"m","stop_reason":"tool_use",
				"content":[{"type":"text","text":"I echo."},{"type":"tool_use","id":"t1","name":"echo","input":{"id":725653563933458433}}],
				"usage":{"input_tokens":10,"output_tokens":5}}`)
			return
		}
		_, _ = io.WriteString(w, `{"id":"m2","type":"message","role":"assistant","model":"m","stop_reason":"end_turn",
			"content":[{"type":"text","text":"Echoed."}],"usage":{"input_tokens":20,"output_tokens":2}}`)
	}))
	defer server.Close()
	r := open(t, map[string]string{
		"crewhost.yaml": "llm: { provider: anthropic, model: m, base_url: " + server.URL + ", api_key: { env: TEST_KEY } }\n" + echoServer,
		"crew.yaml":     oneTask,
	}, func(c *runner.Config) { c.Environ = append(c.Environ, "TEST_KEY=sk-test-1") })
	inputs := crew.Inputs{"word": "tide"}
	out, err := r.host.Run(t.Context(), r.crew(inputs), inputs)
	if err != nil {
		t.Fatal(err)
	}
	if out.Final != "Echoed." || len(bodies) != 2 || !strings.Contains(bodies[1], "725653563933458433") {
		t.Errorf("output %+v, requests %s", out, bodies)
	}
}

// A call that the policy asks about is denied where nobody can be asked, and the
// denial is for the model to read: the run goes on (R3).
func TestHeadlessDenial(t *testing.T) {
	asked := 0
	model := modelFunc(func(req llm.Request) *llm.Response {
		if last := req.Messages[len(req.Messages)-1]; last.Role == llm.RoleTool {
			return answer("The tool said: " + last.Text())
		}
		return calls(llm.ToolCall{ID: "c1", Name: "echo", Arguments: `{}`})
	})
	files := map[string]string{
		"crewhost.yaml": strings.Replace(echoServer, "allow: [mcp__standard]", "default: ask", 1),
		"crew.yaml":     oneTask,
	}
	inputs := crew.Inputs{"word": "tide"}
	r := open(t, files, with(model))
	out, err := r.host.Run(t.Context(), r.crew(inputs), inputs)
	if err != nil || !strings.Contains(out.Final, "nobody can be asked") {
		t.Errorf("%+v, %v", out, err)
	}

	r = open(t, files, with(model), func(c *runner.Config) {
		c.Approver = approverFunc(func(req permission.Request) permission.Answer {
			asked++
			if req.Tool != "echo" || req.Server != "standard" || req.Agent != "one" {
				t.Errorf("asked about %+v", req)
			}
			return permission.Answer{Reason: "not today"}
		})
	})
	out, err = r.host.Run(t.Context(), r.crew(inputs), inputs)
	if err != nil || asked != 1 || !strings.Contains(out.Final, "not today") {
		t.Errorf("%+v, %v, asked %d times", out, err, asked)
	}
}

// A run that is stopped stops its tools and says what it had done.
func TestRunIsStopped(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	model := modelFunc(func(llm.Request) *llm.Response {
		return calls(llm.ToolCall{ID: "c1", Name: "sleep", Arguments: `{"seconds":300}`})
	})
	r := open(t, map[string]string{
		"crewhost.yaml": echoServer,
		"crew.yaml":     strings.Replace(oneTask, "[echo]", "[sleep]", 1),
	}, with(model))
	r.heard = func(e event.Event) {
		if e.Kind == event.ToolCalled {
			cancel()
		}
	}
	inputs := crew.Inputs{"word": "tide"}
	out, err := r.host.Run(ctx, r.crew(inputs), inputs)
	var failed *runner.RunError
	if !errors.As(err, &failed) || !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if out == nil || len(out.Tasks) != 1 {
		t.Errorf("output %+v", out)
	}
}

// Everything that settings get wrong is reported at once, before a server starts.
func TestOpenReportsEveryProblem(t *testing.T) {
	settings := &config.Settings{
		MCP:         config.MCP{Enabled: true, Servers: []config.Server{{Name: "never"}}},
		Permissions: config.Permissions{Allow: []config.Rule{{Pattern: "a[b"}}},
		Mounts:      []config.Mount{{Spec: "nonsense"}, {Spec: "/no/such/place/at/all:/x:rw"}},
	}
	started := false
	_, err := runner.Open(t.Context(), runner.Config{
		Settings: settings, Profile: "nope", Mounts: []string{"also nonsense"},
		OnServer: func(mcp.ServerReport) { started = true },
	})
	var issues crew.Issues
	if !errors.As(err, &issues) || len(issues) != 5 {
		t.Fatalf("%d issues: %v", len(issues), err)
	}
	codes := map[string]int{}
	for _, i := range issues {
		codes[i.Code]++
	}
	if codes[runner.CodeBadMount] != 3 || codes[runner.CodeBadRule] != 1 || codes[runner.CodeUnknownProfile] != 1 {
		t.Errorf("codes %v", codes)
	}
	if started {
		t.Error("a server was started")
	}
}

// A required server that fails is fatal, and everything is closed again.
func TestRequiredServer(t *testing.T) {
	dir := t.TempDir()
	text := `mcp: { servers: { good: { command: "${SERVER}", args: [mcptest-server, standard] }, bad: { command: no-such-command, required: true } } }`
	if err := os.WriteFile(filepath.Join(dir, "crewhost.yaml"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	environ := append(os.Environ(), "SERVER="+self(t))
	settings, err := config.Load(config.Source{CrewDir: dir, Environ: environ})
	if err != nil {
		t.Fatal(err)
	}
	var startup []event.State
	events := event.NewStream("test", time.Now, eventtest.Sink(t), func(e event.Event) {
		if e.Kind == event.MCPStartup {
			startup = append(startup, *e.State)
		}
	})
	_, err = runner.Open(t.Context(), runner.Config{Settings: settings, Environ: environ, Events: events})
	var required *mcp.RequiredError
	if !errors.As(err, &required) || len(required.Failed) != 1 || !strings.Contains(err.Error(), `"bad"`) {
		t.Errorf("error %v", err)
	}
	if diff := cmp.Diff([]event.State{{Servers: 2, Connected: 1, Failed: 1}}, startup); diff != "" {
		t.Error(diff)
	}
}

// Calls from outside a run go through the same policy.
func TestCallIsGuarded(t *testing.T) {
	r := open(t, map[string]string{"crewhost.yaml": echoServer + "\n"}, with(nil))
	res, err := r.host.Call(t.Context(), tools.Call{Name: "echo", Arguments: json.RawMessage(`{"a":1}`)})
	if err != nil || res.IsError {
		t.Errorf("echo: %+v, %v", res, err)
	}
	res, err = r.host.Call(t.Context(), tools.Call{Name: "directory_read", Arguments: json.RawMessage(`{"path":"/"}`)})
	if err != nil || !res.IsError || !strings.Contains(res.Content[0].Text, "denied") {
		t.Errorf("directory_read: %+v, %v", res, err)
	}
	if d, err := r.host.Ping(t.Context(), "standard"); err != nil || d <= 0 || d > time.Minute {
		t.Errorf("ping: %v, %v", d, err)
	}
}

// However a crew names the default profile, it has one model, and a profile is
// found whatever its case, as the settings themselves do it.
func TestOneModelAProfile(t *testing.T) {
	var made []string
	r := open(t, map[string]string{
		"crewhost.yaml": "llm: { provider: echo, profiles: { Cheap: { provider: openai, model: small } } }\n",
		"crew.yaml": `
name: Two
goal: Do two things
llm: { profile: default }
agents: { one: { role: One, goal: Answer } }
tasks:
  first: { description: Say a, expectedOutput: A word, agent: one }
  second: { description: Say b, expectedOutput: A word, agent: one, llmOverride: { profile: Cheap } }
`,
	}, func(c *runner.Config) {
		c.Models = func(_ context.Context, p config.Profile, _ runner.Credentials) (llm.Model, error) {
			made = append(made, p.Provider+p.Model)
			return llm.Echo{}, nil
		}
	})
	if _, err := r.host.CheckModel(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := r.host.Run(t.Context(), r.crew(nil), nil); err != nil {
		t.Fatal(err)
	}
	if want := []string{"echo", "openaismall"}; !slices.Equal(made, want) {
		t.Errorf("made %q, want %q", made, want)
	}

	r = open(t, map[string]string{
		"crewhost.yaml": "llm: { provider: echo, profiles: { Cheap: { provider: openai, model: small } } }\n",
	}, func(c *runner.Config) { c.Profile = "cheap" }, with(llm.Echo{}))
	if name, err := r.host.CheckModel(t.Context()); err != nil || name != "openai/small" {
		t.Errorf("elected %q, %v", name, err)
	}
}

// A mount that the crew requires must be there (mounts require, and never
// restrict).
func TestJudgeMounts(t *testing.T) {
	r := open(t, map[string]string{
		"out/.keep":     "",
		"crewhost.yaml": "mounts: [\"./out:/out:rw\"]\n",
		"crew.yaml": strings.Replace(oneTask, ", tools: [echo]", "", 1) +
			"mounts: [/out, \"01ARZ3NDEKTSV4RRFFQ69G5FAV|/data\", nonsense]\n",
	})
	c, err := crew.Load(filepath.Join(r.dir, "crew.yaml"))
	v := r.host.Judge(c, err, crew.Inputs{"word": "tide"})
	// The third is no mount at all, and earns one issue, not two.
	if len(v.Issues) != 2 || v.Issues[0].Code != runner.CodeNoMount || v.Issues[0].Line != 6 || !strings.Contains(v.Issues[0].Error(), "--mount DIR:/data:rw") {
		t.Errorf("issues: %v", v.Issues)
	}
	if len(v.Warnings) != 0 {
		t.Errorf("warnings: %v", v.Warnings)
	}
}

// A secret that a vendor repeats is in no event; a program that finds a key sees
// the environment that the host was given.
func TestEventsHoldNoSecret(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the program is a shell's")
	}
	r := open(t, map[string]string{
		"crewhost.yaml": `llm: { provider: echo, api_key: { command: [sh, -c, 'printf %s "$HIDDEN"'] } }` + "\n",
		"crew.yaml":     strings.Replace(oneTask, ", tools: [echo]", "", 1),
	}, func(c *runner.Config) {
		c.Environ = append(c.Environ, "HIDDEN=hunter2-hunter2")
		c.Models = func(ctx context.Context, p config.Profile, creds runner.Credentials) (llm.Model, error) {
			key, err := creds.Resolve(ctx, p.APIKey)
			if err != nil || key.Reveal() != "hunter2-hunter2" {
				t.Errorf("key: %v", err)
			}
			return failing{errors.New("the key hunter2-hunter2\nis not known")}, nil
		}
	})
	inputs := crew.Inputs{"word": "tide"}
	if _, err := r.host.Run(t.Context(), r.crew(inputs), inputs); err == nil {
		t.Error("the run did not fail")
	}
	told := 0
	for _, e := range r.events {
		if strings.Contains(e.Error, "is not known") {
			told++
		}
		if strings.Contains(e.Error+e.Text, "hunter2") || strings.Contains(e.Error, "\n") {
			t.Errorf("%s: %s", e.Kind, e.Error)
		}
	}
	if told < 3 {
		t.Errorf("only %d events say why: %+v", told, r.events)
	}
}

// failing is a model that can't be asked.
type failing struct{ err error }

func (f failing) Generate(context.Context, llm.Request) (*llm.Response, error) { return nil, f.err }

// A host that is given no environment gives none on: neither to servers nor to
// programs that find keys.
func TestNoEnvironmentIsAnEmptyOne(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the program is a shell's")
	}
	t.Setenv("ONLY_OF_THIS_PROCESS", "x")
	r := open(t, map[string]string{"crewhost.yaml": strings.Replace(echoServer, "echo,sleep", "env", 1) +
		`llm: { provider: echo, api_key: { command: [/bin/sh, -c, 'echo "<$ONLY_OF_THIS_PROCESS>"'] } }` + "\n"},
		func(c *runner.Config) {
			c.Environ = nil
			c.Models = func(ctx context.Context, p config.Profile, creds runner.Credentials) (llm.Model, error) {
				if key, err := creds.Resolve(ctx, p.APIKey); err != nil || key.Reveal() != "<>" {
					t.Errorf("key %q, %v", key.Reveal(), err)
				}
				return llm.Echo{}, nil
			}
		})
	if _, err := r.host.CheckModel(t.Context()); err != nil {
		t.Error(err)
	}
	res, err := r.host.Call(t.Context(), tools.Call{Name: "env"})
	if err != nil || len(res.Content) != 1 || strings.Contains(res.Content[0].Text, `"PATH=`) {
		t.Errorf("the server's: %+v, %v", res, err)
	}
}

// A tool that breaks down is a failed call for the model and an error in the log,
// where every call stands with what decided about it.
func TestCallsAreLogged(t *testing.T) {
	var log bytes.Buffer
	r := open(t, map[string]string{"crewhost.yaml": "permissions: { deny: [file_write] }\n"}, func(c *runner.Config) {
		c.Logger = slog.New(slog.NewTextHandler(&log, nil))
		c.Asker = brokenAsker{}
	})
	res, err := r.host.Call(t.Context(), tools.Call{Name: "human_input", Arguments: json.RawMessage(`{"prompt":"Well?"}`)})
	if err != nil || !res.IsError || strings.Contains(res.Content[0].Text, "out of order") {
		t.Errorf("human_input: %+v, %v", res, err)
	}
	if _, err := r.host.Call(t.Context(), tools.Call{Name: "file_write", Agent: "one", Arguments: json.RawMessage(`{"path":"/secret-path"}`)}); err != nil {
		t.Error(err)
	}
	for _, want := range []string{"level=ERROR", "out of order", "tool=file_write outcome=denied", "agent=one"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log has no %q:\n%s", want, &log)
		}
	}
	if strings.Contains(log.String(), "secret-path") {
		t.Errorf("the log has arguments:\n%s", &log)
	}
}

type brokenAsker struct{}

func (brokenAsker) Ask(context.Context, people.Question) (people.Answer, error) {
	panic("out of order")
}

type modelFunc func(llm.Request) *llm.Response

func (f modelFunc) Generate(ctx context.Context, req llm.Request) (*llm.Response, error) {
	return f(req), ctx.Err()
}

type approverFunc func(permission.Request) permission.Answer

func (f approverFunc) Approve(_ context.Context, q permission.Question) (permission.Answer, error) {
	return f(q.Request), nil
}

// with has every profile use one model.
func with(m llm.Model) func(*runner.Config) {
	return func(c *runner.Config) {
		c.Models = func(context.Context, config.Profile, runner.Credentials) (llm.Model, error) { return m, nil }
	}
}

func answer(text string) *llm.Response {
	return &llm.Response{Message: llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{{Text: text}}}, Stop: llm.StopEnd}
}

func calls(c ...llm.ToolCall) *llm.Response {
	return &llm.Response{Message: llm.Message{Role: llm.RoleAssistant, Calls: c}, Stop: llm.StopTools}
}
