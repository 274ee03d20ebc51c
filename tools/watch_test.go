package tools_test

import (
	"testing"

	"crewhost/tools"
)

// Whoever watches is told of each change, sees it, and is told no more after stop.
func TestRegistryWatch(t *testing.T) {
	var reg tools.Registry
	told, seen := 0, 0
	stop := reg.Watch(func() {
		told++
		seen = len(reg.Names())
	})
	for _, step := range []struct {
		do         func()
		told, seen int
	}{
		{func() { _ = reg.Add(named("a", "")) }, 1, 1},
		{func() { _ = reg.Add(named("a", "")) }, 1, 1}, // refused
		{func() { reg.Replace([]string{"a"}, []tools.Tool{named("b", ""), named("c", "")}) }, 2, 2},
		{func() { reg.Replace(nil, nil) }, 2, 2},
		{func() { reg.Remove("b") }, 3, 1},
		{func() { reg.Remove("b") }, 3, 1},
		{stop, 3, 1},
		{func() { reg.Remove("c") }, 3, 1},
	} {
		step.do()
		if told != step.told || seen != step.seen {
			t.Fatalf("told %d times and saw %d tools, want %d and %d", told, seen, step.told, step.seen)
		}
	}
}
