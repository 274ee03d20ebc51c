package process_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crewhost/crew"
	"crewhost/runner/process"
)

// keeper keeps what it is told.
type keeper []process.TaskOutput

func (k *keeper) Keep(_ context.Context, _ *crew.Task, out process.TaskOutput) { *k = append(*k, out) }

// A keeper is told of each task that is completed, once, and of no other.
func TestKeeper(t *testing.T) {
	c := &crew.Crew{
		Agents: []*crew.Agent{{Key: "a"}},
		Tasks: []*crew.Task{
			{Key: "good"}, {Key: "bad"}, {Key: "lost", Dependencies: []crew.Text{{V: "bad"}}}, {Key: "late", Dependencies: []crew.Text{{V: "good"}}},
		},
	}
	w := &worker{do: map[string]func(context.Context, process.TaskInput) (process.Answer, error){
		"bad": func(context.Context, process.TaskInput) (process.Answer, error) {
			return said("half"), errors.New("no")
		},
	}}
	var kept keeper
	if _, err := process.Run(t.Context(), process.Plan{Crew: c, Runner: w, Keeper: &kept}); err == nil {
		t.Error("the run did not fail")
	}
	if diff := cmp.Diff(keeper{{Task: "good", Agent: "a", Text: "good done"}, {Task: "late", Agent: "a", Text: "late done"}}, kept); diff != "" {
		t.Error(diff)
	}
}
