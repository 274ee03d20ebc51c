package mcptest

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// ProtectedSecret is the client secret that a protected server takes, of any client.
const ProtectedSecret = "secret-of-the-client"

// ProtectedHTTP starts a Standard server over HTTP that wants OAuth, and is its
// own authorization server, and returns its URL. It ends with the test.
func ProtectedHTTP(t testing.TB, flags ...string) string {
	t.Helper()
	next, err := Handler(flags...)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(Protect(next))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server.URL + "/mcp"
}

// Protect returns next for those who have a token, and beside it an authorization
// server that gives tokens: to whoever comes with a browser, and to every client
// with [ProtectedSecret]. It speaks of itself by the host that it is called at.
func Protect(next http.Handler) http.Handler {
	p := &protected{next: next, codes: map[string]url.Values{}, tokens: map[string]bool{}}
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/oauth-protected-resource/", p.resource)
	mux.HandleFunc("/.well-known/oauth-authorization-server", p.metadata)
	mux.HandleFunc("POST /register", p.register)
	mux.HandleFunc("GET /authorize", p.authorize)
	mux.HandleFunc("POST /token", p.token)
	mux.HandleFunc("/", p.serve)
	return mux
}

type protected struct {
	next http.Handler

	mu     sync.Mutex
	codes  map[string]url.Values // and what they were asked with
	tokens map[string]bool       // of access, and to refresh
}

func (p *protected) serve(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	ok := p.tokens[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
	p.mu.Unlock()
	if !ok {
		w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="http://`+r.Host+`/.well-known/oauth-protected-resource`+r.URL.Path+`"`)
		http.Error(w, "who are you?", http.StatusUnauthorized)
		return
	}
	p.next.ServeHTTP(w, r)
}

func (p *protected) resource(w http.ResponseWriter, r *http.Request) {
	origin := "http://" + r.Host
	reply(w, http.StatusOK, map[string]any{
		"resource":              origin + strings.TrimPrefix(r.URL.Path, "/.well-known/oauth-protected-resource"),
		"authorization_servers": []string{origin},
	})
}

func (p *protected) metadata(w http.ResponseWriter, r *http.Request) {
	origin := "http://" + r.Host
	reply(w, http.StatusOK, map[string]any{
		"issuer":                           origin,
		"authorization_endpoint":           origin + "/authorize",
		"token_endpoint":                   origin + "/token",
		"registration_endpoint":            origin + "/register",
		"code_challenge_methods_supported": []string{"S256"},
	})
}

func (p *protected) register(w http.ResponseWriter, _ *http.Request) {
	reply(w, http.StatusCreated, map[string]any{"client_id": "registered-" + rand.Text()})
}

func (p *protected) authorize(w http.ResponseWriter, r *http.Request) {
	asked, code := r.URL.Query(), rand.Text()
	p.mu.Lock()
	p.codes[code] = asked
	p.mu.Unlock()
	back := url.Values{"code": {code}, "state": {asked.Get("state")}}
	http.Redirect(w, r, asked.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
}

func (p *protected) token(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	ok := false
	switch r.FormValue("grant_type") {
	case "authorization_code":
		asked := p.codes[r.FormValue("code")]
		delete(p.codes, r.FormValue("code"))
		sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
		ok = asked.Get("code_challenge") == base64.RawURLEncoding.EncodeToString(sum[:])
	case "refresh_token":
		ok = p.tokens[r.FormValue("refresh_token")]
	case "client_credentials":
		_, secret, _ := r.BasicAuth()
		ok = secret == ProtectedSecret
	}
	if !ok {
		reply(w, http.StatusBadRequest, map[string]any{"error": "invalid_grant"})
		return
	}
	access, refresh := "access-"+rand.Text(), "refresh-"+rand.Text()
	p.tokens[access], p.tokens[refresh] = true, true
	reply(w, http.StatusOK, map[string]any{"access_token": access, "token_type": "Bearer", "expires_in": 3600, "refresh_token": refresh})
}

func reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // who asked is gone, or there
}
