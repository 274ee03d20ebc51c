package builtin_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"

	"crewhost/tools"
	"crewhost/tools/builtin"
	"crewhost/tools/mount"
)

// bench is a registry with the built-ins over two mounts: /in, which is
// read-only, and /out.
type bench struct {
	reg  *tools.Registry
	root string
}

func newBench(t testing.TB, asker builtin.Asker) bench {
	t.Helper()
	root := t.TempDir()
	var ms []mount.Mount
	for _, spec := range []string{"in:/in:ro", "out:/out:rw"} {
		m, err := mount.Parse(spec)
		if err != nil {
			t.Fatal(err)
		}
		m = m.In(root)
		if err := os.Mkdir(m.Physical, 0o755); err != nil {
			t.Fatal(err)
		}
		ms = append(ms, m)
	}
	fsys, err := mount.Open(ms)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = fsys.Close() })
	var reg tools.Registry
	if err := builtin.Register(&reg, builtin.Config{FS: fsys, Asker: asker}); err != nil {
		t.Fatal(err)
	}
	return bench{&reg, root}
}

// put writes a file on the host.
func (b bench) put(t testing.TB, name, content string) {
	t.Helper()
	p := filepath.Join(b.root, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (b bench) get(t testing.TB, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(b.root, filepath.FromSlash(name)))
	if err != nil {
		t.Error(err)
	}
	return string(data)
}

// args makes arguments of pairs of name and value.
func args(t testing.TB, pairs ...any) string {
	t.Helper()
	m := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i].(string)] = pairs[i+1]
	}
	data, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// call calls a tool that the host can run, and returns its one text. No result
// may be empty, or tell where a mounted folder is.
func (b bench) call(t testing.TB, name, arguments string) (text string, failed bool) {
	t.Helper()
	tool, ok := b.reg.Lookup(name)
	if !ok {
		t.Fatalf("no tool %s", name)
	}
	res, err := tool.Call(t.Context(), tools.Call{Name: name, Arguments: json.RawMessage(arguments)})
	if err != nil {
		t.Fatalf("%s %s: %v", name, arguments, err)
	}
	if len(res.Content) != 1 || res.Content[0].Text == "" {
		t.Fatalf("%s %s: got %+v, want one text", name, arguments, res)
	}
	text = res.Content[0].Text
	if strings.Contains(text, b.root) {
		t.Errorf("%s %s tells where a folder is: %s", name, arguments, text)
	}
	return text, res.IsError
}

func (b bench) wantText(t *testing.T, name, arguments, want string) {
	t.Helper()
	if got, failed := b.call(t, name, arguments); failed || got != want {
		t.Errorf("%s %.100s\ngot  %.300q (failed: %t)\nwant %.300q", name, arguments, got, failed, want)
	}
}

func (b bench) wantFailure(t *testing.T, name, arguments string, parts ...string) {
	t.Helper()
	got, failed := b.call(t, name, arguments)
	if !failed {
		t.Errorf("%s %.100s did not fail: %.300q", name, arguments, got)
	}
	for _, p := range parts {
		if !strings.Contains(got, p) {
			t.Errorf("%s %.100s\ngot %.500q\nwant it to hold %q", name, arguments, got, p)
		}
	}
}

func TestRegister(t *testing.T) {
	b := newBench(t, nil)
	want := []string{"directory_read", "file_read", "file_write", "human_input", "json_tool", "memory_store", "rag_search", "semantic_search"}
	if diff := cmp.Diff(want, b.reg.Names()); diff != "" {
		t.Error(diff)
	}
	if err := builtin.Register(b.reg, builtin.Config{}); !errors.Is(err, tools.ErrDuplicate) {
		t.Errorf("registering twice: %v", err)
	}
}

