package process_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"crewhost/crew"
	"crewhost/runner/process"
)

type instant struct{}

func (instant) RunTask(context.Context, process.TaskInput) (process.Answer, error) {
	return process.Answer{Text: "done"}, nil
}

// chain is tasks each of which depends on the one before.
func chain(n int) []string {
	specs := []string{"t0"}
	for i := 1; i < n; i++ {
		specs = append(specs, fmt.Sprintf("t%d t%d", i, i-1))
	}
	return specs
}

// waves is tasks in waves of a hundred. Each depends on three of the wave before,
// or on all of them.
func waves(n int, whole bool) []string {
	const width = 100
	var specs []string
	for i := range n {
		spec := fmt.Sprintf("t%d", i)
		if first := i/width*width - width; first >= 0 {
			on := []int{i, i + 1, i + 37}
			if whole {
				on = on[:0]
				for j := range width {
					on = append(on, j)
				}
			}
			for _, j := range on {
				spec += fmt.Sprintf(" t%d", first+j%width)
			}
		}
		specs = append(specs, spec)
	}
	return specs
}

// BenchmarkTasks measures a process's own cost of a task: it is to stay below
// 200 µs and the same however many there are.
func BenchmarkTasks(b *testing.B) {
	for _, p := range []crew.Process{crew.Sequential, crew.Parallel, crew.Graph} {
		for _, shape := range []string{"chain", "waves", "whole waves", "alone"} {
			for _, n := range []int{100, 1000, 4000} {
				b.Run(fmt.Sprintf("%s/%s/%d", p, strings.ReplaceAll(shape, " ", "-"), n), func(b *testing.B) {
					var specs []string
					switch shape {
					case "chain":
						specs = chain(n)
					case "alone":
						for i := range n {
							specs = append(specs, fmt.Sprintf("t%d", i))
						}
					default:
						specs = waves(n, shape == "whole waves")
					}
					c := crewOf(specs...)
					c.Process = p
					b.ReportAllocs()
					for b.Loop() {
						if _, err := process.Run(b.Context(), process.Plan{Crew: c, Runner: instant{}}); err != nil {
							b.Fatal(err)
						}
					}
					b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/task")
				})
			}
		}
	}
}

// weigher is an instant runner that says, when it does the last task, how much
// memory the run holds.
type weigher struct {
	last string
	live uint64
}

func live() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func (w *weigher) RunTask(_ context.Context, in process.TaskInput) (process.Answer, error) {
	if in.Task.Key == w.last {
		w.live = live()
	}
	return process.Answer{Text: in.Task.Key + strings.Repeat(" and so on", 100)}, nil
}

// What a run holds is what its tasks left, and a little for each of them.
func TestMemoryGrowsWithWhatIsKept(t *testing.T) {
	for _, p := range []crew.Process{crew.Sequential, crew.Parallel, crew.Graph} {
		per := map[int]uint64{}
		for _, n := range []int{500, 4000} {
			c := crewOf(chain(n)...)
			c.Process = p
			before := live()
			w := &weigher{last: fmt.Sprintf("t%d", n-1)}
			if _, err := process.Run(t.Context(), process.Plan{Crew: c, Runner: w}); err != nil {
				t.Fatal(err)
			}
			per[n] = (max(w.live, before) - before) / uint64(n)
		}
		t.Logf("%s: %d bytes a task of 500, %d of 4000", p, per[500], per[4000])
		if per[4000] > 2*per[500]+1000 || per[4000] > 5000 {
			t.Errorf("%s: %d bytes a task of 500, %d of 4000", p, per[500], per[4000])
		}
	}
}

// What a process makes for a task is the same however many tasks there are, and a
// thousand of them are through in five times the 200 µs each that they may cost at
// most: the benchmark has the figure proper.
func TestATaskCostsTheSameAmongThousands(t *testing.T) {
	for _, p := range []crew.Process{crew.Sequential, crew.Parallel, crew.Graph} {
		for shape, specs := range map[string]func(int) []string{"chain": chain, "waves": func(n int) []string { return waves(n, false) }} {
			measure := func(n int) (made, bytes uint64, took time.Duration) {
				c := crewOf(specs(n)...)
				c.Process = p
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				start := time.Now()
				if _, err := process.Run(t.Context(), process.Plan{Crew: c, Runner: instant{}}); err != nil {
					t.Fatal(err)
				}
				took = time.Since(start)
				runtime.ReadMemStats(&after)
				return (after.Mallocs - before.Mallocs) / uint64(n), (after.TotalAlloc - before.TotalAlloc) / uint64(n), took
			}
			few, small, took := measure(1000)
			for range 2 {
				_, _, again := measure(1000)
				took = min(took, again)
			}
			many, large, _ := measure(3000)
			t.Logf("%s in %s: %d objects and %d bytes a task of 1000, %d and %d of 3000; %v", shape, p, few, small, many, large, took)
			if many > 2*few || large > 2*small || took > time.Second {
				t.Errorf("%s in %s: %d objects and %d bytes a task of 1000, %d and %d of 3000; 1000 took %v", shape, p, few, small, many, large, took)
			}
		}
	}
}
