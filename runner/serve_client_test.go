package runner_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"crewhost/config/secret"
	"crewhost/crew"
	"crewhost/mcp"
	"crewhost/runner"
	"crewhost/runner/llm"
	"crewhost/tools/audit"
	"crewhost/tools/permission"
)

// asked answers forms, and remembers what it was asked.
type asked struct {
	values map[string]string
	action mcp.Action

	mu        sync.Mutex
	questions []string
}

func (a *asked) Elicit(_ context.Context, q mcp.Question) (mcp.Answer, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.questions = append(a.questions, q.Message)
	made := mcp.Answer{Action: a.action, Values: map[string]secret.Text{}}
	for _, f := range q.Fields {
		if v, ok := a.values[f.Name]; ok {
			made.Values[f.Name] = secret.NewText(v, v)
		}
	}
	return made, nil
}

// What an agent of a served crew asks goes to the client's person, in both eras.
func TestServedCrewAsksTheClient(t *testing.T) {
	asks := with(modelFunc(func(r llm.Request) *llm.Response {
		if last := r.Messages[len(r.Messages)-1]; last.Role == llm.RoleTool {
			return answer("They said " + last.Text())
		}
		return calls(llm.ToolCall{ID: "1", Name: "human_input", Arguments: `{"prompt":"Which harbour?","default_value":"Brest"}`})
	}))
	files := map[string]string{"crewhost.yaml": servesCrew, "crew.yaml": `
name: Harbour log
goal: Ask
agents: { one: { role: One, goal: Answer, tools: [human_input] } }
tasks: { only: { description: Ask, expectedOutput: A word, agent: one } }
`}
	for _, era := range eras {
		t.Run(era, func(t *testing.T) {
			inner := open(t, files, asks, func(c *runner.Config) { c.Asker = runner.ClientPerson{} })
			url := inner.listen(t)
			person := &asked{action: mcp.Accept, values: map[string]string{"answer": "Nantes"}}
			outer := behind(t, url, era, func(c *runner.Config) { c.Respondent = person })
			if got, failed := said(t, outer, "harbour_log", `{}`); failed || got != "They said Nantes" {
				t.Errorf("got %s", got)
			}
			if len(person.questions) != 1 || !strings.Contains(person.questions[0], `The agent "one" asks: Which harbour?`) {
				t.Errorf("asked %q", person.questions)
			}
			// The default is for who leaves the field, not for who declines.
			person.action = mcp.Decline
			if got, _ := said(t, outer, "harbour_log", `{}`); strings.Contains(got, "Brest") {
				t.Errorf("got %s", got)
			}
			nobody := behind(t, url, era)
			if got, _ := said(t, nobody, "harbour_log", `{}`); strings.Contains(got, "Brest") || strings.Contains(got, "Nantes") {
				t.Errorf("got %s", got)
			}
		})
	}
}

// A client's person who puts an approval away has not answered: a task with humanInput
// is not done by that. A no is an answer.
func TestApprovalPutAway(t *testing.T) {
	asks := with(modelFunc(func(r llm.Request) *llm.Response {
		for _, m := range r.Messages {
			if m.Role == llm.RoleTool {
				return answer("It is " + m.Text())
			}
		}
		return calls(llm.ToolCall{ID: "1", Name: "human_input", Arguments: `{"prompt":"May it go out?","input_type":"approval"}`})
	}))
	files := map[string]string{"crewhost.yaml": servesCrew, "crew.yaml": `
name: Harbour log
goal: Ask
agents: { one: { role: One, goal: Answer, tools: [human_input] } }
tasks: { only: { description: Ask, expectedOutput: A word, agent: one, humanInput: true } }
`}
	for _, era := range eras {
		t.Run(era, func(t *testing.T) {
			inner := open(t, files, asks, func(c *runner.Config) { c.Asker = runner.ClientPerson{} })
			person := &asked{action: mcp.Decline}
			outer := behind(t, inner.listen(t), era, func(c *runner.Config) { c.Respondent = person })
			if got, failed := said(t, outer, "harbour_log", `{}`); failed || got != "It is rejected" {
				t.Errorf("a no: %s", got)
			}
			person.action = mcp.Cancel
			if got, failed := said(t, outer, "harbour_log", `{}`); !failed || !strings.Contains(got, "no person has answered human_input") {
				t.Errorf("put away: %s", got)
			}
		})
	}
}

