package process

import (
	"container/heap"
	"fmt"
	"sort"
	"strings"

	"crewhost/crew"
)

// Order returns the tasks of a crew such that each follows those that it depends
// on. Where that leaves a choice, the task that is declared first comes first.
// A dependency that names nothing and a cycle are errors.
func Order(c *crew.Crew) ([]*crew.Task, error) {
	at := make(map[string]int, len(c.Tasks))
	for i, t := range c.Tasks {
		at[t.Key] = i
	}
	waits := make([]int, len(c.Tasks)) // dependencies that are not placed yet
	next := make([][]int, len(c.Tasks))
	for i, t := range c.Tasks {
		for _, d := range t.Dependencies {
			on, ok := at[d.V]
			if !ok {
				return nil, fmt.Errorf("task %q depends on %q, which is no task", t.Key, d.V)
			}
			waits[i]++
			next[on] = append(next[on], i)
		}
	}
	ready := &indexes{}
	for i, n := range waits {
		if n == 0 {
			heap.Push(ready, i)
		}
	}
	order := make([]*crew.Task, 0, len(c.Tasks))
	for ready.Len() > 0 {
		i, _ := heap.Pop(ready).(int)
		order = append(order, c.Tasks[i])
		for _, n := range next[i] {
			if waits[n]--; waits[n] == 0 {
				heap.Push(ready, n)
			}
		}
	}
	if len(order) < len(c.Tasks) {
		var stuck []string
		for i, n := range waits {
			if n > 0 {
				stuck = append(stuck, c.Tasks[i].Key)
			}
		}
		return nil, fmt.Errorf("the dependencies of these tasks form a cycle, or wait for one: %s", strings.Join(stuck, ", "))
	}
	return order, nil
}

// indexes is a heap of indexes, the smallest first.
type indexes struct{ sort.IntSlice }

func (h *indexes) Push(x any) {
	i, _ := x.(int)
	h.IntSlice = append(h.IntSlice, i)
}

func (h *indexes) Pop() any {
	last := h.IntSlice[len(h.IntSlice)-1]
	h.IntSlice = h.IntSlice[:len(h.IntSlice)-1]
	return last
}
