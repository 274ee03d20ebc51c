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
	"crewhost/runner/event"
	"crewhost/runner/event/eventtest"
	"crewhost/runner/llm"
	"crewhost/runner/process"
)

// autonomousOf is a crew that plans for itself, of the agents a (who searches)
// and b, who may both delegate.
func autonomousOf(change func(*crew.Budget), specs ...string) *crew.Crew {
	c := crewOf(specs...)
	c.Process, c.Goal = crew.Autonomous, text("Know the tides")
	c.Agents = []*crew.Agent{
		{Key: "a", Role: text("Scout"), Goal: text("look"), Tools: []crew.Text{text("search"), text("file_read")}, AllowDelegation: true},
		{Key: "b", Role: text("Writer"), Goal: text("write"), AllowDelegation: true},
	}
	budget := crew.DefaultBudget()
	if change != nil {
		change(&budget)
	}
	c.Autonomous = &crew.AutonomousConfig{Budget: budget}
	return c
}

func runAutonomous(t *testing.T, d *diary, c *crew.Crew) (*process.Result, error) {
	t.Helper()
	return process.Run(t.Context(), process.Plan{Crew: c, Runner: d, Questioner: d, Events: d.events()})
}

const takeA, takeB = `{"agent_id":"a","reason":"it can search"}`, `{"agent_id":"b","reason":"it writes"}`

func TestAutonomousSequenceOfCalls(t *testing.T) {
	d := &diary{
		do: map[string][]doing{"find": {failing(errTide)}},
		says: map[string][]string{
			"assign find":  {takeA, takeB},
			"assign write": {`{"specialist":{"role":"Tide expert","goal":"explain","tools":["search","search"]},"reason":"nobody knows tides"}`},
			"assign check": {`{"agent_id":"specialist","specialist":{},"reason":"it knows"}`},
		},
	}
	c := autonomousOf(nil, "find", "write find", "check")
	res, err := runAutonomous(t, d, c)
	if err != nil {
		t.Fatal(err)
	}
	d.check(t,
		"planner is asked to assign find",
		"task.assigned find planner 1: a: it can search",
		"task.started find a 1", "a tries find, 1", "task.retried find a 1: the tide is out (false)",
		"planner is asked to assign find",
		"task.assigned find planner 1: b: it writes",
		"task.started find b 2",
		"b tries find, 2 [Earlier tries at this task: a tried and failed: the tide is out  This is as far as it came:  > half  The task is yours now. Do it whole, and avoid what led to that.]",
		"task.completed find b 2 (true)",
		"planner is asked to assign write",
		"agent.spawned write planner 1: specialist: nobody knows tides",
		"task.assigned write planner 1: specialist: nobody knows tides",
		"task.started write specialist 1", "specialist tries write, 1", "task.completed write specialist 1 (true)",
		"planner is asked to assign check",
		"task.assigned check planner 1: specialist: it knows",
		"task.started check specialist 1", "specialist tries check, 1", "task.completed check specialist 1 (true)",
	)
	if res.Asked["assign"].Input != 400 || res.Usage.Input != 412 || res.Final != "check 1" {
		t.Errorf("%+v", res)
	}
	made := d.tasks[2].Agent
	want := &crew.Agent{
		Key: "specialist", Role: text("Tide expert"), Goal: text("explain"), Tools: []crew.Text{text("search")}, AllowDelegation: true, MaxIter: 20,
	}
	if diff := cmp.Diff(want, made); diff != "" {
		t.Error(diff)
	}
	if len(c.Agents) != 2 {
		t.Error("the specialist stays in the crew after the run")
	}
}

