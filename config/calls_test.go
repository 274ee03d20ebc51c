package config

import "testing"

// A profile says where its model has no calls of its own.
func TestToolCalls(t *testing.T) {
	s := load(t, "llm: {model: a, profiles: {local: {model: b, tool_calls: text}, other: {model: c, tool_calls: native}}}\n")
	for id, want := range map[string]string{"": "", "local": CallsText, "other": CallsNative} {
		if p, err := s.LLM.Select(id); err != nil || p.ToolCalls != want {
			t.Errorf("%q: %q, %v", id, p.ToolCalls, err)
		}
	}
	want := `crewhost.yaml:1:29: llm.tool_calls: "json" is not known (known: native, text) [bad-value]`
	if got := faults(t, "llm: {model: a, tool_calls: json}\n"); got != want {
		t.Error(got)
	}
}
