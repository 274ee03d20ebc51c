package permission_test

import (
	"context"
	"encoding/json"
	"testing"

	"crewhost/tools"
	"crewhost/tools/permission"
)

// A tool that is not in the registry is judged like those that are.
func TestGuardJudgesToolsBesideTheRegistry(t *testing.T) {
	policy := mustPolicy(t, permission.Config{
		Default: permission.Deny, Allow: []permission.Rule{{Pattern: "ask"}}, Deny: []permission.Rule{{Pattern: "hand"}},
	})
	g := permission.NewGuard(registry(t), policy, nil)
	var outcomes []permission.Outcome
	g.Observe = func(o permission.Observation) { outcomes = append(outcomes, o.Outcome) }
	call := func(name, args string) (tools.Result, error) {
		tool := tool{tools.Definition{Name: name}, func(context.Context, tools.Call) (tools.Result, error) { return tools.Text("ran"), nil }}
		return g.CallTool(t.Context(), tool, tools.Call{Name: name, Arguments: json.RawMessage(args)})
	}
	if res, err := call("ask", "{}"); err != nil || text(res) != "ran" {
		t.Error(res, err)
	}
	if res, err := call("hand", "{}"); err != nil || !res.IsError {
		t.Error(res, err)
	}
	if _, err := call("ask", "[]"); tools.CodeOf(err) != tools.CodeArgumentsInvalid {
		t.Error(err)
	}
	want := []permission.Outcome{permission.Succeeded, permission.Denied, permission.Refused}
	for i, o := range want {
		if i >= len(outcomes) || outcomes[i] != o {
			t.Fatalf("%v", outcomes)
		}
	}
}
