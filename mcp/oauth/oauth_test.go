package oauth

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/go-cmp/cmp"

	"crewhost/config"
	"crewhost/config/secret"
)

// TestLogin: one login, and another process has what it gave (O20).
func TestLogin(t *testing.T) {
	w := newWorld(t)
	store := new(Memory)
	login := w.authorizer(func(c *Config) { c.Store, c.Browse = store, w.browse })
	r, err := login.Login(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if r.URL != w.mcp.URL+"/mcp" || r.Issuer != w.auth.URL || !cmp.Equal(r.Scopes, []string{"a", "b", "offline_access"}) || r.Expiry.IsZero() {
		t.Errorf("%+v", r)
	}
	run := w.authorizer(func(c *Config) { c.Store = store })
	if got, err := w.post(run); got != "200 hello" || err != nil {
		t.Fatal(got, err)
	}
	if !cmp.Equal(w.bodies, []string{"message"}) {
		t.Error(w.bodies)
	}
	f := w.tokens[0]
	if f.Get("resource") != w.mcp.URL+"/mcp" || f.Get("client_id") != "client-1" || f.Get("client_secret") != "" {
		t.Error(f)
	}
	if ok, err := run.Logout(t.Context()); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if ok, err := run.Logout(t.Context()); ok || err != nil {
		t.Fatal(ok, err)
	}
	var login2 *LoginError
	if _, err := w.post(run); !errors.As(err, &login2) || err.Error() != `authorizing: it needs a login: run "crewhost mcp login notes", or "crewhost vault set" for a token that you have` {
		t.Error(err)
	}
}

// TestNobodyIsSentToABrowser: a run without a login ends in a line, before the
// authorization server hears of it; and goes on once somebody has logged in.
func TestNobodyIsSentToABrowser(t *testing.T) {
	w := newWorld(t)
	store := new(Memory)
	run := w.authorizer(func(c *Config) { c.Store = store })
	for range 2 {
		if _, err := w.post(run); !errors.As(err, new(*LoginError)) {
			t.Fatal(err)
		}
	}
	if len(w.requests) > 0 {
		t.Error(w.requests)
	}
	if _, err := w.authorizer(func(c *Config) { c.Store, c.Browse = store, w.browse }).Login(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, err := w.post(run); got != "200 hello" {
		t.Error(got, err)
	}
}

// TestOtherRefusals: a server that asks for no bearer token keeps its answer,
// unless the settings say that it takes tokens.
func TestOtherRefusals(t *testing.T) {
	w := newWorld(t)
	w.silent = true
	if got, err := w.post(w.authorizer(nil)); got != "401 " || err != nil {
		t.Error(got, err)
	}
	if _, err := w.post(w.authorizer(func(c *Config) { c.Settings = new(config.OAuth) })); !errors.As(err, new(*LoginError)) {
		t.Error(err)
	}
	open := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			t.Error("a token for a server that asked for none")
		}
		if r.URL.Path == "/forbidden" {
			w.WriteHeader(http.StatusForbidden)
		}
	}))
	defer open.Close()
	rt := w.authorizer(func(c *Config) { c.URL, c.Browse = open.URL, w.browse })
	if _, err := rt.Login(t.Context()); !errors.Is(err, ErrOpen) {
		t.Error(err)
	}
	if got, err := post(t, rt, open.URL+"/forbidden"); got != "403 " || err != nil {
		t.Error(got, err)
	}
}

