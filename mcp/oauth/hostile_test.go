package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"crewhost/config"
	"crewhost/config/secret"
)

// TestHostileLogin: what an authorization server, or somebody in its place, may
// do ends in one line, with no code or secret sent where it does not belong.
func TestHostileLogin(t *testing.T) {
	redirect := func(to string) func(http.ResponseWriter, *http.Request) bool {
		return func(rw http.ResponseWriter, r *http.Request) bool {
			http.Redirect(rw, r, to, http.StatusTemporaryRedirect)
			return true
		}
	}
	meta := func(change map[string]any) func(*world) {
		return func(w *world) {
			w.meta = func(rw http.ResponseWriter, _ *http.Request) bool {
				m := map[string]any{
					"issuer": w.auth.URL, "authorization_endpoint": w.auth.URL + "/authorize", "token_endpoint": w.auth.URL + "/token",
					"registration_endpoint": w.auth.URL + "/register", "code_challenge_methods_supported": []string{"S256"},
				}
				for k, v := range change {
					m[k] = v
				}
				answerJSON(rw, 200, m)
				return true
			}
		}
	}
	token := func(body string) func(*world) {
		return func(w *world) {
			w.token = func(rw http.ResponseWriter, _ *http.Request) bool {
				rw.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(rw, body)
				return true
			}
		}
	}
	for _, c := range []struct {
		name string
		make func(*world)
		want string // in the error
		ends string // the last request that the authorization server may have seen
	}{
		{"another resource", func(w *world) { w.resource = "https://bank.example.com/" }, "the metadata is of another resource, https://bank.example.com/", ""},
		{"another issuer in the metadata", func(w *world) { w.issuer = "https://evil.example.com" }, `does not match issuer URL`, ".well-known"},
		{"an endpoint by plain http", meta(map[string]any{"token_endpoint": "http://tokens.example.com/"}), "does not use HTTPS", ".well-known"},
		{"a script for a browser", meta(map[string]any{"authorization_endpoint": "javascript:alert(1)"}), "disallowed scheme", ".well-known"},
		{"no PKCE", meta(map[string]any{"code_challenge_methods_supported": []string{}}), "does not implement PKCE", ".well-known"},
		{"PKCE without S256", meta(map[string]any{"code_challenge_methods_supported": []string{"plain"}}), "does not know PKCE with S256", ".well-known"},
		{"no registration", meta(map[string]any{"registration_endpoint": ""}), "lets no client register itself: set oauth.client_id", ".well-known"},
		{"metadata elsewhere", func(w *world) { w.meta = redirect("https://evil.example.com/") }, "redirects to another origin, https://evil.example.com", ".well-known"},
		{"a redirect in a circle", func(w *world) { w.meta = redirect(w.auth.URL + "/.well-known/oauth-authorization-server") }, "redirects for ever", ".well-known"},
		{"no issuer, though promised", func(w *world) { w.promisesIss = true }, "the answer names no issuer", "authorize"},
		{"another issuer in the answer", func(w *world) { w.iss = "https://evil.example.com" }, "the answer is of the issuer https://evil.example.com", "authorize"},
		{"an issuer that was not promised", func(w *world) { w.iss = w.auth.URL }, "does not say that it does", "authorize"},
		{"no", func(w *world) {
			w.wrong = url.Values{"code": {""}, "error": {"access_denied"}, "error_description": {"go\n\x1b[2Jaway"}}
		}, "the authorization server refused: access_denied, go �[2Jaway", "authorize"},
		{"no code", func(w *world) { w.wrong = url.Values{"code": {""}} }, "has no code", "authorize"},
		{"a token elsewhere", func(w *world) { w.token = redirect("https://evil.example.com/") }, "redirects to another origin", "token"},
		{"a token of another type", token(`{"access_token":"x","token_type":"DPoP"}`), `its type is "DPoP", not Bearer`, "token"},
		{"no token", token(`{"token_type":"bearer"}`), "its answer has none that can be used", "token"},
		{"a token with a line break", token(`{"access_token":"a\r\nX-Evil: b"}`), "its answer has none that can be used", "token"},
		{"half a token", token(`{"access_token":"x`), "its answer is not the JSON expected", "token"},
		{"a list", token(`[]`), "its answer is not the JSON expected", "token"},
		{"more than anybody reads", token(`{"access_token":"` + strings.Repeat("x", 2*maxAnswer)), "its answer is not the JSON expected", "token"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			c.make(w)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			store := new(Memory)
			_, err := w.authorizer(func(cfg *Config) { cfg.Browse, cfg.Store = w.browse, store }).Login(ctx)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if err != nil && strings.ContainsAny(err.Error(), "\n\x1b") {
				t.Errorf("more than a line: %q", err)
			}
			last := ""
			if len(w.requests) > 0 {
				last = w.requests[len(w.requests)-1]
			}
			if !strings.Contains(last, c.ends) || c.ends == "" && last != "" {
				t.Errorf("went on to %s", last)
			}
			if len(store.records) > 0 {
				t.Error("stored")
			}
		})
	}
}

