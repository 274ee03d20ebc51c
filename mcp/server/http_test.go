package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"crewhost/mcp/server"
)

// Both eras on one URL (O22), by the version that a request names and not by how it
// compares with others.
func TestHTTPEras(t *testing.T) {
	w := serveHTTP(t, server.HTTPConfig{}, server.Budgets{})
	if g := w.ask("server/discover", ""); g.status != http.StatusOK || !strings.Contains(g.message(), modern) {
		t.Errorf("discover: %d %s", g.status, g.body)
	}
	if g := w.ask("tools/call", `"name":"echo","arguments":{"a":1}`); g.status != http.StatusOK || !strings.Contains(g.message(), `{\"a\":1}`) {
		t.Errorf("modern call: %d %s", g.status, g.body)
	}
	id := w.begin()
	call := `{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"echo","arguments":{"b":2}}}`
	for _, version := range []string{"", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"} {
		if g := w.send(http.MethodPost, call, "Mcp-Session-Id", id, "Mcp-Protocol-Version", version); g.status != http.StatusOK || !strings.Contains(g.message(), `{\"b\":2}`) {
			t.Errorf("call by %q: %d %s", version, g.status, g.body)
		}
	}
	for _, version := range []string{"zzz", "2026-07-29", "9999-01-01", "2026-07-28 ", "2026-07-28, 2025-11-25", "1.0", "\u00ff"} {
		g := w.send(http.MethodPost, modernRequest("server/discover", ""), "Mcp-Protocol-Version", version)
		if strings.TrimSpace(version) == modern {
			continue // blanks around a value are none of it
		}
		if g.status != http.StatusBadRequest || g.code() != -32022 || !strings.Contains(g.body, `"supported":["2026-07-28"`) {
			t.Errorf("version %q: %d %s", version, g.status, g.body)
		}
	}
	// What is missing or does not fit together is the modern era's to refuse.
	for _, headers := range [][]string{nil, {"Mcp-Protocol-Version", "2025-11-25"}} {
		if g := w.send(http.MethodPost, modernRequest("tools/list", ""), headers...); g.status != http.StatusBadRequest || g.code() != -32020 {
			t.Errorf("modern without its header: %d %s", g.status, g.body)
		}
	}
	if g := w.send(http.MethodGet, "", "Mcp-Protocol-Version", modern); g.status != http.StatusMethodNotAllowed || g.header.Get("Allow") != "POST" {
		t.Errorf("modern GET: %d %v", g.status, g.header)
	}
}

// K81, I3: what is no message gets an error that says so, and the next is answered.
func TestHTTPMessages(t *testing.T) {
	w := serveHTTP(t, server.HTTPConfig{}, server.Budgets{})
	id := w.begin()
	for _, tt := range []struct {
		name, body   string
		status, code int
		id           string
	}{
		{"batch", `[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"ping"}]`, 400, -32600, "null"},
		{"empty batch", `[]`, 400, -32600, "null"},
		{"broken", `{bad`, 400, -32700, "null"},
		{"no text", "\xff\xfe", 400, -32700, "null"},
		{"no UTF-8", `{"jsonrpc":"2.0","id":1,"method":"` + "\xff" + `"}`, 400, -32700, "null"},
		{"nothing", ``, 400, -32700, "null"},
		{"text", `"x"`, 400, -32600, "null"},
		{"null", `null`, 400, -32600, "null"},
		{"old", `{"jsonrpc":"1.0","id":4,"method":"ping"}`, 400, -32600, "4"},
		{"unversioned", `{"id":"four","method":"ping"}`, 400, -32600, `"four"`},
		{"two", `{"jsonrpc":"2.0","id":1,"method":"ping"} {}`, 400, -32700, "null"},
		{"unknown", `{"jsonrpc":"2.0","id":5,"method":"no/such"}`, 200, -32601, "5"},
		{"a notification with an id", `{"jsonrpc":"2.0","id":6,"method":"notifications/initialized"}`, 200, -32601, "6"},
		{"no method", `{"jsonrpc":"2.0","id":7,"method":""}`, 200, -32601, "7"},
		{"deep", strings.Repeat(`{"a":`, 10_000) + "1" + strings.Repeat("}", 10_000), 400, -32600, "null"},
		{"deeper", strings.Repeat("[", 500_000), 400, -32600, "null"},
		{"over lines", "{\n \"jsonrpc\": \"2.0\",\n \"id\": 8,\n \"method\": \"ping\"\n}", 200, 0, "8"},
		{"good", `{"jsonrpc":"2.0","id":9,"method":"ping"}`, 200, 0, "9"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := w.send(http.MethodPost, tt.body, "Mcp-Session-Id", id)
			var m struct{ ID json.RawMessage }
			if err := json.Unmarshal([]byte(g.message()), &m); err != nil {
				t.Fatalf("%d %q: %v", g.status, g.body, err)
			}
			if g.status != tt.status || g.code() != tt.code || string(m.ID) != tt.id {
				t.Errorf("got %d, code %d, id %s, want %d, %d, %s", g.status, g.code(), m.ID, tt.status, tt.code, tt.id)
			}
		})
	}
	if g := w.ask("no/such", ""); g.status != http.StatusNotFound || g.code() != -32601 {
		t.Errorf("unknown in the modern era: %d %s", g.status, g.body)
	}
}

