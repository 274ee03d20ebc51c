package builtin_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crewhost/tools"
	"crewhost/tools/builtin"
	"crewhost/tools/builtin/people"
	"crewhost/tools/mount"
	"crewhost/tools/native"
	"crewhost/tools/native/nativetest"
)

func newBench(t testing.TB, asker people.Asker) nativetest.Bench {
	t.Helper()
	b := nativetest.New(t, func(*mount.FS) []native.Tool { return nil })
	if _, err := builtin.Register(b.Reg, builtin.Config{FS: b.FS, Asker: asker}); err != nil {
		t.Fatal(err)
	}
	return b
}

func TestRegister(t *testing.T) {
	b := newBench(t, nil)
	want := []string{
		"csv_reader", "directory_read", "docx_reader", "email_parser", "file_edit", "file_read", "file_write", "github", "glob", "grep", "http_api", "human_input",
		"json_tool", "list_mounts", "memory_store", "pdf_reader", "rag_search", "semantic_search", "think", "todo", "web_scrape", "xlsx_reader", "xlsx_writer", "xml_parser",
	}
	if diff := cmp.Diff(want, b.Reg.Names()); diff != "" {
		t.Error(diff)
	}
	if _, err := builtin.Register(b.Reg, builtin.Config{}); !errors.Is(err, tools.ErrDuplicate) {
		t.Errorf("registering twice: %v", err)
	}
}

func TestArgumentsAreStrict(t *testing.T) {
	b := newBench(t, nil)
	b.Put("in/a.txt", "one\ntwo\nthree\n")
	for _, tt := range []struct {
		tool, args string
		want       []string
	}{
		{"file_read", `{"pth":"/in/a.txt"}`, []string{`no argument "pth" (did you mean "path"?)`, `"path" is missing`}},
		{"file_read", `{"Path":"/in/a.txt"}`, []string{`no argument "Path" (did you mean "path"?)`}},
		{"file_read", `{"xyzzy":1,"path":5,"limit":"x"}`, []string{`no argument "xyzzy";`, `"path" must be a string, and is 5`, `"limit" must be a whole number, and is the string "x"`}},
		{"file_read", `{"path":"/in/a.txt","path":"/out/b"}`, []string{`"path" is given twice`}},
		{"file_read", `{"path":{"a":1}}`, []string{"is an object"}},
		{"file_read", `{"path":"/in/a.txt","offset":0}`, []string{"lines count from 1"}},
		{"file_read", `{"path":"/in/a.txt","offset":1.5}`, []string{"whole number, and is 1.5"}},
		{"file_read", `{"path":"/in/a.txt","limit":1e400}`, []string{"whole number, and is 1e400"}},
		{"file_read", `{"path":"/in/a.txt","limit":true}`, []string{"whole number, and is true"}},
		{"file_read", `{"path":"/in/a.txt","encoding":"utf-88"}`, []string{`there is no encoding "utf-88"`, `did you mean "utf-8"?`}},
		{"file_write", `{"path":"/out/x","content":{"a":1}}`, []string{`"content" must be a string, and is an object`}},
		{"file_write", `{"path":"/out/x","content":5}`, []string{`"content" must be a string, and is 5`}},
		{"file_write", `{"path":"/out/x","content":"","append":"maybe"}`, []string{`"append" must be true or false`}},
		{"file_write", `{"path":"/out/x","content":"","append":1}`, []string{`"append" must be true or false, and is 1`}},
		{"file_write", `{}`, []string{`"path" is missing`, `"content" is missing`}},
		{"directory_read", `{"path":"/in","pattern":"[a"}`, []string{"no valid pattern"}},
		{"directory_read", nativetest.Args("path", "/in", "pattern", strings.Repeat("*", 201)), []string{"longer than 200"}},
		{"json_tool", `{"input":"1","operation":"pars"}`, []string{`did you mean "parse"?`}},
		{"json_tool", `{"input":"1","operation":"query"}`, []string{`needs the argument "query"`}},
		{"json_tool", `{"input":1,"operation":"parse"}`, []string{`"input" must be a string`}},
		{"human_input", `{"prompt":"?","input_type":"choice"}`, []string{`needs the argument "choices"`}},
		{"human_input", `{"prompt":"?","choices":"a,b"}`, []string{"must be a list of strings"}},
		{"human_input", `{"prompt":"?","choices":["a",1]}`, []string{`item 2 of the argument "choices"`}},
	} {
		b.WantFailure(tt.tool, tt.args, append(tt.want, "Bad arguments for "+tt.tool, "Its arguments are: ")...)
	}
	many := "{"
	for range 1000 {
		many += `"x":1,`
	}
	if got, _ := b.Call("file_read", many+`"y":2}`); len(got) > 2000 {
		t.Errorf("a thousand faults take %d bytes", len(got))
	}
	// What loses nothing is taken, and null is absent (K29).
	for _, a := range []string{`{"path":"/in/a.txt","offset":"2","limit":"1"}`, `{"path":"/in/a.txt","offset":2.0,"limit":1e0}`,
		`{"path":"/in/a.txt","offset":" 2 ","limit":1,"encoding":null,"max_length":null}`} {
		b.WantText("file_read", a, "two\n[lines 2 to 2 of 3; go on with offset 3]")
	}
	b.WantText("file_write", `{"path":"/out/x","content":"","append":"true","create_backup":"false"}`, "Created /out/x: 0 bytes written.")
}