// R3: the client's person approves calls where the operator says so, and where the
// client can't be asked the headless answer holds.
func TestClientApproves(t *testing.T) {
	for _, era := range eras {
		t.Run(era, func(t *testing.T) {
			inner := open(t, map[string]string{"crewhost.yaml": `
mcp:
  servers: { standard: { command: "${SERVER}", args: [mcptest-server, standard, -tools, echo] } }
  served: { demo: { tools: [echo] } }
audit: { file: audit.jsonl }
`}, func(c *runner.Config) { c.Approver = runner.ClientPerson{Headless: permission.Deny} })
			url := inner.listen(t)
			person := &asked{action: mcp.Accept, values: map[string]string{"allow": "true"}}
			outer := behind(t, url, era, func(c *runner.Config) { c.Respondent = person })
			if got, failed := said(t, outer, "echo", `{"a":1}`); failed || got != `{"a":1}` {
				t.Errorf("got %s", got)
			}
			if want := `the tool "echo" of MCP server "standard" with {"a":1}`; len(person.questions) != 1 || !strings.Contains(person.questions[0], want) {
				t.Errorf("asked %q", person.questions)
			}
			person.values = map[string]string{"allow": "false", "reason": "Not today"}
			if got, failed := said(t, outer, "echo", `{}`); !failed || !strings.Contains(got, "Not today") {
				t.Errorf("got %s", got)
			}
			person.action = mcp.Decline
			if got, failed := said(t, outer, "echo", `{}`); !failed || !strings.Contains(got, "A person denied") {
				t.Errorf("got %s", got)
			}
			if got, failed := said(t, behind(t, url, era), "echo", `{}`); !failed || !strings.Contains(got, "the client can't be asked") {
				t.Errorf("got %s", got)
			}
			// All of it is on record, with the way that it came and who answered.
			var answers []string
			for _, rec := range records(t, filepath.Join(inner.dir, "audit.jsonl")) {
				if rec.Kind != audit.Call {
					continue
				}
				if rec.Path != "client" || rec.Agent != "" || rec.Answer == nil {
					t.Fatalf("%+v", rec)
				}
				answers = append(answers, rec.Outcome+" "+rec.Answer.Who)
			}
			if got, want := strings.Join(answers, ", "), "succeeded client, denied client, denied client, denied nobody"; got != want {
				t.Errorf("on record are %s, want %s", got, want)
			}
		})
	}
}

// A question of a server, which may be of either era too, goes on to the client's
// person where the operator says so.
func TestQuestionsOfServersGoOn(t *testing.T) {
	for _, era := range append(eras, "modern behind legacy", "legacy behind modern") {
		t.Run(era, func(t *testing.T) {
			behindIt, era := era, era
			if first, second, mixed := strings.Cut(era, " behind "); mixed {
				behindIt, era = first, second
			}
			inner := open(t, map[string]string{"crewhost.yaml": fmt.Sprintf(`
mcp:
  servers: { asker: { command: "${SERVER}", protocol: %s, args: [mcptest-server, standard, -tools, ask] } }
  served: { demo: { tools: [ask] } }
permissions: { default: allow }
`, behindIt)}, func(c *runner.Config) { c.Respondent = runner.ClientPerson{} })
			person := &asked{action: mcp.Accept, values: map[string]string{"colour": "blue"}}
			outer := behind(t, inner.listen(t), era, func(c *runner.Config) { c.Respondent = person })
			got, failed := said(t, outer, "ask", `{"message":"Which colour?","schema":{"type":"object","properties":{"colour":{"type":"string","enum":["red","blue"]}},"required":["colour"]}}`)
			if failed || !strings.Contains(got, `"colour":"blue"`) {
				t.Errorf("got %s", got)
			}
			if len(person.questions) != 1 || !strings.Contains(person.questions[0], `MCP server "asker"`) || !strings.Contains(person.questions[0], "Which colour?") {
				t.Errorf("asked %q", person.questions)
			}
		})
	}
}

// A hesitant person answers when told to.
type hesitant struct {
	asked
	begun, answer chan struct{}
}

func (p *hesitant) Elicit(ctx context.Context, q mcp.Question) (mcp.Answer, error) {
	close(p.begun)
	<-p.answer
	return p.asked.Elicit(ctx, q)
}

// A server of the older era doesn't say of which call its question is. Where calls of
// several clients wait, none of their people is asked what may be another's.
func TestQuestionsGoToNobodyInDoubt(t *testing.T) {
	inner := open(t, map[string]string{"crewhost.yaml": `
mcp:
  servers: { asker: { command: "${SERVER}", protocol: legacy, args: [mcptest-server, standard, -tools, ask] } }
  served: { demo: { tools: [ask] } }
permissions: { default: allow }
`}, func(c *runner.Config) { c.Respondent = runner.ClientPerson{} })
	url := inner.listen(t)
	first := &hesitant{asked: asked{action: mcp.Accept, values: map[string]string{"colour": "blue"}}, begun: make(chan struct{}), answer: make(chan struct{})}
	second := &asked{action: mcp.Accept, values: map[string]string{"colour": "red"}}
	one := behind(t, url, "modern", func(c *runner.Config) { c.Respondent = first })
	other := behind(t, url, "modern", func(c *runner.Config) { c.Respondent = second })
	const question = `{"message":"Which colour?","schema":{"type":"object","properties":{"colour":{"type":"string"}},"required":["colour"]}}`
	var calling sync.WaitGroup
	calling.Go(func() {
		if got, _ := said(t, one, "ask", question); !strings.Contains(got, `"colour":"blue"`) {
			t.Errorf("the first: %s", got)
		}
	})
	<-first.begun
	if got, _ := said(t, other, "ask", question); strings.Contains(got, "colour\":") || len(second.questions) > 0 {
		t.Errorf("the other: %s, asked %q", got, second.questions)
	}
	close(first.answer)
	calling.Wait()
}

