package agent

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crewhost/crew"
	"crewhost/runner/llm"
	"crewhost/tools"
)

func on(yes bool) *bool { return &yes }

func set(text string) crew.Text { return crew.Text{V: text, Set: true} }

// TestHeld: the tools of an agent are those that it and its task name, and what its
// toolsets bring of what is there now.
func TestHeld(t *testing.T) {
	own := func(server, tool string) tools.Definition {
		return tools.Definition{Name: crew.ToolName(server, tool), Original: tool, Server: server}
	}
	defs := []tools.Definition{
		{Name: "file_read"}, {Name: "file_write"}, {Name: "human_input"}, {Name: "mcp_read_resource"}, {Name: "rag_search"},
		{Name: "search", Server: "settings"}, own("a", "find"), own("a", "drop"), own("b", "find"),
	}
	for name, tt := range map[string]struct {
		agent crew.Agent
		task  *crew.Task
		want  string
	}{
		"names":      {crew.Agent{Tools: []crew.Text{set("search"), set("gone")}}, &crew.Task{Tools: []crew.Text{set("file_read"), set("search")}}, "file_read gone search"},
		"a server's": {crew.Agent{Toolsets: []crew.Toolset{{Server: set("a")}}}, nil, "mcp__a__drop mcp__a__find"},
		"by name": {
			crew.Agent{Toolsets: []crew.Toolset{{Server: set("a"), Default: crew.ToolsetEntry{Enabled: on(false)}, Tools: []crew.ToolsetEntry{{Tool: set("find"), Enabled: on(true)}, {Tool: set("no"), Enabled: on(true)}}}}},
			nil, "mcp__a__find",
		},
		"all but": {
			crew.Agent{Toolsets: []crew.Toolset{{Server: set("a"), Tools: []crew.ToolsetEntry{{Tool: set("drop"), Enabled: on(false)}}}, {Server: set("b")}}},
			nil, "mcp__a__find mcp__b__find",
		},
		"the host's":               {crew.Agent{Toolsets: []crew.Toolset{{}}}, nil, "file_read file_write"},
		"and those that are apart": {crew.Agent{Toolsets: []crew.Toolset{{Tools: []crew.ToolsetEntry{{Tool: set("human_input")}}}}}, nil, "file_read file_write human_input"},
		"named and switched off": {
			crew.Agent{Tools: []crew.Text{set("human_input"), set("file_write"), set("search")}, Toolsets: []crew.Toolset{{Default: crew.ToolsetEntry{Enabled: on(false)}}}},
			&crew.Task{Tools: []crew.Text{set("file_read")}}, "human_input search",
		},
	} {
		if got := strings.Join(Held(&tt.agent, tt.task, defs), " "); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
	if !slices.IsSorted(Apart()) {
		t.Error(Apart())
	}
}

// Names of tools of agents' servers fit a model's API, however long the server's is,
// and are told apart (K23).
func TestLongNamesOfAgentsTools(t *testing.T) {
	server := strings.Repeat("server.of-the_north", 13)
	a := &crew.Agent{Key: "a", Toolsets: []crew.Toolset{{Server: set(server)}}}
	var defs []tools.Definition
	for _, tool := range []string{"find", "find it", strings.Repeat("long", 32)} {
		defs = append(defs, tools.Definition{Name: crew.ToolName(server, tool), Original: tool, Server: server})
	}
	s, err := newToolset(a, &crew.Task{}, defs, new(fitter).to(llm.SchemaDialect{}))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, tool := range s.offered {
		if len(tool.Name) > maxWireName || seen[tool.Name] || strings.ContainsAny(tool.Name, ". ") {
			t.Errorf("%q", tool.Name)
		}
		seen[tool.Name] = true
		back, ok := s.lookup(tool.Name)
		if !ok || back.def.Server != server {
			t.Errorf("%q leads to %+v", tool.Name, back.def)
		}
	}
	if len(seen) != 3 {
		t.Error(seen)
	}
	// A tool that its server has no more is no fault of the task.
	s, err = newToolset(a, &crew.Task{}, defs[1:2], new(fitter).to(llm.SchemaDialect{}))
	if err != nil || len(s.held) != 1 {
		t.Errorf("%v %v", s, err)
	}
	if diff := cmp.Diff([]string{defs[1].Name}, Held(a, nil, defs[1:2])); diff != "" {
		t.Error(diff)
	}
}
