package index_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"crewhost/runner/index"
)

// writerVariable names the file that this test binary, started by itself, writes.
const writerVariable = "INDEX_TEST_WRITER"

func TestMain(m *testing.M) {
	if path := os.Getenv(writerVariable); path != "" {
		if err := write(path, os.Getpid(), 20); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

func config(path string) index.Config {
	return index.Config{Path: path, Application: 7, Version: 1, Schema: "CREATE TABLE entry (id INTEGER PRIMARY KEY, text TEXT NOT NULL)"}
}

func open(t testing.TB, path string) *index.File {
	t.Helper()
	f, err := index.Open(t.Context(), config(path))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

func add(ctx context.Context, f *index.File, text string, vector ...float32) error {
	return f.Update(ctx, func(tx *index.Tx) error {
		id, err := tx.Insert("INSERT INTO entry (text) VALUES (?)", text)
		if err != nil {
			return err
		}
		if err := tx.Index(id, text); err != nil {
			return err
		}
		return tx.Embed(id, "m", vector)
	})
}

func write(path string, writer, times int) error {
	f, err := index.Open(context.Background(), config(path))
	if err != nil {
		return err
	}
	for i := range times {
		if err := add(context.Background(), f, fmt.Sprintf("note %d of writer %d", i, writer)); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	return f.Close()
}

func ids(hits []index.Hit) []int64 {
	var ids []int64
	for _, h := range hits {
		ids = append(ids, h.ID)
	}
	return ids
}

func TestSearch(t *testing.T) {
	f := open(t, "")
	for _, e := range []struct {
		text   string
		vector []float32
	}{
		{"The highest tides come at full moon.", []float32{1, 0}},
		{"Ships are painted below the waterline.", []float32{0, 1}},
		{"Une marée d'équinoxe, bien haute.", nil},
		{"満潮は一日に二回あります。", nil},
		{"Nothing of note happened.", []float32{0, 0}},
	} {
		if err := add(t.Context(), f, e.text, e.vector...); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		name string
		q    index.Query
		want []int64
	}{
		{"a plural, in other letters", index.Query{Text: "TIDE?"}, []int64{1}},
		{"without accents", index.Query{Text: "maree equinoxe"}, []int64{3}},
		{"a script without spaces", index.Query{Text: "満潮"}, []int64{4}},
		{"nothing", index.Query{Text: "submarine"}, nil},
		{"a blank", index.Query{Text: " ?! "}, nil},
		{"operators and quotes", index.Query{Text: `") OR text:NEAR( "tides" * ^ -- ; DROP TABLE entry`}, []int64{1}},
		{"by meaning alone", index.Query{Text: "sea level", Vector: []float32{0.9, 0.1}, Model: "m"}, []int64{1, 2}},
		{"by meaning, well enough", index.Query{Text: "sea level", Vector: []float32{0.9, 0.1}, Model: "m", MinScore: 0.5}, []int64{1}},
		{"of another model", index.Query{Text: "sea level", Vector: []float32{0.9, 0.1}, Model: "n"}, nil},
		{"both ways agree", index.Query{Text: "painted ships", Vector: []float32{0.1, 1}, Model: "m"}, []int64{2, 1}},
		{"a condition", index.Query{Text: "tides ships", Where: "id > ?", Args: []any{1}}, []int64{2}},
		{"few", index.Query{Text: "tides ships", Top: 1}, []int64{2}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.q.Top == 0 {
				tt.q.Top = 10
			}
			hits, err := f.Search(t.Context(), tt.q)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, ids(hits)); diff != "" {
				t.Error(diff)
			}
			for _, h := range hits {
				if h.Score < 0 || h.Score > 1 {
					t.Errorf("%d has the score %v", h.ID, h.Score)
				}
			}
		})
	}
}

// Vectors of another length are told with both lengths, beside what was found
// without them.
func TestVectorsOfAnotherLength(t *testing.T) {
	f := open(t, "")
	for text, vector := range map[string][]float32{"The tides are high.": {1, 0}, "Bread is baked.": {0, 1}} {
		if err := add(t.Context(), f, text, vector...); err != nil {
			t.Fatal(err)
		}
	}
	hits, err := f.Search(t.Context(), index.Query{Text: "tides", Vector: []float32{1, 0, 0}, Model: "m", Top: 5})
	var lengths *index.LengthError
	if !errors.As(err, &lengths) || len(hits) != 1 {
		t.Fatal(hits, err)
	}
	if diff := cmp.Diff(&index.LengthError{Model: "m", Query: 3, Stored: 2, Count: 2}, lengths); diff != "" {
		t.Error(diff)
	}
}

// Of entries that are alike the newest comes first, where that is asked for.
func TestRecent(t *testing.T) {
	f := open(t, "")
	for range 3 {
		if err := add(t.Context(), f, "tides"); err != nil {
			t.Fatal(err)
		}
	}
	for recent, want := range map[bool][]int64{true: {3, 2, 1}, false: {1, 2, 3}} {
		hits, err := f.Search(t.Context(), index.Query{Text: "tides", Top: 3, Recent: recent})
		if diff := cmp.Diff(want, ids(hits)); diff != "" || err != nil {
			t.Error(err, diff)
		}
	}
}

func TestDrop(t *testing.T) {
	f := open(t, "")
	for _, text := range []string{"high tides", "low tides"} {
		if err := add(t.Context(), f, text, 1); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Update(t.Context(), func(tx *index.Tx) error { return tx.Drop("text = ?", "high tides") }); err != nil {
		t.Fatal(err)
	}
	hits, err := f.Search(t.Context(), index.Query{Text: "tides high", Vector: []float32{1}, Model: "m", Top: 9})
	if diff := cmp.Diff([]int64{2}, ids(hits)); diff != "" || err != nil {
		t.Error(err, diff)
	}
}

// A change that is given up in the middle leaves the rest as it is, in memory too.
func TestAChangeThatIsGivenUp(t *testing.T) {
	f := open(t, "")
	if err := add(t.Context(), f, "tides"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err := f.Update(ctx, func(tx *index.Tx) error {
		cancel()
		return tx.Exec("INSERT INTO entry (text) VALUES ('x')")
	})
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	hits, err := f.Search(t.Context(), index.Query{Text: "tides", Top: 5})
	if diff := cmp.Diff([]int64{1}, ids(hits)); diff != "" || err != nil {
		t.Error(err, diff)
	}
}

// An error in the middle of a change leaves nothing of it.
func TestAChangeIsWhole(t *testing.T) {
	f := open(t, filepath.Join(t.TempDir(), "a.db"))
	fault := errors.New("no more")
	err := f.Update(t.Context(), func(tx *index.Tx) error {
		if err := tx.Exec("INSERT INTO entry (text) VALUES ('x')"); err != nil {
			return err
		}
		return fault
	})
	if !errors.Is(err, fault) || !strings.Contains(err.Error(), "a.db") {
		t.Error(err)
	}
	rows := 0
	if err := f.Rows(t.Context(), func(func(...any) error) error { rows++; return nil }, "SELECT 1 FROM entry"); err != nil || rows != 0 {
		t.Error(rows, err)
	}
}

func TestOnlyItsOwnerReadsAFile(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files have other rights")
	}
	dir := filepath.Join(t.TempDir(), "new", "folder")
	path := filepath.Join(dir, "a%20?#&.db")
	f := open(t, path)
	if err := add(t.Context(), f, "text"); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) == 0 {
		t.Fatal(entries, err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", e.Name(), info.Mode(), err)
		}
		if !strings.HasPrefix(e.Name(), "a%20?#&.db") {
			t.Errorf("there is %s", e.Name())
		}
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Error(info.Mode(), err)
	}
}

// What is refused is named, and left as it is.
func TestRefused(t *testing.T) {
	made := func(t *testing.T, cfg index.Config) []byte {
		cfg.Path = filepath.Join(t.TempDir(), "x.db")
		f, err := index.Open(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 200 {
			if err := add(t.Context(), f, strings.Repeat(fmt.Sprintf("word%d ", i), 200)); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(cfg.Path)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	foreign, later := config(""), config("")
	foreign.Application, later.Version = 8, 2
	damaged := made(t, config(""))
	for i := 8192; i < len(damaged)-4096; i++ {
		damaged[i] = byte(i)
	}
	for name, tt := range map[string]struct {
		data []byte
		want error
	}{
		"a text":             {[]byte("dear diary"), index.ErrForeign},
		"a long text":        {[]byte(strings.Repeat("dear diary ", 1000)), index.ErrForeign},
		"another program's":  {made(t, foreign), index.ErrForeign},
		"a later version's":  {made(t, later), index.ErrLater},
		"damaged pages":      {damaged, index.ErrDamaged},
		"cut off":            {made(t, config(""))[:9000], index.ErrDamaged},
		"nothing but a head": {[]byte("SQLite format 3\x00"), index.ErrForeign},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "mine.db")
			if err := os.WriteFile(path, tt.data, 0o600); err != nil {
				t.Fatal(err)
			}
			f, err := index.Open(t.Context(), config(path))
			if err == nil {
				_ = f.Close()
			}
			if !errors.Is(err, tt.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("%v", err)
			}
			if now, err := os.ReadFile(path); err != nil || string(now) != string(tt.data) {
				t.Errorf("the file was changed: %v", err)
			}
		})
	}
	t.Run("a folder", func(t *testing.T) {
		dir := t.TempDir()
		if _, err := index.Open(t.Context(), config(dir)); err == nil || !strings.Contains(err.Error(), dir) {
			t.Error(err)
		}
	})
	t.Run("below a file", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		var pe *fs.PathError
		if _, err := index.Open(t.Context(), config(filepath.Join(path, "a.db"))); !errors.As(err, &pe) {
			t.Error(err)
		}
	})
}

// Processes and goroutines that begin with one file at the same moment all have
// their way with it.
func TestManyWriters(t *testing.T) {
	path := filepath.Join(t.TempDir(), "shared.db")
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			child := exec.CommandContext(t.Context(), os.Args[0])
			child.Env = append(os.Environ(), writerVariable+"="+path)
			if out, err := child.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	for i := range 2 {
		wg.Go(func() {
			if err := write(path, i, 20); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	f := open(t, path)
	count := 0
	if err := f.Rows(t.Context(), func(scan func(...any) error) error { return scan(&count) }, "SELECT count(*) FROM entry"); err != nil || count != 80 {
		t.Error(count, err)
	}
	if err := f.Probe(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestTerms(t *testing.T) {
	for text, want := range map[string][]string{
		"":                         nil,
		"It's 5 o'clock, Größe!":   {"it", "s", "5", "o", "clock", "große"},
		"naïve Ünïcode":            {"naive", "unicode"},
		"東京 is big":                {"東京", "is", "big"},
		"水":                        {"水"},
		"潮汐表v2":                    {"潮汐", "汐表", "v2"},
		strings.Repeat("x", 65):    nil,
		"\xff\x00a":                {"a"},
		strings.Repeat("y", 64):    {strings.Repeat("y", 64)},
		"snake_case and key.value": {"snake", "case", "and", "key", "value"},
	} {
		if diff := cmp.Diff(want, index.Terms(text)); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
}

// FuzzSearch: any text can be kept and looked for; it is never an error, and what
// is looked for in its own words is found.
func FuzzSearch(f *testing.F) {
	var many strings.Builder
	for i := range 300 {
		fmt.Fprintf(&many, "w%d ", i)
	}
	for _, seed := range []string{
		"", "tides", `"`, `'`, `""""`, "AND OR NOT NEAR", "a* ^b", "col:umn", "(((", "\x00", "\xff\xfe", "満潮", "x' OR 1=1 --",
		"{text} : x", "a + b", many.String(), "K", "ſ İ ß", "\u0301",
	} {
		f.Add(seed)
	}
	file := open(f, "")
	f.Fuzz(func(t *testing.T, text string) {
		if err := add(t.Context(), file, text); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		hits, err := file.Search(t.Context(), index.Query{Text: text, Top: 1})
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if len(index.Terms(text)) > 0 && len(hits) == 0 && len(text) < 32<<10 {
			t.Errorf("%q does not find itself", text)
		}
		if err := file.Update(t.Context(), func(tx *index.Tx) error { return tx.Drop("1") }); err != nil {
			t.Fatal(err)
		}
	})
}