// TestRefresh: an expired token is renewed before it is sent, a revoked one after,
// each is stored, and a refresh token may be good for one use only.
func TestRefresh(t *testing.T) {
	w := newWorld(t)
	w.expires, w.rotate = "10", true // under the margin, and written as a text
	store := new(Memory)
	if _, err := w.authorizer(func(c *Config) { c.Store, c.Browse = store, w.browse }).Login(t.Context()); err != nil {
		t.Fatal(err)
	}
	run := w.authorizer(func(c *Config) { c.Store, c.Settings = store, new(config.OAuth) })
	w.expires = 3600
	if got, err := w.post(run); got != "200 hello" {
		t.Fatal(got, err)
	}
	if f := w.tokens[1]; f.Get("grant_type") != "refresh_token" || f.Get("resource") == "" || f.Get("client_id") != "client-1" {
		t.Error(f)
	}
	w.forget()
	if got, err := w.post(run); got != "200 hello" {
		t.Fatal(got, err)
	}
	stored, _, _ := store.Load(t.Context(), w.mcp.URL+"/mcp")
	if !w.refresh[stored.Refresh.Reveal()] || len(w.tokens) != 3 {
		t.Error("not written back", len(w.tokens))
	}
	// Both gone: it says that a login helps, and why.
	w.forget()
	w.refresh = map[string]bool{}
	_, err := w.post(run)
	if err == nil || err.Error() != `authorizing: it needs a new login (the authorization server refused: invalid_grant, no �[31mway): run "crewhost mcp login notes"` {
		t.Error(err)
	}
}

// TestRefreshElsewhere: of two processes, one uses the refresh token up; the other
// takes what that one stored.
func TestRefreshElsewhere(t *testing.T) {
	w := newWorld(t)
	w.rotate, w.expires = true, 10
	store := new(Memory)
	if _, err := w.authorizer(func(c *Config) { c.Store, c.Browse = store, w.browse }).Login(t.Context()); err != nil {
		t.Fatal(err)
	}
	settings := func(c *Config) { c.Store, c.Settings = store, new(config.OAuth) }
	one, two := w.authorizer(settings), w.authorizer(settings)
	if err := one.load(t.Context()); err != nil { // both know the first token
		t.Fatal(err)
	}
	w.expires = 3600
	if got, err := w.post(two); got != "200 hello" {
		t.Fatal(got, err)
	}
	if got, err := w.post(one); got != "200 hello" {
		t.Fatal(got, err)
	}
}

// TestConcurrent: many requests that are refused at once cost one refresh.
func TestConcurrent(t *testing.T) {
	w := newWorld(t)
	w.rotate = true
	store := new(Memory)
	if _, err := w.authorizer(func(c *Config) { c.Store, c.Browse = store, w.browse }).Login(t.Context()); err != nil {
		t.Fatal(err)
	}
	run := w.authorizer(func(c *Config) { c.Store, c.Settings = store, new(config.OAuth) })
	w.forget()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if got, err := w.post(run); got != "200 hello" {
				t.Error(got, err)
			}
		})
	}
	all.Wait()
	if len(w.tokens) != 2 {
		t.Errorf("%d requests for tokens", len(w.tokens))
	}
}

// TestRefreshOutlivesItsRequest: a refresh token that was sent may be used up, so
// the answer is waited for, though nobody waits for the request any more.
func TestRefreshOutlivesItsRequest(t *testing.T) {
	w := newWorld(t)
	w.rotate, w.expires = true, 10
	store := new(Memory)
	if _, err := w.authorizer(func(c *Config) { c.Store, c.Browse = store, w.browse }).Login(t.Context()); err != nil {
		t.Fatal(err)
	}
	asked, answer := make(chan struct{}), make(chan struct{})
	w.expires = 3600
	w.token = func(http.ResponseWriter, *http.Request) bool {
		close(asked)
		<-answer
		w.token = nil
		return false
	}
	run := w.authorizer(func(c *Config) { c.Store, c.Settings = store, new(config.OAuth) })
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-asked
		cancel()
	}()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.mcp.URL+"/mcp", strings.NewReader("first"))
	if err != nil {
		t.Fatal(err)
	}
	if resp, err := run.Over(run.cfg.Base).RoundTrip(req); !errors.Is(err, context.Canceled) {
		t.Fatal(resp, err)
	}
	close(answer)
	if got, err := w.post(run); got != "200 hello" || len(w.tokens) != 2 {
		t.Error(got, err, len(w.tokens))
	}
	run.Close(time.Second)
	if stored, _, _ := store.Load(t.Context(), w.mcp.URL+"/mcp"); !w.refresh[stored.Refresh.Reveal()] {
		t.Error("not written back")
	}
}

