package main

import (
	"cmp"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"crewhost/config"
	"crewhost/crew"
	"crewhost/tools"
)

// A sarifLog is a report as SARIF 2.1.0, which CI servers show beside the lines that
// it is about; schema/sarif.schema.json is the schema of what is written here.
type sarifLog struct {
	Schema  string     `json:"$schema"`
	Version string     `json:"version"`
	Runs    []sarifRun `json:"runs"`
}

type sarifRun struct {
	Tool       sarifTool     `json:"tool"`
	ColumnKind string        `json:"columnKind"`
	Results    []sarifResult `json:"results"`
}

type sarifTool struct {
	Driver sarifDriver `json:"driver"`
}

type sarifDriver struct {
	Name    string      `json:"name"`
	Version string      `json:"version"`
	Rules   []sarifRule `json:"rules"`
}

type sarifRule struct {
	ID    string    `json:"id"`
	Short sarifText `json:"shortDescription"`
}

type sarifText struct {
	Text string `json:"text"`
}

type sarifResult struct {
	RuleID    string          `json:"ruleId"`
	RuleIndex int             `json:"ruleIndex"`
	Level     string          `json:"level"` // error or warning
	Message   sarifText       `json:"message"`
	Locations []sarifLocation `json:"locations"`
}

type sarifLocation struct {
	Physical sarifPhysical `json:"physicalLocation"`
}

type sarifPhysical struct {
	Artifact sarifArtifact `json:"artifactLocation"`
	Region   *sarifRegion  `json:"region,omitempty"`
}

type sarifArtifact struct {
	URI  string `json:"uri"`
	Base string `json:"uriBaseId,omitempty"` // of a relative URI
}

type sarifRegion struct {
	Line   int `json:"startLine"`
	Column int `json:"startColumn,omitempty"`
}

const (
	sarifSchema = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
	levelError  = "error"
	levelWarn   = "warning"
)

// sarif is a report as SARIF: a result of each issue and of each warning, those of
// the servers and the policy included. A result is where its issue is, or at the
// file of the crew.
func (o *output) sarif(r report) sarifLog {
	root := sourceRoot(r.path)
	o = o.below(root)
	var results []sarifResult
	add := func(level string, i crew.Issue) {
		text := oneLine(i.Message)
		if i.Hint != "" {
			text += " (" + oneLine(i.Hint) + ")"
		}
		pos := inFile(i.Pos)
		if pos.File == "" {
			pos.File = r.path
		}
		results = append(results, sarifResult{
			RuleID: i.Code, Level: level, Message: sarifText{o.mask(text)}, Locations: []sarifLocation{{location(root, pos)}},
		})
	}
	for _, i := range r.verdict.Issues {
		if i.Code == codeRequiredServer && len(r.verdict.Servers) > 0 {
			continue // said with its place below
		}
		add(levelError, i)
	}
	for _, s := range failedServers(r.verdict.Servers) {
		issue := crew.Issue{Pos: r.declared(s.Name), Code: cmp.Or(string(tools.CodeOf(s.Err)), codeServer), Message: s.Err.Error()}
		if s.Required {
			issue.Code = codeRequiredServer
			add(levelError, issue)
		} else {
			add(levelWarn, issue)
		}
	}
	for _, s := range r.verdict.Servers {
		for _, skip := range s.Skipped {
			add(levelWarn, crew.Issue{Pos: r.declared(s.Name), Code: codeToolSkipped, Message: skip.String()})
		}
		for _, w := range s.Warnings {
			add(levelWarn, crew.Issue{Pos: r.declared(s.Name), Code: codeServer, Message: w})
		}
	}
	for _, w := range r.verdict.Warnings {
		add(levelWarn, w)
	}
	if s := r.settings; s != nil {
		for _, w := range s.Warnings {
			add(levelWarn, crew.Issue{Pos: placed(s, w), Code: codeSettings, Message: w})
		}
	}
	if r.policy != nil {
		for _, idle := range r.policy.Idle {
			add(levelWarn, crew.Issue{Pos: placed(r.settings, idle), Code: codeIdleRule, Message: idle})
		}
	}
	return sarifOf(results)
}

