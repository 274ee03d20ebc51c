package runner_test

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crewhost/config"
	"crewhost/mcp"
	"crewhost/runner"
	"crewhost/runner/llm"
	"crewhost/tools"
)

// model answers every request alike, and remembers it.
type model struct {
	res llm.Response

	mu    sync.Mutex
	asked []llm.Request
}

func (m *model) Generate(_ context.Context, r llm.Request) (*llm.Response, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked = append(m.asked, r)
	res := m.res
	return &res, nil
}

const asker = `
llm: { provider: openai, model: gpt, temperature: 0.5, max_tokens: 30 }
mcp:
  resource_tools: true
  servers:
    asker: { command: "${SERVER}", args: [mcptest-server, standard, -tools, "ask,ask_model,ask_roots", -contents], sampling: true, roots: true }
permissions: { default: allow }
mounts: ["./out:/out:rw"]
`

func said(t *testing.T, host *runner.Host, tool, arguments string) (string, bool) {
	t.Helper()
	res, err := host.Call(t.Context(), tools.Call{Name: tool, Arguments: []byte(arguments)})
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, c := range res.Content {
		texts = append(texts, c.Text)
	}
	return strings.Join(texts, "\n"), res.IsError
}

// A server that may ask the model gets the default profile's, within the bounds of
// both.
func TestSampler(t *testing.T) {
	m := &model{res: llm.Response{Message: llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{{Text: "Hello."}}, Reasoning: "hm"}, Stop: llm.StopLength}}
	r := open(t, map[string]string{"crewhost.yaml": asker}, func(c *runner.Config) {
		c.Models = func(context.Context, config.Profile, runner.Credentials) (llm.Model, error) { return m, nil }
	})
	got, failed := said(t, r.host, "ask_model", `{"prompt":"Say hello.","max_tokens":500}`)
	want := `{"m":{"content":{"type":"text","text":"Hello."},"model":"gpt","role":"assistant","stopReason":"maxTokens"}}`
	if failed || got != want {
		t.Errorf("got %s", got)
	}
	half := 0.5
	if diff := cmp.Diff([]llm.Request{{
		Model: "gpt", System: "Be brief.", Messages: []llm.Message{llm.User("Say hello.")}, Temperature: &half, MaxTokens: 30,
	}}, m.asked); diff != "" {
		t.Error(diff)
	}
	for _, res := range []llm.Response{{Stop: llm.StopFilter}, {Stop: llm.StopEnd}} {
		m.res = res
		if got, failed := said(t, r.host, "ask_model", `{"prompt":"Say hello.","max_tokens":500}`); !failed || !strings.Contains(got, "the answer") {
			t.Errorf("%s: got %s", res.Stop, got)
		}
	}
}

// The folders of the mounts, by the names that agents know.
func TestRoots(t *testing.T) {
	r := open(t, map[string]string{"crewhost.yaml": asker})
	got, failed := said(t, r.host, "ask_roots", `{}`)
	if want := `{"r":{"roots":[{"name":"/out","uri":"file://` + filepath.ToSlash(filepath.Join(r.dir, "out")) + `"}]}}`; failed || got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// agreeable says yes to everything.
type agreeable struct{}

func (agreeable) Elicit(context.Context, mcp.Question) (mcp.Answer, error) {
	return mcp.Answer{Action: mcp.Accept}, nil
}

// An embedding program brings its own respondent (O13), and reaches what servers
// offer besides tools.
func TestRespondentAndOffers(t *testing.T) {
	r := open(t, map[string]string{"crewhost.yaml": asker}, func(c *runner.Config) { c.Respondent = agreeable{} })
	if got, failed := said(t, r.host, "ask", `{"message":"?"}`); failed || got != `{"q":{"action":"accept"}}` {
		t.Errorf("got %s", got)
	}
	list, err := r.host.Resources(t.Context(), "asker")
	if err != nil || len(list.Resources) != 2 {
		t.Errorf("resources %+v, %v", list, err)
	}
	contents, err := r.host.ReadResource(t.Context(), "asker", "notes:///tide")
	if err != nil || len(contents) != 2 {
		t.Errorf("contents %+v, %v", contents, err)
	}
	prompts, err := r.host.Prompts(t.Context(), "asker")
	if err != nil || len(prompts.Prompts) != 2 {
		t.Errorf("prompts %+v, %v", prompts, err)
	}
	text, err := r.host.GetPrompt(t.Context(), "asker", "greet", map[string]string{"who": "Ada"})
	if err != nil || len(text.Messages) != 2 {
		t.Errorf("prompt %+v, %v", text, err)
	}
	if got, failed := said(t, r.host, mcp.ReadResourceTool, `{"server":"asker","uri":"notes:///tide"}`); failed || !strings.Contains(got, "high at six") {
		t.Errorf("got %s", got)
	}
	if lines := r.host.IdleRules(); len(lines) != 0 {
		t.Errorf("idle: %q", lines)
	}
}
