package permission_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"crewhost/tools"
	"crewhost/tools/permission"
)

// Each call is attested before anybody reads what came of it, also one that was
// refused; what can't be attested comes to nothing.
func TestAttest(t *testing.T) {
	ran := 0
	count := tool{tools.Definition{Name: "count", Description: "Counts."}, func(context.Context, tools.Call) (tools.Result, error) {
		ran++
		return tools.Result{Content: []tools.Content{{Text: "four"}, {Data: []byte("5bits")}}, Structured: json.RawMessage(`{}`)}, nil
	}}
	policy := mustPolicy(t, permission.Config{Default: permission.Allow, Deny: []permission.Rule{{Pattern: "count:n=0"}}})
	g := permission.NewGuard(registry(t, count), policy, nil)
	var seen []permission.Observation
	var broken error
	g.Attest = func(_ context.Context, o permission.Observation) error {
		seen = append(seen, o)
		return broken
	}
	call := func(name, args string) (tools.Result, error) {
		return g.Call(t.Context(), tools.Call{Name: name, Arguments: json.RawMessage(args)})
	}
	if _, err := call("count", `{}`); err != nil {
		t.Fatal(err)
	}
	_, _ = call("count", `{"n":0}`)
	_, _ = call("counts", `{}`)
	if len(seen) != 3 {
		t.Fatalf("%d calls were attested, of 3", len(seen))
	}
	if o := seen[0]; !o.Ran || o.Bytes != 11 || o.Outcome != permission.Succeeded || o.Definition.Description != "Counts." {
		t.Errorf("the first is attested as %+v", o)
	}
	if o := seen[1]; o.Ran || o.Outcome != permission.Denied || o.Definition.Name != "count" {
		t.Errorf("the denied one is attested as %+v", o)
	}
	if o := seen[2]; o.Ran || o.Outcome != permission.Refused || o.Err == nil || o.Definition.Name != "" {
		t.Errorf("the unknown one is attested as %+v", o)
	}
	broken = errors.New("the disk is full")
	if res, err := call("count", `{}`); !errors.Is(err, broken) || len(res.Content) > 0 {
		t.Errorf("a call that could not be attested came to %v, %v", res, err)
	}
	if ran != 2 {
		t.Errorf("the tool ran %d times, and should have twice", ran)
	}
}
