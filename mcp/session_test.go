package mcp_test

import (
	"strings"
	"testing"
	"time"

	"crewhost/config"
	"crewhost/mcp"
	"crewhost/mcp/mcptest"
	"crewhost/tools"
)

// K09, K11, K13, K15: however a legacy server takes the probe, it is connected, and
// no stale error of the probe is shown.
func TestNegotiation(t *testing.T) {
	for name, tt := range map[string]struct {
		flags    []string
		protocol string
	}{
		"refuses the probe (K11)":       {[]string{"-unknown", "refuse"}, "2025-11-25"},
		"ignores the probe (K09)":       {[]string{"-unknown", "silent"}, "2025-11-25"},
		"dies on the probe (O5)":        {[]string{"-unknown", "die"}, "2025-11-25"},
		"wants one version (K13)":       {[]string{"-only", "2025-06-18"}, "2025-06-18"},
		"dies and wants one (O5, K13)":  {[]string{"-unknown", "die", "-only", "2024-11-05"}, "2024-11-05"},
		"answers with an older version": {[]string{"-version", "2025-03-26"}, "2025-03-26"},
		"pings before it answers (K15)": {[]string{"-ping"}, "2025-11-25"},
		"pings, and ignores the probe":  {[]string{"-ping", "-unknown", "silent"}, "2025-11-25"},
		"has its own banner (K01)":      {[]string{"-banner", "Ready v1.2", "-unknown", "silent"}, "2025-11-25"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := settings(stdio("a", mcptest.Scripted, tt.flags...))
			cfg.ProbeTimeout = 300 * time.Millisecond
			r := start(t, cfg).connected().only()
			if r.Era != mcp.Legacy || r.Protocol != tt.protocol {
				t.Errorf("%s, %s; want %s", r.Era, r.Protocol, tt.protocol)
			}
			if r.Err != nil {
				t.Errorf("a stale error: %v", r.Err)
			}
			if r.ServerName != "scripted" || r.ServerVersion != "0.1" {
				t.Errorf("identity %q %q", r.ServerName, r.ServerVersion)
			}
		})
	}
}

// R4: a change of instructions shows in their digest, also where it is one that nobody
// sees, or of what is cut off.
func TestInstructionsDigest(t *testing.T) {
	long := strings.Repeat("x", 16<<10)
	seen := map[string]string{}
	for _, says := range []string{"Be kind.", "Be kind.\u200b", long + "a", long + "b", ""} {
		r := start(t, settings(stdio("a", mcptest.Scripted, "-says", says))).connected().only()
		if (r.InstructionsDigest == "") != (says == "") || len(r.Instructions) > 17<<10 || strings.Contains(r.Instructions, "\u200b") {
			t.Errorf("%.12q: %q of %.20q", says, r.InstructionsDigest, r.Instructions)
		}
		if other, twice := seen[r.InstructionsDigest]; twice {
			t.Errorf("%.12q and %.12q have one digest", says, other)
		}
		seen[r.InstructionsDigest] = says
	}
}

// K15: a ping in the middle of a call is answered with its own id and nothing in it.
func TestPingDuringCall(t *testing.T) {
	r := start(t, settings(stdio("a", mcptest.Scripted))).connected()
	if got := text(r.call("pinged", "")); got != `{"jsonrpc":"2.0","id":"hb-2","result":{}}` {
		t.Error(got)
	}
}

// A server of the modern era that is slow to start is not taken for an old one,
// nor started again; one that dies on the probe is.
func TestStarts(t *testing.T) {
	cfg := settings(
		stdio("slow", mcptest.Standard, "-delay", "1500ms", "-stderr", "up: slow", "-tools", "x"),
		stdio("slow and old", mcptest.Standard, "-legacy", "-delay", "1500ms", "-stderr", "up: old", "-tools", "y"),
		stdio("dies", mcptest.Scripted, "-unknown", "die", "-stderr", "up: dies", "-banner", "hello"),
	)
	cfg.ProbeTimeout = 600 * time.Millisecond
	r := start(t, cfg).connected()
	reports := r.Reports()
	if reports[0].Era != mcp.Modern || reports[1].Era != mcp.Legacy {
		t.Errorf("eras %s, %s", reports[0].Era, reports[1].Era)
	}
	if n := len(reports[2].Warnings); n != 1 {
		t.Errorf("%d warnings of one banner", n)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	for words, times := range map[string]int{"up: slow": 1, "up: old": 1, "up: dies": 2} {
		if n := strings.Count(r.log.String(), `line="`+words+`"`); n != times {
			t.Errorf("%s: %d starts, want %d", words, n, times)
		}
	}
}

// K13: a list of nothing that is spoken here ends it, and the server's text is quoted.
func TestNoCommonVersion(t *testing.T) {
	err := start(t, settings(stdio("a", mcptest.Scripted, "-only", "1999-01-01"))).only().Err
	if tools.CodeOf(err) != tools.CodeInitializationFailed || !strings.Contains(err.Error(), "only 1999-01-01 is served here") {
		t.Errorf("got %v", err)
	}
}

// K17: another framing is named at once, with the first bytes.
func TestOtherFramings(t *testing.T) {
	for frame, begins := range map[string]string{"length": `"Content-Length: `, "pretty": `"{\n`} {
		t.Run(frame, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			err := start(t, settings(stdio("a", mcptest.Scripted, "-frame", frame))).only().Err
			if err == nil || !strings.Contains(err.Error(), "not newline-delimited JSON") || !strings.Contains(err.Error(), begins) {
				t.Errorf("got %v", err)
			}
			if took := time.Since(began); took > 10*time.Second { // the budget is 20 s
				t.Errorf("took %v", took)
			}
		})
	}
}

