package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// I1: surfaces are registered explicitly, each under its handle.
func TestServed(t *testing.T) {
	dir := files(t, map[string]string{"crewhost.yaml": `
mcp:
  servers: { notes: { command: n } }
  served:
    demo:
      title: Demo
      instructions: Search first.
      tools: [file_read, "mcp__notes__*"]
      crews: [crews/a.yaml, {path: /crews/b, name: b}]
      resources: [notes, "notes/notes:///**"]
      prompts: [notes, notes/greet]
      http:
        listen: 127.0.0.1:8931
        allowed_origins: ["https://app.example.com", "http://localhost:6274"]
        allowed_hosts: [Gateway.example.com, "10.0.0.1:80"]
        tokens: {ci: "${CI_TOKEN}", ops: {file: keys/ops}, old: "written-out"}
        tls: {cert: tls/c.pem, key: tls/k.pem}
        oauth:
          resource: https://mcp.example.com/mcp
          issuers: [https://login.example.com, {url: https://other.example.com, jwks: https://other.example.com/keys}]
          audience: me
          scopes: [mcp]
    bare: { tools: [file_read] }
    open: { tools: ["*"], http: { listen: ":0", path: /x/y, connections: 1, sessions: 2, session_idle: 3s, read_timeout: 4s, write_timeout: 5s, idle_timeout: 6s, allow_unauthenticated: true } }
`})
	s, err := Load(Source{CrewDir: dir, Environ: []string{"CREWHOST_MCP__SERVED__BARE__TITLE=Bare", "CREWHOST_MCP__SERVED__DEMO__HTTP__LISTEN=127.0.0.1:1"}})
	if err != nil {
		t.Fatal(err)
	}
	demo, bare, open := s.MCP.Served[0], s.MCP.Served[1], s.MCP.Served[2]
	if demo.Handle != "demo" || demo.Title != "Demo" || demo.Instructions != "Search first." || demo.Tools[1].Pattern != "mcp__notes__*" || demo.Tools[0].Pos.Line != 8 {
		t.Errorf("demo: %+v", demo)
	}
	if demo.Crews[0].Path != filepath.Join(dir, "crews", "a.yaml") || demo.Crews[0].Name != "" || demo.Crews[1].Name != "b" {
		t.Errorf("crews: %+v", demo.Crews)
	}
	if got := fmt.Sprint(demo.Resources, demo.Prompts); got != "[notes notes/notes:///**] [notes notes/greet]" {
		t.Errorf("offers: %s", got)
	}
	h := demo.HTTP
	if h.Listen != "127.0.0.1:1" || h.Path != "/mcp" || h.AllowedOrigins[1] != "http://localhost:6274" || h.AllowUnauthenticated {
		t.Errorf("http: %+v", h)
	}
	if diff := cmp.Diff([]string{"gateway.example.com", "10.0.0.1:80"}, h.AllowedHosts); diff != "" {
		t.Error(diff)
	}
	var tokens []string
	for _, token := range h.Tokens {
		tokens = append(tokens, token.Name+" "+token.Token.String())
	}
	if diff := cmp.Diff([]string{"ci env:CI_TOKEN", "ops file:" + filepath.Join(dir, "keys", "ops"), "old literal"}, tokens); diff != "" {
		t.Error(diff)
	}
	if len(s.Warnings) != 1 || !strings.Contains(s.Warnings[0], "mcp.served.demo.http.tokens.old is written out") || strings.Contains(s.Warnings[0], "written-out") {
		t.Errorf("warnings: %q", s.Warnings)
	}
	if secrets := s.Secrets(); len(secrets) != 1 || secrets[0].Reveal() != "written-out" {
		t.Errorf("%d secrets", len(secrets))
	}
	if h.Cert != filepath.Join(dir, "tls", "c.pem") || h.Key != filepath.Join(dir, "tls", "k.pem") {
		t.Errorf("tls: %s %s", h.Cert, h.Key)
	}
	if o := h.OAuth; o.Resource != "https://mcp.example.com/mcp" || o.Audience != "me" || o.Scopes[0] != "mcp" ||
		o.Issuers[0].URL != "https://login.example.com" || o.Issuers[0].JWKS != "" || o.Issuers[1].JWKS != "https://other.example.com/keys" {
		t.Errorf("oauth: %+v", o)
	}
	if bare.Title != "Bare" || bare.HTTP != nil {
		t.Errorf("bare: %+v", bare)
	}
	if open.HTTP.Path != "/x/y" || !open.HTTP.AllowUnauthenticated || open.HTTP.Connections != 1 || open.HTTP.Sessions != 2 || open.HTTP.SessionIdle != 3*time.Second ||
		open.HTTP.ReadTimeout != 4*time.Second || open.HTTP.WriteTimeout != 5*time.Second || open.HTTP.IdleTimeout != 6*time.Second {
		t.Errorf("open: %+v", open.HTTP)
	}
}

