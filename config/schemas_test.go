package config

import "testing"

// A profile says where its server takes but plain schemas of tools.
func TestToolSchemas(t *testing.T) {
	s := load(t, "llm: {model: a, tool_schemas: full, profiles: {local: {model: b, tool_schemas: plain}, other: {model: c}}}\n")
	for id, want := range map[string]string{"": SchemasFull, "local": SchemasPlain, "other": ""} {
		if p, err := s.LLM.Select(id); err != nil || p.ToolSchemas != want {
			t.Errorf("%q: %q, %v", id, p.ToolSchemas, err)
		}
	}
	want := `crewhost.yaml:1:31: llm.tool_schemas: "plane" is not known (known: full, plain) [bad-value]`
	if got := faults(t, "llm: {model: a, tool_schemas: plane}\n"); got != want {
		t.Error(got)
	}
}