// K01: one warning for a server, the connection and the pending call survive.
func TestStrayLines(t *testing.T) {
	r := start(t, settings(stdio("a", mcptest.Scripted, "-banner", "Ready v1.2", "-stray"))).connected()
	if got := text(r.call("log", "")); !strings.Contains(got, "tools/call") {
		t.Error(got)
	}
	warnings := r.only().Warnings
	if len(warnings) != 1 || !strings.Contains(warnings[0], "Ready v1.2") {
		t.Errorf("warnings %q", warnings)
	}
}

// W6: the process of a connected server ends in the middle of a call. The call
// says how, and the server is faulted.
func TestServerDies(t *testing.T) {
	r := start(t, settings(stdio("a", mcptest.Standard))).connected()
	_, err := r.try(t.Context(), "exit", "")
	if tools.CodeOf(err) != tools.CodeTransportClosed {
		t.Fatalf("got %v", err)
	}
	for _, part := range []string{`server "a"`, `tool "exit"`, "exit status 7", "leaving in the middle of a call"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%v: no %s", err, part)
		}
	}
	_, err = r.try(t.Context(), "echo", "")
	if tools.CodeOf(err) != tools.CodeTransportClosed || !strings.Contains(err.Error(), "exit status 7") {
		t.Errorf("later call: %v", err)
	}
	if report := r.only(); report.State != mcp.StateFaulted || report.Err == nil {
		t.Errorf("%s: %v", report.State, report.Err)
	}
	// The name stays: a crew that uses it gets a reason, not an unknown tool.
	if _, ok := r.reg.Lookup("echo"); !ok {
		t.Error("unregistered")
	}
}

// W6: a server that knows no ping is connected all the same, with a warning.
func TestPingFails(t *testing.T) {
	url := handler(t, map[string]string{
		"initialize": `{"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"x","version":"1"}}}`,
		"tools/list": `{"result":{"tools":[]}}`,
	})
	report := start(t, settings(remote("a", url))).connected().only()
	if len(report.Warnings) != 1 || !strings.HasPrefix(report.Warnings[0], "ping: ") {
		t.Errorf("warnings %q", report.Warnings)
	}
}

// A server without tools is connected.
func TestNoToolsAtAll(t *testing.T) {
	url := handler(t, map[string]string{
		"initialize": `{"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"x","version":"1"}}}`,
		"ping":       `{"result":{}}`,
	})
	report := start(t, settings(remote("a", url))).connected().only()
	if len(report.Tools) != 0 || len(report.Warnings) != 1 || report.Warnings[0] != "offers no tools" {
		t.Errorf("%+v", report)
	}
}

// K05: the server's own limit wins over the common one.
func TestOwnConnectTimeout(t *testing.T) {
	late := stdio("late", mcptest.Standard, "-delay", "1500ms", "-tools", "x")
	late.ConnectTimeout = 20 * time.Second
	cfg := settings(late, stdio("never", mcptest.Hang), stdio("soon", mcptest.Standard, "-tools", "y"))
	cfg.ConnectTimeout = time.Second
	cfg.ProbeTimeout = 200 * time.Millisecond
	r := start(t, cfg)
	var states []mcp.State
	for _, report := range r.Reports() {
		states = append(states, report.State)
	}
	if states[0] != mcp.StateConnected || states[1] != mcp.StateFailed || states[2] != mcp.StateConnected {
		t.Errorf("states %v", states)
	}
	if r.Reports()[0].Transport != config.TransportStdio {
		t.Error("transport")
	}
}
