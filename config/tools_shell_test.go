package config

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func patterns(rules []Rule) string {
	var list []string
	for _, r := range rules {
		list = append(list, r.Pattern)
	}
	return strings.Join(list, ", ")
}

func TestShellDefaults(t *testing.T) {
	s, err := Load(Source{CrewDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if got := patterns(s.Tools.Shell.Allow); s.Tools.Shell.Enabled || s.Tools.Shell.Confine != ConfineRequire || got != "ls, cat, pwd, which, grep, wc, echo, git status, git log, git diff, git show" {
		t.Errorf("%t, %s", s.Tools.Shell.Enabled, got)
	}
}

func TestShell(t *testing.T) {
	dir := files(t, map[string]string{"crewhost.yaml": `
tools:
  shell:
    enabled: true
    allow: [go test, git log]
    interpreters: true
    env: {TOKEN: "${T}", MODE: fast}
    confine: auto
    network: true
    timeout: 5m
    bytes: 1000
`})
	s, err := Load(Source{CrewDir: dir, Environ: []string{"T=sk-canary"}})
	if err != nil {
		t.Fatal(err)
	}
	got := s.Tools.Shell
	if !got.Enabled || !got.Interpreters || !got.Network || got.Confine != ConfineAuto || got.Timeout != 5*time.Minute || got.Bytes != 1000 || patterns(got.Allow) != "go test, git log" {
		t.Errorf("%+v", got)
	}
	if len(got.Environ) != 2 || got.Environ[0].Reveal() != "MODE=fast" || got.Environ[1].Reveal() != "TOKEN=sk-canary" || strings.Contains(got.Environ[1].String(), "canary") {
		t.Errorf("%v", got.Environ)
	}
	if diff := cmp.Diff(strings.TrimSpace(`
crewhost.yaml:3:13: tools.shell.allow: "/bin/ls" is more than the name of a program (a name to be found on the PATH, and the first arguments that it must have: git log) [bad-value]
crewhost.yaml:3:22: tools.shell.allow: "ls | wc" is more than the name of a program (a name to be found on the PATH, and the first arguments that it must have: git log) [bad-value]
crewhost.yaml:4:14: tools.shell.confine: "yes" is not known (known: auto, off, require) [bad-value]
`), faults(t, "tools:\n  shell:\n    allow: [/bin/ls, ls | wc]\n    confine: \"yes\"\n")); diff != "" {
		t.Error(diff)
	}
}

// TestOrkeonShell: a list of programs turns the tool on there, and so it does here.
func TestOrkeonShell(t *testing.T) {
	for text, want := range map[string]string{
		`{"Orkeon": {"Tools": {"Shell": {"ExtraAllowedCommands": ["go test", "make"]}}}}`:                      "true false ls, cat, pwd, which, grep, wc, echo, git status, git log, git diff, git show, go test, make",
		`{"Orkeon:Tools:Shell:AllowedCommands": ["ls", "cat"]}`:                                                "true false ls, cat",
		`{"Orkeon": {"Tools": {"Shell": {"allowedcommands": ["ls"], "ExtraAllowedCommands": ["wc"]}}}}`:        "true false ls, wc",
		`{"Orkeon": {"Tools": {"Shell": {"AllowInterpreters": "true", "ExtraAllowedCommands": ["python3"]}}}}`: "true true ls, cat, pwd, which, grep, wc, echo, git status, git log, git diff, git show, python3",
		`{"Orkeon": {"Tools": {"Shell": {"AllowInterpreters": false}}}}`:                                       "false false ls, cat, pwd, which, grep, wc, echo, git status, git log, git diff, git show",
		`{"Orkeon:Tools:Shell": {"AllowInterpreters": "True"}}`:                                                "true true ls, cat, pwd, which, grep, wc, echo, git status, git log, git diff, git show",
		`{"Orkeon": {"Tools": {}}}`: "false false ls, cat, pwd, which, grep, wc, echo, git status, git log, git diff, git show",
	} {
		dir := files(t, map[string]string{"appsettings.json": text})
		s, err := Load(Source{CrewDir: dir})
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		got := strings.Join([]string{map[bool]string{true: "true", false: "false"}[s.Tools.Shell.Enabled], map[bool]string{true: "true", false: "false"}[s.Tools.Shell.Interpreters], patterns(s.Tools.Shell.Allow)}, " ")
		if got != want {
			t.Errorf("%s\ngot  %s\nwant %s", text, got, want)
		}
	}
	dir := files(t, map[string]string{"appsettings.json": `{"Orkeon": {"Tools": {"Shell": {"AllowedCommand": ["ls"], "ExtraAllowedCommands": "ls"}, "Github": {}}}}`})
	_, err := Load(Source{CrewDir: dir})
	if diff := cmp.Diff(strings.TrimSpace(`
appsettings.json:1:33: unknown key "AllowedCommand" in Orkeon:Tools:Shell (did you mean "AllowedCommands"?) [unknown-key]
appsettings.json:1:83: Orkeon:Tools:Shell:ExtraAllowedCommands must be a list, not a string [wrong-type]
`), problems(t, err, dir)); diff != "" {
		t.Error(diff)
	}
}
