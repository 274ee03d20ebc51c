package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"

	"crewhost/mcp/server"
	"crewhost/tools"
)

// K81, I3: what is no request is refused by the error that it deserves, with its id
// where it has a usable one, and the next ping is answered.
func TestLinesThatAreNoRequests(t *testing.T) {
	c := dial(t, serverOf(t, server.Config{}, echo("echo")))
	for _, tt := range []struct {
		line string
		code int
		id   string
	}{
		{`[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"ping"}]`, -32600, "null"},
		{`[]`, -32600, "null"},
		{`{bad`, -32700, "null"},
		{`{`, -32700, "null"}, // the first line of a message that is pretty-printed
		{"\xff\xfe", -32700, "null"},
		{`{"jsonrpc":"2.0","id":1,"method":"pi` + "\xff" + `ng"}`, -32700, "null"},
		{`"x"`, -32600, "null"},
		{`7`, -32600, "null"},
		{`null`, -32600, "null"},
		{`{}`, -32600, "null"},
		{`{"jsonrpc":"1.0","id":4,"method":"ping"}`, -32600, "4"},
		{`{"id":"4","method":"ping"}`, -32600, `"4"`},
		{`{"JSONRPC":"2.0","id":4,"method":"ping"}`, -32600, "4"},
		{`{"jsonrpc":2,"id":4,"method":"ping"}`, -32600, "4"},
		{`{"jsonrpc":"2.0","id":4}`, -32600, "4"},
		{`{"jsonrpc":"2.0","id":4,"method":7}`, -32600, "4"},
		{`{"jsonrpc":"2.0","id":4,"method":null}`, -32600, "4"},
		{`{"jsonrpc":"2.0","id":null,"method":"ping"}`, -32600, "null"},
		{`{"jsonrpc":"2.0","id":{},"method":"ping"}`, -32600, "null"},
		{`{"jsonrpc":"2.0","id":true,"method":"ping"}`, -32600, "null"},
		{`{"jsonrpc":"2.0","id":4,"method":"ping","params":[1]}`, -32602, "4"},
		{`{"jsonrpc":"2.0","id":4,"method":"initialize"}`, -32600, "4"},
		{`{"jsonrpc":"2.0","id":4,"method":"initialize","params":{"protocolVersion":7}}`, -32602, "4"},
		{`{"jsonrpc":"2.0","id":4,"method":"nothing/like/it"}`, -32601, "4"},
		{modernLine("4", "nothing/like/it", ""), -32601, "4"},
		{modernLine("4", "ping", ""), -32601, "4"},
		{modernLine("4", "initialize", `"protocolVersion":"2025-11-25","capabilities":{}`), -32601, "4"},
		{`{"jsonrpc":"2.0","id":4,"method":"server/discover"}`, -32601, "4"},
		{`{"jsonrpc":"2.0","id":4,"method":"tools/list"}`, -32600, "4"}, // before any handshake
		{`{"jsonrpc":"2.0","id":4,"method":"notifications/initialized"}`, -32601, "4"},
		// K83: 10,000 levels, in what is JSON and in what is not.
		{`{"jsonrpc":"2.0","id":4,"method":"ping","params":{"x":` + strings.Repeat("[", 10000) + strings.Repeat("]", 10000) + `}}`, -32600, "4"},
		{strings.Repeat("[", 10000), -32600, "null"},
	} {
		m := c.ask(tt.line)
		if m.Error == nil || m.Error.Code != tt.code || string(m.ID) != tt.id || !strings.HasPrefix(m.line, `{"jsonrpc":"2.0","id":`) {
			t.Errorf("%.100s\nis answered with %.300s\nwant %d for %s", tt.line, m.line, tt.code, tt.id)
		}
		c.wantPing()
	}
}

