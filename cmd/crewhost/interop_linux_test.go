//go:build interop

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"crewhost/config"
	"crewhost/config/secret"
	"crewhost/mcp"
	"crewhost/mcp/mcptest/interop"
	"crewhost/tools"
)

// A served is the program, as it is shipped, in front of the reference server.
type served struct {
	t                *testing.T
	binary, settings string
	home             string
}

// newServed builds the program and writes its settings.
func newServed(t *testing.T) served {
	t.Helper()
	dir := t.TempDir()
	s := served{t: t, binary: filepath.Join(dir, "crewhost"), settings: filepath.Join(dir, "crewhost.yaml"), home: t.TempDir()}
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", s.binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("building the program: %v\n%s", err, out)
	}
	everything, err := json.Marshal(interop.Script(t, "server-everything/dist/index.js"))
	if err != nil {
		t.Fatal(err)
	}
	settings := `
permissions: { default: allow }
mcp:
  servers:
    everything: { command: node, args: [` + string(everything) + `] }
  served:
    demo:
      tools: [echo, get-sum, get-structured-content]
      resources: [everything]
      prompts: [everything]
      http: { listen: "127.0.0.1:3906" }
`
	if err := os.WriteFile(s.settings, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}

// stdio is the command line of the program that serves on stdio.
func (s served) stdio(args ...string) []string {
	return slices.Concat([]string{s.binary, "mcp"}, args, []string{"--settings", s.settings})
}

// http runs the program until the test ends and returns where it serves.
func (s served) http(args ...string) (url string) {
	s.t.Helper()
	line := s.stdio(args...)
	program := exec.Command(line[0], line[1:]...)
	stderr, err := program.StderrPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		s.t.Fatal(err)
	}
	said := bufio.NewScanner(stderr)
	s.t.Cleanup(func() {
		_ = program.Process.Signal(syscall.SIGTERM)
		for said.Scan() { // it is read to its end before the program is waited for
			s.t.Log(said.Text())
		}
		if err := program.Wait(); err != nil {
			s.t.Errorf("serving: %v", err)
		}
	})
	for said.Scan() {
		s.t.Log(said.Text())
		if _, rest, ok := strings.Cut(said.Text(), " at http://"); ok {
			return "http://" + strings.TrimSuffix(strings.Fields(rest)[0], ":")
		}
	}
	s.t.Fatal("the program does not say where it serves")
	return ""
}

// inspector is what the official inspector says of a server.
func (s served) inspector(target []string, args ...string) string {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 2*time.Minute)
	defer cancel()
	line := slices.Concat([]string{interop.Script(s.t, "inspector/clients/launcher/build/index.js"), "--cli"}, args, []string{"--"}, target)
	c := exec.CommandContext(ctx, "node", line...)
	c.Env = append(os.Environ(), "HOME="+s.home)
	c.Dir = s.home
	var out, aside bytes.Buffer
	c.Stdout, c.Stderr = &out, &aside
	if err := c.Run(); err != nil {
		s.t.Errorf("the inspector, %q: %v\n%s%s", args, err, out.Bytes(), aside.Bytes())
	}
	return out.String()
}

// inspect lists and calls by the inspector.
func (s served) inspect(target []string) {
	s.t.Helper()
	var list struct {
		Tools []struct {
			Name        string
			InputSchema map[string]any
		}
	}
	said := s.inspector(target, "--method", "tools/list")
	if err := json.Unmarshal([]byte(said), &list); err != nil {
		s.t.Fatalf("tools/list: %v\n%s", err, said)
	}
	names := map[string]bool{}
	for _, tool := range list.Tools {
		names[tool.Name] = tool.InputSchema["type"] == "object"
	}
	for _, name := range []string{"echo", "get-sum", "get-structured-content"} {
		if !names[name] {
			s.t.Errorf("the inspector does not list %s with its schema, but %v", name, names)
		}
	}
	for _, c := range []struct {
		want string
		args []string
	}{
		{"Echo: over the host", []string{"--tool-name", "echo", "--tool-arg", "message=over the host"}},
		{`"structuredContent"`, []string{"--tool-name", "get-structured-content", "--tool-arg", "location=New York"}},
	} {
		if said := s.inspector(target, append([]string{"--method", "tools/call"}, c.args...)...); !strings.Contains(said, c.want) {
			s.t.Errorf("%q does not say %q:\n%s", c.args, c.want, said)
		}
	}
}

