package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"crewhost/config"
	"crewhost/crew"
	"crewhost/runner/event"
	"crewhost/tools/mount"
)

func readme(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// Every command and every flag is documented.
func TestReadmeNamesEveryFlag(t *testing.T) {
	text := readme(t)
	var walk func(prefix string, commands []*cli.Command)
	walk = func(prefix string, commands []*cli.Command) {
		for _, command := range commands {
			name := prefix + " " + command.Name
			if !strings.Contains(text, name) && command.Name != "run" {
				t.Errorf("the README does not name the command %q", name)
			}
			for _, f := range command.Flags {
				flag := "--" + f.Names()[0]
				if len(f.Names()[0]) == 1 {
					flag = flag[1:]
				}
				if f.Names()[0] != "help" && !strings.Contains(text, "`"+flag) && !strings.Contains(text, " "+flag) {
					t.Errorf("the README does not name %s of %s", flag, name)
				}
			}
			walk(name, command.Subcommands)
		}
	}
	walk("crewhost", newApp(&console{}).Commands)
}

// Every link within the README leads to a heading, and every part is in the contents.
func TestReadmeLinks(t *testing.T) {
	text := regexp.MustCompile("(?s)```.*?```").ReplaceAllString(readme(t), "")
	anchors := map[string]int{}
	var parts []string
	for _, m := range regexp.MustCompile("(?m)^(#+) (.+)$").FindAllStringSubmatch(text, -1) {
		anchor := strings.ReplaceAll(regexp.MustCompile(`[^a-z0-9 _-]`).ReplaceAllString(strings.ToLower(m[2]), ""), " ", "-")
		if anchors[anchor]++; m[1] == "##" && m[2] != "Contents" {
			parts = append(parts, anchor)
		}
	}
	_, contents, _ := strings.Cut(text, "\n## Contents\n")
	contents, _, _ = strings.Cut(contents, "\n## ")
	for _, part := range parts {
		if !strings.Contains(contents, "](#"+part+")") {
			t.Errorf("the contents do not name #%s", part)
		}
	}
	for _, m := range regexp.MustCompile(`\]\(#([^)]*)\)`).FindAllStringSubmatch(text, -1) {
		if anchors[m[1]] == 0 {
			t.Errorf("there is no heading for #%s", m[1])
		}
	}
}

// Every kind of event is documented.
func TestReadmeNamesEveryEvent(t *testing.T) {
	text := readme(t)
	for _, kind := range event.Kinds() {
		if !strings.Contains(text, "`"+string(kind)+"`") {
			t.Errorf("the README does not name the event %s", kind)
		}
	}
}

// Every mount that the README writes out is one.
func TestReadmeMounts(t *testing.T) {
	found := regexp.MustCompile("[`\"](\\./[^`\"\\s]*:/[^`\"\\s]*)[`\"]").FindAllStringSubmatch(readme(t), -1)
	for _, m := range found {
		if _, err := mount.Parse(m[1]); err != nil {
			t.Error(err)
		}
	}
	if len(found) < 2 {
		t.Errorf("only %d mounts found", len(found))
	}
}

// Every example of settings and crews in the README is read without a fault.
func TestReadmeExamples(t *testing.T) {
	fence := regexp.MustCompile("(?s)```yaml\n(.*?)```")
	settings, crews := 0, 0
	for _, m := range fence.FindAllStringSubmatch(readme(t), -1) {
		dir := t.TempDir()
		text := m[1]
		switch {
		case strings.Contains(text, "\ntasks:") && strings.Contains(text, "goal:") && strings.HasPrefix(text, "name:"):
			crews++
			write(t, dir, "crew.yaml", text)
			if _, err := crew.Load(filepath.Join(dir, "crew.yaml")); err != nil {
				t.Errorf("%v in\n%s", err, text)
			}
		case strings.HasPrefix(text, "agents:") && strings.Contains(text, "mcp_servers:"):
			write(t, dir, "over.yaml", text)
			if _, err := crew.LoadOverride(filepath.Join(dir, "over.yaml")); err != nil {
				t.Errorf("%v in\n%s", err, text)
			}
		case strings.HasPrefix(text, "llm:") || strings.HasPrefix(text, "mcp:"):
			settings++
			write(t, dir, "crewhost.yaml", text)
			_, err := config.Load(config.Source{CrewDir: dir, Environ: []string{"SEARCH_TOKEN=secret"}})
			if err != nil {
				t.Errorf("%v in\n%s", err, text)
			}
		}
	}
	if settings < 2 || crews < 1 {
		t.Errorf("only %d settings and %d crews among the examples", settings, crews)
	}
}
