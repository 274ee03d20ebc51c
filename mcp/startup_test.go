package mcp_test

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"crewhost/config"
	"crewhost/config/secret"
	"crewhost/mcp"
	"crewhost/mcp/mcptest"
	"crewhost/tools"
)

// The first of the "must show": one surface, one line for each failure
// and collision, in the slowest budget and not the sum.
func TestStartupReportsEveryServer(t *testing.T) {
	missing := config.Server{Name: "missing", Transport: config.TransportStdio, Command: secret.Literal("no-such-command-anywhere")}
	hang := stdio("hang", mcptest.Hang)
	hang.ConnectTimeout = time.Second
	hang2 := stdio("hang2", mcptest.Hang)
	hang2.ConnectTimeout = time.Second
	cfg := settings(
		stdio("good", mcptest.Standard, "-tools", "echo,shared"),
		missing, hang, hang2,
		stdio("banner", mcptest.Scripted, "-banner", "Ready v1.2"),
		stdio("twin", mcptest.Standard, "-tools", "shared,own"),
	)
	var done []string
	reg := new(tools.Registry)
	began := time.Now()
	sessions, err := mcp.Startup(t.Context(), cfg, reg, mcp.Options{
		Name: "test", Version: "1",
		OnReport: func(r mcp.ServerReport) { done = append(done, r.Name) },
	})
	took := time.Since(began)
	if err != nil {
		t.Fatal(err)
	}
	defer sessions.Close()

	states := map[string]mcp.State{}
	for _, r := range sessions.Reports() {
		states[r.Name] = r.State
	}
	want := map[string]mcp.State{
		"good": mcp.StateConnected, "missing": mcp.StateFailed, "hang": mcp.StateFailed,
		"hang2": mcp.StateFailed, "banner": mcp.StateConnected, "twin": mcp.StateConnected,
	}
	if diff := cmp.Diff(want, states); diff != "" {
		t.Error(diff)
	}
	if got, want := reg.Names(), []string{"echo", "huge", "log", "own", "pinged", "shared", "slow"}; !slices.Equal(got, want) {
		t.Errorf("registered %q, want %q", got, want)
	}
	slices.Sort(done)
	if want := []string{"banner", "good", "hang", "hang2", "missing", "twin"}; !slices.Equal(done, want) {
		t.Errorf("OnReport told of %q, want %q", done, want)
	}
	if took > 10*time.Second {
		t.Errorf("took %v", took)
	}

	reports := sessions.Reports()
	if !errors.Is(reports[1].Err, exec.ErrNotFound) || !strings.Contains(reports[1].Err.Error(), "no-such-command-anywhere") {
		t.Errorf("missing: %v", reports[1].Err)
	}
	// K05: server, limit and stage.
	for _, part := range []string{`"hang"`, "within 1s", "stage: negotiate", string(tools.CodeConnectTimeout)} {
		if !strings.Contains(reports[2].Err.Error(), part) {
			t.Errorf("hang: %v: no %q", reports[2].Err, part)
		}
	}
	// O12, K21: the settings' order decides, and one line names both.
	skips := reports[5].Skipped
	if len(skips) != 1 || skips[0].String() != `The tool "shared" of MCP server "twin" collides with server "good" and was not registered.` {
		t.Errorf("collisions: %v", skips)
	}
	shared, _ := reg.Lookup("shared")
	if shared.Definition().Server != "good" {
		t.Errorf("shared belongs to %q", shared.Definition().Server)
	}
}

