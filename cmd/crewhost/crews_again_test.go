package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// A crew of testdata/crews can be run again where it has left its files: no record of a
// tape waits for what file_write says of a new file alone.
func TestCrewsRunAgain(t *testing.T) {
	tapes, err := filepath.Glob(filepath.Join(crewsDir, "*", "*tape.jsonl"))
	if err != nil || len(tapes) == 0 {
		t.Fatalf("%d tapes: %v", len(tapes), err)
	}
	for _, name := range tapes {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range bytes.Split(data, []byte("\n")) {
			match, _, _ := bytes.Cut(line, []byte(`"response"`))
			if bytes.Contains(match, []byte(`"Created /`)) {
				t.Errorf("%s:%d waits for \"Created\", and the second run reads \"Replaced\"", name, i+1)
			}
		}
	}
}
