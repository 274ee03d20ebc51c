package files_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"crewhost/tools/native/nativetest"
)

// TestGrepContext: what is shown around matches that are near each other, or far.
func TestGrepContext(t *testing.T) {
	b := newBench(t)
	b.Put("in/near", "a\nm1\nb\nm2\nm3\nc\nd\ne\nm4\n")
	long := strings.Repeat("y", 200<<10)
	b.Put("in/long", "needle"+long+"needle\n")
	for _, tt := range []struct{ args, want string }{
		{`{"pattern":"m","path":"/in/near"}`, "/in/near\n2: m1\n4: m2\n5: m3\n9: m4\n"},
		{`{"pattern":"m","path":"/in/near","after":1}`, "/in/near\n2: m1\n3- b\n4: m2\n5: m3\n6- c\n--\n9: m4\n"},
		{`{"pattern":"m","path":"/in/near","before":1}`, "/in/near\n1- a\n2: m1\n3- b\n4: m2\n5: m3\n--\n8- e\n9: m4\n"},
		{`{"pattern":"needle","path":"/in/long","output_mode":"count"}`, "/in/long: 1\n[1 line matches in 1 file"},
	} {
		got, failed := b.Call("grep", tt.args)
		if failed || !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s: got\n%s\nwant\n%s", tt.args, got, tt.want)
		}
	}
	b.Put("in/last", "first\n"+long+"\nlast\n")
	got, _ := b.Call("grep", `{"pattern":"last","path":"/in/last","before":2}`)
	if !strings.HasPrefix(got, "/in/last\n1- first\n2- yyy") || !strings.Contains(got, "bytes]\n3: last\n") {
		t.Errorf("before a line: %.2000s", got)
	}
	b.Put("in/wide", strings.Repeat("é", 300)+"xneedle"+strings.Repeat("é", 300)+"\n")
	if got, _ := b.Call("grep", `{"pattern":"needle","path":"/in/wide"}`); !utf8.ValidString(got) || !strings.Contains(got, "éxneedleé") {
		t.Errorf("an excerpt: %q", got)
	}
}

// TestSearchesSayWhatTheyLeftOut, where they look and where they stop.
func TestSearchesSayWhatTheyLeftOut(t *testing.T) {
	b := tree(t)
	b.WantText("grep", `{"pattern":"beta","path":"/in","include":["*.txt","*.go"],"max_results":1}`,
		"/in/a.txt\n2: beta\n[1 line matches in 1 file; 2 files were searched]\n[there are more matches than 1; narrow pattern, path or include, or raise max_results]")
	b.WantText("glob", `{"pattern":"nothing*","hidden":true}`, "[no file in / matches nothing*]")
	b.WantText("glob", `{"pattern":"deep/*.go","path":"/in"}`, "[no file in /in matches deep/*.go; those whose names begin with a dot were not looked at]")
	b.WantFailure("glob", nativetest.Args("pattern", strings.Repeat("a", 201)), "longer than 200 bytes")
	b.WantFailure("grep", nativetest.Args("pattern", "a", "include", strings.Split(strings.Repeat("x,", 50)+"x", ",")), "more than 50 items")

	if err := os.Link(filepath.Join(b.Root, "in/a.txt"), filepath.Join(b.Root, "in/b.txt")); err != nil {
		t.Skipf("no hard links here: %v", err)
	}
	b.WantText("grep", `{"pattern":"beta","include":["?.txt"],"path":"/in"}`, "[no line matches beta in /in; 0 files were searched]\n[2 files could not be read; the first is /in/a.txt]")
	if err := os.Mkdir(filepath.Join(b.Root, "in", "un\u200bseen"), 0o755); err != nil {
		t.Skipf("no such name here: %v", err)
	}
	b.WantText("glob", `{"pattern":"b.md"}`, "/in/b.md\n[1 file]\n[1 folder could not be listed, the first is /in/un\uFFFDseen]")
}
