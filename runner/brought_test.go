package runner_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crewhost/config"
	"crewhost/config/strict"
	"crewhost/crew"
	"crewhost/mcp"
	"crewhost/runner"
	"crewhost/runner/event"
	"crewhost/runner/llm"
	"crewhost/tools"
	"crewhost/tools/permission"
)

// brings is a server of an agent that offers these tools.
func brings(t *testing.T, name string, tools string, flags ...string) string {
	t.Helper()
	args := append([]string{"mcptest-server", "standard", "-tools", tools}, flags...)
	list, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("{name: %s, command: %q, args: %s}", name, self(t), list)
}

func uses(server string, more ...string) string {
	return "{" + strings.Join(append([]string{"type: mcp_toolset, mcp_server_name: " + server}, more...), ", ") + "}"
}

// loadCrew reads a crew of a folder.
func loadCrew(t *testing.T, text string) *crew.Crew {
	t.Helper()
	path := filepath.Join(t.TempDir(), "crew.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := crew.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// crewOf is a crew of agents, each with its keys and a task.
func crewOf(agents ...string) string {
	text := "name: C\ngoal: G\nagents:\n"
	for i, keys := range agents {
		text += fmt.Sprintf("  a%d: {goal: g, allowDelegation: false, %s}\n", i, keys)
	}
	text += "tasks:\n"
	for i := range agents {
		text += fmt.Sprintf("  t%d: {description: d, expectedOutput: e, agent: a%d}\n", i, i)
	}
	return text
}

// asks is a model that calls tools: in each conversation those of its agent, once,
// and then it answers. It notes which tools each request offered.
type asks struct {
	calls map[string][]llm.ToolCall // by a part of the prompt

	mu      sync.Mutex
	offered map[string][]string
	results map[string][]string
}

func (m *asks) Generate(_ context.Context, r llm.Request) (*llm.Response, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for part, calls := range m.calls {
		if !strings.Contains(r.System, part) {
			continue
		}
		m.offered[part] = nil
		for _, tool := range r.Tools {
			m.offered[part] = append(m.offered[part], tool.Name)
		}
		last := r.Messages[len(r.Messages)-1]
		if last.Role == llm.RoleTool || len(calls) == 0 {
			for _, message := range r.Messages {
				if message.Role == llm.RoleTool {
					m.results[part] = append(m.results[part], message.Text())
				}
			}
			break
		}
		return &llm.Response{Message: llm.Message{Role: llm.RoleAssistant, Calls: calls}}, nil
	}
	return &llm.Response{Message: llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{{Text: "done"}}}}, nil
}

// TestAgentsBringServers: servers of agents are connected with those of the settings,
// two agents that declare the same share one, and their tools have names of their own
// (A1, A9).
func TestAgentsBringServers(t *testing.T) {
	shared := brings(t, "shared", "echo,count")
	c := loadCrew(t, crewOf(
		"mcp_servers: ["+shared+", "+brings(t, "second", "echo")+"], tools: ["+uses("shared")+", "+uses("second")+"]",
		"mcp_servers: ["+shared+"], tools: ["+uses("shared", "configs: [{name: count, enabled: false}]")+", echo]",
	))
	var told []mcp.ServerReport
	r := open(t, map[string]string{"crewhost.yaml": "llm: {provider: echo}\n" + echoServer}, func(cfg *runner.Config) {
		cfg.Crews = []*crew.Crew{c, nil}
		cfg.OnServer = func(r mcp.ServerReport) { told = append(told, r) }
	})
	if v := r.host.Judge(c, nil, nil); len(v.Issues) > 0 || v.Tools != 4 {
		t.Fatalf("%d tools, issues %v", v.Tools, v.Issues)
	}
	var servers []string
	for _, s := range r.host.Servers() {
		servers = append(servers, fmt.Sprint(s.Name, s.Agents, s.Tools))
	}
	if diff := cmp.Diff([]string{
		"standard[] [echo sleep]", "shared[a0 a1] [mcp__shared__count mcp__shared__echo]", "second[a0] [mcp__second__echo]",
	}, servers); diff != "" {
		t.Error(diff)
	}
	if len(told) != 3 {
		t.Errorf("%d reports", len(told))
	}
	for _, e := range r.events {
		if e.Kind == event.MCPServer && e.Server == "shared" && !slices.Equal(e.State.Agents, []string{"a0", "a1"}) {
			t.Errorf("%+v", e.State)
		}
	}
	for _, d := range r.host.Tools() {
		if d.Name == "mcp__shared__echo" && (d.Original != "echo" || d.Server != "shared") {
			t.Errorf("%+v", d)
		}
	}
}

// TestAgentsHoldWhatTheirToolsetsBring: what a model is offered is what its agent's
// toolsets leave on, and a call of anything else is refused, by whatever name.
func TestAgentsHoldWhatTheirToolsetsBring(t *testing.T) {
	allow := "default_config: {permission_policy: {type: always_allow}}"
	c := loadCrew(t, crewOf(
		"role: First, mcp_servers: ["+brings(t, "own", "echo,count,big")+"], tools: ["+uses("own", allow, "configs: [{name: big, enabled: false}]")+"]",
		"role: Second, tools: [file_read, {type: agent_toolset, configs: [{name: file_write, enabled: false}, {name: rag_search}]}]",
		"role: Third, tools: [{type: agent_toolset, default_config: {enabled: false}, configs: [{name: json_tool, enabled: true}]}]",
	))
	call := func(name string) llm.ToolCall { return llm.ToolCall{ID: name, Name: name, Arguments: "{}"} }
	m := &asks{offered: map[string][]string{}, results: map[string][]string{}, calls: map[string][]llm.ToolCall{
		"You are First.":  {call("mcp__own__count"), call("mcp__own__big")},
		"You are Second.": {call("mcp__own__count")},
		"You are Third.":  nil,
	}}
	r := open(t, map[string]string{"crewhost.yaml": "llm: {provider: openai, model: m, api_key: k}\n"}, func(cfg *runner.Config) {
		cfg.Crews = []*crew.Crew{c}
		cfg.Models = func(context.Context, config.Profile, runner.Credentials) (llm.Model, error) { return m, nil }
	})
	if v := r.host.Judge(c, nil, nil); len(v.Issues) > 0 {
		t.Fatal(v.Issues)
	}
	if _, err := r.host.Run(t.Context(), c, nil); err != nil {
		t.Fatal(err)
	}
	// Second holds the host's own tools, however many there are, but for the one that it
	// is denied and those that other keys of a crew give.
	var own []string
	for _, d := range r.host.Tools() {
		if d.Server == "" && !slices.Contains([]string{"file_write", "human_input", "memory_store", "semantic_search"}, d.Name) {
			own = append(own, d.Name)
		}
	}
	slices.Sort(own)
	for _, name := range []string{"directory_read", "file_read", "rag_search"} {
		if !slices.Contains(own, name) {
			t.Errorf("the host has no %s", name)
		}
	}
	if diff := cmp.Diff(map[string][]string{
		"You are First.":  {"mcp__own__count", "mcp__own__echo"},
		"You are Second.": own,
		"You are Third.":  {"json_tool"},
	}, m.offered); diff != "" {
		t.Error(diff)
	}
	first, second := strings.Join(m.results["You are First."], "\n"), strings.Join(m.results["You are Second."], "\n")
	if !strings.Contains(first, "0") || !strings.Contains(first, `no tool "mcp__own__big"`) || !strings.Contains(second, `no tool "mcp__own__count"`) {
		t.Errorf("first: %s\nsecond: %s", first, second)
	}
	// Nor does anybody else get at it.
	for _, caller := range []string{"", "a1", "nobody"} {
		res, err := r.host.Call(t.Context(), tools.Call{Name: "mcp__own__count", Agent: caller})
		if err != nil || !res.IsError || !strings.Contains(res.Content[0].Text, "denied") {
			t.Errorf("%q: %+v, %v", caller, res, err)
		}
	}
}

// TestServersThatCannotBe: what a crew's servers get wrong is said when the crew is
// judged, with its place, and a run is refused.
func TestServersThatCannotBe(t *testing.T) {
	here := func(name string) string {
		return "mcp_servers: [" + brings(t, name, "echo") + "], tools: [" + uses(name) + "]"
	}
	first := loadCrew(t, crewOf(here("own")))
	for name, tt := range map[string]struct {
		crew   string
		opened bool // for the crew
		want   string
		runs   bool // all the same
	}{
		"name of the settings": {crewOf(here("standard")), true, `"standard": the settings have an MCP server of that name; give it another [server]`, false},
		"another crew's": {
			crewOf("mcp_servers: [{name: own, command: other}], tools: [" + uses("own") + "]"), true,
			`"own": another crew of this host declares another server of that name (`, false,
		},
		"not opened for it": {crewOf(here("stranger")), false, `"stranger": this host was not opened for the crew [server]`, false},
		"not there": {
			crewOf("mcp_servers: [{name: gone, command: no-such-command}], tools: [" + uses("gone", "configs: [{name: x}]") + "]"), true,
			`"gone": it could not be connected: `, true,
		},
		"no such tool":        {crewOf("mcp_servers: [" + brings(t, "own", "echo") + "], tools: [" + uses("own", "configs: [{name: ehco}]") + "]"), true, `the MCP server "own" has no tool "ehco" (did you mean "echo"?) [unknown-tool]`, true},
		"by its name":         {crewOf(here("own"), "tools: [mcp__own__echo]"), true, `agents.a1.tools: unknown tool "mcp__own__echo": MCP server "own" is an agent's own, and a toolset of that agent brings its tools`, true},
		"no tool of the host": {crewOf("tools: [{type: agent_toolset, configs: [{name: echo}]}]"), true, `the host has no tool "echo" of its own [unknown-tool]`, true},
	} {
		t.Run(name, func(t *testing.T) {
			c := loadCrew(t, tt.crew)
			r := open(t, map[string]string{"crewhost.yaml": "llm: {provider: echo}\n" + echoServer}, func(cfg *runner.Config) {
				cfg.Crews = []*crew.Crew{first}
				if tt.opened {
					cfg.Crews = append(cfg.Crews, c)
				}
			})
			v := r.host.Judge(c, nil, nil)
			if len(v.Issues) != 1 || !strings.Contains(v.Issues[0].Error(), tt.want) || v.Issues[0].Line == 0 {
				t.Fatalf("%v\nwant %s", v.Issues, tt.want)
			}
			var issues strict.Issues
			if _, err := r.host.Run(t.Context(), c, nil); !tt.runs && !errors.As(err, &issues) {
				t.Errorf("the run: %v", err)
			}
		})
	}
}

// A crew that has faults starts nothing, and its servers are not judged.
func TestServersOfAFaultyCrew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "crew.yaml")
	text := "goal: G\n" + strings.TrimPrefix(crewOf("mcp_servers: [{name: own, command: no-such-command}], tools: ["+uses("own")+"]"), "name: C\ngoal: G\n")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, loadErr := crew.Load(path)
	r := open(t, map[string]string{"crewhost.yaml": "llm: {provider: echo}\n"})
	if v := r.host.Judge(c, loadErr, nil); len(v.Issues) != 1 || !strings.Contains(v.Issues[0].Message, `"name" is missing`) {
		t.Error(v.Issues)
	}
}

