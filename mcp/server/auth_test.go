package server_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"crewhost/mcp/server"
)

// Bearer tokens: several, each with its name, and nobody without.
func TestBearerTokens(t *testing.T) {
	w := serveHTTP(t, server.HTTPConfig{Tokens: []server.Token{
		server.NewToken("a", "token-of-somebody-a"), server.NewToken("b", "token-of-somebody-b"),
	}}, server.Budgets{})
	for _, tt := range []struct {
		name, header string
		status       int
		challenge    string
	}{
		{"a", "Bearer token-of-somebody-a", 200, ""},
		{"b, in another case", "BEARER   token-of-somebody-b", 200, ""},
		{"none", "", 401, `Bearer realm="mcp"`},
		{"another", "Bearer token-of-somebody-c", 401, `error="invalid_token"`},
		{"a part", "Bearer token-of-somebody", 401, `error="invalid_token"`},
		{"more", "Bearer token-of-somebody-aa", 401, `error="invalid_token"`},
		{"a name", "Bearer a", 401, `error="invalid_token"`},
		{"nothing", "Bearer", 401, `error="invalid_token"`},
		{"basic", "Basic dG9rZW4tb2Ytc29tZWJvZHktYQ==", 401, "Bearer"},
		{"two in one", "Bearer token-of-somebody-a, Bearer token-of-somebody-b", 401, "invalid_token"},
		{"large", "Bearer " + strings.Repeat("a", 20_000), 401, "invalid_token"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := w.ask("tools/list", "", "Authorization", tt.header)
			if got := g.header.Get("WWW-Authenticate"); g.status != tt.status || !strings.Contains(got, tt.challenge) || (got == "") != (tt.status == 200) {
				t.Errorf("got %d, %q: %s", g.status, got, g.body)
			}
			if tt.status != 200 && g.code() != server.CodeUnauthorized {
				t.Errorf("the body is %s", g.body)
			}
		})
	}
	if g := w.ask("tools/list", "", "Authorization", "Bearer token-of-somebody-a", "Authorization", "Bearer token-of-somebody-a"); g.status != http.StatusBadRequest {
		t.Errorf("two headers: %d", g.status)
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		g, err := w.try(t.Context(), http.MethodGet, strings.TrimSuffix(w.url, "/mcp")+path, nil, "Host", "probe.example", "Origin", "https://any.example")
		if err != nil || g.status != http.StatusOK || g.body != "ok\n" || g.header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: %+v %v", path, g, err)
		}
	}
}

// issuer is an authorization server, as far as its keys go.
type issuer struct {
	*httptest.Server
	mu      sync.Mutex
	keys    []map[string]any
	broken  bool
	fetched atomic.Int32
}