// TestPinnedIssuer: the secret of a client goes to the issuer of the settings, and
// to no other that the server may name.
func TestPinnedIssuer(t *testing.T) {
	w := newWorld(t)
	_, err := w.post(w.authorizer(func(c *Config) {
		c.Settings = unattended(func(o *config.OAuth) { o.Issuer = "https://login.example.com" })
	}))
	if err == nil || !strings.Contains(err.Error(), "and the settings say https://login.example.com") || len(w.requests) > 0 {
		t.Error(err, w.requests)
	}
	got, err := w.post(w.authorizer(func(c *Config) {
		c.Settings = unattended(func(o *config.OAuth) { o.Issuer = w.auth.URL + "/" })
	}))
	if got != "200 hello" {
		t.Error(got, err)
	}
}

// TestMissingSecret: a secret that is nowhere is named, not shown, before anything
// is asked for.
func TestMissingSecret(t *testing.T) {
	w := newWorld(t)
	_, err := w.post(w.authorizer(func(c *Config) { c.Settings, c.Secrets = unattended(nil), nil }))
	if !errors.Is(err, secret.ErrNotFound) || len(w.tokens) > 0 {
		t.Error(err)
	}
}

// TestAdmission: where OAuth endpoints may be.
func TestAdmission(t *testing.T) {
	for _, c := range []struct{ server, endpoint, want string }{
		{"https://mcp.example.com/", "https://login.example.com/", ""},
		{"https://mcp.example.com/", "https://10.0.0.5/", ""},
		{"https://mcp.example.com/", "http://login.example.com/", "plain http"},
		{"https://mcp.example.com/", "http://localhost:80/", "on loopback and the server is not"},
		{"https://mcp.example.com/", "https://127.0.0.1:9/", "on loopback and the server is not"},
		{"https://mcp.example.com/", "https://[::1]/", "on loopback and the server is not"},
		{"https://mcp.example.com/", "https://169.254.169.254/latest", "of a cloud's metadata"},
		{"https://mcp.example.com/", "https://169.254.7.7/", "of the local link"},
		{"https://mcp.example.com/", "https:///", "without a host"},
		{"https://mcp.example.com/", "file:///etc/passwd", `of the scheme "file"`},
		{"https://mcp.example.com/", "ftp://a/", `of the scheme "ftp"`},
		{"http://127.0.0.1:1/", "http://127.0.0.1:2/", ""},
		{"http://localhost/", "http://sub.localhost/", ""},
	} {
		a, err := New(Config{URL: c.server})
		if err != nil {
			t.Fatal(err)
		}
		u, err := url.Parse(c.endpoint)
		if err != nil {
			t.Fatal(err)
		}
		if err = a.admissible(u); c.want == "" && err != nil || c.want != "" && !strings.Contains(fmt.Sprint(err), c.want) {
			t.Errorf("%s from %s: %v, want %q", c.endpoint, c.server, err, c.want)
		}
	}
}

// TestAllowedHosts: a list of hosts is a list for OAuth, too (W4).
func TestAllowedHosts(t *testing.T) {
	w := newWorld(t)
	allowed := func(u *url.URL) bool { return "http://"+u.Host == w.mcp.URL }
	_, err := w.authorizer(func(c *Config) { c.Browse, c.Allowed = w.browse, allowed }).Login(t.Context())
	if err == nil || !strings.Contains(err.Error(), "is not among the hosts that may be called (mcp.allowed_hosts)") || len(w.requests) > 0 {
		t.Error(err, w.requests)
	}
}

// TestSomebodyElseAtTheDoor: what comes without the state of this login neither
// ends nor spoils it.
func TestSomebodyElseAtTheDoor(t *testing.T) {
	w := newWorld(t)
	store := new(Memory)
	a := w.authorizer(func(c *Config) {
		c.Store = store
		c.Browse = func(ctx context.Context, u string) error {
			there, err := url.Parse(u)
			if err != nil {
				return err
			}
			for _, path := range []string{"/callback?code=stolen&state=guess", "/callback?error=access_denied", "/guess", "/"} {
				there.Path, there.RawQuery, _ = strings.Cut(path, "?")
				req, err := http.NewRequestWithContext(ctx, http.MethodGet, there.String(), nil)
				if err != nil {
					return err
				}
				resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
				if err != nil {
					return err
				}
				_ = resp.Body.Close()
				if resp.StatusCode < 400 {
					t.Errorf("%s: %d", path, resp.StatusCode)
				}
			}
			return w.browse(ctx, u)
		}
	})
	if _, err := a.Login(t.Context()); err != nil {
		t.Fatal(err)
	}
	if f := w.tokens[0]; f.Get("code") == "stolen" {
		t.Error(f)
	}
}

