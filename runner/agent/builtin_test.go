package agent

import (
	"bytes"
	"encoding/json"
	"testing"

	"crewhost/runner/llm"
	"crewhost/runner/llm/provider"
	"crewhost/tools/builtin"
)

// The host's own tools reach the model of every provider as they are: nothing of their
// schemas is taken away, wrapped or renamed, and their names are told as they stand. Types are written as an API knows them.
func TestBuiltinSchemasReachEveryModel(t *testing.T) {
	all := builtin.All(builtin.Config{})
	if len(all) < 16 {
		t.Fatalf("only %d tools", len(all))
	}
	var names []string
	for _, tool := range all {
		names = append(names, tool.Tool.Name)
	}
	for i, wire := range wireNames(names) {
		if wire != names[i] {
			t.Errorf("%s is told as %s", names[i], wire)
		}
	}
	bytesOfAll := 0
	for _, tool := range all {
		bytesOfAll += len(tool.Tool.Name) + len(tool.Tool.Description) + len(tool.Tool.Schema)
		for _, row := range provider.All() {
			dialect := row.Dialect(provider.Config{BaseURL: row.BaseURL, Model: "m"})
			got := adapt(json.RawMessage(tool.Tool.Schema), dialect)
			if len(got.warnings) > 0 || got.wrapper != "" || len(got.own) > 0 {
				t.Errorf("%s, %s: warnings %q, wrapped in %q, renamed %v", row.Name, tool.Tool.Name, got.warnings, got.wrapper, got.own)
			}
			if want := oneWordTypes(t, tool.Tool.Schema, row.Name); !bytes.Equal(got.schema, want) {
				t.Errorf("%s, %s: the schema is told otherwise", row.Name, tool.Tool.Name)
			}
		}
		lists(t, tool.Tool.Name, decoded(json.RawMessage(tool.Tool.Schema)))
	}
	t.Logf("%d tools take about %d tokens", len(all), llm.EstimateTokens(bytesOfAll))
}

// oneWordTypes is a schema as a provider is told it: Gemini alone has types of one word,
// and lists of them are told it as anyOf. Nothing else is another.
func oneWordTypes(t *testing.T, schema, provider string) []byte {
	t.Helper()
	tree, ok := decoded(json.RawMessage(schema)).(map[string]any)
	if provider != "gemini" || !ok || !unite(tree) {
		return []byte(schema)
	}
	text, err := json.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// lists wants what lists are of to be said, without which Gemini refuses a schema.
func lists(t *testing.T, name string, schema any) {
	switch s := schema.(type) {
	case map[string]any:
		if s["type"] == "array" && s["items"] == nil {
			t.Errorf("%s: what is a list of? %v", name, s)
		}
		for _, v := range s {
			lists(t, name, v)
		}
	case []any:
		for _, v := range s {
			lists(t, name, v)
		}
	}
}
