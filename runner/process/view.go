package process

import (
	"slices"
)

// view is the tasks whose outputs a task gets to see, in the plan's order: those
// that it waits for, directly or not. So it follows from the plan alone, never
// from what was done first.
//
// A view is the head of a line, and views that begin alike share one: what the
// thousandth task of a chain sees costs no more than what the first does.
type view struct {
	line *line
	n    int // how many tasks, from the first
}

// line is tasks in the plan's order. It only ever grows.
type line struct {
	tasks   []*slot
	outputs []TaskOutput // of the completed ones, as far as told; handed out
	told    []int        // how many outputs there are up to each task
}

// with returns the view and s behind it, which has a later place.
func (v view) with(s *slot) view {
	switch l := v.line; {
	case l == nil:
		v.line = &line{}
	case v.n == len(l.tasks):
	case l.tasks[v.n] == s:
		return view{l, v.n + 1}
	default:
		v.line = &line{tasks: slices.Clone(l.tasks[:v.n])}
	}
	v.line.tasks = append(v.line.tasks, s)
	return view{v.line, v.n + 1}
}

func (v view) tasks() []*slot {
	if v.line == nil {
		return nil
	}
	return v.line.tasks[:v.n]
}

func (v view) has(s *slot) bool {
	_, found := slices.BinarySearchFunc(v.tasks(), s.place, func(e *slot, place int) int { return e.place - place })
	return found
}

// outputs returns the outputs; every task in view must have ended. Who gets them
// must not change them.
func (v view) outputs() []TaskOutput {
	if v.n == 0 {
		return nil
	}
	l := v.line
	for i := len(l.told); i < v.n; i++ {
		if r := &l.tasks[i].result; r.State == Completed {
			l.outputs = append(l.outputs, r.TaskOutput)
		}
		l.told = append(l.told, len(l.outputs))
	}
	return slices.Clip(l.outputs[:l.told[v.n-1]])
}

// join finds what tasks see. Tasks that wait for the same ones, as those of a
// wave do, share a view.
type join struct {
	marks []bool // by place; all false between two calls
	waits []*slot
	seen  view // of the last task that waits for those
}

// view returns what a task that waits for the given ones sees. They are in the
// plan's order, and their own views are known.
func (j *join) view(waits []*slot) view {
	if len(waits) == 0 {
		return view{}
	}
	if slices.Equal(waits, j.waits) {
		return j.seen
	}
	last := waits[len(waits)-1]
	v := last.seen.with(last)
	var more []*slot // what v lacks
	for _, w := range waits {
		if !v.has(w) {
			more = append(more, w)
		}
	}
	if len(more) > 0 {
		v = j.merge(v, more)
	}
	j.waits, j.seen = waits, v
	return v
}

// merge returns a view of v, of more, and of what more waits for. A view holds
// with every task all that it waits for, so that the search ends at v.
func (j *join) merge(v view, more []*slot) view {
	for _, s := range v.tasks() {
		j.marks[s.place] = true
	}
	for _, s := range more {
		j.marks[s.place] = true
	}
	for i := 0; i < len(more); i++ {
		for _, w := range more[i].waits {
			if !j.marks[w.place] {
				j.marks[w.place] = true
				more = append(more, w)
			}
		}
	}
	slices.SortFunc(more, func(a, b *slot) int { return a.place - b.place })
	all := make([]*slot, 0, v.n+len(more))
	for _, s := range v.tasks() {
		for len(more) > 0 && more[0].place < s.place {
			all, more = append(all, more[0]), more[1:]
		}
		all = append(all, s)
	}
	all = append(all, more...)
	for _, s := range all {
		j.marks[s.place] = false
	}
	return view{&line{tasks: all}, len(all)}
}