// TestCloseEndsARefresh: a token endpoint that never answers holds nobody up.
func TestCloseEndsARefresh(t *testing.T) {
	w := newWorld(t)
	w.expires = 10
	store := new(Memory)
	if _, err := w.authorizer(func(c *Config) { c.Store, c.Browse = store, w.browse }).Login(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	w.token = func(_ http.ResponseWriter, r *http.Request) bool {
		cancel()
		<-r.Context().Done()
		return true
	}
	run := w.authorizer(func(c *Config) { c.Store, c.Settings = store, new(config.OAuth) })
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.mcp.URL+"/mcp", strings.NewReader("first"))
	if err != nil {
		t.Fatal(err)
	}
	if resp, err := run.Over(run.cfg.Base).RoundTrip(req); !errors.Is(err, context.Canceled) {
		t.Fatal(resp, err)
	}
	began := time.Now()
	for range 2 {
		run.Close(10 * time.Millisecond)
	}
	if took := time.Since(began); took > timeLimit/2 {
		t.Errorf("closed after %v", took)
	}
}

// TestStepUp: more scopes are asked for beside the old ones, where there is
// somebody to ask; else a line says which.
func TestStepUp(t *testing.T) {
	w := newWorld(t)
	w.scopes = []string{"a"}
	store := new(Memory)
	present := w.authorizer(func(c *Config) { c.Store, c.Browse = store, w.browse })
	if got, err := w.post(present); got != "200 hello" {
		t.Fatal(got, err)
	}
	w.need = "write"
	absent := w.authorizer(func(c *Config) { c.Store, c.Settings = store, new(config.OAuth) })
	_, err := w.post(absent)
	if err == nil || err.Error() != `authorizing: it needs a login for more, scope write: run "crewhost mcp login notes"` {
		t.Error(err)
	}
	if got, err := w.post(present); got != "200 hello" {
		t.Fatal(got, err)
	}
	if r, _, _ := store.Load(t.Context(), w.mcp.URL+"/mcp"); !cmp.Equal(r.Scopes, []string{"a", "offline_access", "write"}) {
		t.Error(r.Scopes)
	}
	// A server that is never content is asked no more than it takes to see that.
	w.need = "never"
	w.token = func(rw http.ResponseWriter, r *http.Request) bool {
		answerJSON(rw, 200, map[string]any{"access_token": rand.Text()})
		return true
	}
	before := len(w.tokens)
	for range 5 {
		if got, err := w.post(present); err == nil && !strings.HasPrefix(got, "40") {
			t.Fatal(got, err)
		}
	}
	if n := len(w.tokens) - before; n > 3 {
		t.Errorf("%d grants", n)
	}
}

// TestAskedAgain: a person who says no is asked no more; one whose request was
// given up meanwhile is.
func TestAskedAgain(t *testing.T) {
	w := newWorld(t)
	asked := 0
	ctx, cancel := context.WithCancel(t.Context())
	a := w.authorizer(func(c *Config) {
		c.Browse = func(ctx context.Context, u string) error {
			if asked++; asked == 1 {
				cancel()
				return nil
			}
			return w.browse(ctx, u)
		}
	})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.mcp.URL+"/mcp", strings.NewReader("first"))
	if err != nil {
		t.Fatal(err)
	}
	if resp, err := a.Over(a.cfg.Base).RoundTrip(req); !errors.Is(err, context.Canceled) {
		t.Fatal(resp, err)
	}
	w.wrong = url.Values{"code": {""}, "error": {"access_denied"}}
	for range 3 {
		if _, err := w.post(a); err == nil || !strings.Contains(err.Error(), "access_denied") || !Denied(err) {
			t.Error(err)
		}
	}
	if asked != 2 {
		t.Errorf("asked %d times", asked)
	}
}

