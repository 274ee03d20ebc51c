package child

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Configured entries lie over those that are passed on, and no name is there
// twice (K03).
func TestEnviron(t *testing.T) {
	tests := []struct {
		name, goos        string
		parent, own, want []string
	}{
		{
			name: "K03", goos: "linux",
			parent: []string{"PATH=/bin", "HOME=/root", "LANG=de_DE.UTF-8", "AWS_SECRET_ACCESS_KEY=k", "LC_ALL=C", "LCX=1"},
			own:    []string{"TOKEN=t1", "LANG=C"},
			want:   []string{"HOME=/root", "LANG=C", "LC_ALL=C", "PATH=/bin", "TOKEN=t1"},
		},
		{
			name: "the hosts that it runs under", goos: "linux",
			parent: []string{"CREWHOST_SERVING=a/b", "CREWHOST_TREE=x", "CREWHOST_LLM__API_KEY=k"},
			want:   []string{"CREWHOST_SERVING=a/b"},
		},
		{
			name: "proxies in both cases", goos: "linux",
			parent: []string{"https_proxy=a", "HTTPS_PROXY=b", "no_proxy=c", "Https_Proxy=d"},
			want:   []string{"HTTPS_PROXY=b", "https_proxy=a", "no_proxy=c"},
		},
		{
			name: "the last of two", goos: "linux",
			parent: []string{"PATH=/a", "PATH=/b"}, own: []string{"X=1", "X=", "Y=a=b"},
			want: []string{"PATH=/b", "X=", "Y=a=b"},
		},
		{
			name: "malformed", goos: "linux",
			parent: []string{"PATH", "=C:=C:\\", "HOME=/a\x00b"}, own: []string{"", "=x", "NAME", "A\x00B=1"},
			want: []string{},
		},
		{
			name: "windows knows no case", goos: "windows",
			parent: []string{"Path=C:\\bin", "SystemRoot=C:\\Windows", "ComSpec=cmd", "Secret=1"}, own: []string{"PATH=D:\\bin"},
			want: []string{"ComSpec=cmd", "PATH=D:\\bin", "SystemRoot=C:\\Windows"},
		},
		{
			name: "what Windows needs, only there", goos: "linux",
			parent: []string{"SYSTEMROOT=C:\\Windows"},
			want:   []string{},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, environ(test.goos, test.parent, test.own)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Each item is seen as one (K07).
func TestQuote(t *testing.T) {
	got := Quote([]string{"npx", "-y", "@scope/pkg@1.2", "/tmp/My Data (2)", "", `a"b`, "$HOME", "-b local", "ü", "a\nb"})
	want := `npx -y @scope/pkg@1.2 "/tmp/My Data (2)" "" "a\"b" "$HOME" "-b local" "ü" "a\nb"`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestTail(t *testing.T) {
	tests := []struct {
		name   string
		limit  int
		writes []string
		kept   string
		lines  []string
	}{
		{"all", 100, []string{"one\ntw", "o\r\n", "three"}, "one\ntwo\r\nthree", []string{"one", "two", "three"}},
		{"from the start of a line", 10, []string{"aaaaaaaaaa\nbbbb\n", "cccc\n"}, "cccc\n", []string{"aaaaaaaaaa", "bbbb", "cccc"}},
		{"a line longer than the limit", 4, []string{"abcdefghij"}, "ghij", []string{"abcdefghij"}},
		{"a line and its end", 4, []string{"abcdefghi\n"}, "ghi\n", []string{"abcdefghi"}},
		{"half a letter", 3, []string{"ääää"}, "ä", []string{"ääää"}},
		{"not UTF-8", 100, []string{"a\xffb\n"}, "ab\n", []string{"a\uFFFDb"}},
		{"empty lines", 100, []string{"\n\n"}, "\n\n", []string{"", ""}},
		{"a long line", 5, []string{strings.Repeat("x", maxLine), "yz\nw"}, "w", []string{strings.Repeat("x", maxLine), "w"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			var lines []string
			tail := newTail(r, test.limit, func(line string) { lines = append(lines, line) })
			for _, s := range test.writes {
				if _, err := w.WriteString(s); err != nil {
					t.Fatal(err)
				}
			}
			w.Close()
			tail.drain()
			tail.settle()
			if got := tail.String(); got != test.kept {
				t.Errorf("kept %q, want %q", got, test.kept)
			}
			if diff := cmp.Diff(test.lines, lines); diff != "" {
				t.Errorf("lines (-want +got):\n%s", diff)
			}
		})
	}
}
