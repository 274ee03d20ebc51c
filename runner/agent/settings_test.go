package agent_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crewhost/crew"
	"crewhost/runner/agent"
	"crewhost/runner/llm"
)

// The cascade profile → crew → agent → task, for every field at every level.
func TestCascade(t *testing.T) {
	half, one := 0.5, 1.0
	yes, no := true, false
	n1, n2 := 100, 200
	schema := &crew.ResponseSchema{Name: "r", Schema: `{"type":"object"}`, Strict: true}
	schemaFormat := &llm.ResponseFormat{Type: "json_schema", Name: "r", Schema: json.RawMessage(`{"type":"object"}`), Strict: true}
	base := agent.Settings{Model: "base", Temperature: &half, TopP: &half, MaxTokens: 7}
	type levels [3]*crew.LLM // crew, agent, task
	for _, tt := range []struct {
		name    string
		base    agent.Settings
		levels  levels
		profile string
		want    agent.Settings
	}{
		{"nothing is said", base, levels{}, "", base},
		{"each level sets its own field", agent.Settings{Model: "base"},
			levels{{Temperature: &half}, {TopP: &one}, {MaxTokens: &n1}}, "",
			agent.Settings{Model: "base", Temperature: &half, TopP: &one, MaxTokens: 100}},
		{"the narrowest wins", base,
			levels{{Temperature: &half, TopP: &half, MaxTokens: &n1}, {Temperature: &one, MaxTokens: &n2}, {TopP: &one}}, "",
			agent.Settings{Model: "base", Temperature: &one, TopP: &one, MaxTokens: 200}},

		{"the crew chooses a profile", base, levels{{Profile: text("cheap")}, nil, nil}, "cheap", base},
		{"the agent chooses another", base, levels{{Profile: text("cheap")}, {Profile: text("deep")}, nil}, "deep", base},
		{"the task chooses another", base, levels{{Profile: text("cheap")}, {Profile: text("deep")}, {Profile: text("default")}}, "default", base},

		{"a model of the crew", base, levels{{Model: text("m")}, nil, nil}, "",
			agent.Settings{Model: "m", Temperature: &half, TopP: &half, MaxTokens: 7}},
		{"a model beside the profile", agent.Settings{Model: "base"}, levels{nil, {Profile: text("deep"), Model: text("m")}, nil}, "deep", agent.Settings{Model: "m"}},
		{"a model above the profile is of another provider", agent.Settings{Model: "base"},
			levels{{Model: text("m")}, {Profile: text("deep")}, nil}, "deep", agent.Settings{Model: "base"}},
		{"a model below the profile", agent.Settings{Model: "base"},
			levels{{Profile: text("deep")}, nil, {Model: text("m")}}, "deep", agent.Settings{Model: "m"}},
		{"numbers above the profile do count", agent.Settings{Model: "base"},
			levels{{MaxTokens: &n1}, {Profile: text("deep")}, nil}, "deep", agent.Settings{Model: "base", MaxTokens: 100}},

		{"thinking of the profile", agent.Settings{Thinking: &llm.Thinking{Enabled: true, Effort: "low"}}, levels{}, "",
			agent.Settings{Thinking: &llm.Thinking{Enabled: true, Effort: "low"}}},
		{"thinking, field by field", agent.Settings{Thinking: &llm.Thinking{Enabled: true, Effort: "low"}},
			levels{{Thinking: &crew.Thinking{BudgetTokens: &n1}}, {Thinking: &crew.Thinking{Effort: text("high")}}, {Thinking: &crew.Thinking{Enabled: &no}}}, "",
			agent.Settings{Thinking: &llm.Thinking{Effort: "high", BudgetTokens: 100}}},
		{"an effort alone means thinking", agent.Settings{}, levels{nil, {Thinking: &crew.Thinking{Effort: text("high")}}, nil}, "",
			agent.Settings{Thinking: &llm.Thinking{Enabled: true, Effort: "high"}}},
		{"an effort of what is switched off", agent.Settings{Thinking: &llm.Thinking{}}, levels{nil, {Thinking: &crew.Thinking{Effort: text("high")}}, nil}, "",
			agent.Settings{Thinking: &llm.Thinking{Effort: "high"}}},
		{"switched on again", agent.Settings{Thinking: &llm.Thinking{Effort: "low"}}, levels{nil, nil, {Thinking: &crew.Thinking{Enabled: &yes}}}, "",
			agent.Settings{Thinking: &llm.Thinking{Enabled: true, Effort: "low"}}},

		{"a schema whole", agent.Settings{}, levels{{ResponseSchema: &crew.ResponseSchema{Name: "old", Schema: `{}`}}, {ResponseSchema: schema}, nil}, "",
			agent.Settings{Format: schemaFormat}},
		{"a format below a schema", agent.Settings{}, levels{{ResponseSchema: schema}, {ResponseFormat: text("json_object")}, nil}, "",
			agent.Settings{Format: &llm.ResponseFormat{Type: "json_object"}}},
		{"json_schema below a schema keeps it", agent.Settings{}, levels{{ResponseSchema: schema}, {ResponseFormat: text("json_schema")}, nil}, "",
			agent.Settings{Format: schemaFormat}},
		{"json_schema without any", agent.Settings{}, levels{nil, {ResponseFormat: text("json_schema")}, nil}, "",
			agent.Settings{Format: &llm.ResponseFormat{Type: "json_object"}}},
		{"text takes it back", agent.Settings{}, levels{{ResponseSchema: schema}, nil, {ResponseFormat: text("text")}}, "", agent.Settings{}},

		{"marks of the profile", agent.Settings{Cache: &llm.Cache{System: true}}, levels{}, "", agent.Settings{Cache: &llm.Cache{System: true}}},
		{"marks, whole", agent.Settings{Cache: &llm.Cache{System: true}}, levels{nil, {Cache: &crew.Cache{Tools: true, TTL: "1h"}}, nil}, "",
			agent.Settings{Cache: &llm.Cache{Tools: true, TTL: "1h"}}},
		{"text calls stay the profile's", agent.Settings{TextCalls: true}, levels{{Model: text("m")}, nil, nil}, "", agent.Settings{TextCalls: true, Model: "m"}},
	} {
		levels := tt.levels[:]
		if got := agent.Elect(levels...); got != tt.profile {
			t.Errorf("%s: profile %q, want %q", tt.name, got, tt.profile)
		}
		if diff := cmp.Diff(tt.want, tt.base.Over(levels...)); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}
