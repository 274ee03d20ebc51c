package web

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"crewhost/tools/native"
)

type hubUser struct{ Login string }

type hubRepo struct {
	FullName      string `json:"full_name"`
	Description   string
	URL           string `json:"html_url"`
	Homepage      string
	Language      string
	Stars         int    `json:"stargazers_count"`
	Forks         int    `json:"forks_count"`
	OpenIssues    int    `json:"open_issues_count"`
	DefaultBranch string `json:"default_branch"`
	Archived      bool
	Private       bool
	Fork          bool
	Topics        []string
	License       struct {
		SPDX string `json:"spdx_id"`
	}
	Created string `json:"created_at"`
	Pushed  string `json:"pushed_at"`
}

func (h *hub) getRepo(ctx context.Context) (string, error) {
	var r hubRepo
	if err := h.get(ctx, nil, &r, "repos", h.owner, h.repo); err != nil {
		return "", err
	}
	var l list
	l.row("%s", line(r.FullName, 200))
	l.field("Description", r.Description)
	l.field("URL", r.URL)
	l.field("Homepage", r.Homepage)
	l.field("Language", r.Language)
	l.field("Topics", strings.Join(r.Topics, ", "))
	l.field("Licence", r.License.SPDX)
	l.row("Stars: %d, forks: %d, open issues and pull requests: %d", r.Stars, r.Forks, r.OpenIssues)
	l.field("Default branch", r.DefaultBranch)
	l.row("Created %s, last push %s", day(r.Created), day(r.Pushed))
	for _, is := range []struct {
		so   bool
		what string
	}{{r.Archived, "archived"}, {r.Private, "private"}, {r.Fork, "a fork"}} {
		if is.so {
			l.row("It is %s.", is.what)
		}
	}
	return l.String(), nil
}

func (h *hub) searchRepos(ctx context.Context) (string, error) {
	var found struct {
		Total int `json:"total_count"`
		Items few[hubRepo]
	}
	if err := h.get(ctx, h.paged("q", h.query), &found, "search", "repositories"); err != nil {
		return "", err
	}
	var l list
	l.row("%s for %s", native.Plural(found.Total, "repository", "repositories"), strconv.Quote(h.query))
	for _, r := range found.Items {
		l.row("- %s (%s, %d stars, last push %s): %s", line(r.FullName, 200), line(r.Language, 40), r.Stars, day(r.Pushed), line(r.Description, 300))
	}
	return l.String(), nil
}

type hubIssue struct {
	Number   int
	Title    string
	State    string
	Reason   string `json:"state_reason"`
	Body     string
	URL      string `json:"html_url"`
	User     hubUser
	Labels   []struct{ Name string }
	Assigned []hubUser `json:"assignees"`
	Comments int
	Created  string           `json:"created_at"`
	Closed   string           `json:"closed_at"`
	Pull     *json.RawMessage `json:"pull_request"`
}

// row is the issue in a line.
func (i hubIssue) row(l *list) {
	kind := ""
	if i.Pull != nil {
		kind = " pull request"
	}
	var labels []string
	for _, x := range i.Labels {
		labels = append(labels, x.Name)
	}
	tail := ""
	if len(labels) > 0 {
		tail = ", labels: " + line(strings.Join(labels, ", "), 150)
	}
	l.row("- #%d %s%s: %s (%s, %s, %s%s)", i.Number, line(i.State, 20), kind, line(i.Title, 250), line(i.User.Login, 60), day(i.Created), native.Plural(i.Comments, "comment", "comments"), tail)
}

func (h *hub) listIssues(ctx context.Context) (string, error) {
	var issues few[hubIssue]
	if err := h.get(ctx, h.paged("state", h.state), &issues, "repos", h.owner, h.repo, "issues"); err != nil {
		return "", err
	}
	var l list
	l.row("Issues of %s/%s (%s), page %d", h.owner, h.repo, h.state, h.page)
	shown := 0
	for _, i := range issues {
		if i.Pull == nil { // which the API counts among them
			i.row(&l)
			shown++
		}
	}
	if shown == 0 {
		l.row("None on this page.")
	}
	return l.String(), nil
}

func (h *hub) searchIssues(ctx context.Context) (string, error) {
	var found struct {
		Total int `json:"total_count"`
		Items few[hubIssue]
	}
	if err := h.get(ctx, h.paged("q", h.narrowed()), &found, "search", "issues"); err != nil {
		return "", err
	}
	var l list
	l.row("%s for %s", native.Plural(found.Total, "issue or pull request", "issues and pull requests"), strconv.Quote(h.query))
	for _, i := range found.Items {
		i.row(&l)
		l.row("  %s", line(i.URL, 300))
	}
	return l.String(), nil
}

