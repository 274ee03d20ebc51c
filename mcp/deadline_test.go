package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"crewhost/config"
	"crewhost/mcp"
	"crewhost/mcp/mcptest"
	"crewhost/tools"
)

// The requirement is that an operation returns within its deadline and 250 ms,
// whatever a server does. What holds it is that nothing waits for a server without
// the context of the operation, and that what is left at the deadline is killed
// and not asked. The tests allow for a machine that is busy.
const overrun = 2 * time.Second

// returns fails the test if an operation takes longer than its deadline allows.
func returns(t testing.TB, what string, deadline time.Duration, op func()) {
	t.Helper()
	began := time.Now()
	op()
	took := time.Since(began)
	t.Logf("%s: %v beyond its deadline of %v", what, (took - deadline).Round(time.Millisecond), deadline)
	if took > deadline+overrun {
		t.Errorf("%s: took %v, its deadline is %v", what, took, deadline)
	}
}

// stuck is an HTTP server that answers what it is told to, as a session, and lets
// everything else hang, the farewell included. What is told for "once ping" is the
// answer to the first ping alone.
func stuck(t testing.TB, answers map[string]string) string {
	t.Helper()
	release := make(chan struct{})
	var mu sync.Mutex
	seen := make(map[string]bool)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage
			Method string
		}
		if r.Method == http.MethodPost {
			_ = json.NewDecoder(r.Body).Decode(&m)
		}
		mu.Lock()
		answer, ok := answers[m.Method]
		if !ok && !seen[m.Method] {
			answer, ok = answers["once "+m.Method]
		}
		seen[m.Method] = true
		mu.Unlock()
		if !ok {
			select {
			case <-release:
			case <-r.Context().Done():
			}
			return
		}
		w.Header().Set("Mcp-Session-Id", "s")
		w.Header().Set("Content-Type", "application/json")
		if answer == "" {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s}`, m.ID, answer)
	}))
	t.Cleanup(func() {
		close(release)
		s.CloseClientConnections()
		s.Close()
	})
	return s.URL
}

// What a legacy server answers until it is connected.
var untilConnected = map[string]string{
	"server/discover":           `"error":{"code":-32601,"message":"no"}`,
	"initialize":                `"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"x","version":"1"}}`,
	"notifications/initialized": "",
	"ping":                      `"result":{}`,
	"tools/list":                `"result":{"tools":[{"name":"slow"}]}`,
}

// pingedOnce answers no ping but the one of the connect.
var pingedOnce = func() map[string]string {
	answers := except(untilConnected, "ping")
	answers["once ping"] = untilConnected["ping"]
	return answers
}()

func except(answers map[string]string, method string) map[string]string {
	left := make(map[string]string)
	for m, a := range answers {
		if m != method {
			left[m] = a
		}
	}
	return left
}

// A connect ends at its deadline, in whichever stage the server is stuck.
func TestConnectDeadline(t *testing.T) {
	t.Parallel()
	const deadline = 600 * time.Millisecond
	for name, server := range map[string]config.Server{
		"ignores everything":              stdio("a", mcptest.Hang),
		"left others behind":              stdio("a", mcptest.Orphan),
		"stderr is held open":             stdio("a", mcptest.Scripted, "-holder", "-unknown", "silent", "-modern=false", "-cursor", "endless", "-stray"),
		"http: silent":                    remote("a", stuck(t, nil)),
		"http: stuck after initialize":    remote("a", stuck(t, except(untilConnected, "notifications/initialized"))),
		"http: stuck at the list":         remote("a", stuck(t, except(untilConnected, "tools/list"))),
		"http: stuck at the ping, listed": remote("a", stuck(t, except(untilConnected, "ping"))),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server.ConnectTimeout = deadline
			cfg := settings(server)
			cfg.ProbeTimeout = 100 * time.Millisecond
			cfg.ShutdownTimeout = 30 * time.Second // which a connect must not wait for
			cfg.Limits.Pages = 1 << 30
			cfg.Limits.Tools = 1 << 30
			returns(t, "connect", deadline, func() {
				r := start(t, cfg).only()
				if r.State == mcp.StateFailed {
					t.Log(r.Err)
				}
			})
		})
	}
}

