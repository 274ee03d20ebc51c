package process

import (
	"fmt"
	"slices"

	"crewhost/crew"
)

// slot is the place of a task in a run.
type slot struct {
	run   *run
	place int // in the plan's order
	task  *crew.Task
	agent *crew.Agent // the one that it names, or whose turn it is; nil: nobody of the crew

	needs []*slot // what it depends on: it is skipped unless all of them are completed
	after *slot   // what the process puts before it besides, or nil
	lined bool    // after waits, directly or not, for all of needs but itself
	waits []*slot // both; as needs, each once and in the plan's order
	next  []*slot // what waits for it
	open  int     // how many of waits have not ended
	walk  int     // see past

	prior  []TaskOutput // what it gets to see, while it is done
	budget Budget       // what its attempts draw on; nil: without bounds
	work   work
	// result stands once the task has ended.
	result TaskResult
}

// distinct returns the slots, each once, in the plan's order.
func distinct(slots ...*slot) []*slot {
	slices.SortFunc(slots, byPlace)
	return slices.Compact(slots)
}

func byPlace(a, b *slot) int { return a.place - b.place }

// among reports whether s is one of slots that are in the plan's order.
func (s *slot) among(slots []*slot) bool {
	_, found := slices.BinarySearchFunc(slots, s, byPlace)
	return found
}

// unmet says why the task is to be skipped, or "": a task that it depends on is
// not completed.
func (s *slot) unmet() string {
	for _, n := range s.needs {
		switch n.result.State {
		case Completed:
		case Failed:
			return fmt.Sprintf("task %q, on which it depends, failed", n.task.Key)
		default:
			return fmt.Sprintf("task %q, on which it depends, was skipped", n.task.Key)
		}
	}
	return ""
}