// The planner knows the goal, the task, who there is, what is done, what is open,
// who failed and what is left; and it speaks for the crew, on the crew's model.
func TestWhatThePlannerKnows(t *testing.T) {
	d := &diary{
		do:   map[string][]doing{"write": {failing(errTide)}},
		says: map[string][]string{"assign": {takeA, takeA, takeB, takeB}},
	}
	c := autonomousOf(nil, "find", "write@b find", "check write")
	if _, err := runAutonomous(t, d, c); err != nil {
		t.Fatal(err)
	}
	q := d.asked[2]
	for _, want := range []string{
		"Know the tides", "task write", "same\n\nExpected output: same", "The crew's author meant it for b", "- a: the tide is out",
		"- find, by a: find 1", "- check: same", "## b\n\nRole: Writer\nGoal: write\n",
		"50 of 50 calls of tools, 63780 of 64000 tokens, 10 of 10 specialists", "Tools that it can have: file_read, search.",
	} {
		if !strings.Contains(q.Text, want) {
			t.Errorf("it is not told %q:\n%s", want, q.Text)
		}
	}
	if strings.Contains(q.Text, "## a\n") {
		t.Errorf("who failed is offered again:\n%s", q.Text)
	}
	if a := q.Agent; a.Key != "planner" || a.LLM != nil || len(a.Tools) != 0 || !strings.Contains(a.Role.V, "papers") {
		t.Errorf("%+v", a)
	}
	if got := string(q.Schema); !strings.Contains(got, `"enum":["b"]`) || !strings.Contains(got, `"specialist"`) {
		t.Error(got)
	}
}

func TestAutonomousChoices(t *testing.T) {
	for _, tt := range []struct {
		name   string
		budget func(*crew.Budget)
		agents int // of the crew, from the first; 0: both
		task   string
		says   []string
		who    string // tries the task; empty: nobody
		asked  int
		err    string
	}{
		{"read when asked again", nil, 0, "t", []string{"a, I'd say", takeB}, "b", 2, ""},
		{"nobody of the crew", nil, 0, "t", []string{`{"agent_id":"x"}`, takeB}, "b", 2, ""},
		{"both at once", nil, 0, "t", []string{`{"agent_id":"a","specialist":{"role":"r","goal":"g"}}`, takeB}, "b", 2, ""},
		{"neither", nil, 0, "t", []string{`{"reason":"?"}`, takeB}, "b", 2, ""},
		{"unreadable: the first", nil, 0, "t", []string{"a, I'd say", "a!"}, "a", 2, ""},
		{"unreadable: the one that the task names", nil, 0, "t@b", []string{"a, I'd say", "a!"}, "b", 2, ""},
		{"a specialist without a goal", nil, 0, "t", []string{`{"specialist":{"role":"r"}}`, takeB}, "b", 2, ""},
		{"a specialist with a tool of nobody's", nil, 0, "t", []string{`{"specialist":{"role":"r","goal":"g","tools":["shell"]}}`, takeB}, "b", 2, ""},
		{"a specialist of many words", nil, 0, "t", []string{`{"specialist":{"role":"` + strings.Repeat("r", 257) + `","goal":"g"}}`, takeB}, "b", 2, ""},
		{"the planner can't be asked", nil, 0, "t", []string{"!no model"}, "", 1, "having the planner choose who does it: no model"},
		{"nothing to choose", func(b *crew.Budget) { b.Spawns = 0 }, 1, "t", nil, "a", 0, ""},
		{"one agent, and specialists to be had", nil, 1, "t", []string{takeA}, "a", 1, ""},
		{"no specialist is left, and none is wanted in the end", func(b *crew.Budget) { b.Spawns = 0 }, 0, "t",
			[]string{`{"specialist":{"role":"r","goal":"g"}}`, takeB}, "b", 2, ""},
		{"no specialist is left", func(b *crew.Budget) { b.Spawns = 0 }, 0, "t",
			[]string{`{"specialist":{"role":"r","goal":"g"}}`, `{"specialist":{"role":"r","goal":"g"}}`}, "", 2, "the budget is used up: autonomous.budget.spawns (0)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := &diary{says: map[string][]string{"assign": tt.says}}
			c := autonomousOf(tt.budget, tt.task)
			if tt.agents > 0 {
				c.Agents = c.Agents[:tt.agents]
			}
			res, err := process.Run(t.Context(), process.Plan{
				Crew: c, Runner: d, Questioner: d, Events: event.NewStream("r", time.Now, eventtest.Sink(t)),
			})
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) || res.Tasks[0].State != process.Failed {
					t.Errorf("%v, want %q", err, tt.err)
				}
			} else if err != nil || res.Tasks[0].Agent != tt.who {
				t.Errorf("%v, %+v", err, res.Tasks[0])
			}
			if len(d.asked) != tt.asked {
				t.Errorf("%d questions, want %d", len(d.asked), tt.asked)
			}
		})
	}
}

