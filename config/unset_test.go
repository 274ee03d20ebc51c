package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"crewhost/config"
)

// Who is not about to use what the settings name can read them where its variables are
// not set.
func TestUnsetVariablesMayMeanSomething(t *testing.T) {
	dir := t.TempDir()
	const text = `mcp:
  servers:
    notes:
      url: ${NOTES_URL}
      headers: {Authorization: "Bearer ${NOTES_TOKEN}"}
    files:
      command: files
      args: ["${FILES_DIR:-/srv}", "${GIVEN}"]
`
	if err := os.WriteFile(filepath.Join(dir, "crewhost.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	source := config.Source{CrewDir: dir, Environ: []string{"GIVEN="}}
	if _, err := config.Load(source); err == nil || !strings.Contains(err.Error(), "NOTES_URL is not set") {
		t.Fatal(err)
	}
	source.Unset = "http://unset.invalid"
	settings, err := config.Load(source)
	if err != nil {
		t.Fatal(err)
	}
	notes, files := settings.MCP.Servers[0], settings.MCP.Servers[1]
	if notes.Name != "notes" {
		notes, files = files, notes
	}
	if got := notes.URL.Reveal(); got != "http://unset.invalid" {
		t.Errorf("the URL is %q", got)
	}
	if a, b := files.Args[0].Reveal(), files.Args[1].Reveal(); a != "/srv" || b != "" {
		t.Errorf("a default and what is set are changed: %q, %q", a, b)
	}
}
