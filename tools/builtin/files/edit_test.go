package files_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"crewhost/tools"
	"crewhost/tools/builtin/files"
	"crewhost/tools/native"
	"crewhost/tools/native/nativetest"
)

func TestFileEdit(t *testing.T) {
	b := newBench(t)
	for _, tt := range []struct{ before, args, want, after string }{
		{
			"one\ntwo\nthree\n", `{"path":"/out/f","old_text":"two","new_text":"2"}`,
			"Changed 1 place in /out/f:\nline 2:\n  one\n- two\n+ 2\n  three", "one\n2\nthree\n",
		},
		{
			"one\ntwo\nthree\n", `{"path":"f","old_text":"two\n","new_text":""}`,
			"Changed 1 place in /out/f:\nline 2:\n  one\n- two\n  three", "one\nthree\n",
		},
		{
			"a a\na", `{"path":"/out/f","old_text":"a","new_text":"aa","replace_all":true}`,
			"Changed 3 places in /out/f:\nline 1:\n- a a\n+ aa a\n  a\nline 1:\n- a a\n+ a aa\n  a\nline 2:\n  a a\n- a\n+ aa", "aa aa\naa",
		},
		{
			"a\nb\n", `{"path":"/out/f","edits":[{"old_text":"a","new_text":"b2"},{"old_text":"b2","new_text":"c"},{"old_text":"b","new_text":"d"}]}`,
			"Changed 3 places in /out/f:\nline 1:\n- a\n+ b2\n  b\nline 1:\n- b2\n+ c\n  b\nline 2:\n  c\n- b\n+ d", "c\nd\n",
		},
		{ // line ends of Windows, and a byte order mark
			"\xef\xbb\xbfone\r\ntwo\r\n", `{"path":"/out/f","old_text":"one\ntwo\n","new_text":"1\nx\n2\n"}`,
			"Changed 1 place in /out/f:\nline 1:\n- one\n- two\n+ 1\n+ x\n+ 2\n[the line ends are those of Windows, CRLF, as they were]", "\xef\xbb\xbf1\r\nx\r\n2\r\n",
		},
		{ // the same where only some lines end so
			"one\r\ntwo\r\nthree\n", `{"path":"/out/f","old_text":"one\ntwo","new_text":"1\n2"}`,
			"Changed 1 place in /out/f:\nline 1:\n- one\n- two\n+ 1\n+ 2\n  three", "1\r\n2\r\nthree\n",
		},
		{ // another encoding
			"\xff\xfea\x00\n\x00", `{"path":"/out/f","old_text":"a","new_text":"é"}`,
			"Changed 1 place in /out/f:\nline 1:\n- a\n+ é\n[decoded as utf-16le]", "\xff\xfe\xe9\x00\n\x00",
		},
		{
			"caf\xe9 \x80", `{"path":"/out/f","old_text":"café","new_text":"Café – "}`,
			"Changed 1 place in /out/f:\nline 1:\n- café €\n+ Café –  €\n[decoded as windows-1252, which is a guess, since it is not UTF-8; name its encoding if characters are wrong]", "Caf\xe9 \x96  \x80",
		},
		{
			"\xcf\xf0\xe8", `{"path":"/out/f","old_text":"При","new_text":"при","encoding":"cp1251"}`,
			"Changed 1 place in /out/f:\nline 1:\n- При\n+ при\n[decoded as windows-1251]", "\xef\xf0\xe8",
		},
	} {
		b.Put("out/f", tt.before)
		b.WantText("file_edit", tt.args, tt.want)
		if got := b.Get("out/f"); got != tt.after {
			t.Errorf("%s: the file holds %q, want %q", tt.args, got, tt.after)
		}
	}
}

