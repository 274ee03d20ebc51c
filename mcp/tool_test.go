package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"crewhost/mcp/mcptest"
	"crewhost/tools"
)

// K31: digits are the same in the request, in the text and in the structured content,
// on both transports.
func TestDigitsSurvive(t *testing.T) {
	const args = `{"id":725653563933458433,"big":1e400,"small":0.1000000000000000055,"z":1,"a":{"k":"é"}}`
	r := start(t, settings(
		stdio("stdio", mcptest.Standard, "-tools", "echo"),
		stdio("legacy", mcptest.Scripted, "-list", `[{"name":"log"},{"name":"raw"}]`,
			"-reply", `{"content":[{"type":"text","text":"x"}],"structuredContent":`+args+`}`),
	)).connected()
	res := r.call("echo", args)
	if text(res) != args || string(res.Structured) != args {
		t.Errorf("text %s\nstructured %s", text(res), res.Structured)
	}
	if got := string(r.call("raw", args).Structured); got != args {
		t.Errorf("structured %s", got)
	}
	if log := text(r.call("log", "")); !strings.Contains(log, `"arguments":`+args) {
		t.Errorf("on the wire: %s", log)
	}
	// The SDK's own HTTP server can't read the name of a call with 1e400 in it.
	h := start(t, settings(remote("http", mcptest.HTTP(t, "-tools", "echo")))).connected()
	tame := strings.Replace(args, "1e400", "1e30", 1)
	res = h.call("echo", tame)
	if text(res) != tame || string(res.Structured) != tame {
		t.Errorf("http: text %s\nstructured %s", text(res), res.Structured)
	}
}

// K29: there is always an object on the wire.
func TestArguments(t *testing.T) {
	r := start(t, settings(stdio("a", mcptest.Scripted, "-list", `[{"name":"log"},{"name":"x"}]`))).connected()
	for _, args := range []string{"", "null", " {} ", "{}"} {
		r.call("x", args)
	}
	log := text(r.call("log", ""))
	if n := strings.Count(log, `"arguments":{}`); n != 5 {
		t.Errorf("%d empty objects in\n%s", n, log)
	}
	for _, args := range []string{"[]", `"x"`, "1", "{", `{"a":}`, `{"a":"` + strings.Repeat("x", 5<<20) + `"}`} {
		if _, err := r.try(t.Context(), "x", args); tools.CodeOf(err) != tools.CodeArgumentsInvalid {
			t.Errorf("%.10s: %v", args, err)
		}
	}
}

// K33: every failure of the tool is a result with text; the run goes on.
func TestToolFailures(t *testing.T) {
	for name, tt := range map[string]struct {
		flags []string
		says  string
	}{
		"no content":    {[]string{"-reply", `{"isError":true,"content":[]}`}, "failed and gave no reason"},
		"null content":  {[]string{"-reply", `{"isError":true,"content":null}`}, "failed and gave no reason"},
		"empty text":    {[]string{"-reply", `{"isError":true,"content":[{"type":"text","text":" "}]}`}, "failed and gave no reason"},
		"two texts":     {[]string{"-reply", `{"isError":true,"content":[{"type":"text","text":"one"},{"type":"text","text":"two"}]}`}, "one\ntwo"},
		"-32000":        {[]string{"-failure", `{"code":-32000,"message":"the disk is full"}`}, "the disk is full"},
		"no message":    {[]string{"-failure", `{"code":-32000}`}, "no reason given"},
		"asks (O19)":    {[]string{"-reply", `{"resultType":"input_required","inputRequests":{"q":{"method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{}}}}}}`}, "asked for input"},
		"rejected text": {[]string{"-failure", `{"code":-32005,"message":"of the server, not of the SDK"}`}, "of the server"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := start(t, settings(stdio("a", mcptest.Scripted, append(tt.flags, "-list", `[{"name":"x"},{"name":"log"}]`)...))).connected()
			res := r.call("x", "{}")
			if !res.IsError || !strings.Contains(text(res), tt.says) {
				t.Errorf("got %+v", res)
			}
			r.call("log", "")
		})
	}
}

