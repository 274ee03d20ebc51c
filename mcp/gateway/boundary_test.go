package gateway

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"crewhost/config"
	"crewhost/config/secret"
	"crewhost/config/vault"
)

// An attack is one that the published security boundary of docker/mcp-gateway (its
// docs/security.md) has in scope, and that applies here.
type attack struct {
	name string
	// try makes the attack; nil where it is another room's to hold.
	try func(t *testing.T)
	// held are the tests of other rooms that hold it, FILE:TEST from the root.
	held []string
}

// Not here: volumes, binds, images and their labels (there are no containers), catalogs
// of files (a crew is the operator's own file), and --block-secrets for arguments.
var attacks = []attack{
	{name: "a remote URL reads a file of the host", try: func(t *testing.T) {
		secretFile := filepath.Join(t.TempDir(), "secret")
		if err := os.WriteFile(secretFile, []byte("s3cret"), 0o600); err != nil {
			t.Fatal(err)
		}
		w := newWorld(t, hello)
		g := w.gateway(nil)
		for _, s := range []config.Server{
			g.Enter("run", brought("a", "file://"+secretFile)), declared("a", "file://"+secretFile), g.Enter("run", brought("b", "file://localhost"+secretFile)),
		} {
			refusedBy(t, w, g, s, "file")
		}
	}},
	{name: "a redirect reads a file of the host", try: func(t *testing.T) { redirected(t, "file:///etc/passwd") }},
	{name: "a remote URL reaches loopback", try: func(t *testing.T) {
		named(t, "https://127.0.0.1/", "https://localhost/", "https://[::1]/", "https://127.1/", "https://0x7f.1/", "https://2130706433/", "https://[::ffff:127.0.0.1]/", "https://a.localhost./")
	}},
	{name: "a remote URL reaches a private network", try: func(t *testing.T) {
		named(t, "https://10.0.0.1/", "https://172.16.0.1/", "https://192.168.1.1/", "https://100.64.0.1/", "https://[fc00::1]/", "https://[fec0::1]/")
	}},
	{name: "a remote URL reaches the local link", try: func(t *testing.T) {
		named(t, "https://169.254.1.1/", "https://[fe80::1]/", "https://[fe80::1%25eth0]/")
	}},
	{name: "a remote URL reaches a cloud's metadata", try: func(t *testing.T) {
		named(t, "https://169.254.169.254/", "https://169.254.170.2/", "https://169.254.170.23/", "https://168.63.129.16/", "https://100.100.100.200/",
			"https://192.0.0.192/", "https://[fd00:ec2::254]/", "https://[fd20:ce::254]/", "https://metadata.google.internal/", "https://[64:ff9b::a9fe:a9fe]/", "https://[2002:a9fe:a9fe::]/")
	}},
	{name: "a remote URL reaches a name of a cluster", try: func(t *testing.T) {
		named(t, "https://redis/", "https://api.default.svc/", "https://kubernetes.default.svc.cluster.local/", "https://db.internal/", "https://printer.local/", "https://host.docker.internal/")
	}},
	{name: "a remote URL reaches something else that is not public", try: func(t *testing.T) {
		named(t, "https://0.0.0.0/", "https://255.255.255.255/", "https://224.0.0.1/", "https://192.0.2.1/", "https://198.18.0.1/", "https://[::]/", "https://[ff02::1]/", "https://[2001:db8::1]/")
	}},
	{name: "a remote URL is plain http", try: func(t *testing.T) { named(t, "http://example.com/", "http://1.1.1.1/") }},
	{name: "a remote URL has a user in it", try: func(t *testing.T) { named(t, "https://user:password@example.com/", "https://example.com@127.0.0.1/") }},
	{name: "a public name resolves to what is not public", try: func(t *testing.T) {
		for _, near := range []string{"127.0.0.1", "10.0.0.1", "169.254.169.254", "168.63.129.16", "100.100.100.200", "::1", "fd00:ec2::254", "::ffff:10.0.0.1", "64:ff9b::7f00:1"} {
			w := newWorld(t, hello)
			w.hosts["example.com"] = near
			g := w.gateway(nil)
			refusedBy(t, w, g, g.Enter("run", brought("a", "https://example.com/")), near)
		}
	}},
	{name: "a public name resolves to what is not public the second time", try: func(t *testing.T) {
		w := newWorld(t, hello)
		g := w.gateway(nil)
		entry := g.Enter("run", brought("a", "https://example.com/"))
		route := g.Route(entry).Server
		if got, err := w.askAt(route, http.MethodPost, entry.URL.Reveal()); got != "200 hello" {
			t.Fatal(err)
		}
		w.hosts["example.com"] = "10.0.0.1"
		route.(interface{ CloseIdleConnections() }).CloseIdleConnections()
		reached := len(w.reached())
		if got, err := w.askAt(route, http.MethodPost, entry.URL.Reveal()); err == nil || len(w.reached()) != reached {
			t.Errorf("%s, and connected to %v", got, w.reached())
		}
	}, held: []string{"mcp/admission/transport_test.go:TestRebinding"}},
	{name: "a redirect reaches loopback, a private network or metadata", try: func(t *testing.T) {
		redirected(t, "https://127.0.0.1/", "https://10.0.0.1/", "https://169.254.169.254/latest", "https://metadata.google.internal/", "http://example.com/", "//localhost/", "https://user@example.com/")
	}, held: []string{"mcp/admission/transport_test.go:TestRedirects"}},
	{name: "a proxy of the environment hides where a request goes", held: []string{"mcp/admission/transport_test.go:TestProxy"}, try: func(t *testing.T) {
		for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "https_proxy"} {
			t.Setenv(name, "http://127.0.0.1:1")
		}
		w := newWorld(t, hello)
		g := w.gateway(nil)
		for _, s := range []config.Server{g.Enter("run", brought("a", "https://example.com/")), declared("a", "https://example.com/")} {
			if got, err := w.ask(g, s); got != "200 hello" {
				t.Error(err)
			}
		}
	}},
	{name: "a server of the settings reaches metadata", try: func(t *testing.T) {
		w := newWorld(t, hello)
		w.hosts["example.com"] = "169.254.169.254"
		g := w.gateway(nil)
		for _, url := range []string{"https://169.254.169.254/", "https://metadata.google.internal/", "https://example.com/"} {
			refusedBy(t, w, g, declared("a", url), url)
		}
	}},
	{name: "a server receives another server's secret", try: func(t *testing.T) {
		w := newWorld(t, hello)
		put(t, w.vault, vault.Credential{Name: "a", Kind: vault.StaticBearer, URL: "https://example.com/a", Secret: secret.New("s3cret-of-a")})
		g := w.gateway(nil)
		// By its name, by guessing, by patterns and by paths that lead there only for some.
		for name, url := range map[string]string{
			"a": "https://example.com/b", "*": "https://example.com/*", "a*": "https://example.com/a*", ".*": "https://example.com/.*", "b": "https://example.com/a/../b",
			"c": "https://example.com/a/b", "d": "https://example.com/%61b", "e": "https://example.com/b/a", "f": "https://example.com:8443/a", "g": "https://example.com/A",
		} {
			for _, s := range []config.Server{g.Enter("run", brought(name, url)), declared(name, url)} {
				_, _ = w.ask(g, s)
				requests, _ := w.took()
				for _, r := range requests {
					if strings.Contains(fmt.Sprint(r.Header), "s3cret") {
						t.Errorf("%s at %s got it", name, url)
					}
				}
			}
		}
	}, held: []string{"mcp/gateway/door_test.go:TestCredentials", "mcp/gateway/door_test.go:TestRedirectWithin", "mcp/gateway/door_test.go:TestRedirectAway"}},
	{name: "a secret is sent to a server that it is not declared for", held: []string{"mcp/startup_test.go:TestEnvironmentAndArguments", "mcp/http_test.go:TestHTTPRedirects"}},
	{name: "a server is told by whom and how it is reached", held: []string{"mcp/gateway/door_test.go:TestEntry"}},
	{name: "an unauthenticated request reaches an endpoint", held: []string{"mcp/server/auth_test.go:TestBearerTokens"}},
	{name: "a browser's request of another origin is served", held: []string{"mcp/server/http_test.go:TestHTTPOrigins"}},
	{name: "a colliding tool shadows another server's", held: []string{"mcp/refresh_test.go:TestListChangedCollisions", "runner/brought_test.go:TestNobodySquatsOnAgentsNames"}},
	{name: "a path invokes a tool that the policy denies", held: []string{"tools/permission/policy_test.go:TestDenyOverAskOverAllow", "tools/permission/property_test.go:TestPolicyProperties"}},
	{name: "a log has values of arguments", try: func(t *testing.T) {
		w := newWorld(t, hello)
		g := w.gateway(nil)
		for _, s := range []config.Server{g.Enter("run", brought("a", "https://example.com/")), declared("a", "https://example.com/")} {
			if _, err := w.ask(g, s); err != nil { // whose body has a secret in it
				t.Fatal(err)
			}
		}
		if _, bodies := w.took(); len(bodies) != 2 || !strings.Contains(bodies[0], "of the body") {
			t.Fatalf("%q", bodies)
		}
		if text := w.log.String() + fmt.Sprintf("%+v", w.forwards()); strings.Contains(text, "of the body") || len(w.forwards()) != 2 {
			t.Error(text)
		}
	}, held: []string{"tools/audit/log_test.go:TestShape"}},
}

