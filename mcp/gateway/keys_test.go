package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"crewhost/config/secret"
	"crewhost/config/secret/sealed"
	"crewhost/config/vault"
)

// An office is a server that takes one credential, and the token endpoint that
// renews it. Each refresh token is good for one use.
type office struct {
	*httptest.Server
	mu      sync.Mutex
	wants   string // "Header: value" that the server takes
	refresh string // that the endpoint takes
	serial  int
	forms   []url.Values
	seen    []http.Header // of requests to the server
	refuse  bool
}

func newOffice(t *testing.T) *office {
	o := &office{}
	mux := http.NewServeMux()
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.seen = append(o.seen, r.Header.Clone())
		name, value, _ := strings.Cut(o.wants, ": ")
		if r.Header.Get(name) != value {
			w.Header().Set("WWW-Authenticate", "Bearer")
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = io.WriteString(w, "hello")
	})
	mux.HandleFunc("/token", func(w http.ResponseWriter, r *http.Request) {
		o.mu.Lock()
		defer o.mu.Unlock()
		_ = r.ParseForm()
		o.forms = append(o.forms, r.PostForm)
		w.Header().Set("Content-Type", "application/json")
		if o.refuse || r.PostForm.Get("refresh_token") != o.refresh {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"error":"invalid_grant"}`)
			return
		}
		o.serial++
		access := fmt.Sprintf("access-%d", o.serial)
		o.refresh, o.wants = fmt.Sprintf("refresh-%d", o.serial), "Authorization: Bearer "+access
		fmt.Fprintf(w, `{"access_token":%q,"token_type":"Bearer","expires_in":3600,"refresh_token":%q,"scope":"a"}`, access, o.refresh)
	})
	o.Server = httptest.NewServer(mux)
	t.Cleanup(o.Close)
	return o
}

// oauth is the credential that the office renews.
func (o *office) oauth(expiry time.Time) vault.Credential {
	o.refresh = "refresh-0"
	return vault.Credential{
		Kind: vault.OAuth, URL: o.URL + "/mcp", Secret: secret.New("access-0"), Expiry: expiry,
		Refresh: &vault.Refresh{TokenEndpoint: o.URL + "/token", ClientID: "me", Token: secret.New(o.refresh), Auth: vault.AuthPost, ClientSecret: secret.New("client-secret")},
	}
}

func (o *office) lock(base http.RoundTripper) Lock {
	return Lock{Name: "office", URL: o.URL + "/mcp", Endpoints: base}
}

func vaultIn(dir string) *vault.Vault {
	return vault.New(vault.Config{File: filepath.Join(dir, "v.age"), Key: sealed.KeyFile(filepath.Join(dir, "v.key"))})
}

func put(t *testing.T, v *vault.Vault, c vault.Credential) {
	t.Helper()
	if _, err := v.Set(t.Context(), c); err != nil {
		t.Fatal(err)
	}
}

func send(ctx context.Context, trip http.RoundTripper, target string, header http.Header) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, target, strings.NewReader("{}"))
	if err != nil {
		return "", err
	}
	for name, values := range header {
		req.Header[name] = values
	}
	resp, err := trip.RoundTrip(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	return fmt.Sprintf("%d %s", resp.StatusCode, body), err
}

// A6, A8: a credential goes to the server that it is bound to, as its kind has it,
// and from the moment that it is in the vault.
func TestKeys(t *testing.T) {
	o := newOffice(t)
	base := &http.Transport{DisableKeepAlives: true}
	v := vaultIn(t.TempDir())
	k := NewKeys(v, nil, nil)
	defer k.Close(time.Second)
	trip := k.Over(o.lock(base), base)
	o.wants = "Authorization: Bearer t"
	if got, err := send(t.Context(), trip, o.URL+"/mcp", nil); got != "401 " || err != nil {
		t.Error(got, err)
	}
	put(t, v, vault.Credential{Kind: vault.StaticBearer, URL: o.URL + "/mcp/", Secret: secret.New("t")})
	if got, err := send(t.Context(), trip, o.URL+"/mcp", nil); got != "200 hello" || err != nil {
		t.Error(got, err)
	}
	put(t, v, vault.Credential{Kind: vault.Header, URL: o.URL + "/mcp", Header: "X-Api-Key", Secret: secret.New("k 1")})
	o.wants = "X-Api-Key: k 1"
	if got, err := send(t.Context(), trip, o.URL+"/mcp", nil); got != "200 hello" || err != nil || o.seen[len(o.seen)-1].Get("Authorization") != "" {
		t.Error(got, err)
	}
	// What the settings say goes before.
	if got, err := send(t.Context(), trip, o.URL+"/mcp", http.Header{"X-Api-Key": {"mine"}}); got != "401 " || err != nil {
		t.Error(got, err)
	}
	if ok, err := v.Delete(t.Context(), o.URL+"/mcp"); !ok || err != nil {
		t.Error(ok, err)
	}
	if got, err := send(t.Context(), trip, o.URL+"/mcp", nil); got != "401 " || err != nil || o.seen[len(o.seen)-1].Get("X-Api-Key") != "" {
		t.Error(got, err)
	}
	// Another path is another server.
	put(t, v, vault.Credential{Kind: vault.StaticBearer, URL: o.URL + "/other", Secret: secret.New("t")})
	o.wants = "Authorization: "
	if got, err := send(t.Context(), trip, o.URL+"/mcp", nil); got != "200 hello" || err != nil {
		t.Error(got, err)
	}
}

// A vault that can't be read is no empty one.
func TestLockedVault(t *testing.T) {
	o := newOffice(t)
	dir := t.TempDir()
	put(t, vaultIn(dir), vault.Credential{Kind: vault.StaticBearer, URL: o.URL + "/mcp", Secret: secret.New("t")})
	base := &http.Transport{DisableKeepAlives: true}
	v := vault.New(vault.Config{File: filepath.Join(dir, "v.age"), Key: sealed.KeyFile(filepath.Join(dir, "gone"))})
	_, err := send(t.Context(), NewKeys(v, nil, nil).Over(o.lock(base), base), o.URL+"/mcp", nil)
	if err == nil || !strings.Contains(err.Error(), "v.age") || len(o.seen) > 0 {
		t.Error(err, o.seen)
	}
}

// A token that has expired, or is refused, is renewed once, however many want it,
// here and in other processes; what that gave is in the vault.
func TestRenewal(t *testing.T) {
	for name, expiry := range map[string]time.Time{"expired": time.Now().Add(-time.Minute), "refused": time.Now().Add(time.Hour), "unknown": {}} {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t)
			dir := t.TempDir()
			base := &http.Transport{DisableKeepAlives: true}
			put(t, vaultIn(dir), o.oauth(expiry))
			o.wants = "Authorization: Bearer none yet"
			redactor := new(secret.Redactor)
			var all sync.WaitGroup
			for range 3 { // processes
				k := NewKeys(vault.New(vault.Config{File: filepath.Join(dir, "v.age"), Key: sealed.KeyFile(filepath.Join(dir, "v.key")), Redactor: redactor}), redactor, nil)
				trip := k.Over(o.lock(base), base)
				for range 3 {
					all.Go(func() {
						if got, err := send(t.Context(), trip, o.URL+"/mcp", nil); got != "200 hello" || err != nil {
							t.Error(got, err)
						}
					})
				}
			}
			all.Wait()
			if len(o.forms) != 1 {
				t.Fatalf("renewed %d times", len(o.forms))
			}
			if f := o.forms[0]; f.Get("client_id") != "me" || f.Get("client_secret") != "client-secret" || f.Get("resource") != o.URL+"/mcp" {
				t.Error(f)
			}
			c, _, err := vaultIn(dir).Lookup(t.Context(), o.URL+"/mcp")
			if err != nil || c.Secret.Reveal() != "access-1" || c.Refresh.Token.Reveal() != "refresh-1" || c.Expiry.Before(time.Now().Add(50*time.Minute)) {
				t.Error(err, c.Secret.Reveal(), c.Expiry)
			}
			if redactor.Redact("access-1 refresh-1") != secret.Mask+" "+secret.Mask {
				t.Error("the redactor does not know what came")
			}
		})
	}
}

// A refresh token that is used up is an error that says what to run.
func TestNoRenewal(t *testing.T) {
	o := newOffice(t)
	o.refuse = true
	v := vaultIn(t.TempDir())
	put(t, v, o.oauth(time.Now().Add(-time.Minute)))
	o.wants = "Authorization: Bearer none"
	base := &http.Transport{DisableKeepAlives: true}
	k := NewKeys(v, nil, nil)
	trip := k.Over(o.lock(base), base)
	_, err := send(t.Context(), trip, o.URL+"/mcp", nil)
	if err == nil || !strings.Contains(err.Error(), `run "crewhost vault set `+o.URL+`/mcp"`) || strings.Contains(err.Error(), "refresh-0") {
		t.Error(err)
	}
	// Somebody puts another one there.
	o.refuse = false
	put(t, vaultIn(filepath.Dir(v.Path())), o.oauth(time.Now().Add(-time.Minute)))
	k.vault = vaultIn(filepath.Dir(v.Path()))
	if got, err := send(t.Context(), k.Over(o.lock(base), base), o.URL+"/mcp", nil); got != "200 hello" {
		t.Error(got, err)
	}
}

// A8: a credential can be checked before a run.
func TestCheck(t *testing.T) {
	o := newOffice(t)
	base := &http.Transport{DisableKeepAlives: true}
	bearer := vault.Credential{Kind: vault.StaticBearer, URL: o.URL + "/mcp", Secret: secret.New("t")}
	lapsed := o.oauth(time.Now().Add(-time.Minute))
	lapsed.Refresh = nil
	for name, c := range map[string]struct {
		credential vault.Credential
		wants      string
		renewed    bool
		err        string
	}{
		"bearer":  {credential: bearer, wants: "Authorization: Bearer t"},
		"refused": {credential: bearer, wants: "Authorization: Bearer u", err: "the server does not take it: HTTP status 401"},
		"fresh":   {credential: o.oauth(time.Now().Add(time.Hour)), wants: "Authorization: Bearer access-0"},
		"expired": {credential: o.oauth(time.Now().Add(-time.Hour)), renewed: true},
		"revoked": {credential: o.oauth(time.Now().Add(time.Hour)), wants: "Authorization: Bearer other", renewed: true},
		"lapsed":  {credential: lapsed, err: "and nothing renews it"},
	} {
		t.Run(name, func(t *testing.T) {
			o.mu.Lock()
			o.wants, o.refresh, o.seen = c.wants, "refresh-0", nil
			o.mu.Unlock()
			v := vaultIn(t.TempDir())
			put(t, v, c.credential)
			k := NewKeys(v, nil, nil)
			got, err := k.Check(t.Context(), o.lock(base), base)
			if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) || got.Renewed != c.renewed {
				t.Errorf("%+v, %v", got, err)
			}
			if err == nil && c.credential.Kind == vault.OAuth && got.Valid.Before(time.Now()) {
				t.Error("valid until", got.Valid)
			}
			if errors.Is(err, ErrRefused) != (name == "refused") {
				t.Error(err)
			}
		})
	}
	if _, err := NewKeys(vaultIn(t.TempDir()), nil, nil).Check(t.Context(), o.lock(base), base); err == nil {
		t.Error("nothing was checked")
	}
}

// A8: what somebody puts into the vault while an older credential is being renewed is
// not written over by what that gave, and is what is sent from then on.
func TestRenewedTooLate(t *testing.T) {
	o := newOffice(t)
	dir := t.TempDir()
	base := &http.Transport{DisableKeepAlives: true}
	put(t, vaultIn(dir), o.oauth(time.Now().Add(-time.Minute)))
	o.wants = "Authorization: Bearer none yet"
	var warned []string
	k := NewKeys(vaultIn(dir), nil, func(line string) { warned = append(warned, line) })
	defer k.Close(time.Second)
	l := o.lock(roundTrip(func(req *http.Request) (*http.Response, error) { // to the token endpoint
		put(t, vaultIn(dir), vault.Credential{
			Kind: vault.OAuth, URL: o.URL + "/mcp", Secret: secret.New("access-of-another"),
			Refresh: &vault.Refresh{TokenEndpoint: o.URL + "/token", ClientID: "another", Token: secret.New("refresh-of-another")},
		})
		return base.RoundTrip(req)
	}))
	trip := k.Over(l, base)
	if got, err := send(t.Context(), trip, o.URL+"/mcp", nil); got != "200 hello" || err != nil {
		t.Error(got, err)
	}
	c, _, err := vaultIn(dir).Lookup(t.Context(), o.URL+"/mcp")
	if err != nil || c.Refresh.ClientID != "another" || c.Refresh.Token.Reveal() != "refresh-of-another" {
		t.Errorf("%v, the vault has %s of %s", err, c.Refresh.Token.Reveal(), c.Refresh.ClientID)
	}
	if len(warned) != 1 || !strings.Contains(warned[0], vault.ErrGone.Error()) {
		t.Errorf("warned of %q", warned)
	}
	o.wants = "Authorization: Bearer access-of-another"
	if got, err := send(t.Context(), trip, o.URL+"/mcp", nil); got != "200 hello" || err != nil {
		t.Error(got, err)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// A server that redirects each request to where a credential is bound makes the keys
// hold it once.
func TestHoldersAreFew(t *testing.T) {
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/start" {
			http.Redirect(rw, r, "/there", http.StatusTemporaryRedirect)
			return
		}
		hello(rw, r)
	})
	put(t, w.vault, vault.Credential{
		Kind: vault.OAuth, URL: "https://example.com/there", Secret: secret.New("access"), Expiry: time.Now().Add(time.Hour),
		Refresh: &vault.Refresh{TokenEndpoint: "https://example.com/token", ClientID: "me", Token: secret.New("refresh")},
	})
	g := w.gateway(nil)
	entry := g.Enter("run", brought("notes", "https://example.com/start"))
	for range 3 {
		if got, err := w.ask(g, entry); got != "200 hello" {
			t.Fatal(got, err)
		}
	}
	if requests, _ := w.took(); requests[len(requests)-1].Header.Get("Authorization") != "Bearer access" {
		t.Error(requests[len(requests)-1].Header)
	}
	if n := len(g.cfg.Keys.holders); n != 1 {
		t.Errorf("%d hold it", n)
	}
}
