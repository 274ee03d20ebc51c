package mcp

import (
	"net/url"
	"strings"
	"testing"
)

// The address for messages stays within the origin, whatever the server says (K39).
func FuzzAddress(f *testing.F) {
	for _, seed := range []string{
		"/messages?session=1", "messages", "?a", "#a", "//evil.example/x", "https://mcp.example.com/x", "https://mcp.example.com:443/x",
		"http://mcp.example.com/x", `\\evil.example\x`, "https://mcp.example.com@evil.example/", "https:evil.example", "javascript:x", "%zz", " /x\n", "",
	} {
		f.Add(seed)
	}
	base, err := url.Parse("https://mcp.example.com/a/sse")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, said string) {
		d := &duplex{reach: &reach{target: base, origin: origin(base)}}
		if d.address(base, []byte(said)) != nil {
			if d.messages != "" {
				t.Fatalf("refused, and taken: %q", d.messages)
			}
			return
		}
		u, err := url.Parse(d.messages)
		if err != nil || u.Scheme != "https" || strings.ToLower(u.Hostname()) != "mcp.example.com" || u.Port() != "" && u.Port() != "443" {
			t.Fatalf("%q led to %q, %v", said, d.messages, err)
		}
	})
}