// O12: a built-in holds its name against every server.
func TestStartupKeepsBuiltIns(t *testing.T) {
	reg := new(tools.Registry)
	if err := reg.Add(builtin("echo")); err != nil {
		t.Fatal(err)
	}
	sessions, err := mcp.Startup(t.Context(), settings(stdio("a", mcptest.Standard, "-tools", "echo,env")), reg, mcp.Options{Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	defer sessions.Close()
	r := sessions.Reports()[0]
	if len(r.Skipped) != 1 || !strings.Contains(r.Skipped[0].String(), "collides with a built-in tool") {
		t.Errorf("skipped: %v", r.Skipped)
	}
	if !slices.Equal(r.Tools, []string{"env"}) {
		t.Errorf("tools: %q", r.Tools)
	}
	if err := sessions.Close(); err != nil {
		t.Fatal(err)
	}
	// O1, and the holder stays.
	if got := reg.Names(); !slices.Equal(got, []string{"echo"}) {
		t.Errorf("after Close: %q", got)
	}
}

type builtin string

func (b builtin) Definition() tools.Definition { return tools.Definition{Name: string(b)} }
func (b builtin) Call(context.Context, tools.Call) (tools.Result, error) {
	return tools.Text("built in"), nil
}

// O11: a required server that fails is fatal, and all of them are named.
func TestRequiredServers(t *testing.T) {
	var servers []config.Server
	for _, name := range []string{"one", "two"} {
		s := stdio(name, mcptest.Exit)
		s.Required = true
		servers = append(servers, s)
	}
	reg := new(tools.Registry)
	sessions, err := mcp.Startup(t.Context(), settings(append(servers, stdio("good", mcptest.Standard))...), reg, mcp.Options{Name: "test"})
	var required *mcp.RequiredError
	if !errors.As(err, &required) || len(required.Failed) != 2 {
		t.Fatalf("got %v", err)
	}
	for _, name := range []string{`"one"`, `"two"`} {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("%v does not name %s", err, name)
		}
	}
	if names := reg.Names(); len(names) != 0 {
		t.Errorf("registered %q", names)
	}
	reports := sessions.Reports()
	if reports[0].State != mcp.StateFailed || reports[2].State != mcp.StateClosed {
		t.Errorf("states: %s, %s", reports[0].State, reports[2].State)
	}
	if err := sessions.Close(); err != nil {
		t.Error(err)
	}
}

// The end of the context, as by Ctrl-C, ends a startup at once.
func TestStartupCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cfg := settings(stdio("hang", mcptest.Hang), stdio("good", mcptest.Standard))
	cfg.ShutdownTimeout = time.Minute
	sessions, err := mcp.Startup(ctx, cfg, new(tools.Registry), mcp.Options{
		Name:     "test",
		OnReport: func(mcp.ServerReport) { cancel() }, // of good
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	if r := sessions.Reports()[0]; tools.CodeOf(r.Err) != tools.CodeCancelled {
		t.Errorf("hang: %v", r.Err)
	}
}

func TestStartupWithoutServers(t *testing.T) {
	cfg := settings(stdio("a", mcptest.Standard))
	cfg.Enabled = false // O10
	r := start(t, cfg)
	if len(r.Reports()) != 0 || len(r.reg.Names()) != 0 {
		t.Errorf("reports %v, names %q", r.Reports(), r.reg.Names())
	}
}

// Twenty servers that each take a second to start are up in four.
func TestTwentySlowServers(t *testing.T) {
	if testing.Short() {
		t.Skip("takes three seconds")
	}
	var servers []config.Server
	for i := range 20 {
		servers = append(servers, stdio(fmt.Sprintf("s%02d", i), mcptest.Standard, "-delay", "1s", "-tools", fmt.Sprintf("t%02d", i)))
	}
	began := time.Now()
	r := start(t, settings(servers...)).connected()
	if took := time.Since(began); took > 8*time.Second { // the limit is 4 s, on a machine of its own
		t.Errorf("took %v", took)
	} else {
		t.Logf("took %v", took)
	}
	if n := len(r.reg.Names()); n != 20 {
		t.Errorf("%d tools", n)
	}
}

// One process at a time where the settings say so. A server that is silent holds
// its turn no longer than the probe's limit, and HTTP servers need none.
func TestMaxStarting(t *testing.T) {
	cfg := settings(
		stdio("a", mcptest.Standard, "-delay", "200ms", "-tools", "x"),
		stdio("b", mcptest.Standard, "-delay", "200ms", "-tools", "y"),
		stdio("hang", mcptest.Hang),
		remote("http", mcptest.HTTP(t, "-tools", "z")),
	)
	cfg.MaxStarting = 1
	cfg.ProbeTimeout = 300 * time.Millisecond
	cfg.Servers[2].ConnectTimeout = 2 * time.Second
	began := time.Now()
	r := start(t, cfg)
	if took := time.Since(began); took < 2*200*time.Millisecond {
		t.Errorf("two processes started together: took %v", took)
	}
	for i, want := range []mcp.State{mcp.StateConnected, mcp.StateConnected, mcp.StateFailed, mcp.StateConnected} {
		if got := r.Reports()[i]; got.State != want {
			t.Errorf("%s is %s: %v", got.Name, got.State, got.Err)
		}
	}
}

// K03: what the settings name is laid over a few inherited variables; K07: argv
// arrives byte for byte; cwd is where the server runs.
func TestEnvironmentAndArguments(t *testing.T) {
	t.Setenv("HOST_SECRET", "not for children")
	s := stdio("a", mcptest.Standard, "-name", "/tmp/My Data (2)", "-stderr", `a"b $HOME`, "-tools", "env")
	s.Env = []config.Variable{ // not mcptest.Environ: only this is asked for
		{Name: "TOKEN", Value: secret.NewText("${T}", "t1-secret", secret.New("t1-secret"))},
		{Name: "LANG", Value: secret.Literal("C")},
	}
	s.Cwd = t.TempDir()
	res := text(start(t, settings(s)).connected().call("env", ""))
	for _, part := range []string{`"/tmp/My Data (2)"`, `"a\"b $HOME"`, `"TOKEN=t1-secret"`, `"LANG=C"`, `"PATH=`, `"HOME=`} {
		if !strings.Contains(res, part) {
			t.Errorf("no %s in %s", part, res)
		}
	}
	if strings.Contains(res, "HOST_SECRET") {
		t.Error("the whole environment was inherited")
	}
	if n := strings.Count(res, `"LANG=`); n != 1 {
		t.Errorf("LANG is there %d times", n)
	}
}

// K07: the error of a server that ends shows each argument as one.
func TestExitShowsArguments(t *testing.T) {
	s := stdio("a", mcptest.Exit, "-b local", "")
	err := start(t, settings(s)).only().Err
	for _, part := range []string{`"-b local" ""`, "exit status 3", "giving up", filepath.Base(s.Command.Reveal())} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%v: no %s", err, part)
		}
	}
	if strings.ContainsAny(err.Error(), "\n") {
		t.Errorf("more than one line: %q", err)
	}
}

func TestPing(t *testing.T) {
	r := start(t, settings(stdio("modern", mcptest.Standard), stdio("legacy", mcptest.Scripted), stdio("gone", mcptest.Exit)))
	for _, name := range []string{"modern", "legacy"} {
		if took, err := r.Ping(t.Context(), name); err != nil || took <= 0 {
			t.Errorf("%s: %v, %v", name, took, err)
		}
	}
	for _, name := range []string{"gone", "nobody"} {
		if _, err := r.Ping(t.Context(), name); err == nil {
			t.Errorf("%s answered", name)
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Ping(t.Context(), "modern"); tools.CodeOf(err) != tools.CodeTransportClosed {
		t.Errorf("after Close: %v", err)
	}
}

// W11: closing is bounded although the server ignores everything.
func TestCloseIsBounded(t *testing.T) {
	cfg := settings(stdio("deaf", mcptest.Scripted, "-deaf"))
	cfg.ShutdownTimeout = 200 * time.Millisecond
	r := start(t, cfg).connected()
	began := time.Now()
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("took %v", took)
	}
	if got := r.only().State; got != mcp.StateClosed {
		t.Errorf("state %s", got)
	}
}
