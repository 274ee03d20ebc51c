package server

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// jwks serves keys, and counts how often they are read.
type jwks struct {
	mu     sync.Mutex
	kids   []string
	broken bool
	read   int
}

func (j *jwks) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.read++
	if j.broken {
		http.Error(w, "broken", http.StatusInternalServerError)
		return
	}
	var keys []map[string]string
	for _, kid := range j.kids {
		public, _, _ := ed25519.GenerateKey(rand.Reader)
		keys = append(keys, map[string]string{"kty": "OKP", "crv": "Ed25519", "kid": kid, "x": b64url(public)})
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"keys": keys})
}

func (j *jwks) set(broken bool, kids ...string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.broken, j.kids = broken, kids
}

func (j *jwks) reads() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.read
}

// Keys are read when one is wanted, again when one is new, not at every word of
// whoever makes keys up, and stay where they can't be read again.
func TestKeySet(t *testing.T) {
	j := new(jwks)
	j.set(false, "one")
	s := httptest.NewServer(j)
	defer s.Close()
	now := time.Unix(1_000_000, 0)
	keys := newKeySet(Issuer{URL: s.URL, JWKS: s.URL})
	keys.now = func() time.Time { return now }
	want := func(kid string, known bool, reads int) {
		t.Helper()
		key, err := keys.key(t.Context(), kid, "EdDSA")
		if known != (err == nil && key != nil) || errors.Is(err, errKeys) {
			t.Errorf("key %q: %v, %v", kid, key, err)
		}
		if got := j.reads(); got != reads {
			t.Errorf("after key %q the keys were read %d times, want %d", kid, got, reads)
		}
	}
	want("one", true, 1)
	want("one", true, 1)
	want("two", false, 1) // a moment ago there was no such key
	now = now.Add(keysPause)
	j.set(false, "one", "two")
	want("two", true, 2)
	want("three", false, 2)
	now = now.Add(keysPause)
	j.set(false, "two")
	want("three", false, 3)
	want("one", false, 3) // the issuer took it back
	now = now.Add(keysFresh + 1)
	j.set(true)
	want("two", true, 4) // it can't be read, and was fine
	want("two", true, 4)
	now = now.Add(keysPause)
	want("two", true, 5)

	fresh := newKeySet(Issuer{URL: s.URL, JWKS: s.URL})
	for range 2 { // the second time nobody is asked
		if _, err := fresh.key(t.Context(), "two", "EdDSA"); !errors.Is(err, errKeys) {
			t.Errorf("with no keys: %v", err)
		}
	}
	if got := j.reads(); got != 6 {
		t.Errorf("the keys were read %d times, want 6", got)
	}
}

// Whoever has a key that is known waits for nobody.
func TestKeySetDoesNotWait(t *testing.T) {
	j := new(jwks)
	j.set(false, "one")
	slow := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if j.reads() > 0 {
			<-slow
		}
		j.ServeHTTP(w, r)
	}))
	defer s.Close()
	keys := newKeySet(Issuer{URL: s.URL, JWKS: s.URL})
	if _, err := keys.key(t.Context(), "one", "EdDSA"); err != nil {
		t.Fatal(err)
	}
	keys.tried = time.Time{} // long ago
	var asking sync.WaitGroup
	asking.Go(func() { _, _ = keys.key(t.Context(), "made-up", "EdDSA") })
	for len(keys.turn) == 0 { // until it is read again
		runtime.Gosched()
	}
	if _, err := keys.key(t.Context(), "one", "EdDSA"); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := keys.key(ctx, "another", "EdDSA"); !errors.Is(err, errKeys) {
		t.Errorf("a caller that left: %v", err)
	}
	close(slow)
	asking.Wait()
}