// O8: ids come back as texts or numbers, the same. A number that would come back as
// another one is refused.
func TestHTTPIDs(t *testing.T) {
	w := serveHTTP(t, server.HTTPConfig{}, server.Budgets{})
	session := w.begin()
	for id, want := range map[string]string{
		`1`: `1`, `-7`: `-7`, `0`: `0`, `"1"`: `"1"`, `""`: `""`, `"é"`: `"é"`, `"\u00e9\/\n"`: `"é/\n"`, `9007199254740991`: `9007199254740991`,
		`1.5`: `1.5`, `1e3`: `1e3`, `12345678901234567890`: `12345678901234567890`, // with the refusal
	} {
		for era, request := range map[string]func() got{
			"legacy": func() got {
				return w.send(http.MethodPost, `{"jsonrpc":"2.0","id":`+id+`,"method":"tools/list"}`, "Mcp-Session-Id", session)
			},
			modern: func() got {
				return w.send(http.MethodPost, `{"jsonrpc":"2.0","id":`+id+`,"method":"tools/list","params":{`+modernMeta+`}}`, modernHeaders("tools/list", "")...)
			},
		} {
			g := request()
			var m struct{ ID json.RawMessage }
			_ = json.Unmarshal([]byte(g.message()), &m)
			status := http.StatusOK
			if strings.ContainsAny(id, ".") || id == `1e3` || len(id) > 18 {
				status = http.StatusBadRequest
			}
			if string(m.ID) != want || g.status != status {
				t.Errorf("%s, %s: got %d, %s", era, id, g.status, g.body)
			}
		}
	}
}

// K79: nobody answers a notification, whatever it is.
func TestHTTPNotifications(t *testing.T) {
	w := serveHTTP(t, server.HTTPConfig{}, server.Budgets{})
	id := w.begin()
	for _, body := range []string{
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`,
		`{"jsonrpc":"2.0","method":"notifications/x"}`,
		`{"jsonrpc":"2.0","method":"tools/list"}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}`,
		`{"jsonrpc":"2.0","id":77,"result":{}}`,
	} {
		for era, headers := range map[string][]string{"legacy": {"Mcp-Session-Id", id}, modern: {"Mcp-Protocol-Version", modern, "Mcp-Method", notified(body)}} {
			if strings.Contains(body, "result") && era == modern {
				continue // nobody is asked by requests there
			}
			if g := w.send(http.MethodPost, body, headers...); g.status != http.StatusAccepted || g.body != "" {
				t.Errorf("%s, %s: %d %q", body, era, g.status, g.body)
			}
		}
	}
	if g := w.send(http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"ping"}`, "Mcp-Session-Id", id); g.status != http.StatusOK || g.code() != 0 {
		t.Errorf("ping: %d %s", g.status, g.body)
	}
}