// O7: a version that isn't spoken is refused whatever the method is.
func TestUnsupportedVersion(t *testing.T) {
	c := dial(t, serverOf(t, server.Config{}, echo("echo")))
	for _, version := range []string{"2099-01-01", "1999-01-01", "zzz", ""} {
		for _, method := range []string{"tools/list", "server/discover", "nothing/like/it", "initialize", "ping"} {
			m := c.ask(strings.ReplaceAll(modernLine("7", method, ""), "2026-07-28", version))
			want := `{"supported":["2026-07-28","2025-11-25","2025-06-18","2025-03-26","2024-11-05"],"requested":"` + version + `"}`
			if m.Error == nil || m.Error.Code != -32022 || string(m.Error.Data) != want || string(m.ID) != "7" {
				t.Errorf("%s of %q: %s", method, version, m.line)
			}
		}
	}
	m := c.ask(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":20260728}}}`)
	if m.Error == nil || m.Error.Code != -32602 {
		t.Errorf("a version that is a number: %s", m.line)
	}
}

// K79: what is not answered is not answered with one byte.
func TestNotificationsAreNotAnswered(t *testing.T) {
	for _, before := range []bool{true, false} {
		c := dial(t, serverOf(t, server.Config{}, echo("echo")))
		if !before {
			c.hello("2025-11-25", "{}")
		}
		c.say(
			`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
			`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`,
			`{"jsonrpc":"2.0","method":"notifications/x"}`,
			`{"jsonrpc":"2.0","method":"notifications/x","params":[1]}`,
			`{"jsonrpc":"2.0","method":"tools/list"}`,
			`{"jsonrpc":"2.0","method":"initialize"}`,
			`{"jsonrpc":"2.0","method":"nothing/like/it"}`,
			`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}`,
			`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}`,
			`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}`,
			`{"jsonrpc":"2.0","method":"notifications/cancelled"}`,
			`{"jsonrpc":"2.0","id":5,"result":{}}`,
			`{"jsonrpc":"2.0","id":5,"error":{"code":1,"message":"x"}}`,
			`{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}`,
			``, "  ", "\r",
			strings.Replace(modernLine("7", "notifications/x", ""), `"id":7,`, "", 1),
		)
		c.wantPing()
	}
}

// O8: an id comes back as it was.
func TestIDsComeBack(t *testing.T) {
	c := dial(t, serverOf(t, server.Config{}, echo("echo")))
	for _, id := range []string{
		"0", "-1", "9007199254740991", "9007199254740993", "18446744073709551615", "1.5", "1e3", "-0", "1E400",
		`""`, `"a"`, `"1"`, `"a\"\\b"`, `"\u0000x"`, `"\ud800"`, `"é <&> \u2028"`,
	} {
		if m := c.ask(modernLine(id, "tools/list", "")); string(m.ID) != id || m.Error != nil {
			t.Errorf("%s comes back in %s", id, m.line)
		}
	}
	m := c.ask(modernLine("9007199254740993", "subscriptions/listen", `"notifications":{"toolsListChanged":true}`))
	if !bytes.Contains(m.Params, []byte(`"io.modelcontextprotocol/subscriptionId":9007199254740993`)) {
		t.Errorf("the subscription is acknowledged by %s", m.line)
	}
	// The id of a request that is not answered can't be another's.
	if m := c.ask(modernLine("9007199254740993", "tools/list", "")); m.Error == nil || m.Error.Code != -32600 || string(m.ID) != "null" {
		t.Errorf("an id twice: %s", m.line)
	}
}

// endless is a line of so many bytes.
type endless struct {
	left int
	then io.Reader
}

func (e *endless) Read(p []byte) (int, error) {
	if e.left == 0 {
		return e.then.Read(p)
	}
	n := min(len(p), e.left)
	for i := range p[:n] {
		p[i] = 'x'
	}
	e.left -= n
	return n, nil
}

// K83: a line without end, here of 64 MiB, costs no memory.
func TestLineWithoutEnd(t *testing.T) {
	s := serverOf(t, server.Config{}, echo("echo"))
	var out bytes.Buffer
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := s.ServeStdio(context.Background(), &endless{left: 64 << 20, then: strings.NewReader("\n" + `{"jsonrpc":"2.0","id":1,"method":"ping"}`)}, &out)
	runtime.ReadMemStats(&after)
	if err != nil {
		t.Error(err)
	}
	if lines := strings.Split(out.String(), "\n"); len(lines) != 3 || !strings.Contains(lines[0], `"code":-32011`) || lines[1] != `{"jsonrpc":"2.0","id":1,"result":{}}` {
		t.Errorf("got %s", out.String())
	}
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 8<<20 {
		t.Errorf("%d MiB were set aside", grown>>20)
	}
}

// lineByLine reads what was written and how.
type lineByLine struct {
	bytes.Buffer
	halves int
}

func (l *lineByLine) Write(p []byte) (int, error) {
	if !bytes.HasSuffix(p, []byte("\n")) || bytes.Count(p, []byte("\n")) != 1 {
		l.halves++
	}
	return l.Buffer.Write(p)
}

// Whatever is read, each line that is not a notification has at most one answer, of
// valid JSON, and a ping afterwards is answered (K79, K81).
func FuzzStdio(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}` + "\n" +
			`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n" + legacyLine("2", "tools/list", "") + "\n" + legacyLine("3", "tools/call", `"name":"echo"`),
		modernLine("1", "server/discover", "") + "\n" + modernLine("1", "tools/call", `"name":"echo","arguments":{"a":[1]}`),
		modernLine("1", "tools/call", `"name":"echo","requestState":"x","inputResponses":{"a":{"action":"accept"}}`),
		modernLine(`"\u0000"`, "subscriptions/listen", `"notifications":{"toolsListChanged":true,"resourceSubscriptions":["a"]}`),
		`[{"jsonrpc":"2.0","id":1,"method":"ping"}]` + "\n[]\n{bad\n\xff\xfe\n\"x\"\n{\"jsonrpc\":\"1.0\",\"id\":4,\"method\":\"ping\"}",
		`{"jsonrpc":"2.0","id":1.5,"method":"prompts/get","params":{"name":"a"}}` + "\n" + `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":null}`,
		strings.Repeat("x", 5000) + "\n" + `{"id":9,"method":"` + strings.Repeat("x", 5000) + `"}`,
	} {
		f.Add([]byte(seed))
	}
	s := serverOf(f, server.Config{Budgets: server.Budgets{RequestBytes: 4096}}, echo("echo"))
	f.Fuzz(func(t *testing.T, in []byte) {
		const last = `{"jsonrpc":"2.0","id":"the last","method":"ping"}`
		var out lineByLine
		lines := bytes.Split(in, []byte("\n"))
		if err := s.ServeStdio(context.Background(), io.MultiReader(bytes.NewReader(in), strings.NewReader("\n"+last)), &out); err != nil {
			t.Fatal(err)
		}
		if out.halves > 0 {
			t.Fatalf("%d writes are no line", out.halves)
		}
		answers, pinged := 0, false
		for _, line := range strings.SplitAfter(out.String(), "\n") {
			if line == "" {
				continue
			}
			var m struct {
				JSONRPC string
				ID      json.RawMessage
				Method  string
			}
			if err := json.Unmarshal([]byte(line), &m); err != nil || m.JSONRPC != "2.0" {
				t.Fatalf("said %q: %v", line, err)
			}
			switch {
			case m.Method != "":
			case line == `{"jsonrpc":"2.0","id":"the last","result":{}}`+"\n":
				pinged = true
			default:
				answers++
			}
		}
		may := 0
		for _, line := range lines {
			if len(bytes.TrimSpace(line)) > 0 {
				may++
			}
		}
		if answers > may {
			t.Errorf("%d answers to %d lines", answers, may)
		}
		if !pinged && !bytes.Contains(in, []byte("the last")) {
			t.Errorf("the ping at the end is not answered: %s", out.String())
		}
	})
}

