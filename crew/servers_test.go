package crew

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// withAgent is a crew whose agent a has these keys.
func withAgent(keys string) string {
	return own + "agents:\n  a: {goal: g, " + keys + "}\ntasks: {t: {description: d, expectedOutput: e}}\n"
}

const (
	notes    = "{name: notes, url: https://notes.example.com}"
	useNotes = "{type: mcp_toolset, mcp_server_name: notes}"
)

// TestLimitsOfServersAndTools: 20 servers and 128 tools an agent (A1, A2). Names
// count, and what toolsets enable by name.
func TestLimitsOfServersAndTools(t *testing.T) {
	many := func(servers, plain, configs int) string {
		var list, tools, entries []string
		for i := range servers {
			list = append(list, fmt.Sprintf("{name: s%d, command: x}", i))
			tools = append(tools, fmt.Sprintf("{type: mcp_toolset, mcp_server_name: s%d}", i))
		}
		for i := range plain {
			tools = append(tools, fmt.Sprintf("t%d", i))
		}
		for i := range configs {
			entries = append(entries, fmt.Sprintf("{name: c%d, enabled: %v}", i, i > 0))
		}
		tools = append(tools, "{type: agent_toolset, configs: ["+strings.Join(entries, ", ")+"]}")
		return withAgent("mcp_servers: [" + strings.Join(list, ", ") + "], tools: [" + strings.Join(tools, ", ") + "]")
	}
	parse(t, many(20, 100, 29)) // one of which is switched off
	_, issues := loadBytes("crew.yaml", []byte(many(21, 100, 30)))
	expect(t, issues,
		"crew.yaml:4:", // the first toolset
		"crew.yaml:4:",
	)
	for i, want := range []string{"agents.a.mcpServers has 21 servers; the limit is 20 [out-of-range]", "agents.a.tools names 129 tools; the limit is 128 [out-of-range]"} {
		if !strings.HasSuffix(issues[i].Error(), want) {
			t.Errorf("%s\nwant %s", issues[i], want)
		}
	}
	var plain []string
	for i := range 129 {
		plain = append(plain, fmt.Sprintf("t%d", i))
	}
	_, issues = loadBytes("crew.yaml", []byte(withAgent("tools: ["+strings.Join(plain, ", ")+"]")))
	if len(issues) != 1 || !strings.HasSuffix(issues[0].Error(), "agents.a.tools names 129 tools; the limit is 128 [out-of-range]") {
		t.Error(issues)
	}
}

// TestServerNames: what a server may be called, for its name stands in those of its
// tools and ends there at the first "__" (A9).
func TestServerNames(t *testing.T) {
	for name, ok := range map[string]bool{
		"a": true, "A-1.b_c": true, strings.Repeat("n", 40): true, strings.Repeat("n", 255): true,
		"": false, "_a": false, "a_": false, "a__b": false, "a b": false, "ä": false, "-a": false, "a/b": false, strings.Repeat("n", 256): false,
	} {
		c, issues := loadBytes("crew.yaml", []byte(withAgent(fmt.Sprintf("mcp_servers: [{name: %q, command: x}], tools: [{type: mcp_toolset, mcp_server_name: %q}]", name, name))))
		if ok != (len(issues) == 0) {
			t.Errorf("%q: %v", name, issues)
		}
		if ok && (len(name) > longServer) != (len(c.Warnings) == 1) {
			t.Errorf("%q: warnings %v", name, c.Warnings)
		}
	}
}