// No server of the settings takes a name that is an agent's.
func TestNobodySquatsOnAgentsNames(t *testing.T) {
	c := loadCrew(t, crewOf("mcp_servers: ["+brings(t, "own", "echo")+"], tools: ["+uses("own")+"]"))
	r := open(t, map[string]string{"crewhost.yaml": "llm: {provider: echo}\nmcp: { servers: { standard: { command: \"${SERVER}\", args: [mcptest-server, standard, -tools, \"mcp__own__echo\"] } } }\n"},
		func(cfg *runner.Config) { cfg.Crews = []*crew.Crew{c} })
	reports := r.host.Servers()
	if !slices.Equal(reports[1].Tools, []string{"mcp__own__echo"}) || len(reports[0].Tools) != 0 || len(reports[0].Skipped) != 1 {
		t.Errorf("%+v", reports)
	}
}

// Where MCP is switched off, agents have no servers either.
func TestServersWhereMCPIsOff(t *testing.T) {
	c := loadCrew(t, crewOf("mcp_servers: ["+brings(t, "own", "echo")+"], tools: ["+uses("own")+"]"))
	r := open(t, map[string]string{"crewhost.yaml": "llm: {provider: echo}\nmcp: {enabled: false}\n"}, func(cfg *runner.Config) { cfg.Crews = []*crew.Crew{c} })
	if v := r.host.Judge(c, nil, nil); len(v.Issues) != 1 || !strings.Contains(v.Issues[0].Error(), "the settings switch MCP off (mcp.enabled)") {
		t.Error(v.Issues)
	}
}

