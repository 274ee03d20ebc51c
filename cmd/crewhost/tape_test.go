package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crewhost/runner/tape"
)

// Every crew of testdata/crews is recorded, as its want.txtar says, and replayed in
// another folder, where nothing is but the crew: what is on stdout is the same to the
// last byte, as text, as JSON and as events, also where the tape was recorded in another
// form. A second recording differs from the first in nothing but times.
func TestCrewsReplay(t *testing.T) {
	for _, name := range crewNames(t) {
		t.Run(name, func(t *testing.T) {
			s := readSample(t, name)
			folder := t.TempDir()
			flags := func(more ...string) []string { return append(slices.Clone(s.flags), more...) }
			file := func(form string) string { return filepath.Join(folder, form+".tape") }
			asJSON := s.start(t, s.exit, strings.NewReader(""), io.Discard, flags("--format", "json", "--record", file("json"))...)

			stdin, answers := io.Pipe()
			defer answers.Close()
			watched := flags("--events", "jsonl", "--stream", "--record", file("events"))
			if i := slices.Index(watched, "--approve"); i >= 0 && len(s.says) > 0 { // a person is there
				watched = slices.Delete(watched, i, i+2)
			}
			asEvents := s.start(t, s.exit, stdin, &answerer{answers, slices.Clone(s.says)}, watched...)

			for _, tt := range []struct {
				name, tape, want string
				flags            []string
			}{
				{"json", file("json"), asJSON.stdout, []string{"--format", "json"}},
				{"events", file("events"), asEvents.stdout, []string{"--events", "jsonl"}},
				{"events of a run that nobody watched", file("json"), eventsOn(t, file("json")), []string{"--events", "jsonl"}},
			} {
				got := s.start(t, s.exit, strings.NewReader(""), io.Discard, append(tt.flags, "--replay", tt.tape)...)
				if diff := cmp.Diff(tt.want, got.stdout); diff != "" {
					t.Errorf("%s (-recorded +replayed):\n%s\nstderr:\n%s", tt.name, diff, got.stderr)
				}
				if entries, _ := os.ReadDir(filepath.Join(got.dir, "out")); len(entries) > 0 && !dirOf(t, name, "out") {
					t.Errorf("%s: the replay left files: %v", tt.name, entries)
				}
			}
		})
	}
}

// dirOf reports whether a crew's folder has a folder of that name of its own.
func dirOf(t *testing.T, name, dir string) bool {
	t.Helper()
	_, err := os.Stat(filepath.Join(crewsDir, name, dir))
	return err == nil
}

// eventsOn are the events on a tape, as they were told.
func eventsOn(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for line := range strings.Lines(string(data)) {
		if event, ok := strings.CutPrefix(line, `{"event":`); ok {
			b.WriteString(strings.TrimSuffix(event, "}\n") + "\n")
		}
	}
	return b.String()
}

// What a replay writes with --replay-files is what the run wrote.
func TestReplayWritesFiles(t *testing.T) {
	s := readSample(t, "code-review")
	file := filepath.Join(t.TempDir(), "t")
	first := s.start(t, s.exit, strings.NewReader(""), io.Discard, append(slices.Clone(s.flags), "--record", file)...)
	again := s.start(t, s.exit, strings.NewReader(""), io.Discard, "--replay", file, "--replay-files")
	if first.stdout != again.stdout {
		t.Errorf("stdout differs:\n%s", cmp.Diff(first.stdout, again.stdout))
	}
	left := func(o outcome) map[string]string {
		files := map[string]string{}
		out := filepath.Join(o.dir, "out")
		_ = filepath.WalkDir(out, func(path string, d os.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				data, _ := os.ReadFile(path)
				files[strings.TrimPrefix(path, out)] = string(data)
			}
			return nil
		})
		return files
	}
	want := left(first)
	if len(want) == 0 {
		t.Fatal("the run left no files")
	}
	if diff := cmp.Diff(want, left(again)); diff != "" {
		t.Error(diff)
	}
}

// A run whose tape ends in the middle goes on live from there, and the tape of that is
// complete.
func TestReplayGoesOnLive(t *testing.T) {
	s := readSample(t, "meeting-minutes")
	folder := t.TempDir()
	whole, cut, other := filepath.Join(folder, "whole"), filepath.Join(folder, "cut"), filepath.Join(folder, "other")
	first := s.start(t, s.exit, strings.NewReader(""), io.Discard, append(slices.Clone(s.flags), "--record", whole)...)
	data, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(data, []byte("\n"))
	for i, line := range lines {
		if bytes.HasPrefix(line, []byte(`{"run":`)) { // the first step is the clock's
			lines = lines[:i+3]
			break
		}
	}
	write(t, folder, "cut", string(bytes.Join(lines, nil)))
	if o := s.start(t, exitFailed, strings.NewReader(""), io.Discard, "--replay", cut); !strings.Contains(o.stderr, "is not complete: it ends after step 1") {
		t.Errorf("stderr: %s", o.stderr)
	}
	o := s.start(t, s.exit, strings.NewReader(""), io.Discard, append(slices.Clone(s.flags), "--replay", cut, "--replay-from", "end", "--record", other)...)
	if o.stdout != first.stdout {
		t.Error(cmp.Diff(first.stdout, o.stdout))
	}
	a, errA := tape.Open(whole)
	b, errB := tape.Open(other)
	if errA != nil || errB != nil || !b.Complete() {
		t.Fatal(errA, errB)
	}
	if found := tape.Compare(a, b); len(found) > 0 {
		t.Errorf("the tapes differ: %+v", found)
	}
}