// TestNoCredentialsInCrews: a crew file is no place for a secret, and no message
// about one repeats it.
func TestNoCredentialsInCrews(t *testing.T) {
	for _, server := range []string{
		"url: https://canary-1@a.example.com", "url: https://a.example.com?token=canary-1", "url: https://a.example.com?x=sk-canary-1-canary",
		"url: https://a.example.com, headers: {X: canary-1}", "url: https://a.example.com, Authorization: canary-1",
		"url: https://a.example.com, oauth: {client_secret: canary-1}", "url: https://a.example.com, bearer_token_env_var: canary-1",
		"url: https://a.example.com, api_key: canary-1", "url: 'https://a.example.com/${canary-1}/${canary_1}'",
		"command: x, args: [--token, canary-1]", "command: x, args: [--api-key=canary-1]", "command: x, args: ['Authorization: Bearer canary-1']",
		"command: x, args: [sk-canary-1-canary]", "command: x, env: {API_KEY: canary-1}", "command: x, env: {ANY: ghp_canary1canary}", "command: sk-canary-1-canary",
	} {
		_, issues := loadBytes("crew.yaml", []byte(withAgent("mcp_servers: [{name: notes, "+server+"}], tools: ["+useNotes+"]")))
		if len(issues) != 1 || issues[0].Code != CodeCredential && issues[0].Code != CodeVariable || strings.Contains(issues.Error(), "canary") {
			t.Errorf("%s: %v", server, issues)
		}
	}
	for _, server := range []string{
		"url: https://a.example.com/mcp?region=north", "command: x, args: [--max-tokens, 4096, --token-file, /run/token]", "command: x, args: [--tokenizer=bpe, 'a: b']",
		"command: x, env: {MAX_TOKENS: 4096, AUTH_MODE: none, TOKEN_URL: 'https://a.example.com/token', PATH_OF_SECRET: ./s}",
	} {
		if _, issues := loadBytes("crew.yaml", []byte(withAgent("mcp_servers: [{name: notes, "+server+"}], tools: ["+useNotes+"]"))); len(issues) > 0 {
			t.Errorf("%s: %v", server, issues)
		}
	}
}

// TestToolsetEntries: what a toolset says of tools, by name or else by default (A3).
func TestToolsetEntries(t *testing.T) {
	c := parse(t, withAgent("mcp_servers: ["+notes+"], tools: [{type: mcp_toolset, mcp_server_name: notes, default_config: {enabled: false}, configs: [{name: a, enabled: true}, {name: b}]}, "+
		"{type: agent_toolset, configs: [{name: human_input}, {name: file_write, enabled: false}]}]"))
	server, host := c.Agents[0].Toolsets[0], c.Agents[0].Toolsets[1]
	for _, tt := range []struct {
		set  Toolset
		o    Offer
		want bool
	}{
		{server, Offer{Tool: "a"}, true}, {server, Offer{Tool: "b"}, false}, {server, Offer{Tool: "c"}, false},
		{host, Offer{Tool: "file_read"}, true}, {host, Offer{Tool: "file_write"}, false},
		{host, Offer{Tool: "human_input", Apart: true}, true}, {host, Offer{Tool: "rag_search", Apart: true}, false},
	} {
		if got := tt.set.Has(tt.o); got != tt.want {
			t.Errorf("%q has %+v: %v", tt.set.Server.V, tt.o, got)
		}
	}
	if diff := cmp.Diff([]string{"human_input", "mcp__notes__a"}, c.ToolNames()); diff != "" {
		t.Error(diff)
	}
}

// TestToolsetFaults are those that the big bad crew of testdata has no room for.
func TestToolsetFaults(t *testing.T) {
	_, issues := loadBytes("crew.yaml", []byte(withAgent("mcp_servers: ["+notes+`], tools: [{type: mcp_toolset, mcp_server_name: notes, configs: [{name: a}, {name: a}, {name: b, permission_policy: {type: never}}, {name: ""}, {name: `+strings.Repeat("n", 129)+`}]}]`)))
	expect(t, issues,
		`crew.yaml:4:158: agents.a.tools.0.configs.1: "a" is there twice (keep one) [duplicate-reference]`,
		`crew.yaml:4:198: agents.a.tools.0.configs.2.permissionPolicy.type: "never" is none of always_ask, always_allow`,
		`crew.yaml:4:214: agents.a.tools.0.configs.3.name is empty`,
		`crew.yaml:4:226: agents.a.tools.0.configs.4.name has 129 characters; the limit is 128`,
	)
	c := parse(t, withAgent("tools: [{type: agent_toolset_20260401, default_config: {enabled: false}, configs: [{name: bash}, {name: grep, enabled: false}]}]"))
	c.Warnings.Sort()
	expect(t, c.Warnings,
		`crew.yaml:4:24: agents.a.tools.0: the toolset brings no tool: all are switched off`,
	)
	_, issues = loadBytes("crew.yaml", []byte(withAgent("tools: [{type: agent_toolset_20260401, configs: [{name: bash}, {name: shell_command}]}]")))
	expect(t, issues, `crew.yaml:4:86: agents.a.tools.0.configs.1: "shell_command" is there twice (keep one) [duplicate-reference]`)
}