// A crew that is served has servers of its agents: the client's person approves their
// calls for the one agent, whatever else it may do, and nobody gets at them past it.
func TestClientApprovesForAgentsOfAServedCrew(t *testing.T) {
	asks := with(modelFunc(func(r llm.Request) *llm.Response {
		if last := r.Messages[len(r.Messages)-1]; last.Role == llm.RoleTool {
			return answer("It says " + last.Text())
		}
		return calls(llm.ToolCall{ID: "1", Name: "mcp__own__echo", Arguments: `{"a":1}`})
	}))
	files := map[string]string{
		"crewhost.yaml": "llm: {provider: openai, model: m, api_key: k}\nmcp: { served: { demo: { tools: [\"mcp__*\"], crews: [crew.yaml] } } }\npermissions: { allow: [c] }\n",
		"crew.yaml":     crewOf("role: One, mcp_servers: [" + brings(t, "own", "echo") + "], tools: [" + uses("own") + "]"),
	}
	for _, era := range eras {
		t.Run(era, func(t *testing.T) {
			inner := open(t, files, asks, func(cfg *runner.Config) {
				cfg.Crews, cfg.Approver = runner.ServedCrews(cfg.Settings.MCP.Served...), runner.ClientPerson{Headless: permission.Deny}
			})
			url := inner.listen(t)
			person := &asked{action: mcp.Accept, values: map[string]string{"allow": "true"}}
			outer := behind(t, url, era, func(c *runner.Config) { c.Respondent = person })
			if got, failed := said(t, outer, "c", `{}`); failed || got != `It says {"a":1}` {
				t.Errorf("got %s", got)
			}
			if want := `The agent "a0" is about to use the tool "mcp__own__echo" of MCP server "own" with {"a":1}`; len(person.questions) != 1 || !strings.Contains(person.questions[0], want) {
				t.Errorf("asked %q", person.questions)
			}
			person.values = map[string]string{"allow": "false", "reason": "Not today"}
			if got, _ := said(t, outer, "c", `{}`); !strings.Contains(got, "Not today") {
				t.Errorf("got %s", got)
			}
			if got, _ := said(t, behind(t, url, era), "c", `{}`); !strings.Contains(got, "the client can't be asked") {
				t.Errorf("got %s", got)
			}
			for _, d := range outer.Tools() {
				if d.Server == "inner" && d.Name != "c" {
					t.Errorf("%s is served", d.Name)
				}
			}
		})
	}
}

// Where the settings allow all that no rule is about, the tools of servers that agents
// brought along are asked about all the same, but for those that a toolset allows.
func TestAgentsServersAreAskedAboutByDefault(t *testing.T) {
	lead := "role: Lead, mcp_servers: [" + brings(t, "own", "echo,count") + "], tools: [" + uses("own", "configs: [{name: count, permission_policy: {type: always_allow}}]") + ", json_tool]"
	c := loadCrew(t, crewOf(lead, "role: Hand"))
	call := func(name string) llm.ToolCall {
		return llm.ToolCall{ID: name, Name: name, Arguments: `{"operation":"validate","input":"{}"}`}
	}
	m := &asks{offered: map[string][]string{}, results: map[string][]string{}, calls: map[string][]llm.ToolCall{
		"You are Lead.": {call("mcp__own__echo"), call("mcp__own__count"), call("json_tool")}, "You are Hand.": nil,
	}}
	var about []string
	r := open(t, map[string]string{"crewhost.yaml": "llm: {provider: openai, model: m, api_key: k}\npermissions: {default: allow}\n"}, with(m), func(cfg *runner.Config) {
		cfg.Crews = []*crew.Crew{c}
		cfg.Approver = approverFunc(func(q permission.Request) permission.Answer {
			about = append(about, q.Agent+" "+q.Tool)
			return permission.Answer{Reason: "no"}
		})
	})
	if _, err := r.host.Run(t.Context(), c, nil); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(about, []string{"a0 mcp__own__echo"}) {
		t.Errorf("asked about %q", about)
	}
	if slices.ContainsFunc(m.offered["You are Hand."], func(n string) bool { return strings.HasPrefix(n, "mcp__own__") }) {
		t.Errorf("the other one has %q", m.offered["You are Hand."])
	}
}
