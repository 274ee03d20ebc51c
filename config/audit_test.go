package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAudit(t *testing.T) {
	dir := t.TempDir()
	state := filepath.Join(dir, "state")
	load := func(text string, environ ...string) (*Settings, error) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "crewhost.yaml"), []byte("mounts: []\n"+text), 0o644); err != nil {
			t.Fatal(err)
		}
		return Load(Source{CrewDir: dir, UserStateDir: state, Environ: environ})
	}
	off := Audit{File: filepath.Join(state, "crewhost", "audit", "audit.jsonl"), MaxBytes: 16 << 20, Keep: 20, Required: true}
	on := off
	on.Enabled = true
	named := on
	named.File, named.MaxBytes, named.Keep, named.Required = filepath.Join(dir, "logs", "a.jsonl"), 4096, 0, false
	for _, tt := range []struct {
		text    string
		environ []string
		want    Audit
	}{
		{"", nil, off},
		{"audit: false\n", nil, off},
		{"audit: true\n", nil, on},
		{"audit: {}\n", nil, on},
		{"", []string{"CREWHOST_AUDIT=true"}, on},
		{"audit: {file: logs/a.jsonl, max_bytes: 4096, keep: 0, required: false}\n", nil, named},
		{"audit: {file: logs/a.jsonl, keep: 0, required: false}\n", []string{"CREWHOST_AUDIT__MAX_BYTES=4096"}, named},
	} {
		s, err := load(tt.text, tt.environ...)
		if err != nil {
			t.Errorf("%s %v: %v", tt.text, tt.environ, err)
			continue
		}
		if diff := cmp.Diff(tt.want, s.Audit); diff != "" {
			t.Errorf("%s %v: %s", tt.text, tt.environ, diff)
		}
	}
	for wrong, words := range map[string]string{
		"audit:\n":                     "crewhost.yaml:2:7: audit says nothing",
		"audit: {keep: -1}\n":          "keep",
		"audit: {max_bytes: 0}\n":      "max_bytes",
		"audit: {fil: x}\n":            "did you mean",
		"audit: sometimes\n":           "audit must be a boolean",
		"audit: {required: perhaps}\n": "required",
	} {
		if _, err := load(wrong); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v", wrong, err)
		}
	}
	state = ""
	if _, err := load("audit: true\n"); err == nil || !strings.Contains(err.Error(), "audit.file is missing") {
		t.Errorf("a log that is kept nowhere: %v", err)
	}
	if s, err := load(""); err != nil || s.Audit.File != "" {
		t.Errorf("no log: %v", err)
	}
}

func TestLocked(t *testing.T) {
	dir := t.TempDir()
	for text, want := range map[string]string{
		"mcp: {locked: true}\n":                         "true ",
		"mcp: {locked: true, lock_file: pins/a.lock}\n": "true " + filepath.Join(dir, "pins", "a.lock"),
		"mcp: {enabled: true}\n":                        "false ",
	} {
		if err := os.WriteFile(filepath.Join(dir, "crewhost.yaml"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		s, err := Load(Source{CrewDir: dir})
		if err != nil {
			t.Fatal(err)
		}
		got := "false "
		if s.MCP.Locked {
			got = "true "
		}
		if got += s.MCP.LockFile; got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	s, err := Load(Source{CrewDir: t.TempDir(), Environ: []string{"CREWHOST_MCP__LOCKED=true"}})
	if err != nil || !s.MCP.Locked {
		t.Errorf("by a variable: %v", err)
	}
}
