package gateway

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"crewhost/config"
	"crewhost/config/secret"
	"crewhost/config/vault"
	"crewhost/mcp/admission"
)

// deep is a URL of which nothing may be seen on the agents' side, its credential, and
// the marks by which they are found.
const (
	deep       = "https://tenant.example.com:8443/api/s3cret-path/mcp?key=s3cret-query"
	credential = "s3cret-credential"
)

var marks = []string{"example.com", "s3cret", "8443", farAway, "127.0.0.1"}

// unmarked fails the test where a text tells of the server.
func unmarked(t *testing.T, what, text string) {
	t.Helper()
	for _, mark := range marks {
		if strings.Contains(text, mark) {
			t.Errorf("%s has %q: %s", what, mark, text)
		}
	}
}

// A6: an entry is a name and an address of the gateway's, and the server gets what the
// agents' side sends with its credential.
func TestEntry(t *testing.T) {
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "application/json")
		rw.Header().Set("Mcp-Session-Id", "session")
		rw.Header().Set("Content-Location", deep)
		rw.Header().Set("Link", "<"+deep+">")
		rw.Header().Set("Set-Cookie", "s3cret=1")
		rw.Header().Set("Www-Authenticate", `Bearer resource_metadata="`+deep+`"`)
		hello(rw, r)
	})
	put(t, w.vault, vault.Credential{Name: "tenant", Kind: vault.StaticBearer, URL: deep, Secret: secret.New(credential)})
	g := w.gateway(nil)
	s := brought("notes", deep, "scribe", "editor")
	s.Headers = []config.Variable{{Name: "X-S3cret", Value: secret.Literal("s3cret-header")}}
	s.OAuth = &config.OAuth{Issuer: deep}
	entry := g.Enter("run-1", s)
	unmarked(t, "the entry", fmt.Sprintf("%+v %#v %s %v %v", entry, entry, entry.URL.Reveal(), entry.Headers, entry.OAuth))
	if entry.Name != "notes" || !slices.Equal(entry.Agents, s.Agents) || entry.URL.Reveal() != "https://gateway.invalid/run-1/notes" {
		t.Errorf("%+v", entry)
	}

	route := g.Route(entry)
	if route.OAuth != nil {
		t.Error("agents are told to authorize themselves")
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, entry.URL.Reveal(), strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Cookie", "a=b")
	req.Header.Set("Mcp-Session-Id", "session")
	resp, err := route.Server.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if string(body) != "hello" || resp.Request != req || resp.TLS != nil || req.Header.Get("Authorization") != "" {
		t.Errorf("%q, %+v", body, resp.Request)
	}
	unmarked(t, "the answer", fmt.Sprintf("%+v", resp.Header))
	if resp.Header.Get("Mcp-Session-Id") != "session" || resp.Header.Get("Content-Type") != "application/json" {
		t.Errorf("%v", resp.Header)
	}
	requests, bodies := w.took()
	if len(requests) != 1 || bodies[0] != "{}" {
		t.Fatalf("%d requests: %q", len(requests), bodies)
	}
	got := requests[0]
	if got.Host != "tenant.example.com:8443" || got.URL.RequestURI() != "/api/s3cret-path/mcp?key=s3cret-query" ||
		got.Header.Get("Authorization") != "Bearer "+credential || got.Header.Get("Cookie") != "" || got.Header.Get("Mcp-Session-Id") != "session" {
		t.Errorf("%s %s %v", got.Host, got.URL, got.Header)
	}
	f := w.forwards()
	if len(f) != 1 {
		t.Fatalf("%+v", f)
	}
	want := Forward{At: f[0].At, Took: f[0].Took, Run: "run-1", Agents: []string{"scribe", "editor"}, Server: "notes", Origin: "https://tenant.example.com:8443",
		Method: http.MethodPost, Status: 200, Sent: 2, Received: 5, Credential: "tenant", Kind: vault.StaticBearer}
	if fmt.Sprint(f[0]) != fmt.Sprint(want) {
		t.Errorf("%+v", f[0])
	}
	if strings.Contains(w.log.String(), "s3cret") {
		t.Errorf("the log has a secret: %s", &w.log)
	}
}

// A server of the settings, or one that is started, is no entry.
func TestNoEntry(t *testing.T) {
	g := newWorld(t, hello).gateway(nil)
	for _, s := range []config.Server{declared("a", "https://example.com/"), {Name: "a", Transport: config.TransportStdio, Agents: []string{"scribe"}}} {
		if got := g.Enter("run", s); got.URL.Reveal() != s.URL.Reveal() {
			t.Errorf("%+v", got)
		}
	}
}

