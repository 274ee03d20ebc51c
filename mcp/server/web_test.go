package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"crewhost/mcp/server"
	"crewhost/tools"
	"crewhost/tools/permission"
)

// modernMeta is what each modern request says of itself.
const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`

const modern = "2026-07-28"

// webTool is a tool of these tests.
type webTool struct {
	name string
	call func(context.Context, tools.Call) (tools.Result, error)
}

func (t webTool) Definition() tools.Definition { return tools.Definition{Name: t.name} }
func (t webTool) Call(ctx context.Context, c tools.Call) (tools.Result, error) {
	return t.call(ctx, c)
}

// web is a server over HTTP for a test.
type web struct {
	t       testing.TB
	http    *server.HTTP
	url     string
	log     *webLog
	running chan struct{}      // one for each call of wait
	ended   chan error         // with what ended it
	release chan struct{}      // one lets a call of wait return
	callers chan string        // of whoami
	change  func()             // the tools
	stop    context.CancelFunc // the server
	served  func() error       // waits for its end
}

// webLog is what a server logs. Whoever waits for a line is woken by it.
type webLog struct {
	mu    sync.Mutex
	lines sync.Cond
	buf   bytes.Buffer
}

func newWebLog() *webLog {
	l := new(webLog)
	l.lines.L = &l.mu
	return l
}

func (l *webLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines.Broadcast()
	return l.buf.Write(p)
}

func (l *webLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// has waits until something is in the log.
func (l *webLog) has(t testing.TB, text string) {
	t.Helper()
	late := false
	defer time.AfterFunc(30*time.Second, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		late = true
		l.lines.Broadcast()
	}).Stop()
	l.mu.Lock()
	defer l.mu.Unlock()
	for !bytes.Contains(l.buf.Bytes(), []byte(text)) {
		if late {
			t.Fatalf("the log has no %s:\n%s", text, l.buf.Bytes())
		}
		l.lines.Wait()
	}
}

// serveHTTP serves the tools echo, wait, whoami, large, broken and ask until the test ends.
func serveHTTP(t testing.TB, cfg server.HTTPConfig, budgets server.Budgets) *web {
	t.Helper()
	w := &web{
		t: t, log: newWebLog(),
		running: make(chan struct{}, 100), ended: make(chan error, 100),
		release: make(chan struct{}), callers: make(chan string, 100),
	}
	offered := []webTool{
		{"echo", func(_ context.Context, c tools.Call) (tools.Result, error) {
			return tools.Text(string(c.Arguments)), nil
		}},
		{"wait", func(ctx context.Context, c tools.Call) (tools.Result, error) {
			w.running <- struct{}{}
			select {
			case <-ctx.Done():
				w.ended <- context.Cause(ctx)
				return tools.Result{}, ctx.Err()
			case <-w.release:
				return tools.Text("done"), nil
			}
		}},
		{"broken", func(context.Context, tools.Call) (tools.Result, error) {
			return tools.Result{}, errors.New("it is broken")
		}},
		{"ask", func(ctx context.Context, _ tools.Call) (tools.Result, error) {
			caller, ok := server.CallerFrom(ctx)
			if !ok {
				return tools.Failure("nobody called"), nil
			}
			answer, err := caller.Elicit(ctx, "hello", json.RawMessage(`{"type":"object","properties":{"word":{"type":"string"}}}`))
			if err != nil {
				return tools.Failure(err.Error()), nil
			}
			return tools.Text(fmt.Sprint(answer.Content["word"])), nil
		}},
		{"large", func(context.Context, tools.Call) (tools.Result, error) {
			return tools.Text(strings.Repeat("x", 8<<20)), nil
		}},
		{"whoami", func(ctx context.Context, _ tools.Call) (tools.Result, error) {
			w.callers <- server.CallerName(ctx)
			return tools.Text("ok"), nil
		}},
	}
	registry, guard := guardOf(t, offered...)
	s, err := server.New(server.Config{
		Name: "test", Version: "1", Guard: guard, Tools: []string{"echo", "wait", "whoami", "large", "broken", "ask", "extra"}, Budgets: budgets,
		Logger: slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	if err != nil {
		t.Fatal(err)
	}
	w.change = func() {
		if !registry.Remove("extra") {
			if err := registry.Add(webTool{name: "extra"}); err != nil {
				t.Error(err)
			}
		}
		s.Refresh()
	}
	w.http, err = s.ListenHTTP(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	w.url = w.http.URL()
	ctx, stop := context.WithCancel(context.Background())
	w.stop = stop
	var serving sync.WaitGroup
	var served error
	serving.Go(func() { served = w.http.Serve(ctx) })
	w.served = func() error {
		serving.Wait()
		return served
	}
	t.Cleanup(func() {
		stop()
		if err := w.served(); err != nil {
			t.Errorf("serving ended with %v, want nil", err)
		}
	})
	return w
}

// guardOf is the way to some tools, all of them allowed.
func guardOf(t testing.TB, offered ...webTool) (*tools.Registry, *permission.Guard) {
	t.Helper()
	registry := new(tools.Registry)
	for _, tool := range offered {
		if err := registry.Add(tool); err != nil {
			t.Fatal(err)
		}
	}
	policy, err := permission.New(permission.Config{Default: permission.Allow})
	if err != nil {
		t.Fatal(err)
	}
	return registry, permission.NewGuard(registry, policy, nil)
}

// client is one that keeps no connection and trusts nobody.
func (w *web) client() *http.Client {
	transport := &http.Transport{DisableKeepAlives: true}
	w.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 30 * time.Second}
}

// got is an answer that has been read.
type got struct {
	status int
	header http.Header
	body   string
}

// message is the one message of the answer, be it plain or an event.
func (g got) message() string {
	if strings.HasPrefix(g.header.Get("Content-Type"), "text/event-stream") {
		for line := range strings.Lines(g.body) {
			if data, ok := strings.CutPrefix(line, "data: "); ok {
				return strings.TrimSpace(data)
			}
		}
	}
	return strings.TrimSpace(g.body)
}

// code is that of the error in the answer; 0: there is none.
func (g got) code() int {
	var m struct{ Error struct{ Code int } }
	_ = json.Unmarshal([]byte(g.message()), &m)
	return m.Error.Code
}

// send sends a request: headers are name, value, name, value; an empty value takes
// the header away.
func (w *web) send(method, body string, headers ...string) got {
	w.t.Helper()
	g, err := w.try(w.t.Context(), method, w.url, strings.NewReader(body), headers...)
	if err != nil {
		w.t.Fatal(err)
	}
	return g
}

func (w *web) try(ctx context.Context, method, url string, body io.Reader, headers ...string) (got, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return got{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for pair := range slices.Chunk(headers, 2) {
		switch name, value := pair[0], pair[1]; {
		case name == "Host":
			req.Host = value
		case value == "":
			req.Header.Del(name)
		default:
			req.Header.Add(name, value)
			if name == "Content-Type" || name == "Accept" {
				req.Header.Set(name, value)
			}
		}
	}
	resp, err := w.client().Do(req)
	if err != nil {
		return got{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	return got{resp.StatusCode, resp.Header, string(data)}, err
}

// ask sends a modern request.
func (w *web) ask(method, params string, headers ...string) got {
	w.t.Helper()
	return w.send(http.MethodPost, modernRequest(method, params), append(modernHeaders(method, params), headers...)...)
}

func modernRequest(method, params string) string {
	if params != "" {
		params += ","
	}
	return `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{` + params + modernMeta + `}}`
}

func modernHeaders(method, params string) []string {
	headers := []string{"Mcp-Protocol-Version", modern, "Mcp-Method", method}
	var named struct{ Name string }
	if json.Unmarshal([]byte("{"+params+"}"), &named) == nil && named.Name != "" {
		headers = append(headers, "Mcp-Name", named.Name)
	}
	return headers
}

// begin begins a session and returns its id.
func (w *web) begin(headers ...string) string {
	w.t.Helper()
	g := w.send(http.MethodPost, initialize, headers...)
	id := g.header.Get("Mcp-Session-Id")
	if g.status != http.StatusOK || id == "" {
		w.t.Fatalf("initialize: %d %s", g.status, g.body)
	}
	g = w.send(http.MethodPost, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, append([]string{"Mcp-Session-Id", id}, headers...)...)
	if g.status != http.StatusAccepted || g.body != "" {
		w.t.Fatalf("initialized: %d %q", g.status, g.body)
	}
	return id
}

const initialize = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`

func (w *web) waits() {
	w.t.Helper()
	select {
	case <-w.running:
	case <-time.After(20 * time.Second):
		w.t.Fatal("the tool was not called")
	}
}

func (w *web) cancelled() {
	w.t.Helper()
	select {
	case <-w.ended:
	case <-time.After(20 * time.Second):
		w.t.Fatal("the call was not cancelled")
	}
}
