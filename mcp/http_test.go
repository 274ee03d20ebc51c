package mcp_test

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"crewhost/config"
	"crewhost/config/secret"
	"crewhost/mcp"
	"crewhost/mcp/mcptest"
	"crewhost/tools"
)

// message is what of a JSON-RPC request the handlers of these tests look at.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

func received(r *http.Request) message {
	var m message
	_ = json.NewDecoder(r.Body).Decode(&m)
	return m
}

// legacy are the answers of an ordinary server of the legacy era with one tool.
var legacy = map[string]string{
	"initialize": `{"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}}`,
	"ping":       `{"result":{}}`,
	"tools/list": `{"result":{"tools":[{"name":"note","inputSchema":{"type":"object"}}]}}`,
	"tools/call": `{"result":{"content":[{"type":"text","text":"noted"}]}}`,
}

// answer is the answer to a message, from its part after the id.
func answer(m message, part string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,%s`, m.ID, strings.TrimPrefix(part, "{"))
}

// reply answers a message as a server does that knows these methods alone.
func reply(w http.ResponseWriter, m message, answers map[string]string) {
	part, ok := answers[m.Method]
	switch {
	case m.ID == nil:
		w.WriteHeader(http.StatusAccepted)
		return
	case !ok:
		part = `{"error":{"code":-32601,"message":"Method not found"}}`
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprint(w, answer(m, part))
}

// handler serves answers over HTTP, without a stream of the server's own.
func handler(t *testing.T, answers map[string]string) string {
	return serve(t, func(w http.ResponseWriter, r *http.Request, m message) { reply(w, m, answers) })
}

// serve serves POST requests on loopback.
func serve(t *testing.T, post func(http.ResponseWriter, *http.Request, message)) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		post(w, r, received(r))
	}))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s.URL
}

// K11: a refused probe leads to initialize, however it was refused.
func TestHTTPProbeRefused(t *testing.T) {
	for name, refuse := range map[string]http.HandlerFunc{
		"404 HTML": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, "<h1>nothing here</h1>")
		},
		"400 text": func(w http.ResponseWriter, _ *http.Request) { // K13, because of the header
			http.Error(w, "unsupported version", http.StatusBadRequest)
		},
		"405": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusMethodNotAllowed) },
		"500": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
		"200 HTML": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<h1>hello</h1>")
		},
		"204": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := serve(t, func(w http.ResponseWriter, r *http.Request, m message) {
				switch {
				case m.Method == "server/discover":
					refuse(w, r)
				case m.Method == "initialize" && r.Header.Get("Mcp-Protocol-Version") != "": // K13
					http.Error(w, "no version was agreed", http.StatusBadRequest)
				default:
					reply(w, m, legacy)
				}
			})
			r := start(t, settings(remote("a", url))).connected()
			if report := r.only(); report.Era != mcp.Legacy || len(report.Warnings) != 0 {
				t.Errorf("%+v", report)
			}
			if got := text(r.call("note", "")); got != "noted" {
				t.Error(got)
			}
		})
	}
	for code := range map[string]int{"-32601": 0, "-32600": 0, "-32022": 0} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			url := serve(t, func(w http.ResponseWriter, _ *http.Request, m message) {
				if m.Method == "server/discover" {
					w.Header().Set("Content-Type", "application/json")
					fmt.Fprint(w, answer(m, `{"error":{"code":`+code+`,"message":"no"}}`))
					return
				}
				reply(w, m, legacy)
			})
			start(t, settings(remote("a", url))).connected()
		})
	}
}

// O5 over HTTP: a probe that hangs costs its own limit.
func TestHTTPProbeIgnored(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, r *http.Request, m message) {
		if m.Method == "server/discover" {
			<-r.Context().Done()
			return
		}
		if m.Method == "notifications/cancelled" { // before initialize, that would be fatal
			t.Error("the probe was cancelled aloud")
		}
		reply(w, m, legacy)
	})
	cfg := settings(remote("a", url))
	cfg.ProbeTimeout = 200 * time.Millisecond
	start(t, cfg).connected()
}

// K39: another origin gets nothing, and its name is in the error.
func TestHTTPRedirects(t *testing.T) {
	var mu sync.Mutex
	var leaked []http.Header
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		leaked = append(leaked, r.Header)
	}))
	defer other.Close()
	for location, want := range map[string]string{
		other.URL + "/mcp?code=1":  "another origin, " + other.URL,
		"file:///etc/hosts":        "another origin, file:",
		"https://evil.invalid/mcp": "another origin, https://evil.invalid:443",
	} {
		url := serve(t, func(w http.ResponseWriter, r *http.Request, _ message) {
			http.Redirect(w, r, location, http.StatusTemporaryRedirect)
		})
		s := remote("a", url)
		s.Headers = []config.Variable{
			{Name: "Authorization", Value: secret.Literal("Bearer sk-test-123")},
			{Name: "X-Api-Key", Value: secret.Literal("sk-test-123")},
			{Name: "Cookie", Value: secret.Literal("a=sk-test-123")},
		}
		err := start(t, settings(s)).only().Err
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", location, err)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if len(leaked) != 0 {
		t.Errorf("the other origin got %v", leaked)
	}
}

// A redirect within the origin is followed where it keeps the message, and
// named where it doesn't.
func TestHTTPRedirectWithinOrigin(t *testing.T) {
	for status, ok := range map[int]bool{http.StatusTemporaryRedirect: true, http.StatusPermanentRedirect: true, http.StatusMovedPermanently: false} {
		url := serve(t, func(w http.ResponseWriter, r *http.Request, m message) {
			if r.URL.Path != "/mcp/" {
				http.Redirect(w, r, "/mcp/", status)
				return
			}
			reply(w, m, legacy)
		})
		report := start(t, settings(remote("a", url+"/mcp"))).only()
		if ok != (report.Err == nil) || !ok && !strings.Contains(report.Err.Error(), url+"/mcp/") {
			t.Errorf("%d: %v", status, report.Err)
		}
	}
}

// K43: what a server may write around its messages.
func TestHTTPContentTypes(t *testing.T) {
	gzipped := func(w http.ResponseWriter, m message) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		fmt.Fprint(z, answer(m, legacy["tools/call"]))
		z.Close()
	}
	for name, post := range map[string]func(http.ResponseWriter, message){
		"charset": func(w http.ResponseWriter, m message) {
			w.Header().Set("Content-Type", "Application/JSON; Charset=UTF-8")
			fmt.Fprint(w, answer(m, legacy["tools/call"]))
		},
		"gzip": gzipped,
		"events": func(w http.ResponseWriter, m message) {
			w.Header().Set("Content-Type", "text/event-stream;charset=utf-8")
			fmt.Fprintf(w, ": hello\r\nretry\r\nevent: message\r\nid: 1\r\ndata: %s\r\n\r\n", answer(m, legacy["tools/call"]))
		},
		"data over three lines (K45)": func(w http.ResponseWriter, m message) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\ndata: \"id\":%s,\ndata:%s\n\n", m.ID, legacy["tools/call"][1:])
		},
		"no blank line at the end (K45)": func(w http.ResponseWriter, m message) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "data: %s", answer(m, legacy["tools/call"]))
		},
		"no content type": func(w http.ResponseWriter, m message) {
			w.Header()["Content-Type"] = nil
			fmt.Fprint(w, answer(m, legacy["tools/call"]))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := serve(t, func(w http.ResponseWriter, r *http.Request, m message) {
				if accept := r.Header.Get("Accept"); !strings.Contains(accept, "application/json") || !strings.Contains(accept, "text/event-stream") {
					t.Errorf("Accept: %s", accept)
				}
				if kind := r.Header.Get("Content-Type"); kind != "application/json" {
					t.Errorf("Content-Type: %s", kind)
				}
				if m.Method == "tools/call" {
					post(w, m)
					return
				}
				reply(w, m, legacy)
			})
			if got := text(start(t, settings(remote("a", url))).connected().call("note", "")); got != "noted" {
				t.Error(got)
			}
		})
	}
	for name, notified := range map[string]http.HandlerFunc{
		"202 text":  func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(202); fmt.Fprint(w, "Accepted") },
		"204":       func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) },
		"200 empty": func(http.ResponseWriter, *http.Request) {},
		"500":       func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) },
		"400":       func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(400) },
		"a stream that stays open": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, ": hello\n\n")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		},
	} {
		t.Run("notified "+name, func(t *testing.T) {
			t.Parallel()
			url := serve(t, func(w http.ResponseWriter, r *http.Request, m message) {
				if m.ID == nil {
					notified(w, r)
					return
				}
				reply(w, m, legacy)
			})
			if got := text(start(t, settings(remote("a", url))).connected().call("note", "")); got != "noted" {
				t.Error(got)
			}
		})
	}
}

// One bad answer fails one call, with its reason, and the next call works.
func TestHTTPBadAnswers(t *testing.T) {
	for name, tt := range map[string]struct {
		post func(http.ResponseWriter, message)
		code tools.Code
		says string
	}{
		"not JSON": {func(w http.ResponseWriter, _ message) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, "oh no")
		}, tools.CodeProtocolError, "oh no"},
		"HTML": {func(w http.ResponseWriter, _ message) {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<b>log in</b>")
		}, tools.CodeProtocolError, "log in"},
		"another id": {func(w http.ResponseWriter, m message) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"jsonrpc":"2.0","id":999,"result":{}}`)
		}, tools.CodeProtocolError, "another id"},
		"nothing": {func(w http.ResponseWriter, _ message) { w.WriteHeader(202) }, tools.CodeProtocolError, "no answer"},
		"400":     {func(w http.ResponseWriter, _ message) { http.Error(w, "bad moon", 400) }, tools.CodeTransportFailed, "400 Bad Request: bad moon"},
		"503":     {func(w http.ResponseWriter, _ message) { w.WriteHeader(503) }, tools.CodeTransportFailed, "503 Service Unavailable"},
		"too large": {func(w http.ResponseWriter, m message) { // W4: after unpacking
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Encoding", "gzip")
			z, _ := gzip.NewWriterLevel(w, gzip.BestSpeed)
			fmt.Fprintf(z, `{"jsonrpc":"2.0","id":%s,"result":{"content":"`, m.ID)
			for range 17 {
				fmt.Fprint(z, strings.Repeat("x", 1<<20))
			}
			fmt.Fprint(z, `"}}`)
			z.Close()
		}, tools.CodeResultTooLarge, "larger than 16 MiB"},
		"too large an event": {func(w http.ResponseWriter, m message) { // K35
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, `data: {"result":{"content":"`)
			for range 17 {
				fmt.Fprint(w, strings.Repeat("x", 1<<20))
			}
			fmt.Fprintf(w, `"},"jsonrpc":"2.0","id":%s}`+"\n\n", m.ID)
		}, tools.CodeResultTooLarge, "larger than 16 MiB"},
		"a stream that ends (K45)": {func(w http.ResponseWriter, _ message) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, ": ping\n\n")
		}, tools.CodeTransportFailed, "ended early"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var first sync.Once
			url := serve(t, func(w http.ResponseWriter, r *http.Request, m message) {
				bad := false
				if m.Method == "tools/call" {
					first.Do(func() { bad = true })
				}
				if bad {
					tt.post(w, m)
					return
				}
				reply(w, m, legacy)
			})
			r := start(t, settings(remote("a", url))).connected()
			_, err := r.try(t.Context(), "note", "")
			if tools.CodeOf(err) != tt.code || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("got %v", err)
			}
			if got := text(r.call("note", "")); got != "noted" {
				t.Error(got)
			}
		})
	}
}

