package runner_test

import (
	"encoding/json"
	"testing"

	"crewhost/tools"
)

// Where everything is asked about and nobody is there, the tools that touch nothing are
// allowed, and others are not.
func TestHarmlessToolsAreAllowed(t *testing.T) {
	r := open(t, map[string]string{"crewhost.yaml": "permissions: {default: ask}\n"})
	for name, args := range map[string]string{"think": `{"thought":"high water at six"}`, "todo": `{"items":["read the log"]}`} {
		if res, err := r.host.Call(t.Context(), tools.Call{Name: name, Arguments: json.RawMessage(args)}); err != nil || res.IsError {
			t.Errorf("%s: %+v, %v", name, res, err)
		}
	}
	if res, err := r.host.Call(t.Context(), tools.Call{Name: "memory_store", Arguments: json.RawMessage(`{"text":"x"}`)}); err == nil && !res.IsError {
		t.Errorf("memory_store: %+v", res)
	}
	// A rule is heard all the same.
	r = open(t, map[string]string{"crewhost.yaml": "permissions: {default: ask, deny: [think]}\n"})
	if res, err := r.host.Call(t.Context(), tools.Call{Name: "think", Arguments: json.RawMessage(`{"thought":"x"}`)}); err == nil && !res.IsError {
		t.Errorf("%+v", res)
	}
}
