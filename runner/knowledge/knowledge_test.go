package knowledge_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"

	"crewhost/runner/index"
	"crewhost/runner/knowledge"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// shelf is documents by their names, and how often each was read.
type shelf map[string]string

func (s shelf) collection(name string) knowledge.Collection {
	c := knowledge.Collection{Name: name, Chunking: knowledge.Chunking{MaxTokens: 12, Overlap: 3}}
	for _, doc := range slices.Sorted(func(yield func(string) bool) {
		for name := range s {
			if !yield(name) {
				return
			}
		}
	}) {
		c.Documents = append(c.Documents, knowledge.Document{Name: doc, Read: func(_ context.Context, limit int64) ([]byte, error) {
			if int64(len(s[doc])) > limit {
				return nil, knowledge.ErrTooLarge
			}
			return []byte(s[doc]), nil
		}})
	}
	return c
}

func open(t *testing.T, cfg knowledge.Config) *knowledge.Library {
	t.Helper()
	l, err := knowledge.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

func sync(t *testing.T, l *knowledge.Library, collections ...knowledge.Collection) knowledge.Report {
	t.Helper()
	r, err := l.Sync(t.Context(), collections)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func find(t *testing.T, l *knowledge.Library, q knowledge.Question) []string {
	t.Helper()
	if q.Top == 0 {
		q.Top = 5
	}
	found, err := l.Find(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range found {
		all = append(all, e.Cite()+" "+strings.ReplaceAll(e.Text, "\n", "|"))
	}
	return all
}

// The library follows what happens to the documents, and does no more than that.
func TestSync(t *testing.T) {
	path := filepath.Join(t.TempDir(), "k.db")
	docs := shelf{
		"tides.md": "# Tides\n\nHigh tide is at six.\n\n# Winds\n\nThe wind is from the west, mostly.\n",
		"log.csv":  "day,wind\n1,west wind of some force\n2,east wind of some force\n3,north wind of some force\n",
	}
	others := shelf{"menu.txt": "Fish is served at six."}
	l := open(t, knowledge.Config{Path: path})
	if diff := cmp.Diff(knowledge.Report{Documents: 3, Changed: 3, Chunks: 6}, sync(t, l, docs.collection("sea"), others.collection("food"))); diff != "" {
		t.Fatal(diff)
	}
	for _, tt := range []struct {
		q    knowledge.Question
		want []string
	}{
		{knowledge.Question{Text: "When is high tide?", Collections: []string{"sea"}, Top: 1}, []string{"tides.md:1-3 # Tides||High tide is at six."}},
		{knowledge.Question{Text: "What is at six?", Collections: []string{"food"}}, []string{"menu.txt:1 Fish is served at six."}},
		{knowledge.Question{Text: "menu", Collections: []string{"sea", "food"}}, []string{"menu.txt:1 Fish is served at six."}},
		{knowledge.Question{Text: "east", Top: 1}, []string{"log.csv:3 day,wind|2,east wind of some force"}},
		{knowledge.Question{Text: "submarine"}, nil},
		{knowledge.Question{Text: "fish", Collections: []string{"none"}}, nil},
		{knowledge.Question{Text: "fish", MinScore: 1, Top: 5}, []string{"menu.txt:1 Fish is served at six."}},
		{knowledge.Question{Text: "high tide, and submarine winds", MinScore: 0.9}, nil},
	} {
		if diff := cmp.Diff(tt.want, find(t, l, tt.q)); diff != "" {
			t.Errorf("%+v: %s", tt.q, diff)
		}
	}

	// Another run, another process: nothing has changed.
	l = open(t, knowledge.Config{Path: path})
	if diff := cmp.Diff(knowledge.Report{Documents: 3, Chunks: 6}, sync(t, l, docs.collection("sea"), others.collection("food"))); diff != "" {
		t.Error(diff)
	}
	// One changes, one goes, one comes.
	docs["tides.md"] = "High tide is at seven."
	delete(docs, "log.csv")
	docs["new.md"] = "Low tide is at noon."
	if diff := cmp.Diff(knowledge.Report{Documents: 3, Changed: 2, Removed: 1, Chunks: 3}, sync(t, l, docs.collection("sea"), others.collection("food"))); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"tides.md:1 High tide is at seven."}, find(t, l, knowledge.Question{Text: "high tide", Top: 1})); diff != "" {
		t.Error(diff)
	}
	// Cut in another way, it is cut anew; a collection that is gone is dropped.
	c := docs.collection("sea")
	c.MaxTokens = 100
	if diff := cmp.Diff(knowledge.Report{Documents: 2, Changed: 2, Removed: 1, Chunks: 2}, sync(t, l, c)); diff != "" {
		t.Error(diff)
	}
}

// Runs that index the same documents at the same moment do not get in each other's
// way.
func TestSyncTogether(t *testing.T) {
	path := filepath.Join(t.TempDir(), "k.db")
	docs := shelf{}
	for i := range 20 {
		docs[fmt.Sprintf("%d.md", i)] = fmt.Sprintf("Buoy %d lies in the channel, and so does its chain, which is of iron.", i)
	}
	var g errgroup.Group
	for range 4 {
		g.Go(func() error {
			l, err := knowledge.Open(t.Context(), knowledge.Config{Path: path})
			if err != nil {
				return err
			}
			r, err := l.Sync(t.Context(), []knowledge.Collection{docs.collection("x")})
			if err == nil && r.Chunks > 40 {
				err = fmt.Errorf("%d chunks", r.Chunks)
			}
			return errors.Join(err, l.Close())
		})
	}
	if err := g.Wait(); err != nil {
		t.Error(err)
	}
	l := open(t, knowledge.Config{Path: path})
	if diff := cmp.Diff(knowledge.Report{Documents: 20, Chunks: 40}, sync(t, l, docs.collection("x"))); diff != "" {
		t.Error(diff)
	}
}

func TestTokenBudget(t *testing.T) {
	l := open(t, knowledge.Config{})
	sync(t, l, shelf{"a.md": "tide tide tide tide tide", "b.md": "tide of the day, low", "c.md": "tide of the night, high"}.collection("x"))
	if got := find(t, l, knowledge.Question{Text: "tide", MaxTokens: 13}); len(got) != 2 {
		t.Error(got)
	}
	if got := find(t, l, knowledge.Question{Text: "tide", MaxTokens: 2}); len(got) != 1 || len(got[0]) > len("a.md:1 ")+8 {
		t.Error(got)
	}
}

func TestBounds(t *testing.T) {
	docs := shelf{"a.md": "one two three four five six seven eight nine ten", "b.md": "eleven"}
	for name, tt := range map[string]struct {
		cfg  knowledge.Config
		want string
	}{
		"files":  {knowledge.Config{Files: 1}, "more than 1 documents"},
		"bytes":  {knowledge.Config{Bytes: 50}, "more than 50 bytes, reached by b.md"},
		"chunks": {knowledge.Config{Chunks: 1}, "indexing b.md for collection \"x\""},
	} {
		l := open(t, tt.cfg)
		_, err := l.Sync(t.Context(), []knowledge.Collection{docs.collection("x")})
		if !errors.Is(err, knowledge.ErrTooLarge) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	l := open(t, knowledge.Config{})
	if _, err := l.Sync(t.Context(), []knowledge.Collection{shelf{"a.bin": "\x00"}.collection("x")}); !errors.Is(err, knowledge.ErrNotText) {
		t.Error(err)
	}
}

// sense has every text about boats be the same, and fails when told to.
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
		v := []float32{0, 1}
		if strings.Contains(t, "boat") || strings.Contains(t, "ship") {
			v = []float32{1, 0}
		}
		vectors = append(vectors, append(v, make([]float32, s.longer)...))
	}
	return vectors, s.err
}

