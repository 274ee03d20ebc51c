package main

import (
	"errors"
	"strings"
	"testing"
)

// fullDisk is a stdout that takes nothing.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

// A run whose result nobody gets has failed, as one whose events nobody gets has;
// what tells of no run is as wrong usage.
func TestExitCodeOfWhatCannotBeWritten(t *testing.T) {
	s := readSample(t, "robo-adviser")
	for _, tt := range []struct {
		exit  int
		flags []string
	}{
		{exitFailed, []string{"--approve", "allow"}},
		{exitFailed, []string{"--approve", "allow", "--format", "json"}},
		{exitFailed, []string{"--approve", "allow", "--events", "jsonl"}},
		{exitUsage, []string{"--list-tools"}},
		{exitUsage, []string{"--validate"}},
	} {
		o := s.start(t, tt.exit, strings.NewReader(""), fullDisk{}, tt.flags...)
		if lines := strings.Split(strings.TrimSpace(o.stderr), "\n"); !strings.HasPrefix(lines[len(lines)-1], "ERROR: writing the ") {
			t.Errorf("%q: %s", tt.flags, o.stderr)
		}
	}
}
