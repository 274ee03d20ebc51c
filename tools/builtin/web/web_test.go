package web

import (
	"compress/gzip"
	"context"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"crewhost/tools"
	"crewhost/tools/mount"
	"crewhost/tools/native"
	"crewhost/tools/native/nativetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A site is a bench whose tools find one server at example.com and all names below it.
type site struct {
	nativetest.Bench
	mu       sync.Mutex
	requests []*http.Request
	bodies   []string
}

func newSite(t testing.TB, handler http.HandlerFunc, change ...func(*Config)) *site {
	t.Helper()
	s := &site{}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		s.requests, s.bodies = append(s.requests, r), append(s.bodies, string(body))
		s.mu.Unlock()
		handler(w, r)
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	transport := server.Client().Transport.(*http.Transport).Clone()
	transport.TLSClientConfig.RootCAs = roots
	transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", server.Listener.Addr().String())
	}
	t.Cleanup(transport.CloseIdleConnections)
	client := &http.Client{Transport: transport}
	s.Bench = nativetest.New(t, func(fsys *mount.FS) []native.Tool {
		cfg := Config{
			Client: client, FS: fsys, Timeout: 2 * time.Minute, MaxBytes: 1 << 20,
			Search: Search{Client: client}, GitHub: GitHub{URL: "https://api.example.com", Client: client},
		}
		for _, c := range change {
			c(&cfg)
		}
		return Tools(cfg)
	})
	return s
}

// took returns the requests that came since it was last asked.
func (s *site) took() ([]*http.Request, []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	requests, bodies := s.requests, s.bodies
	s.requests, s.bodies = nil, nil
	return requests, bodies
}

func file(t testing.TB, name string) string {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestSchemas(t *testing.T) {
	newSite(t, http.NotFound).CheckSchemas()
}

// What a tool can't do without is said when it is called.
func TestNothingIsSet(t *testing.T) {
	s := newSite(t, http.NotFound, func(c *Config) { c.Client, c.Search, c.GitHub = nil, Search{}, GitHub{} })
	for tool, arguments := range map[string]string{
		"http_api": `{"url":"https://example.com"}`, "web_scrape": `{"url":"https://example.com"}`, "github": `{"action":"get_repo","repo":"a/b"}`,
	} {
		s.WantFailure(tool, arguments, "no way into the network")
	}
	s.WantFailure("web_search", `{"query":"x"}`, "tools.web_search of the settings")
}

// The URL of a call is judged before anything is sent, and one that may hold a password
// is not repeated.
func TestURLs(t *testing.T) {
	s := newSite(t, http.NotFound)
	for _, tool := range []string{"http_api", "web_scrape"} {
		for address, says := range map[string]string{
			"example.com/x": "has no scheme", "ftp://example.com/": `the scheme "ftp"`, "file:///etc/passwd": `the scheme "file"`,
			"https:///x": "names no host", "https://u:s3cret@example.com/": "user's name in it", "https://exa mple.com/": "not a URL",
			"https://example.com/%zz": "not a URL", "https://[::1": "not a URL", "javascript:alert(1)": `the scheme "javascript"`,
			"https://example.com/" + strings.Repeat("a", maxURL): "longer than",
		} {
			s.WantFailure(tool, nativetest.Args("url", address), says)
			if text, _ := s.Call(tool, nativetest.Args("url", address)); strings.Contains(text, "s3cret") {
				t.Errorf("%s repeats a password: %s", tool, text)
			}
		}
	}
	if requests, _ := s.took(); len(requests) != 0 {
		t.Errorf("%d requests were sent", len(requests))
	}
}

func TestRequest(t *testing.T) {
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Set-Cookie", "session=hidden")
		w.Header().Set("Server", "hidden")
		w.Header().Set("Etag", `"v1"`)
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Date", "Thu, 02 Apr 2026 10:00:00 GMT")
		if r.Method == http.MethodHead {
			w.Header().Set("Content-Length", "11")
			return
		}
		fmt.Fprint(w, `{"ok":true}`)
	})
	const head = "HTTP 200 OK\nContent-Length: 11\nContent-Type: application/json\nDate: Thu, 02 Apr 2026 10:00:00 GMT\nEtag: \"v1\"\n\n"
	s.WantText("http_api", `{"url":"https://example.com/x#part"}`, head+`{"ok":true}`)
	s.WantText("http_api", `{"url":"https://example.com/x","method":"head"}`, head+`(no body)`)
	s.took()
	for _, c := range []struct{ arguments, method, uri, kind, body string }{
		{`{"url":"https://example.com/a?b=1","query":{"q":"x y","n":5,"t":true}}`, "GET", "/a?b=1&n=5&q=x+y&t=true", "", ""},
		{`{"url":"https://example.com/a","method":"POST","body":{"n":12345678901234567890}}`, "POST", "/a", "application/json", `{"n":12345678901234567890}`},
		{`{"url":"https://example.com/a","method":"post","body":"{\"n\":1}"}`, "POST", "/a", "application/json", `{"n":1}`},
		{`{"url":"https://example.com/a","method":"PUT","body":"plain"}`, "PUT", "/a", "text/plain; charset=utf-8", "plain"},
		{`{"url":"https://example.com/a","method":"PATCH","body":"a=b","content_type":"application/x-www-form-urlencoded"}`, "PATCH", "/a", "application/x-www-form-urlencoded", "a=b"},
		{`{"url":"https://example.com/a","method":"DELETE","headers":{"Content-Type":"text/csv","X-N":3},"body":"a,b"}`, "DELETE", "/a", "text/csv", "a,b"},
		{`{"url":"https://example.com/a","method":"POST"}`, "POST", "/a", "", ""},
		{`{"url":"https://example.com/a","method":"OPTIONS","headers":{"Accept-Encoding":"br"},"body":null}`, "OPTIONS", "/a", "", ""},
	} {
		s.WantParts("http_api", c.arguments, `{"ok":true}`)
		requests, bodies := s.took()
		if len(requests) != 1 {
			t.Fatalf("%s: %d requests", c.arguments, len(requests))
		}
		r := requests[0]
		if r.Method != c.method || r.RequestURI != c.uri || r.Header.Get("Content-Type") != c.kind || bodies[0] != c.body {
			t.Errorf("%s\nsent %s %s %q %q", c.arguments, r.Method, r.RequestURI, r.Header.Get("Content-Type"), bodies[0])
		}
		if got := r.Header.Get("Accept-Encoding"); got != "gzip" || r.UserAgent() != userAgent {
			t.Errorf("%s: %q, %q", c.arguments, got, r.UserAgent())
		}
	}
}