func TestServedFaults(t *testing.T) {
	got := faults(t, `
mcp:
  servers: { notes: { command: n } }
  served:
    ".x": {tools: [a]}
    Demo: {tools: [a]}
    demo: {tools: [""]}
    none:
    wrong: {tool: [a], crews: [{name: b}, {path: x, name: "a b"}, ~, 1]}
    offers: {resources: [note, notes/], prompts: [/x]}
    web: {tools: [a], http: {listen: 8931, path: mcp, allowed_origins: ["*", "https://x/", "https://X:443", "null"], allowed_hosts: ["*.x"], tokens: {"a b": x, c: }, tls: {cert: c}}}
    web2: {tools: [a], http: {path: "/{x}", listen: "x:99999", oauth: {resource: x, issuers: ["http://", {url: y, jwks: "ftp://x"}, ~, {jwks: x}]}}}
    web3: {tools: [a], http: {}}
`)
	want := `crewhost.yaml:5:5: the handle ".x" is not valid (letters, digits, _ . and -, at most 128, the first a letter or digit) [bad-name]
crewhost.yaml:7:5: the handles "Demo" and "demo" differ in case only [duplicate-key]
crewhost.yaml:7:20: mcp.served.demo.tools.0 is empty [missing]
crewhost.yaml:8:5: mcp.served.none serves nothing (name tools, crews, resources or prompts) [missing]
crewhost.yaml:9:13: unknown key "tool" in mcp.served.wrong (did you mean "tools"?) [unknown-key]
crewhost.yaml:9:32: "path" is missing in mcp.served.wrong.crews.0 [missing]
crewhost.yaml:9:59: mcp.served.wrong.crews.1.name: "a b" is not the name of a tool (letters, digits, _ and -, at most 64) [bad-name]
crewhost.yaml:9:67: mcp.served.wrong.crews.2 is empty [missing]
crewhost.yaml:9:70: mcp.served.wrong.crews.3 must be a string, not an integer (write it in quotes: "1") [wrong-type]
crewhost.yaml:10:26: mcp.served.offers.resources: the settings have no server "note" (did you mean "notes"?) [bad-value]
crewhost.yaml:10:32: mcp.served.offers.resources: nothing is named after the slash of "notes/" (the name of the server alone means all) [bad-value]
crewhost.yaml:10:51: mcp.served.offers.prompts: the settings have no server "" (known: notes) [bad-value]`
	lines := strings.Split(got, "\n")
	if diff := cmp.Diff(strings.Split(want, "\n"), lines[:min(12, len(lines))]); diff != "" {
		t.Error(diff)
	}
	for _, want := range []string{
		`11:38: mcp.served.web.http.listen must be a string, not an integer`,
		`mcp.served.web.http.path: "mcp" is not the path of a URL (/mcp)`,
		`allowed_origins: "*" is not an origin (SCHEME://HOST or SCHEME://HOST:PORT, without a path or a pattern)`,
		`allowed_origins: "https://x/" is not an origin (write https://x)`,
		`allowed_origins: "https://X:443" is not an origin (write https://x)`,
		`allowed_origins: "null" is not an origin`,
		`allowed_hosts: "*.x" is not a host`,
		`mcp.served.web.http.tokens: the name "a b" is not valid`,
		`mcp.served.web.http.tokens.c is empty`,
		`"key" is missing in mcp.served.web.http.tls`,
		`mcp.served.web2.http.path: "/{x}" is not the path of a URL`,
		`mcp.served.web2.http.listen: "x:99999" is not HOST:PORT (127.0.0.1:8931)`,
		`mcp.served.web2.http.oauth.resource is not an http or https URL`,
		`mcp.served.web2.http.oauth.issuers.0 names no host`,
		`mcp.served.web2.http.oauth.issuers.1 is not an http or https URL`,
		`mcp.served.web2.http.oauth.issuers.1.jwks is not an http or https URL`,
		`mcp.served.web2.http.oauth.issuers.2 is empty`,
		`"url" is missing in mcp.served.web2.http.oauth.issuers.3`,
		`13:30: "listen" is missing in mcp.served.web3.http`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no line says %s\n%s", want, got)
		}
	}
}