// TestFileEditRefuses: nothing is changed, and the model is told what to do.
func TestFileEditRefuses(t *testing.T) {
	b := newBench(t)
	source := "func a() {\n\treturn \"one\"\n}\n\nfunc b() {\n\treturn \"two\"\n}\n"
	b.Put("in/f", source)
	for _, tt := range []struct {
		before, args string
		want         []string
	}{
		{source, `{"path":"/out/f","old_text":"return","new_text":"x"}`, []string{"old_text is in /out/f twice, on the lines 2, 6", "set replace_all"}},
		{"aaa", `{"path":"/out/f","old_text":"aa","new_text":"x"}`, []string{"twice, on the lines 1, 1"}},
		{strings.Repeat("x\n", 2000), `{"path":"/out/f","old_text":"x","new_text":"y"}`, []string{"more than 1000 times", "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, ..."}},
		{source, `{"path":"/out/f","old_text":"func a() {\n    return \"one\"\n}","new_text":"x"}`, []string{"not in /out/f", "Lines 1 to 3 differ from it only in spaces", "2\t\treturn \"one\"\n"}},
		{source, `{"path":"/out/f","old_text":"return “two”","new_text":"x"}`, []string{"Lines 6 to 6 differ", "6\t\treturn \"two\""}},
		{source, `{"path":"/out/f","old_text":"1\tfunc a() {\n2\t\treturn \"one\"","new_text":"x"}`, []string{"the numbers that file_read shows"}},
		{source, `{"path":"/out/f","old_text":"func bb() {","new_text":"x"}`, []string{"most like its first one is line 5:", "5\tfunc b() {"}},
		{source, `{"path":"/out/f","old_text":"zebra crossing","new_text":"return \"two\""}`, []string{"new_text is, on line 6: perhaps this edit was made before", "use grep"}},
		{source, `{"path":"/out/f","edits":[{"old_text":"a()","new_text":"c()"},{"old_text":"nowhere at all","new_text":""}]}`, []string{"nothing was changed; item 2 of edits: old_text is not in"}},
		{source, `{"path":"/out/f","old_text":"","new_text":"x"}`, []string{"old_text is empty; use file_write"}},
		{source, `{"path":"/out/f","old_text":"a","new_text":"a"}`, []string{"old_text and new_text are the same"}},
		{source, `{"path":"/out/f"}`, []string{`"old_text" is missing`, `"new_text" is missing`}},
		{source, `{"path":"/out/f","old_text":"a","edits":[{"old_text":"a","new_text":"b"}]}`, []string{`"edits" and "old_text" are both given`}},
		{source, `{"path":"/out/f","edits":[]}`, []string{"has 0 items"}},
		{source, `{"path":"/out/f","edits":[{"old_text":"a","newtext":"b"}]}`, []string{`unknown field "newtext"`}},
		{source, `{"path":"/out/f","edits":[{"old_text":"a"}]}`, []string{`item 1 of edits: the argument "new_text" is missing`}},
		{source, `{"path":"/out/f","edits":"a"}`, []string{`must be a list such as [{"old_text"`}},
		{source, `{"path":"/in/f","old_text":"\"one\"","new_text":"x"}`, []string{"read-only"}},
		{source, `{"path":"/in/f","old_text":"nowhere","new_text":"x"}`, []string{"read-only"}},
		{source, `{"path":"/out/none","old_text":"a","new_text":"x"}`, []string{"not exist"}},
		{source, `{"path":"/out","old_text":"a","new_text":"x"}`, []string{"folder"}},
		{"caf\xe9", `{"path":"/out/f","old_text":"caf","new_text":"日本"}`, []string{"'日' (U+65E5) on line 1 can't be written in windows-1252"}},
		{"a\x00b", `{"path":"/out/f","old_text":"a","new_text":"x"}`, []string{"NUL byte"}},
		{strings.Repeat("é", 9) + "\xe9", `{"path":"/out/f","old_text":"é","new_text":"x","replace_all":true}`, []string{"not valid UTF-8"}},
		// JIS has the character of 0x8790 twice, and the shorter way back is another.
		{"\x87\x90 a", `{"path":"/out/f","old_text":"a","new_text":"b","encoding":"shift_jis"}`, []string{"would change more of it"}},
	} {
		b.Put("out/f", tt.before)
		b.WantFailure("file_edit", tt.args, tt.want...)
		if got := b.Get("out/f"); got != tt.before {
			t.Errorf("%s: the file was changed to %q", tt.args, got)
		}
	}
	if got := b.Get("in/f"); got != source {
		t.Error("a read-only file was changed")
	}
}