// narrowed is the query within a repository, if one is named.
func (h *hub) narrowed() string {
	switch {
	case h.owner != "" && h.repo != "":
		return h.query + " repo:" + h.owner + "/" + h.repo
	case h.owner != "":
		return h.query + " user:" + h.owner
	}
	return h.query
}

func (h *hub) getIssue(ctx context.Context) (string, error) {
	var i hubIssue
	if err := h.get(ctx, nil, &i, "repos", h.owner, h.repo, "issues", strconv.Itoa(h.number)); err != nil {
		return "", err
	}
	var l list
	i.row(&l)
	l.field("URL", i.URL)
	l.field("Closed", strings.TrimSpace(day(i.Closed)+" "+i.Reason))
	var assigned []string
	for _, u := range i.Assigned {
		assigned = append(assigned, u.Login)
	}
	l.field("Assigned to", strings.Join(assigned, ", "))
	l.row("\n%s", strings.TrimSpace(i.Body))
	if i.Comments > 0 {
		if err := h.comments(ctx, &l); err != nil {
			return "", err
		}
	}
	return l.String(), nil
}

// comments adds a page of an issue's comments.
func (h *hub) comments(ctx context.Context, l *list) error {
	var all few[struct {
		User    hubUser
		Body    string
		Created string `json:"created_at"`
	}]
	if err := h.get(ctx, h.paged(), &all, "repos", h.owner, h.repo, "issues", strconv.Itoa(h.number), "comments"); err != nil {
		return err
	}
	for _, c := range all {
		l.row("\n## %s, %s\n\n%s", line(c.User.Login, 60), day(c.Created), strings.TrimSpace(c.Body))
	}
	return nil
}

type hubPull struct {
	Number                        int
	Title, State, Body            string
	URL                           string `json:"html_url"`
	User                          hubUser
	Draft, Merged                 bool
	MergedAt                      string `json:"merged_at"`
	Created                       string `json:"created_at"`
	Head, Base                    struct{ Label, Ref string }
	Commits, Additions, Deletions int
	Comments                      int
	Files                         int   `json:"changed_files"`
	Mergeable                     *bool `json:"mergeable"`
}

// row is the pull request in a line.
func (p hubPull) row(l *list) {
	state := line(p.State, 20)
	if p.MergedAt != "" {
		state = "merged " + day(p.MergedAt)
	}
	if p.Draft {
		state += " draft"
	}
	l.row("- #%d %s: %s (%s, %s, %s into %s)", p.Number, state, line(p.Title, 250), line(p.User.Login, 60), day(p.Created), line(p.Head.Label, 120), line(p.Base.Ref, 120))
}

func (h *hub) listPulls(ctx context.Context) (string, error) {
	var pulls few[hubPull]
	if err := h.get(ctx, h.paged("state", h.state), &pulls, "repos", h.owner, h.repo, "pulls"); err != nil {
		return "", err
	}
	var l list
	l.row("Pull requests of %s/%s (%s), page %d", h.owner, h.repo, h.state, h.page)
	for _, p := range pulls {
		p.row(&l)
	}
	if len(pulls) == 0 {
		l.row("None on this page.")
	}
	return l.String(), nil
}

func (h *hub) getPull(ctx context.Context) (string, error) {
	number := strconv.Itoa(h.number)
	var p hubPull
	if err := h.get(ctx, nil, &p, "repos", h.owner, h.repo, "pulls", number); err != nil {
		return "", err
	}
	var files few[struct {
		Name      string `json:"filename"`
		Before    string `json:"previous_filename"`
		Status    string
		Additions int
		Deletions int
	}]
	if err := h.get(ctx, h.paged(), &files, "repos", h.owner, h.repo, "pulls", number, "files"); err != nil {
		return "", err
	}
	var l list
	p.row(&l)
	l.field("URL", p.URL)
	if p.Mergeable != nil && p.MergedAt == "" {
		l.row("Can be merged: %t", *p.Mergeable)
	}
	l.row("%s, %s, +%d -%d in %s", native.Plural(p.Commits, "commit", "commits"), native.Plural(p.Comments, "comment", "comments"), p.Additions, p.Deletions, native.Plural(p.Files, "file", "files"))
	l.row("\n%s\n\nFiles, page %d:", strings.TrimSpace(p.Body), h.page)
	for _, f := range files {
		name := line(f.Name, 300)
		if f.Before != "" {
			name += ", which was " + line(f.Before, 300)
		}
		l.row("- %s (%s, +%d -%d)", name, line(f.Status, 20), f.Additions, f.Deletions)
	}
	return l.String(), nil
}