// notified is the method of a notification.
func notified(body string) string {
	var m struct{ Method string }
	_ = json.Unmarshal([]byte(body), &m)
	return m.Method
}

// K83: types, sizes, and sessions that are no more.
func TestHTTPHeaders(t *testing.T) {
	w := serveHTTP(t, server.HTTPConfig{}, server.Budgets{RequestBytes: 20_000, MetadataBytes: 16 << 10})
	id := w.begin()
	ping := `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	for _, tt := range []struct {
		name    string
		method  string
		body    string
		headers []string
		status  int
		allow   string
	}{
		{name: "charset", headers: []string{"Content-Type", "application/json; charset=utf-8"}, status: 200},
		{name: "case", headers: []string{"Content-Type", `Application/JSON;Charset="UTF-8"`}, status: 200},
		{name: "text", headers: []string{"Content-Type", "text/plain"}, status: 415},
		{name: "no type", headers: []string{"Content-Type", ""}, status: 415},
		{name: "a page's form", headers: []string{"Content-Type", "application/x-www-form-urlencoded"}, status: 415},
		{name: "no type at all", headers: []string{"Content-Type", "application/json/x"}, status: 415},
		{name: "compressed", headers: []string{"Content-Encoding", "gzip"}, status: 415},
		{name: "accepts all", headers: []string{"Accept", "*/*"}, status: 200},
		{name: "accepts whatever", headers: []string{"Accept", ""}, status: 200},
		{name: "accepts by family", headers: []string{"Accept", "application/*, text/*;q=0.5"}, status: 200},
		{name: "accepts JSON alone", headers: []string{"Accept", "application/json"}, status: 406},
		{name: "accepts no stream", headers: []string{"Accept", "*/*, text/event-stream;q=0.0"}, status: 406},
		{name: "accepts pages", headers: []string{"Accept", "text/html"}, status: 406},
		{name: "large", body: `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"` + strings.Repeat("x", 20_000) + `"}}`, status: 413},
		{name: "not too large", body: `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"` + strings.Repeat("x", 19_000) + `"}}`, status: 200},
		{name: "large headers", headers: []string{"X-Large", strings.Repeat("x", 30_000)}, status: 431},
		{name: "put", method: http.MethodPut, status: 405, allow: "GET, POST, DELETE"},
		{name: "head", method: http.MethodHead, status: 405, allow: "GET, POST, DELETE"},
		{name: "options", method: http.MethodOptions, status: 405, allow: "GET, POST, DELETE"},
		{name: "get JSON", method: http.MethodGet, headers: []string{"Accept", "application/json"}, status: 406},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.method == "" {
				tt.method = http.MethodPost
			}
			if tt.body == "" {
				tt.body = ping
			}
			g := w.send(tt.method, tt.body, append([]string{"Mcp-Session-Id", id}, tt.headers...)...)
			if g.status != tt.status || g.header.Get("Allow") != tt.allow {
				t.Errorf("got %d, Allow %q: %s", g.status, g.header.Get("Allow"), g.body)
			}
		})
	}
	for _, tt := range []struct {
		name, method, session string
		status                int
	}{
		{"unknown", http.MethodPost, "nobody", 404},
		{"none", http.MethodPost, "", 400},
		{"stream of an unknown one", http.MethodGet, "nobody", 404},
		{"stream of none", http.MethodGet, "", 400},
		{"end of an unknown one", http.MethodDelete, "nobody", 404},
		{"end of none", http.MethodDelete, "", 400},
		{"end", http.MethodDelete, id, 204},
		{"ended", http.MethodPost, id, 404},
		{"ended, stream", http.MethodGet, id, 404},
		{"ended twice", http.MethodDelete, id, 404},
	} {
		t.Run("session "+tt.name, func(t *testing.T) {
			if g := w.send(tt.method, ping, "Mcp-Session-Id", tt.session); g.status != tt.status {
				t.Errorf("got %d, want %d: %s", g.status, tt.status, g.body)
			}
		})
	}
	g := w.send(http.MethodPost, initialize, "Mcp-Session-Id", id)
	if fresh := g.header.Get("Mcp-Session-Id"); g.status != http.StatusOK || fresh == "" || fresh == id {
		t.Errorf("initialize with an id that is stale: %d, new id %q", g.status, fresh)
	}
	for path, status := range map[string]int{"/": 404, "/mcp/": 404, "/MCP": 404, "/mcp/../mcp": 404, "/healthz": 200, "/readyz": 200, "/.well-known/oauth-protected-resource": 404} {
		g, err := w.try(t.Context(), http.MethodGet, strings.TrimSuffix(w.url, "/mcp")+path, nil)
		if err != nil || g.status != status {
			t.Errorf("%s: %d %v", path, g.status, err)
		}
	}
}

// I12, and DNS rebinding.
func TestHTTPOrigins(t *testing.T) {
	const page = "https://app.example:8443"
	for _, tt := range []struct {
		name    string
		allowed []string
		hosts   []string
		headers []string
		status  int
	}{
		{name: "no Origin", status: 200},
		{name: "no Origin, some allowed", allowed: []string{page}, status: 200},
		{name: "any Origin, none allowed", headers: []string{"Origin", page}, status: 403},
		{name: "the server's own", headers: []string{"Origin", "SELF"}, status: 403},
		{name: "allowed", allowed: []string{"https://other.example", page}, headers: []string{"Origin", page}, status: 200},
		{name: "another port", allowed: []string{page}, headers: []string{"Origin", "https://app.example"}, status: 403},
		{name: "another scheme", allowed: []string{page}, headers: []string{"Origin", "http://app.example:8443"}, status: 403},
		{name: "a longer name", allowed: []string{"https://app.example"}, headers: []string{"Origin", "https://app.example.evil"}, status: 403},
		{name: "another case", allowed: []string{page}, headers: []string{"Origin", "https://APP.example:8443"}, status: 403},
		{name: "a path", allowed: []string{page}, headers: []string{"Origin", page + "/"}, status: 403},
		{name: "null", allowed: []string{page}, headers: []string{"Origin", "null"}, status: 403},
		{name: "two", allowed: []string{page}, headers: []string{"Origin", page, "Origin", page}, status: 403},
		{name: "rebound", headers: []string{"Host", "evil.example"}, status: 403},
		{name: "rebound, with a port", headers: []string{"Host", "evil.example:8080"}, status: 403},
		{name: "like loopback", headers: []string{"Host", "127.0.0.1.evil.example"}, status: 403},
		{name: "localhost", headers: []string{"Host", "LOCALHOST:1"}, status: 200},
		{name: "IPv6", headers: []string{"Host", "[::1]:1"}, status: 200},
		{name: "a proxy's name", hosts: []string{"mcp.example"}, headers: []string{"Host", "MCP.example:443"}, status: 200},
		{name: "another port of a proxy's name", hosts: []string{"mcp.example:8443"}, headers: []string{"Host", "mcp.example"}, status: 403},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := serveHTTP(t, server.HTTPConfig{AllowedOrigins: tt.allowed, AllowedHosts: tt.hosts}, server.Budgets{})
			for i, h := range tt.headers {
				if h == "SELF" {
					tt.headers[i] = strings.TrimSuffix(w.url, "/mcp")
				}
			}
			g := w.ask("tools/list", "", tt.headers...)
			if g.status != tt.status {
				t.Errorf("got %d: %s", g.status, g.body)
			}
			allowed := ""
			if tt.status == 200 && len(tt.headers) > 0 && tt.headers[0] == "Origin" {
				allowed = tt.headers[1]
			}
			if got := g.header.Get("Access-Control-Allow-Origin"); got != allowed {
				t.Errorf("allowed to read: %q, want %q", got, allowed)
			}
		})
	}
	w := serveHTTP(t, server.HTTPConfig{AllowedOrigins: []string{page}, Tokens: []server.Token{server.NewToken("a", strings.Repeat("a", 20))}}, server.Budgets{})
	g := w.send(http.MethodOptions, "", "Origin", page, "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "authorization, mcp-param-region, x-evil")
	if allowed := g.header.Get("Access-Control-Allow-Headers"); g.status != http.StatusNoContent ||
		!strings.Contains(allowed, "Authorization") || !strings.Contains(allowed, "mcp-param-region") || strings.Contains(allowed, "evil") {
		t.Errorf("preflight: %d %v", g.status, g.header)
	}
	if g := w.send(http.MethodOptions, "", "Origin", "https://evil.example", "Access-Control-Request-Method", "POST"); g.status != http.StatusForbidden || g.header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("preflight of another page: %d %v", g.status, g.header)
	}
}

// I5: a modern call ends with its request, and one of a session by a notification.
func TestHTTPCancellation(t *testing.T) {
	w := serveHTTP(t, server.HTTPConfig{}, server.Budgets{})
	ctx, leave := context.WithCancel(t.Context())
	var calling sync.WaitGroup
	calling.Go(func() {
		params := `"name":"wait"`
		_, err := w.try(ctx, http.MethodPost, w.url, strings.NewReader(modernRequest("tools/call", params)), modernHeaders("tools/call", params)...)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
	w.waits()
	leave()
	w.cancelled()
	calling.Wait()

	id := w.begin()
	call := `{"jsonrpc":"2.0","id":"slow","method":"tools/call","params":{"name":"wait"}}`
	calling.Go(func() {
		if g := w.send(http.MethodPost, call, "Mcp-Session-Id", id); g.status != http.StatusOK {
			t.Errorf("the call that was cancelled: %d %s", g.status, g.body)
		}
	})
	w.waits()
	if g := w.send(http.MethodPost, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"slow"}}`, "Mcp-Session-Id", id); g.status != http.StatusAccepted {
		t.Errorf("cancelling: %d %s", g.status, g.body)
	}
	w.cancelled()
	calling.Wait()

	// A client that leaves does not mean it, and one that ends its session does.
	ctx, leave = context.WithCancel(t.Context())
	calling.Go(func() {
		_, _ = w.try(ctx, http.MethodPost, w.url, strings.NewReader(call), "Mcp-Session-Id", id)
	})
	w.waits()
	leave()
	calling.Wait()
	if g := w.send(http.MethodPost, `{"jsonrpc":"2.0","id":2,"method":"ping"}`, "Mcp-Session-Id", id); g.status != http.StatusOK {
		t.Errorf("ping: %d", g.status)
	}
	select {
	case err := <-w.ended:
		t.Errorf("the call was cancelled: %v", err)
	default:
	}
	if g := w.send(http.MethodDelete, "", "Mcp-Session-Id", id); g.status != http.StatusNoContent {
		t.Errorf("ending the session: %d", g.status)
	}
	w.cancelled()
}