// A6, K39: errors of each kind say what is wrong, and not where.
func TestVeiledErrors(t *testing.T) {
	w := newWorld(t, hello)
	w.hosts["unknown.example.com"] = "nowhere"
	w.hosts["inside.example.com"] = "10.0.0.7"
	w.hosts["meta.example.com"] = "169.254.169.254"
	refuses := func(err error) func(*Config) {
		return func(c *Config) {
			c.Network.Dial = func(context.Context, netip.AddrPort) (net.Conn, error) {
				return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.ParseIP(farAway), Port: 443}, Err: err}
			}
		}
	}
	for name, c := range map[string]struct {
		url    string
		change func(*Config)
		says   string
	}{
		"a name for nothing":            {"https://unknown.example.com/", nil, "its host was not found"},
		"a private network":             {"https://inside.example.com/", nil, "on a private network (an operator may allow it by mcp.gateway.allow)"},
		"metadata":                      {"https://meta.example.com/", nil, "an address of a cloud's metadata"},
		"loopback":                      {"https://127.0.0.1:8443/", nil, "on loopback"},
		"plain http":                    {"http://example.com/", nil, "plain http"},
		"a user's name":                 {"https://s3cret@example.com/", nil, "a user's name in it"},
		"no URL":                        {"https://exam ple.com:8443/", nil, "the request to it failed"},
		"a port":                        {"https://example.com:0/", nil, "of a port that is none"},
		"a number":                      {"https://127.1/", nil, "a number"},
		"nobody there":                  {"https://example.com/", refuses(syscall.ECONNREFUSED), "it refuses connections"},
		"no way there":                  {"https://example.com/", refuses(syscall.EHOSTUNREACH), "it was not reached"},
		"too late":                      {"https://example.com/", refuses(context.DeadlineExceeded), "deadline exceeded"},
		"a certificate of another name": {"https://example.org/", nil, "its certificate is not valid"},
		"a certificate of nobody":       {"https://example.com/", func(c *Config) { c.Network.Roots = nil }, "its certificate is not valid"},
		"no host of the list": {"https://example.com/", func(c *Config) {
			c.Allowed = config.MCP{AllowedHosts: []string{"other.example.com"}}.Allows
		}, "its host is not one of mcp.allowed_hosts"},
	} {
		t.Run(name, func(t *testing.T) {
			g := w.gateway(c.change)
			entry := g.Enter("run", brought("notes", c.url))
			_, err := w.ask(g, entry)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want %q", err, c.says)
			}
			unmarked(t, "the error", strings.ReplaceAll(fmt.Sprint(err), entry.URL.Reveal(), ""))
		})
	}
	if requests, _ := w.took(); len(requests) > 0 {
		t.Errorf("%d requests came", len(requests))
	}
	// The cause is there for errors.Is, and in the operator's log.
	g := w.gateway(nil)
	_, err := w.ask(g, g.Enter("run", brought("notes", "https://inside.example.com/")))
	if refused, ok := errors.AsType[*admission.Error](err); !ok || refused.Realm != admission.Private {
		t.Errorf("%v", err)
	}
	if !strings.Contains(w.log.String(), "https://inside.example.com") || !strings.Contains(w.log.String(), "10.0.0.7 is on a private network") {
		t.Errorf("the operator is not told: %s", &w.log)
	}
}