func (h *hub) getFile(ctx context.Context) (string, error) {
	var raw json.RawMessage
	query := url.Values{}
	if h.ref != "" {
		query.Set("ref", h.ref)
	}
	segments := []string{"repos", h.owner, h.repo, "contents"}
	if h.path != "" {
		segments = append(segments, strings.Split(h.path, "/")...)
	}
	if err := h.get(ctx, query, &raw, segments...); err != nil {
		return "", err
	}
	type entry struct {
		Type, Name, Path, Encoding, Content, Target string
		Size                                        int
		Download                                    string `json:"download_url"`
	}
	var entries few[entry]
	if json.Unmarshal(raw, &entries) == nil {
		var l list
		l.row("Folder /%s of %s/%s, %s", h.path, h.owner, h.repo, native.Plural(len(entries), "entry", "entries"))
		for _, e := range entries {
			switch e.Type {
			case "dir":
				l.row("- %s/", line(e.Name, 300))
			default:
				l.row("- %s (%s, %d bytes)", line(e.Name, 300), line(e.Type, 20), e.Size)
			}
		}
		return l.String(), nil
	}
	var e entry
	if err := decode(raw, &e); err != nil {
		return "", fmt.Errorf("GitHub answers with what can't be read: %w.", err)
	}
	if e.Type != "file" || e.Encoding != "base64" {
		what := "a " + line(e.Type, 20)
		if e.Type == "file" {
			what = "larger than this API gives"
		}
		return "", fmt.Errorf("/%s of %s/%s is %s, %d bytes. http_api with save_to gets it from %s", h.path, h.owner, h.repo, what, e.Size, line(e.Download, 500))
	}
	data, err := base64.StdEncoding.DecodeString(strings.ReplaceAll(e.Content, "\n", ""))
	switch {
	case err != nil:
		return "", fmt.Errorf("GitHub answers with what can't be read: its content is no base64.")
	case !utf8.Valid(data):
		return "", fmt.Errorf("/%s of %s/%s is no text in UTF-8, %d bytes. http_api with save_to gets it from %s", h.path, h.owner, h.repo, e.Size, line(e.Download, 500))
	}
	return string(data), nil
}

func (h *hub) listCommits(ctx context.Context) (string, error) {
	var commits few[struct {
		SHA    string
		Commit struct {
			Message string
			Author  struct{ Name, Date string }
		}
	}]
	if err := h.get(ctx, h.paged("sha", h.ref, "path", h.path), &commits, "repos", h.owner, h.repo, "commits"); err != nil {
		return "", err
	}
	var l list
	l.row("Commits of %s/%s, page %d", h.owner, h.repo, h.page)
	for _, c := range commits {
		subject, _, _ := strings.Cut(c.Commit.Message, "\n")
		l.row("- %s %s %s: %s", c.SHA[:min(len(c.SHA), 12)], day(c.Commit.Author.Date), line(c.Commit.Author.Name, 60), line(subject, 250))
	}
	if len(commits) == 0 {
		l.row("None on this page.")
	}
	return l.String(), nil
}

func (h *hub) listReleases(ctx context.Context) (string, error) {
	var releases few[struct {
		Tag        string `json:"tag_name"`
		Name, Body string
		Draft      bool
		Prerelease bool
		Published  string `json:"published_at"`
	}]
	if err := h.get(ctx, h.paged(), &releases, "repos", h.owner, h.repo, "releases"); err != nil {
		return "", err
	}
	var l list
	l.row("Releases of %s/%s, page %d", h.owner, h.repo, h.page)
	for _, r := range releases {
		state := ""
		if r.Prerelease {
			state = ", prerelease"
		}
		if r.Draft {
			state += ", draft"
		}
		l.row("- %s, %s%s: %s", line(r.Tag, 100), day(r.Published), state, line(r.Name, 200))
		if notes := line(r.Body, 500); notes != "" {
			l.row("  %s", notes)
		}
	}
	if len(releases) == 0 {
		l.row("None on this page.")
	}
	return l.String(), nil
}

func (h *hub) searchCode(ctx context.Context) (string, error) {
	var found struct {
		Total int `json:"total_count"`
		Items few[struct {
			Path       string
			Repository hubRepo
		}]
	}
	if err := h.get(ctx, h.paged("q", h.narrowed()), &found, "search", "code"); err != nil {
		return "", err
	}
	var l list
	l.row("%s for %s", native.Plural(found.Total, "file", "files"), strconv.Quote(h.query))
	for _, i := range found.Items {
		l.row("- %s: %s", line(i.Repository.FullName, 200), line(i.Path, 500))
	}
	return l.String(), nil
}
