package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"crewhost/config/secret"
)

// TestQuickstart runs the README's first command on the crew as it stands in the
// repository: a real server, a real file, no key, no network. Only the mount is
// another, so that the test leaves nothing behind.
func TestQuickstart(t *testing.T) {
	t.Chdir(filepath.Join("..", ".."))
	out := t.TempDir()
	var stdout, stderr bytes.Buffer
	redactor := &secret.Redactor{}
	c := &console{in: strings.NewReader(""), out: &stdout, err: &stderr, environ: os.Environ(), redactor: redactor}
	code := start(c, []string{"run", "testdata/quickstart/crew.yaml", "--mount", out + ":/out:rw"})
	if code != exitOK {
		t.Fatalf("exit code %d:\n%s", code, &stderr)
	}
	page, err := os.ReadFile(filepath.Join(out, "tides.md"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(page), "# Spring and neap tides\n") {
		t.Errorf("the page: %s", page)
	}
	if got, want := strings.TrimSpace(stdout.String()), strings.TrimSpace(string(page)); got != want {
		t.Errorf("stdout is not the page:\n%s", got)
	}
	for _, line := range []string{`MCP server "notes" connected`, "search_notes(query) of notes: done", "add_note(text, topic) of notes: done", "file_write(content, path): done", "run finished: 3 tasks"} {
		if !strings.Contains(stderr.String(), line) {
			t.Errorf("stderr has no %q:\n%s", line, &stderr)
		}
	}
}

// The crew is good for a real model as it is: naming a provider is all it takes.
func TestQuickstartOnARealModel(t *testing.T) {
	t.Chdir(filepath.Join("..", ".."))
	var stdout, stderr bytes.Buffer
	environ := append(os.Environ(), "CREWHOST_LLM__PROVIDER=openai", "CREWHOST_LLM__MODEL=m",
		"CREWHOST_LLM__BASE_URL=http://127.0.0.1:1/v1", "CREWHOST_LLM__MAX_RETRIES=0")
	c := &console{in: strings.NewReader(""), out: &stdout, err: &stderr, environ: environ, redactor: &secret.Redactor{}}
	if code := start(c, []string{"run", "testdata/quickstart/crew.yaml", "--mount", t.TempDir() + ":/out:rw"}); code != exitFailed {
		t.Errorf("exit code %d:\n%s", code, &stderr)
	}
	if !strings.Contains(stderr.String(), "127.0.0.1:1") {
		t.Errorf("no word of the model that was asked:\n%s", &stderr)
	}
}