// TestFileEditKeepsWhatOthersWrote between its reading and its writing.
func TestFileEditKeepsWhatOthersWrote(t *testing.T) {
	b := newBench(t)
	b.Put("out/f", "mine")
	tool, _ := b.Reg.Lookup("file_edit")
	own := tool.(native.Tool)
	own.Timeout = 0 // which takes a context of its own
	calls := 0
	ctx := &asked{Context: t.Context(), each: func() {
		if calls++; calls > 1 { // the first one is before anything is done
			b.Put("out/f", "mine theirs")
		}
	}}
	res, err := own.Call(ctx, tools.Call{Arguments: []byte(`{"path":"/out/f","old_text":"mine","new_text":"yours"}`)})
	if err != nil || !res.IsError || !strings.Contains(res.Content[0].Text, "somebody else changed it meanwhile; read it again") {
		t.Errorf("got %+v, %v", res, err)
	}
	if got := b.Get("out/f"); got != "mine theirs" {
		t.Errorf("the file holds %q", got)
	}
}

// asked is a context that does something each time it is asked whether it ended.
type asked struct {
	context.Context //nolint:containedctx // it is one
	each            func()
}

func (a *asked) Err() error {
	a.each()
	return a.Context.Err()
}

func TestFileEditIsBounded(t *testing.T) {
	b := newBench(t)
	line := strings.Repeat("x", 999) + "\n"
	b.Put("out/big", strings.Repeat(line, 4<<10)) // 4 MB
	b.WantFailure("file_edit", `{"path":"/out/big","old_text":"x","new_text":"yyyyyyyyyy","replace_all":true}`, "at most")
	got, failed := b.Call("file_edit", `{"path":"/out/big","old_text":"xx\n","new_text":"xy\n","replace_all":true}`)
	if failed || len(got) > 17_000 || !strings.Contains(got, "Changed 4096 places") || !strings.Contains(got, "more places are not shown") {
		t.Errorf("%d bytes, failed: %t, %.200s", len(got), failed, got)
	}
	began := time.Now()
	b.WantFailure("file_edit", nativetest.Args("path", "/out/big", "old_text", strings.Repeat("yx", 90), "new_text", ""), "not in /out/big")
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("looking for what is like it took %v", took)
	}
	if err := os.Truncate(filepath.Join(b.Root, "out", "big"), 17<<20); err != nil {
		t.Fatal(err)
	}
	b.WantFailure("file_edit", `{"path":"/out/big","old_text":"x","new_text":"y"}`, "17825792 bytes", "at most 16777216")
}

// TestEffects: what a call does that was interrupted, and may be made again (S8).
func TestEffects(t *testing.T) {
	effects := map[string]native.Effect{
		`file_write {"path":"a","content":"b"}`:                         native.Repeatable,
		`file_write {"path":"a","content":"b","append":false}`:          native.Repeatable,
		`file_write {"path":"a","content":"b","append":true}`:           native.Once,
		`file_write {"path":"a","content":"b","append":"true"}`:         native.Once,
		`file_write {"path":"a","content":"b","create_backup":true}`:    native.Once,
		`file_write {"path":"a","content":"b","overwrite":false}`:       native.Once,
		`file_edit {"path":"a","old_text":"b","new_text":"bb"}`:         native.Once,
		`file_read {"path":"a"}`:                                        native.ReadOnly,
		`directory_read {"path":"a"}`:                                   native.ReadOnly,
		`glob {"pattern":"a"}`:                                          native.ReadOnly,
		`grep {"pattern":"a"}`:                                          native.ReadOnly,
		`list_mounts {}`:                                                native.ReadOnly,
		`file_write {"path":"a","content":"b","overwrite":true,"x":[]}`: native.Repeatable,
	}
	for call, want := range effects {
		name, arguments, _ := strings.Cut(call, " ")
		for _, tool := range files.Tools(nil) {
			if tool.Name != name {
				continue
			}
			if got := tool.Does(json.RawMessage(arguments)); got != want {
				t.Errorf("%s: got %v, want %v", call, got, want)
			}
			if tool.WritesFiles != (want != native.ReadOnly) {
				t.Errorf("%s writes files: %t", name, tool.WritesFiles)
			}
		}
	}
}