// A broken tool is an error of one call, and never the end of the process.
func TestTroubleWithTools(t *testing.T) {
	g, reg := guard(t, []tool{
		named("panics", func(context.Context, tools.Call) (tools.Result, error) { panic("inside out") }),
		named("breaks", func(context.Context, tools.Call) (tools.Result, error) {
			return tools.Result{}, errors.New("dial tcp 10.0.0.1: secret inside")
		}),
		named("closed", func(context.Context, tools.Call) (tools.Result, error) {
			return tools.Result{}, &tools.Error{Code: tools.CodeTransportClosed, Detail: "secret inside"}
		}),
		named("fails", func(context.Context, tools.Call) (tools.Result, error) { return tools.Failure("no such file"), nil }),
		echo("denied"), echo("hidden"), echo("gone"),
	}, "denied")
	s := serverOf(t, server.Config{Guard: g, Tools: []string{"panics", "breaks", "closed", "fails", "denied", "gone", "unheard"}})
	reg.Remove("gone")
	c := dial(t, s)
	c.hello("2025-11-25", "{}")
	for name, want := range map[string]string{
		"panics":  `"isError":true`,
		"breaks":  `{"content":[{"type":"text","text":"The tool \"breaks\" could not be called."}],"isError":true}`,
		"closed":  `{"content":[{"type":"text","text":"The tool \"closed\" could not be called (mcp_transport_closed)."}],"isError":true}`,
		"fails":   `{"content":[{"type":"text","text":"no such file"}],"isError":true}`,
		"denied":  `The policy denied this call of the tool \"denied\"`,
		"hidden":  `"code":-32602,"message":"unknown tool \"hidden\""`,
		"gone":    `"code":-32602,"message":"unknown tool \"gone\""`,
		"unheard": `"code":-32602,"message":"unknown tool \"unheard\""`,
		"brekas":  `"code":-32602,"message":"unknown tool \"brekas\" (did you mean \"breaks\"?)"`,
		"":        `"code":-32602,"message":"\"name\" is missing: the name of the tool to call"`,
	} {
		for _, line := range []string{legacyLine("1", "tools/call", `"name":"`+name+`"`), modernLine("1", "tools/call", `"name":"`+name+`"`)} {
			m := c.ask(line)
			if strings.Contains(line, "_meta") {
				want = strings.TrimPrefix(want, "{")
			}
			if !strings.Contains(m.line, want) || strings.Contains(m.line, "inside") {
				t.Errorf("%s: %s", name, m.line)
			}
		}
	}
	if m := c.ask(legacyLine("1", "tools/call", `"name":"fails","arguments":[1]`)); m.Error == nil || m.Error.Code != -32602 {
		t.Errorf("arguments that are an array: %s", m.line)
	}
}