// TestDatedToolset: the names of the dated toolset are those of tools here, and what is
// said of one holds for the other.
func TestDatedToolset(t *testing.T) {
	all := []Offer{{Tool: "file_edit"}, {Tool: "file_read"}, {Tool: "file_write"}, {Tool: "glob"}, {Tool: "grep"}, {Tool: "shell_command"}, {Tool: "web_scrape"}, {Tool: "web_search"}}
	for dated, here := range map[string]string{
		"read": "file_read", "write": "file_write", "edit": "file_edit", "glob": "glob", "grep": "grep",
		"bash": "shell_command", "web_fetch": "web_scrape", "web_search": "web_search",
	} {
		c := parse(t, withAgent("tools: [{type: agent_toolset_20260401, configs: [{name: "+dated+", enabled: false}]}]"))
		for _, o := range all {
			if got := c.Agents[0].Toolsets[0].Has(o); got != (o.Tool != here) {
				t.Errorf("%s is off: the toolset has %s: %v", dated, o.Tool, got)
			}
		}
		expect(t, c.Validate(host{offers: map[string][]Offer{"": all}}, nil))
		if dated == here {
			continue
		}
		// Elsewhere the name is not known, and the tool's own is the hint.
		c = parse(t, withAgent("tools: [{type: agent_toolset, configs: [{name: "+dated+"}]}]"))
		expect(t, c.Validate(host{offers: map[string][]Offer{"": all}}, nil),
			`crew.yaml:4:63: agents.a.tools: the host has no tool "`+dated+`" of its own (did you mean "`+here+`"?) [unknown-tool]`)
	}
	// One that is off is named with what turns it on, where the crew wants it.
	judge := host{offers: map[string][]Offer{"": all[:5]}, off: map[string]string{"shell_command": "is off; turn it on"}}
	for configs, want := range map[string][]string{
		"{name: bash}":                 {`crew.yaml:4:72: agents.a.tools: the tool "shell_command" is off; turn it on [unknown-tool]`},
		"{name: bash, enabled: true}":  {`crew.yaml:4:72: agents.a.tools: the tool "shell_command" is off; turn it on [unknown-tool]`},
		"{name: bash, enabled: false}": nil,
	} {
		c := parse(t, withAgent("tools: [{type: agent_toolset_20260401, configs: ["+configs+"]}]"))
		expect(t, c.Validate(judge, nil), want...)
	}
}