// I9, I10: requests and streams share the places, and what takes none gets through.
func TestHTTPConcurrency(t *testing.T) {
	w := serveHTTP(t, server.HTTPConfig{}, server.Budgets{ConcurrentRequests: 2})
	id := w.begin()
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	stream, err := http.NewRequestWithContext(ctx, http.MethodGet, w.url, nil)
	if err != nil {
		t.Fatal(err)
	}
	stream.Header.Set("Mcp-Session-Id", id)
	resp, err := w.client().Do(stream)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatal(resp, err)
	}
	defer func() { _ = resp.Body.Close() }()
	var calling sync.WaitGroup
	calling.Go(func() {
		if g := w.ask("tools/call", `"name":"wait"`); g.status != http.StatusOK || !strings.Contains(g.message(), "done") {
			t.Errorf("the call in the last place: %d %s", g.status, g.body)
		}
	})
	w.waits()
	if g := w.ask("tools/list", ""); g.status != http.StatusServiceUnavailable || g.code() != server.CodeBusy || g.header.Get("Retry-After") == "" || !strings.Contains(g.body, "2 requests and streams are open") {
		t.Errorf("modern: %d %s", g.status, g.body)
	}
	if g := w.send(http.MethodPost, `{"jsonrpc":"2.0","id":5,"method":"tools/list"}`, "Mcp-Session-Id", id); g.status != http.StatusServiceUnavailable || g.code() != server.CodeBusy {
		t.Errorf("legacy: %d %s", g.status, g.body)
	}
	if g := w.send(http.MethodPost, `{"jsonrpc":"2.0","id":5,"method":"ping"}`, "Mcp-Session-Id", id); g.status != http.StatusOK {
		t.Errorf("ping: %d %s", g.status, g.body)
	}
	w.release <- struct{}{}
	calling.Wait()
	if g := w.ask("tools/list", ""); g.status != http.StatusOK {
		t.Errorf("in the place that is free again: %d %s", g.status, g.body)
	}
}

