package files_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"crewhost/tools/builtin/files"
	"crewhost/tools/mount"
	"crewhost/tools/native"
	"crewhost/tools/native/nativetest"
)

func newBench(t testing.TB) nativetest.Bench {
	t.Helper()
	return nativetest.New(t, files.Tools)
}

func TestSchemas(t *testing.T) { newBench(t).CheckSchemas() }

func TestWithoutMounts(t *testing.T) {
	b := nativetest.New(t, func(*mount.FS) []native.Tool { return files.Tools(nil) })
	b.WantFailure("file_read", `{"path":"/x"}`, "nothing is mounted here")
	b.WantFailure("file_write", `{"path":"/x","content":""}`, "nothing is mounted here")
	b.WantFailure("directory_read", `{"path":"/"}`, "nothing is mounted here")
}

func TestFileRead(t *testing.T) {
	b := newBench(t)
	b.Put("in/lines.txt", "a\nb\nc\nd")
	b.Put("in/end.txt", "a\nb\n")
	b.Put("in/empty.txt", "")
	b.Put("in/bom.txt", "\xef\xbb\xbfé")
	b.Put("in/le.txt", "\xff\xfeh\x00i\x00")
	b.Put("in/be.txt", "\x00h\x00i")
	b.Put("in/latin.txt", "caf\xe9")
	b.Put("in/binary", "a\x00b")
	b.Put("in/crlf.txt", "a\r\nb\r\n")
	b.Put("in/mixed.txt", "a\nb\r\r\nc\nd\n")
	b.Put("in/long.txt", "0123456789\nx\n")
	b.Put("in/a.pdf", "%PDF-1.7\n")
	b.Put("out/own.txt", "own")
	for _, tt := range []struct{ args, want string }{
		{`{"path":"/in/lines.txt"}`, "a\nb\nc\nd"},
		{`{"path":"/in/lines.txt","offset":2,"limit":2}`, "b\nc\n[lines 2 to 3 of 4; go on with offset 4]"},
		{`{"path":"/in/lines.txt","offset":3}`, "c\nd\n[lines 3 to 4 of 4]"},
		{`{"path":"/in/lines.txt","offset":4,"limit":99}`, "d\n[lines 4 to 4 of 4]"},
		{`{"path":"/in/lines.txt","limit":1}`, "a\n[lines 1 to 1 of 4; go on with offset 2]"},
		{`{"path":"/in/lines.txt","limit":4}`, "a\nb\nc\nd"},
		{`{"path":"/in/end.txt","limit":2}`, "a\nb\n"},
		{`{"path":"/in/end.txt","offset":2}`, "b\n[lines 2 to 2 of 2]"},
		{`{"path":"/in/empty.txt"}`, "[the file is empty]"},
		{`{"path":"/in/bom.txt"}`, "é"},
		{`{"path":"/in/le.txt"}`, "hi\n[decoded as utf-16le]"},
		{`{"path":"/in/le.txt","encoding":"UTF-16"}`, "hi"},
		{`{"path":"/in/be.txt","encoding":"utf-16be"}`, "hi"},
		{`{"path":"/in/latin.txt","encoding":"iso-8859-1"}`, "café"},
		{`{"path":"/in/latin.txt"}`, "café\n[decoded as windows-1252, which is a guess, since it is not UTF-8; name its encoding if characters are wrong]"},
		{`{"path":"/in/latin.txt","encoding":"utf-8"}`, "caf\uFFFD\n[1 byte or character is not valid utf-8 and shown as \uFFFD]"},
		{`{"path":"/in/bom.txt","encoding":"windows-1252"}`, "é"}, // a byte order mark is believed
		{`{"path":"/in/crlf.txt"}`, "a\nb\n[the line ends are those of Windows, CRLF]"},
		{`{"path":"/in/mixed.txt"}`, "a\nb\r\nc\nd\n[1 line end is that of Windows, CRLF, the others are not]"},
		{`{"path":"/in/lines.txt","offset":-2}`, "c\nd\n[lines 3 to 4 of 4]"},
		{`{"path":"/in/lines.txt","offset":-3,"limit":1}`, "b\n[lines 2 to 2 of 4; go on with offset 3]"},
		{`{"path":"/in/lines.txt","offset":-99,"limit":1}`, "a\n[lines 1 to 1 of 4; go on with offset 2]"},
		{`{"path":"/in/end.txt","offset":-1}`, "b\n[lines 2 to 2 of 2]"},
		{`{"path":"/in/lines.txt","line_numbers":true,"offset":2,"limit":2}`, "2\tb\n3\tc\n[lines 2 to 3 of 4; go on with offset 4]"},
		{`{"path":"/in/end.txt","line_numbers":true}`, "1\ta\n2\tb\n"},
		{`{"path":"/in/lines.txt","limit":4,"max_length":5}`, "a\nb\n[lines 1 to 2 of 4; go on with offset 3]"},
		{`{"path":"/in/long.txt","limit":1,"max_length":4}`, "0123\n[line 1 is longer than max_length and was cut after 4 characters]\n[lines 1 to 1 of 2; go on with offset 2]"},
		{`{"path":"own.txt"}`, "own"},
	} {
		b.WantText("file_read", tt.args, tt.want)
	}
	b.WantFailure("file_read", `{"path":"/in/lines.txt","offset":5}`, "4 lines")
	b.WantFailure("file_read", `{"path":"/in/none.txt"}`, "/in/none.txt", "not exist")
	b.WantFailure("file_read", `{"path":"/etc/passwd"}`, "no mount holds this path", "/in, /out")
	b.WantFailure("file_read", `{"path":"/in"}`, "folder")
	b.WantFailure("file_read", `{"path":"/in/latin.txt","encoding":"windows-1552"}`, `did you mean "windows-1252"?`)
	b.WantFailure("file_read", `{"path":"/in/latin.txt","offset":0}`, "lines count from 1")
	b.WantFailure("file_read", `{"path":"/in/a.pdf"}`, "use pdf_reader")
	b.WantFailure("file_read", `{"path":"/in/binary"}`, "NUL")
	b.WantParts("file_read", `{"path":"/in/binary","encoding":"utf-16le"}`, "not valid utf-16le")
}