// TestFixedScopes: the scopes of the settings are all that is asked for.
func TestFixedScopes(t *testing.T) {
	w := newWorld(t)
	w.need = "b"
	rt := w.authorizer(func(c *Config) {
		c.Settings = unattended(func(o *config.OAuth) { o.Scopes = []string{"a"} })
	})
	_, err := w.post(rt)
	if err == nil || err.Error() != `authorizing: the server wants the scope "b", which oauth.scopes of the settings do not have` {
		t.Error(err)
	}
	if f := w.tokens[0]; f.Get("scope") != "a" {
		t.Error(f)
	}
}

// TestClientCredentials: nobody is asked, and the client says who it is in each way.
func TestClientCredentials(t *testing.T) {
	for _, c := range []struct {
		name, auth string
		methods    []string
		check      func(url.Values, http.Header) bool
	}{
		{"by default", "", nil, func(f url.Values, h http.Header) bool {
			id, pass, _ := (&http.Request{Header: h}).BasicAuth()
			return id == "robot" && pass == "secret-of-client" && f.Get("client_secret") == "" && f.Get("client_id") == ""
		}},
		{"post is offered", "", []string{"client_secret_basic", "client_secret_post"}, func(f url.Values, h http.Header) bool {
			return f.Get("client_id") == "robot" && f.Get("client_secret") == "secret-of-client" && h.Get("Authorization") == ""
		}},
		{"basic is set", config.AuthBasic, []string{"client_secret_post"}, func(_ url.Values, h http.Header) bool { return h.Get("Authorization") != "" }},
		{"post is set", config.AuthPost, nil, func(f url.Values, _ http.Header) bool { return f.Get("client_secret") == "secret-of-client" }},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.methods = c.methods
			store := new(Memory)
			rt := w.authorizer(func(cfg *Config) {
				cfg.Store, cfg.Settings = store, unattended(func(o *config.OAuth) { o.Auth = c.auth })
			})
			if got, err := w.post(rt); got != "200 hello" {
				t.Fatal(got, err)
			}
			f := w.tokens[0]
			if f.Get("grant_type") != "client_credentials" || f.Get("resource") == "" || f.Get("scope") != "a b" || !c.check(f, w.headers[0]) {
				t.Error(f, w.headers[0])
			}
			w.forget() // a new one is asked for
			if got, err := w.post(rt); got != "200 hello" {
				t.Fatal(got, err)
			}
			if _, ok, _ := store.Load(t.Context(), w.mcp.URL+"/mcp"); ok {
				t.Error("stored")
			}
			if _, err := rt.Login(t.Context()); err == nil {
				t.Error("a login")
			}
		})
	}
}

// TestVouchedFor: a workload shows the token that it was given, as it is at the time.
func TestVouchedFor(t *testing.T) {
	w := newWorld(t)
	file := filepath.Join(t.TempDir(), "token")
	rt := w.authorizer(func(c *Config) {
		c.Secrets = []secret.Source{secret.File{}}
		c.Settings = &config.OAuth{
			Grant: config.GrantJWTBearer, ClientID: secret.Literal("ci"), Assertion: secret.Ref{Source: secret.FromFile, Name: file},
		}
	})
	if _, err := w.post(rt); !errors.Is(err, secret.ErrNotFound) {
		t.Error(err)
	}
	for _, c := range []struct{ text, want string }{{"expired", ""}, {"vouched-for\n", "200 hello"}} {
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := w.post(rt); got != c.want || (c.want == "") != Denied(err) {
			t.Errorf("%q: %s, %v", c.text, got, err)
		}
	}
	if f := w.tokens[1]; f.Get("client_id") != "ci" || f.Get("client_secret") != "" || f.Get("resource") == "" {
		t.Error(f)
	}
}

