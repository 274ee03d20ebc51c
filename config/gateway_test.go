package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crewhost/config/secret"
)

// A7: what an operator may say about where servers are.
func TestGateway(t *testing.T) {
	dir := files(t, map[string]string{"crewhost.yaml": `mcp:
  gateway:
    allow: [Wiki.Corp., "wiki.corp:8443", "[::1]:080", 10.1.2.3, 10.1.2.3/8, "fd00::/8", "::1"]
    loopback: true
    proxy: http://${PROXY_USER}:${PROXY_PASSWORD}@proxy.corp:3128
`})
	s, err := Load(Source{CrewDir: dir, Environ: []string{"PROXY_USER=ann", "PROXY_PASSWORD=pr0xy-w0rd"}})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"wiki.corp", "wiki.corp:8443", "[::1]:80", "10.1.2.3", "10.0.0.0/8", "fd00::/8", "::1"}
	if diff := cmp.Diff(want, s.MCP.Gateway.Allow); diff != "" {
		t.Error(diff)
	}
	g := s.MCP.Gateway
	if !g.Loopback || g.Proxy.Reveal() != "http://ann:pr0xy-w0rd@proxy.corp:3128" {
		t.Errorf("%+v", g)
	}
	var redactor secret.Redactor
	redactor.Add(s.Secrets()...)
	if got := redactor.Redact(g.Proxy.Reveal()); strings.Contains(got, "pr0xy-w0rd") || strings.Contains(g.Proxy.String(), "pr0xy-w0rd") {
		t.Errorf("%s as %s", g.Proxy, got)
	}
	s, err = Load(Source{CrewDir: files(t, map[string]string{"crewhost.yaml": "mounts: []\n"})})
	if err != nil || cmp.Diff(Gateway{}, s.MCP.Gateway) != "" {
		t.Errorf("without a word: %+v, %v", s.MCP.Gateway, err)
	}
}

func TestGatewayFaults(t *testing.T) {
	got := faults(t, `mcp: {gateway: {allow: [https://x, "*.corp", x/y, "x:0", "127.1", "0x7f000001", 10.0.0.0/33, a..b, ""], loopback: maybe, proxi: x}}`)
	want := `crewhost.yaml:1:25: mcp.gateway.allow: "https://x" is neither a host nor a range of addresses (HOST, HOST:PORT or ADDRESS/BITS, without a scheme, a path or a pattern) [bad-value]
crewhost.yaml:1:36: mcp.gateway.allow: "*.corp" is neither a host nor a range of addresses (HOST, HOST:PORT or ADDRESS/BITS, without a scheme, a path or a pattern) [bad-value]
crewhost.yaml:1:46: mcp.gateway.allow: "x/y" is neither a host nor a range of addresses (HOST, HOST:PORT or ADDRESS/BITS, without a scheme, a path or a pattern) [bad-value]
crewhost.yaml:1:51: mcp.gateway.allow: "x:0" is neither a host nor a range of addresses (HOST, HOST:PORT or ADDRESS/BITS, without a scheme, a path or a pattern) [bad-value]`
	if !strings.HasPrefix(got, want) {
		t.Error(cmp.Diff(want, got))
	}
	for _, words := range []string{`"127.1" is neither`, `"0x7f000001" is neither`, `"10.0.0.0/33" is neither`, `"a..b" is neither`, "mcp.gateway.allow.8 is empty", "loopback", `did you mean "proxy"`} {
		if !strings.Contains(got, words) {
			t.Errorf("nothing of %s in\n%s", words, got)
		}
	}
	for proxy, words := range map[string]string{
		"proxy.corp:3128": "not the URL of a proxy", "http://": "not the URL of a proxy", "http://a/b": "not the URL of a proxy",
		"ftp://a": `of the scheme "ftp"`, "http://a b": "not the URL of a proxy",
	} {
		if got := faults(t, "mcp: {gateway: {proxy: \""+proxy+"\"}}"); !strings.Contains(got, "mcp.gateway.proxy is") || !strings.Contains(got, words) {
			t.Errorf("%s: %s", proxy, got)
		}
	}
}