// A server of a served crew's agent is none that clients get to see, whatever is
// served.
func TestServedCrewsBringServers(t *testing.T) {
	text := crewOf("mcp_servers: [" + brings(t, "own", "echo", "-contents") + "], tools: [" + uses("own") + "]")
	r := open(t, map[string]string{
		"crewhost.yaml": "llm: {provider: echo}\nmcp: {resource_tools: true, served: {desk: {tools: [\"*\"], crews: [crew.yaml]}}}\n" +
			"permissions: {default: allow}\n",
		"crew.yaml": text,
	}, func(cfg *runner.Config) { cfg.Crews = runner.ServedCrews(cfg.Settings.MCP.Served...) })
	s := r.surface(t)
	var names []string
	for _, d := range s.Tools() {
		names = append(names, d.Name)
	}
	if !slices.Contains(names, "c") || slices.ContainsFunc(names, func(n string) bool { return strings.Contains(n, "own") }) {
		t.Error(names)
	}
	res, err := r.host.Call(t.Context(), tools.Call{Name: mcp.ListResourcesTool, Arguments: json.RawMessage(`{"server":"own"}`)})
	if err != nil || !res.IsError {
		t.Errorf("%+v %v", res, err)
	}
	for _, d := range r.host.Tools() {
		if d.Name == mcp.ListResourcesTool && strings.Contains(string(d.InputSchema), "own") {
			t.Errorf("%s", d.InputSchema)
		}
	}
}

