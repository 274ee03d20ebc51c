package server_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"crewhost/mcp/server"
	"crewhost/tools"
	"crewhost/tools/permission"
)

// A tool is one of the tests'.
type tool struct {
	def  tools.Definition
	call func(context.Context, tools.Call) (tools.Result, error)
}

func (t tool) Definition() tools.Definition { return t.def }

func (t tool) Call(ctx context.Context, c tools.Call) (tools.Result, error) { return t.call(ctx, c) }

func named(name string, call func(context.Context, tools.Call) (tools.Result, error)) tool {
	return tool{def: tools.Definition{Name: name, Description: name + " does it."}, call: call}
}

// echo says its arguments.
func echo(name string) tool {
	return named(name, func(_ context.Context, c tools.Call) (tools.Result, error) {
		return tools.Text(string(c.Arguments)), nil
	})
}

// guard is one that allows all tools but those named in deny.
func guard(t testing.TB, all []tool, deny ...string) (*permission.Guard, *tools.Registry) {
	t.Helper()
	reg := new(tools.Registry)
	for _, tool := range all {
		if err := reg.Add(tool); err != nil {
			t.Fatal(err)
		}
	}
	rules := permission.Config{Default: permission.Allow}
	for _, pattern := range deny {
		rules.Deny = append(rules.Deny, permission.Rule{Pattern: pattern})
	}
	policy, err := permission.New(rules)
	if err != nil {
		t.Fatal(err)
	}
	return permission.NewGuard(reg, policy, nil), reg
}

func serverOf(t testing.TB, cfg server.Config, all ...tool) *server.Server {
	t.Helper()
	cfg.Name, cfg.Version = "crewhost", "1.2.3"
	if cfg.Guard == nil {
		cfg.Guard, _ = guard(t, all)
	}
	s, err := server.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A client writes lines to a server and reads what it says.
type client struct {
	t     testing.TB
	in    *io.PipeWriter
	lines chan message
	done  chan error
	end   context.CancelCauseFunc
}

type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int             `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	} `json:"error"`
	line string
}

// patience is how long a test waits for what must come.
const patience = 10 * time.Second

// dial serves a client over pipes until the test ends.
func dial(t testing.TB, s *server.Server) *client {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	ctx, end := context.WithCancelCause(context.Background())
	c := &client{t: t, in: inW, lines: make(chan message, 1000), done: make(chan error, 1), end: end}
	go func() {
		err := s.ServeStdio(ctx, inR, outW)
		outW.Close()
		c.done <- err
	}()
	read := make(chan struct{})
	go func() {
		defer close(read)
		defer close(c.lines)
		scan := bufio.NewScanner(outR)
		scan.Buffer(nil, 32<<20)
		for scan.Scan() {
			m := message{line: scan.Text()}
			if err := json.Unmarshal(scan.Bytes(), &m); err != nil {
				m.line = fmt.Sprintf("no JSON: %q", m.line)
			}
			c.lines <- m
		}
	}()
	t.Cleanup(func() {
		inW.Close()
		end(errors.New("the test is over"))
		<-read
	})
	return c
}

func (c *client) say(lines ...string) {
	c.t.Helper()
	for _, line := range lines {
		if _, err := io.WriteString(c.in, line+"\n"); err != nil {
			c.t.Fatalf("writing %.100s: %v", line, err)
		}
	}
}

// next is the next thing that the server says.
func (c *client) next() message {
	c.t.Helper()
	select {
	case m, ok := <-c.lines:
		if !ok {
			c.t.Fatal("the server says nothing more")
		}
		if strings.HasPrefix(m.line, "no JSON") {
			c.t.Fatal(m.line)
		}
		return m
	case <-time.After(patience):
		c.t.Fatal("the server says nothing")
	}
	return message{}
}

// ask sends a line and returns the next message.
func (c *client) ask(line string) message {
	c.t.Helper()
	c.say(line)
	return c.next()
}

// hello is the handshake of the initialize lineage.
func (c *client) hello(version, caps string) message {
	c.t.Helper()
	m := c.ask(`{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"` + version + `","capabilities":` + caps + `,"clientInfo":{"name":"t","version":"1"}}}`)
	c.say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return m
}

// modernLine is a request of the modern era.
func modernLine(id, method, params string) string { return modernLineOf(id, method, params, "{}") }

func modernLineOf(id, method, params, caps string) string {
	meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":` + caps + `}`
	if params != "" {
		meta += "," + params
	}
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":{` + meta + `}}`
}

func legacyLine(id, method, params string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":{` + params + `}}`
}

func (c *client) wantPing() {
	c.t.Helper()
	if m := c.ask(`{"jsonrpc":"2.0","id":"ping","method":"ping"}`); string(m.ID) != `"ping"` || m.Error != nil {
		c.t.Fatalf("a ping is answered with %s", m.line)
	}
}