func TestHandingOn(t *testing.T) {
	spawn := `{"specialist":{"role":"r","goal":"g"},"reason":"r"}`
	always := func() map[string][]doing {
		return map[string][]doing{"t": {failing(errTide), failing(errTide), failing(errTide), failing(errTide), failing(errTide), failing(errTide)}}
	}
	for _, tt := range []struct {
		name   string
		change func(*crew.Crew)
		says   []string
		tries  int
		err    string
		axis   string
	}{
		{"who may not delegate keeps it", func(c *crew.Crew) { c.Agents[0].AllowDelegation = false }, []string{takeA, takeB}, 1, `is out; it is not handed on: agent "a" does not delegate`, ""},
		{"nobody is left", func(c *crew.Crew) { c.Autonomous.Budget.Spawns = 0 }, []string{takeA, takeB}, 2, "it is not handed on: nobody is left who has not tried it", ""},
		{"specialists are left", nil, []string{takeA, takeB, spawn, spawn, spawn}, 5,
			"it is not handed on: the budget is used up: autonomous.budget.depth (4)", "depth"},
		{"once at most", func(c *crew.Crew) { c.Autonomous.Budget.Depth = 1 }, []string{takeA, takeB}, 2, "autonomous.budget.depth (1)", "depth"},
		{"never", func(c *crew.Crew) { c.Autonomous.Budget.Depth = 0 }, []string{takeA, takeB}, 1, "autonomous.budget.depth (0)", "depth"},
		{"everybody failed and the planner makes nobody", nil, []string{takeA, takeB, takeA, takeA}, 2, "which is none of", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := &diary{do: always(), says: map[string][]string{"assign t": tt.says, "assign": {takeA}}}
			c := autonomousOf(nil, "t", "u t", "v")
			if tt.change != nil {
				tt.change(c)
			}
			res, err := process.Run(t.Context(), process.Plan{
				Crew: c, Runner: d, Questioner: d, Events: event.NewStream("r", time.Now, eventtest.Sink(t)),
			})
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%v\nwant %q", err, tt.err)
			}
			var budget *process.BudgetError
			if errors.As(err, &budget) != (tt.axis != "") || budget != nil && budget.Axis != tt.axis {
				t.Errorf("%v", budget)
			}
			// It is that task's failure, and the one rule holds for the others.
			if diff := cmp.Diff([]string{"t failed", "u skipped", "v completed"}, states(res)); diff != "" {
				t.Error(diff)
			}
			tries := 0
			for _, in := range d.tasks {
				if in.Task.Key == "t" {
					tries++
				}
			}
			if tries != tt.tries {
				t.Errorf("%d tries, want %d", tries, tt.tries)
			}
		})
	}
}

// A file that can't be left is nobody's fault and not handed on.
func TestWhatNobodyCanMendIsNotHandedOn(t *testing.T) {
	d := &diary{says: map[string][]string{"assign": {takeA}}}
	c := autonomousOf(nil, "t")
	c.Tasks[0].Deliverable = &crew.Deliverable{Path: text("/out/f"), Source: "final_message"}
	res, err := runAutonomous(t, d, c)
	if err == nil || !strings.Contains(err.Error(), "keeps no files") || res.Tasks[0].Attempts != 1 || len(d.tasks) != 0 {
		t.Errorf("%v, %+v", err, res.Tasks[0])
	}
}

// using does a task as an agent does: it draws on the budget for each request and
// each call, and gives up when that is refused.
func using(requests, calls int) doing {
	return func(_ context.Context, in process.TaskInput) (process.Answer, error) {
		answer := process.Answer{Text: "so far"}
		for range requests {
			answer.Usage = answer.Usage.Add(llm.Usage{Input: 900, Output: 100, Measured: true})
			if err := in.Budget.Spent(llm.Usage{Input: 900, Output: 100, Measured: true}); err != nil {
				return answer, err
			}
		}
		for range calls {
			if err := in.Budget.Call(); err != nil {
				return answer, err
			}
			answer.ToolCalls++
		}
		answer.Text = "done"
		return answer, nil
	}
}

