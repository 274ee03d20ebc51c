package anthropic

import (
	"encoding/json"
	"testing"

	"crewhost/runner/llm"
)

// What each model is asked for where the crew says how much to think, and how
// long an answer may be where it does not say.
func TestTraits(t *testing.T) {
	high, budget := llm.Thinking{Enabled: true, Effort: "high"}, llm.Thinking{Enabled: true, BudgetTokens: 5000}
	for _, tt := range []struct {
		model     string
		maxTokens int
		asked     llm.Thinking
		effort    string
		budget    int
	}{
		{"claude-opus-5-5", 128_000, high, "high", 0},
		{"claude-opus-5-5", 128_000, budget, "medium", 0},
		{"claude-sonnet-4-6", 128_000, llm.Thinking{Enabled: true}, "", 0},
		{"claude-sonnet-4-5-20250929", 64_000, high, "", 24576},
		{"claude-sonnet-4-5", 64_000, budget, "", 5000},
		{"claude-sonnet-4-5", 64_000, llm.Thinking{Enabled: true}, "", 8192},
		{"claude-sonnet-4-5", 64_000, llm.Thinking{Enabled: true, BudgetTokens: 10}, "", 1024},
		{"claude-opus-4-5", 64_000, high, "high", 24576},
		{"claude-opus-4-20250514", 32_000, llm.Thinking{Enabled: true, Effort: "max"}, "", 16_000},
		{"claude-3-5-haiku-latest", 8192, budget, "", 4096},
		{"claude-3-haiku-20240307", 4096, budget, "", 2048},
		{"anthropic/claude-opus-5", 128_000, high, "high", 0},
		{"glm-5", DefaultMaxTokens, llm.Thinking{Enabled: true, Effort: "high", BudgetTokens: 3}, "high", 3},
	} {
		m := traitsOf(tt.model)
		effort, budget := m.thinking(tt.asked)
		if m.maxTokens != tt.maxTokens || effort != tt.effort || budget != tt.budget {
			t.Errorf("%s, %+v: %d tokens, effort %q, budget %d; want %d, %q, %d", tt.model, tt.asked, m.maxTokens, effort, budget, tt.maxTokens, tt.effort, tt.budget)
		}
	}
}

func TestOutputSchema(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{`{"type":"string","minLength":3}`, `{"type":"string"}`},
		{`{"type":"string","format":"phone"}`, `{"type":"string"}`},
		{`{"oneOf":[{"type":"string"},{"type":"integer","minimum":1}]}`, `{"anyOf":[{"type":"string"},{"type":"integer"}]}`},
		{`{"type":"array","minItems":3,"maxItems":5,"items":{"type":"object","properties":{"a":{}}}}`,
			`{"items":{"additionalProperties":false,"properties":{"a":{}},"type":"object"},"minItems":1,"type":"array"}`},
		{`{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b","title":"x"},"b":{"enum":[725653563933458433]}}}`,
			`{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"enum":[725653563933458433]}},"$ref":"#/$defs/a"}`},
		{`{"type":"object","additionalProperties":true,"properties":{}}`, `{"additionalProperties":false,"properties":{},"type":"object"}`},
		{`{"type":"object"}`, ""},
		{`{"type":"array","items":{"type":"object"}}`, ""},
		{`{"definitions":{"a":{}},"anyOf":[{"$ref":"#/definitions/a"}]}`, ""},
		{`true`, ""},
	} {
		got, ok := outputSchema(json.RawMessage(tt.in), 0)
		if ok != (tt.want != "") || string(got) != tt.want {
			t.Errorf("%s: %s, %v; want %s", tt.in, got, ok, tt.want)
		}
	}
}

// FuzzOutputSchema: whatever a crew's schema is, what is sent is JSON.
func FuzzOutputSchema(f *testing.F) {
	f.Add([]byte(`{"anyOf":[{"items":{"properties":{"a":{"minItems":7}}}}]}`))
	f.Add([]byte(`{"properties":null,"required":7,"type":["object"]}`))
	f.Fuzz(func(t *testing.T, schema []byte) {
		if got, ok := outputSchema(schema, 0); ok && !json.Valid(got) {
			t.Errorf("%s: %s", schema, got)
		}
	})
}
