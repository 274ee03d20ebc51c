package journal_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"crewhost/runner/journal"
)

// journalOf is the journal of a short run.
func journalOf(tb testing.TB) []byte {
	tb.Helper()
	dir := tb.TempDir()
	l, err := journal.Create(journal.Config{Dir: dir}, journal.Header{Run: "run-1", Crew: "c", At: began})
	if err != nil {
		tb.Fatal(err)
	}
	for i := range 3 {
		_, err = l.Do(tb.Context(), call("x", string(rune('a'+i))), done)
		if err != nil {
			tb.Fatal(err)
		}
	}
	if err := errors.Join(l.Task(journal.TaskEnd{Task: "x", State: journal.TaskCompleted}), l.End(journal.End{}), l.Close()); err != nil {
		tb.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "run-1.jsonl"))
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

// records reads a journal, each record as JSON.
func records(data []byte) (all []string, err error) {
	r := journal.NewReader(bytes.NewReader(data))
	for {
		record, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		text, _ := json.Marshal(record)
		all = append(all, string(text))
	}
}

// begins reports whether a is how b begins.
func begins(a, b []string) bool {
	if len(a) > len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// Whatever is cut off at the end, what is read is what was written before, whole: a
// line that is torn is none. Nothing of it is taken for damage.
func TestTornAnywhere(t *testing.T) {
	data := journalOf(t)
	want, err := records(data)
	if err != nil || len(want) != 9 {
		t.Fatalf("%d records, %v", len(want), err)
	}
	for n := range data {
		got, err := records(data[:n])
		if err != nil || !begins(got, want) || len(got) != bytes.Count(data[:n], []byte("\n")) {
			t.Errorf("cut at %d: %d records, %v", n, len(got), err)
		}
		// What some file systems leave after a loss of power.
		if got, err := records(append(bytes.Clone(data[:n]), make([]byte, 100)...)); err != nil || !begins(got, want) {
			t.Errorf("zeros from %d on: %d records, %v", n, len(got), err)
		}
	}
}

// Whatever byte is another, no record is taken that was not written, and the damage is
// said, with its line; so it is where lines are doubled, left out or changed about.
func TestDamagedAnywhere(t *testing.T) {
	data := journalOf(t)
	want, _ := records(data)
	for n := range data {
		for _, flip := range []byte{0x01, 0x20, 0x80, data[n] ^ '\n', data[n] ^ '"'} {
			if flip == 0 {
				continue
			}
			own := bytes.Clone(data)
			own[n] ^= flip
			got, err := records(own)
			var damaged *journal.DamagedError
			if !errors.As(err, &damaged) {
				t.Fatalf("byte %d, %q for %q: %d records, and no error but %v", n, own[n], data[n], len(got), err)
			}
			if line := bytes.Count(data[:n], []byte("\n")); !begins(got, want) || len(got) > line || damaged.Line > int64(line)+1 {
				t.Fatalf("byte %d of line %d, %q for %q: %d records, %v", n, line+1, own[n], data[n], len(got), err)
			}
		}
	}
	lines := bytes.SplitAfter(data, []byte("\n"))
	for i := range len(lines) - 2 {
		for name, own := range map[string][][]byte{
			"left out": append(append([][]byte{}, lines[:i]...), lines[i+1:]...),
			"doubled":  append(append(append([][]byte{}, lines[:i+1]...), lines[i]), lines[i+1:]...),
			"swapped":  append(append(append([][]byte{}, lines[:i]...), lines[i+1], lines[i]), lines[i+2:]...),
		} {
			got, err := records(bytes.Join(own, nil))
			if err == nil || !begins(got, want) {
				t.Errorf("line %d %s: %d records, %v", i+1, name, len(got), err)
			}
		}
	}
}

// A journal that is damaged is not resumed, and says of what it is.
func TestADamagedJournalIsNotResumed(t *testing.T) {
	data := journalOf(t)
	cfg := journal.Config{Dir: t.TempDir()}
	data[len(data)/2] ^= 1
	if err := os.WriteFile(filepath.Join(cfg.Dir, "run-1.jsonl"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	var damaged *journal.DamagedError
	if _, err := journal.Open(cfg, "run-1"); !errors.As(err, &damaged) {
		t.Errorf("%v", err)
	}
	if d, err := journal.Show(cfg.Dir, "run-1"); err != nil || !errors.As(d.Err, &damaged) || d.Header.Crew != "c" {
		t.Errorf("%+v, %v", d, err)
	}
	var out bytes.Buffer
	if err := journal.Export(&out, cfg.Dir, "run-1"); !errors.As(err, &damaged) || !bytes.HasPrefix(data, out.Bytes()) || out.Len() == 0 {
		t.Errorf("%v", err)
	}
}

// Other versions are said to be that.
func TestVersions(t *testing.T) {
	_, err := records(journal.Line(nil, 1, `{"at":"2026-01-01T00:00:00Z","run":{"version":9,"run":"x"}}`))
	var damaged *journal.DamagedError
	if err == nil || errors.As(err, &damaged) || err.Error() != "the journal is of version 9, and this program reads version 1" {
		t.Errorf("%v", err)
	}
}

func FuzzReader(f *testing.F) {
	whole := journalOf(f)
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	f.Add([]byte{})
	f.Add([]byte("\n"))
	f.Add(journal.Line(nil, 1, `{"at":"2026-01-01T00:00:00Z","run":{"version":1,"run":"x"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := journal.NewReader(bytes.NewReader(data))
		n := 0
		for {
			record, err := r.Next()
			if err != nil {
				break
			}
			if n++; (n == 1) != (record.Header != nil) {
				t.Fatal("a journal has one header, and begins with it")
			}
		}
		if n > bytes.Count(data, []byte("\n")) {
			t.Fatal("there are more records than lines")
		}
		// Whatever it is, opening it does no more than fail.
		cfg := journal.Config{Dir: t.TempDir()}
		if err := os.WriteFile(filepath.Join(cfg.Dir, "x.jsonl"), data, 0o600); err != nil {
			t.Fatal(err)
		}
		if runs, err := journal.List(cfg.Dir); err != nil || len(runs) != 1 {
			t.Fatal(err)
		}
		l, err := journal.Open(cfg, "x")
		if err != nil {
			return
		}
		if err := errors.Join(l.Resume(journal.Life{}), l.Close()); err != nil {
			t.Fatal(err)
		}
		if _, err := records(must(os.ReadFile(filepath.Join(cfg.Dir, "x.jsonl")))); err != nil {
			t.Fatalf("what was resumed can't be read: %v", err)
		}
	})
}

func must(data []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return data
}