func TestMeaning(t *testing.T) {
	docs := shelf{"a.md": "A boat is made of wood.", "b.md": "Bread is made of flour."}
	path := filepath.Join(t.TempDir(), "k.db")
	plain := open(t, knowledge.Config{Path: path})
	sync(t, plain, docs.collection("x"))
	e := &sense{}
	l := open(t, knowledge.Config{Path: path, Embedder: e})
	if r := sync(t, l, docs.collection("x")); r.Changed != 0 || r.Embedded != 2 || e.asked != 2 {
		t.Errorf("%+v, %d", r, e.asked)
	}
	if r := sync(t, l, docs.collection("x")); r.Embedded != 0 {
		t.Errorf("%+v", r)
	}
	if diff := cmp.Diff([]string{"a.md:1 A boat is made of wood."}, find(t, l, knowledge.Question{Text: "ships", MinScore: 0.5})); diff != "" {
		t.Error(diff)
	}
	e.longer = 1
	found, err := l.Find(t.Context(), knowledge.Question{Text: "flour", Top: 1})
	var lengths *index.LengthError
	if !errors.As(err, &lengths) || lengths.Query != lengths.Stored+1 || len(found) != 1 || found[0].Name != "b.md" {
		t.Error(found, err)
	}
	e.longer, e.err = 0, errors.New("no vendor")
	found, err = l.Find(t.Context(), knowledge.Question{Text: "flour", Top: 1})
	if !errors.Is(err, e.err) || len(found) != 1 || found[0].Name != "b.md" {
		t.Error(found, err)
	}
	docs["c.md"] = "More."
	if _, err := l.Sync(t.Context(), []knowledge.Collection{docs.collection("x")}); !errors.Is(err, e.err) {
		t.Error(err)
	}
}

