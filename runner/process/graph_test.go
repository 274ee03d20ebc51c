package process_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"crewhost/crew"
	"crewhost/runner/process"
)

func graphOf(c *crew.GraphConfig, specs ...string) *crew.Crew {
	all := crewOf(specs...)
	all.Process, all.Graph = crew.Graph, c
	return all
}

var errTide = errors.New("the tide\n is out")

// A failed task is tried again before the next one begins, and hears why.
func TestGraphRetriesBeforeTheNextTask(t *testing.T) {
	d := &diary{do: map[string][]doing{"b": {failing(errTide), failing(errors.New("the boat is gone"))}}}
	res, err := process.Run(t.Context(), process.Plan{Crew: graphOf(nil, "a", "b a", "c b"), Runner: d, Events: d.events()})
	if err != nil {
		t.Fatal(err)
	}
	const again, anew = " [An earlier attempt at this task failed: Attempt ", "  Do the task anew, and avoid what led to that.]"
	d.check(t,
		"task.started a a 1", "a tries a, 1", "task.completed a a 1 (true)",
		"task.started b b 1", "b tries b, 1", "task.retried b b 1: the tide is out (false)",
		"task.started b b 2", "b tries b, 2"+again+"1 ended with: the tide is out"+anew, "task.retried b b 2: the boat is gone (false)",
		"task.started b b 3", "b tries b, 3"+again+"2 ended with: the boat is gone"+anew, "task.completed b b 3 (true)",
		"task.started c a 1", "a tries c, 1", "task.completed c a 1 (true)",
	)
	b := res.Tasks[1]
	if b.State != process.Completed || b.Err != nil || b.Text != "b 3" || b.Attempts != 3 || b.Turns != 3 || b.Usage.Input != 9 || res.Usage.Input != 15 {
		t.Errorf("%+v", b)
	}
	if got := seen(d.tasks[4]); got != "a b" || d.tasks[4].Prior[1].Text != "b 3" {
		t.Errorf("c saw %q, %v", got, d.tasks[4].Prior)
	}
}

func TestGraphFailsByTheOneRule(t *testing.T) {
	d := &diary{do: map[string][]doing{"a": {failing(errTide), failing(errTide), failing(errTide)}}}
	res, err := process.Run(t.Context(), process.Plan{Crew: graphOf(nil, "a", "b a", "c"), Runner: d})
	var failure *process.CrewError
	if !errors.As(err, &failure) || failure.Cause != nil || !errors.Is(err, errTide) {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a failed", "b skipped", "c completed"}, states(res)); diff != "" {
		t.Error(diff)
	}
	if res.Tasks[0].Attempts != 3 || res.Tasks[1].Attempts != 0 {
		t.Errorf("%+v", res.Tasks)
	}
}

// The limits count what was done, name themselves, and leave what was not begun
// as it is.
func TestGraphLimits(t *testing.T) {
	for _, tt := range []struct {
		name   string
		config crew.GraphConfig
		fails  int // attempts of b that fail
		want   string
		states []string
	}{
		{"visits", crew.GraphConfig{MaxRetryCycles: 2, MaxStateVisits: new(2)}, 0,
			`maxStateVisits (2) is reached; task "c" was not begun`, []string{"a completed", "b completed", "c not_run"}},
		{"transitions", crew.GraphConfig{MaxRetryCycles: 2, MaxTransitions: new(4)}, 0,
			`maxTransitions (4) is reached; task "c" was not begun`, []string{"a completed", "b completed", "c not_run"}},
		{"retries count", crew.GraphConfig{MaxRetryCycles: 2, MaxStateVisits: new(3)}, 2,
			`maxStateVisits (3) is reached; task "b" failed: the tide`, []string{"a completed", "b failed", "c not_run"}},
		{"the least that will do", crew.GraphConfig{MaxRetryCycles: 2, MaxStateVisits: new(3), MaxTransitions: new(5)}, 0,
			"", []string{"a completed", "b completed", "c completed"}},
		{"unset, they allow every retry", crew.GraphConfig{MaxRetryCycles: 5}, 5, "", []string{"a completed", "b completed", "c completed"}},
		{"no retries", crew.GraphConfig{MaxRetryCycles: 0}, 1, `task "b" failed: the tide`, []string{"a completed", "b failed", "c completed"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := &diary{do: map[string][]doing{}}
			for range tt.fails {
				d.do["b"] = append(d.do["b"], failing(errTide))
			}
			res, err := process.Run(t.Context(), process.Plan{Crew: graphOf(&tt.config, "a", "b", "c"), Runner: d})
			switch {
			case tt.want == "" && err != nil, tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("%v, want %q", err, tt.want)
			}
			var limit *process.LimitError
			if errors.As(err, &limit) != strings.Contains(tt.want, "(") ||
				limit != nil && !strings.Contains(err.Error(), `crew "papers": Graph execution stopped by circuit breaker: `) {
				t.Errorf("%v", err)
			}
			if diff := cmp.Diff(tt.states, states(res)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestGraphDurations(t *testing.T) {
	for name, tt := range map[string]struct {
		config *crew.GraphConfig
		want   time.Duration
	}{
		"unsaid":     {nil, 10 * time.Minute},
		"strict":     {&crew.GraphConfig{Preset: "strict"}, 10 * time.Minute},
		"default":    {&crew.GraphConfig{Preset: "default"}, 30 * time.Minute},
		"permissive": {&crew.GraphConfig{Preset: "permissive"}, 2 * time.Hour},
		"said":       {&crew.GraphConfig{Preset: "permissive", MaxTotalSeconds: new(7)}, 7 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				d := &diary{do: map[string][]doing{"b": {func(ctx context.Context, _ process.TaskInput) (process.Answer, error) {
					<-ctx.Done()
					return said("so far"), context.Cause(ctx)
				}}}}
				res, err := process.Run(t.Context(), process.Plan{Crew: graphOf(tt.config, "a", "b", "c"), Runner: d})
				if took := time.Since(start); took != tt.want {
					t.Errorf("it took %v", took)
				}
				var limit *process.LimitError
				if !errors.As(err, &limit) || limit.Limit != "maxTotalDurationSeconds" ||
					!strings.HasSuffix(err.Error(), `is reached; task "b" was stopped; task "c" was not begun`) {
					t.Error(err)
				}
				if diff := cmp.Diff([]string{"a completed", "b stopped", "c not_run"}, states(res)); diff != "" {
					t.Error(diff)
				}
				if res.Final != "a 1" || res.Tasks[1].Text != "so far" {
					t.Errorf("%+v", res)
				}
			})
		})
	}
}