// Who makes up a token and goes away does not have the issuer asked again, nor keep
// others from its keys.
func TestKeySetIsReadToItsEnd(t *testing.T) {
	j := new(jwks)
	j.set(false, "one")
	ctx, leave := context.WithCancel(t.Context())
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		leave()
		j.ServeHTTP(w, r)
	}))
	defer s.Close()
	keys := newKeySet(Issuer{URL: s.URL, JWKS: s.URL})
	for range 3 {
		_, _ = keys.key(ctx, "made-up", "EdDSA")
	}
	if _, err := keys.key(t.Context(), "one", "EdDSA"); err != nil || j.reads() != 1 {
		t.Errorf("%v; the keys were read %d times", err, j.reads())
	}
}

func TestParseJWKS(t *testing.T) {
	x := b64url(make([]byte, 32))
	modulus := b64url(append([]byte{0x80}, append(make([]byte, 254), 1)...))
	for _, tt := range []struct {
		name, keys string
		want       string // kid:alg of the keys
	}{
		{"none", `[]`, ""},
		{"RSA", `[{"kty":"RSA","kid":"r","n":"` + modulus + `","e":"AQAB"}]`, "r:RS256 r:PS256"},
		{"RSA for one", `[{"kty":"RSA","kid":"r","alg":"PS256","n":"` + modulus + `","e":"AQAB"}]`, "r:PS256"},
		{"RSA too short", `[{"kty":"RSA","kid":"r","n":"` + b64url(append([]byte{0xff}, append(make([]byte, 126), 1)...)) + `","e":"AQAB"}]`, ""},
		{"RSA exponent", `[{"kty":"RSA","kid":"r","n":"` + modulus + `","e":"AQ"},{"kty":"RSA","kid":"r","n":"` + modulus + `","e":"_____w"}]`, ""},
		{"Ed25519", `[{"kty":"OKP","crv":"Ed25519","kid":"d","x":"` + x + `"}]`, "d:EdDSA"},
		{"X25519", `[{"kty":"OKP","crv":"X25519","kid":"d","x":"` + x + `"}]`, ""},
		{"not on the curve", `[{"kty":"EC","crv":"P-256","kid":"e","x":"` + x + `","y":"` + x + `"}]`, ""},
		{"symmetric", `[{"kty":"oct","kid":"s","k":"` + x + `"}]`, ""},
		{"for encryption", `[{"kty":"OKP","crv":"Ed25519","kid":"d","use":"enc","x":"` + x + `"}]`, ""},
		{"to sign alone", `[{"kty":"OKP","crv":"Ed25519","kid":"d","key_ops":["sign"],"x":"` + x + `"}]`, ""},
		{"for another", `[{"kty":"OKP","crv":"Ed25519","kid":"d","alg":"RS256","x":"` + x + `"}]`, ""},
		{"mismade among others", `[1,null,"x",{"kty":1},{"kty":"OKP","crv":"Ed25519","kid":"d","x":"` + x + `"}]`, "d:EdDSA"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			keys, err := parseJWKS([]byte(`{"keys":` + tt.keys + `}`))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, k := range keys {
				got = append(got, k.kid+":"+k.alg)
			}
			if strings.Join(got, " ") != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
	for _, bad := range []string{``, `[]`, `{}`, `{"keys":null}`, `{"keys":{}}`, `{"keys":[` + strings.Repeat("1,", maxKeys) + `1]}`, strings.Repeat(" ", maxJWKS+1)} {
		if _, err := parseJWKS([]byte(bad)); err == nil {
			t.Errorf("%.40q is a set of keys", bad)
		}
	}
}

func b64url(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func FuzzParseJWKS(f *testing.F) {
	f.Add([]byte(`{"keys":[{"kty":"RSA","n":"AQAB","e":"AQAB"},{"kty":"EC","crv":"P-256","x":"AA","y":"AA"},{"kty":"OKP","crv":"Ed25519","x":"AA"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		keys, err := parseJWKS(data)
		if err != nil && keys != nil {
			t.Error("keys beside an error")
		}
		for _, k := range keys {
			if k.public == nil || k.alg == "" {
				t.Errorf("a key that is none: %+v", k)
			}
		}
	})
}

func FuzzBearer(f *testing.F) {
	for _, seed := range []string{"", "Bearer x", "bearer  abc==", "Basic x", "Bearer a b", "Bearer \x00"} {
		f.Add(seed)
	}
	a := newAuthenticator(HTTPConfig{Tokens: []Token{NewToken("n", "0123456789abcdef")}, OAuth: &ProtectedResource{
		Resource: "https://r.example", Issuers: []Issuer{{URL: "https://i.example", JWKS: "http://127.0.0.1:1/"}},
	}}.withDefaults())
	f.Fuzz(func(t *testing.T, header string) {
		who, _, err := a.authenticate(t.Context(), http.Header{"Authorization": {header}})
		if err == nil && who.name != "n" {
			t.Errorf("%q lets %+v in", header, who)
		}
		if err != nil && who != (identity{}) {
			t.Errorf("%q is %+v and refused", header, who)
		}
		w := httptest.NewRecorder()
		if err != nil {
			a.deny(w, err)
			if w.Code < 400 || strings.ContainsAny(w.Header().Get("WWW-Authenticate"), "\r\n") {
				t.Errorf("%d %q", w.Code, w.Header())
			}
		}
	})
}

// Whatever may be an origin in the settings is one that a browser sends, and an
// origin is equal to nothing else.
func FuzzOrigin(f *testing.F) {
	for _, seed := range []string{"https://a.example", "http://[::1]:80", "null", "*", "https://a.example/", "HTTPS://A", "https://ä.example", "://", "https://%41"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, origin string) {
		if checkOrigin(origin) != nil {
			return
		}
		if origin == "null" || strings.ContainsAny(origin, "*? \t\r\n\\@#") || strings.Count(origin, "/") != 2 || origin != strings.ToLower(origin) {
			t.Errorf("%q is taken for an origin", origin)
		}
	})
}

func FuzzHost(f *testing.F) {
	for _, seed := range []string{"localhost", "a.example:80", "[::1]", "[::1]:80", "::1", "a:b:c", "LOCALHOST.", "127.1", "0x7f.1", "[", "]:1", "127.0.0.1:80:80"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, host string) {
		name, port := splitHost(host)
		if isLoopback(name) && name != "localhost" && net.ParseIP(name) == nil && !strings.Contains(name, "%") {
			t.Errorf("%q is loopback by the name %q", host, name)
		}
		if name == "" && port == "" && checkHost(host) == nil {
			t.Errorf("%q is taken for a host", host)
		}
	})
}

func FuzzAccepts(f *testing.F) {
	for _, seed := range []string{"", "*/*", "text/*;q=0.1, application/json", "text/event-stream;q=0", ";;;", ",,"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, accept string) {
		if accepts([]string{accept}, eventStream) && !strings.Contains(accept, "*") && !strings.Contains(strings.ToLower(accept), eventStream) {
			t.Errorf("%q takes a stream", accept)
		}
	})
}

// A visitor without a request makes room, one that is being answered stays, and
// where all are, the new one leaves.
func TestCrowd(t *testing.T) {
	inner, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := newCrowd(inner, 2)
	defer func() { _ = c.Close() }()
	dial := func() net.Conn {
		conn, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
		return conn
	}
	accept := func() *visitor {
		conn, err := c.Accept()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn.(*visitor)
	}
	gone := func(conn net.Conn) {
		t.Helper()
		if _, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the connection is open: %v", err)
		}
	}
	first, second := dial(), dial()
	a, b := accept(), accept()
	a.hold() // it is asked something, and the other isn't
	dial()
	d := accept()
	gone(second)
	b.release() // of one that is gone
	d.hold()
	turnedAway := dial()
	var waiting sync.WaitGroup
	waiting.Go(func() {
		gone(turnedAway)
		a.release()
		dial()
	})
	accept()
	waiting.Wait()
	gone(first)
	if c.open != 2 || c.loose.Len() != 1 {
		t.Errorf("%d are open, %d of them loose", c.open, c.loose.Len())
	}
	c.disperse()
	if c.open != 1 || c.loose.Len() != 0 {
		t.Errorf("%d are open, %d of them loose", c.open, c.loose.Len())
	}
}

// An answer that is long in coming shows signs of life, and is still an answer
// afterwards, even if it is an error that was to have a status of its own.
func TestReplyShowsSignsOfLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := httptest.NewRecorder()
		r := newReply(rec, time.Minute, new(outbox))
		r.live(15 * time.Second)
		time.Sleep(31 * time.Second)
		r.Header().Set("Content-Type", "application/json")
		r.WriteHeader(http.StatusBadRequest)
		_, _ = r.Write([]byte(`{"jsonrpc":"2.0", "id":1,"error":{"code":-32602,"message":"no"}}`))
		r.end()
		time.Sleep(time.Hour) // nothing comes after the end
		want := ": keepalive\n\n: keepalive\n\nevent: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32602,\"message\":\"no\"}}\n\n"
		if rec.Code != http.StatusOK || rec.Header().Get("Content-Type") != eventStream || rec.Body.String() != want {
			t.Errorf("%d %v %q", rec.Code, rec.Header(), rec.Body)
		}

		rec = httptest.NewRecorder()
		r = newReply(rec, time.Minute, new(outbox))
		r.live(15 * time.Second)
		r.Header().Set("Content-Type", "application/json")
		_, _ = r.Write([]byte("{}"))
		time.Sleep(time.Hour) // an answer that is no stream has none
		r.end()
		if rec.Body.String() != "{}" {
			t.Errorf("%q", rec.Body)
		}
	})
}

// What the SDK says in plain text comes as JSON-RPC, but for a session's end.
func TestReplyTranslates(t *testing.T) {
	rec := httptest.NewRecorder()
	r := newReply(rec, time.Minute, new(outbox))
	r.id = json.RawMessage(`"x"`)
	http.Error(r, "no params", http.StatusBadRequest)
	r.end()
	if want := `{"jsonrpc":"2.0","id":"x","error":{"code":-32600,"message":"no params"}}` + "\n"; rec.Code != http.StatusBadRequest || rec.Body.String() != want {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
	rec = httptest.NewRecorder()
	r = newReply(rec, time.Minute, new(outbox))
	http.Error(r, "session not found", http.StatusNotFound)
	r.end()
	if rec.Code != http.StatusNotFound || rec.Body.String() != "session not found\n" {
		t.Errorf("%d %q", rec.Code, rec.Body)
	}
	rec = httptest.NewRecorder()
	r = newReply(rec, time.Minute, new(outbox))
	r.call = true
	if r.end(); rec.Code != http.StatusServiceUnavailable {
		t.Errorf("a call that was not answered: %d %s", rec.Code, rec.Body)
	}
}

// A name is judged by where a request came in: over loopback a page may have had
// its own name resolve to this machine.
func TestHostAllowed(t *testing.T) {
	here, there := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80}, &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 80}
	for _, tt := range []struct {
		allowed []string
		local   net.Addr
		host    string
		want    bool
	}{
		{nil, here, "localhost", true},
		{nil, here, "127.0.0.2:99", true},
		{nil, here, "[::ffff:127.0.0.1]", true},
		{nil, here, "evil.example", false},
		{nil, here, "", false},
		{nil, nil, "evil.example", false},
		{nil, there, "any.example", true},
		{nil, there, "192.0.2.1", true},
		{[]string{"mcp.example"}, there, "mcp.example.", true},
		{[]string{"mcp.example"}, there, "MCP.EXAMPLE:1", true},
		{[]string{"mcp.example:443"}, there, "mcp.example", false},
		{[]string{"mcp.example"}, there, "evil.example", false},
		{[]string{"mcp.example"}, there, "192.0.2.1", false},
		{[]string{"mcp.example"}, here, "mcp.example", true},
		{[]string{"::1"}, there, "[::1]:8080", true},
	} {
		h := &Handler{cfg: HTTPConfig{AllowedHosts: tt.allowed}}
		r := httptest.NewRequest(http.MethodPost, "/mcp", nil)
		r.Host = tt.host
		if tt.local != nil {
			r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, tt.local))
		}
		if got := h.hostAllowed(r); got != tt.want {
			t.Errorf("%q by %v, of %q: %v", tt.host, tt.local, tt.allowed, got)
		}
	}
}
