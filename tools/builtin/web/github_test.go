package web

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"crewhost/tools/native/nativetest"
)

// octocats is a mock of the API: what is at each path, with its query.
func octocats(answers map[string]string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, ok := answers[r.RequestURI]
		if !ok || r.Header.Get("Accept") != "application/vnd.github+json" || r.Header.Get("X-Github-Api-Version") == "" || r.Method != "GET" {
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprintf(w, `{"message":"Not Found","documentation_url":"https://docs.example.com/","at":%q}`, r.RequestURI)
			return
		}
		if strings.Contains(r.RequestURI, "page=1") {
			w.Header().Set("Link", `<https://api.example.com/x?page=2>; rel="next", <https://api.example.com/x?page=9>; rel="last"`)
		}
		_, _ = io.WriteString(w, body)
	}
}

func TestGitHub(t *testing.T) {
	const issue = `{"number":7,"title":"Lights out","state":"open","body":"It is dark.\r\n\u202eVery.","html_url":"https://github.example.com/o/r/issues/7","user":{"login":"kim"},"labels":[{"name":"bug"},{"name":"night"}],"assignees":[{"login":"lee"}],"comments":2,"created_at":"2026-04-01T10:00:00Z"}`
	const pull = `{"number":9,"title":"New lights","state":"closed","merged_at":"2026-04-03T00:00:00Z","body":"Brighter.","user":{"login":"lee"},"created_at":"2026-04-02T00:00:00Z","head":{"label":"lee:lights"},"base":{"ref":"main"},"commits":2,"additions":10,"deletions":3,"changed_files":1,"html_url":"https://github.example.com/o/r/pull/9"}`
	s := newSite(t, octocats(map[string]string{
		"/repos/o/r":    `{"full_name":"o/r","description":"Harbour","html_url":"https://github.example.com/o/r","language":"Go","stargazers_count":5,"forks_count":1,"open_issues_count":2,"default_branch":"main","license":{"spdx_id":"MIT"},"topics":["sea","port"],"archived":true,"created_at":"2025-01-01T00:00:00Z","pushed_at":"2026-04-01T00:00:00Z"}`,
		"/repos/o/null": `{"full_name":"o/null","description":null,"license":null,"language":null}`,
		"/search/repositories?page=1&per_page=30&q=lights+language%3Ago": `{"total_count":1,"items":[{"full_name":"o/r","description":"Harbour","language":"Go","stargazers_count":5,"pushed_at":"2026-04-01T00:00:00Z"}]}`,
		"/repos/o/r/issues?page=1&per_page=30&state=open":                `[` + issue + `,{"number":8,"title":"A pull","state":"open","user":{"login":"x"},"pull_request":{}}]`,
		"/repos/o/r/issues?page=3&per_page=2&state=all":                  `[]`,
		"/repos/o/r/issues/7":                                    issue,
		"/repos/o/r/issues/7/comments?page=1&per_page=30":        `[{"user":{"login":"lee"},"body":"I know.","created_at":"2026-04-02T00:00:00Z"},{"user":null,"body":"Me, too.","created_at":"2026-04-03T00:00:00Z"}]`,
		"/search/issues?page=1&per_page=30&q=dark+repo%3Ao%2Fr":  `{"total_count":1,"items":[` + issue + `]}`,
		"/repos/o/r/pulls?page=1&per_page=30&state=closed":       `[` + pull + `]`,
		"/repos/o/r/pulls/9":                                     pull,
		"/repos/o/r/pulls/9/files?page=1&per_page=30":            `[{"filename":"lights.go","status":"modified","additions":10,"deletions":3},{"filename":"b","previous_filename":"a","status":"renamed"}]`,
		"/repos/o/r/contents/docs/a%20b.md?ref=v1":               `{"type":"file","encoding":"base64","size":6,"content":"` + base64.StdEncoding.EncodeToString([]byte("# Hé\n"))[:4] + `\n` + base64.StdEncoding.EncodeToString([]byte("# Hé\n"))[4:] + `\n"}`,
		"/repos/o/r/contents/docs":                               `[{"type":"dir","name":"img","path":"docs/img"},{"type":"file","name":"a b.md","path":"docs/a b.md","size":6}]`,
		"/repos/o/r/contents":                                    `[]`,
		"/repos/o/r/contents/big.bin":                            `{"type":"file","encoding":"none","size":2000000,"content":"","download_url":"https://raw.example.com/big.bin"}`,
		"/repos/o/r/contents/pic.png":                            `{"type":"file","encoding":"base64","size":4,"content":"iVBORw==","download_url":"https://raw.example.com/pic.png"}`,
		"/repos/o/r/contents/sub":                                `{"type":"submodule","size":0,"download_url":null}`,
		"/repos/o/r/commits?page=1&path=docs&per_page=30&sha=v1": `[{"sha":"0123456789abcdef","commit":{"message":"Say more\n\nof lights","author":{"name":"Kim","date":"2026-04-01T10:00:00Z"}}}]`,
		"/repos/o/r/releases?page=1&per_page=30":                 `[{"tag_name":"v1","name":"One","body":"First\nrelease","prerelease":true,"published_at":"2026-04-01T10:00:00Z"}]`,
		"/search/code?page=1&per_page=30&q=lamp+user%3Ao":        `{"total_count":1,"items":[{"path":"lights.go","repository":{"full_name":"o/r"}}]}`,
	}))
	const more = "\n[There is more: page 2.]"
	for arguments, want := range map[string]string{
		`{"action":"get_repo","owner":"o","repo":"r"}`:                                                           "o/r\nDescription: Harbour\nURL: https://github.example.com/o/r\nLanguage: Go\nTopics: sea, port\nLicence: MIT\nStars: 5, forks: 1, open issues and pull requests: 2\nDefault branch: main\nCreated 2025-01-01, last push 2026-04-01\nIt is archived.",
		`{"action":"get_repo","repo":"o/null"}`:                                                                  "o/null\nStars: 0, forks: 0, open issues and pull requests: 0\nCreated , last push",
		`{"action":"search_repos","query":"lights language:go"}`:                                                 "1 repository for \"lights language:go\"\n- o/r (Go, 5 stars, last push 2026-04-01): Harbour" + more,
		`{"action":"list_issues","owner":"o","repo":"r"}`:                                                        "Issues of o/r (open), page 1\n- #7 open: Lights out (kim, 2026-04-01, 2 comments, labels: bug, night)" + more,
		`{"action":"list_issues","repo":"o/r","state":"all","page":3,"per_page":2}`:                              "Issues of o/r (all), page 3\nNone on this page.",
		`{"action":"get_issue","owner":"o","repo":"r","number":7}`:                                               "- #7 open: Lights out (kim, 2026-04-01, 2 comments, labels: bug, night)\nURL: https://github.example.com/o/r/issues/7\nAssigned to: lee\n\nIt is dark.\nVery.\n\n## lee, 2026-04-02\n\nI know.\n\n## , 2026-04-03\n\nMe, too." + more,
		`{"action":"search_issues","query":"dark","repo":"o/r"}`:                                                 "1 issue or pull request for \"dark\"\n- #7 open: Lights out (kim, 2026-04-01, 2 comments, labels: bug, night)\n  https://github.example.com/o/r/issues/7" + more,
		`{"action":"list_prs","owner":"o","repo":"r","state":"closed"}`:                                          "Pull requests of o/r (closed), page 1\n- #9 merged 2026-04-03: New lights (lee, 2026-04-02, lee:lights into main)" + more,
		`{"action":"get_pr","owner":"o","repo":"r","number":"9"}`:                                                "- #9 merged 2026-04-03: New lights (lee, 2026-04-02, lee:lights into main)\nURL: https://github.example.com/o/r/pull/9\n2 commits, 0 comments, +10 -3 in 1 file\n\nBrighter.\n\nFiles, page 1:\n- lights.go (modified, +10 -3)\n- b, which was a (renamed, +0 -0)" + more,
		`{"action":"get_file","owner":"o","repo":"r","path":"/docs/a b.md","ref":"v1"}`:                          "# Hé",
		`{"action":"get_file","owner":"o","repo":"r","path":"docs/"}`:                                            "Folder /docs of o/r, 2 entries\n- img/\n- a b.md (file, 6 bytes)",
		`{"action":"get_file","owner":"o","repo":"r","path":"/"}`:                                                "Folder / of o/r, 0 entries",
		`{"action":"get_file","owner":"o","repo":"r","path":"docs/a b.md","ref":"v1","offset":2,"max_length":1}`: "H\n[Characters 2 to 3 of 4. To go on, give offset 3.]",
		`{"action":"list_commits","owner":"o","repo":"r","path":"docs","ref":"v1"}`:                              "Commits of o/r, page 1\n- 0123456789ab 2026-04-01 Kim: Say more" + more,
		`{"action":"list_releases","owner":"o","repo":"r"}`:                                                      "Releases of o/r, page 1\n- v1, 2026-04-01, prerelease: One\n  First release" + more,
		`{"action":"search_code","query":"lamp","owner":"o"}`:                                                    "1 file for \"lamp\"\n- o/r: lights.go" + more,
	} {
		s.WantText("github", arguments, want)
	}
	for arguments, says := range map[string]string{
		`{"action":"get_file","owner":"o","repo":"r","path":"big.bin"}`: "larger than this API gives, 2000000 bytes. http_api with save_to gets it from https://raw.example.com/big.bin",
		`{"action":"get_file","owner":"o","repo":"r","path":"pic.png"}`: "no text in UTF-8",
		`{"action":"get_file","owner":"o","repo":"r","path":"sub"}`:     "is a submodule",
		`{"action":"get_file","owner":"o","repo":"r","path":"none"}`:    "there is no such thing, or it is private",
	} {
		s.WantFailure("github", arguments, says)
	}
	s.took()
	for arguments, says := range map[string]string{
		`{"action":"create_issue","owner":"o","repo":"r"}`:                           "github only reads",
		`{"action":"delete_repo","owner":"o","repo":"r"}`:                            "must be one of get_repo",
		`{"action":"get_issue","owner":"o","repo":"r"}`:                              `get_issue needs the argument "number"`,
		`{"action":"get_repo"}`:                                                      `get_repo needs the argument "owner"`,
		`{"action":"search_issues","query":"x","repo":"r"}`:                          `search_issues needs the argument "owner"`,
		`{"action":"search_code"}`:                                                   `needs the argument "query"`,
		`{"action":"get_file","repo":"o/r"}`:                                         `needs the argument "path"`,
		`{"action":"get_file","repo":"o/r","path":"../../../user"}`:                  `has ".." in it`,
		`{"action":"get_repo","owner":"..","repo":"r"}`:                              "no name on GitHub",
		`{"action":"get_repo","owner":"o?x=","repo":"r"}`:                            "no name on GitHub",
		`{"action":"get_repo","owner":"o","repo":"r/../../user"}`:                    "no name on GitHub",
		nativetest.Args("action", "search_repos", "query", strings.Repeat("x", 300)): "longer than 256",
	} {
		s.WantFailure("github", arguments, says)
	}
	if requests, _ := s.took(); len(requests) != 0 {
		t.Errorf("%d requests were sent", len(requests))
	}
}

func TestGitHubRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		status  int
		headers map[string]string
		body    string
		says    []string
	}{
		"anonymous": {403, map[string]string{"X-Ratelimit-Remaining": "0", "X-Ratelimit-Reset": "1775124000"}, `{"message":"API rate limit exceeded for 1.2.3.4"}`, []string{"until 2026-04-02T10:00:00Z", "tools.github.credential"}},
		"429":       {429, map[string]string{"X-Ratelimit-Remaining": "0", "X-Ratelimit-Reset": "1775124000"}, ``, []string{"until 2026-04-02T10:00:00Z"}},
		"secondary": {403, map[string]string{"Retry-After": "60"}, `{"message":"You have exceeded a secondary rate limit"}`, []string{"try again after 60 seconds"}},
		"forbidden": {403, nil, `{"message":"Resource not accessible by personal access token"}`, []string{"HTTP 403", "not accessible"}},
		"401":       {401, nil, `{"message":"Bad credentials"}`, []string{"Bad credentials", "tools.github.credential"}},
		"422":       {422, nil, `{"message":"Validation Failed","errors":[{"message":"The search is longer than 256 characters."}]}`, []string{"HTTP 422", "Validation Failed; The search is longer"}},
		"410":       {410, nil, `{"message":"Issues are disabled for this repo"}`, []string{"Issues are disabled"}},
		"502":       {502, nil, `<html>`, []string{"HTTP 502", "try again later"}},
		"html":      {200, nil, `<html>`, []string{"can't be read", "no JSON"}},
		"shape":     {200, nil, `[1]`, []string{"can't be read"}},
		"long":      {200, nil, strings.Repeat(" ", 2<<20), []string{"more than 1048576 bytes"}},
	} {
		s := newSite(t, func(w http.ResponseWriter, _ *http.Request) {
			for k, v := range c.headers {
				w.Header().Set(k, v)
			}
			w.WriteHeader(c.status)
			_, _ = io.WriteString(w, c.body)
		})
		s.WantFailure("github", `{"action":"get_repo","repo":"o/r"}`, c.says...)
		if text, _ := s.Call("github", `{"action":"get_repo","repo":"o/r"}`); strings.Contains(text, "1.2.3.4") {
			t.Errorf("%s shows where this host is: %s", name, text)
		}
	}
}
