package runner_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"crewhost/config"
	"crewhost/crew"
	"crewhost/runner"
	"crewhost/runner/llm"
	"crewhost/tools"
	"crewhost/tools/permission"
)

// One policy stands on every path to a tool, and says the same there: of an agent, of
// the coworker that work was handed to, of a crew that is served, of an MCP client over
// HTTP and over stdio in each era, and of a call from outside any run (R3).
func TestOnePolicyOnEveryPath(t *testing.T) {
	const settings = `
llm: {provider: openai, model: plain}
mcp:
  servers: { standard: { command: "${SERVER}", args: [mcptest-server, standard, -tools, "echo,count,sleep,big"] } }
  served: { demo: { tools: ["mcp__standard__*", json_tool], crews: [crew.yaml] } }
permissions:
  default: ask
  allow: [echo, json_tool, harbour]
  ask: ["echo:word=perhaps", "mcp__standard__big:bytes=2"]
  deny: [count, "mcp__standard__echo:word=no", "json_tool:operation=validate"]
`
	const text = `
name: Harbour
goal: Answer ships
agents:
  one: {role: One, goal: Answer, tools: [echo, count, sleep, big, json_tool]}
  two: {role: Two, goal: Answer, tools: [echo, count, sleep, big, json_tool]}
tasks:
  only: {description: Make the call., expectedOutput: What it said, agent: one}
`
	// What the models do: one calls the tool, or has two call it, and says what it said.
	var want llm.ToolCall
	delegates := false
	model := modelFunc(func(req llm.Request) *llm.Response {
		last := req.Messages[len(req.Messages)-1]
		switch {
		case last.Role == llm.RoleTool:
			return answer(last.Text())
		case delegates && strings.HasPrefix(req.System, "You are One."):
			return calls(llm.ToolCall{ID: "1", Name: "delegate_work_to_coworker", Arguments: `{"task":"Make the call.","coworker_role":"Two"}`})
		}
		return calls(want)
	})
	r := open(t, map[string]string{"crewhost.yaml": settings, "crew.yaml": text}, with(model))
	run := func(t *testing.T) string {
		t.Helper()
		out, err := r.host.Run(t.Context(), r.crew(nil), nil)
		if err != nil {
			t.Fatal(err)
		}
		return out.Final
	}
	served := r.listen(t)
	paths := map[string]func(t *testing.T, tool, args string) string{
		"agent": func(t *testing.T, _, _ string) string { return run(t) },
		"coworker": func(t *testing.T, _, _ string) string {
			delegates = true
			defer func() { delegates = false }()
			return run(t)
		},
		"from none": func(t *testing.T, tool, args string) string { got, _ := said(t, r.host, tool, args); return got },
	}
	for _, era := range eras {
		outer := behind(t, served, era)
		paths["client, "+era] = func(t *testing.T, tool, args string) string { got, _ := said(t, outer, tool, args); return got }
		paths["served crew, "+era] = func(t *testing.T, _, _ string) string { got, _ := said(t, outer, "harbour", `{}`); return got }
		client := r.overStdio(t, era)
		paths["client over stdio, "+era] = func(_ *testing.T, tool, args string) string { return client(tool, args) }
		paths["served crew over stdio, "+era] = func(*testing.T, string, string) string { return client("harbour", `{}`) }
	}
	for name, tt := range map[string]struct {
		tool, args string
		want       string // the beginning of what comes back
	}{
		"allowed":               {"echo", `{"word":"yes"}`, `{"word":"yes"}`},
		"denied":                {"count", `{}`, `The policy denied this call of the tool "count": deny rule "count" (crewhost.yaml:`},
		"denied by an argument": {"echo", `{"word":"no"}`, `The policy denied this call of the tool "echo": deny rule "mcp__standard__echo:word=no" (crewhost.yaml:`},
		"asked by an argument":  {"echo", `{"word":"perhaps"}`, `The policy denied this call of the tool "echo": it needs a person's approval (ask rule "echo:word=perhaps" (crewhost.yaml:`},
		"asked by default":      {"sleep", `{"ms":1}`, `The policy denied this call of the tool "sleep": it needs a person's approval (no rule matches, and the default is ask), and nobody can be asked here.`},
		"of the host":           {"json_tool", `{"operation":"validate","input":"{}"}`, `The policy denied this call of the tool "json_tool": deny rule "json_tool:operation=validate" (crewhost.yaml:`},
	} {
		for path, call := range paths {
			t.Run(name+"/"+path, func(t *testing.T) {
				want = llm.ToolCall{ID: "c", Name: tt.tool, Arguments: tt.args}
				if tt.tool == "json_tool" && strings.HasPrefix(path, "client, ") {
					t.Skip("every host has its own")
				}
				if got := strings.TrimPrefix(call(t, tt.tool, tt.args), "Error: "); !strings.HasPrefix(got, tt.want) {
					t.Errorf("got %s", got)
				}
			})
		}
	}
}