// TestLineEndsBetweenBuffers: a line is read in pieces, and its end may fall apart.
func TestLineEndsBetweenBuffers(t *testing.T) {
	b := newBench(t)
	for n := 64<<10 - 3; n <= 64<<10+1; n++ {
		line := strings.Repeat("x", n)
		b.Put("in/f", line+"\r\n"+line+"\ry\r\nlast\r")
		b.WantText("file_read", `{"path":"/in/f","max_length":1000000}`, line+"\n"+line+"\ry\nlast\r\n[the line ends are those of Windows, CRLF]")
	}
}

func TestFileReadIsBoundedK35(t *testing.T) {
	b := newBench(t)
	b.Put("in/big.txt", "HEAD"+strings.Repeat("é", 5<<20/2)+"TAIL")
	got, failed := b.Call("file_read", `{"path":"/in/big.txt"}`)
	if n := len([]rune(got)); failed || n > 32000 || n < 31000 {
		t.Errorf("%d characters, failed: %t", n, failed)
	}
	if !strings.HasPrefix(got, "HEADé") || !strings.HasSuffix(got, "éTAIL") || !strings.Contains(got, "characters left out") {
		t.Errorf("got %.60s ... %s", got, got[len(got)-60:])
	}
	if before, after, _ := strings.Cut(got, "[... "); true {
		var left int
		_, after, _ = strings.Cut(after, "...]")
		_, err := fmt.Sscanf(got[strings.Index(got, "[... "):], "[... %d characters left out", &left)
		shown := len([]rune(strings.TrimSuffix(before, "\n\n"))) + len([]rune(strings.TrimPrefix(after, "\n\n")))
		if total := 8 + 5<<20/2; err != nil || shown+left != total {
			t.Errorf("%d characters shown and %d left out of %d, %v", shown, left, total, err)
		}
	}
	got, _ = b.Call("file_read", `{"path":"/in/big.txt","max_length":500}`)
	if n := len([]rune(got)); n > 500 {
		t.Errorf("%d characters, want at most 500", n)
	}
	huge := filepath.Join(b.Root, "in", "huge.txt")
	if err := os.WriteFile(huge, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(huge, 1<<30); err != nil { // sparse
		t.Fatal(err)
	}
	b.WantFailure("file_read", `{"path":"/in/huge.txt"}`, "NUL byte at offset 0")
}

func TestFileWrite(t *testing.T) {
	b := newBench(t)
	for _, tt := range []struct{ args, want, file, content string }{
		{`{"path":"/out/a/b/c.md","content":"é"}`, "Created /out/a/b/c.md: 2 bytes written.", "out/a/b/c.md", "é"},
		{`{"path":"/out/a/b/c.md","content":"x","append":true}`, "Appended to /out/a/b/c.md: 1 byte written.", "out/a/b/c.md", "éx"},
		{`{"path":"/out/a/b/c.md","content":"new","create_backup":true}`,
			"Replaced /out/a/b/c.md: 3 bytes written. The old content is in /out/a/b/c.md.bak.", "out/a/b/c.md.bak", "éx"},
		// A backup never costs another file: the policy judged the path alone.
		{`{"path":"/out/a/b/c.md","content":"newer","create_backup":true}`,
			"Replaced /out/a/b/c.md: 5 bytes written. The old content is in /out/a/b/c.md.bak1.", "out/a/b/c.md.bak", "éx"},
		{`{"path":"rel/x.txt","content":"r"}`, "Created /out/rel/x.txt: 1 byte written.", "out/rel/x.txt", "r"},
		{`{"path":"/out/log","content":"1","append":true,"create_backup":true}`, "Created /out/log: 1 byte written.", "out/log", "1"},
		{`{"path":"/out/le","content":"hi","encoding":"utf-16le"}`, "Created /out/le: 4 bytes written.", "out/le", "h\x00i\x00"},
		{`{"path":"/out/be","content":"hi","encoding":"utf-16be"}`, "Created /out/be: 4 bytes written.", "out/be", "\x00h\x00i"},
		{`{"path":"/out/l1","content":"caf\u00e9","encoding":"Latin1"}`, "Created /out/l1: 4 bytes written.", "out/l1", "caf\xe9"},
	} {
		b.WantText("file_write", tt.args, tt.want)
		if got := b.Get(tt.file); got != tt.content {
			t.Errorf("%s holds %q, want %q", tt.file, got, tt.content)
		}
	}
	b.Put("in/a.txt", "alpha")
	b.WantFailure("file_write", `{"path":"/in/a.txt","content":"x"}`, "/in is mounted read-only")
	b.WantFailure("file_write", `{"path":"/in/new/a.txt","content":"x"}`, "/in is mounted read-only")
	b.WantFailure("file_write", `{"path":"/out/../in/a.txt","content":"x","create_backup":true}`, "read-only")
	b.WantFailure("file_write", `{"path":"/etc/passwd","content":"x"}`, "no mount")
	b.WantFailure("file_write", `{"path":"/out","content":"x"}`, "folder")
	b.WantFailure("file_write", `{"path":"/out/l2","content":"€","encoding":"iso-8859-1"}`, `'€'`)
	b.WantFailure("file_write", nativetest.Args("path", "/out/x", "content", strings.Repeat("x", 4<<20+1)), "at most")
	if got := b.Get("in/a.txt"); got != "alpha" {
		t.Errorf("a read-only file now holds %q", got)
	}
}

func TestDirectoryRead(t *testing.T) {
	b := newBench(t)
	for _, f := range []string{"b.md", "a.txt", "sub/c.md", "sub/deep/d.md", "sub/deep/e.txt"} {
		b.Put("in/"+f, "12")
	}
	if err := os.Symlink("../in", filepath.Join(b.Root, "in", "loop")); err != nil {
		t.Skipf("no symbolic links here: %v", err)
	}
	if err := os.Symlink("sub", filepath.Join(b.Root, "in", "link")); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ args, want string }{
		{`{"path":"/"}`, "/in/\n/out/\n[2 entries]"},
		{`{"path":"/out"}`, "[/out is empty]"},
		{`{"path":"."}`, "[/out is empty]"},
		{`{"path":"/in"}`, "/in/a.txt (2 bytes)\n/in/b.md (2 bytes)\n/in/link (a link to /in/sub)\n/in/loop (a link that leads nowhere)\n/in/sub/\n[5 entries]"},
		{`{"path":"/in","recursive":true,"pattern":"*.md"}`, "/in/b.md (2 bytes)\n/in/sub/c.md (2 bytes)\n/in/sub/deep/d.md (2 bytes)\n[3 entries]"},
		{`{"path":"/in","recursive":true,"pattern":"sub/*.md"}`, "/in/sub/c.md (2 bytes)\n[1 entry]"},
		{`{"path":"/in","recursive":true,"pattern":"**/d.{md,txt}"}`, "/in/sub/deep/d.md (2 bytes)\n[1 entry]"},
		{`{"path":"/","recursive":true,"pattern":"in/sub/**/*.txt"}`, "/in/sub/deep/e.txt (2 bytes)\n[1 entry]"},
		{`{"path":"/in","pattern":"*.go"}`, "[nothing in /in matches *.go]"},
		{`{"path":"/in","recursive":true,"max_results":2}`, "/in/a.txt (2 bytes)\n/in/b.md (2 bytes)\n[2 entries shown of more than 2; narrow the list with pattern or a folder below]"},
		{`{"path":"/in/link"}`, "/in/sub/c.md (2 bytes)\n/in/sub/deep/\n[2 entries]"},
	} {
		b.WantText("directory_read", tt.args, tt.want)
	}
	b.WantFailure("directory_read", `{"path":"/in/a.txt"}`, "not a folder")
	b.WantFailure("directory_read", `{"path":"/none"}`, "no mount")
	b.WantFailure("directory_read", `{"path":"/in/none"}`, "not exist")
}

func TestDirectoryReadIsCutBetweenLines(t *testing.T) {
	b := newBench(t)
	for i := range 300 {
		b.Put("in/"+strings.Repeat("n", 60)+string(rune('a'+i%26))+string(rune('a'+i/26)), "")
	}
	got, _ := b.Call("directory_read", `{"path":"/in"}`)
	lines := strings.Split(got, "\n")
	last := lines[len(lines)-1]
	if len([]rune(got)) > 16_200 || !strings.Contains(last, "more entries are not shown") {
		t.Errorf("%d characters, the last line is %q", len([]rune(got)), last)
	}
	for _, l := range lines[:len(lines)-1] {
		if !strings.HasSuffix(l, "(0 bytes)") {
			t.Errorf("a line was cut: %q", l)
		}
	}
}
