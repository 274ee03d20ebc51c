package process

import (
	"container/heap"
	"slices"
)

// recent is how many of the latest tasks, beside those that it depends on, a task
// gets to see the outputs of. A prompt has no room for more, and a crew of
// thousands of tasks no use for it.
const recent = 50

// past finds what tasks get to see: the outputs of the tasks that they depend on,
// and of the latest others that they wait for, directly or not. So it follows from
// the plan alone, never from what happened to be done first.
type past struct {
	walk int // counts the walks, which leave their number at the slots they come by

	last *slot        // whose walk was the last
	seen []TaskOutput // and what it came to
}

// outputs returns what s gets to see, in the plan's order. All that it waits for
// has ended. Tasks that wait for the same ones, as those of a wave do, share what
// is returned.
func (p *past) outputs(s *slot) []TaskOutput {
	if p.last == nil || !slices.Equal(s.waits, p.last.waits) || !slices.Equal(s.needs, p.last.needs) {
		p.last, p.seen = s, p.find(s)
	}
	return p.seen
}

func (p *past) find(s *slot) []TaskOutput {
	p.walk++
	var way furthest
	visit := func(waits []*slot) {
		for _, w := range waits {
			if w.walk != p.walk {
				w.walk = p.walk
				heap.Push(&way, w)
			}
		}
	}
	var seen []*slot // the latest first
	visit(s.waits)
	for others := 0; others < recent && len(way) > 0; {
		w, _ := heap.Pop(&way).(*slot)
		seen = append(seen, w)
		if !w.among(s.needs) {
			others++
		}
		if w.lined { // the rest of what it waits for is behind that
			visit([]*slot{w.after})
		} else {
			visit(w.waits)
		}
	}
	// What s depends on and the walk did not come to is before all of that.
	for _, n := range slices.Backward(s.needs) {
		if len(seen) == 0 || n.place < seen[len(seen)-1].place {
			seen = append(seen, n)
		}
	}
	outputs := make([]TaskOutput, 0, len(seen))
	for _, w := range slices.Backward(seen) {
		if w.result.State == Completed {
			outputs = append(outputs, w.result.TaskOutput)
		}
	}
	return slices.Clip(outputs)
}

// furthest is a heap of slots, the last in the plan's order first.
type furthest []*slot

func (h furthest) Len() int           { return len(h) }
func (h furthest) Less(i, j int) bool { return h[i].place > h[j].place }
func (h furthest) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

func (h *furthest) Push(x any) {
	s, _ := x.(*slot)
	*h = append(*h, s)
}

func (h *furthest) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}