// TestValidateToolsets: what toolsets name is judged against what servers offer.
func TestValidateToolsets(t *testing.T) {
	c := parse(t, withAgent("mcp_servers: ["+notes+", {name: gone, command: x}], guardrails: {toolRules: {mcp__notes__search: [once]}}, tools: ["+
		"{type: mcp_toolset, mcp_server_name: notes, configs: [{name: search}, {name: serach, enabled: false}]}, {type: mcp_toolset, mcp_server_name: gone, configs: [{name: x}]}, "+
		"{type: agent_toolset, configs: [{name: read}, {name: file_raed}]}, mcp__notes__search]"))
	judge := host{
		tools:   []string{"file_read", "mcp__notes__search2"},
		offers:  map[string][]Offer{"": {{Tool: "file_read"}}, "notes": {{Tool: "search"}}},
		missing: map[string]string{"mcp__notes__search": "a toolset brings it"},
	}
	expect(t, c.Validate(judge, nil),
		`crew.yaml:4:84: agents.a.mcpServers: "gone": it could not be connected [server]`,
		`crew.yaml:4:244: agents.a.tools: the MCP server "notes" has no tool "serach" (did you mean "search"?) [unknown-tool]`,
		`crew.yaml:4:376: agents.a.tools: the host has no tool "read" of its own (did you mean "file_read"?) [unknown-tool]`,
		`crew.yaml:4:390: agents.a.tools: the host has no tool "file_raed" of its own (did you mean "file_read"?) [unknown-tool]`,
		`crew.yaml:4:404: agents.a.tools: unknown tool "mcp__notes__search": a toolset brings it [unknown-tool]`,
	)

	var offers []Offer
	for i := range 128 {
		offers = append(offers, Offer{Tool: fmt.Sprint("t", i)})
	}
	c = parse(t, withAgent("mcp_servers: ["+notes+"], tools: ["+useNotes+", file_read]"))
	judge = host{tools: []string{"file_read"}, offers: map[string][]Offer{"": nil, "notes": offers}}
	expect(t, c.Validate(judge, nil), `crew.yaml:4:86: agents.a.tools: the toolsets bring the agent to 129 tools; the limit is 128 (default_config`)
	judge.offers["notes"] = offers[1:]
	expect(t, c.Validate(judge, nil))
	c = parse(t, withAgent("tools: [t1, human_input, {type: agent_toolset, default_config: {enabled: false}, configs: [{name: t2, enabled: true}]}]"))
	judge = host{tools: []string{"human_input", "t1"}, offers: map[string][]Offer{"": {{Tool: "human_input", Apart: true}, {Tool: "t1"}, {Tool: "t2"}}}}
	expect(t, c.Validate(judge, nil), `crew.yaml:4:24: agents.a.tools: the agent's toolset of the host's tools (crew.yaml:4:41) switches "t1" off (enable it there`)
	c = parse(t, withAgent("tools: [{type: agent_toolset}, t1]")) // named twice it is one
	judge = host{tools: []string{"t1"}, offers: map[string][]Offer{"": offers}}
	expect(t, c.Validate(judge, nil))
}

// TestCrewAIServers: in CrewAI's pair, agents have servers and toolsets as well, and
// crew.yaml lays them over.
func TestCrewAIServers(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("agents.yaml", "a: {role: r, goal: g, mcp_servers: ["+notes+"], tools: ["+useNotes+"]}\nb: {role: r, goal: g}\n")
	write("tasks.yaml", "t: {description: d, expected_output: e, agent: a}\n")
	write("crew.yaml", "format: crewai\nagents: {b: {mcp_servers: {notes: {url: https://notes.example.com}}, tools: [file_read, "+useNotes+"]}}\n")
	c, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range c.Agents {
		if len(a.Servers) != 1 || len(a.Toolsets) != 1 || !a.Servers[0].Same(c.Agents[0].Servers[0]) {
			t.Errorf("%s: %+v", a.Key, a)
		}
	}
	write("agents.yaml", "a: {role: r, goal: g, mcps: [\"https://notes.example.com\"]}\n")
	write("crew.yaml", "format: crewai\n")
	if _, err = Load(dir); err == nil || !strings.Contains(err.Error(), "agents.a.mcps cannot be honoured (write mcp_servers: [{name: …, url: …}]") {
		t.Error(err)
	}
}

func TestServersThatAreTheSame(t *testing.T) {
	server := func(text string) Server {
		return parse(t, withAgent("mcp_servers: ["+text+"], tools: ["+useNotes+"]")).Agents[0].Servers[0]
	}
	one := server("{name: notes, command: x, args: [a], env: {A: 1, B: 2}}")
	for text, same := range map[string]bool{
		"{name: notes, type: stdio, command: x, args: [a], env: {B: '2', A: '1'}}": true,
		"{name: notes, command: x, args: [a], env: {A: 1}}":                        false,
		"{name: notes, command: x, args: [a, b], env: {A: 1, B: 2}}":               false,
		"{name: notes, command: y, args: [a], env: {A: 1, B: 2}}":                  false,
		"{name: notes, url: http://x}":                                             false,
	} {
		if server(text).Same(one) != same {
			t.Errorf("%s: same is %v", text, !same)
		}
	}
}
