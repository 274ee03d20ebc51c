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
	waits []*slot // both, each once, in the plan's order

	next  []*slot // what waits for it
	open  int     // how many of waits have not ended
	heirs int     // how many of next do not know yet what they see

	seen  view         // what it waits for, directly or not; kept for its heirs
	prior []TaskOutput // what it gets to see, while it is done
	work  work
	// result stands once the task has ended.
	result TaskResult
}

// distinct are the slots and one more, each once, in the plan's order.
func distinct(slots []*slot, more *slot) []*slot {
	all := slices.Clone(slots)
	if more != nil {
		all = append(all, more)
	}
	slices.SortFunc(all, func(a, b *slot) int { return a.place - b.place })
	return slices.Compact(all)
}

// see finds what the task sees, and lets go of what no other task builds on.
func (s *slot) see(views *join) {
	s.seen = views.view(s.waits)
	for _, w := range s.waits {
		if w.heirs--; w.heirs == 0 {
			w.seen = view{}
		}
	}
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