func TestFileWriteKeepsWhatIsThere(t *testing.T) {
	b := newBench(t)
	for _, tt := range []struct{ before, args, want, after string }{
		{"\xff\xfea\x00", `{"path":"/out/f","content":"é\n","append":true}`, "Appended to /out/f: 4 bytes written. They are utf-16le, as the file is.", "\xff\xfea\x00\xe9\x00\n\x00"},
		{"\xff\xfea\x00", `{"path":"/out/f","content":"é","append":true,"encoding":"utf-16"}`, "Appended to /out/f: 2 bytes written. They are utf-16le, as the file is.", "\xff\xfea\x00\xe9\x00"},
		{"\xef\xbb\xbfa\n", `{"path":"/out/f","content":"é","append":true}`, "Appended to /out/f: 2 bytes written.", "\xef\xbb\xbfa\né"},
		{"\xef\xbb\xbfa\n", `{"path":"/out/f","content":"é","append":true,"encoding":"utf-8-sig"}`, "Appended to /out/f: 2 bytes written.", "\xef\xbb\xbfa\né"},
		{"a\r\nb\r\n", `{"path":"/out/f","content":"c\nd\n","append":true}`, "Appended to /out/f: 6 bytes written. They are utf-8, with line ends of Windows, as the file is.", "a\r\nb\r\nc\r\nd\r\n"},
		{"a\r\nb\n", `{"path":"/out/f","content":"c\n","append":true}`, "Appended to /out/f: 2 bytes written.", "a\r\nb\nc\n"},
		{"caf\xe9\n", `{"path":"/out/f","content":"é","append":true}`, "Appended to /out/f: 1 byte written. They are windows-1252, as the file is.", "caf\xe9\n\xe9"},
		{"caf\xe9\n", `{"path":"/out/f","content":"щ","append":true,"encoding":"koi8-r"}`, "Appended to /out/f: 1 byte written. They are koi8-r, as the file is.", "caf\xe9\n\xdd"},
		{"ascii\n", `{"path":"/out/f","content":"é","append":true,"encoding":"windows-1252"}`, "Appended to /out/f: 1 byte written. They are windows-1252, as the file is.", "ascii\n\xe9"},
		{"\x82\xa0\x81\x41\n", `{"path":"/out/f","content":"あ","append":true,"encoding":"shift_jis"}`, "Appended to /out/f: 2 bytes written. They are shift_jis, as the file is.", "\x82\xa0\x81\x41\n\x82\xa0"},
		{"", `{"path":"/out/f","content":"é","append":true,"encoding":"utf-16"}`, "Appended to /out/f: 4 bytes written.", "\xff\xfe\xe9\x00"},
		{"\xff\xfea\x00", `{"path":"/out/f","content":"é\n"}`, "Replaced /out/f: 3 bytes written.", "é\n"},
		{"a\r\n", `{"path":"/out/f","content":"é\n","encoding":"utf-8-sig","overwrite":true}`, "Replaced /out/f: 6 bytes written.", "\xef\xbb\xbfé\n"},
	} {
		b.Put("out/f", tt.before)
		b.WantText("file_write", tt.args, tt.want)
		if got := b.Get("out/f"); got != tt.after {
			t.Errorf("%s: the file holds %q, want %q", tt.args, got, tt.after)
		}
	}
	for _, tt := range []struct{ before, args, want string }{
		{"é\n", `{"path":"/out/f","content":"é","append":true,"encoding":"windows-1252"}`, "it is utf-8, and text in another encoding can't be added"},
		{"a\n", `{"path":"/out/f","content":"é","append":true,"encoding":"utf-16"}`, "can't be added"},
		{"\xff\xfea\x00", `{"path":"/out/f","content":"é","append":true,"encoding":"utf-8"}`, "it is utf-16le"},
		{"caf\xe9", `{"path":"/out/f","content":"日","append":true}`, "'日' (U+65E5) on line 1 can't be written in windows-1252"},
		{"\x89PNG\r\n\x1a\n", `{"path":"/out/f","content":"x","append":true}`, "it is no text but a PNG image"},
		{"\x82\xa0\x81\x41\n", `{"path":"/out/f","content":"x","append":true}`, "name its encoding"},
		{"there", `{"path":"/out/f","content":"x","overwrite":false}`, "/out/f is there already and was not written"},
		{"there", `{"path":"/out/f","content":"x","encoding":"utf-88"}`, `did you mean "utf-8"?`},
	} {
		b.Put("out/f", tt.before)
		b.WantFailure("file_write", tt.args, tt.want)
		if got := b.Get("out/f"); got != tt.before {
			t.Errorf("%s: the file was changed to %q", tt.args, got)
		}
	}
	b.WantText("file_write", `{"path":"/out/new","content":"x","overwrite":false}`, "Created /out/new: 1 byte written.")
}