// What all tasks draw on ends the run once it is used up, and its name is said;
// what was finished stays.
func TestBudgetsEndTheRun(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*crew.Budget)
		a, b   doing
		axis   string
		states []string
	}{
		{"calls, over all tasks", func(b *crew.Budget) { b.ToolCalls = 5 }, using(1, 3), using(1, 3), "toolCalls (5)", []string{"a completed", "b failed", "c not_run"}},
		{"calls, just enough", func(b *crew.Budget) { b.ToolCalls = 6 }, using(1, 3), using(1, 3), "", []string{"a completed", "b completed", "c completed"}},
		{"no calls at all", func(b *crew.Budget) { b.ToolCalls = 0 }, using(1, 1), nil, "toolCalls (0)", []string{"a failed", "b not_run", "c not_run"}},
		{"tokens of agents", func(b *crew.Budget) { b.Tokens = 4_500 }, using(2, 0), using(3, 0), "tokens (4500)", []string{"a completed", "b failed", "c not_run"}},
		{"tokens of the planner as well", func(b *crew.Budget) { b.Tokens = 2_200 }, using(1, 0), using(1, 0), "tokens (2200)", []string{"a completed", "b failed", "c not_run"}},
		{"tokens of the planner alone", func(b *crew.Budget) { b.Tokens = 100 }, nil, nil, "tokens (100)", []string{"a failed", "b not_run", "c not_run"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := &diary{do: map[string][]doing{"a": {tt.a}, "b": {tt.b}}, says: map[string][]string{"assign": {takeA, takeB, takeA}}}
			res, err := process.Run(t.Context(), process.Plan{
				Crew: autonomousOf(tt.change, "a", "b", "c"), Runner: d, Questioner: d, Events: event.NewStream("r", time.Now, eventtest.Sink(t)),
			})
			if diff := cmp.Diff(tt.states, states(res)); diff != "" {
				t.Error(diff)
			}
			if tt.axis == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			var failure *process.CrewError
			var budget *process.BudgetError
			if !errors.As(err, &failure) || !errors.As(failure.Cause, &budget) || !strings.Contains(err.Error(), "the budget is used up: autonomous.budget."+tt.axis) {
				t.Errorf("%v", err)
			}
			for _, r := range res.Tasks {
				if r.State == process.Completed && res.Final == "" {
					t.Error("what was finished is lost")
				}
			}
		})
	}
}

func TestWallTimeEndsTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := func(ctx context.Context, _ process.TaskInput) (process.Answer, error) {
			select {
			case <-ctx.Done():
				return process.Answer{Text: "so far"}, context.Cause(ctx)
			case <-time.After(20 * time.Second):
				return said("done"), nil
			}
		}
		d := &diary{do: map[string][]doing{"a": {slow}, "b": {slow}}, says: map[string][]string{"assign": {takeA, takeB}}}
		start := time.Now()
		res, err := process.Run(t.Context(), process.Plan{
			Crew: autonomousOf(func(b *crew.Budget) { b.WallTime = 30 * time.Second }, "a", "b", "c"), Runner: d, Questioner: d,
		})
		var failure *process.CrewError
		if !errors.As(err, &failure) || !strings.Contains(err.Error(), "the budget is used up: autonomous.budget.wallTime (30s)") {
			t.Error(err)
		}
		if diff := cmp.Diff([]string{"a completed", "b stopped", "c not_run"}, states(res)); diff != "" {
			t.Error(diff)
		}
		if took := time.Since(start); took != 30*time.Second || res.Tasks[1].Text != "so far" {
			t.Errorf("after %v, %+v", took, res.Tasks[1])
		}
	})
}

// Coworkers that an agent delegates to within its task are as deep as the task
// was handed on, and more.
func TestDepthIsOfHandingOnAndDelegating(t *testing.T) {
	var deepest [][2]bool
	probe := func(_ context.Context, in process.TaskInput) (process.Answer, error) {
		deepest = append(deepest, [2]bool{in.Budget.Delegate(1) == nil, in.Budget.Delegate(2) == nil})
		return said("half"), errTide
	}
	d := &diary{do: map[string][]doing{"t": {probe, probe}}, says: map[string][]string{"assign": {takeA, takeB}}}
	_, _ = process.Run(t.Context(), process.Plan{
		Crew: autonomousOf(func(b *crew.Budget) { b.Depth, b.Spawns = 2, 0 }, "t"), Runner: d, Questioner: d,
	})
	if diff := cmp.Diff([][2]bool{{true, true}, {true, false}}, deepest); diff != "" {
		t.Error(diff)
	}
}