func newIssuer(t *testing.T) *issuer {
	i := new(issuer)
	i.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i.mu.Lock()
		defer i.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		switch {
		case i.broken:
			http.Error(w, "broken", http.StatusInternalServerError)
		case r.URL.Path == "/jwks":
			i.fetched.Add(1)
			_ = json.NewEncoder(w).Encode(map[string]any{"keys": i.keys})
		case r.URL.Path == "/.well-known/oauth-authorization-server":
			_ = json.NewEncoder(w).Encode(map[string]any{
				"issuer": i.URL, "jwks_uri": i.URL + "/jwks", "authorization_endpoint": i.URL + "/authorize", "token_endpoint": i.URL + "/token",
				"response_types_supported": []string{"code"}, "code_challenge_methods_supported": []string{"S256"},
			})
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(i.Close)
	return i
}

func b64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// publish adds a key to the issuer's.
func (i *issuer) publish(t *testing.T, kid string, key crypto.Signer) {
	t.Helper()
	k := map[string]any{"kid": kid, "use": "sig"}
	switch public := key.Public().(type) {
	case *rsa.PublicKey:
		k["kty"], k["n"], k["e"] = "RSA", b64(public.N.Bytes()), b64(big.NewInt(int64(public.E)).Bytes())
	case *ecdsa.PublicKey:
		point, err := public.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		k["kty"], k["crv"], k["x"], k["y"] = "EC", "P-256", b64(point[1:33]), b64(point[33:])
	case ed25519.PublicKey:
		k["kty"], k["crv"], k["x"] = "OKP", "Ed25519", b64(public)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.keys = append(i.keys, k)
}

func sign(t *testing.T, method jwt.SigningMethod, key any, kid string, claims jwt.MapClaims) string {
	t.Helper()
	token := jwt.NewWithClaims(method, claims)
	if kid != "" {
		token.Header["kid"] = kid
	}
	text, err := token.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// A question is answered by whoever was asked, and by nobody else who got to know its
// state, be it the same tool that they call.
func TestQuestionsAreOfWhoeverWasAsked(t *testing.T) {
	const a, b = "Bearer token-of-somebody-a", "Bearer token-of-somebody-b"
	w := serveHTTP(t, server.HTTPConfig{Tokens: []server.Token{
		server.NewToken("a", "token-of-somebody-a"), server.NewToken("b", "token-of-somebody-b"),
	}}, server.Budgets{})
	call := func(token, more string) got {
		body := strings.Replace(modernRequest("tools/call", `"name":"ask"`+more), `clientCapabilities":{}`, `clientCapabilities":{"elicitation":{"form":{}}}`, 1)
		return w.send(http.MethodPost, body, append(modernHeaders("tools/call", `"name":"ask"`), "Authorization", token)...)
	}
	var asked struct{ Result struct{ RequestState string } }
	if err := json.Unmarshal([]byte(call(a, "").message()), &asked); err != nil || asked.Result.RequestState == "" {
		t.Fatal(asked, err)
	}
	answer := `,"requestState":"` + asked.Result.RequestState + `","inputResponses":{"q1":{"action":"accept","content":{"word":"stolen"}}}`
	if g := call(b, answer); g.code() != -32602 || strings.Contains(g.body, "stolen") {
		t.Errorf("another answers: %d %s", g.status, g.body)
	}
	if g := call(a, strings.Replace(answer, "stolen", "mine", 1)); !strings.Contains(g.body, `"text":"mine"`) {
		t.Errorf("whoever was asked answers: %d %s", g.status, g.body)
	}
}

// A subject and a client of one issuer that are called the same are two callers.
func TestSubjectsAreNotClients(t *testing.T) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	i := newIssuer(t)
	i.publish(t, "k", key)
	w := serveHTTP(t, server.HTTPConfig{OAuth: &server.ProtectedResource{
		Resource: "https://mcp.example/mcp", Issuers: []server.Issuer{{URL: i.URL, JWKS: i.URL + "/jwks"}},
	}}, server.Budgets{})
	named := func(claim string) string {
		return "Bearer " + sign(t, jwt.SigningMethodEdDSA, key, "k", jwt.MapClaims{
			"iss": i.URL, "aud": "https://mcp.example/mcp", "exp": time.Now().Add(time.Hour).Unix(), claim: "robot",
		})
	}
	call := func(token, more string) got {
		body := strings.Replace(modernRequest("tools/call", `"name":"ask"`+more), `clientCapabilities":{}`, `clientCapabilities":{"elicitation":{"form":{}}}`, 1)
		return w.send(http.MethodPost, body, append(modernHeaders("tools/call", `"name":"ask"`), "Authorization", token)...)
	}
	var asked struct{ Result struct{ RequestState string } }
	if err := json.Unmarshal([]byte(call(named("client_id"), "").message()), &asked); err != nil || asked.Result.RequestState == "" {
		t.Fatal(asked, err)
	}
	answer := `,"requestState":"` + asked.Result.RequestState + `","inputResponses":{"q1":{"action":"accept","content":{"word":"mine"}}}`
	if g := call(named("sub"), answer); g.code() != -32602 {
		t.Errorf("a subject answers: %d %s", g.status, g.body)
	}
	if g := call(named("azp"), answer); !strings.Contains(g.body, `"text":"mine"`) { // the other word for a client
		t.Errorf("the client answers: %d %s", g.status, g.body)
	}
}

// OAuth: a token of an issuer that is trusted, for this resource, of this time,
// signed with a key of that issuer, and with the scopes.
func TestOAuthTokens(t *testing.T) {
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	ecKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	_, edKey, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	i, other := newIssuer(t), newIssuer(t)
	i.publish(t, "r", rsaKey)
	i.publish(t, "e", ecKey)
	i.publish(t, "d", edKey)
	const resource = "https://mcp.example/team/mcp"
	w := serveHTTP(t, server.HTTPConfig{
		OAuth: &server.ProtectedResource{
			Resource: resource, Scopes: []string{"tools", "read"},
			Issuers: []server.Issuer{{URL: i.URL, JWKS: i.URL + "/jwks"}, {URL: other.URL}},
		},
		Tokens: []server.Token{server.NewToken("ci", goodToken)},
	}, server.Budgets{})
	claims := func(changes jwt.MapClaims) jwt.MapClaims {
		c := jwt.MapClaims{"iss": i.URL, "aud": []string{"x", resource}, "sub": "someone", "exp": time.Now().Add(time.Hour).Unix(), "scope": "read tools more"}
		for k, v := range changes {
			if c[k] = v; v == nil {
				delete(c, k)
			}
		}
		return c
	}
	good := sign(t, jwt.SigningMethodRS256, rsaKey, "r", claims(nil))
	unsigned, err := jwt.NewWithClaims(jwt.SigningMethodNone, claims(nil)).SignedString(jwt.UnsafeAllowNoneSignatureType)
	if err != nil {
		t.Fatal(err)
	}
	critical := jwt.NewWithClaims(jwt.SigningMethodRS256, claims(nil))
	critical.Header["kid"], critical.Header["crit"] = "r", []string{"b64"}
	withCritical, err := critical.SignedString(rsaKey)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	for _, tt := range []struct {
		name, token string
		status      int
		challenge   string
	}{
		{"RS256", good, 200, ""},
		{"PS256", sign(t, jwt.SigningMethodPS256, rsaKey, "r", claims(nil)), 200, ""},
		{"ES256", sign(t, jwt.SigningMethodES256, ecKey, "e", claims(nil)), 200, ""},
		{"EdDSA", sign(t, jwt.SigningMethodEdDSA, edKey, "d", claims(nil)), 200, ""},
		{"no kid, and one key", sign(t, jwt.SigningMethodES256, ecKey, "", claims(nil)), 200, ""},
		{"one audience", sign(t, jwt.SigningMethodES256, ecKey, "e", claims(jwt.MapClaims{"aud": resource})), 200, ""},
		{"scopes in a list", sign(t, jwt.SigningMethodES256, ecKey, "e", claims(jwt.MapClaims{"scope": nil, "scp": []string{"tools", "read"}})), 200, ""},
		{"a client", sign(t, jwt.SigningMethodES256, ecKey, "e", claims(jwt.MapClaims{"sub": nil, "client_id": "robot"})), 200, ""},
		{"late within the leeway", sign(t, jwt.SigningMethodES256, ecKey, "e", claims(jwt.MapClaims{"exp": now.Add(-10 * time.Second).Unix()})), 200, ""},
		{"a named token", goodToken, 200, ""},

		{"none", unsigned, 401, "invalid_token"},
		{"HS256 with the public key", sign(t, jwt.SigningMethodHS256, rsaKey.N.Bytes(), "r", claims(nil)), 401, "invalid_token"},
		{"RS512", sign(t, jwt.SigningMethodRS512, rsaKey, "r", claims(nil)), 401, "invalid_token"},
		{"the wrong key", sign(t, jwt.SigningMethodES256, ecKey, "r", claims(nil)), 401, "invalid_token"},
		{"an unknown key", sign(t, jwt.SigningMethodES256, ecKey, "zzz", claims(nil)), 401, "invalid_token"},
		{"another issuer", sign(t, jwt.SigningMethodRS256, rsaKey, "r", claims(jwt.MapClaims{"iss": "https://evil.example"})), 401, "invalid_token"},
		{"no issuer", sign(t, jwt.SigningMethodRS256, rsaKey, "r", claims(jwt.MapClaims{"iss": nil})), 401, "invalid_token"},
		{"another audience", sign(t, jwt.SigningMethodRS256, rsaKey, "r", claims(jwt.MapClaims{"aud": resource + "/x"})), 401, "for another resource"},
		{"no audience", sign(t, jwt.SigningMethodRS256, rsaKey, "r", claims(jwt.MapClaims{"aud": nil})), 401, "invalid_token"},
		{"expired", sign(t, jwt.SigningMethodRS256, rsaKey, "r", claims(jwt.MapClaims{"exp": now.Add(-time.Hour).Unix()})), 401, "has expired"},
		{"without end", sign(t, jwt.SigningMethodRS256, rsaKey, "r", claims(jwt.MapClaims{"exp": nil})), 401, "invalid_token"},
		{"not yet", sign(t, jwt.SigningMethodRS256, rsaKey, "r", claims(jwt.MapClaims{"nbf": now.Add(time.Hour).Unix()})), 401, "invalid_token"},
		{"nobody's", sign(t, jwt.SigningMethodRS256, rsaKey, "r", claims(jwt.MapClaims{"sub": nil})), 401, "whose it is"},
		{"someone with a strange name", sign(t, jwt.SigningMethodRS256, rsaKey, "r", claims(jwt.MapClaims{"sub": "a\nb"})), 401, "whose it is"},
		{"critical headers", withCritical, 401, "invalid_token"},
		{"changed", good[:len(good)-4] + "AAAA", 401, "invalid_token"},
		{"no JWT", "aaaa.bbbb.cccc", 401, "invalid_token"},
		{"too few scopes", sign(t, jwt.SigningMethodRS256, rsaKey, "r", claims(jwt.MapClaims{"scope": "tools"})), 403, "insufficient_scope"},
		{"no scopes", sign(t, jwt.SigningMethodRS256, rsaKey, "r", claims(jwt.MapClaims{"scope": nil})), 403, "insufficient_scope"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := w.ask("tools/list", "", "Authorization", "Bearer "+tt.token)
			challenge := g.header.Get("WWW-Authenticate")
			if g.status != tt.status || !strings.Contains(challenge, tt.challenge) {
				t.Fatalf("got %d, %q: %s", g.status, challenge, g.body)
			}
			if tt.status == 200 {
				return
			}
			for _, want := range []string{`resource_metadata="https://mcp.example/.well-known/oauth-protected-resource/team/mcp"`, `scope="tools read"`} {
				if !strings.Contains(challenge, want) {
					t.Errorf("the challenge %s has no %s", challenge, want)
				}
			}
		})
	}
	if n := i.fetched.Load(); n != 1 {
		t.Errorf("keys were read %d times: who names unknown ones has them read again and again", n)
	}
	if g := w.ask("tools/call", `"name":"whoami"`, "Authorization", "Bearer "+good); g.status != http.StatusOK {
		t.Errorf("%d %s", g.status, g.body)
	} else if who := <-w.callers; who != "someone" {
		t.Errorf("the caller is %q", who)
	}
	if log := w.log.String(); strings.Contains(log, good[:40]) {
		t.Error("a token is in the log")
	}

	// The metadata, for those who don't know yet.
	for _, path := range []string{"", "/mcp", "/team/mcp"} {
		g, err := w.try(t.Context(), http.MethodGet, strings.TrimSuffix(w.url, "/mcp")+"/.well-known/oauth-protected-resource"+path, nil)
		want := `{"resource":"` + resource + `","authorization_servers":["` + i.URL + `","` + other.URL + `"],"scopes_supported":["tools","read"],"bearer_methods_supported":["header"]}`
		if err != nil || g.status != http.StatusOK || strings.TrimSpace(g.body) != want {
			t.Errorf("metadata at %q: %d %s %v", path, g.status, g.body, err)
		}
	}

	// The other issuer says in its metadata where its keys are.
	fromOther := sign(t, jwt.SigningMethodEdDSA, edKey, "d", claims(jwt.MapClaims{"iss": other.URL}))
	other.mu.Lock()
	other.broken = true
	other.mu.Unlock()
	if g := w.ask("tools/list", "", "Authorization", "Bearer "+fromOther); g.status != http.StatusServiceUnavailable || g.header.Get("Retry-After") == "" {
		t.Errorf("while its keys can't be read: %d %s", g.status, g.body)
	}
}

// An issuer's metadata says where its keys are.
func TestOAuthMetadataOfIssuer(t *testing.T) {
	_, one, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	i := newIssuer(t)
	i.publish(t, "one", one)
	w := serveHTTP(t, server.HTTPConfig{OAuth: &server.ProtectedResource{Resource: "https://mcp.example", Issuers: []server.Issuer{{URL: i.URL}}}}, server.Budgets{})
	token := sign(t, jwt.SigningMethodEdDSA, one, "one", jwt.MapClaims{"iss": i.URL, "aud": "https://mcp.example", "sub": "x", "exp": time.Now().Add(time.Hour).Unix()})
	for range 3 {
		if g := w.ask("tools/list", "", "Authorization", "Bearer "+token); g.status != http.StatusOK {
			t.Fatalf("%d %s\n%s", g.status, g.body, w.log)
		}
	}
	if n := i.fetched.Load(); n != 1 {
		t.Errorf("keys were read %d times", n)
	}
}

// A stream ends with the token that it was opened with.
func TestOAuthStreamEndsWithToken(t *testing.T) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	i := newIssuer(t)
	i.publish(t, "k", key)
	w := serveHTTP(t, server.HTTPConfig{OAuth: &server.ProtectedResource{
		Resource: "https://mcp.example", Issuers: []server.Issuer{{URL: i.URL, JWKS: i.URL + "/jwks"}}, Leeway: time.Millisecond,
	}}, server.Budgets{})
	token := func(expires time.Time) string {
		return "Bearer " + sign(t, jwt.SigningMethodEdDSA, key, "k", jwt.MapClaims{"iss": i.URL, "aud": "https://mcp.example", "sub": "x", "exp": expires.Unix()})
	}
	id := w.begin("Authorization", token(time.Now().Add(time.Hour)))
	short := token(time.Now().Add(1500 * time.Millisecond))
	if g := w.send(http.MethodGet, "", "Mcp-Session-Id", id, "Authorization", short); g.status != http.StatusOK {
		t.Errorf("the stream: %d %s", g.status, g.body)
	}
	if g := w.send(http.MethodGet, "", "Mcp-Session-Id", id, "Authorization", short); g.status != http.StatusUnauthorized {
		t.Errorf("after the token expired: %d %s", g.status, g.body)
	}
}