// TestSchemas holds the hand-written schemas to what the tools take: a call with
// every property passes, and each property has a description to act on.
func TestSchemas(t *testing.T) {
	b := newBench(t, nil)
	for _, def := range b.reg.Definitions() {
		var s jsonschema.Schema
		if err := json.Unmarshal(def.InputSchema, &s); err != nil {
			t.Fatalf("%s: %v", def.Name, err)
		}
		if _, err := s.Resolve(nil); err != nil {
			t.Errorf("%s: %v", def.Name, err)
		}
		if s.Type != "object" || def.Description == "" || def.Title == "" || def.Server != "" {
			t.Errorf("%s: %+v", def.Name, def)
		}
		var raw struct {
			Properties           map[string]struct{ Description string }
			AdditionalProperties *bool
		}
		if err := json.Unmarshal(def.InputSchema, &raw); err != nil {
			t.Fatal(err)
		}
		if raw.AdditionalProperties == nil || *raw.AdditionalProperties {
			t.Errorf("%s takes properties that it does not name", def.Name)
		}
		for name, p := range raw.Properties {
			if p.Description == "" {
				t.Errorf("%s: %s has no description", def.Name, name)
			}
		}
		// The names in the schema are those that the tool knows.
		got, failed := b.call(t, def.Name, `{"no_such":1}`)
		if !failed {
			t.Errorf("%s took an unknown argument: %s", def.Name, got)
		}
		_, list, _ := strings.Cut(got, "Its arguments are: ")
		known := strings.Split(strings.TrimSuffix(list, "."), ", ")
		if len(known) != len(raw.Properties) {
			t.Errorf("%s knows %v, its schema has %d", def.Name, known, len(raw.Properties))
		}
		for _, name := range known {
			if _, ok := raw.Properties[name]; !ok {
				t.Errorf("%s knows %s, its schema does not", def.Name, name)
			}
		}
		for _, name := range s.Required {
			if !strings.Contains(got, `"`+name+`" is missing`) {
				t.Errorf("%s does without %s, its schema does not: %s", def.Name, name, got)
			}
		}
	}
}

func TestArgumentsAreStrict(t *testing.T) {
	b := newBench(t, nil)
	b.put(t, "in/a.txt", "one\ntwo\nthree\n")
	for _, tt := range []struct {
		tool, args string
		want       []string
	}{
		{"file_read", `{"pth":"/in/a.txt"}`, []string{`no argument "pth" (did you mean "path"?)`, `"path" is missing`}},
		{"file_read", `{"Path":"/in/a.txt"}`, []string{`no argument "Path" (did you mean "path"?)`}},
		{"file_read", `{"xyzzy":1,"path":5,"limit":"x"}`, []string{`no argument "xyzzy";`, `"path" must be a string, and is 5`, `"limit" must be a whole number, and is the string "x"`}},
		{"file_read", `{"path":"/in/a.txt","path":"/out/b"}`, []string{`"path" is given twice`}},
		{"file_read", `{"path":{"a":1}}`, []string{"is an object"}},
		{"file_read", `{"path":"/in/a.txt","offset":0}`, []string{"from 1 to"}},
		{"file_read", `{"path":"/in/a.txt","offset":1.5}`, []string{"whole number, and is 1.5"}},
		{"file_read", `{"path":"/in/a.txt","limit":1e400}`, []string{"whole number, and is 1e400"}},
		{"file_read", `{"path":"/in/a.txt","limit":true}`, []string{"whole number, and is true"}},
		{"file_read", `{"path":"/in/a.txt","encoding":"utf8"}`, []string{`is "utf8", and must be one of`, `did you mean "utf-8"?`}},
		{"file_write", `{"path":"/out/x","content":{"a":1}}`, []string{`"content" must be a string, and is an object`}},
		{"file_write", `{"path":"/out/x","content":5}`, []string{`"content" must be a string, and is 5`}},
		{"file_write", `{"path":"/out/x","content":"","append":"maybe"}`, []string{`"append" must be true or false`}},
		{"file_write", `{"path":"/out/x","content":"","append":1}`, []string{`"append" must be true or false, and is 1`}},
		{"file_write", `{}`, []string{`"path" is missing`, `"content" is missing`}},
		{"directory_read", `{"path":"/in","pattern":"[a"}`, []string{"no valid pattern"}},
		{"directory_read", args(t, "path", "/in", "pattern", strings.Repeat("*", 201)), []string{"longer than 200"}},
		{"json_tool", `{"input":"1","operation":"pars"}`, []string{`did you mean "parse"?`}},
		{"json_tool", `{"input":"1","operation":"query"}`, []string{`needs the argument "query"`}},
		{"json_tool", `{"input":1,"operation":"parse"}`, []string{`"input" must be a string`}},
		{"human_input", `{"prompt":"?","input_type":"choice"}`, []string{`needs the argument "choices"`}},
		{"human_input", `{"prompt":"?","choices":"a,b"}`, []string{"must be a list of strings"}},
		{"human_input", `{"prompt":"?","choices":["a",1]}`, []string{`item 2 of the argument "choices"`}},
	} {
		b.wantFailure(t, tt.tool, tt.args, append(tt.want, "Bad arguments for "+tt.tool, "Its arguments are: ")...)
	}
	many := "{"
	for range 1000 {
		many += `"x":1,`
	}
	if got, _ := b.call(t, "file_read", many+`"y":2}`); len(got) > 2000 {
		t.Errorf("a thousand faults take %d bytes", len(got))
	}
	// What loses nothing is taken, and null is absent (K29).
	for _, a := range []string{`{"path":"/in/a.txt","offset":"2","limit":"1"}`, `{"path":"/in/a.txt","offset":2.0,"limit":1e0}`,
		`{"path":"/in/a.txt","offset":" 2 ","limit":1,"encoding":null,"max_length":null}`} {
		b.wantText(t, "file_read", a, "two\n\n[lines 2 to 2 of 3; go on with offset 3]")
	}
	b.wantText(t, "file_write", `{"path":"/out/x","content":"","append":"true","create_backup":"false"}`, "Created /out/x: 0 bytes written.")
}

