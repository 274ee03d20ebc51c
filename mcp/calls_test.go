package mcp_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"crewhost/config"
	"crewhost/mcp"
	"crewhost/mcp/mcptest"
	"crewhost/tools"
)

// What a server tells of a call reaches who asked for it, with who called; a flood
// of it is thinned out.
func TestProgress(t *testing.T) {
	var mu sync.Mutex
	var told []mcp.Progress
	reg := new(tools.Registry)
	began := time.Now()
	all, err := mcp.Startup(t.Context(), settings(stdio("s", mcptest.Scripted, "-list", someTools, "-misbehave", "tools/call=flood")), reg, mcp.Options{
		Name: "test", Version: "1",
		OnProgress: func(p mcp.Progress) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, p)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer all.Close()
	tool, _ := reg.Lookup("x")
	var heard []tools.Progress
	call := tools.Call{ID: "c1", Agent: "writer", Task: "write", Progress: func(p tools.Progress) {
		mu.Lock()
		defer mu.Unlock()
		heard = append(heard, p)
	}}
	if _, err := tool.Call(t.Context(), call); err != nil {
		t.Fatal(err)
	}
	most := int(time.Since(began)/(100*time.Millisecond)) + 1
	mu.Lock()
	defer mu.Unlock()
	if len(told) == 0 || len(told) > most {
		t.Fatalf("told %d times, %d at most", len(told), most)
	}
	want := mcp.Progress{Server: "s", Tool: "x", Call: "c1", Agent: "writer", Task: "write", Done: 1, Total: 100, Message: "tick 1"}
	if diff := cmp.Diff(want, told[0]); diff != "" {
		t.Error(diff)
	}
	if len(heard) != len(told) || heard[0] != (tools.Progress{Done: 1, Total: 100, Message: "tick 1"}) {
		t.Errorf("the caller heard %+v", heard)
	}
}

// Nobody who wants none gets any.
func TestProgressIsNotAskedForInVain(t *testing.T) {
	reg := new(tools.Registry)
	all, err := mcp.Startup(t.Context(), settings(stdio("s", mcptest.Scripted, "-list", someTools)), reg, mcp.Options{Name: "test", Version: "1"})
	if err != nil {
		t.Fatal(err)
	}
	defer all.Close()
	tool, _ := reg.Lookup("log")
	res, err := tool.Call(t.Context(), tools.Call{})
	if err != nil || strings.Contains(text(res), "progressToken") {
		t.Errorf("%v\n%s", err, text(res))
	}
}

// K37: in both eras and over both transports, a server whose call is cancelled
// gets to know, and goes on.
func TestCancellationReachesTheServer(t *testing.T) {
	const held = "sleep,cancelled"
	for name, server := range map[string]config.Server{
		"stdio, modern": stdio("s", mcptest.Standard, "-tools", held),
		"stdio, legacy": stdio("s", mcptest.Standard, "-tools", held, "-legacy"),
		"http, modern":  remote("s", mcptest.HTTP(t, "-tools", held)),
		"http, legacy":  remote("s", mcptest.HTTP(t, "-tools", held, "-legacy")),
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, settings(server)).connected()
			if era := string(r.only().Era); !strings.HasSuffix(name, era) {
				t.Fatalf("the era is %s", era)
			}
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(50*time.Millisecond, cancel)
			if _, err := r.try(ctx, "sleep", `{"seconds":300}`); tools.CodeOf(err) != tools.CodeCancelled {
				t.Errorf("got %v", err)
			}
			eventually(t, func() bool { return text(r.call("cancelled", "")) == "1" })
		})
	}
}

// W8: calls beyond the limit of a server wait, no longer than a call may take.
func TestCallsWait(t *testing.T) {
	one := stdio("s", mcptest.Scripted)
	one.MaxCalls = 1
	one.ToolTimeout = 500 * time.Millisecond
	r := start(t, settings(one)).connected()
	began := time.Now()
	var calls sync.WaitGroup
	said := make([]string, 3)
	for i := range said {
		calls.Go(func() {
			_, err := r.try(t.Context(), "slow", "")
			if tools.CodeOf(err) != tools.CodeCallTimeout {
				t.Errorf("got %v", err)
				return
			}
			said[i] = err.Error()
		})
	}
	calls.Wait()
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("took %v", took)
	}
	for _, line := range said {
		// One that has its turn at the last moment is sent.
		if !strings.Contains(line, "no answer within 500ms") && !strings.Contains(line, "not sent within 500ms: another call ran, and one at a time is allowed") {
			t.Errorf("it says %q", line)
		}
	}
	running := 0
	for line := range strings.Lines(text(r.call("log", ""))) {
		switch {
		case strings.Contains(line, `"name":"slow"`):
			running++
		case strings.Contains(line, "notifications/cancelled"):
			running--
		}
		if running > 2 { // the notice may come after the next call
			t.Errorf("%d at a time", running)
		}
	}
}

// The limits of the settings are those that hold.
func TestLimitsOfTheSettings(t *testing.T) {
	cfg := settings(stdio("s", mcptest.Scripted, "-list", `[{"name":"long_name"},{"name":"x","description":"`+strings.Repeat("d", 100)+`"},{"name":"huge"}]`))
	cfg.Limits = config.Limits{NameLength: 8, DescriptionLength: 10, MessageBytes: 64 << 10}
	r := start(t, cfg).connected()
	tool, ok := r.reg.Lookup("x")
	if !ok || tool.Definition().Description != "dddddddddd…" || len(r.reg.Names()) != 2 {
		t.Errorf("%q", r.reg.Names())
	}
	_, err := r.try(t.Context(), "huge", `{"bytes":131072}`)
	if tools.CodeOf(err) != tools.CodeResultTooLarge || !strings.Contains(err.Error(), "larger than 64 KiB") {
		t.Errorf("got %v", err)
	}
	if got := r.call("x", `{"a":1}`); text(got) != `{"a":1}` {
		t.Errorf("got %s", text(got))
	}
}

// A broken promise is a warning in the report, once a tool, and a note for the
// model; the content stays as it is.
func TestBrokenPromiseIsReported(t *testing.T) {
	r := start(t, settings(stdio("s", mcptest.Scripted,
		"-list", `[{"name":"x","inputSchema":{"type":"object"},"outputSchema":{"type":"object","required":["n"]}}]`,
		"-reply", `{"content":[{"type":"text","text":"t"}],"structuredContent":{"m":725653563933458433}}`))).connected()
	for range 2 {
		res := r.call("x", "")
		want := tools.Result{Structured: json.RawMessage(`{"m":725653563933458433}`), Content: []tools.Content{
			{Kind: tools.KindText, Text: "t"},
			{Kind: tools.KindText, Text: `[Note of the host: the structured content of this result is not what the tool's output schema promises: validating root: required: missing properties: ["n"]]`},
		}}
		if diff := cmp.Diff(want, res); diff != "" {
			t.Error(diff)
		}
	}
	warnings := r.only().Warnings
	if len(warnings) != 1 || !strings.Contains(warnings[0], `the tool "x" gave structured content that its own output schema does not allow`) {
		t.Errorf("%q", warnings)
	}
}
