package config

import (
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// W4: the list of allowed hosts is exact, whatever the spelling.
func TestAllowedHosts(t *testing.T) {
	dir := files(t, map[string]string{"crewhost.yaml": `mcp: {allowed_hosts: [MCP.Example.com., "api.example.com:8443", "::1", "[0:0::1]:080", 127.0.0.1]}`})
	s, err := Load(Source{CrewDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"mcp.example.com", "api.example.com:8443", "::1", "[::1]:80", "127.0.0.1"}, s.MCP.AllowedHosts); diff != "" {
		t.Error(diff)
	}
	for address, want := range map[string]bool{
		"https://mcp.example.com/mcp":       true,
		"https://MCP.example.com.:444/mcp":  true,
		"https://example.com/mcp":           false,
		"https://a.mcp.example.com/mcp":     false,
		"https://api.example.com:8443/mcp":  true,
		"https://api.example.com/mcp":       false,
		"http://[::1]:9/mcp":                true,
		"http://127.0.0.1/mcp":              true,
		"http://localhost/mcp":              false,
		"https://mcp.example.com@evil.net/": false,
	} {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.MCP.Allows(u); got != want {
			t.Errorf("%s: %v", address, got)
		}
	}
	anywhere, nowhere := MCP{}, MCP{AllowedHosts: []string{}}
	if u := (&url.URL{Scheme: "https", Host: "x"}); !anywhere.Allows(u) || nowhere.Allows(u) {
		t.Error("no list allows any host, an empty one none")
	}
}

func TestAllowedHostsFaults(t *testing.T) {
	got := faults(t, `mcp: {allowed_hosts: [https://x, "*.example.com", x/y, "x:0", "x:99999", "a b", ""]}`)
	want := `crewhost.yaml:1:23: mcp.allowed_hosts: "https://x" is not a host (HOST or HOST:PORT, without a scheme, a path or a pattern) [bad-value]
crewhost.yaml:1:34: mcp.allowed_hosts: "*.example.com" is not a host (HOST or HOST:PORT, without a scheme, a path or a pattern) [bad-value]
crewhost.yaml:1:51: mcp.allowed_hosts: "x/y" is not a host (HOST or HOST:PORT, without a scheme, a path or a pattern) [bad-value]
crewhost.yaml:1:56: mcp.allowed_hosts: "x:0" is not a host (HOST or HOST:PORT, without a scheme, a path or a pattern) [bad-value]
crewhost.yaml:1:63: mcp.allowed_hosts: "x:99999" is not a host (HOST or HOST:PORT, without a scheme, a path or a pattern) [bad-value]
crewhost.yaml:1:74: mcp.allowed_hosts: "a b" is not a host (HOST or HOST:PORT, without a scheme, a path or a pattern) [bad-value]
crewhost.yaml:1:81: mcp.allowed_hosts.6 is empty [missing]`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// W3: the words for a transport, and what a url alone means.
func TestTransports(t *testing.T) {
	for written, want := range map[string]Transport{
		`{command: x}`: TransportStdio, `{type: stdio, command: x}`: TransportStdio,
		`{url: "http://x/"}`: TransportAuto, `{type: auto, url: "http://x/"}`: TransportAuto,
		`{type: http, url: "http://x/"}`: TransportHTTP, `{transport: streamable-http, url: "http://x/"}`: TransportHTTP,
		`{type: streamableHttp, url: "http://x/"}`: TransportHTTP, `{type: streamable_http, url: "http://x/"}`: TransportHTTP,
		`{type: sse, url: "http://x/"}`: TransportSSE, `{type: legacySse, url: "http://x/"}`: TransportSSE,
		`{type: legacy-sse, url: "http://x/"}`: TransportSSE, `{type: legacy_sse, url: "http://x/"}`: TransportSSE,
	} {
		dir := files(t, map[string]string{"crewhost.yaml": "mcp: {servers: {a: " + written + "}}"})
		s, err := Load(Source{CrewDir: dir})
		if err != nil {
			t.Errorf("%s: %v", written, err)
			continue
		}
		if got := s.MCP.Servers[0].Transport; got != want || got.Remote() != (want != TransportStdio) {
			t.Errorf("%s: %s, want %s", written, got, want)
		}
	}
}

// The legacy transport has no modern era.
func TestTransportOfAnEra(t *testing.T) {
	got := faults(t, `mcp: {servers: {a: {type: sse, url: "http://x/", protocol: modern}}}`)
	want := `crewhost.yaml:1:60: the server "a": it is sse, which belongs to the legacy era (leave out protocol, or use type: http) [bad-server]`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
