//go:build unix

package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"crewhost/config"
	"crewhost/config/strict"
)

// A pipe that nobody writes to is no reason to wait for ever, named or found on
// the way up; one that a shell writes to, as <(…) is, is read (K53).
func TestPipesAsSettings(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "crewhost.yaml")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, source := range map[string]config.Source{
		"named": {Explicit: fifo}, "found": {CrewDir: dir}, "device": {Explicit: os.DevNull},
	} {
		_, err := config.Load(source)
		var issues strict.Issues
		if !errors.As(err, &issues) || len(issues) != 1 {
			t.Errorf("%s: %v", name, err)
		}
	}

	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := w.WriteString("llm: {provider: echo}\n"); err != nil {
		t.Fatal(err)
	}
	w.Close()
	path := "/dev/fd/" + strconv.Itoa(int(r.Fd()))
	if _, err := os.Stat(path); err != nil {
		t.Skipf("no %s here", path)
	}
	s, err := config.Load(config.Source{Explicit: path, CrewDir: dir})
	if err != nil || s.LLM.Provider != "echo" {
		t.Errorf("%+v, %v", s, err)
	}
}