// TestNobodyComes: a login ends with its context, and leaves nothing behind.
func TestNobodyComes(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	a := w.authorizer(func(c *Config) {
		c.Browse = func(context.Context, string) error { cancel(); return nil }
	})
	if _, err := a.Login(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestSecretsAreKnown: whatever came over the wire or out of the settings is
// masked from then on (W10).
func TestSecretsAreKnown(t *testing.T) {
	w := newWorld(t)
	w.methods = []string{"client_secret_post"}
	store, redactor := new(Memory), new(secret.Redactor)
	r, err := w.authorizer(func(c *Config) { c.Store, c.Redactor, c.Browse = store, redactor, w.browse }).Login(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	f := w.tokens[0]
	for _, s := range []string{r.Access.Reveal(), r.Refresh.Reveal(), r.ClientSecret.Reveal(), f.Get("code"), f.Get("code_verifier")} {
		if got := redactor.Redact("a " + s + " b"); s == "" || got != "a ••• b" {
			t.Errorf("%q shows in %q", s, got)
		}
	}
	if s := fmt.Sprintf("%+v %#v", r, r); strings.Contains(s, r.Access.Reveal()) || strings.Contains(s, "registered-secret") {
		t.Error(s)
	}
	if data, err := json.Marshal(r); err != nil || strings.Contains(string(data), r.Refresh.Reveal()) {
		t.Error(string(data), err)
	}
	other := new(secret.Redactor)
	if got, err := w.post(w.authorizer(func(c *Config) { c.Store, c.Redactor = store, other })); got != "200 hello" {
		t.Fatal(got, err)
	}
	if got := other.Redact(r.Refresh.Reveal()); got != secret.Mask {
		t.Error("what was stored is not known")
	}
}

// FuzzChallenge: no header of a server does harm, and what comes of one is bounded
// by it.
func FuzzChallenge(f *testing.F) {
	for _, s := range []string{
		`Bearer resource_metadata="https://a/b", scope="a b", error="insufficient_scope"`,
		`Basic realm="x", Bearer scope=a`, `Bearer scope="a\"b`, `"`, `,,,`, `Bearer =`, "Bearer scope=\"\x00\"",
	} {
		f.Add(s, 401)
		f.Add(s, 403)
	}
	f.Fuzz(func(t *testing.T, header string, status int) {
		c, wanted := challengeOf(&http.Response{StatusCode: status, Header: http.Header{"Www-Authenticate": {header}}})
		if wanted && status != 401 && status != 403 || c.more && status != 403 || !wanted && (c.more || status == 401) {
			t.Errorf("%d: %+v, %v", status, c, wanted)
		}
		size := len(c.metadata)
		for _, s := range c.scopes {
			size += len(s)
		}
		if size > len(header) {
			t.Errorf("%+v of %q", c, header)
		}
	})
}

// answering is a round trip that gives one answer.
type answering string

func (s answering) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(string(s))), Request: req,
	}, nil
}

// FuzzToken: what a token endpoint says is a token that can be sent, or an error
// of one line.
func FuzzToken(f *testing.F) {
	for _, s := range []string{
		`{"access_token":"a","token_type":"bearer","expires_in":60,"scope":"a b","refresh_token":"r"}`,
		`{"access_token":"a","expires_in":"1e400"}`, `{"access_token":"a","expires_in":1e18}`, `{"access_token":"a","expires_in":-1}`,
		`{"error":"invalid_grant","error_description":"\u0000\n\u202e"}`, `null`, `{"scope":null,"access_token":"x"}`, `{"access_token":" "}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, body string) {
		a, err := New(Config{URL: "http://127.0.0.1/", Base: answering(body)})
		if err != nil {
			t.Fatal(err)
		}
		r, err := a.ask(t.Context(), Record{TokenEndpoint: "http://127.0.0.1/token"}, party{id: "c"}, url.Values{})
		switch {
		case err != nil && (strings.ContainsAny(err.Error(), "\n\x00") || len(err.Error()) > 1000):
			t.Errorf("%q", err)
		case err == nil && (!printable(r.Access.Reveal()) || r.Access.IsZero() || !r.Expiry.IsZero() && r.Expiry.Before(time.Now().Add(-time.Minute))):
			t.Errorf("%+v", r)
		}
	})
}

// TestCovers: a resource is the one at a URL, or holds it.
func TestCovers(t *testing.T) {
	for _, c := range []struct {
		resource, target string
		want             bool
	}{
		{"https://a/mcp", "https://a/mcp/", true},
		{"https://a", "https://a/mcp", true},
		{"https://a/m", "https://a/mcp", false},
		{"https://a/mcp", "https://a", false},
		{"https://a", "https://a.evil/mcp", false},
		{"https://a", "https://a:8443/mcp", false},
		{"", "https://a", false},
	} {
		if got := covers(c.resource, c.target); got != c.want {
			t.Errorf("%s covers %s: %v", c.resource, c.target, got)
		}
	}
}
