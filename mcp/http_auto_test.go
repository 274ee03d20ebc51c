package mcp_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"crewhost/config"
	"crewhost/mcp"
	"crewhost/mcp/mcptest"
	"crewhost/tools"
)

// auto are the settings of a server at a URL whose transport is to be found.
func auto(name, url string) config.Server {
	s := remote(name, url)
	s.Transport = config.TransportAuto
	return s
}

// W3: the legacy transport is spoken where the answer to a message says that
// there is no other.
func TestAutoFallsBack(t *testing.T) {
	answers := map[string]http.HandlerFunc{
		"the stream of the legacy transport": func(w http.ResponseWriter, r *http.Request) {
			received(r)
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "event: endpoint\ndata: /messages?session=9\n\n")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		},
		"400 of a missing session": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "sessionId?", 400) },
	}
	for _, status := range []int{400, 404, 405, 406, 415} {
		answers[fmt.Sprint(status)] = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }
	}
	for name, streamable := range answers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := &older{streamable: streamable}
			r := start(t, settings(auto("a", o.serve(t)))).connected()
			if got := r.only(); got.Transport != config.TransportSSE || got.Era != mcp.Legacy {
				t.Errorf("%+v", got)
			}
			if got := text(r.call("note", "")); got != "noted" {
				t.Error(got)
			}
		})
	}
}

// W3: the transport that connected is reported.
func TestAutoStreamable(t *testing.T) {
	for _, flags := range [][]string{{"-tools", "echo"}, {"-legacy", "-tools", "echo"}} {
		r := start(t, settings(auto("a", mcptest.HTTP(t, flags...)))).connected()
		if got := r.only(); got.Transport != config.TransportHTTP {
			t.Errorf("%v: %+v", flags, got)
		}
		r.call("echo", `{"a":1}`)
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

// W3: no other failure leads to the legacy transport.
func TestAutoStays(t *testing.T) {
	for name, tt := range map[string]struct {
		post http.HandlerFunc
		code tools.Code
		says string
	}{
		"401": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(401) }, tools.CodeUnauthorized, "401"},
		"403": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(403) }, tools.CodeForbidden, "403"},
		"408": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(408) }, tools.CodeTransportFailed, "408"},
		"429": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(429) }, tools.CodeTransportFailed, "429"},
		"500": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }, tools.CodeTransportFailed, "500"},
		"501": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(501) }, tools.CodeTransportFailed, "501"},
		"503": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }, tools.CodeTransportFailed, "503"},
		"a refusal of MCP": {func(w http.ResponseWriter, r *http.Request) {
			m := received(r)
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(400)
			fmt.Fprint(w, answer(m, `{"error":{"code":-32000,"message":"not you"}}`))
		}, tools.CodeInitializationFailed, "not you"},
		"a page": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<h1>hello</h1>")
		}, tools.CodeInitializationFailed, "hello"},
		"a redirect away (K39)": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://localhost:1/", http.StatusTemporaryRedirect)
		}, tools.CodeTransportFailed, "another origin"},
		"silence": {func(_ http.ResponseWriter, r *http.Request) { received(r); <-r.Context().Done() }, tools.CodeConnectTimeout, "not connected"},
		"a connection that breaks": {func(http.ResponseWriter, *http.Request) {
			panic(http.ErrAbortHandler)
		}, tools.CodeTransportFailed, "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var posts atomic.Int32
			o := &older{streamable: func(w http.ResponseWriter, r *http.Request) {
				posts.Add(1)
				tt.post(w, r)
			}}
			s := auto("a", o.serve(t))
			if tt.code == tools.CodeConnectTimeout {
				s.ConnectTimeout = 500 * time.Millisecond
			}
			report := start(t, settings(s)).only()
			if tools.CodeOf(report.Err) != tt.code || !strings.Contains(report.Err.Error(), tt.says) {
				t.Errorf("got %v, want %s with %q", report.Err, tt.code, tt.says)
			}
			if o.opened != 0 || posts.Load() == 0 {
				t.Errorf("%d streams were opened after %d messages", o.opened, posts.Load())
			}
		})
	}
	t.Run("refused", func(t *testing.T) {
		err := start(t, settings(auto("a", "http://127.0.0.1:1/mcp"))).only().Err
		if tools.CodeOf(err) != tools.CodeTransportFailed || strings.Contains(err.Error(), "SSE") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("TLS", func(t *testing.T) {
		s := httptest.NewTLSServer(http.NotFoundHandler())
		defer s.Close()
		s.Config.ErrorLog = nil
		err := start(t, settings(auto("a", s.URL))).only().Err
		if tools.CodeOf(err) != tools.CodeTransportFailed || !strings.Contains(err.Error(), "certificate") || strings.Contains(err.Error(), "SSE") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("http is http", func(t *testing.T) {
		o := new(older)
		err := start(t, settings(remote("a", o.serve(t)))).only().Err
		if err == nil || o.opened != 0 || !strings.Contains(err.Error(), "405") {
			t.Errorf("%v, %d streams", err, o.opened)
		}
	})
}

// Where neither is spoken, both reasons are said.
func TestAutoNeither(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	defer s.Close()
	report := start(t, settings(auto("a", s.URL+"/mpc"))).only()
	want := "as Streamable HTTP: HTTP status 404 Not Found (wrong URL?): 404 page not found; as legacy SSE: HTTP status 404 Not Found (wrong URL?)"
	if report.Err == nil || !strings.Contains(report.Err.Error(), want) || report.Transport != config.TransportAuto {
		t.Errorf("%+v", report)
	}
}

// W4: a host that the settings don't allow is not called.
func TestAllowedHosts(t *testing.T) {
	var asked atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		reply(w, received(r), legacy)
	}))
	defer s.Close()
	defer s.CloseClientConnections()
	u, _ := url.Parse(s.URL)
	for _, transport := range []config.Transport{config.TransportAuto, config.TransportHTTP, config.TransportSSE} {
		server := remote("a", s.URL)
		server.Transport = transport
		cfg := settings(server)
		cfg.AllowedHosts = []string{"127.0.0.1:1", "localhost"}
		if err := start(t, cfg).only().Err; tools.CodeOf(err) != tools.CodeInitializationFailed || !strings.Contains(err.Error(), "mcp.allowed_hosts") {
			t.Errorf("%s: %v", transport, err)
		}
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("it was asked %d times", n)
	}
	cfg := settings(auto("a", s.URL))
	cfg.AllowedHosts = []string{u.Host}
	start(t, cfg).connected()
}
