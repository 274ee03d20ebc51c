package web

import (
	"net/http"
	"strings"
	"testing"

	"crewhost/tools/native/nativetest"
)

// operators is a secret of the operator's, which servers say back.
const operators = "canary-4711"

// What a model gets in pieces has no piece of a secret, and no file has one.
func TestMaskedBeforeCut(t *testing.T) {
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		kind, body := "text/plain", "key "+operators+" end"
		switch r.URL.Path {
		case "/page":
			kind, body = "text/html", "<title>T</title><p>key "+operators[:3]+"&#x"+"61;"+operators[4:]+" end</p>"
		case "/utf16":
			body = "\xff\xfe"
			for _, c := range "key " + operators {
				body += string([]byte{byte(c), 0})
			}
		case "/png":
			kind, body = "image/png", "\x89PNG\x00"+operators
		case "/plain":
			body = "nothing"
		case "/repos/o/r/issues/1":
			kind, body = "application/json", `{"number":1,"body":"key `+operators+`"}`
		case "/search":
			kind, body = "application/json", `{"results":[{"title":"`+strings.Repeat("t", 195)+operators+`"}]}`
		}
		w.Header().Set("Content-Type", kind)
		w.Header().Set("X-Request-Id", strings.Repeat("i", maxHeader-6)+operators)
		_, _ = w.Write([]byte(body))
	}, func(c *Config) {
		c.Mask = func(s string) string { return strings.ReplaceAll(s, operators, "***") }
		c.Search.Provider, c.Search.URL = "tavily", "https://example.com"
	})
	for _, path := range []string{"/text", "/page", "/utf16"} {
		for n := range 20 {
			for _, text := range []string{
				first(s.Call("http_api", nativetest.Args("url", "https://example.com"+path, "max_length", n+1))),
				first(s.Call("web_scrape", nativetest.Args("url", "https://example.com"+path, "max_length", 3, "offset", n%9))),
			} {
				if strings.Contains(text, "cana") || strings.Contains(text, "ana") || strings.Contains(text, "-4") {
					t.Fatalf("%s from %d: %s", path, n, text)
				}
			}
		}
	}
	for n := range 33 { // of the result
		if text, _ := s.Call("github", nativetest.Args("action", "get_issue", "repo", "o/r", "number", 1, "offset", n, "max_length", 3)); strings.Contains(text, "can") || strings.Contains(text, "471") {
			t.Fatalf("from %d: %s", n, text)
		}
	}
	if text, failed := s.Call("web_search", `{"query":"x"}`); failed || strings.Contains(text, "cana") {
		t.Error(text)
	}
	for _, path := range []string{"/text", "/utf16", "/png"} {
		s.WantFailure("http_api", nativetest.Args("url", "https://example.com"+path, "save_to", "/out/kept"), "was not written to /out/kept: it repeats a credential")
	}
	s.WantParts("http_api", nativetest.Args("url", "https://example.com/plain", "save_to", "/out/kept"), "The body is in /out/kept")
	if got := s.Get("out/kept"); got != "nothing" {
		t.Errorf("kept %q", got)
	}
}

func first(text string, _ bool) string { return text }
