package runner

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"crewhost/crew"
)

// A missing key is found before the first task: every process names the models
// that it may ask, and no others.
func TestProfilesOfACrew(t *testing.T) {
	on := func(profile string) *crew.LLM { return &crew.LLM{Profile: crew.Text{V: profile, Set: profile != ""}} }
	text := func(s string) crew.Text { return crew.Text{V: s, Set: s != ""} }
	for _, tt := range []struct {
		process crew.Process
		manager string
		agent   string // of the one task
		task    *crew.LLM
		crew    *crew.LLM
		want    []string
	}{
		{crew.Sequential, "", "a", nil, nil, []string{"pa"}},
		{crew.Sequential, "", "c", nil, nil, []string{""}},
		{crew.Sequential, "", "c", nil, on("pc"), []string{"pc"}},
		{crew.Sequential, "", "a", on("pt"), on("pc"), []string{"pt"}},
		{crew.Parallel, "", "", nil, nil, []string{"", "pa", "pb"}},
		{crew.Hierarchical, "b", "a", nil, nil, []string{"", "pa", "pb"}},
		{crew.Consensual, "", "a", on("pt"), nil, []string{"", "pa", "pb", "pt"}},
		{crew.Consensual, "b", "", on("pt"), on("pc"), []string{"pa", "pb", "pc", "pt"}},
		{crew.Autonomous, "", "a", on("pt"), on("pc"), []string{"pa", "pb", "pc", "pt"}},
	} {
		c := &crew.Crew{
			Process: tt.process, ManagerAgent: text(tt.manager), LLM: tt.crew,
			Agents: []*crew.Agent{{Key: "a", LLM: on("pa")}, {Key: "b", LLM: on("pb")}, {Key: "c"}},
			Tasks:  []*crew.Task{{Key: "t", Agent: text(tt.agent), LLM: tt.task}},
		}
		if diff := cmp.Diff(tt.want, profilesOf(c)); diff != "" {
			t.Errorf("%s, managed by %q: %s", tt.process, tt.manager, diff)
		}
	}
}

// Coworkers are asked on their own models, and a plan on the crew's.
func TestProfilesBesideTheTasks(t *testing.T) {
	on := func(profile string) *crew.LLM { return &crew.LLM{Profile: crew.Text{V: profile, Set: true}} }
	for _, tt := range []struct {
		process        crew.Process
		a, b, planning bool // who delegates
		want           []string
	}{
		{crew.Sequential, true, false, false, []string{"pb", "pt"}},
		{crew.Sequential, false, true, false, []string{"pt"}}, // b is asked by nobody
		{crew.Graph, true, true, false, []string{"pb", "pt"}},
		{crew.Parallel, true, true, false, []string{"pt"}},
		{crew.Parallel, false, false, true, []string{"pc", "pt"}},
		{crew.Hierarchical, true, true, false, []string{"pb", "pt"}}, // the manager, but no coworker
	} {
		c := &crew.Crew{
			Process: tt.process, Planning: tt.planning, LLM: on("pc"),
			Agents: []*crew.Agent{{Key: "a", LLM: on("pa"), AllowDelegation: tt.a}, {Key: "b", LLM: on("pb"), AllowDelegation: tt.b}},
			Tasks:  []*crew.Task{{Key: "t", Agent: crew.Text{V: "a", Set: true}, LLM: on("pt")}},
		}
		if tt.process == crew.Hierarchical {
			c.ManagerAgent = crew.Text{V: "b", Set: true}
		}
		if diff := cmp.Diff(tt.want, profilesOf(c)); diff != "" {
			t.Errorf("%+v: %s", tt, diff)
		}
	}
}