func TestCut(t *testing.T) {
	for _, tt := range []struct {
		name string
		how  knowledge.Chunking
		text string
		want []knowledge.Chunk
	}{
		{"nothing", knowledge.Chunking{}, " \n\n ", nil},
		{"all at once", knowledge.Chunking{}, "\n\none\ntwo\n\n", []knowledge.Chunk{{3, 4, "one\ntwo"}}},
		{"headings", knowledge.Chunking{MaxTokens: 5}, "# One\n\nFirst words\n# Two\n\nOther words\n",
			[]knowledge.Chunk{{1, 3, "# One\n\nFirst words"}, {4, 6, "# Two\n\nOther words"}}},
		{"paragraphs", knowledge.Chunking{MaxTokens: 5}, "first of all\n\nsecond of all\n\n\n\nthird",
			[]knowledge.Chunk{{1, 1, "first of all"}, {3, 3, "second of all"}, {7, 7, "third"}}},
		{"sentences", knowledge.Chunking{MaxTokens: 4}, "It is one. It is two. It is 3.5 now!",
			[]knowledge.Chunk{{1, 1, "It is one."}, {1, 1, "It is two."}, {1, 1, "It is 3.5 now!"}}},
		{"words, overlapping", knowledge.Chunking{MaxTokens: 3, Overlap: 1}, "abc def ghi jkl mno",
			[]knowledge.Chunk{{1, 1, "abc def ghi"}, {1, 1, "ghi jkl mno"}}},
		{"fixed", knowledge.Chunking{Strategy: knowledge.Fixed, MaxTokens: 3, Overlap: 1}, "abc\ndef\n\nghi jkl",
			[]knowledge.Chunk{{1, 2, "abc\ndef"}, {4, 4, "ghi jkl"}}},
		{"one long word", knowledge.Chunking{MaxTokens: 2}, "abcdefghijklmnopq", []knowledge.Chunk{{1, 1, "abcdefgh"}, {1, 1, "ijklmnop"}, {1, 1, "q"}}},
		{"a letter is a token", knowledge.Chunking{MaxTokens: 3}, "満潮は一日。二回", []knowledge.Chunk{{1, 1, "満潮は"}, {1, 1, "一日。"}, {1, 1, "二回"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, tt.how.Cut(tt.text)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// FuzzCut: any text is cut into chunks that are small enough, stand where they
// say, and lose no word.
func FuzzCut(f *testing.F) {
	f.Add("# One\n\ntwo three. Four!\n\n\n- five\n", 5, 2, true)
	f.Add("満潮。\n\n干潮", 1, 0, false)
	f.Add("\n\n \n\t\n", 3, 2, true)
	f.Add(strings.Repeat("x", 100)+" \n "+strings.Repeat("\n", 50)+"y", 4, 3, true)
	f.Add("a\r\nb\xff\x00c", 2, 9, false)
	f.Add("0000\xae", 1, 0, false)
	f.Fuzz(func(t *testing.T, text string, most, overlap int, fixed bool) {
		if len(text) > 10_000 {
			return
		}
		how := knowledge.Chunking{MaxTokens: min(max(most, 1), 1000), Overlap: overlap}
		if fixed {
			how.Strategy = knowledge.Fixed
		}
		lines := strings.Split(text, "\n")
		var all strings.Builder
		for _, c := range how.Cut(text) {
			if knowledge.Tokens(c.Text) > how.MaxTokens {
				t.Fatalf("a chunk has %d tokens, of at most %d: %q", knowledge.Tokens(c.Text), how.MaxTokens, c.Text)
			}
			if c.First < 1 || c.Last < c.First || c.Last > len(lines) || !strings.Contains(strings.Join(lines[c.First-1:c.Last], "\n"), c.Text) {
				t.Fatalf("lines %d to %d are not %q", c.First, c.Last, c.Text)
			}
			if strings.TrimSpace(c.Text) == "" || utf8.ValidString(text) && !utf8.ValidString(c.Text) {
				t.Fatalf("%q is a chunk", c.Text)
			}
			all.WriteString(c.Text + "\n")
		}
		if how.Overlap <= 0 {
			return
		}
		for _, word := range strings.Fields(text) {
			cut := strings.ContainsAny(word, "。！？") // a sentence may end within it
			if !cut && knowledge.Tokens(word) < how.MaxTokens && !strings.Contains(all.String(), word) {
				t.Fatalf("%q is lost of %q", word, text)
			}
		}
	})
}

func TestFormats(t *testing.T) {
	for name, want := range map[string]knowledge.Format{
		"a.md": knowledge.Markdown, "a.MARKDOWN": knowledge.Markdown, "b/c.csv": knowledge.CSV, "x.json": knowledge.JSON, "p.HTM": knowledge.HTML,
		"LICENSE": knowledge.Plain, "main.go": knowledge.Plain,
	} {
		if got := knowledge.FormatOf(name); got != want {
			t.Errorf("%s is %s", name, got)
		}
	}
	page := "<!doctype html>\n<head><title>Tides</title><style>\np { x }\n</style></head>\n<p>High&nbsp;tide &amp; <b>low</b>\n" +
		"<script>if (a < b) {\n}</script><svg><text>no</text></svg>end"
	text, err := knowledge.HTML.Text([]byte(page))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Count(text, "\n"), strings.Count(page, "\n"); got != want {
		t.Errorf("%d lines of %d: %q", got, want, text)
	}
	if diff := cmp.Diff([]string{"Tides", "High\u00a0tide", "&", "low", "end"}, strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == '\n' })); diff != "" {
		t.Error(diff)
	}
	if text, err := knowledge.Plain.Text([]byte("\xef\xbb\xbfa\r\nb")); err != nil || text != "a\nb" {
		t.Errorf("%q, %v", text, err)
	}
	for _, tt := range []struct {
		name, head string
		ok         bool
	}{
		{"a.md", "text", true}, {"a", "caf\xc3", true}, {"a", "\xc3(", false}, {"a.txt", "\x00", false}, {"a.pdf", "text", false}, {"A.DOCX", "", false},
	} {
		if err := knowledge.NotText(tt.name, []byte(tt.head)); (err == nil) != tt.ok || err != nil && !errors.Is(err, knowledge.ErrNotText) {
			t.Errorf("%s %q: %v", tt.name, tt.head, err)
		}
	}
}

// FuzzHTML: any page is read, and keeps its lines.
func FuzzHTML(f *testing.F) {
	for _, seed := range []string{"", "<p>a\n<b", "<script>\n</scr", "<!--\n-->\n<style>x", "a &lt; b &#0; &#x10ffff;", "</script>\nx", "<svg>\n<svg></svg>y</svg>z", "<![CDATA[\n]]>"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, page string) {
		text, err := knowledge.HTML.Text([]byte(page))
		if err != nil {
			return
		}
		if !utf8.ValidString(text) {
			t.Fatalf("%q is no text", text)
		}
	})
}

// BenchmarkFind is a library as large as it may be.
func BenchmarkFind(b *testing.B) {
	l, err := knowledge.Open(b.Context(), knowledge.Config{Path: filepath.Join(b.TempDir(), "k.db")})
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	docs := shelf{}
	for i := range 80 {
		var text strings.Builder
		for j := range 1500 {
			fmt.Fprintf(&text, "Paragraph %d of document %d says that buoy %d lies in the channel.\n\n", j, i, (i*j)%977)
		}
		docs[fmt.Sprintf("d%d.md", i)] = text.String()
	}
	c := docs.collection("x")
	c.MaxTokens, c.Overlap = 128, 16
	r, err := l.Sync(b.Context(), []knowledge.Collection{c})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(r.Chunks), "chunks")
	for b.Loop() {
		if _, err := l.Find(b.Context(), knowledge.Question{Text: "Which document says where buoy 321 lies in the channel, and in which paragraph?", Top: 5}); err != nil {
			b.Fatal(err)
		}
	}
}
