//go:build interop

package server_test

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"

	"crewhost/mcp/mcptest/interop"
	"crewhost/mcp/server"
	"crewhost/tools"
	"crewhost/tools/permission"
)

// tasks are the scenarios of an extension, calls that outlive their requests, and
// how many of their checks fail: nothing of it is served. All other scenarios pass,
// those that aren't scored too.
//
// It would take: announcing io.modelcontextprotocol/tasks, and reading with each
// request whether its client has it; a run (converse.go), which outlives its request
// already, being told to such a client as a task where it takes long; tasks/get and
// tasks/cancel, for the caller that began it alone, and tasks/update, which brings
// answers as a requestState does now; and a time and a budget for results that are
// there and not fetched, which are to hold no place.
var tasks = map[string]int{
	"tasks-capability-negotiation": 4,
	"tasks-dispatch-and-envelope":  6,
	"tasks-lifecycle":              8,
	"tasks-mrtr-composition":       1,
	"tasks-mrtr-input":             3,
	"tasks-request-headers":        3,
	"tasks-request-state-removal":  1,
	"tasks-required-task-error":    1,
	"tasks-wire-fields":            3,
}

// TestInteropConformanceServer holds the server against the official suite, as it
// requires it of each revision, with one URL for both: all checks that are scored
// pass, and of the others those fail that are said here.
func TestInteropConformanceServer(t *testing.T) {
	if interop.Isolated(t) {
		return
	}
	url := serveFixture(t)
	for _, tt := range []struct {
		revision string
		passed   int            // checks: fewer means that something is no longer tested
		unmet    map[string]int // unscored scenarios, and how many of their checks fail
	}{
		{"2025-11-25", 81, nil},
		{"2026-07-28", 165, tasks},
	} {
		t.Run(tt.revision, func(t *testing.T) {
			got := interop.Suite(t, "server", "--url", url, "--requirements", tt.revision)
			failed := 0
			for _, name := range slices.Sorted(maps.Keys(got.Scenarios)) {
				if n := got.Scenarios[name].Failed; n != tt.unmet[name] {
					t.Errorf("%s: %d checks failed, and %d are said to", name, n, tt.unmet[name])
				}
			}
			for _, n := range tt.unmet {
				failed += n
			}
			if got.Total.Passed != tt.passed || got.Total.Failed != failed {
				t.Errorf("%d checks passed and %d failed, want %d and %d", got.Total.Passed, got.Total.Failed, tt.passed, failed)
			}
			if t.Failed() {
				t.Log(got.Output)
			}
		})
	}
}

// serveFixture serves what the suite asks for until the test ends, and returns
// where.
func serveFixture(t *testing.T) string {
	t.Helper()
	f := new(fixture)
	for _, tool := range f.tools() {
		if err := f.registry.Add(tool); err != nil {
			t.Fatal(err)
		}
	}
	policy, err := permission.New(permission.Config{Default: permission.Allow})
	if err != nil {
		t.Fatal(err)
	}
	f.server, err = server.New(server.Config{
		Name: "conformance", Version: "1.0.0", Guard: permission.NewGuard(&f.registry, policy, nil), Resources: f, Prompts: f,
		Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	// The suite sends the server's own origin, which must be allowed by its name.
	const listen = "127.0.0.1:3903"
	http, err := f.server.ListenHTTP(t.Context(), server.HTTPConfig{Listen: listen, AllowedOrigins: []string{"http://" + listen}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := http.Serve(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		stop()
		serving.Wait()
	})
	return http.URL()
}

// A fixture has the tools, resources and prompts that the suite asks for by name.
type fixture struct {
	registry tools.Registry
	server   *server.Server
}
