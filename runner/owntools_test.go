package runner_test

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crewhost/config"
	"crewhost/config/secret"
	"crewhost/config/strict"
	"crewhost/runner"
	"crewhost/runner/llm"
	"crewhost/runner/llm/llmtest"
	"crewhost/tools"
)

const ownSettings = `
llm: { provider: echo }
mounts: ["./in:/in:ro", "./out:/out:rw"]
permissions: { allow: [file_read], deny: [shell_command, relational_database_query, web_search, shell_comand] }
tools: { disabled: [file_write] }
`

// What is off is named with the setting that turns it on, and a rule about it is no slip.
func TestToolsThatAreOff(t *testing.T) {
	r := open(t, map[string]string{"crewhost.yaml": ownSettings, "in/a.txt": "a"})
	off := map[string]string{}
	for _, b := range r.host.Builtins() {
		_, registered := slices.BinarySearchFunc(r.host.Tools(), b.Tool.Name, func(d tools.Definition, name string) int { return strings.Compare(d.Name, name) })
		if registered != (b.Why == "") {
			t.Errorf("%s is registered: %v, and %q", b.Tool.Name, registered, b.Why)
		}
		if b.Why != "" {
			off[b.Tool.Name] = b.Why
		}
	}
	want := map[string]string{
		"file_write":                "is one of tools.disabled in the settings",
		"web_search":                "needs a search engine; name one in tools.web_search of the settings",
		"database_schema":           "is off; tools.database.enabled in the settings turns it on",
		"relational_database_query": "is off; tools.database.enabled in the settings turns it on",
		"shell_command":             "is off; tools.shell.enabled in the settings turns it on",
	}
	if diff := cmp.Diff(want, off); diff != "" {
		t.Error(diff)
	}
	if lines := r.host.IdleRules(); len(lines) != 1 || !strings.Contains(lines[0], `"shell_comand"`) {
		t.Errorf("rules that fit no tool: %q", lines)
	}
	for name, writes := range map[string]bool{"file_edit": true, "xlsx_writer": true, "file_read": false, "http_api": false, "file_write": false, "nobody": false} {
		if got := r.host.WritesFiles(name); got != writes {
			t.Errorf("%s writes files alone: %v", name, got)
		}
	}
}

// A name among tools.disabled that the host has no tool of is a problem with its place.
func TestDisabledToolsAreThere(t *testing.T) {
	dir := t.TempDir()
	settings := &config.Settings{Tools: config.Tools{Disabled: []config.Rule{
		{Pattern: "file_wirte", Pos: strict.Pos{File: filepath.Join(dir, "crewhost.yaml"), Line: 3, Column: 5}}, {Pattern: "grep"}, {Pattern: "xyzzy"},
	}}}
	_, err := runner.Open(t.Context(), runner.Config{Settings: settings})
	var issues strict.Issues
	if !errors.As(err, &issues) || len(issues) != 2 {
		t.Fatalf("got %v", err)
	}
	for i, want := range []string{`crewhost.yaml:3:5: tools.disabled: the host has no tool "file_wirte" of its own (did you mean "file_write"?) [unknown-tool]`, `"xyzzy" of its own (crewhost tools list names them)`} {
		if !strings.Contains(issues[i].Error(), want) {
			t.Errorf("got %s", issues[i].Error())
		}
	}
}

// The host's own tools say themselves where a result is cut: a model reads it as it is.
// What a server says is cut for it.
func TestResultsOfOwnToolsReachTheModelWhole(t *testing.T) {
	line := strings.Repeat("0123456789", 9) + "\n"
	script := llmtest.New(t,
		llmtest.Calls(llm.ToolCall{ID: "1", Name: "file_read", Arguments: `{"path":"/in/a.txt","max_length":20000}`}),
		llmtest.Text("done").Expect(func(req llm.Request) error {
			got := req.Messages[len(req.Messages)-1].Text()
			if n := strings.Count(got, strings.TrimSpace(line)); n < 150 || strings.Contains(got, "left out") {
				return errors.New("the model reads " + tools.Truncate(got, 500))
			}
			return nil
		}),
	)
	r := open(t, map[string]string{
		"crewhost.yaml": ownSettings, "in/a.txt": strings.Repeat(line, 200),
		"crew.yaml": "name: N\ngoal: G\nagents: { a: { role: R, goal: G, tools: [file_read] } }\ntasks: { t: { description: D, expectedOutput: E, agent: a } }\n",
	}, with(script))
	if _, err := r.host.Run(t.Context(), r.crew(nil), nil); err != nil {
		t.Fatal(err)
	}
}

// A call that is observed says how it ended.
func TestCallObserved(t *testing.T) {
	r := open(t, map[string]string{"crewhost.yaml": ownSettings, "in/a.txt": "a"})
	for _, tt := range []struct{ tool, outcome string }{{"file_read", "succeeded"}, {"grep", "denied"}, {"nobody", "refused"}} {
		_, came, err := r.host.CallObserved(t.Context(), tools.Call{Name: tt.tool, Arguments: json.RawMessage(`{"path":"/in/a.txt"}`)})
		if string(came.Outcome) != tt.outcome || (err != nil) != (tt.outcome == "refused") || (came.Answer != nil && came.Answer.Unasked) != (tt.outcome == "denied") {
			t.Errorf("%s: %+v, %v", tt.tool, came, err)
		}
	}
}

// The password of a database is masked where it stands without its connection string.
func TestPasswordOfADatabaseIsMasked(t *testing.T) {
	masked := &secret.Redactor{}
	open(t, map[string]string{"crewhost.yaml": `
llm: { provider: echo }
tools: { database: { enabled: true, connections: { shop: { url: "postgresql://app:hush%21hush@db.example.org/shop" } } } }
`}, func(c *runner.Config) { c.Redactor = masked })
	if got := masked.Redact("as hush!hush, or hush%21hush, at db.example.org"); strings.Contains(got, "hush") || !strings.Contains(got, "db.example.org") {
		t.Errorf("got %q", got)
	}
}