// A coworker works by its own toolsets, not by those of who asked it; and a server that
// an agent brought along is that agent's alone, on every path.
func TestDelegatedWorkIsJudgedAsTheCoworkers(t *testing.T) {
	text := fmt.Sprintf(`
name: Harbour
goal: Answer ships
agents:
  one: {role: One, goal: Answer, tools: [{type: agent_toolset, configs: [{name: json_tool, permission_policy: {type: always_allow}}]}]}
  two:
    role: Two
    goal: Answer
    mcp_servers: [%s]
    tools:
      - {type: agent_toolset, configs: [{name: json_tool, permission_policy: {type: always_ask}}]}
      - {type: mcp_toolset, mcp_server_name: own, configs: [{name: echo, permission_policy: {type: always_allow}}]}
tasks:
  only: {description: Make the call., expectedOutput: What it said, agent: one}
`, brings(t, "own", "echo,count"))
	var want llm.ToolCall
	delegates := false
	model := modelFunc(func(req llm.Request) *llm.Response {
		last := req.Messages[len(req.Messages)-1]
		switch {
		case last.Role == llm.RoleTool:
			return answer(last.Text())
		case delegates && strings.HasPrefix(req.System, "You are One."):
			return calls(llm.ToolCall{ID: "1", Name: "delegate_work_to_coworker", Arguments: `{"task":"Make the call.","coworker_role":"Two"}`})
		}
		return calls(want)
	})
	c := loadCrew(t, text)
	var asked []permission.Request
	r := open(t, map[string]string{"crewhost.yaml": `
llm: {provider: openai, model: plain}
mcp: { served: { demo: { tools: ["mcp__own__*", json_tool] } } }
permissions: { allow: ["mcp__own__count:n=7"] }
`}, with(model), func(cfg *runner.Config) {
		cfg.Crews = []*crew.Crew{c}
		cfg.Approver = approverFunc(func(q permission.Request) permission.Answer {
			asked = append(asked, q)
			return permission.Answer{Reason: "not today"}
		})
	})
	const length = `{"operation":"validate","input":"[1,2]"}`
	for name, tt := range map[string]struct {
		tool, args string
		delegates  bool
		want       string
		by         string // the agent that a person was asked about
	}{
		"one may":                     {"json_tool", length, false, "", ""},
		"two is asked":                {"json_tool", length, true, "A person denied this call", "two"},
		"two has its server":          {"mcp__own__echo", `{"a":1}`, true, `{"a":1}`, ""},
		"and is asked about the rest": {"mcp__own__count", `{}`, true, "A person denied this call", "two"},
		"one has not":                 {"mcp__own__echo", `{"a":1}`, false, "you have no tool", ""},
	} {
		t.Run(name, func(t *testing.T) {
			want, delegates, asked = llm.ToolCall{ID: "c", Name: tt.tool, Arguments: tt.args}, tt.delegates, nil
			out, err := r.host.Run(t.Context(), c, nil)
			if err != nil {
				t.Fatal(err)
			}
			by := ""
			if len(asked) > 0 {
				by = asked[0].Agent
			}
			if !strings.Contains(out.Final, tt.want) || tt.want == "" && strings.Contains(out.Final, "denied") || by != tt.by {
				t.Errorf("%s; asked about %q", out.Final, by)
			}
		})
	}
	// From outside the crew nobody gets at it, whatever the settings allow.
	const denied = `MCP server "own" is for the agents that brought it along, and who calls is no agent`
	if got, failed := said(t, r.host, "mcp__own__count", `{"n":7}`); !failed || !strings.Contains(got, denied) {
		t.Errorf("mcp call: %s", got)
	}
	if got, err := r.host.Call(t.Context(), tools.Call{Name: "mcp__own__count", Agent: "two", Arguments: json.RawMessage(`{"n":7}`)}); err != nil || !got.IsError {
		t.Errorf("who only says that it is the agent: %+v, %v", got, err)
	}
	settings, err := config.Load(config.Source{CrewDir: r.dir})
	if err != nil {
		t.Fatal(err)
	}
	s, err := r.host.Surface(t.Context(), runner.ServeConfig{Served: settings.MCP.Served[0]})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range s.Tools() {
		if strings.HasPrefix(d.Name, "mcp__own__") {
			found := false
			for _, refused := range s.Refused() {
				found = found || refused == d.Name
			}
			if !found {
				t.Errorf("%s is served, and not refused", d.Name)
			}
		}
	}
}

// The host lets agents put work to one another unasked. A server that gives its tool the
// name of one by which they do gets nothing by it.
func TestNoServerIsAllowedByTheNameOfItsTool(t *testing.T) {
	r := open(t, map[string]string{"crewhost.yaml": `
llm: {provider: echo}
mcp: { servers: { standard: { command: "${SERVER}", args: [mcptest-server, standard, -tools, "delegate_work_to_coworker,ask_question_to_coworker"] } } }
`})
	for _, tool := range r.host.Servers()[0].Tools {
		if got, failed := said(t, r.host, tool, `{}`); !failed || !strings.Contains(got, "needs a person's approval (no rule matches") {
			t.Errorf("%s: %s", tool, got)
		}
	}
	if n := len(r.host.Servers()[0].Tools); n != 2 {
		t.Errorf("%d tools", n)
	}
}