// K39: a redirect to another origin is sent nothing: no header of the settings, no
// session, no body, no credential. Whose agent it is hears no address.
func TestRedirectAway(t *testing.T) {
	for _, location := range []string{
		"https://elsewhere.example.com/mcp", "https://example.com:444/mcp", "http://example.com/mcp", "//elsewhere.example.com/mcp",
		"https://user@example.com/mcp", "file:///etc/hosts", "https://127.0.0.1/", "https://169.254.169.254/latest", "javascript:1",
	} {
		for _, status := range []int{301, 302, 303, 307, 308} {
			w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/start" || r.Host != "example.com" {
					hello(rw, r)
					return
				}
				rw.Header().Set("Location", location)
				rw.WriteHeader(status)
			})
			put(t, w.vault, vault.Credential{Kind: vault.Header, Header: "X-Api-Key", URL: "https://example.com/start", Secret: secret.New(credential)})
			g := w.gateway(nil)
			entry := g.Enter("run", brought("notes", "https://example.com/start"))
			_, err := w.ask(g, entry, "Mcp-Session-Id", "s3cret-session")
			if err == nil || !strings.Contains(err.Error(), "redirects") {
				t.Errorf("%d to %s: %v", status, location, err)
			}
			unmarked(t, "the error", strings.ReplaceAll(fmt.Sprint(err), entry.URL.Reveal(), ""))
			if requests, _ := w.took(); len(requests) != 1 || requests[0].Header.Get("X-Api-Key") != credential {
				t.Errorf("%d to %s: %d requests came", status, location, len(requests))
			}
			if f := w.forwards(); len(f) != 2 || f[0].Status != status || f[1].Status != 0 || !errors.Is(f[1].Err, ErrElsewhere) || f[1].Origin == f[0].Origin && !strings.Contains(location, "user@") {
				t.Errorf("%d to %s is on record as %+v", status, location, f)
			}
			// The same by a server of the settings, whose redirects its client follows.
			got, err := w.ask(g, declared("notes", "https://example.com/start"), "X-Configured", "s3cret", "Mcp-Session-Id", "s3cret-session")
			requests, _ := w.took()
			for _, r := range requests[1:] {
				if r.Host != "example.com" || r.Header.Get("X-Api-Key") != "" {
					t.Errorf("%d to %s: a request came to %s with %v", status, location, r.Host, r.Header)
				}
			}
			if err == nil {
				t.Errorf("%d to %s: %s", status, location, got)
			}
		}
	}
}

// A6: what a server, or a proxy before it, says with a status does not tell where it is.
func TestRefusals(t *testing.T) {
	for _, status := range []int{400, 401, 403, 404, 405, 429, 500, 502, 503} {
		w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Set("Content-Type", "text/html")
			rw.Header().Set("Www-Authenticate", `Bearer realm="tenant.example.com"`)
			rw.WriteHeader(status)
			fmt.Fprintf(rw, "<address>It/2.4 at %s, or %s, Port 8443: http://TENANT.example.com</address>", r.Host, "tenant.example.com")
		})
		g := w.gateway(nil)
		entry := g.Enter("run", brought("notes", deep))
		got, err := w.ask(g, entry)
		if want := fmt.Sprintf("%d <address>It/2.4 at gateway.invalid, or gateway.invalid, Port 8443: http://gateway.invalid</address>", status); got != want || err != nil {
			t.Errorf("%q, want %q, %v", got, want, err)
		}
		// Who is named by the settings may say what it likes.
		if got, err := w.ask(g, declared("notes", deep)); !strings.Contains(got, "tenant.example.com:8443") || err != nil {
			t.Errorf("%q, %v", got, err)
		}
	}
}

// A page that breaks off is what there is of it, and an error that tells no address.
func TestBrokenPage(t *testing.T) {
	w := newWorld(t, func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Length", "1000")
		rw.WriteHeader(http.StatusBadGateway)
		_, _ = io.WriteString(rw, "at example.com")
		_ = http.NewResponseController(rw).Flush()
		panic(http.ErrAbortHandler)
	})
	g := w.gateway(nil)
	got, err := w.ask(g, g.Enter("run", brought("notes", "https://example.com/")))
	if got != "502 at gateway.invalid" || err == nil {
		t.Errorf("%q, %v", got, err)
	}
	unmarked(t, "the error", fmt.Sprint(err))
}

// The address for messages is relative to where the stream was found.
func TestAnnouncementAfterRedirect(t *testing.T) {
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodPost:
			rw.WriteHeader(http.StatusAccepted)
		case r.URL.Path == "/sse":
			http.Redirect(rw, r, "/v2/sse", http.StatusTemporaryRedirect)
		default:
			rw.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(rw, "event: endpoint\ndata: messages\n\n")
		}
	})
	g := w.gateway(nil)
	entry := g.Enter("run", brought("notes", "https://example.com/sse"))
	route := g.Route(entry).Server
	if got, err := w.askAt(route, http.MethodGet, entry.URL.Reveal()); !strings.Contains(got, entry.URL.Reveal()+"/0") {
		t.Fatal(got, err)
	}
	w.took()
	if _, err := w.askAt(route, http.MethodPost, entry.URL.Reveal()+"/0"); err != nil {
		t.Fatal(err)
	}
	if requests, _ := w.took(); requests[0].URL.Path != "/v2/messages" {
		t.Errorf("a message came to %s", requests[0].URL)
	}
}

