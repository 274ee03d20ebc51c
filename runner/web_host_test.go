package runner_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"crewhost/config/secret"
	"crewhost/config/secret/sealed"
	"crewhost/config/vault"
	"crewhost/runner"
	"crewhost/tools/audit"
)

// services are a search engine, GitHub and an API that wants tokens of an hour, all of
// which say back what they are told.
type services struct {
	*httptest.Server
	mu     sync.Mutex
	access string   // the token that the API wants now
	seen   []string // path, Authorization
}

func newServices(t *testing.T) *services {
	t.Helper()
	s := &services{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		auth := r.Header.Get("Authorization")
		s.seen = append(s.seen, r.URL.Path+" "+auth)
		switch {
		case r.URL.Path == "/engine/search":
			fmt.Fprintf(w, `{"results":[{"title":"you are %s","url":"https://example.org/","content":"%s"}]}`, auth, auth)
		case r.URL.Path == "/away/search":
			http.Redirect(w, r, strings.Replace(s.URL, "127.0.0.1", "localhost", 1)+"/engine/search", http.StatusTemporaryRedirect)
		case r.URL.Path == "/hub/repos/o/r":
			fmt.Fprintf(w, `{"full_name":"o/r","description":"seen by %s"}`, auth)
		case r.URL.Path == "/token":
			s.access = "canary-access-1"
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"access_token":%q,"token_type":"Bearer","expires_in":3600,"refresh_token":"canary-refresh-1"}`, s.access)
		case strings.HasPrefix(r.URL.Path, "/api"):
			if auth != "Bearer "+s.access {
				w.WriteHeader(http.StatusUnauthorized)
			}
			fmt.Fprintf(w, "hello, %s", auth)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// took returns the requests since it was last asked.
func (s *services) took() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := s.seen
	s.seen = nil
	return seen
}

// A7, A8: what the settings name for the tools may be near; what a model names may not.
// Their credentials go there and nowhere else, tokens that have expired are renewed, and
// nobody sees one, even where it is said back.
func TestWebToolsOfAHost(t *testing.T) {
	s := newServices(t)
	keys := t.TempDir()
	v := vault.New(vault.Config{File: filepath.Join(keys, "vault.age"), Key: sealed.KeyFile(filepath.Join(keys, "vault.key"))})
	for _, c := range []vault.Credential{
		{Name: "hub", Kind: vault.StaticBearer, URL: s.URL + "/hub", Secret: secret.New("canary-hub")},
		{Name: "api", Kind: vault.OAuth, URL: s.URL + "/api", Secret: secret.New("canary-access-0"), Expiry: time.Now().Add(-time.Hour),
			Refresh: &vault.Refresh{TokenEndpoint: s.URL + "/token", ClientID: "me", Token: secret.New("canary-refresh-0")}},
	} {
		if _, err := v.Set(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	host := func(t *testing.T, more string) *rig {
		return open(t, map[string]string{"crewhost.yaml": fmt.Sprintf(
			"llm: {provider: echo}\npermissions: {default: allow}\naudit: {file: audit.jsonl}\nvault: {file: %q, key: {file: %q}}\n%s\n",
			filepath.Join(keys, "vault.age"), filepath.Join(keys, "vault.key"), more)},
			func(cfg *runner.Config) { cfg.Environ = append(cfg.Environ, "ENGINE_KEY=canary-engine") })
	}
	near := func(engine, credential string) string {
		return fmt.Sprintf("tools: {web: {credentials: [api, nobody]}, web_search: {provider: tavily, url: '%s', api_key: '${ENGINE_KEY}'}, github: {url: '%s/hub', credential: %s}}",
			s.URL+engine, s.URL, credential)
	}
	r := host(t, near("/engine", "hub"))
	call := func(r *rig, tool, arguments string, fails bool, parts ...string) {
		t.Helper()
		text, failed := said(t, r.host, tool, arguments)
		if failed != fails || strings.Contains(text, "canary") {
			t.Errorf("%s %s: failed %t, %s", tool, arguments, failed, text)
		}
		for _, p := range parts {
			if !strings.Contains(text, p) {
				t.Errorf("%s %s: %s\nwant %q", tool, arguments, text, p)
			}
		}
	}
	call(r, "web_search", `{"query":"x"}`, false, "you are Bearer "+secret.Mask)
	call(r, "github", `{"action":"get_repo","repo":"o/r"}`, false, "seen by Bearer "+secret.Mask)
	for _, address := range []string{s.URL + "/engine/search", s.URL + "/api", strings.Replace(s.URL, "127.0.0.1", "localhost", 1) + "/hub"} {
		call(r, "http_api", `{"url":"`+address+`"}`, true, "the gateway does not admit it: its address is on loopback", "mcp.gateway.allow")
		call(r, "web_scrape", `{"url":"`+address+`"}`, true, "on loopback")
	}
	if got := s.took(); !slices.Equal(got, []string{"/engine/search Bearer canary-engine", "/hub/repos/o/r Bearer canary-hub"}) {
		t.Errorf("sent %q", got)
	}

	// Elsewhere than it says, an engine sends nobody; nor is another's credential sent.
	r = host(t, near("/away", "api"))
	call(r, "web_search", `{"query":"x"}`, true, "HTTP 307")
	call(r, "github", `{"action":"get_repo","repo":"o/r"}`, true, `the credential "api", which the settings name for it, is bound to another URL`)
	r = host(t, near("/away", "nobody"))
	call(r, "github", `{"action":"get_repo","repo":"o/r"}`, true, `the vault has no credential "nobody"`)
	if got := s.took(); !slices.Equal(got, []string{"/away/search Bearer canary-engine"}) {
		t.Errorf("sent %q", got)
	}

	// A token that has expired is renewed before it is sent.
	r = host(t, near("/engine", "hub")+"\nmcp: {gateway: {allow: [127.0.0.1]}}")
	call(r, "http_api", `{"url":"`+s.URL+`/api/items","headers":{"Authorization":"Bearer YOUR_TOKEN"}}`, false, "hello, Bearer "+secret.Mask)
	call(r, "web_scrape", `{"url":"`+s.URL+`/api"}`, false, "hello, Bearer "+secret.Mask)
	if got := s.took(); !slices.Equal(got, []string{"/token ", "/api/items Bearer canary-access-1", "/api Bearer canary-access-1"}) {
		t.Errorf("sent %q", got)
	}
	// Both requests are on record, with their calls.
	var got []string
	for _, rec := range records(t, filepath.Join(r.dir, "audit.jsonl")) {
		if q := rec.Request; rec.Kind == audit.Forward {
			got = append(got, fmt.Sprintf("%s %s %s %s/%s %d %s %t", rec.Tool, q.Method, strings.TrimPrefix(q.Origin, s.URL), q.Credential, q.Kind, q.Status, rec.Outcome, rec.ID != ""))
		}
	}
	if want := []string{"http_api GET  api/mcp_oauth 200 answered true", "web_scrape GET  api/mcp_oauth 200 answered true"}; !slices.Equal(got, want) {
		t.Errorf("on record are %q", got)
	}
}
