package process

import (
	"container/heap"
	"context"
	"slices"
	"sync"

	"crewhost/crew"
	"crewhost/runner/llm"
)

// run is one run of a crew. A process arranges its slots and has each of them
// done; everything else is the same for all processes.
type run struct {
	plan   Plan
	agents map[string]*crew.Agent // by key
	slots  []*slot                // in the plan's order
	parts  map[string]string      // of the crew's plan, by task
	budget Budget                 // what questions draw on; nil: without bounds

	mu    sync.Mutex
	asked map[string]llm.Usage // what questions cost, by operation
	drawn llm.Usage            // all of it, reckoned where nobody measured it
}

func newRun(plan Plan, order []*crew.Task) *run {
	r := &run{plan: plan, agents: make(map[string]*crew.Agent, len(plan.Crew.Agents)), slots: make([]*slot, len(order))}
	for _, a := range plan.Crew.Agents {
		r.agents[a.Key] = a
	}
	byKey := make(map[string]*slot, len(order))
	agents := r.assign(order)
	for i, t := range order {
		s := &slot{run: r, place: i, task: t, agent: agents[i]}
		s.result = TaskResult{TaskOutput: TaskOutput{Task: t.Key}, State: NotRun}
		if s.agent != nil {
			s.result.Agent = s.agent.Key
		}
		for _, d := range t.Dependencies {
			s.needs = append(s.needs, byKey[d.V])
		}
		s.needs = distinct(s.needs...)
		r.slots[i], byKey[t.Key] = s, s
	}
	return r
}

// assign gives each task the agent that it names, and the others a worker in
// turn.
func (r *run) assign(order []*crew.Task) []*crew.Agent {
	workers := r.workers()
	agents := make([]*crew.Agent, len(order))
	turn := 0
	for i, t := range order {
		agents[i] = r.agents[t.Agent.V]
		if t.Agent.V == "" && len(workers) > 0 {
			agents[i] = workers[turn%len(workers)]
			turn++
		}
	}
	return agents
}

// workers are the agents that do tasks, in the crew's order: all but the manager.
func (r *run) workers() []*crew.Agent {
	c := r.plan.Crew
	workers := make([]*crew.Agent, 0, len(c.Agents))
	for _, a := range c.Agents {
		if a.Key != c.ManagerAgent.V {
			workers = append(workers, a)
		}
	}
	return workers
}

// inLine has each task wait for the one before it.
func (r *run) inLine() {
	for i, s := range r.slots[:max(0, len(r.slots)-1)] {
		r.slots[i+1].after, r.slots[i+1].lined = s, true
	}
}

// each has the tasks done, at most limit of them at once: each once all that it
// waits for has ended, and of several that could begin the first in the plan's
// order. One whose dependencies are not all completed is skipped.
//
// It returns when nothing runs any more. Once ctx has ended, or do has returned
// an error, which ends its context for the others and is returned, no further
// task begins.
func (r *run) each(ctx context.Context, limit int, do func(context.Context, *slot) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	type end struct {
		slot *slot
		err  error
	}
	var (
		ended   = make(chan end)
		ready   = r.link()
		past    past
		running int
		failure error
		workers sync.WaitGroup
	)
	defer workers.Wait()
	settle := func(s *slot) {
		s.prior = nil
		for _, n := range s.next {
			if n.open--; n.open == 0 {
				heap.Push(ready, n.place)
			}
		}
	}
	for {
		for ready.Len() > 0 && running < limit && ctx.Err() == nil {
			i, _ := heap.Pop(ready).(int)
			s := r.slots[i]
			if why := s.unmet(); why != "" {
				s.skip(why)
				settle(s)
				continue
			}
			s.prior = past.outputs(s)
			running++
			workers.Go(func() { ended <- end{s, do(ctx, s)} })
		}
		if running == 0 {
			return failure
		}
		e := <-ended
		running--
		settle(e.slot)
		if e.err != nil && failure == nil {
			failure = e.err
			cancel(failure)
		}
	}
}

// link finds who waits for whom and returns the tasks that wait for none.
func (r *run) link() *indexes {
	ready := &indexes{}
	for i, s := range r.slots {
		s.waits = s.needs
		if s.after != nil && !s.after.among(s.needs) {
			s.waits = distinct(append(slices.Clip(s.needs), s.after)...)
		}
		s.open = len(s.waits)
		for _, w := range s.waits {
			w.next = append(w.next, s)
		}
		if s.open == 0 {
			heap.Push(ready, i)
		}
	}
	return ready
}