// I9: each budget is a setting, and a variable of the environment with a short name.
func TestServingByVariables(t *testing.T) {
	s := load(t, "mcp: {serving: {name: n, version: v, page_size: 10, request_bytes: 9}}",
		"CREWHOST_MCP_REQUEST_BYTES=1", "CREWHOST_MCP_CONCURRENT_REQUESTS=2", "CREWHOST_MCP_RESPONSE_BYTES=3", "CREWHOST_MCP_METADATA_BYTES=4",
		"CREWHOST_MCP_GRACE=6s", "CREWHOST_MCP_SUBSCRIPTION_BUFFER=7", "CREWHOST_MCP_SUBSCRIBERS=8", "CREWHOST_MCP_SUBSCRIBED_URIS=9",
		"CREWHOST_MCP_KEEPALIVE=10s", "CREWHOST_MCP_SEARCH_THRESHOLD=11", "CREWHOST_MCP_SEARCH_RESULTS=12", "CREWHOST_MCP_SEARCH_CALLS=13", "CREWHOST_MCP__SERVING__SEARCH_BYTES=14")
	want := Serving{
		Name: "n", Version: "v", RequestBytes: 1, ConcurrentRequests: 2, ResponseBytes: 3, MetadataBytes: 4, PageSize: 10, Grace: 6 * time.Second,
		SubscriptionBuffer: 7, Subscribers: 8, SubscribedURIs: 9, Keepalive: 10 * time.Second,
		SearchThreshold: 11, SearchResults: 12, SearchCalls: 13, SearchBytes: 14,
	}
	if diff := cmp.Diff(want, s.MCP.Serving); diff != "" {
		t.Error(diff)
	}
}

// I13: what can't be meant is refused when the settings are read, and a variable
// that says it is named.
func TestServingFaults(t *testing.T) {
	got := faults(t, `
mcp:
  serving: {request_bytes: 0, concurrent_requests: -1, response_bytes: 1.5, metadata_bytes: many, page_size: 101, keepalive: 0s, grace: inf, search_threshold: -1, page_sizes: 1}
`, "CREWHOST_MCP_SUBSCRIBERS=0", "CREWHOST_MCP_SUBSCRIBED_URIS=x", "CREWHOST_MCP_SEARCH_CALLS=1", "CREWHOST_MCP__SERVING__SEARCH_CALLS=2", "CREWHOST_MCP_PAGESIZE=3")
	want := `crewhost.yaml:3:28: mcp.serving.request_bytes must be at least 1, not 0 [bad-value]
crewhost.yaml:3:52: mcp.serving.concurrent_requests must be at least 1, not -1 [bad-value]
crewhost.yaml:3:72: mcp.serving.response_bytes must be an integer, not a number [wrong-type]
crewhost.yaml:3:93: mcp.serving.metadata_bytes must be an integer, not a string [wrong-type]
crewhost.yaml:3:110: mcp.serving.page_size must be from 1 to 100, not 101 [bad-value]
crewhost.yaml:3:126: mcp.serving.keepalive: "0s" is not a duration above zero (write a number with a unit: 500ms, 30s, 2m) [bad-value]
crewhost.yaml:3:137: mcp.serving.grace: "inf" is not a duration above zero (write a number with a unit: 500ms, 30s, 2m) [bad-value]
crewhost.yaml:3:160: mcp.serving.search_threshold must be at least 0, not -1 [bad-value]
crewhost.yaml:3:164: unknown key "page_sizes" in mcp.serving (did you mean "page_size"?) [unknown-key]
environment variable CREWHOST_MCP_PAGESIZE: there is no budget of this name (did you mean "page_size"?) [unknown-key]
environment variable CREWHOST_MCP_SEARCH_CALLS: the same is set by CREWHOST_MCP__SERVING__SEARCH_CALLS (keep one) [duplicate-key]
environment variable CREWHOST_MCP_SUBSCRIBED_URIS: mcp.serving.subscribed_uris: "x" is not an integer [bad-value]
environment variable CREWHOST_MCP_SUBSCRIBERS: mcp.serving.subscribers must be at least 1, not 0 [bad-value]`
	if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")); diff != "" {
		t.Error(diff)
	}
}

// Names are as long as is said of them, and no longer (I1).
func TestLengthsOfNames(t *testing.T) {
	for settings, want := range map[string]string{
		"mcp: {served: {HANDLE: {tools: [a]}}}":                       "handle",
		"mcp: {servers: {SERVER: {command: x}}}":                      "server",
		"mcp: {served: {a: {crews: [{path: c.yaml, name: TOOL}]}}}":   "name",
		"mcp: {allowed_hosts: [HOST], servers: {a: {command: x}}}":    "host",
		"llm: {provider: echo, profiles: {SERVER: {provider: echo}}}": "profile",
	} {
		for extra, good := range map[int]bool{0: true, 1: false} {
			text := strings.NewReplacer(
				"HANDLE", strings.Repeat("h", 128+extra), "SERVER", strings.Repeat("s", 64+extra),
				"TOOL", strings.Repeat("t", 64+extra), "HOST", strings.Repeat("o", 253+extra),
			).Replace(settings)
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "crewhost.yaml"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := Load(Source{CrewDir: dir}); (err == nil) != good {
				t.Errorf("%s, %d over: %v (about a %s)", settings, extra, err, want)
			}
		}
	}
}