// A call and a ping end at their deadlines.
func TestCallDeadline(t *testing.T) {
	t.Parallel()
	const deadline = 300 * time.Millisecond
	large := `{"x":"` + strings.Repeat("x", 1<<20) + `"}`
	for name, server := range map[string]config.Server{
		"reads no stdin, ignores signals, stderr is held": stdio("a", mcptest.Scripted, "-deaf", "-holder"),
		"does not answer": stdio("a", mcptest.Scripted),
		"http":            remote("a", stuck(t, pingedOnce)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server.ToolTimeout = deadline
			cfg := settings(server)
			cfg.ShutdownTimeout = 300 * time.Millisecond
			r := start(t, cfg).connected()
			returns(t, "call", deadline, func() {
				if _, err := r.try(t.Context(), "slow", large); tools.CodeOf(err) != tools.CodeCallTimeout {
					t.Errorf("call: %v", err)
				}
			})
			returns(t, "cancelled call", 0, func() {
				ctx, cancel := context.WithCancel(t.Context())
				cancel()
				if _, err := r.try(ctx, "slow", large); tools.CodeOf(err) != tools.CodeCancelled {
					t.Errorf("cancelled: %v", err)
				}
			})
			returns(t, "ping", deadline, func() {
				ctx, cancel := context.WithTimeout(t.Context(), deadline)
				defer cancel()
				if _, err := r.Ping(ctx, "a"); name != "does not answer" && tools.CodeOf(err) != tools.CodePingTimeout {
					t.Errorf("ping: %v", err)
				}
			})
			returns(t, "close", cfg.ShutdownTimeout, func() {
				if err := r.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// W11: closing many takes as long as the slowest, and at most the shutdown
// timeout, also while calls run and servers are being connected again.
func TestCloseDeadline(t *testing.T) {
	t.Parallel()
	const shutdown = 600 * time.Millisecond
	var servers []config.Server
	for i := range 4 {
		servers = append(servers,
			stdio(fmt.Sprintf("deaf%d", i), mcptest.Scripted, "-deaf", "-holder", "-list", fmt.Sprintf(`[{"name":"deaf%d"}]`, i)),
			remote(fmt.Sprintf("stuck%d", i), stuck(t, map[string]string{
				"server/discover":           untilConnected["server/discover"],
				"initialize":                untilConnected["initialize"],
				"notifications/initialized": "",
				"ping":                      untilConnected["ping"],
				"tools/list":                fmt.Sprintf(`"result":{"tools":[{"name":"stuck%d"}]}`, i),
			})),
		)
	}
	servers = append(servers, stdio("exits", mcptest.Standard, "-tools", "exit"))
	cfg := again(servers...)
	cfg.ShutdownTimeout = shutdown
	cfg.Reconnect.Initial, cfg.Reconnect.Max = time.Hour, time.Hour
	r := start(t, cfg).connected()
	_, _ = r.try(t.Context(), "exit", "")
	done := make(chan error)
	for i := range 4 {
		for _, kind := range []string{"deaf", "stuck"} {
			tool, _ := r.reg.Lookup(fmt.Sprintf("%s%d", kind, i))
			go func() {
				_, err := tool.Call(t.Context(), tools.Call{})
				done <- err
			}()
		}
	}
	returns(t, "close", shutdown, func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	for range 8 {
		if err := <-done; tools.CodeOf(err) != tools.CodeTransportClosed {
			t.Errorf("got %v", err)
		}
	}
	for _, report := range r.Reports() {
		if report.State != mcp.StateClosed {
			t.Errorf("%s is %s", report.Name, report.State)
		}
	}
}
