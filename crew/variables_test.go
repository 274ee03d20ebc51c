package crew

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The variables of a crew are those of its texts, whatever their spelling (K59),
// with the crew's own values.
func TestVariables(t *testing.T) {
	c := &Crew{
		Goal:   Text{V: "{Topic} for {who-reads}"},
		Agents: []*Agent{{Key: "a", Goal: Text{V: "{topic} \\{not} ${nor} { this }"}}},
		Tasks:  []*Task{{Key: "t", Description: Text{V: "{Depth}"}, Deliverable: &Deliverable{Path: Text{V: "/out/{topic}.md"}}}},
		Inputs: Inputs{"depth": "two", "unused": "x"},
	}
	want := []Variable{{Name: "depth", Default: "two", Given: true}, {Name: "topic"}, {Name: "who_reads"}}
	if diff := cmp.Diff(want, c.Variables()); diff != "" {
		t.Error(diff)
	}
}
