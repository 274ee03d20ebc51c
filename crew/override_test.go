package crew

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func apply(t *testing.T, c *Crew, text string) (*Crew, Issues) {
	t.Helper()
	o, issues := parseOverride("over.yaml", []byte(text))
	if len(issues) > 0 {
		return nil, issues
	}
	over, err := o.Apply(c)
	errors.As(err, &issues)
	return over, issues
}

// TestOverride is A5: what is left out is inherited, null and empty clear, and a
// value takes the place of the whole.
func TestOverride(t *testing.T) {
	c := parse(t, withAgent("mcp_servers: ["+notes+"], tools: [file_read, "+useNotes+"]"))
	for _, tt := range []struct {
		text                 string
		servers, sets, names int
	}{
		{"agents: {}", 1, 1, 1},
		{"agents: {a: }", 1, 1, 1},
		{"agents: {a: {}}", 1, 1, 1},
		{"agents: {a: {mcp_servers: null, tools: null}}", 0, 0, 0},
		{"agents: {a: {mcpServers: [], tools: []}}", 0, 0, 0},
		{"agents: {a: {mcp_servers: {}, tools: [file_write, json_tool]}}", 0, 0, 2},
		{"agents: {a: {tools: [" + useNotes + "]}}", 1, 1, 0},
		{"agents: {a: {mcp_servers: [{name: notes, command: n}]}}", 1, 1, 1},
		{"agents: {a: {mcp_servers: [{name: notes, command: n}, {name: b, command: b}], tools: [" + useNotes + ", {type: mcp_toolset, mcp_server_name: b}]}}", 2, 2, 0},
		{`{"agents": {"a": {"tools": null, "mcp_servers": null}}}`, 0, 0, 0},
	} {
		over, issues := apply(t, c, tt.text)
		if len(issues) > 0 {
			t.Errorf("%s: %v", tt.text, issues)
			continue
		}
		a := over.Agents[0]
		if len(a.Servers) != tt.servers || len(a.Toolsets) != tt.sets || len(a.Tools) != tt.names {
			t.Errorf("%s: %d servers, %d toolsets, %d names", tt.text, len(a.Servers), len(a.Toolsets), len(a.Tools))
		}
	}
	if a := c.Agents[0]; len(a.Servers) != 1 || len(a.Toolsets) != 1 || len(a.Tools) != 1 {
		t.Error("the crew itself was changed")
	}
}

// An override is as strict as a crew, and says its own places.
func TestOverrideFaults(t *testing.T) {
	c := parse(t, own+"agents:\n  writer: {goal: g, mcp_servers: ["+notes+"], tools: ["+useNotes+"]}\n  other: {goal: g}\ntasks: {t: {description: d, expectedOutput: e}}\n")
	for text, want := range map[string]string{
		"":                                  `over.yaml: "agents" is missing`,
		"agents: [a]":                       "over.yaml:1:9: agents must be a mapping, not a list",
		"agents: {writre: {tools: }}":       `over.yaml:1:10: agents.writre: the crew has no agent "writre" (did you mean "writer"?) [dangling-reference]`,
		"agents: {writer: {goal: x}}":       `over.yaml:1:19: unknown key "goal" in agents.writer (known: mcpServers, tools)`,
		"agents: {writer: {tools: x}}":      "over.yaml:1:26: agents.writer.tools must be a list, not a string",
		"agents: {writer: }\nx: 1":          `over.yaml:2:1: unknown key "x"`,
		"agents: {writer: {tools: }}":       `crew.yaml:4:42: agents.writer.mcpServers: no toolset of the agent uses "notes"`,
		"agents: {writer: {mcp_servers: }}": `crew.yaml:4:128: agents.writer.tools: the agent has no MCP server "notes"`,
		"agents: {other: {mcp_servers: [{name: notes, command: x}], tools: [" + useNotes + "]}}":                            `over.yaml:1:39: agents.other.mcpServers: "notes" is another server in agents.writer (crew.yaml:4:35)`,
		"agents: {other: {mcp_servers: [{name: n, url: 'https://u@x'}], tools: [{type: mcp_toolset, mcp_server_name: n}]}}": "over.yaml:1:47: agents.other.mcpServers.n.url names a user",
	} {
		_, issues := apply(t, c, text)
		if len(issues) != 1 || !strings.HasPrefix(issues[0].Error(), want) {
			t.Errorf("%q:\n  %v\nwant\n  %s", text, issues, want)
		}
	}
}

func TestLoadOverride(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "over.json")
	if _, err := LoadOverride(path); err == nil || !strings.Contains(err.Error(), "[unreadable]") {
		t.Error(err)
	}
	if _, err := LoadOverride(dir); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Error(err)
	}
	if err := os.WriteFile(path, []byte(`{"agents": {"a": {"tools": ["file_read"]}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	o, err := LoadOverride(path)
	if err != nil {
		t.Fatal(err)
	}
	c, err := o.Apply(parse(t, withAgent("verbose: true")))
	if err != nil || len(c.Agents[0].Tools) != 1 || c.Agents[0].Tools[0].String() != path+":1:29" {
		t.Errorf("%v %v", c.Agents[0].Tools, err)
	}
}

// FuzzOverride: whatever the bytes, there is an override or an issue, and one that
// is applied breaks nothing.
func FuzzOverride(f *testing.F) {
	for _, seed := range []string{
		"", "agents: {a: {tools: [x, {type: mcp_toolset, mcp_server_name: n}], mcp_servers: {n: {url: https://x}}}}",
		`{"agents": {"a": {"mcp_servers": [{"name": "n", "command": "c", "args": [1, null]}]}}}`, "agents: {a: {tools: [{type: custom}, [], {}]}}",
	} {
		f.Add([]byte(seed))
	}
	c, _ := loadBytes("crew.yaml", []byte(withAgent("verbose: true")))
	f.Fuzz(func(t *testing.T, data []byte) {
		o, issues := parseOverride("over.yaml", data)
		if o == nil {
			if len(issues) == 0 {
				t.Fatal("neither an override nor an issue")
			}
			return
		}
		over, err := o.Apply(c)
		for _, i := range append(over.Warnings, over.Validate(host{}, nil)...) {
			if strings.ContainsAny(i.Error(), "\n\r") {
				t.Errorf("%q", i.Error())
			}
		}
		if err != nil && (!errors.As(err, &issues) || strings.ContainsAny(issues[0].Error(), "\n\r")) {
			t.Errorf("%v", err)
		}
	})
}
