package search_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"crewhost/tools"
	"crewhost/tools/search"
)

// lines are those of a file, cut in two.
func lines(t testing.TB, file string) (out [][2]string) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		left, right, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if !ok {
			t.Fatalf("%s: %q has no colon", file, line)
		}
		out = append(out, [2]string{left, right})
	}
	return out
}

// catalog is one of many tools, of kinds that there are.
func catalog(t testing.TB) []tools.Definition {
	t.Helper()
	var defs []tools.Definition
	for _, line := range lines(t, "testdata/catalog.txt") {
		text, parameters, _ := strings.Cut(strings.TrimSuffix(line[1], ")"), " (")
		properties := map[string]any{}
		for name := range strings.SplitSeq(parameters, ", ") {
			if name != "" {
				properties[name] = map[string]string{"type": "string"}
			}
		}
		schema, err := json.Marshal(map[string]any{"type": "object", "properties": properties})
		if err != nil {
			t.Fatal(err)
		}
		defs = append(defs, tools.Definition{Name: line[0], Description: text, InputSchema: schema})
	}
	return defs
}

// I11: tools are found by what they do, asked for in other words than their names
// have. The floors are below what is measured, which is in the log: 0.77 and 0.90.
// Synonyms were written by somebody who knew these queries.
func TestFindsByMeaning(t *testing.T) {
	index := search.New(catalog(t))
	queries := lines(t, "testdata/queries.txt")
	var first, among float64
	for _, q := range queries {
		var names []string
		for _, hit := range index.Search(q[0], 5) {
			names = append(names, hit.Definition.Name)
		}
		switch {
		case len(names) > 0 && names[0] == q[1]:
			first++
			among++
		case strings.Contains(" "+strings.Join(names, " ")+" ", " "+q[1]+" "):
			among++
			t.Logf("%q: %s", q[0], names)
		default:
			t.Logf("%q lacks %s: %s", q[0], q[1], names)
		}
	}
	n := float64(len(queries))
	t.Logf("%d tools, %d queries: %.2f at 1, %.2f at 5", index.Len(), len(queries), first/n, among/n)
	if first/n < 0.65 || among/n < 0.85 {
		t.Error("that is worse than it was")
	}
}

func names(hits []search.Hit) string {
	var out []string
	for _, h := range hits {
		out = append(out, h.Definition.Name)
	}
	return strings.Join(out, " ")
}

func TestSearch(t *testing.T) {
	defs := []tools.Definition{
		{Name: "getHTTPUrl2", Description: "Fetches a page."},
		{Name: "b_same", Description: "Counts sheep."},
		{Name: "a_same", Description: "Counts sheep."},
		{Name: "paint", Title: "Paint a wall", InputSchema: json.RawMessage(`{"properties":{"shade":{"enum":["crimson","teal"]},"deep":{"properties":{"varnish":{"type":"boolean"}}}}}`)},
		{Name: "odd", InputSchema: json.RawMessage(`{"properties":{"x":true,"y":{"description":7,"enum":"no","properties":[]}},"items":3}`)},
		{Name: "prüfen", Description: "Prüft Straßen."},
	}
	index := search.New(defs)
	for _, tt := range []struct {
		query string
		limit int
		want  string
	}{
		{"sheep", 5, "a_same b_same"}, // as good as each other
		{"sheep", 1, "a_same"},
		{"sheep", 0, ""},
		{"sheep", -1, ""},
		{"b_same", 5, "b_same a_same"},
		{"http URL", 5, "getHTTPUrl2"},
		{"download pages", 5, "getHTTPUrl2"}, // another word for it, and another form
		{"shepe", 5, "a_same b_same"},        // a slip
		{"crim", 5, "paint"},
		{"varnish", 5, "paint"},
		{"STRASSEN prüft", 5, "prüfen"},
		{"the of and", 5, ""},
		{"", 5, ""},
		{"zzzz", 5, ""},
		{strings.Repeat("noise ", 10_000) + "sheep", 5, ""}, // that far nobody reads
	} {
		if got := names(index.Search(tt.query, tt.limit)); got != tt.want {
			t.Errorf("%.40q, %d: %q, want %q", tt.query, tt.limit, got, tt.want)
		}
	}
	for name, want := range map[string]string{
		"a-same": "a_same", "A_Same": "a_same", "a_smae": "a_same b_same", "paimt": "paint", "zzzz": "",
	} {
		if got := strings.Join(index.Near(name), " "); !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("near %q: %q, want %q", name, got, want)
		}
	}
}

// The same is found in the same order, whatever order the tools came in.
func TestSearchIsDeterministic(t *testing.T) {
	defs := catalog(t)
	back := make([]tools.Definition, 0, len(defs))
	for i := range defs {
		back = append(back, defs[len(defs)-1-i])
	}
	one, other := search.New(defs), search.New(back)
	for _, q := range lines(t, "testdata/queries.txt") {
		if a, b := fmt.Sprint(one.Search(q[0], 20)), fmt.Sprint(other.Search(q[0], 20)); a != b {
			t.Errorf("%q: %s\nand %s", q[0], a, b)
		}
	}
}

func FuzzSearch(f *testing.F) {
	f.Add("get_file", `{"properties":{"path":{"description":"Where."}}}`, "read a file")
	f.Add("é", `{"items":{"items":{"items":{"items":{"items":{}}}}}}`, "\xff\u0130")
	f.Add("a'b", `{"anyOf":[{"enum":["a",1]}]}`, "don't 3d X2y")
	f.Fuzz(func(t *testing.T, name, schema, query string) {
		index := search.New([]tools.Definition{{Name: name, Description: query, InputSchema: json.RawMessage(schema)}, {Name: "other", Description: schema}})
		for _, hit := range index.Search(query, 2) {
			if hit.Score <= 0 {
				t.Errorf("the score of %q is %v", hit.Definition.Name, hit.Score)
			}
		}
		index.Near(name)
	})
}

// large is a catalog of many tools.
func large(b *testing.B, n int) []tools.Definition {
	few := catalog(b)
	defs := make([]tools.Definition, n)
	for i := range defs {
		defs[i] = few[i%len(few)]
		defs[i].Name = fmt.Sprintf("%s_%d", defs[i].Name, i)
		defs[i].Description = fmt.Sprintf("%s Of service %d.", defs[i].Description, i%97)
	}
	return defs
}

// I11: an index of 10,000 tools, and a search in it.
func BenchmarkNew(b *testing.B) {
	defs := large(b, 10_000)
	b.ReportAllocs()
	for b.Loop() {
		search.New(defs)
	}
}

func BenchmarkSearch(b *testing.B) {
	index := search.New(large(b, 10_000))
	queries := lines(b, "testdata/queries.txt")
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		index.Search(queries[i%len(queries)][0], 20)
	}
}