func TestAutonomousStops(t *testing.T) {
	errStop := errors.New("interrupted")
	for name, block := range map[string]string{"while the planner chooses": "assign", "while an agent works": "work"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				d := &diary{says: map[string][]string{"assign": {takeA, takeB, takeA}}}
				waits := func(ctx context.Context, _ process.TaskInput) (process.Answer, error) {
					<-ctx.Done()
					return said("so far"), context.Cause(ctx)
				}
				if block == "work" {
					d.do = map[string][]doing{"b": {waits}}
				}
				var res *process.Result
				var err error
				done := make(chan struct{})
				go func() {
					defer close(done)
					res, err = process.Run(ctx, process.Plan{Crew: autonomousOf(nil, "a", "b", "c"), Runner: d, Questioner: holding{d, block, "b"}})
				}()
				synctest.Wait()
				cancel(errStop)
				<-done
				if !errors.Is(err, errStop) || errors.As(err, new(*process.CrewError)) {
					t.Error(err)
				}
				if diff := cmp.Diff([]string{"a completed", "b stopped", "c not_run"}, states(res)); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

// holding keeps a question about a task waiting for the end.
type holding struct {
	process.Questioner
	operation, task string
}

func (h holding) Ask(ctx context.Context, q process.Question) (process.Answer, error) {
	if q.Operation == h.operation && q.Task.Key == h.task {
		<-ctx.Done()
		return process.Answer{}, context.Cause(ctx)
	}
	return h.Questioner.Ask(ctx, q)
}

// A planner is asked about a crew of any size with a question of bounded size.
func TestThePlannersQuestionIsBounded(t *testing.T) {
	specs := make([]string, 100)
	says := make([]string, 100)
	for i := range specs {
		specs[i], says[i] = "task"+strings.Repeat("x", i%7)+string(rune('a'+i%26))+strings.Repeat("y", i/26), takeA
	}
	d := &diary{says: map[string][]string{"assign": says}}
	c := autonomousOf(func(b *crew.Budget) { b.Tokens = 1 << 30 }, specs...)
	for _, task := range c.Tasks {
		task.Description = text(strings.Repeat("long ", 2_000))
	}
	if _, err := runAutonomous(t, d, c); err != nil {
		t.Fatal(err)
	}
	for _, q := range d.asked {
		if n := len(q.Text); n > 40_000 {
			t.Fatalf("%d bytes", n)
		}
	}
	if q := d.asked[30].Text; !strings.Contains(q, "and 49 more") || !strings.Contains(q, "10 earlier tasks") {
		t.Error(q[:200], len(q))
	}
}

// A plan that was made before the first task is paid from the budget as well.
func TestAPlanDrawsOnTheBudget(t *testing.T) {
	for name, tt := range map[string]struct {
		usage  llm.Usage
		tokens int
	}{
		"measured":  {llm.Usage{Input: 100, Output: 10, Measured: true}, 100},
		"estimated": {llm.Usage{}, 50}, // of a question of some hundred bytes
	} {
		d := &diary{says: map[string][]string{"assign": {takeA}}}
		c := autonomousOf(func(b *crew.Budget) { b.Tokens = tt.tokens }, "a")
		c.Planning = true
		asked := &answers{texts: []string{`{"plan":[{"task":"a","steps":"look"}]}`}, usage: &tt.usage}
		res, err := process.Run(t.Context(), process.Plan{Crew: c, Runner: d, Questioner: asked})
		var budget *process.BudgetError
		if !errors.As(err, &budget) || budget.Axis != "tokens" || len(d.tasks) != 0 || res.Tasks[0].State != process.NotRun {
			t.Errorf("%s: %v, %+v", name, err, res.Tasks)
		}
	}
}

// slowly answers no question in less than a while.
type slowly time.Duration

func (s slowly) Ask(ctx context.Context, _ process.Question) (process.Answer, error) {
	select {
	case <-ctx.Done():
		return process.Answer{}, context.Cause(ctx)
	case <-time.After(time.Duration(s)):
		return process.Answer{}, errors.New("no answer")
	}
}

// A plan that was made before the first task is made within the wall time.
func TestAPlanDrawsOnTheWallTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := autonomousOf(func(b *crew.Budget) { b.WallTime = 30 * time.Second }, "a")
		c.Planning = true
		start := time.Now()
		res, err := process.Run(t.Context(), process.Plan{Crew: c, Runner: &diary{}, Questioner: slowly(time.Hour)})
		var budget *process.BudgetError
		if !errors.As(err, &budget) || budget.Axis != "wallTime" || res.Tasks[0].State != process.NotRun {
			t.Errorf("%v, %+v", err, res)
		}
		if took := time.Since(start); took != 30*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}
