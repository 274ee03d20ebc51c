package memory_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"crewhost/runner/index"
	"crewhost/runner/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, cfg memory.Config) *memory.Store {
	t.Helper()
	s, err := memory.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func keep(t *testing.T, s *memory.Store, entries ...memory.Entry) {
	t.Helper()
	for _, e := range entries {
		if err := s.Keep(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
}

// texts are what entries say, in order.
func texts(t *testing.T, found []memory.Entry, err error) []string {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
	var all []string
	for _, e := range found {
		all = append(all, e.Text)
	}
	return all
}

// What is kept comes back as it was, also after the store was closed.
func TestKeepAndRecall(t *testing.T) {
	now := time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)
	cfg := memory.Config{Path: filepath.Join(t.TempDir(), "m.db"), Now: func() time.Time { return now }}
	began := now.Add(-time.Minute)
	first, err := memory.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	keep(t, first,
		memory.Entry{Run: "1", RunAt: began, Task: "chart", Agent: "pilot", About: "Chart the channel", Text: "Nine fathoms."},
		memory.Entry{Run: "1", RunAt: began, Task: "cook", Agent: "cook", About: "Cook supper", Text: "Fish."},
		memory.Entry{Run: "2", RunAt: now, Task: "chart", Agent: "pilot", About: "Chart the channel", Text: "Eight fathoms."},
	)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	s := open(t, cfg)
	if err := s.Probe(t.Context()); err != nil {
		t.Error(err)
	}
	found, err := s.Recall(t.Context(), memory.Question{Text: "How deep is the channel?", Top: 5, NotOf: "2"})
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	if found[0].Score <= 0 || found[0].Score > 1 {
		t.Error(found[0].Score)
	}
	found[0].Score = 0
	want := memory.Entry{ID: 1, Run: "1", RunAt: began, At: now, Task: "chart", Agent: "pilot", About: "Chart the channel", Text: "Nine fathoms."}
	if diff := cmp.Diff(want, found[0]); diff != "" {
		t.Error(diff)
	}
	// Of those that are as like it the newest comes first.
	found, err = s.Recall(t.Context(), memory.Question{Text: "the channel", Top: 5})
	if diff := cmp.Diff([]string{"Eight fathoms.", "Nine fathoms."}, texts(t, found, err)); diff != "" {
		t.Error(diff)
	}
	if found, err = s.Recall(t.Context(), memory.Question{Text: "channel", Top: 5, Before: began}); len(found) > 0 || err != nil {
		t.Error("what came later is found", found, err)
	}
	found, err = s.Recall(t.Context(), memory.Question{Text: "channel supper", Top: 1})
	if len(texts(t, found, err)) != 1 {
		t.Error(found)
	}
	for _, q := range []memory.Question{{Text: "channel"}, {Text: "", Top: 5}, {Text: "submarine", Top: 5}, {Text: "supper or lunch", Top: 5, MinScore: 1.1}} {
		if found, err := s.Recall(t.Context(), q); len(found) > 0 || err != nil {
			t.Errorf("%+v: %v, %v", q, found, err)
		}
	}
}

// The same output is kept once, and a note takes the place of one of its name.
func TestNothingIsKeptTwice(t *testing.T) {
	s := open(t, memory.Config{})
	keep(t, s,
		memory.Entry{Run: "1", Task: "a", Text: "same"}, memory.Entry{Run: "1", Task: "b", Text: "same"}, memory.Entry{Run: "2", Task: "a", Text: "same"},
		memory.Entry{Run: "2", Key: "buoy", Text: "north"}, memory.Entry{Run: "3", Key: "buoy", Text: "south"}, memory.Entry{Run: "3", Text: " \n"},
	)
	found, err := s.List(t.Context(), 10)
	if diff := cmp.Diff([]string{"south", "same", "same"}, texts(t, found, err)); diff != "" {
		t.Error(diff)
	}
	if found[1].Task != "a" || found[1].Run != "2" || found[2].Task != "b" {
		t.Errorf("%+v", found)
	}
	if found, err := s.Recall(t.Context(), memory.Question{Text: "north", Top: 5}); len(found) > 0 || err != nil {
		t.Error("what was replaced is found", found, err)
	}
}

func TestBounds(t *testing.T) {
	for name, tt := range map[string]struct {
		cfg  memory.Config
		want []string
	}{
		"entries": {memory.Config{Entries: 2}, []string{"text 4", "text 3"}},
		"bytes":   {memory.Config{Bytes: 20}, []string{"text 4", "text 3", "text 2"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, tt.cfg)
			for i := range 5 {
				keep(t, s, memory.Entry{Task: fmt.Sprint(i), Text: fmt.Sprintf("text %d", i)})
			}
			found, err := s.List(t.Context(), 10)
			if diff := cmp.Diff(tt.want, texts(t, found, err)); diff != "" {
				t.Error(diff)
			}
			found, err = s.Recall(t.Context(), memory.Question{Text: "text", Top: 10})
			if diff := cmp.Diff(tt.want, texts(t, found, err)); diff != "" {
				t.Error(diff)
			}
		})
	}
	s := open(t, memory.Config{Bytes: 20})
	keep(t, s, memory.Entry{Text: "small"})
	if err := s.Keep(t.Context(), memory.Entry{Task: "big", Text: strings.Repeat("x", 21)}); err == nil || !strings.Contains(err.Error(), `task "big"`) {
		t.Error(err)
	}
	if n, err := s.Count(t.Context()); n != 1 || err != nil {
		t.Error(n, err)
	}
}

