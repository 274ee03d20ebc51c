package process_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"crewhost/crew"
	"crewhost/runner/process"
)

func parallelOf(atOnce int, specs ...string) *crew.Crew {
	c := crewOf(specs...)
	c.Process, c.MaxConcurrency = crew.Parallel, atOnce
	return c
}

// lasting answers after a while.
func lasting(d time.Duration, text string) []doing {
	return []doing{func(ctx context.Context, _ process.TaskInput) (process.Answer, error) {
		select {
		case <-time.After(d):
			return said(text), nil
		case <-ctx.Done():
			return said("half of " + text), context.Cause(ctx)
		}
	}}
}

// A task begins when what it depends on is done, however long others of its wave
// take, and sees what it depends on and nothing else.
func TestParallelTasksBeginAsSoonAsTheyCan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &diary{do: map[string][]doing{
			"a": lasting(time.Second, "A"), "b": lasting(10*time.Second, "B"), "c": lasting(2*time.Second, "C"),
			"d": lasting(time.Second, "D"), "e": lasting(time.Second, "E"), "f": lasting(time.Second, "F"),
		}}
		start := time.Now()
		res, err := process.Run(t.Context(), process.Plan{
			Crew:   parallelOf(0, "f e b", "a", "b", "c a", "d c a", "e b"),
			Runner: d,
		})
		if err != nil || time.Since(start) != 12*time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		got := map[string]string{}
		for _, in := range d.tasks {
			got[in.Task.Key] = seen(in)
		}
		if diff := cmp.Diff(map[string]string{"a": "", "b": "", "c": "a", "d": "a c", "e": "b", "f": "b e"}, got); diff != "" {
			t.Error(diff)
		}
		// The order of results is the plan's.
		if diff := cmp.Diff([]string{"a completed", "b completed", "c completed", "d completed", "e completed", "f completed"}, states(res)); diff != "" {
			t.Error(diff)
		}
		if res.Final != "F" {
			t.Errorf("final %q", res.Final)
		}
	})
}

func TestParallelRunsSoManyAtOnce(t *testing.T) {
	for atOnce, most := range map[int]int32{0: 8, 1: 1, 3: 3, 100: 20} {
		synctest.Test(t, func(t *testing.T) {
			var specs []string
			d := &diary{do: map[string][]doing{}}
			var now, peak atomic.Int32
			for i := range 20 {
				key := fmt.Sprintf("t%02d", i)
				specs = append(specs, key)
				d.do[key] = []doing{func(context.Context, process.TaskInput) (process.Answer, error) {
					if n := now.Add(1); n > peak.Load() {
						peak.Store(n)
					}
					time.Sleep(time.Second) // the bubble's clock
					now.Add(-1)
					return said("done"), nil
				}}
			}
			if _, err := process.Run(t.Context(), process.Plan{Crew: parallelOf(atOnce, specs...), Runner: d}); err != nil {
				t.Error(err)
			}
			if peak.Load() != most {
				t.Errorf("maxConcurrency %d: %d at once, want %d", atOnce, peak.Load(), most)
			}
			if atOnce == 1 { // then the order of calls is the plan's
				for i, in := range d.tasks {
					if in.Task.Key != specs[i] {
						t.Errorf("%s is number %d", in.Task.Key, i)
					}
				}
			}
		})
	}
}

// So few at once that nothing runs beside anything, a sequential crew with
// asynchronous tasks is through all the same.
func TestSequentialKeepsToItsCap(t *testing.T) {
	c := crewOf("a&", "b&", "c", "d a", "e&")
	c.MaxConcurrency = 1
	d := &diary{}
	if _, err := process.Run(t.Context(), process.Plan{Crew: c, Runner: d}); err != nil {
		t.Fatal(err)
	}
	d.check(t, "a tries a, 1", "b tries b, 1", "a tries c, 1", "b tries d, 1", "a tries e, 1")
}

