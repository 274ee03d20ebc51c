package oauth

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"crewhost/config"
	"crewhost/config/secret"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A world is an MCP server that takes tokens, and its authorization server, at
// one origin each.
type world struct {
	t    *testing.T
	mcp  *httptest.Server
	auth *httptest.Server

	mu sync.Mutex

	// How they behave.
	scopes      []string   // in the challenge of 401
	need        string     // a scope that requests need, by 403
	expires     any        // of a token, as it is written
	noRefresh   bool       // gives no refresh token
	rotate      bool       // a refresh token is good for one use
	methods     []string   // of authentication at the token endpoint
	iss         string     // of answers
	promisesIss bool       // in the metadata
	wrong       url.Values // of the redirect, over what is right
	resource    string     // in the metadata, if not the server's URL
	silent      bool       // no WWW-Authenticate
	issuer      string     // in the metadata, if not the server's own
	meta        func(http.ResponseWriter, *http.Request) bool
	token       func(http.ResponseWriter, *http.Request) bool

	// What they know.
	valid    map[string][]string // access tokens and their scopes
	refresh  map[string]bool
	codes    map[string]url.Values // codes and what they were asked with
	serial   int
	requests []string // of the authorization server: method and path
	tokens   []url.Values
	headers  []http.Header // of token requests
	bodies   []string      // that the MCP server took
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, valid: map[string][]string{}, refresh: map[string]bool{}, codes: map[string]url.Values{}, expires: 3600}
	mux := http.NewServeMux()
	mux.HandleFunc("/mcp", w.serve)
	mux.HandleFunc("/.well-known/oauth-protected-resource/mcp", func(rw http.ResponseWriter, r *http.Request) {
		resource := w.resource
		if resource == "" {
			resource = w.mcp.URL + "/mcp"
		}
		answerJSON(rw, 200, map[string]any{"resource": resource, "authorization_servers": []string{w.auth.URL}, "scopes_supported": []string{"a", "b"}})
	})
	w.mcp = httptest.NewServer(mux)
	t.Cleanup(w.mcp.Close)
	w.auth = httptest.NewServer(http.HandlerFunc(w.authorize))
	t.Cleanup(w.auth.Close)
	return w
}

func answerJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

// serve is the MCP server.
func (w *world) serve(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	scopes, ok := w.valid[token]
	challenge := fmt.Sprintf(`Bearer resource_metadata="%s/.well-known/oauth-protected-resource/mcp"`, w.mcp.URL)
	switch {
	case !ok:
		if len(w.scopes) > 0 {
			challenge += `, scope="` + strings.Join(w.scopes, " ") + `"`
		}
		if !w.silent {
			rw.Header().Set("WWW-Authenticate", challenge)
		}
		rw.WriteHeader(http.StatusUnauthorized)
	case w.need != "" && !slices.Contains(scopes, w.need):
		rw.Header().Set("WWW-Authenticate", challenge+`, error="insufficient_scope", scope="`+w.need+`"`)
		rw.WriteHeader(http.StatusForbidden)
	default:
		w.bodies = append(w.bodies, string(body))
		_, _ = io.WriteString(rw, "hello")
	}
}

// authorize is the authorization server.
func (w *world) authorize(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.requests = append(w.requests, r.Method+" "+r.URL.Path)
	_ = r.ParseForm()
	switch r.URL.Path {
	case "/.well-known/oauth-authorization-server":
		if w.meta != nil && w.meta(rw, r) {
			return
		}
		issuer := w.issuer
		if issuer == "" {
			issuer = w.auth.URL
		}
		answerJSON(rw, 200, map[string]any{
			"issuer": issuer, "authorization_endpoint": w.auth.URL + "/authorize", "token_endpoint": w.auth.URL + "/token",
			"registration_endpoint": w.auth.URL + "/register", "code_challenge_methods_supported": []string{"S256"},
			"token_endpoint_auth_methods_supported": w.methods, "authorization_response_iss_parameter_supported": w.promisesIss,
			"scopes_supported": []string{"offline_access"},
		})
	case "/register":
		w.serial++
		answer := map[string]any{"client_id": fmt.Sprintf("client-%d", w.serial), "redirect_uris": []string{}}
		if len(w.methods) > 0 {
			answer["client_secret"], answer["token_endpoint_auth_method"] = "registered-secret", w.methods[0]
		}
		answerJSON(rw, 201, answer)
	case "/authorize":
		w.serial++
		code := fmt.Sprintf("code-%d", w.serial)
		w.codes[code] = r.Form
		q := url.Values{"code": {code}, "state": {r.Form.Get("state")}}
		if w.iss != "" {
			q.Set("iss", w.iss)
		}
		for k, v := range w.wrong {
			q[k] = v
			if v[0] == "" {
				q.Del(k)
			}
		}
		http.Redirect(rw, r, r.Form.Get("redirect_uri")+"?"+q.Encode(), http.StatusFound)
	case "/token":
		w.tokens, w.headers = append(w.tokens, r.PostForm), append(w.headers, r.Header)
		if w.token == nil || !w.token(rw, r) {
			w.give(rw, r.PostForm)
		}
	default:
		http.NotFound(rw, r)
	}
}