// What is forgotten is not in the file either.
func TestForgetting(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.db")
	s := open(t, memory.Config{Path: path})
	for i := range 4 {
		keep(t, s, memory.Entry{Task: fmt.Sprint(i), Text: fmt.Sprintf("confidential %d", i)})
	}
	if n, err := s.Forget(t.Context(), 2, 2, 77); n != 1 || err != nil {
		t.Error(n, err)
	}
	if _, ok, err := s.Entry(t.Context(), 2); ok || err != nil {
		t.Error(ok, err)
	}
	if n, err := s.Clear(t.Context()); n != 3 || err != nil {
		t.Error(n, err)
	}
	for _, name := range []string{path, path + "-wal"} {
		if data, err := os.ReadFile(name); strings.Contains(string(data), "confidential") {
			t.Errorf("%s still has it (%v)", name, err)
		}
	}
	keep(t, s, memory.Entry{Text: "new"})
	if found, err := s.List(t.Context(), 5); len(texts(t, found, err)) != 1 || found[0].ID != 5 { // ids are not given again
		t.Error(found)
	}
}

// sense has texts about the sea be near to one another, and fails when told to.
type sense struct {
	err    error
	asked  int
	longer int // numbers that vectors have besides
}

func (s *sense) Model() string { return "sense" }

func (s *sense) Embed(_ context.Context, texts []string) ([][]float32, error) {
	s.asked += len(texts)
	var vectors [][]float32
	for _, t := range texts {
		v := []float32{0.1, 1}
		if strings.Contains(t, "sea") || strings.Contains(t, "ocean") {
			v = []float32{1, 0.1}
		}
		vectors = append(vectors, append(v, make([]float32, s.longer)...))
	}
	return vectors, s.err
}

func TestMeaning(t *testing.T) {
	e := &sense{}
	s := open(t, memory.Config{Embedder: e})
	if err := s.Probe(t.Context()); err != nil || e.asked != 1 {
		t.Error(err, e.asked)
	}
	keep(t, s, memory.Entry{Task: "a", Text: "The sea is deep."}, memory.Entry{Task: "b", Text: "Bread is baked."})
	found, err := s.Recall(t.Context(), memory.Question{Text: "An ocean floor", Top: 1})
	if diff := cmp.Diff([]string{"The sea is deep."}, texts(t, found, err)); diff != "" {
		t.Error(diff)
	}
	// Where vectors can't be compared, or embedding fails, words are left.
	e.longer = 1
	found, err = s.Recall(t.Context(), memory.Question{Text: "bread", Top: 1})
	var lengths *index.LengthError
	if !errors.As(err, &lengths) || lengths.Query != 3 || lengths.Stored != 2 || len(found) != 1 || found[0].Text != "Bread is baked." {
		t.Error(found, err)
	}
	e.longer = 0
	e.err = errors.New("no vendor")
	if err := s.Probe(t.Context()); !errors.Is(err, e.err) {
		t.Error(err)
	}
	if err := s.Keep(t.Context(), memory.Entry{Task: "c", Text: "The sea is salt."}); !errors.Is(err, e.err) {
		t.Error(err)
	}
	found, err = s.Recall(t.Context(), memory.Question{Text: "salt", Top: 1})
	if !errors.Is(err, e.err) || len(found) != 1 || found[0].Text != "The sea is salt." {
		t.Error(found, err)
	}
}

func TestADamagedStoreIsLeftAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.db")
	if err := os.WriteFile(path, []byte("not a store"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := memory.Open(t.Context(), memory.Config{Path: path}); !errors.Is(err, index.ErrForeign) || !strings.Contains(err.Error(), path) {
		t.Error(err)
	}
}

// BenchmarkRecall is a full store with outputs of a few thousand characters.
func BenchmarkRecall(b *testing.B) {
	s, err := memory.Open(b.Context(), memory.Config{Path: filepath.Join(b.TempDir(), "m.db")})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	for i := range 2000 {
		text := strings.Repeat(fmt.Sprintf("The depth at buoy %d is %d fathoms in the channel. ", i, i%17), 40)
		if err := s.Keep(b.Context(), memory.Entry{Task: fmt.Sprint(i % 20), About: "Measure the channel at every buoy", Text: text}); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		if _, err := s.Recall(b.Context(), memory.Question{Text: "Measure the depth of the channel at the buoy 77 and report it in fathoms", Top: 5}); err != nil {
			b.Fatal(err)
		}
	}
}
