package server_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"crewhost/mcp/server"
)

const goodToken = "0123456789abcdef-good"

// I13: what can't be meant is refused, all of it at once; and a server beyond
// loopback asks who its callers are.
func TestHTTPConfigCheck(t *testing.T) {
	token := server.NewToken("ci", goodToken)
	oauth := func(change func(*server.ProtectedResource)) *server.ProtectedResource {
		r := &server.ProtectedResource{Resource: "https://mcp.example/mcp", Issuers: []server.Issuer{{URL: "https://id.example"}}}
		if change != nil {
			change(r)
		}
		return r
	}
	for _, tt := range []struct {
		name string
		cfg  server.HTTPConfig
		want []string // of the error, in this order; none: it is fine
	}{
		{name: "zero"},
		{name: "loopback", cfg: server.HTTPConfig{Listen: "localhost:8931"}},
		{name: "IPv6", cfg: server.HTTPConfig{Listen: "[::1]:0"}},
		{name: "beyond", cfg: server.HTTPConfig{Listen: ":8931"}, want: []string{"not loopback"}},
		{name: "beyond, IPv4", cfg: server.HTTPConfig{Listen: "0.0.0.0:8931"}, want: []string{"not loopback"}},
		{name: "beyond, by name", cfg: server.HTTPConfig{Listen: "localhost.example:8931"}, want: []string{"not loopback"}},
		{name: "beyond with a token", cfg: server.HTTPConfig{Listen: ":1", Tokens: []server.Token{token}}},
		{name: "beyond with OAuth", cfg: server.HTTPConfig{Listen: ":1", OAuth: oauth(nil)}},
		{name: "beyond, and meant", cfg: server.HTTPConfig{Listen: ":1", AllowUnauthenticated: true}},
		{name: "no address", cfg: server.HTTPConfig{Listen: "8931"}, want: []string{"host:port"}},
		{name: "no port", cfg: server.HTTPConfig{Listen: "127.0.0.1:65536"}, want: []string{"host:port"}},
		{name: "paths", cfg: server.HTTPConfig{Path: "mcp"}, want: []string{"plain path"}},
		{name: "a path's end", cfg: server.HTTPConfig{Path: "/mcp/"}, want: []string{"empty or dotted"}},
		{name: "a path upwards", cfg: server.HTTPConfig{Path: "/a/../b"}, want: []string{"empty or dotted"}},
		{name: "a query", cfg: server.HTTPConfig{Path: "/mcp?x=1"}, want: []string{"plain path"}},
		{name: "its own path", cfg: server.HTTPConfig{Path: "/healthz"}, want: []string{"server's own"}},
		{name: "the root", cfg: server.HTTPConfig{Path: "/"}},
		{
			name: "origins",
			cfg: server.HTTPConfig{AllowedOrigins: []string{
				"https://a.example", "http://127.0.0.1:3000", "http://[::1]:3000",
				"*", "https://*.example", "https://b.example/", "https://b.example/x", "b.example", "null", "", "HTTPS://b.example",
				"https://B.example", "https://b.example:443", "http://b.example:80", "https://u@b.example", "https://b.example?x", "https://",
			}},
			want: []string{
				`"*": there are no wildcards`, "no wildcards", "more than", "more than", "not scheme", `"null"`, `""`, "lower case",
				"lower case", "own port", "own port", "not scheme", "more than", "not scheme",
			},
		},
		{
			name: "hosts",
			cfg:  server.HTTPConfig{AllowedHosts: []string{"a.example", "a.example:443", "::1", "[::1]:80", "*.example", "https://a.example", "a.example/", "a:b:c", "a.example:0", ""}},
			want: []string{"no wildcards", "not host", "not host", "not host", "not host", "not host"},
		},
		{
			name: "tokens",
			cfg: server.HTTPConfig{Tokens: []server.Token{
				token, server.NewToken("ci", "another-one-that-is-long"), server.NewToken("again", goodToken), server.NewToken("none", ""),
				server.NewToken("short", "0123456789"), server.NewToken("odd", "0123456789 abcdefghi"), server.NewToken("a name", "yet-another-one-of-them"), {Name: "zero"},
			}},
			want: []string{"two of that name", "same value", "is empty", "fewer than 16", "characters that no", `name "a name"`, `"zero": it has no value`},
		},
		{name: "half of TLS", cfg: server.HTTPConfig{CertFile: "c.pem"}, want: []string{"go together"}},
		{
			name: "OAuth",
			cfg: server.HTTPConfig{OAuth: oauth(func(r *server.ProtectedResource) {
				r.Resource = "http://mcp.example/mcp"
				r.Issuers = []server.Issuer{{URL: "https://id.example", JWKS: "ftp://id.example"}, {URL: "https://id.example"}, {URL: "http://localhost:1"}, {URL: "id"}}
				r.Scopes = []string{"read", "two words", `"`}
				r.Leeway = time.Hour
			})},
			want: []string{"resource", "ftp://", "twice", `"id"`, "two words", `scope "\""`, "leeway"},
		},
		{name: "nobody's tokens", cfg: server.HTTPConfig{OAuth: &server.ProtectedResource{Resource: "https://x.example"}}, want: []string{"no issuer"}},
		{
			name: "numbers",
			cfg:  server.HTTPConfig{Connections: -1, Sessions: -1, SessionIdle: -1, ReadTimeout: -1, WriteTimeout: -1, IdleTimeout: -1},
			want: []string{"connections", "sessions", "session idle", "read timeout", "write timeout", "idle timeout"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.cfg.Check()
			if len(tt.want) == 0 {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil {
				t.Fatal("it is fine")
			}
			lines := strings.Split(err.Error(), "\n")
			if len(lines) != len(tt.want) {
				t.Fatalf("got %d problems, want %d:\n%v", len(lines), len(tt.want), err)
			}
			for i, want := range tt.want {
				if !strings.Contains(lines[i], want) {
					t.Errorf("problem %d is %q, want something of %q", i+1, lines[i], want)
				}
			}
			if strings.Contains(err.Error(), goodToken) {
				t.Errorf("the token is in %v", err)
			}
		})
	}
}

// A token prints as its name, however it is printed.
func TestTokenPrints(t *testing.T) {
	token := server.NewToken("ci", goodToken)
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		got := fmt.Sprintf(format, token)
		if strings.Trim(got, `"`) != "ci" {
			t.Errorf("%s is %s", format, got)
		}
	}
}
