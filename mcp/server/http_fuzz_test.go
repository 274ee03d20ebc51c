package server_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"crewhost/mcp/server"
	"crewhost/tools"
)

// Whatever comes is answered with a status that exists, and at the endpoint with an
// error of JSON-RPC where it is refused; the next request is served.
func FuzzServeHTTP(f *testing.F) {
	for _, s := range []struct{ method, version, session, accept, kind, body string }{
		{"POST", "", "", "*/*", "application/json", initialize},
		{"POST", modern, "", "", "application/json; charset=utf-8", modernRequest("tools/call", `"name":"echo"`)},
		{"POST", modern, "", "*/*", "application/json", modernRequest("server/discover", "")},
		{"POST", modern, "", "*/*", "application/json", modernRequest("subscriptions/listen", `"notifications":{"toolsListChanged":true}`)},
		{"POST", "2025-11-25", "x", "*/*", "application/json", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`},
		{"POST", "zzz", "", "text/html", "text/plain", `[`},
		{"POST", modern, "", "*/*", "application/json", `{"jsonrpc":"2.0","id":1.5,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":1}}}`},
		{"GET", "", "x", "text/event-stream", "", ""},
		{"DELETE", modern, "", "", "", ""},
		{"OPTIONS", "", "", "", "", ""},
	} {
		f.Add(s.method, s.version, s.session, s.accept, s.kind, []byte(s.body))
	}
	_, guard := guardOf(f, webTool{"echo", func(_ context.Context, c tools.Call) (tools.Result, error) {
		return tools.Text(string(c.Arguments)), nil
	}})
	s, err := server.New(server.Config{Name: "t", Version: "1", Guard: guard, Tools: []string{"echo"}})
	if err != nil {
		f.Fatal(err)
	}
	h, err := s.Handler(server.HTTPConfig{Sessions: 8})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		if err := h.Shutdown(context.Background()); err != nil {
			f.Error(err)
		}
	})
	serve := func(t *testing.T, patience time.Duration, method, version, session, accept, kind string, body []byte) *httptest.ResponseRecorder {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, method, "http://localhost/mcp", strings.NewReader(string(body)))
		if err != nil {
			t.Skip("no such method")
		}
		for name, value := range map[string]string{"Mcp-Protocol-Version": version, "Mcp-Session-Id": session, "Accept": accept, "Content-Type": kind} {
			if value != "" {
				r.Header.Set(name, value)
			}
		}
		var m struct {
			Method string
			Params struct{ Name string }
		}
		if json.Unmarshal(body, &m) == nil && m.Method != "" {
			r.Header.Set("Mcp-Method", m.Method)
			if m.Params.Name != "" {
				r.Header.Set("Mcp-Name", m.Params.Name)
			}
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	// Streams end when the client has no more patience.
	f.Fuzz(func(t *testing.T, method, version, session, accept, kind string, body []byte) {
		w := serve(t, 100*time.Millisecond, method, version, session, accept, kind, body)
		if w.Code < 200 || w.Code > 599 {
			t.Errorf("status %d", w.Code)
		}
		if w.Code >= 400 && w.Code != http.StatusNotFound {
			var refused struct {
				Version string `json:"jsonrpc"`
				Error   *struct{ Code int }
			}
			if err := json.Unmarshal(w.Body.Bytes(), &refused); err != nil || refused.Version != "2.0" || refused.Error == nil || refused.Error.Code == 0 {
				t.Errorf("%d with %q", w.Code, w.Body)
			}
		}
		if w := serve(t, 30*time.Second, "POST", modern, "", "*/*", "application/json", []byte(modernRequest("tools/call", `"name":"echo"`))); w.Code != http.StatusOK {
			t.Errorf("the next request: %d %s", w.Code, w.Body)
		}
	})
}