// Arguments that can't be sent are all told at once, and nothing is sent.
func TestBadRequests(t *testing.T) {
	s := newSite(t, http.NotFound)
	for _, name := range []string{"Host", "content-length", "Connection", "Keep-Alive", "Transfer-Encoding", "TE", "Trailer", "Upgrade", "Expect", "Proxy-Authorization", "proxy-connection"} {
		s.WantFailure("http_api", nativetest.Args("url", "https://example.com", "headers", map[string]any{name: "x"}), "belongs to the connection")
	}
	for arguments, says := range map[string]string{
		`{"url":"https://example.com","method":"TRACE"}`:                         "must be one of GET, HEAD",
		`{"url":"https://example.com","method":"GET x"}`:                         "must be one of",
		`{"url":"https://example.com","headers":{"X Y":"1"}}`:                    "no name of a header",
		`{"url":"https://example.com","headers":{"X":"a\r\nHost: b"}}`:           "line break",
		`{"url":"https://example.com","headers":{"X":["a"]}}`:                    "must be a string",
		`{"url":"https://example.com","headers":"X: a"}`:                         "must be an object",
		`{"url":"https://example.com","content_type":"a\nb","body":"x"}`:         "content_type can't",
		`{"url":"https://example.com","method":"HEAD","body":"x"}`:               "HEAD has no body",
		`{"url":"https://example.com","timeout_seconds":0}`:                      "from 1 to 600",
		`{"url":"https://example.com","max_length":40000}`:                       "from 1 to 30000",
		`{"url":"https://example.com","save_to":"/in/x"}`:                        "Nothing was sent",
		`{"url":"https://example.com","save_to":"/etc/passwd"}`:                  "Nothing was sent",
		`{"url":"https://example.com","save_to":"/out/../../x","method":"POST"}`: "Nothing was sent",
	} {
		s.WantFailure("http_api", arguments, says)
	}
	if requests, _ := s.took(); len(requests) != 0 {
		t.Errorf("%d requests were sent", len(requests))
	}
}