func TestParallelFailsByTheOneRule(t *testing.T) {
	d := &diary{do: map[string][]doing{"b": {failing(errTide)}}}
	res, err := process.Run(t.Context(), process.Plan{Crew: parallelOf(1, "a", "b", "c b", "d c a", "e a"), Runner: d, Events: d.events()})
	want := `crew "papers": task "b" failed: the tide` + "\n" + ` is out; task "c" was skipped: task "b", on which it depends, failed; ` +
		`task "d" was skipped: task "c", on which it depends, was skipped`
	if err == nil || err.Error() != want {
		t.Errorf("%v", err)
	}
	if diff := cmp.Diff([]string{"a completed", "b failed", "c skipped", "d skipped", "e completed"}, states(res)); diff != "" {
		t.Error(diff)
	}
	d.check(t,
		"task.started a a 1", "a tries a, 1", "task.completed a a 1 (true)",
		"task.started b b 1", "b tries b, 1", "task.failed b b 1: the tide is out (false)", "task.completed b b 1: the tide is out (false)",
		"task.skipped c a 1: task \"b\", on which it depends, failed", "task.completed c a 1: task \"b\", on which it depends, failed (false)",
		"task.skipped d b 1: task \"c\", on which it depends, was skipped", "task.completed d b 1: task \"c\", on which it depends, was skipped (false)",
		"task.started e a 1", "a tries e, 1", "task.completed e a 1 (true)",
	)
}

// A run that takes too long fails as a crew, with what was done; it was not
// interrupted.
func TestMaxDurationEndsARun(t *testing.T) {
	for _, p := range []crew.Process{crew.Sequential, crew.Parallel, crew.Graph} {
		synctest.Test(t, func(t *testing.T) {
			c := crewOf("a", "b a", "c b")
			c.Process, c.MaxDuration = p, 90*time.Second
			d := &diary{do: map[string][]doing{"b": lasting(time.Hour, "B")}}
			start := time.Now()
			res, err := process.Run(t.Context(), process.Plan{Crew: c, Runner: d})
			var failure *process.CrewError
			var deadline *process.DeadlineError
			if !errors.As(err, &failure) || !errors.As(failure.Cause, &deadline) || errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			want := `crew "papers": the run took longer than its maxDuration of 1m30s; task "b" was stopped; task "c" was not begun`
			if err.Error() != want || time.Since(start) != 90*time.Second {
				t.Errorf("%v after %v", err, time.Since(start))
			}
			if diff := cmp.Diff([]string{"a completed", "b stopped", "c not_run"}, states(res)); diff != "" {
				t.Error(diff)
			}
			if res.Final != "a 1" || res.Tasks[1].Text != "half of B" || !errors.As(res.Tasks[1].Err, &deadline) {
				t.Errorf("%+v", res)
			}
		})
	}
	// A run that is through by then is not late, and an interrupt is no deadline.
	c := crewOf("a")
	c.MaxDuration = time.Hour
	if _, err := process.Run(t.Context(), process.Plan{Crew: c, Runner: &diary{}}); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	errStop := errors.New("interrupted")
	d := &diary{do: map[string][]doing{"a": {func(context.Context, process.TaskInput) (process.Answer, error) {
		cancel(errStop)
		return process.Answer{}, errStop
	}}}}
	_, err := process.Run(ctx, process.Plan{Crew: c, Runner: d})
	var failure *process.CrewError
	if !errors.Is(err, errStop) || errors.As(err, &failure) {
		t.Error(err)
	}
}

// However many tasks there are, a task sees those that it depends on and the
// latest fifty of the others.
func TestATaskSeesTheLatestOthers(t *testing.T) {
	for _, p := range []crew.Process{crew.Sequential, crew.Graph, crew.Parallel} {
		specs := chain(200)
		specs[199] += " t3 t180 t5"
		c := crewOf(specs...)
		c.Process = p
		d := &diary{do: map[string][]doing{"t190": {failing(errTide)}}}
		if p != crew.Sequential { // where one that depends on a failed task would not run at all
			d.do = nil
		} else {
			c.Tasks[191].Dependencies = nil
		}
		if _, err := process.Run(t.Context(), process.Plan{Crew: c, Runner: d}); (err != nil) != (p == crew.Sequential) {
			t.Fatal(err)
		}
		want := []string{"t3", "t5"}
		for i := 147; i < 199; i++ { // fifty others, t180 and t198
			if i != 190 || p != crew.Sequential {
				want = append(want, fmt.Sprintf("t%d", i))
			}
		}
		last := d.tasks[len(d.tasks)-1]
		if diff := cmp.Diff(strings.Join(want, " "), seen(last)); diff != "" {
			t.Errorf("%s: %s", p, diff)
		}
	}
}
