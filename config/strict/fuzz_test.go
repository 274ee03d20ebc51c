package strict

import (
	"encoding/json"
	"path/filepath"
	"testing"
	"time"
)

// fuzzDoc has a field of every kind that Decode knows.
type fuzzDoc struct {
	Pos      Pos                 `key:"@"`
	Name     At[string]          `key:"name|title,required"`
	Count    int                 `key:"count"`
	Ratio    *float64            `key:"ratio"`
	On       At[bool]            `key:"on"`
	Wait     time.Duration       `key:"wait"`
	List     []At[string]        `key:"list"`
	Free     []Named[*Node]      `key:"free"`
	Children []Named[*fuzzChild] `key:"children"`
	Any      *Node               `key:"any"`
}

type fuzzChild struct {
	Name string `key:"name"`
}

// FuzzParse holds, for the three formats: no panic, every issue has a code and
// the file, a document with no issue is valid JSON when written as such, and
// decoding it raises issues only.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", "a: 1", "a: &a [*a]", "<<: {a: 1}", "name: x\ncount: 0x1f\nlist: [a, b]\nfree: {a: 1}\nany: {b: [1, ~]}\n",
		`{"name": "x", /* c */ "wait": "3s", "children": {"a": {"name": "b"}},}`, "[[a]]\nb.c = {d = [1]}\n[a.e]\n", "{\"a\":1} // x",
		"\tb", "a: \"", "a: |\n  b\n", "? a\n: b", "{", "a = '''", "\ufeff", "!!set {a}", "a: *b", "- - - x", "a: .inf", "'\\x", "[a.\"b\"]\n\"c\".d=1",
	} {
		for kind := range byte(3) {
			f.Add(kind, []byte(seed))
		}
	}
	f.Fuzz(func(t *testing.T, kind byte, data []byte) {
		file := "f" + []string{".yaml", ".json", ".toml"}[kind%3]
		n, issues := Parse(file, data, Limits{Bytes: 1 << 16, Nodes: 5000})
		for _, i := range issues {
			if i.Code == "" || i.Message == "" || filepath.Base(i.File) != file {
				t.Errorf("a poor issue: %+v", i)
			}
		}
		if n == nil {
			return
		}
		if j := n.JSON(); len(issues) == 0 && !json.Valid(j) {
			t.Errorf("no JSON: %s", j)
		}
		var doc fuzzDoc
		Decode(n, &doc).Sort()
	})
}