// What may be done about a call whose end nobody saw.
func TestEffects(t *testing.T) {
	for arguments, want := range map[string]native.Effect{
		`{}`: native.ReadOnly, `{"method":"get"}`: native.ReadOnly, `{"method":"HEAD"}`: native.ReadOnly, `{"method":"OPTIONS","save_to":null}`: native.ReadOnly,
		`{"method":null}`: native.ReadOnly, `{"save_to":"/out/x"}`: native.Repeatable,
		`{"method":"POST"}`: native.Once, `{"method":"PUT"}`: native.Once, `{"method":"delete","save_to":"/out/x"}`: native.Once, `{"method":"PATCH"}`: native.Once,
		`{"method":5}`: native.Once, `[]`: native.Once, ``: native.Once,
	} {
		if got := httpAPI(Config{}).Does(json.RawMessage(arguments)); got != want {
			t.Errorf("%s: %v, want %v", arguments, got, want)
		}
	}
	if ro := httpAPI(Config{}).Definition().Annotations.ReadOnly; ro == nil || *ro {
		t.Error("http_api says that it changes nothing")
	}
}

// An answer that is no success is a failure that can be read.
func TestStatus(t *testing.T) {
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(http.StatusTeapot)
		fmt.Fprint(w, "short and stout")
	})
	s.WantFailure("http_api", `{"url":"https://example.com/","save_to":"/out/x"}`, "HTTP 418 I'm a teapot", "Retry-After: 7", "short and stout")
	s.WantFailure("web_scrape", `{"url":"https://example.com/"}`, "HTTP 418", "short and stout")
	if _, err := os.Stat(s.Root + "/out/x"); err == nil {
		t.Error("the body of a failure was saved")
	}
}

func TestBodies(t *testing.T) {
	utf16 := "\xff\xfeB\x00\xe9\x00"
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		kind, body := "", ""
		switch r.URL.Path {
		case "/latin":
			kind, body = "text/plain; charset=ISO-8859-1", "caf\xe9 \x80"
		case "/guess":
			kind, body = "text/csv", "caf\xe9"
		case "/sjis":
			kind, body = "application/json; charset=Shift_JIS", "\"\x8a\xbf\""
		case "/utf16":
			kind, body = "text/plain", utf16
		case "/named16":
			kind, body = `text/plain; charset="utf-16le"`, "B\x00\xe9\x00"
		case "/wrong":
			kind, body = "text/plain; charset=klingon", "plain é"
		case "/octets":
			kind, body = "application/octet-stream", `{"a":1}`
		case "/png":
			kind, body = "image/png", "\x89PNG\r\n\x1a\n\x00\x00"
		case "/untyped":
			w.Header()["Content-Type"] = nil
			body = "just words"
		case "/broken":
			kind, body = "application/octet-stream", "\xff\xfb\x90"
		case "/brotli":
			w.Header().Set("Content-Encoding", "br")
			kind, body = "text/html", "<p>no"
		case "/tricks":
			kind, body = "text/plain", "a\x1b[2Jb\u202ec\U000e0041d\u200be\r\nf\U000e0101g\x00"
			body = strings.TrimSuffix(body, "\x00")
		}
		if kind != "" {
			w.Header().Set("Content-Type", kind)
		}
		_, _ = io.WriteString(w, body)
	})
	for path, want := range map[string]string{
		"latin": "café €", "guess": "café", "sjis": `"漢"`, "utf16": "Bé", "named16": "Bé", "wrong": "plain é", "octets": `{"a":1}`, "untyped": "just words",
		"png": "[The body is no text: image/png, 10 bytes.", "broken": "[The body is no text: application/octet-stream, 3 bytes.",
		"brotli": "no text: text/html, packed by br, 5 bytes", "tricks": "a[2Jbcde\nfg",
	} {
		s.WantParts("http_api", nativetest.Args("url", "https://example.com/"+path), want)
	}
	s.WantParts("http_api", `{"url":"https://example.com/png","save_to":"/out/a/b.png"}`, "The body is in /out/a/b.png: image/png, 10 bytes.")
	if got := s.Get("out/a/b.png"); got != "\x89PNG\r\n\x1a\n\x00\x00" {
		t.Errorf("saved %q", got)
	}
	s.WantParts("http_api", `{"url":"https://example.com/latin","save_to":"/out/a/b.png"}`, "text/plain")
	if got := s.Get("out/a/b.png"); got != "caf\xe9 \x80" {
		t.Errorf("saved %q", got)
	}
}