// give gives a token, if the request is right.
func (w *world) give(rw http.ResponseWriter, f url.Values) {
	scope := f.Get("scope")
	refuse := func(code string) {
		answerJSON(rw, 400, map[string]string{"error": code, "error_description": "no \x1b[31mway"})
	}
	switch f.Get("grant_type") {
	case "authorization_code":
		asked, ok := w.codes[f.Get("code")]
		sum := sha256.Sum256([]byte(f.Get("code_verifier")))
		if !ok || asked.Get("code_challenge") != base64.RawURLEncoding.EncodeToString(sum[:]) || asked.Get("redirect_uri") != f.Get("redirect_uri") {
			refuse("invalid_grant")
			return
		}
		delete(w.codes, f.Get("code"))
		scope = asked.Get("scope")
	case "refresh_token":
		if !w.refresh[f.Get("refresh_token")] {
			refuse("invalid_grant")
			return
		}
		if w.rotate {
			delete(w.refresh, f.Get("refresh_token"))
		}
		scope = "a"
	case "client_credentials":
	case "urn:ietf:params:oauth:grant-type:jwt-bearer":
		if f.Get("assertion") != "vouched-for" {
			refuse("invalid_grant")
			return
		}
	default:
		refuse("unsupported_grant_type")
		return
	}
	w.serial++
	access := fmt.Sprintf("access-token-%d", w.serial)
	w.valid[access] = strings.Fields(scope)
	answer := map[string]any{"access_token": access, "token_type": "bearer", "expires_in": w.expires, "scope": scope}
	if !w.noRefresh && f.Get("grant_type") != "client_credentials" && f.Get("assertion") == "" {
		answer["refresh_token"] = fmt.Sprintf("refresh-token-%d", w.serial)
		w.refresh[answer["refresh_token"].(string)] = true
	}
	answerJSON(rw, 200, answer)
}

// forget makes all access tokens invalid.
func (w *world) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.valid = map[string][]string{}
}

// browse is a person whose browser follows every redirect.
func (w *world) browse(ctx context.Context, u string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u, nil)
	if err != nil {
		return err
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err == nil {
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}
	return err
}

// authorizer has the tokens of the server.
func (w *world) authorizer(edit func(*Config)) *Authorizer {
	w.t.Helper()
	base := &http.Transport{DisableKeepAlives: true}
	cfg := Config{
		Name: "notes", URL: w.mcp.URL + "/mcp", Store: new(Memory), Redactor: new(secret.Redactor), Base: base,
		Secrets: []secret.Source{secret.Env{"SECRET=secret-of-client"}}, ClientName: "test",
	}
	if edit != nil {
		edit(&cfg)
	}
	t, err := New(cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	return t
}

// post sends one request and returns status and body, or the error.
func post(t *testing.T, a *Authorizer, u string) (string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, u, strings.NewReader("message"))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := a.Over(a.cfg.Base).RoundTrip(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%d %s", resp.StatusCode, body), nil
}

func (w *world) post(a *Authorizer) (string, error) { return post(w.t, a, w.mcp.URL+"/mcp") }

func unattended(edit func(*config.OAuth)) *config.OAuth {
	o := &config.OAuth{
		Grant: config.GrantClientCredentials, ClientID: secret.Literal("robot"),
		ClientSecret: secret.Ref{Source: secret.FromEnv, Name: "SECRET"},
	}
	if edit != nil {
		edit(o)
	}
	return o
}
