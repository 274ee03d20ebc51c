package process

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"crewhost/crew"
)

// sequential does the tasks one after another. A task with asyncExecution runs
// beside those that follow it, and what depends on it waits.
//
// Which earlier outputs a task sees depends on the plan alone, not on what is
// finished first: those of all earlier tasks that are not asynchronous, and of
// the asynchronous ones that it, or an earlier one of the former, had to wait for.
func sequential(ctx context.Context, plan Plan, order []*crew.Task) (*Result, error) {
	agents := assign(plan.Crew, order)
	slots := make([]*slot, len(order))
	byKey := make(map[string]*slot, len(order))
	var line view
	var beside sync.WaitGroup
	for i, t := range order {
		s := &slot{place: i, plan: plan, task: t, agent: agents[i], done: make(chan struct{})}
		slots[i], byKey[t.Key] = s, s
		for _, d := range t.Dependencies {
			s.needs = append(s.needs, byKey[d.V])
		}
		if t.Async {
			own := line.clone()
			beside.Go(func() { s.run(ctx, own) })
			continue
		}
		s.run(ctx, &line)
		line.tasks = append(line.tasks, s)
	}
	beside.Wait()
	tasks := make([]TaskResult, len(order))
	for i, s := range slots {
		tasks[i] = s.result
	}
	return result(ctx, plan.Crew, tasks)
}

// assign gives each task the agent that it names, and the others one in turn.
func assign(c *crew.Crew, order []*crew.Task) []*crew.Agent {
	agents := make([]*crew.Agent, len(order))
	turn := 0
	for i, t := range order {
		agents[i] = c.Agent(t.Agent.V)
		if t.Agent.V == "" && len(c.Agents) > 0 {
			agents[i] = c.Agents[turn%len(c.Agents)]
			turn++
		}
	}
	return agents
}

// slot is the place of a task in a run.
type slot struct {
	place int // in the plan's order
	plan  Plan
	task  *crew.Task
	agent *crew.Agent
	needs []*slot // what it depends on

	done   chan struct{} // closed when result stands
	result TaskResult
}

// view is what a task gets to see: the tasks that are done for certain when it
// begins, in the plan's order, and the outputs of those that are completed.
type view struct {
	tasks   []*slot
	told    int          // how many of tasks, from the first, outputs speaks for
	outputs []TaskOutput // handed out, so only ever appended to
}

func (v *view) clone() *view {
	return &view{tasks: slices.Clone(v.tasks), told: v.told, outputs: slices.Clip(v.outputs)}
}

// settle adds what s waits for, directly or not.
func (v *view) settle(s *slot) {
	for _, n := range s.needs {
		at, found := slices.BinarySearchFunc(v.tasks, n.place, func(e *slot, place int) int { return e.place - place })
		if found {
			continue
		}
		v.tasks = slices.Insert(v.tasks, at, n)
		if at < v.told {
			v.told, v.outputs = 0, nil
		}
		v.settle(n)
	}
}

// prior returns the outputs; every task in view must be done.
func (v *view) prior() []TaskOutput {
	for ; v.told < len(v.tasks); v.told++ {
		if r := &v.tasks[v.told].result; r.State == Completed {
			v.outputs = append(v.outputs, r.TaskOutput)
		}
	}
	return slices.Clip(v.outputs)
}

// run waits for what the task depends on and does it, unless it is skipped.
func (s *slot) run(ctx context.Context, seen *view) {
	defer close(s.done)
	seen.settle(s)
	s.result = TaskResult{TaskOutput: TaskOutput{Task: s.task.Key}, State: NotRun}
	if s.agent != nil {
		s.result.Agent = s.agent.Key
	}
	for _, n := range s.needs {
		select {
		case <-n.done:
		case <-ctx.Done():
			return
		}
	}
	if ctx.Err() != nil {
		return
	}
	for _, n := range s.needs {
		switch n.result.State {
		case Completed:
		case Failed:
			s.skip(fmt.Sprintf("task %q, on which it depends, failed", n.task.Key))
			return
		default:
			s.skip(fmt.Sprintf("task %q, on which it depends, was skipped", n.task.Key))
			return
		}
	}
	s.do(ctx, seen.prior())
}
