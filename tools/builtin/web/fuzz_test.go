package web

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"crewhost/tools"
	"crewhost/tools/native/nativetest"
)

// holdsUp is what any result is held to, whatever came from a stranger.
func holdsUp(t *testing.T, text string) {
	t.Helper()
	if !utf8.ValidString(text) || utf8.RuneCountInString(text) > 34_000 || clean(text) != text {
		t.Errorf("%d characters: %.300q", utf8.RuneCountInString(text), text)
	}
}

// said is a server that says one thing, without a network.
type said struct {
	status     int
	kind, body string
}

func (s said) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: s.status, Header: http.Header{"Content-Type": {s.kind}}, Body: io.NopCloser(strings.NewReader(s.body)), Request: req}, nil
}

// call calls a tool of its.
func (s said) call(t *testing.T, tool string, pairs ...any) string {
	t.Helper()
	client := &http.Client{Transport: s}
	for _, own := range Tools(Config{Client: client, GitHub: GitHub{Client: client}}) {
		if own.Name != tool {
			continue
		}
		res, err := own.Call(t.Context(), tools.Call{Name: tool, Arguments: json.RawMessage(nativetest.Args(pairs...))})
		if err != nil {
			t.Fatal(err)
		}
		return res.Content[0].Text
	}
	t.Fatal("no such tool")
	return ""
}

// FuzzPage has pages of any kind read in any way, and twice alike.
func FuzzPage(f *testing.F) {
	for _, name := range []string{"report.html", "office.html", "pydoc.html", "cyrillic.html"} {
		page := file(f, name)
		f.Add([]byte(page[:min(len(page), 1500)]), "text/html", "main p, a[href]", uint8(0))
	}
	f.Add([]byte(`<base href="//x"><b><p><table><td></b><svg><title>a</title><template><p hidden>x<noscript>y`), "", "", uint8(1))
	f.Add([]byte("\xff\xfe<\x00p\x00>\x00"), "text/html; charset=utf-16", "p", uint8(2))
	f.Add([]byte(`<table><tr><td colspan=9 rowspan=9>a<ul><li><pre> b`), "application/xhtml+xml", `:has(li):not(.a\" ~ b)`, uint8(3))
	f.Add([]byte(`{"a":"\u202e"}`), "application/json; charset=iso-2022-jp", "", uint8(0))
	f.Fuzz(func(t *testing.T, page []byte, as, selector string, how uint8) {
		if len(page) > 8<<10 {
			return
		}
		s := said{http.StatusOK, strings.Map(visible, as), string(page)}
		args := []any{"url", "https://example.com/", "format", []string{asMarkdown, asText, asHTML, asLinks}[how%4]}
		if selector != "" {
			args = append(args, "selector", strings.ToValidUTF8(selector, "?"))
		}
		once := s.call(t, "web_scrape", args...)
		holdsUp(t, once)
		if again := s.call(t, "web_scrape", args...); once != again {
			t.Errorf("once %q\nthen %q", once, again)
		}
		holdsUp(t, s.call(t, "http_api", "url", "https://example.com/"))
	})
}

// visible drops what no header may hold.
func visible(r rune) rune {
	if r < ' ' || r > '~' {
		return -1
	}
	return r
}

// FuzzSearch has anything answered to a search, by either engine.
func FuzzSearch(f *testing.F) {
	f.Add([]byte(`{"results":[{"title":"a","url":"https://x","content":"b","published_date":"c"}]}`), 200)
	f.Add([]byte(`{"web":{"results":[{"title":"<b>a</b> &amp;","url":"u","description":"<","page_age":"p","extra_snippets":["x"]}]}}`), 200)
	f.Add([]byte(`{"detail":{"error":"no"},"error":{"detail":"no"}}`), 429)
	f.Add([]byte(`{"detail":["\u202e"]}`), 302)
	f.Fuzz(func(t *testing.T, body []byte, status int) {
		for _, engine := range []provider{tavily{}, brave{}} {
			found, err := engine.findings(body)
			if err == nil && len(found) > 0 {
				holdsUp(t, listing(inquiry{query: "x"}, found[:min(len(found), 20)]))
			}
			a := answer{status: status, header: http.Header{"Retry-After": {string(body)}}, mask: strings.ToUpper}
			holdsUp(t, refusal(a, "x", engine.complaint(body)))
		}
	})
}

// FuzzGitHub has anything answered to any action.
func FuzzGitHub(f *testing.F) {
	for i, body := range []string{
		`{"full_name":"a/b","topics":["x"],"license":null}`, `{"total_count":2,"items":[{"full_name":"a/b"}]}`,
		`[{"number":1,"title":"t","labels":[{"name":"l"}],"pull_request":{}}]`, `{"number":1,"body":"b","comments":0,"assignees":[null]}`,
		`{"items":[{"path":"p","repository":{"full_name":"a/b"}}]}`, `[{"head":{"label":"h"},"draft":true}]`, `{"mergeable":true,"merged_at":""}`,
		`{"type":"file","encoding":"base64","content":"YQpi"}`, `[{"sha":"1","commit":{"message":"m\n"}}]`, `[{"tag_name":"v1","draft":true}]`, `{"message":"no","errors":[{"message":"x"}]}`,
	} {
		f.Add([]byte(body), uint8(i), 200)
		f.Add([]byte(body), uint8(i), 403)
	}
	actions := []string{"get_repo", "search_repos", "list_issues", "get_issue", "search_issues", "list_prs", "get_pr", "get_file", "list_commits", "list_releases", "search_code"}
	f.Fuzz(func(t *testing.T, answered []byte, action uint8, code int) {
		if len(answered) > 64<<10 {
			return
		}
		s := said{200 + max(0, code)%400, "application/json", string(answered)}
		holdsUp(t, s.call(t, "github", "action", actions[int(action)%len(actions)], "owner", "a", "repo", "b", "number", 1, "path", "p", "query", "q"))
	})
}