// W10: every type of content, and what is none.
func TestContent(t *testing.T) {
	r := start(t, settings(
		stdio("good", mcptest.Standard, "-tools", "blocks"),
		stdio("odd", mcptest.Scripted, "-list", `[{"name":"odd"}]`, "-reply",
			`{"content":[{"type":"hologram","v":1.0},{"type":"text","text":5},{"type":"image","data":"%%"},7,{"type":"text","text":"ok"}]}`),
		stdio("single", mcptest.Scripted, "-list", `[{"name":"single"}]`, "-reply", `{"content":{"type":"text","text":"one"}}`),
		stdio("structured", mcptest.Scripted, "-list", `[{"name":"structured"}]`, "-reply", `{"structuredContent":{"b":1,"a":1e2}}`),
		stdio("large", mcptest.Scripted, "-list", `[{"name":"large"}]`, "-reply", `{"content":[{"type":"new","x":"`+strings.Repeat("x", 70<<10)+`"}]}`),
		stdio("empty", mcptest.Scripted, "-list", `[{"name":"empty"}]`, "-reply", `{}`),
	)).connected()
	for name, want := range map[string]tools.Result{
		"blocks": {Content: []tools.Content{
			{Kind: tools.KindText, Text: "a text"},
			{Kind: tools.KindImage, Data: []byte("an image"), MIME: "image/png"},
			{Kind: tools.KindAudio, Data: []byte("a sound"), MIME: "audio/wav"},
			{Kind: tools.KindResource, URI: "file:///a", MIME: "text/plain", Text: "a file"},
			{Kind: tools.KindResource, URI: "file:///b", Data: []byte("bytes")},
			{Kind: tools.KindLink, URI: "https://example.com/c", Name: "c"},
		}},
		"odd": {Content: []tools.Content{
			{Kind: tools.KindUnknown, Raw: json.RawMessage(`{"type":"hologram","v":1.0}`)},
			{Kind: tools.KindUnknown, Raw: json.RawMessage(`{"type":"text","text":5}`)},
			{Kind: tools.KindUnknown, Raw: json.RawMessage(`{"type":"image","data":"%%"}`)},
			{Kind: tools.KindUnknown, Raw: json.RawMessage(`7`)},
			{Kind: tools.KindText, Text: "ok"},
		}},
		"single": {Content: []tools.Content{{Kind: tools.KindText, Text: "one"}}},
		"structured": {
			Content:    []tools.Content{{Kind: tools.KindText, Text: `{"b":1,"a":1e2}`}},
			Structured: json.RawMessage(`{"b":1,"a":1e2}`),
		},
		"large": {Content: []tools.Content{{Kind: tools.KindUnknown, Text: "(a block of unknown type with 71701 bytes was left out)"}}},
		"empty": {},
	} {
		if diff := cmp.Diff(want, r.call(name, "")); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// K35: a result is read whole up to the limit; beyond it, only that call fails.
func TestLargeResults(t *testing.T) {
	r := start(t, settings(stdio("a", mcptest.Scripted))).connected()
	if got := text(r.call("huge", `{"bytes":5242880}`)); got != strings.Repeat("é", 5<<19) {
		t.Errorf("5 MiB: %d bytes", len(got))
	}
	if _, err := r.try(t.Context(), "huge", `{"bytes":50000000}`); tools.CodeOf(err) != tools.CodeResultTooLarge || !strings.Contains(err.Error(), "16 MiB") {
		t.Errorf("50 MB: %v", err)
	}
	r.call("log", "")
}

// K37: at the limit the server is told, with the id of the call; a late answer is
// ignored; the next call works on the same process.
func TestCallTimeout(t *testing.T) {
	s := stdio("a", mcptest.Scripted)
	s.ToolTimeout = 150 * time.Millisecond
	modern := stdio("b", mcptest.Standard, "-tools", "sleep,cancelled")
	modern.ToolTimeout = 150 * time.Millisecond
	r := start(t, settings(s, modern)).connected()
	for _, tool := range []string{"slow", "sleep"} {
		began := time.Now()
		_, err := r.try(t.Context(), tool, `{"seconds":300}`)
		if tools.CodeOf(err) != tools.CodeCallTimeout || !strings.Contains(err.Error(), "150ms") {
			t.Errorf("%s: %v", tool, err)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("%s: took %v", tool, took)
		}
	}
	eventually(t, func() bool { return strings.Contains(text(r.call("log", "")), "notifications/cancelled") })
	var call, cancelled struct {
		ID     json.RawMessage
		Method string
		Params struct {
			Name      string
			RequestID json.RawMessage
		}
	}
	for line := range strings.Lines(text(r.call("log", ""))) {
		switch {
		case strings.Contains(line, `"name":"slow"`):
			_ = json.Unmarshal([]byte(line), &call)
		case strings.Contains(line, "notifications/cancelled"):
			_ = json.Unmarshal([]byte(line), &cancelled)
		}
	}
	if len(call.ID) == 0 || string(call.ID) != string(cancelled.Params.RequestID) {
		t.Errorf("call %s, cancelled %s", call.ID, cancelled.Params.RequestID)
	}
	eventually(t, func() bool { return text(r.call("cancelled", "")) == "1" })
}

// eventually waits for a condition that another process brings about.
func eventually(t testing.TB, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !ok(); {
		if time.Now().After(deadline) {
			t.Fatal("never")
		}
	}
}

// The end of the caller's context ends the call at once.
func TestCallCancelled(t *testing.T) {
	r := start(t, settings(stdio("a", mcptest.Scripted))).connected()
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	if _, err := r.try(ctx, "slow", ""); tools.CodeOf(err) != tools.CodeCancelled {
		t.Errorf("got %v", err)
	}
	r.call("log", "")
}

// A server that stops to read its stdin can't hold a call beyond its limit, and
// can't hold the close.
func TestDeafServer(t *testing.T) {
	s := stdio("a", mcptest.Scripted, "-deaf")
	s.ToolTimeout = 200 * time.Millisecond
	cfg := settings(s)
	cfg.ShutdownTimeout = 200 * time.Millisecond
	r := start(t, cfg).connected()
	began := time.Now()
	var calls sync.WaitGroup
	for range 3 {
		calls.Go(func() {
			_, err := r.try(t.Context(), "slow", `{"x":"`+strings.Repeat("x", 1<<20)+`"}`)
			if tools.CodeOf(err) != tools.CodeCallTimeout {
				t.Errorf("got %v", err)
			}
		})
	}
	calls.Wait()
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("took %v", took)
	}
}

// W11: closing ends the calls that run.
func TestCloseEndsCalls(t *testing.T) {
	for name, cfg := range map[string]string{"stdio": "", "http": mcptest.HTTP(t, "-tools", "sleep")} {
		t.Run(name, func(t *testing.T) {
			server := stdio("a", mcptest.Standard, "-tools", "sleep")
			if cfg != "" {
				server = remote("a", cfg)
			}
			r := start(t, settings(server)).connected()
			tool, _ := r.reg.Lookup("sleep")
			failed := make(chan error)
			go func() {
				_, err := tool.Call(t.Context(), tools.Call{Arguments: json.RawMessage(`{"seconds":300}`)})
				failed <- err
			}()
			time.AfterFunc(50*time.Millisecond, func() { _ = r.Close() })
			if err := <-failed; tools.CodeOf(err) != tools.CodeTransportClosed {
				t.Errorf("got %v", err)
			}
			if _, err := tool.Call(t.Context(), tools.Call{}); tools.CodeOf(err) != tools.CodeTransportClosed {
				t.Errorf("after: %v", err)
			}
		})
	}
}

// W8: many calls at once all get their own answer.
func TestConcurrentCalls(t *testing.T) {
	r := start(t, settings(stdio("a", mcptest.Standard, "-tools", "echo"))).connected()
	var calls sync.WaitGroup
	for i := range 64 {
		calls.Go(func() {
			want := fmt.Sprintf(`{"n":%d}`, i)
			if res, err := r.try(t.Context(), "echo", want); err != nil || text(res) != want {
				t.Errorf("%s: %s, %v", want, text(res), err)
			}
		})
	}
	calls.Wait()
}

// W9: a server that calls no tools at all has failed the host, not the model.
func TestCallsNotOffered(t *testing.T) {
	r := start(t, settings(stdio("a", mcptest.Scripted, "-failure", `{"code":-32601,"message":"no calls here"}`, "-list", `[{"name":"x"},{"name":"log"}]`))).connected()
	if _, err := r.try(t.Context(), "x", "{}"); tools.CodeOf(err) != tools.CodeMethodNotFound || !strings.Contains(err.Error(), "no calls here") {
		t.Errorf("got %v", err)
	}
	r.call("log", "")
}
