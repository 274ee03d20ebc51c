//go:build interop

package mcp_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"crewhost/config"
	"crewhost/config/secret"
	"crewhost/mcp"
	"crewhost/mcp/mcptest/interop"
	"crewhost/tools"
)

// node are the settings of a reference server over stdio.
func node(t *testing.T, name string, args ...string) config.Server {
	t.Helper()
	s := config.Server{Name: name, Transport: config.TransportStdio, Command: secret.Literal("node")}
	for _, arg := range append([]string{interop.Script(t, "server-"+name+"/dist/index.js")}, args...) {
		s.Args = append(s.Args, secret.Literal(arg))
	}
	return s
}

// TestInteropStdio connects the four reference servers at once, and lists and
// calls the tools of each.
func TestInteropStdio(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "tide.txt"), []byte("high at six"), 0o600); err != nil {
		t.Fatal(err)
	}
	memory := node(t, "memory")
	memory.Env = []config.Variable{{Name: "MEMORY_FILE_PATH", Value: secret.Literal(filepath.Join(dir, "memory.jsonl"))}}
	r := start(t, settings(
		node(t, "everything"),
		node(t, "filesystem", dir),
		memory,
		node(t, "sequential-thinking"),
	)).connected()

	for _, report := range r.Reports() {
		t.Logf("%s %s: %s, %d tools, %v", report.Name, report.ServerVersion, report.Protocol, len(report.Tools), report.Took.Round(time.Millisecond))
		if report.Era != mcp.Legacy || report.Protocol != "2025-11-25" {
			t.Errorf("%s speaks %s, %s", report.Name, report.Era, report.Protocol)
		}
		if len(report.Warnings) > 0 {
			t.Errorf("%s: warnings %q", report.Name, report.Warnings)
		}
	}
	calls := []struct{ tool, arguments, want string }{
		{"echo", `{"message":"hello"}`, "hello"},
		{"get-sum", `{"a":2,"b":3}`, "5"},
		{"read_text_file", `{"path":"` + filepath.Join(dir, "tide.txt") + `"}`, "high at six"},
		{"create_entities", `{"entities":[{"name":"Moon","entityType":"body","observations":["pulls"]}]}`, "Moon"},
		{"search_nodes", `{"query":"Moon"}`, "pulls"},
		{"sequentialthinking", `{"thought":"first","nextThoughtNeeded":false,"thoughtNumber":1,"totalThoughts":1}`, `"thoughtNumber": 1`},
	}
	for _, c := range calls {
		res := r.call(c.tool, c.arguments)
		if res.IsError || !strings.Contains(text(res), c.want) {
			t.Errorf("%s: %+v does not say %q", c.tool, res, c.want)
		}
	}
	if res := r.call("get-structured-content", `{"location":"New York"}`); len(res.Structured) == 0 {
		t.Errorf("no structured content: %+v", res)
	}
	if res := r.call("get-tiny-image", `{}`); !slices.ContainsFunc(res.Content, isImage) {
		t.Errorf("no image: %+v", res)
	}
	if res := r.call("read_text_file", `{"path":"/etc/passwd"}`); !res.IsError {
		t.Errorf("reading outside the allowed folder: %+v", res)
	}
}

// TestInteropHTTP connects the reference server over Streamable HTTP, and
// TestInteropSSE over the transport before it, which is found out (W3). That
// server listens on every interface, so it and these tests run in a network
// namespace that holds nothing but a loopback.
func TestInteropHTTP(t *testing.T) {
	if interop.Isolated(t) {
		return
	}
	everything(t, "streamableHttp", "http://localhost:3901/mcp", config.TransportHTTP)
}

func TestInteropSSE(t *testing.T) {
	if interop.Isolated(t) {
		return
	}
	everything(t, "sse", "http://localhost:3901/sse", config.TransportSSE)
}

