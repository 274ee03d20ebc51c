package config

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crewhost/config/secret"
)

// TestOAuth: what a server's tokens are had with (O20).
func TestOAuth(t *testing.T) {
	dir := files(t, map[string]string{"crewhost.yaml": `
mcp:
  token_store: file
  servers:
    a: { url: "https://a.example.com/mcp", oauth: {} }
    b:
      url: https://b.example.com/mcp
      oauth:
        grant: client_credentials
        client_id: "${CLIENT}"
        private_key: { file: key.pem }
        scopes: [read, write]
        issuer: https://login.example.com/
    c:
      url: https://c.example.com/mcp
      oauth: { client_id: public, redirect_port: 8400, token_endpoint_auth: post, client_secret: "${SECRET}" }
    d: { url: "https://d.example.com/mcp" }
    e: { url: "https://e.example.com/mcp", oauth: { grant: jwt_bearer, client_id: ci, assertion: { command: [print-token, --audience, x] } } }
`})
	s, err := Load(Source{CrewDir: dir, UserConfigDir: filepath.Join(dir, "user"), Environ: []string{"CLIENT=id-of-client"}})
	if err != nil {
		t.Fatal(err)
	}
	if s.MCP.TokenStore != "file" || s.MCP.TokenDir != filepath.Join(dir, "user", "crewhost") {
		t.Error(s.MCP.TokenStore, s.MCP.TokenDir)
	}
	servers := s.MCP.Servers
	if a := servers[0].OAuth; a == nil || a.Grant != "" || !a.ClientID.IsZero() || a.RedirectPort != 0 {
		t.Errorf("%+v", a)
	}
	b := servers[1].OAuth
	if b.Grant != GrantClientCredentials || b.ClientID.Reveal() != "id-of-client" || b.ClientID.String() != "${CLIENT}" ||
		b.PrivateKey.Source != secret.FromFile || b.PrivateKey.Name != filepath.Join(dir, "key.pem") ||
		!cmp.Equal(b.Scopes, []string{"read", "write"}) || b.Issuer != "https://login.example.com/" {
		t.Errorf("%+v", b)
	}
	if c := servers[2].OAuth; c.RedirectPort != 8400 || c.Auth != AuthPost || c.ClientSecret.Name != "SECRET" {
		t.Errorf("%+v", c)
	}
	if e := servers[4].OAuth; !e.Unattended() || e.Assertion.Source != secret.FromCommand || servers[2].OAuth.Unattended() || servers[3].OAuth.Unattended() {
		t.Errorf("%+v", e)
	}
	if servers[3].OAuth != nil {
		t.Error("OAuth of nothing")
	}
}

// TestOAuthFaults: what contradicts itself is said, and where.
func TestOAuthFaults(t *testing.T) {
	got := faults(t, `
mcp:
  token_store: vault
  servers:
    a: { url: "https://a/", headers: { authorization: "Bearer ${T:-x}" }, oauth: {} }
    b: { url: "https://b/", oauth: { grant: password, client: x, scopes: ["a b"], redirect_port: 70000 } }
    c: { url: "https://c/", oauth: { grant: client_credentials, redirect_port: 1 } }
    d: { url: "https://d/", oauth: { client_id: x, client_secret: "${S}", private_key: "${K}" } }
    e: { url: "https://e/", oauth: { client_id: x, token_endpoint_auth: private_key_jwt } }
    f: { url: "https://f/", oauth: { client_id: x, client_secret: "${S}", token_endpoint_auth: none, issuer: nowhere } }
    g: { url: "https://g/", oauth: { client_secret: "${S}" } }
    h: { command: x, oauth: {} }
    i: { url: "https://i/", oauth: { grant: jwt_bearer } }
    j: { url: "https://j/", oauth: { assertion: "${A}" } }
`)
	want := `crewhost.yaml:3:16: mcp.token_store: "vault" is not known (known: auto, file, keyring, memory) [bad-value]
crewhost.yaml:5:40: the server "a": the header Authorization and oauth both say who is calling (keep one) [bad-server]
crewhost.yaml:6:45: mcp.servers.b.oauth.grant: "password" is not known (known: authorization_code, client_credentials, jwt_bearer) [bad-value]
crewhost.yaml:6:55: unknown key "client" in mcp.servers.b.oauth (did you mean "client_id"?) [unknown-key]
crewhost.yaml:6:75: mcp.servers.b.oauth.scopes: "a b" is not one scope (an entry for each) [bad-value]
crewhost.yaml:6:98: mcp.servers.b.oauth.redirect_port must be from 1 to 65535, not 70000 [bad-value]
crewhost.yaml:7:36: mcp.servers.c.oauth.client_id is missing: the grant client_credentials needs a registered client [missing]
crewhost.yaml:7:36: mcp.servers.c.oauth.client_secret is missing: the grant client_credentials needs it, or a private_key [missing]
crewhost.yaml:7:80: mcp.servers.c.oauth.redirect_port is of no use to the grant client_credentials [bad-server]
crewhost.yaml:8:88: mcp.servers.d.oauth has both a client_secret and a private_key (keep one) [bad-server]
crewhost.yaml:9:36: mcp.servers.e.oauth.private_key is missing: token_endpoint_auth is private_key_jwt [missing]
crewhost.yaml:10:96: mcp.servers.f.oauth: the token_endpoint_auth none does not use what the client has [bad-server]
crewhost.yaml:10:110: mcp.servers.f.oauth.issuer is not an http or https URL (http://HOST/… or https://HOST/…) [bad-value]
crewhost.yaml:11:36: mcp.servers.g.oauth.client_id is missing: it says whose secret that is [missing]
crewhost.yaml:12:29: the server "h": oauth belongs to an HTTP server, and this one has a command [bad-server]
crewhost.yaml:13:36: mcp.servers.i.oauth.assertion is missing: the grant jwt_bearer needs it [missing]
crewhost.yaml:13:36: mcp.servers.i.oauth.client_id is missing: the grant jwt_bearer needs a registered client [missing]
crewhost.yaml:14:49: mcp.servers.j.oauth.assertion is of use to the grant jwt_bearer alone [bad-server]`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