// Servers of agents don't wait for those of the settings, nor these for them: all are
// connected in one step, and the report keeps its order.
func TestServersOfAgentsStartBesideOthers(t *testing.T) {
	c := loadCrew(t, crewOf("mcp_servers: ["+brings(t, "own", "echo")+"], tools: ["+uses("own")+"]"))
	var told []string
	r := open(t, map[string]string{"crewhost.yaml": "llm: {provider: echo}\nmcp: { servers: { hanging: { command: \"${SERVER}\", args: [mcptest-server, hang], connect_timeout: 3s } } }\n"},
		func(cfg *runner.Config) {
			cfg.Crews = []*crew.Crew{c}
			cfg.OnServer = func(r mcp.ServerReport) { told = append(told, r.Name) }
		})
	if diff := cmp.Diff([]string{"own", "hanging"}, told); diff != "" {
		t.Error(diff)
	}
	if reports := r.host.Servers(); reports[0].Name != "hanging" || reports[1].State != mcp.StateConnected {
		t.Errorf("%+v", reports)
	}
	if v := r.host.Judge(c, nil, nil); len(v.Issues) > 0 { // it needs no other server
		t.Error(v.Issues)
	}
}

// A tool that a server comes to offer while it runs is its toolset's as well: it is there
// for whoever begins then, and asked about where no entry speaks of it.
func TestToolsOfAgentsServersThatCome(t *testing.T) {
	list, err := json.Marshal([]string{"mcptest-server", "scripted", "-modern", "-list", `[{"name":"relist"}]`})
	if err != nil {
		t.Fatal(err)
	}
	c := loadCrew(t, crewOf(fmt.Sprintf("role: First, mcp_servers: [{name: own, command: %q, args: %s}], tools: [%s]", self(t), list,
		uses("own", "configs: [{name: relist, permission_policy: {type: always_allow}}, {name: banned, enabled: false}]"))))
	m := &asks{offered: map[string][]string{}, results: map[string][]string{}, calls: map[string][]llm.ToolCall{
		"You are First.": {{ID: "1", Name: "mcp__own__relist", Arguments: `{"list":[{"name":"relist"},{"name":"new"},{"name":"banned"}]}`}},
	}}
	var about []string
	r := open(t, map[string]string{"crewhost.yaml": "llm: {provider: openai, model: m, api_key: k}\npermissions: {default: allow}\n"}, with(m), func(cfg *runner.Config) {
		cfg.Crews = []*crew.Crew{c}
		cfg.Approver = approverFunc(func(q permission.Request) permission.Answer {
			about = append(about, q.Tool)
			return permission.Answer{Reason: "not today"}
		})
	})
	run := func() {
		t.Helper()
		if _, err := r.host.Run(t.Context(), c, nil); err != nil {
			t.Fatal(err)
		}
	}
	run()
	eventually(t, "the tools that come", func() bool { return len(r.host.Servers()[0].Tools) == 3 })
	m.calls["You are First."] = []llm.ToolCall{{ID: "1", Name: "mcp__own__new", Arguments: "{}"}, {ID: "2", Name: "mcp__own__banned", Arguments: "{}"}}
	run()
	if diff := cmp.Diff([]string{"mcp__own__new", "mcp__own__relist"}, m.offered["You are First."]); diff != "" {
		t.Error(diff)
	}
	if said := strings.Join(m.results["You are First."], "\n"); !slices.Equal(about, []string{"mcp__own__new"}) || !strings.Contains(said, "not today") || !strings.Contains(said, `no tool "mcp__own__banned"`) {
		t.Errorf("asked about %q: %s", about, said)
	}
}