// everything runs the reference server in one of its modes and speaks to it.
func everything(t *testing.T, mode, url string, want config.Transport) {
	server := exec.CommandContext(t.Context(), "node", interop.Script(t, "server-everything/dist/index.js"), mode)
	server.Env = append(os.Environ(), "PORT=3901")
	stderr, err := server.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer server.Wait()
	defer server.Process.Kill()
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		if line := lines.Text(); strings.Contains(line, "listening") || strings.Contains(line, "running on port") {
			break
		}
	}

	r := start(t, settings(auto("everything", url))).connected()
	report := r.only()
	t.Logf("%s: %s over %s, %d tools, %v", report.ServerName, report.Protocol, report.Transport, len(report.Tools), report.Took.Round(time.Millisecond))
	if report.Protocol != "2025-11-25" || report.Transport != want || len(report.Tools) < 10 {
		t.Errorf("protocol %s, transport %s, tools %q", report.Protocol, report.Transport, report.Tools)
	}
	if res := r.call("echo", `{"message":"over HTTP"}`); !strings.Contains(text(res), "over HTTP") {
		t.Errorf("echo: %+v", res)
	}
	if d, err := r.Ping(t.Context(), "everything"); err != nil || d <= 0 {
		t.Errorf("ping: %v, %v", d, err)
	}
}

func isImage(c tools.Content) bool { return c.Kind == tools.KindImage && len(c.Data) > 0 }

// TestInteropQuestions has the reference server ask: by elicitation, for a sample
// and for roots; and reads its resources and prompts.
func TestInteropQuestions(t *testing.T) {
	s := node(t, "everything")
	s.Sampling = &config.Sampling{MaxTokens: 50, MaxCalls: 3}
	s.Roots = true
	person := accepting("name", "Ada", "email", "ada@example.com")
	model := new(sampler)
	r := startWith(t, settings(s), mcp.Options{
		Respondent: person, Sampler: model, Roots: []mcp.Root{{Name: "/data", Path: "/srv/data"}},
	}).connected()
	res := r.call("trigger-elicitation-request", `{}`)
	if res.IsError || !strings.Contains(text(res), "Ada") {
		t.Errorf("elicitation: %+v", res)
	}
	if asked := person.questions(); len(asked) != 1 || len(asked[0].Fields) == 0 {
		t.Errorf("asked %+v", asked)
	} else {
		for _, f := range asked[0].Fields {
			t.Logf("%s %s (%s) required %v, default %q, choices %v", f.Name, f.Kind, f.Takes(), f.Required, f.Default, f.Choices)
		}
	}
	res = r.call("trigger-sampling-request", `{"prompt":"Count.","maxTokens":20}`)
	if res.IsError || !strings.Contains(text(res), "one. two.") || len(model.asked) != 1 {
		t.Errorf("sampling: %+v", res)
	}
	if res := r.call("get-roots-list", `{}`); res.IsError || !strings.Contains(text(res), "file:///srv/data") {
		t.Errorf("roots: %+v", res)
	}
	list, err := r.Resources(t.Context(), "everything")
	if err != nil || len(list.Resources) == 0 || len(list.Templates) == 0 || len(list.Warnings) > 0 {
		t.Fatalf("resources: %+v, %v", list, err)
	}
	contents, err := r.ReadResource(t.Context(), "everything", list.Resources[0].URI)
	if err != nil || len(contents) == 0 || contents[0].Text == "" {
		t.Errorf("reading %s: %+v, %v", list.Resources[0].URI, contents, err)
	}
	prompts, err := r.Prompts(t.Context(), "everything")
	if err != nil || len(prompts.Prompts) == 0 {
		t.Fatalf("prompts: %+v, %v", prompts, err)
	}
	for _, p := range prompts.Prompts {
		arguments := map[string]string{}
		for _, a := range p.Arguments {
			arguments[a.Name] = "1"
		}
		got, err := r.GetPrompt(t.Context(), "everything", p.Name, arguments)
		t.Logf("%s: %d messages, %v", p.Name, len(got.Messages), err)
		if len(p.Arguments) == 0 && (err != nil || len(got.Messages) == 0) {
			t.Errorf("%s: %+v, %v", p.Name, got, err)
		}
	}
}