// K37, K45: a call that hangs, before its header, in its body or in its stream, ends
// at its limit, and the session goes on.
func TestHTTPCallTimeout(t *testing.T) {
	for name, hang := range map[string]func(http.ResponseWriter){
		"header": func(http.ResponseWriter) {},
		"body": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"jsonrpc"`)
			w.(http.Flusher).Flush()
		},
		"stream": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, ": ping\n\n")
			w.(http.Flusher).Flush()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var first sync.Once
			url := serve(t, func(w http.ResponseWriter, r *http.Request, m message) {
				bad := false
				if m.Method == "tools/call" {
					first.Do(func() { bad = true })
				}
				if bad {
					hang(w)
					<-r.Context().Done()
					return
				}
				reply(w, m, legacy)
			})
			s := remote("a", url)
			s.ToolTimeout = 200 * time.Millisecond
			r := start(t, settings(s)).connected()
			if _, err := r.try(t.Context(), "note", ""); tools.CodeOf(err) != tools.CodeCallTimeout {
				t.Errorf("got %v", err)
			}
			if got := text(r.call("note", "")); got != "noted" {
				t.Error(got)
			}
		})
	}
}

// A server whose own stream hangs, fails or breaks off is connected and stays so.
func TestHTTPOwnStream(t *testing.T) {
	for name, get := range map[string]http.HandlerFunc{
		"404": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404) },
		"500": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) },
		"aborted": func(http.ResponseWriter, *http.Request) {
			panic(http.ErrAbortHandler)
		},
		"hangs": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"malformed": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "no field\ndata: no json\n\n")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch r.Method {
				case http.MethodGet:
					get(w, r)
				case http.MethodPost:
					reply(w, received(r), legacy)
				}
			}))
			defer s.Close()
			defer s.CloseClientConnections()
			r := start(t, settings(remote("a", s.URL))).connected()
			if got := text(r.call("note", "")); got != "noted" {
				t.Error(got)
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// K47: localhost is both families; loopback is reached past the proxy.
func TestHTTPLocalhost(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	t.Setenv("http_proxy", "http://127.0.0.1:1")
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Logf("skipping %s: %v", address, err)
			continue
		}
		h, err := mcptest.Handler("-tools", "x")
		if err != nil {
			t.Fatal(err)
		}
		s := httptest.NewUnstartedServer(h)
		s.Listener.Close()
		s.Listener = l
		s.Start()
		defer s.Close()
		defer s.CloseClientConnections()
		_, port, _ := net.SplitHostPort(l.Addr().String())
		r := start(t, settings(remote("a", "http://localhost:"+port+"/mcp"))).connected()
		r.call("x", "")
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	err := start(t, settings(remote("a", "http://localhost:1/mcp"))).only().Err
	if err == nil || !strings.Contains(err.Error(), "127.0.0.1:1") || !strings.Contains(err.Error(), "[::1]:1") {
		t.Errorf("refused: %v", err)
	}
}

// W4: which URLs are spoken to at all.
func TestHTTPAddresses(t *testing.T) {
	for url, says := range map[string]string{
		"http://example.com/mcp":               "https is required",
		"ftp://localhost/mcp":                  `its url is of the scheme "ftp"`,
		"file:///etc/hosts":                    `its url is of the scheme "file"`,
		"https:///mcp":                         "without a host",
		"https://127.1/mcp":                    "a number, which programs read in different ways", // A7
		"https://169.254.169.254/mcp":          "a cloud's metadata",
		"https://metadata.google.internal/mcp": "a cloud's metadata",
		"://":                                  "is not a URL",
	} {
		err := start(t, settings(remote("a", url))).only().Err
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// The farewell is said, and a server that lets it hang doesn't hold up the close.
func TestHTTPFarewell(t *testing.T) {
	var mu sync.Mutex
	said := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Method {
		case http.MethodPost:
			w.Header().Set("Mcp-Session-Id", "s1")
			reply(w, received(r), legacy)
		case http.MethodDelete:
			mu.Lock()
			said++
			mu.Unlock()
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		default:
			w.WriteHeader(http.StatusMethodNotAllowed)
		}
	}))
	defer s.Close()
	defer s.CloseClientConnections()
	cfg := settings(remote("a", s.URL))
	cfg.ShutdownTimeout = 200 * time.Millisecond
	r := start(t, cfg).connected()
	began := time.Now()
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("took %v", took)
	}
	mu.Lock()
	defer mu.Unlock()
	if said != 1 {
		t.Errorf("said %d farewells", said)
	}
}

// The legacy era of the SDK's own server: a session, with a stream of its own.
func TestHTTPLegacy(t *testing.T) {
	s := remote("a", mcptest.HTTP(t, "-legacy", "-tools", "echo,sleep,cancelled"))
	s.ToolTimeout = 200 * time.Millisecond
	r := start(t, settings(s)).connected()
	if got := r.only(); got.Era != mcp.Legacy || got.Transport != config.TransportHTTP {
		t.Errorf("%+v", got)
	}
	if got := text(r.call("echo", `{"id":725653563933458433}`)); got != `{"id":725653563933458433}` {
		t.Error(got)
	}
	if _, err := r.try(t.Context(), "sleep", `{"seconds":300}`); tools.CodeOf(err) != tools.CodeCallTimeout {
		t.Errorf("got %v", err)
	}
	eventually(t, func() bool { return text(r.call("cancelled", "")) == "1" }) // K37
	if _, err := r.Ping(t.Context(), "a"); err != nil {
		t.Error(err)
	}
}

// The stream of a server's own messages is opened again where it broke off, from
// the last id, and a ping on it is answered (K15).
func TestHTTPOwnStreamResumes(t *testing.T) {
	streams, pongs := make(chan string, 9), make(chan string, 9)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Method {
		case http.MethodGet:
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "id: e7\ndata: {\"jsonrpc\":\"2.0\",\"id\":\"hb-1\",\"method\":\"ping\"}\n\n")
			streams <- r.Header.Get("Last-Event-ID")
		case http.MethodPost:
			m := received(r)
			if string(m.ID) == `"hb-1"` {
				pongs <- m.Method
				w.WriteHeader(http.StatusAccepted)
				return
			}
			reply(w, m, legacy)
		}
	}))
	defer s.Close()
	defer s.CloseClientConnections()
	start(t, settings(remote("a", s.URL))).connected()
	if first, second := <-streams, <-streams; first != "" || second != "e7" {
		t.Errorf("opened from %q, then from %q", first, second)
	}
	if m := <-pongs; m != "" {
		t.Errorf("the ping was answered with %q", m)
	}
}

// K45: an answer whose stream breaks off is fetched from where it was.
func TestHTTPAnswerResumes(t *testing.T) {
	var id json.RawMessage
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodGet && r.Header.Get("Last-Event-ID") == "7":
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "data: %s\n\n", answer(message{ID: id}, legacy["tools/call"]))
		case r.Method == http.MethodPost:
			m := received(r)
			if m.Method == "tools/call" {
				id = m.ID
				w.Header().Set("Content-Type", "text/event-stream")
				fmt.Fprint(w, "id: 7\nretry: 10\ndata:\n\n")
				return
			}
			reply(w, m, legacy)
		default:
			w.WriteHeader(http.StatusMethodNotAllowed)
		}
	}))
	defer s.Close()
	defer s.CloseClientConnections()
	if got := text(start(t, settings(remote("a", s.URL))).connected().call("note", "")); got != "noted" {
		t.Error(got)
	}
}