// A8: within the origin, a redirect is sent what is bound to where it leads, and a
// message is not changed on the way.
func TestRedirectWithin(t *testing.T) {
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		to, status := map[string]string{"/slash": "/slash/", "/a/mcp": "/b/mcp", "/a/none": "/b/none", "/circle": "/circle", "/changed": "/b/mcp"}[r.URL.Path], http.StatusTemporaryRedirect
		if r.URL.Path == "/changed" {
			status = http.StatusSeeOther
		}
		if to == "" {
			hello(rw, r)
			return
		}
		rw.Header().Set("Location", to)
		rw.WriteHeader(status)
	})
	for path, value := range map[string]string{"/slash": "of-slash", "/a/mcp": "of-a", "/b/mcp": "of-b", "/a/none": "of-none"} {
		put(t, w.vault, vault.Credential{Kind: vault.StaticBearer, URL: "https://example.com" + path, Secret: secret.New(value)})
	}
	g := w.gateway(nil)
	for path, want := range map[string]string{"/slash": "Bearer of-slash", "/a/mcp": "Bearer of-b", "/a/none": ""} {
		for _, s := range []config.Server{g.Enter("run", brought("notes", "https://example.com"+path)), declared("notes", "https://example.com"+path)} {
			if got, err := w.ask(g, s); got != "200 hello" {
				t.Errorf("%s: %s, %v", path, got, err)
			}
			requests, bodies := w.took()
			if len(requests) != 2 || requests[1].Header.Get("Authorization") != want || bodies[1] != bodies[0] || requests[1].Method != http.MethodPost {
				t.Errorf("%s: %d requests, the last with %v", path, len(requests), requests[len(requests)-1].Header)
			}
		}
	}
	for path, says := range map[string]string{"/circle": "redirects for ever", "/changed": "cannot be followed with a message"} {
		if _, err := w.ask(g, g.Enter("run", brought("notes", "https://example.com"+path))); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// A8: the settings' own header wins, and one server's credential is not another's.
func TestCredentials(t *testing.T) {
	w := newWorld(t, hello)
	put(t, w.vault, vault.Credential{Kind: vault.StaticBearer, URL: "https://EXAMPLE.com:443/a/", Secret: secret.New("of-a")})
	put(t, w.vault, vault.Credential{Kind: vault.Header, Header: "X-Api-Key", URL: "https://example.com/b", Secret: secret.New("of-b")})
	g := w.gateway(nil)
	for _, c := range []struct{ url, header, authorization, key string }{
		{"https://example.com/a", "", "Bearer of-a", ""},
		{"https://Example.com/a/", "", "Bearer of-a", ""},
		{"https://example.com/a", "Bearer own", "Bearer own", ""},
		{"https://example.com/b", "", "", "of-b"},
		{"https://example.com/a/b", "", "", ""},
		{"https://example.com/", "", "", ""},
		{"https://example.com/a?x=1", "", "Bearer of-a", ""}, // host and path count
		{"https://example.com:8443/a", "", "", ""},
		{"https://sub.example.com/a", "", "", ""},
	} {
		var header []string
		if c.header != "" {
			header = []string{"Authorization", c.header}
		}
		_, _ = w.ask(g, declared("s", c.url), header...)
		requests, _ := w.took()
		if c.url == "https://sub.example.com/a" && len(requests) == 0 {
			continue // the certificate is not for it
		}
		if len(requests) != 1 || requests[0].Header.Get("Authorization") != c.authorization || requests[0].Header.Get("X-Api-Key") != c.key {
			t.Errorf("%s: %v", c.url, requests[0].Header)
		}
	}
	// Whoever brings the header along: on the agents' side it is the pass.
	if _, err := w.ask(g, g.Enter("run", brought("s", "https://example.com/a")), "Authorization", "Bearer mine"); err != nil {
		t.Fatal(err)
	}
	if requests, _ := w.took(); requests[0].Header.Get("Authorization") != "Bearer of-a" {
		t.Error(requests[0].Header)
	}
}

// A stream comes through event by event, ends with its request, and is on record when
// it has ended.
func TestStream(t *testing.T) {
	next, gone := make(chan string), make(chan struct{})
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		defer close(gone)
		rw.Header().Set("Content-Type", "text/event-stream")
		for {
			_ = http.NewResponseController(rw).Flush()
			select {
			case text := <-next:
				_, _ = io.WriteString(rw, text)
			case <-r.Context().Done():
				panic(http.ErrAbortHandler) // else the stream may end well before the client is gone
			}
		}
	})
	g := w.gateway(nil)
	entry := g.Enter("run", brought("notes", "https://example.com/sse"))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, entry.URL.Reveal(), nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := g.Route(entry).Server.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	events := bufio.NewReader(resp.Body)
	for _, text := range []string{": a comment\n\n", "data: one\n\n", "event: endpoint\ndata: /messages\n\n", "data: two\n\n"} {
		next <- text
		for range strings.Count(text, "\n") {
			line, err := events.ReadString('\n')
			if err != nil || !strings.Contains(text, line) {
				t.Fatalf("%q of %q, %v", line, text, err)
			}
		}
	}
	if n := len(w.forwards()); n != 0 {
		t.Errorf("%d requests are on record before they have ended", n)
	}
	cancel()
	_, err = events.ReadString('\n')
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	_ = resp.Body.Close()
	<-gone
	f := w.forwards()
	if len(f) != 1 || !errors.Is(f[0].Err, context.Canceled) || f[0].Received == 0 || f[0].Status != 200 {
		t.Errorf("%+v", f)
	}
}