// TestPrivateKey: an assertion is signed by each kind of key, for the issuer only.
func TestPrivateKey(t *testing.T) {
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ec384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	r, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	pub, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		alg         string
		key, public any
	}{{"ES256", ec, &ec.PublicKey}, {"ES384", ec384, &ec384.PublicKey}, {"RS256", r, &r.PublicKey}, {"EdDSA", ed, pub}} {
		t.Run(c.alg, func(t *testing.T) {
			w := newWorld(t)
			der, err := x509.MarshalPKCS8PrivateKey(c.key)
			if err != nil {
				t.Fatal(err)
			}
			text := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
			rt := w.authorizer(func(cfg *Config) {
				cfg.Secrets = []secret.Source{secret.Env{"KEY=" + string(text)}}
				cfg.Settings = &config.OAuth{Grant: config.GrantClientCredentials, ClientID: secret.Literal("robot"), PrivateKey: secret.Ref{Source: secret.FromEnv, Name: "KEY"}}
			})
			if got, err := w.post(rt); got != "200 hello" {
				t.Fatal(got, err)
			}
			claims := new(jwt.RegisteredClaims)
			if _, err := jwt.ParseWithClaims(w.tokens[0].Get("client_assertion"), claims, func(*jwt.Token) (any, error) { return c.public, nil },
				jwt.WithValidMethods([]string{c.alg}), jwt.WithAudience(w.auth.URL), jwt.WithExpirationRequired(), jwt.WithIssuedAt()); err != nil {
				t.Fatal(err)
			}
			if claims.Issuer != "robot" || claims.Subject != "robot" || claims.ID == "" || len(claims.Audience) != 1 {
				t.Errorf("%+v", claims)
			}
		})
	}
	if _, err := (party{key: secret.New("none")}).assertion(time.Now()); err == nil {
		t.Error("signed by nothing")
	}
}

// TestClients: who the client of a login is.
func TestClients(t *testing.T) {
	document := "https://example.com/client.json"
	for _, c := range []struct {
		name     string
		settings *config.OAuth
		methods  []string
		want     string // client_id, client_secret and Basic of the token request
		register bool
	}{
		{"registers itself", nil, nil, "client-1||", true},
		{"registers itself with a secret", nil, []string{"client_secret_post"}, "client-1|registered-secret|", true},
		{"registers itself for Basic", nil, []string{"client_secret_basic"}, "||client-1:registered-secret", true},
		{"of the settings", &config.OAuth{ClientID: secret.Literal("mine")}, nil, "mine||", false},
		{"of the settings, with a secret", &config.OAuth{ClientID: secret.Literal("mine"), ClientSecret: secret.Ref{Source: secret.FromEnv, Name: "SECRET"}}, nil, "||mine:secret-of-client", false},
		{"a document that the server does not read", &config.OAuth{ClientID: secret.Literal(document)}, nil, "client-1||", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.methods = c.methods
			store := new(Memory)
			rt := w.authorizer(func(cfg *Config) { cfg.Settings, cfg.Browse, cfg.Store = c.settings, w.browse, store })
			if _, err := rt.Login(t.Context()); err != nil {
				t.Fatal(err)
			}
			id, pass, _ := (&http.Request{Header: w.headers[0]}).BasicAuth()
			if id != "" {
				id += ":" + pass
			}
			f := w.tokens[0]
			if got := f.Get("client_id") + "|" + f.Get("client_secret") + "|" + id; got != c.want {
				t.Error(got)
			}
			if slices.Contains(w.requests, "POST /register") != c.register {
				t.Error(w.requests)
			}
			// And a refresh by another process is the same client's.
			again := w.authorizer(func(cfg *Config) { cfg.Settings, cfg.Store = c.settings, store })
			w.forget()
			if got, err := w.post(again); got != "200 hello" {
				t.Fatal(got, err)
			}
		})
	}
}
