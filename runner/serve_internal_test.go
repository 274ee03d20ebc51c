package runner

import (
	"strings"
	"testing"

	"crewhost/crew"
)

// A pattern for URIs: * stops at a slash, ** does not, all else is itself.
func TestMatches(t *testing.T) {
	for _, tt := range []struct {
		pattern, uri string
		want         bool
	}{
		{"notes:///tide", "notes:///tide", true},
		{"notes:///ti*", "notes:///tide", true},
		{"notes:///ti*", "notes:///ti/de", false},
		{"notes:///**", "notes:///a/b", true},
		{"**/b", "file:///a/b", true},
		{"notes:///tide", "notes:///tide2", false},
		{"notes:///t.de", "notes:///tide", false},
		{"a[b]?", "a[b]?", true},
		{"*", "a\nb", true},
	} {
		if got := matches(tt.pattern, tt.uri); got != tt.want {
			t.Errorf("%s, %q: %t", tt.pattern, tt.uri, got)
		}
	}
}

func FuzzMatches(f *testing.F) {
	f.Add("notes:///**", "notes:///a")
	f.Add("***", "")
	f.Add("\\Q*\\E", "x\xff")
	f.Fuzz(func(t *testing.T, pattern, uri string) {
		if got := matches(pattern, uri); !got && pattern == "**" {
			t.Errorf("** does not match %q", uri)
		}
	})
}

// The name of a crew's tool is one that every model takes.
func TestCrewName(t *testing.T) {
	for _, tt := range []struct{ name, path, want string }{
		{"Harbour Log", "", "harbour_log"},
		{"  A – B, c!  ", "", "a_b_c"},
		{"x-1_y", "", "x-1_y"},
		{"潮汐", "/crews/tides.yaml", "tides"},
		{"潮汐", "/crews/tides/crew.yaml", "tides"},
		{"潮汐", "/crews/Tides", "tides"},
		{"潮汐", "/潮.yaml", ""},
		{strings.Repeat("ab ", 40), "", strings.TrimSuffix(strings.Repeat("ab_", 21), "_") + "_a"},
	} {
		c := &crew.Crew{Path: tt.path, Name: crew.Text{V: tt.name}}
		if got := crewName(c); got != tt.want || len(got) > maxToolName {
			t.Errorf("%q, %s: %q", tt.name, tt.path, got)
		}
	}
}