// The transport of 2024-11-05: the address for messages that agents' sides get is the
// gateway's, and messages go where the server said.
func TestAnnouncement(t *testing.T) {
	for name, c := range map[string]struct {
		stream string // of the server
		posted string // where a message for the announced address comes to; "" where it is refused
	}{
		"a path":                      {"event: endpoint\ndata: /api/messages?session=s3cret\n\n", "/api/messages?session=s3cret"},
		"a relative path":             {"event: endpoint\ndata: messages?session=1\n\n", "/api/s3cret-path/messages?session=1"},
		"a query":                     {"event: endpoint\ndata: ?session=1\n\n", "/api/s3cret-path/sse?session=1"},
		"a URL":                       {"event: endpoint\ndata: https://tenant.example.com:8443/m\n\n", "/m"},
		"lines that end in CR and LF": {"event: endpoint\r\ndata: /m\r\n\r\n", "/m"},
		"lines that end in CR":        {"event:endpoint\rdata:/m\r\r", "/m"},
		"after comments":              {": hello\n\n\n: again\n\nid: 1\nevent: endpoint\ndata: /m\n\n", "/m"},
		"after a byte order mark":     {"\ufeffevent: endpoint\ndata: /m\n\n", "/m"},
		"another origin":              {"event: endpoint\ndata: https://elsewhere.example.com/m\n\n", ""},
		"another port":                {"event: endpoint\ndata: https://tenant.example.com/m\n\n", ""},
		"another scheme":              {"event: endpoint\ndata: http://tenant.example.com:8443/m\n\n", ""},
		"a user":                      {"event: endpoint\ndata: https://u@tenant.example.com:8443/m\n\n", ""},
		"a file":                      {"event: endpoint\ndata: file:///etc/passwd\n\n", ""},
		"no URL":                      {"event: endpoint\ndata: http://[::1\n\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost {
					rw.WriteHeader(http.StatusAccepted)
					return
				}
				rw.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
				_, _ = io.WriteString(rw, c.stream+"data: {}\n\n")
			})
			at := "https://tenant.example.com:8443/api/s3cret-path/sse"
			put(t, w.vault, vault.Credential{Kind: vault.StaticBearer, URL: at, Secret: secret.New(credential)})
			g := w.gateway(nil)
			entry := g.Enter("run", brought("notes", at))
			route := g.Route(entry).Server
			stream, err := w.askAt(route, http.MethodGet, entry.URL.Reveal())
			unmarked(t, "the stream", stream+fmt.Sprint(err))
			w.took()
			if c.posted == "" {
				if err == nil || !strings.Contains(err.Error(), "it wants messages at another origin") {
					t.Errorf("%q, %v", stream, err)
				}
				return
			}
			want := "event: endpoint\ndata: " + entry.URL.Reveal() + "/0\n\ndata: {}\n\n"
			if !strings.HasSuffix(stream, want) {
				t.Fatalf("%q, want %q, %v", stream, want, err)
			}
			if _, err := w.askAt(route, http.MethodPost, entry.URL.Reveal()+"/0"); err != nil {
				t.Fatal(err)
			}
			requests, _ := w.took()
			if len(requests) != 1 || requests[0].URL.RequestURI() != c.posted || requests[0].Header.Get("Authorization") != "Bearer "+credential {
				t.Errorf("%s %v", requests[0].URL, requests[0].Header)
			}
			for _, wrong := range []string{"/1", "/-1", "/x", "/0/0"} {
				if _, err := w.askAt(route, http.MethodPost, entry.URL.Reveal()+wrong); !errors.Is(err, errOther) {
					t.Errorf("%s: %v", wrong, err)
				}
			}
		})
	}
}

