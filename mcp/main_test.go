package mcp_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"crewhost/config"
	"crewhost/config/secret"
	"crewhost/mcp"
	"crewhost/mcp/child"
	"crewhost/mcp/mcptest"
	"crewhost/tools"
)

// The test binary is also its own servers, its guard and its victim host.
func TestMain(m *testing.M) {
	switch {
	case mcptest.IsServer():
		os.Exit(mcptest.Main())
	case len(os.Args) > 1 && os.Args[1] == guardArg:
		if err := child.GuardMain(os.Stdin); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	case len(os.Args) > 3 && os.Args[1] == faultArg:
		os.Exit(faultHost(os.Args[2], way(os.Args[3])))
	case len(os.Args) > 1 && os.Args[1] == hostArg:
		os.Exit(victimHost(os.Args[2]))
	}
	goleak.VerifyTestMain(m)
}

const (
	guardArg = "mcp-test-guard"
	hostArg  = "mcp-test-host"
	faultArg = "mcp-test-fault"
)

// stdio are the settings of a server that is a child of the test.
func stdio(name string, kind mcptest.Kind, flags ...string) config.Server {
	command, args := mcptest.Command(kind, flags...)
	s := config.Server{Name: name, Transport: config.TransportStdio, Command: secret.Literal(command)}
	for _, arg := range args {
		s.Args = append(s.Args, secret.Literal(arg))
	}
	for _, entry := range mcptest.Environ() {
		name, value, _ := strings.Cut(entry, "=")
		s.Env = append(s.Env, config.Variable{Name: name, Value: secret.Literal(value)})
	}
	return s
}

// remote are the settings of a server at a URL.
func remote(name, url string) config.Server {
	return config.Server{Name: name, Transport: config.TransportHTTP, URL: secret.Literal(url)}
}

// settings declare servers, with limits that suit tests on a busy machine.
func settings(servers ...config.Server) config.MCP {
	return config.MCP{
		Enabled:         true,
		ConnectTimeout:  20 * time.Second,
		ProbeTimeout:    2 * time.Second,
		ToolTimeout:     10 * time.Second,
		ShutdownTimeout: 2 * time.Second,
		MaxStarting:     8,
		Servers:         servers,
	}
}

// lines collects what is logged.
type lines struct {
	mu  sync.Mutex
	buf strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// rig is a startup for a test.
type rig struct {
	*mcp.Sessions
	t   testing.TB
	reg *tools.Registry
	log *lines
}

// start connects servers, and closes them with the test.
func start(t testing.TB, cfg config.MCP) rig {
	t.Helper()
	return startWith(t, cfg, mcp.Options{})
}

// startWith is start with options, but for the name, the version and the logger.
func startWith(t testing.TB, cfg config.MCP, opts mcp.Options) rig {
	t.Helper()
	r := rig{t: t, reg: new(tools.Registry), log: new(lines)}
	opts.Name, opts.Version = "test", "1"
	opts.Logger = slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	var err error
	r.Sessions, err = mcp.Startup(t.Context(), cfg, r.reg, opts)
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// only returns the one report there is.
func (r rig) only() mcp.ServerReport {
	r.t.Helper()
	reports := r.Reports()
	if len(reports) != 1 {
		r.t.Fatalf("got %d reports, want 1", len(reports))
	}
	return reports[0]
}

// connected fails the test unless every server is.
func (r rig) connected() rig {
	r.t.Helper()
	for _, report := range r.Reports() {
		if report.State != mcp.StateConnected {
			r.t.Fatalf("%s is %s: %v\n%s", report.Name, report.State, report.Err, r.log)
		}
	}
	return r
}

// call calls a tool, and fails the test unless there is a result.
func (r rig) call(name, arguments string) tools.Result {
	r.t.Helper()
	res, err := r.try(r.t.Context(), name, arguments)
	if err != nil {
		r.t.Fatalf("calling %s: %v", name, err)
	}
	return res
}

func (r rig) try(ctx context.Context, name, arguments string) (tools.Result, error) {
	r.t.Helper()
	tool, ok := r.reg.Lookup(name)
	if !ok {
		r.t.Fatalf("no tool %q among %q", name, r.reg.Names())
	}
	return tool.Call(ctx, tools.Call{Name: name, Arguments: json.RawMessage(arguments)})
}

// text joins the text of a result.
func text(res tools.Result) string {
	var parts []string
	for _, c := range res.Content {
		parts = append(parts, c.Text)
	}
	return strings.Join(parts, "\n")
}