func FuzzFileEdit(f *testing.F) {
	f.Add("one\r\ntwo\r\n", "two", "2", false)
	f.Add("a\nb\r\n", "\n", "\r\n", true)
	f.Add("\xff\xfea\x00", "a", "b", false)
	b := newBench(f)
	f.Fuzz(func(t *testing.T, content, from, to string, all bool) {
		b := b
		b.TB = t
		b.Put("out/f", content)
		arguments, err := json.Marshal(map[string]any{"path": "/out/f", "old_text": from, "new_text": to, "replace_all": all})
		if err != nil {
			return
		}
		tool, _ := b.Reg.Lookup("file_edit")
		res, err := tool.Call(t.Context(), tools.Call{Arguments: arguments})
		if err != nil {
			t.Fatal(err)
		}
		if got := b.Get("out/f"); res.IsError && got != content {
			t.Errorf("a failure changed the file to %q", got)
		} else if !res.IsError && len(content) < 1000 && len(to) < 1000 && strings.Count(content, from) == 1 && !strings.Contains(content+from+to, "\r") {
			if n := strings.Count(content, "\n") - strings.Count(from, "\n") + strings.Count(to, "\n"); strings.Count(got, "\n") != n {
				t.Errorf("%q became %q", content, got)
			}
		}
	})
}

// TestAtOnce: agents that work side by side take nothing from each other.
func TestAtOnce(t *testing.T) {
	b := newBench(t)
	b.Put("out/list.txt", "begin\nend\n")
	const agents = 8
	created := make([]bool, agents)
	var wg sync.WaitGroup
	for i := range agents {
		wg.Go(func() {
			call := func(name, args string) (string, bool) {
				tool, _ := b.Reg.Lookup(name)
				res, err := tool.Call(t.Context(), tools.Call{Arguments: []byte(args)})
				if err != nil {
					t.Error(err)
					return "", false
				}
				return res.Content[0].Text, !res.IsError
			}
			text, ok := call("file_write", fmt.Sprintf(`{"path":"/out/claim","content":"%d","overwrite":false}`, i))
			if created[i] = ok; !ok && !strings.Contains(text, "is there already") {
				t.Error(text)
			}
			args := fmt.Sprintf(`{"path":"/out/list.txt","old_text":"end\n","new_text":"line %d\nend\n"}`, i)
			for {
				if text, ok = call("file_edit", args); ok {
					return
				}
				if !strings.Contains(text, "changed it meanwhile") && !strings.Contains(text, "keeps changing") {
					t.Error(text)
					return
				}
			}
		})
	}
	wg.Wait()
	if got := b.Get("out/list.txt"); strings.Count(got, "\n") != agents+2 {
		t.Errorf("of %d edits, these are there:\n%s", agents, got)
	}
	winner := slices.Index(created, true)
	if winner < 0 || slices.Contains(created[winner+1:], true) || b.Get("out/claim") != strconv.Itoa(winner) {
		t.Errorf("created by %v, and it holds %q", created, b.Get("out/claim"))
	}
}