// What is no announcement comes through as it is, but for how its lines end.
func TestNoAnnouncement(t *testing.T) {
	for _, stream := range []string{
		"", "\n", "data: {}\n\n", "id: 7\ndata:\n\n", ": ping\n\n: ping\n\n", "event: message\ndata: a\ndata: b\n\nevent: endpoint\ndata: /later\n\n",
		"data: cut off", "event: endpoint\ndata: /cut off", "event: endpoint", "data: " + strings.Repeat("x", 3*maxAnnounced) + "\n\n",
		strings.Repeat(": "+strings.Repeat("y", 100)+"\n", 200) + "\ndata: z\n\n",
	} {
		a := newAnnounced(io.NopCloser(strings.NewReader(stream)), func(string) (string, error) { return "", errors.New("announced") })
		if got, err := io.ReadAll(a); string(got) != stream || err != nil {
			t.Errorf("%.60q: %.60q, %v", stream, got, err)
		}
	}
}

// Addresses for messages are given with each connection; the last ones count.
func TestManyAnnouncements(t *testing.T) {
	g := newWorld(t, hello).gateway(nil)
	entry := g.Enter("run", brought("notes", "https://example.com/sse"))
	d := g.door(entry)
	l, _ := g.at(d.at)
	var last string
	for i := range 3 * maxMessages {
		var err error
		if last, err = d.announce(l, l.target, fmt.Sprintf("/m/%d", i)); err != nil {
			t.Fatal(err)
		}
	}
	_, rest, _ := strings.Cut(last, "/notes/")
	if u, ok := d.target(l, rest); !ok || u.Path != fmt.Sprintf("/m/%d", 3*maxMessages-1) {
		t.Errorf("%s: %v", last, u)
	}
	if u, ok := d.target(l, "0"); ok {
		t.Errorf("the first is still there: %v", u)
	}
}

// FuzzAnnounced: whatever a server sends, the agents' side gets to see no address of
// its own choice as one for messages, and nothing is lost of what is no announcement.
func FuzzAnnounced(f *testing.F) {
	for _, seed := range []string{"event: endpoint\ndata: /m\n\ndata: x\n\n", "event:endpoint\rdata:/m\r\r", ": c\n\nevent: endpoint\r\ndata: /m\r\n\r\n", "data: {}\n\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		replaced := false
		a := newAnnounced(io.NopCloser(strings.NewReader(string(data))), func(string) (string, error) { replaced = true; return "https://gateway.invalid/r/s/0", nil })
		got, err := io.ReadAll(a)
		if err != nil {
			t.Fatal(err)
		}
		plain := func(b string) string {
			return strings.ReplaceAll(strings.ReplaceAll(b, "\r\n", "\n"), "\r", "\n")
		}
		if !replaced && plain(string(got)) != plain(string(data)) {
			t.Errorf("%q became %q", data, got)
		}
		if replaced && !strings.Contains(string(got), "event: endpoint\ndata: https://gateway.invalid/r/s/0\n\n") {
			t.Errorf("%q became %q", data, got)
		}
	})
}

// Sending goes on while something else is closed: no request outlives its context.
func TestCancelled(t *testing.T) {
	w := newWorld(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	g := w.gateway(nil)
	entry := g.Enter("run", brought("notes", "https://example.com/"))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, entry.URL.Reveal(), strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.Route(entry).Server.RoundTrip(req); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

// What anybody may have named, such as a model, is fetched from the public network
// alone, by each request and redirect.
func TestClient(t *testing.T) {
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		if to := r.URL.Query().Get("to"); to != "" {
			http.Redirect(rw, r, to, http.StatusFound)
			return
		}
		hello(rw, r)
	})
	client := w.gateway(nil).Client(Tool{Name: "http_api"})
	defer client.CloseIdleConnections()
	for address, want := range map[string]bool{
		"https://example.com/": true, "https://example.com/?to=https%3A%2F%2Fexample.com%2Fx": true, "http://example.com/": false,
		"https://127.0.0.1/": false, "https://example.com/?to=https%3A%2F%2F169.254.169.254": false, "https://example.com/?to=http%3A%2F%2Flocalhost": false,
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err == nil {
			_ = resp.Body.Close()
		}
		if (err == nil) != want {
			t.Errorf("%s: %v", address, err)
		}
	}
}