// Names that are one for a model are told apart, and a call reaches the tool that was
// meant; a server may be called as the host's own tools begin.
func TestNamesOfAgentsToolsThatModelsCannotTell(t *testing.T) {
	long := strings.Repeat("n", 39)
	cut := strings.Repeat("t", 30)
	c := loadCrew(t, crewOf(
		"role: First, mcp_servers: ["+brings(t, long, cut+"1,"+cut+"2,a.b,a_b")+", "+brings(t, "mcp", "mcp__mcp__x,echo")+", "+brings(t, "file", "read")+"], tools: ["+
			uses(long)+", "+uses("mcp", "configs: [{name: echo, enabled: false}]")+", "+uses("file")+"]",
	))
	m := &asks{offered: map[string][]string{}, results: map[string][]string{}, calls: map[string][]llm.ToolCall{"You are First.": nil}}
	r := open(t, map[string]string{"crewhost.yaml": "llm: {provider: openai, model: m, api_key: k}\npermissions: {allow: [\"mcp__*\"]}\n"}, with(m), func(cfg *runner.Config) {
		cfg.Crews = []*crew.Crew{c}
	})
	if v := r.host.Judge(c, nil, nil); len(v.Issues) > 0 {
		t.Fatal(v.Issues)
	}
	run := func() []string {
		t.Helper()
		m.results = map[string][]string{}
		if _, err := r.host.Run(t.Context(), c, nil); err != nil {
			t.Fatal(err)
		}
		return m.results["You are First."]
	}
	run()
	offered := slices.Clone(m.offered["You are First."])
	if len(offered) != 6 || len(slices.Compact(slices.Sorted(slices.Values(offered)))) != 6 {
		t.Fatalf("offered %q", offered)
	}
	var each []llm.ToolCall
	for i, name := range offered {
		if len(name) > 64 {
			t.Errorf("%q has %d characters", name, len(name))
		}
		each = append(each, llm.ToolCall{ID: fmt.Sprint(i), Name: name, Arguments: "{}"})
	}
	m.calls["You are First."] = each
	got := slices.Sorted(slices.Values(run())) // each says its own name
	if diff := cmp.Diff([]string{"a.b", "a_b", "mcp__mcp__x", "read", cut + "1", cut + "2"}, got); diff != "" {
		t.Error(diff)
	}
}
