package mcp

import (
	"fmt"
	"slices"
	"testing"

	"crewhost/config"
	"crewhost/tools"
)

func defs(names ...string) []tools.Definition {
	var defs []tools.Definition
	for _, name := range names {
		defs = append(defs, tools.Definition{Name: name})
	}
	return defs
}

// O12: what a server held stays its own, but not without end.
func TestNames(t *testing.T) {
	var reg tools.Registry
	n := newNames(&reg)
	a, b := &session{server: config.Server{Name: "a"}}, &session{server: config.Server{Name: "b"}}
	if held, skipped := n.publish(a, defs("x", "y")); len(held) != 2 || len(skipped) != 0 {
		t.Fatalf("%v, %v", held, skipped)
	}
	n.publish(a, defs("y"))
	held, skipped := n.publish(b, defs("x", "z", "y"))
	if len(held) != 1 || len(skipped) != 2 || skipped[0].Tool != "x" || skipped[1].Tool != "y" || skipped[0].Holder != `server "a"` {
		t.Errorf("b holds %v, %v", held, skipped)
	}
	if got := reg.Names(); !slices.Equal(got, []string{"y", "z"}) {
		t.Errorf("registered %q", got)
	}
	for i := range 3 {
		var many []string
		for j := range maxOwned / 2 {
			many = append(many, fmt.Sprintf("n%d_%d", i, j))
		}
		n.publish(a, defs(many...))
	}
	if len(n.owners) > 2*maxOwned {
		t.Errorf("%d names are kept", len(n.owners))
	}
	if held, _ := n.publish(b, defs("x", "z")); len(held) != 2 {
		t.Errorf("b holds %v", held)
	}
	n.close()
	if got := reg.Names(); len(got) != 0 {
		t.Errorf("after close: %q", got)
	}
	if held, _ := n.publish(b, defs("x")); held != nil || len(reg.Names()) != 0 {
		t.Error("registered after close")
	}
}
