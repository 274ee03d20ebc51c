package tape_test

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"crewhost/runner/journal"
	"crewhost/runner/tape"
)

// Two tapes are compared step by step in the work of each agent, however that was
// mixed, and it is said what one has and the other has not.
func TestCompare(t *testing.T) {
	steps := func(all ...string) *tape.Tape {
		file, _, _ := record(t, nil, func(l *life) string {
			for _, one := range all {
				task, what, _ := strings.Cut(one, " ")
				request, answer, _ := strings.Cut(what, "=")
				l.world = func(journal.Step) (string, error) { return answer, nil }
				l.do(t.Context(), journal.Tool, task, "look", request)
			}
			return "done"
		})
		read, err := tape.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		return read
	}
	base := []string{"a 1=x", "b 1=x", "a 2=x", "a 3=x", "b 2=x"}
	for _, tt := range []struct {
		name  string
		other []string
		want  string
	}{
		{"the same", base, ""},
		{"mixed otherwise", []string{"b 1=x", "b 2=x", "a 1=x", "a 2=x", "a 3=x"}, ""},
		{"outcome", []string{"a 1=x", "b 1=x", "a 2=y", "a 3=x", "b 2=x"}, "outcome a 3 3"},
		{"request", []string{"a 1=x", "b 1=x", "a 7=x", "a 3=x", "b 2=x"}, "request a 3 3"},
		{"missing", []string{"a 1=x", "b 1=x", "a 3=x", "b 2=x"}, "missing a 3 0"},
		{"added", []string{"a 1=x", "a 0=x", "b 1=x", "a 2=x", "a 3=x", "b 2=x"}, "added a 0 2"},
		{"another task", append([]string{"c 1=x"}, base...), "added c 0 1"},
	} {
		var got []string
		for _, d := range tape.Compare(steps(base...), steps(tt.other...)) {
			got = append(got, fmt.Sprintf("%s %s %d %d", d.About, d.Scope.Task, d.A, d.B))
			if d.Diff == "" {
				t.Errorf("%s: no difference is shown", tt.name)
			}
		}
		if s := strings.Join(got, ", "); s != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, s, tt.want)
		}
	}
}

// Crews are compared where both tapes say what theirs said, and not by their paths.
func TestCompareCrews(t *testing.T) {
	of := func(digest, path string) *tape.Tape {
		file := filepath.Join(t.TempDir(), "t")
		rec, err := tape.Create(file, nil)
		if err != nil {
			t.Fatal(err)
		}
		rec.Start(tape.Start{Run: rand.Text(), Host: "test", Target: path})
		rec.Host(json.RawMessage(`{}`))
		rec.Run(tape.Run{Crew: path, Digest: digest})
		rec.End(tape.End{})
		if err := rec.Close(); err != nil {
			t.Fatal(err)
		}
		read, err := tape.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		return read
	}
	for _, tt := range []struct {
		a, b string
		want int
	}{{"x", "x", 0}, {"x", "y", 1}, {"", "y", 0}, {"", "", 0}} {
		found := tape.Compare(of(tt.a, "/one/crew.yaml"), of(tt.b, "/two/crew.yaml"))
		if len(found) != tt.want || tt.want > 0 && found[0].About != tape.AboutCrew {
			t.Errorf("%q, %q: %+v", tt.a, tt.b, found)
		}
	}
}