func TestArgumentsThatAreNoObject(t *testing.T) {
	b := newBench(t, nil)
	tool, _ := b.reg.Lookup("file_read")
	for _, a := range []string{`[]`, `"x"`, `{`, `{"a":1}{}`, `5`} {
		_, err := tool.Call(t.Context(), tools.Call{Arguments: json.RawMessage(a)})
		if tools.CodeOf(err) != tools.CodeArgumentsInvalid {
			t.Errorf("%s: got %v", a, err)
		}
	}
	b.wantFailure(t, "file_read", "", `"path" is missing`)
	b.wantFailure(t, "file_read", "null", `"path" is missing`)
}

func TestEndedContext(t *testing.T) {
	b := newBench(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	late, stop := context.WithTimeout(t.Context(), 0)
	defer stop()
	for _, name := range b.reg.Names() {
		tool, _ := b.reg.Lookup(name)
		_, err := tool.Call(ctx, tools.Call{})
		if tools.CodeOf(err) != tools.CodeCancelled || !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v", name, err)
		}
		if _, err = tool.Call(late, tools.Call{}); tools.CodeOf(err) != tools.CodeCallTimeout {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestWithoutMounts(t *testing.T) {
	var reg tools.Registry
	if err := builtin.Register(&reg, builtin.Config{}); err != nil {
		t.Fatal(err)
	}
	b := bench{reg: &reg, root: "\x00"}
	b.wantFailure(t, "file_read", `{"path":"/x"}`, "nothing is mounted here")
	b.wantFailure(t, "file_write", `{"path":"/x","content":""}`, "nothing is mounted here")
	b.wantFailure(t, "directory_read", `{"path":"/"}`, "nothing is mounted here")
}

func TestFileRead(t *testing.T) {
	b := newBench(t, nil)
	b.put(t, "in/lines.txt", "a\nb\nc\nd")
	b.put(t, "in/end.txt", "a\nb\n")
	b.put(t, "in/empty.txt", "")
	b.put(t, "in/bom.txt", "\xef\xbb\xbfé")
	b.put(t, "in/le.txt", "\xff\xfeh\x00i\x00")
	b.put(t, "in/be.txt", "\x00h\x00i")
	b.put(t, "in/latin.txt", "caf\xe9")
	b.put(t, "in/binary", "a\x00b")
	b.put(t, "out/own.txt", "own")
	for _, tt := range []struct{ args, want string }{
		{`{"path":"/in/lines.txt"}`, "a\nb\nc\nd"},
		{`{"path":"/in/lines.txt","offset":2,"limit":2}`, "b\nc\n\n[lines 2 to 3 of 4; go on with offset 4]"},
		{`{"path":"/in/lines.txt","offset":3}`, "c\nd\n[lines 3 to 4 of 4]"},
		{`{"path":"/in/lines.txt","offset":4,"limit":99}`, "d\n[lines 4 to 4 of 4]"},
		{`{"path":"/in/lines.txt","limit":1}`, "a\n\n[lines 1 to 1 of 4; go on with offset 2]"},
		{`{"path":"/in/lines.txt","limit":4}`, "a\nb\nc\nd"},
		{`{"path":"/in/end.txt","limit":2}`, "a\nb\n"},
		{`{"path":"/in/end.txt","offset":2}`, "b\n\n[lines 2 to 2 of 2]"},
		{`{"path":"/in/empty.txt"}`, "[the file is empty]"},
		{`{"path":"/in/bom.txt"}`, "é"},
		{`{"path":"/in/le.txt"}`, "hi"},
		{`{"path":"/in/be.txt","encoding":"utf-16be"}`, "hi"},
		{`{"path":"/in/latin.txt","encoding":"iso-8859-1"}`, "café"},
		{`{"path":"own.txt"}`, "own"},
	} {
		b.wantText(t, "file_read", tt.args, tt.want)
	}
	b.wantFailure(t, "file_read", `{"path":"/in/lines.txt","offset":5}`, "4 lines")
	b.wantFailure(t, "file_read", `{"path":"/in/none.txt"}`, "/in/none.txt", "not exist")
	b.wantFailure(t, "file_read", `{"path":"/etc/passwd"}`, "no mount holds this path", "/in, /out")
	b.wantFailure(t, "file_read", `{"path":"/in"}`, "folder")
	b.wantFailure(t, "file_read", `{"path":"/in/latin.txt"}`, "not valid UTF-8")
	b.wantFailure(t, "file_read", `{"path":"/in/binary"}`, "NUL")
	b.wantFailure(t, "file_read", `{"path":"/in/binary","encoding":"utf-16le"}`, "odd")
}

func TestFileReadIsBoundedK35(t *testing.T) {
	b := newBench(t, nil)
	b.put(t, "in/big.txt", "HEAD"+strings.Repeat("é", 5<<20/2)+"TAIL")
	got, failed := b.call(t, "file_read", `{"path":"/in/big.txt"}`)
	if n := len([]rune(got)); failed || n > 32000 || n < 31000 {
		t.Errorf("%d characters, failed: %t", n, failed)
	}
	if !strings.HasPrefix(got, "HEADé") || !strings.HasSuffix(got, "éTAIL") || !strings.Contains(got, "characters left out") {
		t.Errorf("got %.60s ... %s", got, got[len(got)-60:])
	}
	got, _ = b.call(t, "file_read", `{"path":"/in/big.txt","max_length":500}`)
	if n := len([]rune(got)); n > 500 {
		t.Errorf("%d characters, want at most 500", n)
	}
	huge := filepath.Join(b.root, "in", "huge.txt")
	if err := os.WriteFile(huge, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(huge, 1<<30); err != nil { // sparse
		t.Fatal(err)
	}
	b.wantFailure(t, "file_read", `{"path":"/in/huge.txt"}`, "1073741824 bytes", "at most 16777216")
}

func TestFileWrite(t *testing.T) {
	b := newBench(t, nil)
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
		{`{"path":"/out/l1","content":"caf\u00e9","encoding":"iso-8859-1"}`, "Created /out/l1: 4 bytes written.", "out/l1", "caf\xe9"},
	} {
		b.wantText(t, "file_write", tt.args, tt.want)
		if got := b.get(t, tt.file); got != tt.content {
			t.Errorf("%s holds %q, want %q", tt.file, got, tt.content)
		}
	}
	b.put(t, "in/a.txt", "alpha")
	b.wantFailure(t, "file_write", `{"path":"/in/a.txt","content":"x"}`, "/in is mounted read-only")
	b.wantFailure(t, "file_write", `{"path":"/in/new/a.txt","content":"x"}`, "/in is mounted read-only")
	b.wantFailure(t, "file_write", `{"path":"/out/../in/a.txt","content":"x","create_backup":true}`, "read-only")
	b.wantFailure(t, "file_write", `{"path":"/etc/passwd","content":"x"}`, "no mount")
	b.wantFailure(t, "file_write", `{"path":"/out","content":"x"}`, "folder")
	b.wantFailure(t, "file_write", `{"path":"/out/l2","content":"€","encoding":"iso-8859-1"}`, `'€'`)
	b.wantFailure(t, "file_write", args(t, "path", "/out/x", "content", strings.Repeat("x", 4<<20+1)), "at most")
	if got := b.get(t, "in/a.txt"); got != "alpha" {
		t.Errorf("a read-only file now holds %q", got)
	}
}

func TestDirectoryRead(t *testing.T) {
	b := newBench(t, nil)
	for _, f := range []string{"b.md", "a.txt", "sub/c.md", "sub/deep/d.md", "sub/deep/e.txt"} {
		b.put(t, "in/"+f, "12")
	}
	if err := os.Symlink("../in", filepath.Join(b.root, "in", "loop")); err != nil {
		t.Skipf("no symbolic links here: %v", err)
	}
	if err := os.Symlink("sub", filepath.Join(b.root, "in", "link")); err != nil {
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
		b.wantText(t, "directory_read", tt.args, tt.want)
	}
	b.wantFailure(t, "directory_read", `{"path":"/in/a.txt"}`, "not a folder")
	b.wantFailure(t, "directory_read", `{"path":"/none"}`, "no mount")
	b.wantFailure(t, "directory_read", `{"path":"/in/none"}`, "not exist")
}

func TestDirectoryReadIsCutBetweenLines(t *testing.T) {
	b := newBench(t, nil)
	for i := range 300 {
		b.put(t, "in/"+strings.Repeat("n", 20)+string(rune('a'+i%26))+string(rune('a'+i/26)), "")
	}
	got, _ := b.call(t, "directory_read", `{"path":"/in"}`)
	lines := strings.Split(got, "\n")
	last := lines[len(lines)-1]
	if len([]rune(got)) > 4200 || !strings.Contains(last, "more entries are not shown") {
		t.Errorf("%d characters, the last line is %q", len([]rune(got)), last)
	}
	for _, l := range lines[:len(lines)-1] {
		if !strings.HasSuffix(l, "(0 bytes)") {
			t.Errorf("a line was cut: %q", l)
		}
	}
}

func FuzzTools(f *testing.F) {
	b := newBench(f, nil)
	b.put(f, "in/a.txt", "one\ntwo\n")
	for _, s := range [][2]string{
		{"file_read", `{"path":"/in/a.txt","offset":"2"}`}, {"file_write", `{"path":"x","content":"y"}`},
		{"directory_read", `{"path":"/","recursive":true,"pattern":"{a,b}/**"}`},
		{"json_tool", `{"input":"[1]","operation":"query","query":"a.0[?@.b=='x']"}`},
		{"human_input", `{"prompt":"\u202e?","input_type":"choice","choices":["a"]}`},
	} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, name, arguments string) {
		tool, ok := b.reg.Lookup(name)
		if !ok {
			return
		}
		res, err := tool.Call(t.Context(), tools.Call{Name: name, Arguments: json.RawMessage(arguments)})
		if err != nil && tools.CodeOf(err) != tools.CodeArgumentsInvalid {
			t.Errorf("%s %s: %v", name, arguments, err)
		}
		if err == nil && (len(res.Content) != 1 || bytes.Contains([]byte(res.Content[0].Text), []byte(b.root)) && !strings.Contains(arguments, b.root)) {
			t.Errorf("%s %s: %+v", name, arguments, res)
		}
	})
}
