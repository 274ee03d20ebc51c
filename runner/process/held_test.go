package process

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"crewhost/crew"
)

// What a crew gets to know of an agent's tools: those that it names, in its order, and
// what its toolsets bring.
func TestToolsOfAnAgent(t *testing.T) {
	held := func(*crew.Agent) []string { return []string{"a", "mcp__x__find", "search"} }
	named := []crew.Text{given("search"), given("off"), given("a")}
	for name, tt := range map[string]struct {
		plan  Plan
		agent crew.Agent
		want  []string
	}{
		"names":            {Plan{Held: held}, crew.Agent{Tools: named}, []string{"search", "off", "a"}},
		"toolsets":         {Plan{Held: held}, crew.Agent{Tools: named, Toolsets: []crew.Toolset{{}}}, []string{"search", "a", "mcp__x__find"}},
		"nobody knows":     {Plan{}, crew.Agent{Tools: named, Toolsets: []crew.Toolset{{}}}, []string{"search", "off", "a"}},
		"nothing but sets": {Plan{Held: held}, crew.Agent{Toolsets: []crew.Toolset{{}}}, []string{"a", "mcp__x__find", "search"}},
	} {
		if diff := cmp.Diff(tt.want, tt.plan.toolsOf(&tt.agent)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
