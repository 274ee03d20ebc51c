package mcp_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"crewhost/config"
	"crewhost/mcp"
	"crewhost/mcp/mcptest"
	"crewhost/tools"
)

// changingTools is a list of all that a Scripted server can be made to do.
const changingTools = `[{"name":"log"},{"name":"slow"},{"name":"pid"},{"name":"lists"},{"name":"die"},{"name":"freeze"},{"name":"garble"},{"name":"relist"},{"name":"unlisten"}]`

// again are settings that connect again quickly.
func again(servers ...config.Server) config.MCP {
	cfg := settings(servers...)
	cfg.Reconnect = config.Reconnect{MaxAttempts: 5, Initial: 20 * time.Millisecond, Max: 500 * time.Millisecond}
	return cfg
}

// live is a rig that waits for changes of state.
type live struct {
	rig
	changes chan mcp.StateChange
}

func startLive(t testing.TB, cfg config.MCP) live {
	t.Helper()
	changes := make(chan mcp.StateChange, 1000)
	r := startWith(t, cfg, mcp.Options{OnChange: func(c mcp.StateChange) { changes <- c }})
	return live{r, changes}
}

// until waits for a state of a server, and returns those that it went through.
func (l live) until(server string, state mcp.State) []mcp.State {
	l.t.Helper()
	var states []mcp.State
	timeout := time.After(20 * time.Second)
	for {
		select {
		case c := <-l.changes:
			if c.Server != server {
				continue
			}
			if states = append(states, c.To); c.To == state {
				return states
			}
		case <-timeout:
			l.t.Fatalf("%s is never %s after %v\n%s", server, state, states, l.log)
		}
	}
}