// The number of sessions is bounded, and the idle ones end.
func TestHTTPSessions(t *testing.T) {
	w := serveHTTP(t, server.HTTPConfig{Sessions: 2}, server.Budgets{})
	ping := `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	first, second := w.begin(), w.begin()
	third := w.begin()
	for id, status := range map[string]int{first: 404, second: 200, third: 200} {
		if g := w.send(http.MethodPost, ping, "Mcp-Session-Id", id); g.status != status {
			t.Errorf("got %d, want %d", g.status, status)
		}
	}
	// Of those that made room, nothing is left.
	goroutines := runtime.NumGoroutine()
	for range 30 {
		w.begin()
	}
	for began := time.Now(); runtime.NumGoroutine() > goroutines+10; runtime.Gosched() {
		if time.Since(began) > 20*time.Second {
			t.Fatalf("%d goroutines run, %d before", runtime.NumGoroutine(), goroutines)
		}
	}

	w = serveHTTP(t, server.HTTPConfig{SessionIdle: time.Millisecond}, server.Budgets{})
	g := w.send(http.MethodPost, initialize)
	id := g.header.Get("Mcp-Session-Id")
	for began := time.Now(); ; {
		if g := w.send(http.MethodPost, ping, "Mcp-Session-Id", id); g.status == http.StatusNotFound {
			break
		}
		if time.Since(began) > 20*time.Second {
			t.Fatal("an idle session did not end")
		}
	}
}

// I6: at the end, what was asked is answered within the grace, and what is not is
// cancelled; streams end; and nobody new comes in.
func TestHTTPShutdown(t *testing.T) {
	w := serveHTTP(t, server.HTTPConfig{}, server.Budgets{Grace: 20 * time.Second})
	id := w.begin()
	var calling sync.WaitGroup
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("Mcp-Session-Id", id)
	stream, err := w.client().Do(req) // it is there before the end begins
	if err != nil || stream.StatusCode != http.StatusOK {
		t.Fatal(stream, err)
	}
	calling.Go(func() {
		if body, err := io.ReadAll(stream.Body); err != nil {
			t.Errorf("the stream: %s, %v", body, err)
		}
		_ = stream.Body.Close()
	})
	for _, send := range []func() got{
		func() got { return w.ask("tools/call", `"name":"wait"`) },
		func() got {
			return w.send(http.MethodPost, `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"wait"}}`, "Mcp-Session-Id", id)
		},
	} {
		calling.Go(func() {
			if g := send(); g.status != http.StatusOK || !strings.Contains(g.message(), "done") {
				t.Errorf("the call: %d %s", g.status, g.body)
			}
		})
		w.waits()
	}
	w.stop()
	for { // until nobody comes in
		conn, err := net.Dial("tcp", w.http.Addr().String())
		if err != nil {
			break
		}
		_ = conn.Close()
	}
	w.release <- struct{}{}
	w.release <- struct{}{}
	calling.Wait()
	if err := w.served(); err != nil {
		t.Error(err)
	}

	w = serveHTTP(t, server.HTTPConfig{}, server.Budgets{Grace: 50 * time.Millisecond})
	id = w.begin()
	calling.Go(func() {
		_, _ = w.try(t.Context(), http.MethodPost, w.url, strings.NewReader(modernRequest("tools/call", `"name":"wait"`)), modernHeaders("tools/call", `"name":"wait"`)...)
	})
	w.waits()
	calling.Go(func() {
		_, _ = w.try(t.Context(), http.MethodPost, w.url, strings.NewReader(`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"wait"}}`), "Mcp-Session-Id", id)
	})
	w.waits()
	w.stop()
	w.cancelled()
	w.cancelled()
	calling.Wait()
	if err := w.served(); err != nil {
		t.Error(err)
	}
}

// Each line of a request has its id, and who asked what; never with what.
func TestHTTPLog(t *testing.T) {
	w := serveHTTP(t, server.HTTPConfig{Tokens: []server.Token{server.NewToken("ci", "0123456789abcdef-ci"), server.NewToken("dev", "0123456789abcdef-dev")}}, server.Budgets{})
	g := w.ask("tools/call", `"name":"whoami","arguments":{"secret":"s3cret"}`, "Authorization", "Bearer 0123456789abcdef-dev", "X-Request-Id", "req-1")
	if g.status != http.StatusOK || g.header.Get("X-Request-Id") != "req-1" {
		t.Fatalf("%d %v %s", g.status, g.header, g.body)
	}
	if who := <-w.callers; who != "dev" {
		t.Errorf("the tool was called by %q", who)
	}
	for n, kept := range map[int]bool{128: true, 129: false} {
		id := strings.Repeat("r", n)
		if g := w.ask("tools/list", "", "Authorization", "Bearer 0123456789abcdef-dev", "X-Request-Id", id); (g.header.Get("X-Request-Id") == id) != kept {
			t.Errorf("an id of %d bytes became %q", n, g.header.Get("X-Request-Id"))
		}
	}
	session := w.begin("Authorization", "Bearer 0123456789abcdef-ci")
	g = w.send(http.MethodPost, `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"whoami"}}`, "Mcp-Session-Id", session, "Authorization", "bearer 0123456789abcdef-ci", "X-Request-Id", "two\twords")
	if g.status != http.StatusOK || g.header.Get("X-Request-Id") == "" || strings.Contains(g.header.Get("X-Request-Id"), "words") {
		t.Errorf("%d %v %s", g.status, g.header, g.body)
	}
	if who := <-w.callers; who != "ci" {
		t.Errorf("the tool was called by %q", who)
	}
	for era, ask := range map[string]func(string) got{
		"legacy": func(id string) got {
			return w.send(http.MethodPost, `{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"broken"}}`, "Mcp-Session-Id", session, "Authorization", "Bearer 0123456789abcdef-ci", "X-Request-Id", id)
		},
		"modern": func(id string) got {
			return w.ask("tools/call", `"name":"broken"`, "Authorization", "Bearer 0123456789abcdef-ci", "X-Request-Id", id)
		},
	} {
		if g := ask("broken-" + era); g.status != http.StatusOK || strings.Contains(g.body, "it is broken") {
			t.Errorf("%s: %d %s", era, g.status, g.body)
		}
		if want := `error="it is broken" request=broken-` + era + " who=ci"; !strings.Contains(w.log.String(), want) {
			t.Errorf("the log has no %s:\n%s", want, w.log)
		}
	}
	// A session is nobody else's.
	for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete} {
		if g := w.send(method, `{"jsonrpc":"2.0","id":5,"method":"ping"}`, "Mcp-Session-Id", session, "Authorization", "Bearer 0123456789abcdef-dev"); g.status != http.StatusNotFound {
			t.Errorf("%s of another's session: %d", method, g.status)
		}
	}
	log := w.log.String()
	for _, want := range []string{"request=req-1", "method=tools/call", "name=whoami", "who=dev", "who=ci", "status=200", "status=404"} {
		if !strings.Contains(log, want) {
			t.Errorf("the log has no %s:\n%s", want, log)
		}
	}
	for _, secret := range []string{"s3cret", "0123456789abcdef", session} {
		if strings.Contains(log, secret) {
			t.Errorf("the log has %s:\n%s", secret, log)
		}
	}
}