// TestInteropInspector has the official inspector list and call what this host
// serves, be it a surface of the settings or all of its tools, over each transport.
func TestInteropInspector(t *testing.T) {
	if interop.Isolated(t) {
		return
	}
	s := newServed(t)
	t.Run("stdio, start", func(t *testing.T) {
		s := s
		s.t = t
		target := s.stdio("start", "demo")
		s.inspect(target)
		if said := s.inspector(target, "--method", "resources/list"); !strings.Contains(said, `"uri"`) {
			t.Errorf("resources/list: %s", said)
		}
		if said := s.inspector(target, "--method", "prompts/list"); !strings.Contains(said, "simple-prompt") {
			t.Errorf("prompts/list: %s", said)
		}
	})
	t.Run("stdio, serve", func(t *testing.T) {
		s := s
		s.t = t
		s.inspect(s.stdio("serve"))
	})
	t.Run("HTTP, start", func(t *testing.T) {
		s := s
		s.t = t
		s.inspect([]string{s.http("start", "--http", "demo")})
	})
	t.Run("HTTP, serve", func(t *testing.T) {
		s := s
		s.t = t
		s.inspect([]string{s.http("serve", "--http", "127.0.0.1:0")})
	})
}

// TestInteropEverythingBehindThisHost calls the tools of the reference server by
// this project's client through this project's server, over each transport and in
// each era.
func TestInteropEverythingBehindThisHost(t *testing.T) {
	if interop.Isolated(t) {
		return
	}
	s := newServed(t)
	url := s.http("serve", "--http", "127.0.0.1:0")
	line := s.stdio("serve")
	stdio := config.Server{Name: "host", Transport: config.TransportStdio, Command: secret.Literal(line[0])}
	for _, arg := range line[1:] {
		stdio.Args = append(stdio.Args, secret.Literal(arg))
	}
	for transport, server := range map[string]config.Server{
		"stdio": stdio,
		"HTTP":  {Name: "host", Transport: config.TransportHTTP, URL: secret.Literal(url)},
	} {
		for protocol, want := range map[config.Protocol]string{config.ProtocolModern: "2026-07-28", config.ProtocolLegacy: "2025-11-25"} {
			t.Run(transport+", "+string(protocol), func(t *testing.T) {
				server.Protocol = protocol
				throughHost(t, server, want)
			})
		}
	}
}

func throughHost(t *testing.T, server config.Server, version string) {
	var reg tools.Registry
	sessions, err := mcp.Startup(t.Context(), config.MCP{
		Enabled: true, ConnectTimeout: time.Minute, ProbeTimeout: 30 * time.Second, ToolTimeout: 30 * time.Second,
		ShutdownTimeout: 10 * time.Second, MaxStarting: 1, Servers: []config.Server{server},
	}, &reg, mcp.Options{Name: "test", Version: "1"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := sessions.Close(); err != nil {
			t.Error(err)
		}
	}()
	report := sessions.Reports()[0]
	if report.State != mcp.StateConnected || report.Protocol != version || len(report.Warnings) > 0 {
		t.Fatalf("%s, protocol %s: %v, %q", report.State, report.Protocol, report.Err, report.Warnings)
	}
	t.Logf("%d tools", len(report.Tools))
	call := func(name, arguments string) tools.Result {
		tool, ok := reg.Lookup(name)
		if !ok {
			t.Errorf("there is no %s in %q", name, report.Tools)
			return tools.Result{}
		}
		res, err := tool.Call(t.Context(), tools.Call{Name: name, Arguments: json.RawMessage(arguments)})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		return res
	}
	has := func(res tools.Result, fits func(tools.Content) bool) {
		t.Helper()
		if res.IsError || !slices.ContainsFunc(res.Content, fits) {
			t.Errorf("got %+v", res)
		}
	}
	says := func(text string) func(tools.Content) bool {
		return func(c tools.Content) bool { return strings.Contains(c.Text, text) }
	}
	has(call("echo", `{"message":"through both"}`), says("through both"))
	has(call("get-sum", `{"a":2,"b":3}`), says("5"))
	has(call("get-tiny-image", `{}`), func(c tools.Content) bool { return c.Kind == tools.KindImage && len(c.Data) > 0 })
	has(call("get-resource-links", `{"count":2}`), func(c tools.Content) bool { return c.Kind == tools.KindLink && c.URI != "" })
	has(call("get-resource-reference", `{"resourceType":"Text","resourceId":1}`), func(c tools.Content) bool { return c.Kind == tools.KindResource && c.URI != "" })
	if res := call("get-structured-content", `{"location":"New York"}`); len(res.Structured) == 0 {
		t.Errorf("no structured content: %+v", res)
	}
	has(call("trigger-long-running-operation", `{"duration":1,"steps":4}`), says("completed"))
	if res := call("get-sum", `{"a":"two"}`); !res.IsError {
		t.Errorf("arguments that don't fit: %+v", res)
	}
}
