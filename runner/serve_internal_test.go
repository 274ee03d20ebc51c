package runner

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"crewhost/config"
	"crewhost/crew"
	"crewhost/mcp"
	"crewhost/tools"
	"crewhost/tools/permission"
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

// R5: a pattern names nothing that a URI with ".." leads to, however it is written,
// be it made by a template or listed. Who names all of a server has all.
func TestURIsThatClimb(t *testing.T) {
	list := mcp.ResourceList{
		Resources: []mcp.Resource{{URI: "file:///docs/../key"}},
		Templates: []mcp.ResourceTemplate{{URITemplate: "file:///docs/{+path}"}},
	}
	for _, pattern := range []string{"file:///docs/**", "file:///docs/{+path}", ""} {
		p := passedResources{offers: []config.Offer{{Server: "files", Pattern: pattern}}}
		for _, uri := range []string{"file:///docs/a", "file:///docs/a/b..c", "file:///docs/...", "file:///docs/%41"} {
			if !p.offered("files", list, uri) {
				t.Errorf("by %q %s is not served", pattern, uri)
			}
		}
		for _, uri := range []string{
			"file:///docs/../key", "file:///docs/a/../../key", "file:///docs/%2e%2E/key", "file:///docs/..%2Fkey",
			"file:///docs/%252e%252e/key", "file:///docs/..%5Ckey", "file:///docs/a;../../key", "file:///docs/%2e%2e/%zz",
		} {
			if got := p.offered("files", list, uri); got && pattern != "" {
				t.Errorf("by %q %s is served", pattern, uri)
			}
		}
		if pattern == "" && !p.offered("files", list, "file:///docs/../key") {
			t.Error("all of a server is not served")
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

// What breaks down while one server is asked costs that server's answer.
func TestEachSurvivesPanics(t *testing.T) {
	var log bytes.Buffer
	h := &Host{log: slog.New(slog.NewTextHandler(&log, nil))}
	got, err := each(t.Context(), h, []string{"a", "b", "c"}, "prompts", func(_ context.Context, server string) (string, error) {
		if server == "b" {
			panic("oh")
		}
		return server + "!", nil
	})
	if err != nil || !slices.Equal(got, []string{"a!", "", "c!"}) {
		t.Errorf("%q, %v", got, err)
	}
	if s := log.String(); !strings.Contains(s, "panic=oh") || !strings.Contains(s, "left out") {
		t.Errorf("the log says %s", s)
	}
}

// nothing is a tool that does nothing.
type nothing string

func (n nothing) Definition() tools.Definition { return tools.Definition{Name: string(n)} }

func (nothing) Call(context.Context, tools.Call) (tools.Result, error) { return tools.Result{}, nil }

// A name that something else has is a line of the log while that lasts, not one with
// each change.
func TestCollisionsAreSaidOnce(t *testing.T) {
	var log bytes.Buffer
	h := &Host{log: slog.New(slog.NewTextHandler(&log, nil)), registry: new(tools.Registry)}
	s := &Surface{host: h}
	var err error
	if s.selects, err = permission.New(permission.Config{Default: permission.Allow}); err != nil {
		t.Fatal(err)
	}
	if err := s.registry.Add(nothing("tides")); err != nil {
		t.Fatal(err)
	}
	for i, now := range [][]tools.Tool{{nothing("tides")}, nil, {nothing("a")}} {
		for _, tool := range now {
			if err := h.registry.Add(tool); err != nil {
				t.Fatal(err)
			}
		}
		s.sync()
		if n := strings.Count(log.String(), "is not served"); n != 1 {
			t.Errorf("after change %d it was said %d times", i, n)
		}
	}
	if !slices.Equal(s.held, []string{"a"}) {
		t.Errorf("held: %q", s.held)
	}
}