func TestArgumentsThatAreNoObject(t *testing.T) {
	b := newBench(t, nil)
	tool, _ := b.Reg.Lookup("file_read")
	for _, a := range []string{`[]`, `"x"`, `{`, `{"a":1}{}`, `5`} {
		_, err := tool.Call(t.Context(), tools.Call{Arguments: json.RawMessage(a)})
		if tools.CodeOf(err) != tools.CodeArgumentsInvalid {
			t.Errorf("%s: got %v", a, err)
		}
	}
	b.WantFailure("file_read", "", `"path" is missing`)
	b.WantFailure("file_read", "null", `"path" is missing`)
}

func TestEndedContext(t *testing.T) {
	b := newBench(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	late, stop := context.WithTimeout(t.Context(), 0)
	defer stop()
	for _, name := range b.Reg.Names() {
		tool, _ := b.Reg.Lookup(name)
		_, err := tool.Call(ctx, tools.Call{})
		if tools.CodeOf(err) != tools.CodeCancelled || !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v", name, err)
		}
		if _, err = tool.Call(late, tools.Call{}); tools.CodeOf(err) != tools.CodeCallTimeout {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func FuzzTools(f *testing.F) {
	b := newBench(f, nil)
	b.Put("in/a.txt", "one\ntwo\n")
	for _, s := range [][2]string{
		{"file_read", `{"path":"/in/a.txt","offset":"2"}`}, {"file_write", `{"path":"x","content":"y"}`},
		{"directory_read", `{"path":"/","recursive":true,"pattern":"{a,b}/**"}`},
		{"json_tool", `{"input":"[1]","operation":"query","query":"a.0[?@.b=='x']"}`},
		{"human_input", `{"prompt":"\u202e?","input_type":"choice","choices":["a"]}`},
	} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, name, arguments string) {
		tool, ok := b.Reg.Lookup(name)
		if !ok {
			return
		}
		res, err := tool.Call(t.Context(), tools.Call{Name: name, Arguments: json.RawMessage(arguments)})
		if err != nil && tools.CodeOf(err) != tools.CodeArgumentsInvalid {
			t.Errorf("%s %s: %v", name, arguments, err)
		}
		if err == nil && (len(res.Content) != 1 || bytes.Contains([]byte(res.Content[0].Text), []byte(b.Root)) && !strings.Contains(arguments, b.Root)) {
			t.Errorf("%s %s: %+v", name, arguments, res)
		}
	})
}
