package shell

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// What was split can be quoted and split again, and nothing that only a shell knows gets
// through without a quote.
func FuzzWords(f *testing.F) {
	for _, line := range []string{"ls -l", `a 'b c' "d\"e" f\ g`, "a|b", "$x", "a\\", "'", "{a,b}", "~", "#", "a\x00"} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		list, err := words(line)
		if err != nil {
			return
		}
		var quoted []string
		for _, w := range list {
			quoted = append(quoted, "'"+strings.ReplaceAll(w, "'", `'\''`)+"'")
		}
		again, err := words(strings.Join(quoted, " "))
		if err != nil || strings.Join(again, "\x00") != strings.Join(list, "\x00") || len(again) != len(list) {
			t.Errorf("%q: %q, again %q, %v", line, list, again, err)
		}
		if strings.ContainsAny(line, "|;&<>`") && !strings.ContainsAny(line, `'"\`) {
			t.Errorf("%q gets through", line)
		}
	})
}

// An output is text, within its bound, and shows no folder of the host.
func FuzzOutput(f *testing.F) {
	f.Add([]byte("/host/dir/a\n\x1b[1mb\r\n"), 30)
	f.Add([]byte(strings.Repeat("/host/dir", 20)), 7)
	f.Fuzz(func(t *testing.T, data []byte, piece int) {
		o := &output{limit: 60}
		for rest := data; len(rest) > 0; {
			n := min(max(piece, 1), len(rest))
			if _, err := o.Write(rest[:n]); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		got := o.text([]mask{{"/host/dir", "/v"}})
		if !utf8.ValidString(got) || len(got) > 60*3+120 {
			t.Errorf("%d: %q", len(got), got)
		}
		if strings.ContainsAny(got, "\x1b\x00\x07\r") {
			t.Errorf("%q", got)
		}
	})
}