// refusedBy fails the test unless a server is not reached, and nothing connected to.
func refusedBy(t *testing.T, w *world, g *Gateway, s config.Server, what string) {
	t.Helper()
	before := len(w.reached())
	got, err := w.ask(g, s)
	if requests, _ := w.took(); err == nil || len(requests) > 0 || len(w.reached()) != before {
		t.Errorf("%s: %s, %v, connected to %v", what, got, err, w.reached()[before:])
	}
}

// named tries URLs as those of an agent's server.
func named(t *testing.T, urls ...string) {
	w := newWorld(t, hello)
	g := w.gateway(nil)
	for _, url := range urls {
		refusedBy(t, w, g, g.Enter("run", brought("a", url)), url)
	}
}

// redirected tries locations that a server in the public network redirects to.
func redirected(t *testing.T, locations ...string) {
	for _, location := range locations {
		w := newWorld(t, func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Location", location)
			rw.WriteHeader(http.StatusPermanentRedirect)
		})
		g := w.gateway(nil)
		for _, s := range []config.Server{g.Enter("run", brought("a", "https://example.com/start")), declared("a", "https://example.com/start")} {
			if got, err := w.ask(g, s); err == nil {
				t.Errorf("redirected to %s: %s", location, got)
			}
			requests, _ := w.took()
			for _, r := range requests {
				if r.Host != "example.com" || r.URL.Path != "/start" {
					t.Errorf("redirected to %s: a request for %s %s", location, r.Host, r.URL)
				}
			}
			for _, to := range w.reached() {
				if to != farAway+":443" {
					t.Errorf("redirected to %s: connected to %s", location, to)
				}
			}
		}
	}
}

// TestSecurityBoundary: each attack in scope fails, here or by the tests that hold it.
func TestSecurityBoundary(t *testing.T) {
	for _, a := range attacks {
		t.Run(a.name, func(t *testing.T) {
			for _, held := range a.held {
				file, test, _ := strings.Cut(held, ":")
				text, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(file)))
				if err != nil || !strings.Contains(string(text), "\nfunc "+test+"(") {
					t.Errorf("there is no test %s: %v", held, err)
				}
			}
			switch {
			case a.try != nil:
				a.try(t)
			case len(a.held) == 0:
				t.Error("nothing holds it")
			}
		})
	}
}