// placed is the place in the settings that a line names ("crewhost.yaml:9"), or the
// settings as a whole.
func placed(s *config.Settings, line string) crew.Pos {
	if s == nil || s.Path == "" {
		return crew.Pos{}
	}
	pos := crew.Pos{File: s.Path}
	_, after, ok := strings.Cut(line, s.Path+":")
	if !ok {
		return pos
	}
	for i, n := range strings.SplitN(after, ":", 3) {
		digits := n[:len(n)-len(strings.TrimLeft(n, "0123456789"))]
		value, err := strconv.Atoi(digits)
		if err != nil || i > 1 {
			break
		}
		if i == 0 {
			pos.Line = value
		} else {
			pos.Column = value
		}
		if digits != n {
			break
		}
	}
	return pos
}

// sarifOf makes a document of results: those of one kind share a rule.
func sarifOf(results []sarifResult) sarifLog {
	rules := []sarifRule{}
	for _, r := range results {
		if !slices.ContainsFunc(rules, func(rule sarifRule) bool { return rule.ID == r.RuleID }) {
			rules = append(rules, sarifRule{r.RuleID, sarifText{meaning(r.RuleID)}})
		}
	}
	slices.SortFunc(rules, func(a, b sarifRule) int { return cmp.Compare(a.ID, b.ID) })
	for i := range results {
		results[i].RuleIndex = slices.IndexFunc(rules, func(rule sarifRule) bool { return rule.ID == results[i].RuleID })
	}
	if results == nil {
		results = []sarifResult{}
	}
	return sarifLog{sarifSchema, "2.1.0", []sarifRun{{
		Tool: sarifTool{sarifDriver{"crewhost", version().Version, rules}}, ColumnKind: "unicodeCodePoints", Results: results,
	}}}
}

// location is a place as SARIF has it: relative to the root of the sources where it
// lies below it.
func location(root string, pos crew.Pos) sarifPhysical {
	var p sarifPhysical
	if rel := relative(root, pos.File); rel != pos.File {
		p.Artifact = sarifArtifact{URI: (&url.URL{Path: rel}).EscapedPath(), Base: "%SRCROOT%"}
		if first, _, _ := strings.Cut(p.Artifact.URI, "/"); strings.Contains(first, ":") {
			p.Artifact.URI = "./" + p.Artifact.URI // or it would be read as a scheme
		}
	} else {
		p.Artifact = sarifArtifact{URI: (&url.URL{Scheme: "file", Path: "/" + strings.TrimPrefix(filepath.ToSlash(pos.File), "/")}).String()}
	}
	if pos.Line > 0 {
		p.Region = &sarifRegion{pos.Line, max(pos.Column, 0)}
	}
	return p
}

// sourceRoot is what places are told relative to: the repository that the crew is
// in, or the working directory.
func sourceRoot(crewPath string) string {
	for dir := filepath.Dir(crewPath); filepath.IsAbs(dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, ".git")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			break
		}
	}
	dir, err := os.Getwd()
	if err != nil {
		return filepath.Dir(crewPath)
	}
	return dir
}

// below is o for texts that are the same wherever the sources lie: places in them are
// told relative to the root.
func (o *output) below(root string) *output {
	local := *o
	prefix := strings.TrimSuffix(root, string(filepath.Separator)) + string(filepath.Separator)
	local.mask = func(text string) string { return o.mask(strings.ReplaceAll(text, prefix, "")) }
	return &local
}

// inFile is a place with the absolute path of its file, or none where what it names
// is no file, such as a flag. Crews name their files from the working directory.
func inFile(pos crew.Pos) crew.Pos {
	if pos.File == "" || filepath.IsAbs(pos.File) {
		return pos
	}
	path, err := filepath.Abs(pos.File)
	if err != nil {
		return crew.Pos{}
	}
	if _, err := os.Stat(path); err != nil {
		return crew.Pos{}
	}
	pos.File = path
	return pos
}

// relative is a path below root with slashes, or the path itself where it is not
// below.
func relative(root, path string) string {
	rel, err := filepath.Rel(root, path)
	if err != nil || !filepath.IsLocal(rel) {
		return path
	}
	return filepath.ToSlash(rel)
}

// relativeIssue is an issue whose file is told relative to root.
func relativeIssue(root string, i crew.Issue) crew.Issue {
	if pos := inFile(i.Pos); pos.File != "" {
		i.File = relative(root, pos.File)
	}
	return i
}

// place writes a place as compilers do.
func place(file string, line, column int) string {
	if line > 0 {
		file += ":" + strconv.Itoa(line)
	}
	if line > 0 && column > 0 {
		file += ":" + strconv.Itoa(column)
	}
	return file
}
