package config

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMemory(t *testing.T) {
	dir := t.TempDir()
	load := func(text string, environ ...string) (*Settings, error) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "crewhost.yaml"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return Load(Source{CrewDir: dir, UserStateDir: filepath.Join(dir, "state"), Environ: environ})
	}
	s, err := load("mounts: []\n")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Memory{Dir: filepath.Join(dir, "state", "crewhost", "memory"), Entries: 10_000, Bytes: 64 << 20, Recall: 5, Chars: 4_000}, s.Memory); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(Knowledge{Files: 2_000, Bytes: 64 << 20, Chunks: 20_000}, s.Knowledge); diff != "" {
		t.Error(diff)
	}
	s, err = load("memory: {dir: kept, recall: 0}\nknowledge: {chunks: 7}\n", "CREWHOST_MEMORY__CHARS=100", "CREWHOST_KNOWLEDGE__FILES=3")
	if err != nil {
		t.Fatal(err)
	}
	if s.Memory.Dir != filepath.Join(dir, "kept") || s.Memory.Recall != 0 || s.Memory.Chars != 100 || s.Knowledge.Chunks != 7 || s.Knowledge.Files != 3 {
		t.Errorf("%+v, %+v", s.Memory, s.Knowledge)
	}
	for _, wrong := range []string{"memory: {entries: 0}", "memory: {recall: -1}", "memory: {path: x}", "knowledge: {bytes: 0}"} {
		if _, err := load(wrong + "\n"); err == nil {
			t.Errorf("%s is taken", wrong)
		}
	}
}