// Whatever a server answers, a call ends in bounded time and memory, and says what is
// missing.
func TestHostileAnswers(t *testing.T) {
	done := make(chan struct{})
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		flush := func() { _ = http.NewResponseController(w).Flush() }
		switch r.URL.Path {
		case "/bomb":
			w.Header().Set("Content-Encoding", "gzip")
			w.Header().Set("Content-Type", "text/html")
			z, _ := gzip.NewWriterLevel(w, gzip.BestSpeed)
			block := make([]byte, 1<<20)
			for i := range block {
				block[i] = 'a'
			}
			for range 64 {
				if _, err := z.Write(block); err != nil {
					return
				}
			}
			_ = z.Close()
		case "/endless":
			w.Header().Set("Content-Type", "text/plain")
			for r.Context().Err() == nil {
				if _, err := io.WriteString(w, strings.Repeat("é", 4096)); err != nil {
					return
				}
			}
		case "/slow":
			w.Header().Set("Content-Type", "text/plain")
			_, _ = io.WriteString(w, "a")
			flush()
			select {
			case <-r.Context().Done():
			case <-done:
			}
		case "/silent":
			select {
			case <-r.Context().Done():
			case <-done:
			}
		case "/short":
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "only this")
			flush()
			panic(http.ErrAbortHandler)
		case "/notgzip":
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = io.WriteString(w, "this is not gzip")
		case "/headers":
			for i := range 2000 {
				w.Header().Set(fmt.Sprintf("X-Ratelimit-%d", i), strings.Repeat("v", 30))
			}
			_, _ = io.WriteString(w, "body")
		case "/long":
			w.Header().Set("Content-Type", "text/plain")
			_, _ = io.WriteString(w, strings.Repeat("0123456789", 5000))
		}
	})
	defer close(done)
	const much = "longer than 1048576 bytes"
	s.WantParts("http_api", `{"url":"https://example.com/bomb"}`, much, "Characters 0 to 20000 of 1048576")
	s.WantParts("http_api", `{"url":"https://example.com/endless"}`, much, "save_to")
	s.WantFailure("http_api", `{"url":"https://example.com/bomb","save_to":"/out/bomb"}`, "was not written", much, "tools.web.bytes")
	s.WantParts("web_scrape", `{"url":"https://example.com/endless"}`, much)
	s.WantParts("web_scrape", `{"url":"https://example.com/bomb"}`, much)
	s.WantFailure("http_api", `{"url":"https://example.com/slow","timeout_seconds":1}`, "did not answer in full within 1s")
	s.WantFailure("http_api", `{"url":"https://example.com/silent","timeout_seconds":1,"method":"POST"}`, "within 1s", "nobody knows")
	s.WantFailure("http_api", `{"url":"https://example.com/short"}`, "broke off after 9 bytes")
	s.WantFailure("http_api", `{"url":"https://example.com/notgzip"}`, "gzip")
	s.WantParts("http_api", `{"url":"https://example.com/headers"}`, "left out here", "\nbody")
	s.WantParts("http_api", `{"url":"https://example.com/long","max_length":25}`, "\n\n0123456789012345678901234\n[Characters 0 to 25 of 50000. For more,")
	for _, tool := range []string{"http_api", "web_scrape"} {
		for _, path := range []string{"bomb", "endless", "headers", "long"} {
			if text, _ := s.Call(tool, nativetest.Args("url", "https://example.com/"+path, "max_length", 30000)); len([]rune(text)) > 32_000 {
				t.Errorf("%s of %s has %d characters", tool, path, len([]rune(text)))
			}
		}
	}
	// The caller's own end is the host's to know.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	tool, _ := s.Reg.Lookup("http_api")
	if _, err := tool.Call(ctx, tools.Call{Arguments: json.RawMessage(`{"url":"https://example.com/silent"}`)}); tools.CodeOf(err) != tools.CodeCancelled {
		t.Errorf("%v", err)
	}
}

// The settings' limit is the most that a model gets.
func TestTimeout(t *testing.T) {
	s := newSite(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, func(c *Config) { c.Timeout = 50 * time.Millisecond })
	s.WantFailure("http_api", `{"url":"https://example.com/","timeout_seconds":600}`, "within 50ms")
	s.WantFailure("web_scrape", `{"url":"https://example.com/"}`, "within 50ms")
	s.WantFailure("github", `{"action":"get_repo","repo":"a/b"}`, "within 50ms")
}

