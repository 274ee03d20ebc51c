package agent

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWireNamesK23(t *testing.T) {
	long := strings.Repeat("long_name_", 10)
	for _, tt := range []struct {
		name  string
		names []string
		want  []string
	}{
		{"fitting names stay", []string{"a", "b-2", "mcp__x__y"}, []string{"a", "b-2", "mcp__x__y"}},
		{"one of a kind", []string{"files.list", "größe_ändern"}, []string{"files_list", "gr__e__ndern"}},
		{"of a kind", []string{"files list", "files.list", "files/list"}, []string{"files_list_82e0a89c", "files_list_7e7aa135", "files_list_cb229fee"}},
		{"held by a fitting name", []string{"files.list", "files_list"}, []string{"files_list_7e7aa135", "files_list"}},
		{"an address", []string{"GET:/items/{id}"}, []string{"GET__items__id_"}},
		{"too long", []string{long}, []string{long[:55] + "_460d61b0"}},
		{"nothing that fits", []string{"日本"}, []string{"___cf2abf0c"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := wireNames(tt.names)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

var fits = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

func FuzzWireNames(f *testing.F) {
	f.Add("files.list", "files/list", "files_list")
	f.Add("", "_", "日本")
	f.Add(strings.Repeat("x", 70), strings.Repeat("x", 71), strings.Repeat("x", 64))
	f.Fuzz(func(t *testing.T, a, b, c string) {
		if a == b || b == c || a == c {
			return
		}
		got := wireNames([]string{a, b, c})
		for _, n := range got {
			if !fits.MatchString(n) {
				t.Errorf("%q does not fit", n)
			}
		}
		if got[0] == got[1] || got[1] == got[2] || got[0] == got[2] {
			t.Errorf("%q for %q", got, []string{a, b, c})
		}
	})
}

func TestWireSchema(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{``, `{"type":"object","properties":{}}`},
		{`null`, `{"type":"object","properties":{}}`},
		{`true`, `{"type":"object","properties":{}}`},
		{`[1]`, `{"type":"object","properties":{}}`},
		{`{"type":`, `{"type":"object","properties":{}}`},
		{`{"type":"string"}`, `{"type":"object","properties":{}}`},
		{`{"type":null,"properties":{"a":{}}}`, `{"type":"object","properties":{"a":{}}}`},
		{`{}`, `{"type":"object","properties":{}}`},
		{`{"type":"object"}`, `{"properties":{},"type":"object"}`},
		{` { "properties" : {"a":{"maximum":725653563933458433}} } `, `{"type":"object","properties" : {"a":{"maximum":725653563933458433}} }`},
		{`{"type":"object","properties":{},"x-odd":[1e400]}`, `{"type":"object","properties":{},"x-odd":[1e400]}`},
	} {
		got, _ := wireSchema(json.RawMessage(tt.in))
		if string(got) != tt.want {
			t.Errorf("%s: got %s, want %s", tt.in, got, tt.want)
		}
		if !json.Valid(got) {
			t.Errorf("%s is not JSON", got)
		}
	}
}

func TestNearest(t *testing.T) {
	names := []string{"file_read", "file_write", "mcp__files__list", "search"}
	for _, tt := range []struct{ name, want string }{
		{"serch", "search"}, {"SEARCH", "search"}, {"fileRead", "file_read"}, {"file-read", "file_read"},
		{"list", "mcp__files__list"}, {"files__list", "mcp__files__list"}, {"shell", ""}, {"", ""}, {"_", ""},
	} {
		if got := nearest(tt.name, names); got != tt.want {
			t.Errorf("%q: got %q, want %q", tt.name, got, tt.want)
		}
	}
}
