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
	var settled []*slot // done for certain once the present task runs; in the plan's order
	var beside sync.WaitGroup
	for i, t := range order {
		s := &slot{place: i, plan: plan, task: t, agent: agents[i], done: make(chan struct{})}
		slots[i], byKey[t.Key] = s, s
		for _, d := range t.Dependencies {
			s.needs = append(s.needs, byKey[d.V])
		}
		if t.Async {
			s.sees = s.settle(slices.Clone(settled))
			beside.Go(func() { s.run(ctx) })
			continue
		}
		settled = s.settle(settled)
		s.sees = settled
		s.run(ctx)
		settled = append(settled, s)
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
	sees  []*slot // whose outputs it gets

	done   chan struct{} // closed when result stands
	result TaskResult
}

// settle adds to seen, which is in the plan's order, what s waits for, directly
// or not.
func (s *slot) settle(seen []*slot) []*slot {
	for _, n := range s.needs {
		at, found := slices.BinarySearchFunc(seen, n.place, func(e *slot, place int) int { return e.place - place })
		if !found {
			seen = n.settle(slices.Insert(seen, at, n))
		}
	}
	return seen
}

// run waits for what the task depends on and does it, unless it is skipped.
func (s *slot) run(ctx context.Context) {
	defer close(s.done)
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
	var prior []TaskOutput
	for _, earlier := range s.sees {
		if earlier.result.State == Completed {
			prior = append(prior, earlier.result.TaskOutput)
		}
	}
	s.sees = nil // the outputs are kept once, in their own slots
	s.do(ctx, prior)
}
