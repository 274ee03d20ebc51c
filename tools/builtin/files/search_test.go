package files_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"crewhost/tools"
	"crewhost/tools/builtin/files"
	"crewhost/tools/mount"
	"crewhost/tools/native"
	"crewhost/tools/native/nativetest"
)

// tree is a bench with some files in /in.
func tree(t testing.TB) nativetest.Bench {
	t.Helper()
	b := newBench(t)
	for name, content := range map[string]string{
		"a.txt": "alpha\nbeta\n", "b.md": "# Beta\n", "src/main.go": "package main\n\nfunc main() {\n\tprintln(\"beta\")\n}\n",
		"src/deep/util.go": "package deep\n", "src/deep/util_test.go": "package deep\n", "node_modules/x/beta.js": "beta\n",
		".git/config": "beta\n", "src/.env": "beta\n", "utf16.txt": "\xff\xfeb\x00e\x00t\x00a\x00\n\x00", "latin.txt": "b\xeata beta\n", "image.png": "\x89PNG\r\n\x1a\nbeta",
	} {
		b.Put("in/"+name, content)
	}
	b.Put("out/o.txt", "omega beta\n")
	return b
}

func TestGlob(t *testing.T) {
	b := tree(t)
	for i, name := range []string{"in/src/deep/util.go", "in/a.txt", "in/b.md"} {
		when := time.Date(2024, 1, 2, 3, 4, 5-i, 0, time.UTC)
		if err := os.Chtimes(filepath.Join(b.Root, name), when, when); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct{ args, want string }{
		{`{"pattern":"*.go"}`, "/in/src/deep/util.go\n/in/src/deep/util_test.go\n/in/src/main.go\n[3 files]"},
		{`{"pattern":"*.go","path":"/in/src/deep"}`, "/in/src/deep/util.go\n/in/src/deep/util_test.go\n[2 files]"},
		{`{"pattern":"src/*.go"}`, "/in/src/main.go\n[1 file]"}, // below a mount
		{`{"pattern":"src/**/*.go","path":"/in"}`, "/in/src/deep/util.go\n/in/src/deep/util_test.go\n/in/src/main.go\n[3 files]"},
		{`{"pattern":"/in/**/*.{md,js}"}`, "/in/b.md\n/in/node_modules/x/beta.js\n[2 files]"},
		{`{"pattern":"**","path":"/in","exclude":["node_modules","src/deep/**","*.{png,txt}"]}`, "/in/b.md\n/in/src/main.go\n[2 files]"},
		{`{"pattern":"*.go","exclude":"deep"}`, "/in/src/main.go\n[1 file]"},
		{`{"pattern":".env"}`, "/in/src/.env\n[1 file]"},
		{`{"pattern":".git/*"}`, "/in/.git/config\n[1 file]"},
		{`{"pattern":"conf*"}`, "[no file in / matches conf*; those whose names begin with a dot were not looked at]"},
		{`{"pattern":"conf*","hidden":true}`, "/in/.git/config\n[1 file]"},
		{`{"pattern":"o.*","path":"."}`, "/out/o.txt\n[1 file]"},
		{`{"pattern":"*.*","path":"/in","max_results":2}`, "/in/a.txt\n/in/b.md\n[2 files shown of more than 2; narrow the pattern or the path]"},
		{`{"pattern":"{a.txt,b.md,util.go}","sort":"modified"}`, "/in/src/deep/util.go (2024-01-02 03:04:05)\n/in/a.txt (2024-01-02 03:04:04)\n/in/b.md (2024-01-02 03:04:03)\n[3 files]"},
		{`{"pattern":"{a.txt,b.md,util.go}","sort":"modified","max_results":1}`, "/in/src/deep/util.go (2024-01-02 03:04:05)\n[1 file shown of more than 1; narrow the pattern or the path]"},
	} {
		b.WantText("glob", tt.args, tt.want)
	}
	b.WantFailure("glob", `{"pattern":"[a"}`, "no valid pattern")
	b.WantFailure("glob", `{"pattern":"*","path":"/in/a.txt"}`, "/in/a.txt is a file")
	b.WantFailure("glob", `{"pattern":"*","path":"/in/none"}`, "not exist")
	b.WantFailure("glob", `{"pattern":"/etc/*"}`, "no mount holds this path", "/in, /out")
	b.WantFailure("glob", `{"pattern":"*","sort":"size"}`, "must be one of path, modified")
	b.WantText("directory_read", `{"path":"/in","pattern":"*.md","show_times":true}`, "/in/b.md (7 bytes, 2024-01-02 03:04:03)\n[1 entry]")
}

// TestPatternsAreBounded: braces multiply, and what they stand for is tried.
func TestPatternsAreBounded(t *testing.T) {
	b := newBench(t)
	b.Put("in/"+strings.Repeat("a", 60), "")
	hostile := strings.Repeat("{,a}", 30) + "b"
	b.WantFailure("glob", nativetest.Args("pattern", hostile), "stand for more than 1000 patterns")
	b.WantFailure("directory_read", nativetest.Args("path", "/in", "pattern", hostile), "stand for more than 1000 patterns")
	b.WantFailure("grep", nativetest.Args("pattern", "a", "exclude", []string{"x", hostile}), "stand for more than 1000 patterns")
	began := time.Now()
	b.WantParts("glob", nativetest.Args("pattern", strings.Repeat("{,a}", 9)+strings.Repeat("*a", 70)+"**/**/b"), "no file")
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestGrep(t *testing.T) {
	b := tree(t)
	const left = "[1 file is no text, or in an encoding that must be named, and left out; the first is /in/image.png]"
	for _, tt := range []struct{ args, want string }{
		{
			`{"pattern":"beta","path":"/in"}`,
			"/in/a.txt\n2: beta\n\n/in/latin.txt\n1: bêta beta\n\n/in/node_modules/x/beta.js\n1: beta\n\n/in/src/main.go\n4: \tprintln(\"beta\")\n\n/in/utf16.txt\n1: beta\n" +
				"[5 lines match in 5 files; 8 files were searched]\n" + left,
		},
		{
			`{"pattern":"BETA","ignore_case":true,"output_mode":"files_with_matches","exclude":["node_modules","*.png"]}`,
			"/in/a.txt\n/in/b.md\n/in/latin.txt\n/in/src/main.go\n/in/utf16.txt\n/out/o.txt\n[6 files match; 8 files were searched]",
		},
		{`{"pattern":"^package","include":["*.go"],"output_mode":"count"}`, "/in/src/deep/util.go: 1\n/in/src/deep/util_test.go: 1\n/in/src/main.go: 1\n[3 lines match in 3 files; 3 files were searched]"},
		{`{"pattern":"a","path":"/in/a.txt","output_mode":"count"}`, "/in/a.txt: 2\n[2 lines match in 1 file; 1 file was searched]"},
		{`{"pattern":"func main","path":"/in/src","before":1,"after":1}`, "/in/src/main.go\n2- \n3: func main() {\n4- \tprintln(\"beta\")\n[1 line matches in 1 file; 3 files were searched]"},
		{`{"pattern":"(package|beta)","path":"/in/src/main.go","after":1}`, "/in/src/main.go\n1: package main\n2- \n--\n4: \tprintln(\"beta\")\n5- }\n[2 lines match in 1 file; 1 file was searched]"},
		{`{"pattern":"(","fixed":true,"include":"main.go"}`, "/in/src/main.go\n3: func main() {\n4: \tprintln(\"beta\")\n[2 lines match in 1 file; 1 file was searched]"},
		{`{"pattern":"main()","fixed":true,"include":"main.go","output_mode":"count"}`, "/in/src/main.go: 1\n[1 line matches in 1 file; 1 file was searched]"},
		{`{"pattern":"BETA","path":"/out"}`, "[no line matches BETA in /out; 1 file was searched]"},
		{`{"pattern":"beta","hidden":true,"include":[".env",".git/*"],"path":"/in"}`, "/in/.git/config\n1: beta\n\n/in/src/.env\n1: beta\n[2 lines match in 2 files; 2 files were searched]"},
		{`{"pattern":"bкta","encoding":"koi8-r","path":"/in/latin.txt"}`, "[no line matches bкta in /in/latin.txt; 1 file was searched]"},
		{`{"pattern":"bЙta","encoding":"koi8-r","path":"/in/latin.txt"}`, "/in/latin.txt\n1: bЙta beta\n[1 line matches in 1 file; 1 file was searched]"},
		{`{"pattern":"beta","include":["a.txt","*.go"],"max_results":1}`, "/in/a.txt\n2: beta\n[1 line matches in 1 file; 4 files were searched]\n[there are more matches than 1; narrow pattern, path or include, or raise max_results]"},
		{`{"pattern":"beta","include":["a.txt","main.go"],"max_results":1,"output_mode":"count"}`, "/in/a.txt: 1\n[1 line matches in 1 file; 2 files were searched]\n[there are more files that match than 1; narrow pattern, path or include, or raise max_results]"},
	} {
		b.WantText("grep", tt.args, tt.want)
	}
	b.WantFailure("grep", `{"pattern":"(a"}`, "no regular expression of RE2: missing closing )", "with fixed")
	b.WantFailure("grep", `{"pattern":"(?<=a)b"}`, "no regular expression of RE2")
	b.WantFailure("grep", `{"pattern":""}`, "is empty")
	b.WantFailure("grep", `{"pattern":"a","path":"/in/none"}`, "not exist")
	b.WantFailure("grep", `{"pattern":"a","path":"/in/image.png"}`, "a PNG image")
	b.WantFailure("grep", `{"pattern":"a","output_mode":"lines"}`, "must be one of content, files_with_matches, count")
	b.WantFailure("grep", nativetest.Args("pattern", strings.Repeat("a", 501)), "longer than 500 bytes")
	b.WantFailure("grep", nativetest.Args("pattern", strings.Repeat("(a?){900}", 10)), "too large a regular expression")
}

func TestGrepIsBounded(t *testing.T) {
	b := newBench(t)
	b.Put("in/one-line.js", strings.Repeat("var x=1;", 100_000)+"needle"+strings.Repeat("é", 500)+"\nlast needle\n")
	got, _ := b.Call("grep", `{"pattern":"needle"}`)
	if len(got) > 1500 || !strings.Contains(got, "bytes ...]") || !strings.Contains(got, "x=1;needleé") || !strings.Contains(got, "\n2: last needle\n") ||
		!strings.Contains(got, "[1 line is longer than 64 KB and searched in pieces]") {
		t.Errorf("got %.1500s", got)
	}
	b.Put("in/many.txt", strings.Repeat("a line with nothing but some words in it\n", 5000))
	got, _ = b.Call("grep", `{"pattern":"words","max_results":2000}`)
	if len(got) > 16_500 || !strings.Contains(got, "[the result is cut here, since it is long; narrow pattern, path or include]") {
		t.Errorf("%d bytes: %s", len(got), got[len(got)-300:])
	}
	for i := range 500 {
		b.Put(fmt.Sprintf("out/%s%03d", strings.Repeat("n", 50), i), "x\n")
	}
	got, _ = b.Call("grep", `{"pattern":"x","path":"/out","output_mode":"files_with_matches","max_results":2000}`)
	if len(got) > 16_500 || !strings.Contains(got, "the result is cut here") {
		t.Errorf("%d bytes: %s", len(got), got[len(got)-300:])
	}
	got, _ = b.Call("glob", `{"pattern":"*","path":"/out"}`)
	if len(got) > 16_500 || !strings.Contains(got, " more files are not shown; narrow the pattern or the path]") {
		t.Errorf("%d bytes: %s", len(got), got[len(got)-300:])
	}
	// Of the longest piece of a line that the largest program may meet, a quarter.
	b.Put("in/hard.txt", strings.Repeat("x", 15<<10))
	began := time.Now()
	b.WantParts("grep", nativetest.Args("pattern", "(?:x?){900}y", "path", "/in/hard.txt"), "no line matches")
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("it took %v", took)
	}
}

// TestSearchesEnd: a search looks at its context wherever it is.
func TestSearchesEnd(t *testing.T) {
	b := newBench(t)
	b.Put("out/e.txt", strings.Repeat("words\n", 50_000))
	for i := range 50 {
		b.Put(fmt.Sprintf("in/%d.txt", i), strings.Repeat("words and words\n", 10_000))
	}
	// All of this file is in memory when its lines are visited.
	b.Put("in/sub/one.txt", strings.Repeat("words and words\n", 60_000))
	for _, tt := range []struct {
		tool, args string
		calls      int
	}{
		{"file_read", `{"path":"/in/sub/one.txt"}`, 200},
		{"glob", `{"pattern":"none"}`, 9},
		{"directory_read", `{"path":"/","recursive":true,"pattern":"none"}`, 9},
		{"file_read", `{"path":"/in/1.txt","offset":-1}`, 4},
		{"file_write", `{"path":"/out/x","content":"x"}`, 1},
		{"file_edit", `{"path":"/out/e.txt","old_text":"nowhere","new_text":"x","replace_all":true}`, 2},
	} {
		tool, _ := b.Reg.Lookup(tt.tool)
		own := tool.(native.Tool)
		own.Timeout = 0 // which takes a context of its own
		res, err := own.Call(&endsAfter{Context: t.Context(), calls: tt.calls}, tools.Call{Arguments: []byte(tt.args)})
		if tools.CodeOf(err) != tools.CodeCancelled {
			t.Errorf("%s: got %+v, %v", tt.tool, res, err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	tool, _ := b.Reg.Lookup("grep")
	began := time.Now()
	_, err := tool.Call(ctx, tools.Call{Arguments: []byte(`{"pattern":"(?:w?o?r?d?s?){100}nowhere","path":"/in/sub"}`)})
	if took := time.Since(began); tools.CodeOf(err) != tools.CodeCallTimeout || took > 2*time.Second {
		t.Errorf("grep: got %v after %v", err, took)
	}
	if _, err := os.Stat(filepath.Join(b.Root, "out", "x")); err == nil {
		t.Error("a call that was cancelled wrote a file")
	}
}

// endsAfter is a context that ends when it was asked often enough.
type endsAfter struct {
	context.Context //nolint:containedctx // it is one
	calls           int
}

func (e *endsAfter) Err() error {
	if e.calls--; e.calls < 0 {
		return context.Canceled
	}
	return nil
}

// TestWhatCannotBeRead is left out by searches, and counted.
func TestWhatCannotBeRead(t *testing.T) {
	b := tree(t)
	if err := os.Symlink("/etc/passwd", filepath.Join(b.Root, "in", "passwd")); err != nil {
		t.Skipf("no symbolic links here: %v", err)
	}
	if err := os.Symlink("a.txt", filepath.Join(b.Root, "in", "again.txt")); err != nil {
		t.Fatal(err)
	}
	b.WantText("grep", `{"pattern":"root|alpha","include":["a*.txt","passwd"]}`, "/in/a.txt\n1: alpha\n[1 line matches in 1 file; 1 file was searched]")
	b.WantText("glob", `{"pattern":"{passwd,again.txt}"}`, "/in/again.txt\n/in/passwd\n[2 files]")
	b.WantFailure("file_edit", `{"path":"/in/passwd","old_text":"a","new_text":"b"}`, "leads out of its mount")
}

func TestListMounts(t *testing.T) {
	b := newBench(t)
	b.WantText("list_mounts", `{}`, "/in: read only (ro)\n/out: read, write and delete (rw)\n[relative paths are in /out]")
	fsys := func(specs ...string) *mount.FS {
		var ms []mount.Mount
		for _, s := range specs {
			m, err := mount.Parse(s)
			if err != nil {
				t.Fatal(err)
			}
			ms = append(ms, m.In(b.Root))
		}
		f, err := mount.Open(ms)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		return f
	}
	for want, f := range map[string]*mount.FS{
		"/a: read and write, no deleting (rwnd)\n/a/drafts: read only (ro)\n/b: read, write and delete (rw)\n[paths must begin with one of these]": fsys("in:/a:rwnd;drafts:ro", "out:/b:rw"),
		"[nothing is mounted here: no file can be read or written]":                                                                                nil,
	} {
		nativetest.New(t, func(*mount.FS) []native.Tool { return files.Tools(f) }).WantText("list_mounts", `{}`, want)
	}
}

// TestBigFiles: a log of any size is read in parts, and searched, in bounded memory.
func TestBigFiles(t *testing.T) {
	if raced {
		t.Skip("it takes half a minute with the race detector, and has a run without it")
	}
	b := newBench(t)
	const lines = 72 << 14
	name := filepath.Join(b.Root, "in", "big.log")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	block := strings.Repeat("2024-01-02 03:04:05 INFO all is well with the world here, é\n", 1<<14)
	for range lines >> 14 {
		if _, err := f.WriteString(block); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.WriteString("the last line\n"); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ tool, args, want string }{
		{"file_read", `{"path":"/in/big.log","offset":-1}`, "the last line\n[lines 1179649 to 1179649 of 1179649]"},
		{"file_read", `{"path":"/in/big.log","offset":1179648,"limit":2}`, "the last line\n[lines 1179648 to 1179649 of 1179649]"},
		{"file_read", `{"path":"/in/big.log","limit":1}`, "well with the world here, é\n[lines 1 to 1 of more than 1100147; go on with offset 2]"},
		{"file_read", `{"path":"/in/big.log"}`, "the last line\n"},
		{"grep", `{"pattern":"last l","path":"/in"}`, "1179649: the last line\n"},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		began := time.Now()
		b.WantParts(tt.tool, tt.args, tt.want)
		took := time.Since(began)
		runtime.ReadMemStats(&after)
		if all := after.TotalAlloc - before.TotalAlloc; all > 24<<20 {
			t.Errorf("%s %s: %d MB were allocated", tt.tool, tt.args, all>>20)
		}
		t.Logf("%s %s: %v, %d KB allocated", tt.tool, tt.args, took, (after.TotalAlloc-before.TotalAlloc)>>10)
	}
}

func FuzzGrep(f *testing.F) {
	f.Add("a+b", "xaab\ny", false, true, 1)
	f.Add("é", "\xe9\n\xff", true, false, 0)
	f.Add("^$", "\r\n\r\n", false, false, 2)
	b := newBench(f)
	f.Fuzz(func(t *testing.T, pattern, content string, fixed, ignoreCase bool, around int) {
		b := b
		b.TB = t
		b.Put("in/f", content)
		tool, _ := b.Reg.Lookup("grep")
		res, err := tool.Call(t.Context(), tools.Call{Arguments: []byte(nativetest.Args(
			"pattern", pattern, "fixed", fixed, "ignore_case", ignoreCase, "before", around, "after", around))})
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if len([]rune(res.Content[0].Text)) > 17_000 {
			t.Errorf("%d bytes", len(res.Content[0].Text))
		}
	})
}

func TestDeepFoldersAreLeftOut(t *testing.T) {
	b := newBench(t)
	b.Put("in/"+strings.Repeat("d/", 63)+"near.txt", "")
	b.Put("in/"+strings.Repeat("d/", 64)+"edge.txt", "")
	b.Put("in/"+strings.Repeat("d/", 65)+"far.txt", "")
	b.WantText("glob", `{"pattern":"*.txt","path":"/in"}`, "/in/"+strings.Repeat("d/", 64)+"edge.txt\n/in/"+strings.Repeat("d/", 63)+"near.txt\n[2 files]\n[folders more than 64 levels down were left out]")
}
