package tools_test

import (
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"crewhost/tools"
)

func TestTruncateK35(t *testing.T) {
	five := strings.Repeat("é", 5<<20/2) // 5 MiB on one line
	for _, tt := range []struct {
		name string
		in   string
		max  int
		want string // empty: only the invariants
	}{
		{"empty", "", 10, ""},
		{"fits", "abc", 3, "abc"},
		{"fits in characters though not in bytes", "ééé", 3, "ééé"},
		{"no room for a notice", "abcdefgh", 3, "abc"},
		{"nothing asked for", "abc", 0, ""},
		{"negative", "abc", -1, ""},
		{"five MiB of é", five, 4000, ""},
		{"two MiB of one line", strings.Repeat("{\"a\":1},", 1<<18), 32000, ""},
		{"invalid bytes", strings.Repeat("\xff\xfe", 5000), 1000, ""},
		{"four-byte runes", strings.Repeat("🙂", 9999), 777, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := tools.Truncate(tt.in, tt.max)
			if tt.want != "" && got != tt.want {
				t.Fatalf("got %q, want %q", got, tt.want)
			}
			if n := utf8.RuneCountInString(got); n > max(tt.max, 0) {
				t.Errorf("%d characters, want at most %d", n, tt.max)
			}
			if utf8.ValidString(tt.in) && !utf8.ValidString(got) {
				t.Error("valid UTF-8 became invalid")
			}
			if again := tools.Truncate(got, tt.max); again != got {
				t.Error("truncating again changed the text")
			}
		})
	}
}

func TestTruncateKeepsHeadAndTailAndCounts(t *testing.T) {
	in := "HEAD" + strings.Repeat("x", 1000) + "TAIL"
	got := tools.Truncate(in, 200)
	if !strings.HasPrefix(got, "HEAD") || !strings.HasSuffix(got, "TAIL") {
		t.Errorf("head or tail is missing: %q", got)
	}
	kept := strings.Count(got, "x") - strings.Count("characters left out here; ask for less, or for a part", "x")
	if want := "[... " + strconv.Itoa(1000-kept) + " characters left out"; !strings.Contains(got, want) {
		t.Errorf("notice does not say %q: %q", want, got)
	}
}

func FuzzTruncate(f *testing.F) {
	f.Add("hello", 3)
	f.Add(strings.Repeat("é", 500), 100)
	f.Add("\xff\xfe\xfd", 2)
	f.Fuzz(func(t *testing.T, s string, n int) {
		got := tools.Truncate(s, n)
		if utf8.RuneCountInString(got) > max(n, 0) {
			t.Errorf("Truncate(%q, %d) = %q: too long", s, n, got)
		}
		if utf8.ValidString(s) && !utf8.ValidString(got) {
			t.Errorf("Truncate(%q, %d) = %q: invalid", s, n, got)
		}
	})
}
