package runner_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crewhost/crew"
	"crewhost/runner/llm"
)

// What a crew asks and its providers can't do is said before a model is called,
// with its place and what happens instead; never by a vendor's refusal.
func TestJudgeModels(t *testing.T) {
	const crewFile = `name: N
goal: G
llm: { thinking: { effort: max }, cache: { system: true } }
agents:
  a: { goal: g, tools: [json_tool] }
  b: { goal: g, llm: { profile: deep, model: other } }
  c: { goal: g, llm: { profile: claude, temperature: 0.5 } }
tasks:
  one: { description: d, expectedOutput: e, agent: a }
  two: { description: d, expectedOutput: e, agent: b, llmOverride: { responseSchema: { schema: { type: object } } } }
  three: { description: d, expectedOutput: e, agent: c }
  four: { description: d, expectedOutput: e, agent: b, deliverable: { path: /out/a.json, source: structured_output, schemaInline: { type: object } } }
  five: { description: d, expectedOutput: e, agent: a, llmOverride: { model: gpt-6 } }
`
	const settings = `llm:
  provider: openai
  model: gpt-5
  available_models: [gpt-5, "gpt-5-*"]
  profiles:
    deep: { provider: deepseek, model: deepseek-chat }
    claude: { provider: anthropic, model: claude-x }
  prices: { gpt-*: { input: 1, output: 1 } }
  budget: { cost: 5 }
mounts: ["./out:/out:rw"]
`
	r := open(t, map[string]string{"out/.keep": "", "crewhost.yaml": settings, "crew.yaml": crewFile}, with(llm.Echo{}))
	c, err := crew.Load(filepath.Join(r.dir, "crew.yaml"))
	v := r.host.Judge(c, err, nil)
	lines := func(issues crew.Issues) []string {
		var out []string
		for _, i := range issues {
			out = append(out, strings.ReplaceAll(i.Error(), r.dir+string(filepath.Separator), ""))
		}
		return out
	}
	if diff := cmp.Diff([]string{
		`crew.yaml:13:78: the profile "default" does not offer the model "gpt-6" (did you mean "gpt-5"?) [unknown-model]`,
		`crewhost.yaml:9:19: llm.budget.cost can't be kept: the model "claude-x" has no price (llm.prices: {claude-x: {input: N, output: N}}) [unpriced]`,
		`crewhost.yaml:9:19: llm.budget.cost can't be kept: the model "other" has no price (llm.prices: {other: {input: N, output: N}}) [unpriced]`,
	}, lines(v.Issues)); diff != "" {
		t.Errorf("issues: %s", diff)
	}
	if diff := cmp.Diff([]string{
		`crew.yaml:3:6: the vendor caches prompts by itself, so no mark is sent (the provider deepseek) [capability]`,
		`crew.yaml:3:6: the vendor caches prompts by itself, so no mark is sent (the provider openai) [capability]`,
		`crew.yaml:3:28: temperature and topP are not sent beside thinking (the provider anthropic) [capability]`,
		`crew.yaml:3:28: the thinking effort max is asked for as high (the provider openai) [capability]`,
		`crew.yaml:3:28: thinking is switched on, without effort or budget (the provider deepseek) [capability]`,
		`crew.yaml:5:3: agent "a": the policy asks about each call of json_tool, and nobody can be asked here: all of them will be refused (write a rule that allows them, pass --approve allow, or set permissions.headless: allow) [unanswered]`,
		`crew.yaml:10:86: the response schema is put into the prompt, and any JSON object asked for (the provider deepseek) [capability]`,
		`crew.yaml:12:69: the response schema is put into the prompt, and any JSON object asked for (the provider deepseek) [capability]`,
	}, lines(v.Warnings)); diff != "" {
		t.Errorf("warnings: %s", diff)
	}
}

// A budget of the cost holds for embeddings too, so what embeds needs a price; a crew
// that remembers and reads nothing embeds nothing.
func TestJudgeEmbeddings(t *testing.T) {
	const settings = `llm:
  provider: openai
  model: gpt-5
  prices: { gpt-5: { input: 1, output: 1 }%s }
  budget: { cost: 5 }
  embeddings: { provider: openai, model: near }
memory: { dir: kept }
`
	const crewFile = "name: N\ngoal: G\nagents: {a: {goal: g}}\ntasks: {t: {description: d, expectedOutput: e, agent: a}}\n"
	for name, tt := range map[string]struct {
		prices, crew string
		want         []string
	}{
		"no price":      {"", "memory: true\n", []string{`llm.budget.cost can't be kept: the model "near" has no price`}},
		"a price":       {", near: { input: 1, output: 0 }", "memory: true\n", nil},
		"nothing of it": {"", "", nil},
	} {
		r := open(t, map[string]string{"crewhost.yaml": fmt.Sprintf(settings, tt.prices), "crew.yaml": crewFile + tt.crew}, with(llm.Echo{}))
		c, err := crew.Load(filepath.Join(r.dir, "crew.yaml"))
		var got []string
		for _, i := range r.host.Judge(c, err, nil).Issues {
			got = append(got, i.Message)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
