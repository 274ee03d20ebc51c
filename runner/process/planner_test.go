package process

import (
	"slices"
	"strings"
	"testing"

	"crewhost/crew"
)

func plannerWith(spawns int) *planner {
	c := &crew.Crew{Agents: []*crew.Agent{
		{Key: "a", Tools: []crew.Text{given("search"), given("file_read")}}, {Key: "b", Tools: []crew.Text{given("search")}},
	}}
	return &planner{
		run: &run{plan: Plan{Crew: c}}, pool: slices.Clone(c.Agents), meter: &meter{limit: crew.Budget{Spawns: spawns}},
	}
}

// What the schema of a step allows can be read.
func TestStepsAreReadByTheirSchema(t *testing.T) {
	for spawns, steps := range map[int]map[string]bool{
		0: {
			`{"agent_id":"a","reason":"r"}`:                                 true,
			`{"agent_id":"x","reason":"r"}`:                                 false,
			`{"specialist":{"role":"r","goal":"g"},"reason":"r"}`:           false,
			`{"agent_id":"a","specialist":{"role":"r","goal":"g"}}`:         false,
			`{"agent_id":"a","reason":"r","because":"nobody else is here"}`: false,
		},
		1: {
			`{"agent_id":"b","reason":"r"}`: true,
			`{"specialist":{"role":"r","goal":"g","backstory":"b","tools":["search"]},"reason":"r"}`: true,
			`{"specialist":{"role":"r"},"reason":"r"}`:                                               false,
		},
	} {
		p := plannerWith(spawns)
		schema, err := resolve(string(stepSchema(keysOf(p.pool), p.tools(), spawns > 0)))
		if err != nil {
			t.Fatal(err)
		}
		for text, want := range steps {
			if err := validate(schema, text); (err == nil) != want {
				t.Errorf("with %d specialists, %s: %v", spawns, text, err)
			}
			_, err := readAs(text, func(got step) error { _, err := p.read(got, p.pool); return err })
			if want && err != nil {
				t.Errorf("%s can't be read: %v", text, err)
			}
		}
	}
}

// A specialist has no toolset: it does not get by name what an agent's own switches off or
// has asked about.
func TestSpecialistsGetNothingAroundAToolset(t *testing.T) {
	off, ask := false, crew.Text{V: crew.AlwaysAsk, Set: true}
	entry := func(name string, enabled *bool, policy crew.Text) crew.ToolsetEntry {
		return crew.ToolsetEntry{Tool: given(name), Enabled: enabled, Policy: policy}
	}
	p := plannerWith(1)
	p.run.plan.Crew.Agents[0].Tools = append(p.run.plan.Crew.Agents[0].Tools, given("json_tool"), given("shell"))
	p.run.plan.Crew.Agents[0].Toolsets = []crew.Toolset{
		{Tools: []crew.ToolsetEntry{entry("file_read", nil, ask), entry("json_tool", &off, crew.Text{})}},
		{Server: given("own"), Tools: []crew.ToolsetEntry{entry("shell", &off, crew.Text{})}}, // of something else
	}
	if got := p.tools(); !slices.Equal(got, []string{"search", "shell"}) {
		t.Errorf("%q", got)
	}
	p.run.plan.Crew.Agents[0].Toolsets[0].Default.Policy = ask
	if got := p.tools(); !slices.Equal(got, []string{"search"}) { // the other agent's
		t.Errorf("%q", got)
	}
}

// A step is what a model wrote: it is refused, or names somebody of the crew or a
// specialist that holds to the rules.
func FuzzReadStep(f *testing.F) {
	f.Add(`{"agent_id":"a","reason":"it can"}`)
	f.Add(`{"agent_id":"","specialist":{"role":"Tide expert","goal":"explain","tools":["search","search"]},"reason":"nobody can"}`)
	f.Add(`{"agent_id":"a","specialist":{"role":"r","goal":"g","tools":["shell"]}}`)
	f.Add("I'd take\n```json\n{\"agent_id\": \" b \"}\n```")
	f.Fuzz(func(t *testing.T, answer string) {
		p := plannerWith(1)
		var chosen *crew.Agent
		if _, err := readAs(answer, func(got step) (err error) { chosen, err = p.read(got, p.pool); return err }); err != nil {
			return
		}
		if slices.Contains(p.pool, chosen) {
			return
		}
		for _, tool := range chosen.Tools {
			if tool.V != "search" && tool.V != "file_read" {
				t.Errorf("it has %q", tool.V)
			}
		}
		if len(chosen.Tools) > 2 || strings.TrimSpace(chosen.Role.V) == "" || strings.Contains(chosen.Role.V, "\n") || strings.TrimSpace(chosen.Goal.V) == "" {
			t.Errorf("%+v", chosen)
		}
	})
}