// Redirects: who gets what.
func TestRedirects(t *testing.T) {
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		if to := r.URL.Query().Get("to"); to != "" {
			var code int
			_, _ = fmt.Sscan(r.URL.Query().Get("code"), &code)
			w.Header()["Location"] = []string{to}
			w.WriteHeader(code)
			return
		}
		if r.URL.Path == "/loop" {
			w.Header().Set("Location", "/loop")
			w.WriteHeader(http.StatusFound)
			return
		}
		fmt.Fprintf(w, "%s here", r.Method)
	})
	call := func(method, to string, code int, more ...any) (string, bool) {
		s.took()
		return s.Call("http_api", nativetest.Args(append([]any{
			"url", fmt.Sprintf("https://example.com/start?code=%d&to=%s", code, to), "method", method,
			"headers", map[string]any{"Authorization": "Bearer agents-own", "X-Api-Key": "agents-key", "Cookie": "a=b", "Accept": "text/plain"},
		}, more...)...))
	}
	for _, c := range []struct {
		method string
		code   int
		to     string
		arrive string // method with which it comes there; empty: it doesn't
		known  bool   // whether the headers of the agent come along
	}{
		{"GET", 302, "/next", "GET", true},
		{"POST", 303, "/next", "GET", true},
		{"POST", 302, "/next", "GET", true},
		{"POST", 307, "/next", "POST", true},
		{"PUT", 308, "/next", "PUT", true},
		{"DELETE", 307, "https://example.com:443/next", "DELETE", true},
		{"GET", 301, "https://other.example.com/next", "GET", false},
		{"GET", 307, "https://sub.example.com/next", "GET", false},
		{"GET", 302, "https://example.com:8443/next", "GET", false},
		{"POST", 303, "https://other.example.com/next", "GET", false},
		{"POST", 307, "https://other.example.com/next", "", false},
		{"DELETE", 308, "https://other.example.com/next", "", false},
		{"PATCH", 307, "https://example.com:8443/next", "", false},
	} {
		var more []any
		if c.method != "GET" && c.method != "DELETE" {
			more = []any{"body", "text"}
		}
		text, failed := call(c.method, c.to, c.code, more...)
		requests, bodies := s.took()
		if c.arrive == "" {
			if len(requests) != 1 || !failed || !strings.Contains(text, "not followed: it leads to another origin") || !strings.Contains(text, "Location: "+c.to) {
				t.Errorf("%v: %d requests, %s", c, len(requests), text)
			}
			continue
		}
		if len(requests) != 2 || failed || !strings.Contains(text, c.arrive+" here") || !strings.Contains(text, "after a redirect to https://") {
			t.Errorf("%v: %d requests, %s", c, len(requests), text)
			continue
		}
		last := requests[1]
		known := last.Header.Get("Authorization") != "" && last.Header.Get("X-Api-Key") != "" && last.Header.Get("Cookie") != ""
		none := last.Header.Get("Authorization") == "" && last.Header.Get("X-Api-Key") == "" && last.Header.Get("Cookie") == ""
		if c.known && !known || !c.known && !none || last.Header.Get("Accept") != "text/plain" || last.Header.Get("Referer") != "" {
			t.Errorf("%v: %v", c, last.Header)
		}
		if last.Method != "GET" && last.Method != "DELETE" && bodies[1] != "text" || last.Method == "GET" && bodies[1]+last.Header.Get("Content-Type") != "" {
			t.Errorf("%v: %q %v", c, bodies[1], last.Header)
		}
	}
	// There and back: what was left at the door stays there.
	call("GET", "https%3A%2F%2Fother.example.com%2F%3Fcode%3D302%26to%3Dhttps%3A%2F%2Fexample.com%2Fback", 302)
	if requests, _ := s.took(); len(requests) != 3 || requests[2].Host != "example.com" || requests[2].Header.Get("Authorization")+requests[2].Header.Get("X-Api-Key") != "" {
		t.Errorf("%d requests", len(requests))
	}
	for to, says := range map[string]string{
		"http://example.com/next":      "redirects from https to http",
		"https://u:p@example.com/next": "user's name in it",
		"ftp://example.com/next":       "from https to ftp",
		"file:///etc/passwd":           "from https to file",
		"https://example.com/%25zz%zz": "was not reached",
	} {
		if text, failed := call("GET", strings.ReplaceAll(to, "%", "%25"), 302); !failed || !strings.Contains(text, says) {
			t.Errorf("%s: %s", to, text)
		}
		if requests, _ := s.took(); len(requests) > 1 {
			t.Errorf("%s: %d requests", to, len(requests))
		}
	}
	s.took()
	s.WantFailure("http_api", `{"url":"https://example.com/loop"}`, "redirects more than 10 times")
	if requests, _ := s.took(); len(requests) != 11 {
		t.Errorf("%d requests", len(requests))
	}
	if text, failed := call("GET", "/next", 302, "follow_redirects", false); failed || !strings.Contains(text, "HTTP 302 Found") || !strings.Contains(text, "Location: /next") || !strings.Contains(text, "follow_redirects is false") {
		t.Errorf("%s", text)
	}
	if requests, _ := s.took(); len(requests) != 1 {
		t.Errorf("%d requests", len(requests))
	}
}