// O7, R1: both eras on one stream, in any order, and the newest legacy version for
// one that nobody knows.
func TestBothErasOnOneStream(t *testing.T) {
	c := dial(t, serverOf(t, server.Config{Instructions: "Be kind."}, echo("b"), echo("a")))
	m := c.ask(modernLine("1", "server/discover", ""))
	var found struct {
		ResultType        string
		SupportedVersions []string
		Capabilities      map[string]any
		Instructions      string
		TTLMs             *int                                      `json:"ttlMs"`
		CacheScope        string                                    `json:"cacheScope"`
		Meta              map[string]struct{ Name, Version string } `json:"_meta"`
	}
	if err := json.Unmarshal(m.Result, &found); err != nil {
		t.Fatal(err)
	}
	if found.ResultType != "complete" || len(found.SupportedVersions) != 5 || found.Capabilities["tools"] == nil || found.Instructions != "Be kind." ||
		found.TTLMs == nil || found.CacheScope != "private" || found.Meta["io.modelcontextprotocol/serverInfo"].Name != "crewhost" {
		t.Errorf("discover: %s", m.line)
	}
	m = c.hello("2026-07-28", "{}") // which has no handshake
	if !bytes.Contains(m.Result, []byte(`"protocolVersion":"2025-11-25"`)) {
		t.Errorf("initialize: %s", m.line)
	}
	m = c.ask(legacyLine(`"x"`, "tools/list", ""))
	if want := `{"jsonrpc":"2.0","id":"x","result":{"tools":[{"name":"a","description":"a does it.","inputSchema":{"type":"object"}},{"name":"b","description":"b does it.","inputSchema":{"type":"object"}}]}}`; m.line != want {
		t.Errorf("tools/list is\n%s\nwant\n%s", m.line, want)
	}
	m = c.ask(modernLine("2", "tools/list", ""))
	if !bytes.HasPrefix(m.Result, []byte(`{"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"crewhost","version":"1.2.3"}},"tools":[{"name":"a"`)) ||
		!bytes.HasSuffix(m.Result, []byte(`"ttlMs":60000,"cacheScope":"private"}`)) {
		t.Errorf("tools/list: %s", m.line)
	}
	m = c.ask(legacyLine("3", "tools/call", `"name":"a","arguments":{"n":1e400,"é":"<&>"}`))
	if want := `{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"{\"n\":1e400,\"é\":\"<&>\"}"}]}}`; m.line != want {
		t.Errorf("tools/call is\n%s\nwant\n%s", m.line, want)
	}
	m = c.ask(modernLine("4", "tools/call", `"name":"a","arguments":{}`))
	if !bytes.Contains(m.Result, []byte(`"content":[{"type":"text","text":"{}"}]`)) || !bytes.Contains(m.Result, []byte(`"resultType":"complete"`)) {
		t.Errorf("tools/call: %s", m.line)
	}
	c.wantPing()
	c.in.Close()
	if err := <-c.done; err != nil {
		t.Errorf("at the end of input: %v", err)
	}
}

// An initialize of the modern era, which has none, says nothing of the session.
func TestModernInitializeLeavesTheSession(t *testing.T) {
	c := dial(t, serverOf(t, server.Config{}, echo("a")))
	if m := c.ask(modernLine("1", "initialize", "")); m.Error == nil || m.Error.Code != -32601 {
		t.Errorf("initialize: %s", m.line)
	}
	if m := c.ask(legacyLine("2", "tools/list", "")); m.Error == nil {
		t.Errorf("without a session: %s", m.line)
	}
	if m := c.hello("2025-11-25", "{}"); m.Error != nil {
		t.Fatalf("hello: %s", m.line)
	}
	c.ask(modernLine("3", "initialize", ""))
	if m := c.ask(legacyLine("4", "tools/list", "")); m.Error != nil {
		t.Errorf("within a session: %s", m.line)
	}
}

// I4: stdio gives the contract that HTTP gives.
func TestDiscoverIsTheSameEverywhere(t *testing.T) {
	w := serveHTTP(t, server.HTTPConfig{}, server.Budgets{})
	g, _ := guard(t, nil)
	s, err := server.New(server.Config{Name: "test", Version: "1", Guard: g})
	if err != nil {
		t.Fatal(err)
	}
	stdio := dial(t, s).ask(modernLine("1", "server/discover", ""))
	var http message
	if err := json.Unmarshal([]byte(w.ask("server/discover", "").message()), &http); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(stdio.Result, http.Result) {
		t.Errorf("over stdio it is\n%s\nover HTTP\n%s", stdio.Result, http.Result)
	}
}