// W5, W6: a server that dies in a call is connected again. The call is not
// repeated, and says that nobody knows what it did; one that comes meanwhile waits.
func TestReconnect(t *testing.T) {
	t.Parallel()
	for name, flag := range map[string]string{"legacy": "-unknown=refuse", "modern": "-modern"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mark := filepath.Join(t.TempDir(), "starts")
			l := startLive(t, again(stdio("a", mcptest.Scripted, flag, "-mark", mark, "-list", changingTools,
				"-then", `[{"name":"pid"},{"name":"new"},{"name":"log"}]`)))
			l.connected()
			l.until("a", mcp.StateConnected)
			before := text(l.call("pid", ""))
			pid, _ := l.reg.Lookup("pid") // as an agent holds it

			_, err := l.try(t.Context(), "die", "")
			if tools.CodeOf(err) != tools.CodeTransportClosed {
				t.Fatalf("got %v", err)
			}
			for _, part := range []string{"exit status 7", "leaving in the middle of a call", "whether the call had an effect is not known"} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%v: no %q", err, part)
				}
			}
			res, err := pid.Call(t.Context(), tools.Call{})
			if err != nil || text(res) == before {
				t.Fatalf("the call that waited: %v, %v, before %s", res, err, before)
			}
			if diff := cmp.Diff([]mcp.State{mcp.StateFaulted, mcp.StateConnecting, mcp.StateConnected}, l.until("a", mcp.StateConnected)); diff != "" {
				t.Error(diff)
			}
			r := l.only()
			if r.Reconnects != 1 || r.Err != nil || r.State != mcp.StateConnected {
				t.Errorf("%d reconnects, %s, %v", r.Reconnects, r.State, r.Err)
			}
			if want := []string{"log", "new", "pid"}; !slices.Equal(r.Tools, want) || !slices.Equal(l.reg.Names(), want) {
				t.Errorf("reported %q, registered %q", r.Tools, l.reg.Names())
			}
			if log := text(l.call("log", "")); strings.Contains(log, `"die"`) {
				t.Errorf("the call was repeated:\n%s", log)
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			if n := len(strings.Fields(readFile(t, mark))); n != 2 {
				t.Errorf("%d starts", n)
			}
		})
	}
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// Each step of each server is told, in order.
func TestOnChange(t *testing.T) {
	t.Parallel()
	steps := make(map[string][]mcp.StateChange)
	r := startWith(t, settings(
		stdio("good", mcptest.Standard, "-tools", "exit"),
		stdio("gone", mcptest.Exit),
	), mcp.Options{OnChange: func(c mcp.StateChange) { steps[c.Server] = append(steps[c.Server], c) }})
	_, _ = r.try(t.Context(), "exit", "")
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	got := make(map[string][]mcp.State)
	for server, changes := range steps {
		at := mcp.StateConnecting
		for _, c := range changes {
			if c.From != at {
				t.Errorf("%s goes from %s, and was %s", server, c.From, at)
			}
			if bad := c.To == mcp.StateFailed || c.To == mcp.StateFaulted; bad != (c.Err != nil) && c.To != mcp.StateClosed {
				t.Errorf("%s to %s with %v", server, c.To, c.Err)
			}
			at = c.To
			got[server] = append(got[server], c.To)
		}
	}
	want := map[string][]mcp.State{
		"good": {mcp.StateConnected, mcp.StateFaulted, mcp.StateClosed},
		"gone": {mcp.StateFailed},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// W6: an HTTP server that answers nothing any more is faulted, and connected again
// when it is back.
func TestReconnectHTTP(t *testing.T) {
	t.Parallel()
	var down atomic.Bool
	url := serve(t, func(w http.ResponseWriter, r *http.Request, m message) {
		if down.Load() {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		reply(w, m, map[string]string{
			"initialize": `{"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"x","version":"1"}}}`,
			"ping":       `{"result":{}}`,
			"tools/list": `{"result":{"tools":[{"name":"x"}]}}`,
			"tools/call": `{"result":{"content":[{"type":"text","text":"here"}]}}`,
		})
	})
	cfg := again(remote("a", url))
	cfg.Keepalive = 200 * time.Millisecond
	cfg.Reconnect.MaxAttempts = 1000
	l := startLive(t, cfg)
	l.connected()
	l.until("a", mcp.StateConnected)
	down.Store(true)
	l.until("a", mcp.StateFaulted)
	down.Store(false)
	l.until("a", mcp.StateConnected)
	if got := text(l.call("x", "{}")); got != "here" {
		t.Error(got)
	}
}

// A server that comes back with another version of the protocol ends the session,
// which is opened again.
func TestReconnectHTTPVersion(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	session := 0
	url := serve(t, func(w http.ResponseWriter, r *http.Request, m message) {
		mu.Lock()
		defer mu.Unlock()
		version := "2025-11-25"
		switch id := r.Header.Get("Mcp-Session-Id"); {
		case m.Method == "initialize":
			session++
			w.Header().Set("Mcp-Session-Id", fmt.Sprint(session))
		case m.Method == "tools/call" && id == "1", id != "" && id != fmt.Sprint(session):
			w.WriteHeader(http.StatusNotFound)
			return
		}
		if session > 1 {
			version = "2025-06-18"
		}
		reply(w, m, map[string]string{
			"initialize": `{"result":{"protocolVersion":"` + version + `","capabilities":{},"serverInfo":{"name":"x","version":"1"}}}`,
			"ping":       `{"result":{}}`,
			"tools/list": `{"result":{"tools":[{"name":"x"}]}}`,
			"tools/call": `{"result":{"content":[{"type":"text","text":"here"}]}}`,
		})
	})
	l := startLive(t, again(remote("a", url)))
	l.connected()
	l.until("a", mcp.StateConnected)
	if _, err := l.try(t.Context(), "x", "{}"); tools.CodeOf(err) != tools.CodeTransportClosed {
		t.Errorf("got %v", err)
	}
	l.until("a", mcp.StateConnected)
	if got := text(l.call("x", "{}")); got != "here" {
		t.Error(got)
	}
	if report := l.only(); report.Protocol != "2025-06-18" || report.Reconnects != 1 {
		t.Errorf("%+v", report)
	}
}

// An HTTP server that can't be reached fails the call at once: the next one may
// find it again.
func TestUnreachableIsQuick(t *testing.T) {
	t.Parallel()
	s := newEraServer(t, "2026-07-28")
	s.server.Config.SetKeepAlivesEnabled(false) // what is sent on a connection that just closed may have come
	r := start(t, again(remote("a", s.url))).connected()
	s.server.Close()
	began := time.Now()
	if _, err := r.try(t.Context(), "x", "{}"); tools.CodeOf(err) != tools.CodeTransportFailed {
		t.Errorf("got %v", err)
	}
	// That connection may have been open when it was tried; another can't be made.
	if _, err := r.try(t.Context(), "x", "{}"); tools.CodeOf(err) != tools.CodeTransportFailed || strings.Contains(err.Error(), "not known") {
		t.Errorf("got %v", err)
	}
	if took := time.Since(began); took > 5*time.Second { // the limit of the call is 10 s
		t.Errorf("took %v", took)
	}
}

// Attempts that fail are followed by others, until there were too many.
func TestReconnectAttempts(t *testing.T) {
	t.Parallel()
	mark := filepath.Join(t.TempDir(), "starts")
	cfg := again(
		stdio("back", mcptest.Scripted, "-mark", mark, "-crash", "4", "-list", `[{"name":"die"},{"name":"pid"}]`), // each attempt starts it twice (O5)
		stdio("gone", mcptest.Scripted, "-mark", mark+"2", "-crash", "99", "-list", `[{"name":"die2"},{"name":"exit"}]`),
	)
	cfg.Servers[1] = stdio("gone", mcptest.Standard, "-tools", "exit,echo")
	gone := &cfg.Servers[1]
	gone.Cwd = t.TempDir()
	l := startLive(t, cfg)
	l.connected()

	if _, err := l.try(t.Context(), "die", ""); tools.CodeOf(err) != tools.CodeTransportClosed {
		t.Fatalf("got %v", err)
	}
	l.call("pid", "") // waits
	for _, r := range l.Reports() {
		if r.Name == "back" && (r.Reconnects != 1 || r.State != mcp.StateConnected) {
			t.Errorf("back: %+v", r)
		}
	}

	if err := os.Remove(gone.Cwd); err != nil { // it can't be started any more
		t.Fatal(err)
	}
	if _, err := l.try(t.Context(), "exit", ""); tools.CodeOf(err) != tools.CodeTransportClosed {
		t.Fatalf("got %v", err)
	}
	// Who waits is told when it is given up, with the last reason.
	_, err := l.try(t.Context(), "echo", "")
	if err == nil || !strings.Contains(err.Error(), "working directory") {
		t.Errorf("got %v", err)
	}
	r := l.Reports()[1]
	if r.State != mcp.StateFaulted || r.Err == nil {
		t.Errorf("%s: %v", r.State, r.Err)
	}
	if n := strings.Count(l.log.String(), "could not be connected again"); n != 5+2 {
		t.Errorf("%d failed attempts\n%s", n, l.log)
	}
}

// A server that breaks down as soon as it is up is not started for ever.
func TestReconnectCrashLoop(t *testing.T) {
	t.Parallel()
	mark := filepath.Join(t.TempDir(), "starts")
	s := stdio("a", mcptest.Scripted, "-leave", "-mark", mark, "-list", `[{"name":"x"}]`)
	s.Protocol = config.ProtocolLegacy
	cfg := again(s)
	cfg.Reconnect = config.Reconnect{MaxAttempts: 3, Initial: time.Millisecond, Max: time.Hour}
	r := start(t, cfg)
	if r.only().State == mcp.StateFailed {
		t.Skip("it was gone before it was connected")
	}
	eventually(t, func() bool {
		_, err := r.try(t.Context(), "x", "")
		return tools.CodeOf(err) != "" && r.only().State == mcp.StateFaulted && len(strings.Fields(readFile(t, mark))) == 4
	})
	if _, err := r.try(t.Context(), "x", ""); err == nil || !strings.Contains(err.Error(), "exit status 8") {
		t.Errorf("got %v", err)
	}
	if n := len(strings.Fields(readFile(t, mark))); n != 4 {
		t.Errorf("%d starts", n)
	}
}

// A call that waits for a reconnect does so within its own time, and Close ends
// the waiting.
func TestReconnectWaiting(t *testing.T) {
	t.Parallel()
	s := stdio("a", mcptest.Scripted, "-list", changingTools)
	s.ToolTimeout = 100 * time.Millisecond
	cfg := again(s)
	cfg.Reconnect.Initial, cfg.Reconnect.Max = time.Hour, time.Hour
	l := startLive(t, cfg)
	l.connected()
	_, _ = l.try(t.Context(), "die", "")
	began := time.Now()
	_, err := l.try(t.Context(), "pid", "")
	if tools.CodeOf(err) != tools.CodeCallTimeout || !strings.Contains(err.Error(), "is being connected again after this") || !strings.Contains(err.Error(), "exit status 7") {
		t.Errorf("got %v", err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("took %v", took)
	}
	if _, err := l.Ping(t.Context(), "a"); tools.CodeOf(err) != tools.CodeTransportClosed {
		t.Errorf("ping: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.try(ctx, "pid", ""); tools.CodeOf(err) != tools.CodeCancelled {
		t.Errorf("cancelled: %v", err)
	}
}

func TestReconnectWaitingEndsWithClose(t *testing.T) {
	t.Parallel()
	cfg := again(stdio("a", mcptest.Scripted, "-list", changingTools))
	cfg.Reconnect.Initial, cfg.Reconnect.Max = time.Hour, time.Hour
	l := startLive(t, cfg)
	l.connected()
	_, _ = l.try(t.Context(), "die", "")
	pid, _ := l.reg.Lookup("pid")
	var waiting sync.WaitGroup
	for range 20 { // more than run at a time
		waiting.Go(func() {
			if _, err := pid.Call(t.Context(), tools.Call{}); tools.CodeOf(err) != tools.CodeTransportClosed {
				t.Errorf("got %v", err)
			}
		})
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	waiting.Wait()
	if diff := cmp.Diff([]mcp.State{mcp.StateConnected, mcp.StateFaulted, mcp.StateClosed}, l.until("a", mcp.StateClosed)); diff != "" {
		t.Error(diff)
	}
}

// A server that frames a message in another way in the middle of a session loses
// that session, and no other one does (K17).
func TestGarbleFaultsOneSession(t *testing.T) {
	t.Parallel()
	l := startLive(t, again(
		stdio("a", mcptest.Scripted, "-list", changingTools),
		stdio("b", mcptest.Standard, "-tools", "echo"),
	))
	l.connected()
	l.until("a", mcp.StateConnected)
	before := text(l.call("pid", ""))
	l.call("garble", "")
	l.until("a", mcp.StateConnected)
	if after := text(l.call("pid", "")); after == before {
		t.Error("the same process goes on")
	}
	if !strings.Contains(l.log.String(), "not newline-delimited JSON") {
		t.Error(l.log)
	}
	if r := l.Reports()[1]; r.State != mcp.StateConnected || r.Reconnects != 0 {
		t.Errorf("b: %+v", r)
	}
	l.call("echo", "{}")
}

// A frozen server is noticed without a call, killed and started again, in both eras.
func TestKeepalive(t *testing.T) {
	t.Parallel()
	for name, flag := range map[string]string{"legacy": "-unknown=refuse", "modern": "-modern"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := again(stdio("a", mcptest.Scripted, flag, "-list", changingTools))
			cfg.Keepalive = 500 * time.Millisecond
			l := startLive(t, cfg)
			l.connected()
			l.until("a", mcp.StateConnected)
			before := text(l.call("pid", ""))
			l.call("relist", `{"list":`+changingTools+`}`) // its list is read while it is frozen
			l.call("freeze", "")
			l.until("a", mcp.StateFaulted)
			l.until("a", mcp.StateConnected)
			if after := text(l.call("pid", "")); after == before {
				t.Error("the same process goes on")
			}
			if !strings.Contains(l.log.String(), "no sign of life") {
				t.Error(l.log)
			}
		})
	}
}

// A server that works on a call is not asked for a sign of life, and one that
// knows no ping is alive.
func TestKeepaliveLeavesAlone(t *testing.T) {
	t.Parallel()
	s := stdio("busy", mcptest.Scripted, "-list", changingTools)
	s.ToolTimeout = 1200 * time.Millisecond
	url := handler(t, map[string]string{
		"initialize": `{"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"x","version":"1"}}}`,
		"tools/list": `{"result":{"tools":[]}}`,
	})
	cfg := again(s, remote("unknowing", url))
	cfg.Keepalive = 500 * time.Millisecond
	l := startLive(t, cfg)
	l.connected()
	if _, err := l.try(t.Context(), "slow", ""); tools.CodeOf(err) != tools.CodeCallTimeout {
		t.Errorf("got %v", err)
	}
	for _, r := range l.Reports() {
		if r.State != mcp.StateConnected || r.Reconnects != 0 {
			t.Errorf("%+v", r)
		}
	}
	// Between the call and its end there is no ping.
	log := text(l.call("log", ""))
	_, during, _ := strings.Cut(log, `"name":"slow"`)
	during, _, _ = strings.Cut(during, "notifications/cancelled")
	if strings.Contains(during, `"ping"`) {
		t.Error(log)
	}
}
