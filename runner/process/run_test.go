package process

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crewhost/crew"
)

// The first error of a process ends what runs beside it, and nothing begins after
// it.
func TestAnErrorOfTheProcessEndsTheRun(t *testing.T) {
	c := &crew.Crew{Agents: []*crew.Agent{{Key: "a"}}}
	for _, key := range []string{"fails", "waits", "later", "last"} {
		c.Tasks = append(c.Tasks, &crew.Task{Key: key})
	}
	c.Tasks[3].Dependencies = []crew.Text{{V: "fails", Set: true}}
	r := newRun(Plan{Crew: c}, c.Tasks)
	errEnough := errors.New("enough")
	waiting := make(chan struct{})
	err := r.each(t.Context(), 2, func(ctx context.Context, s *slot) error {
		switch s.task.Key {
		case "fails":
			<-waiting
			s.result.State = Completed
			return errEnough
		case "waits":
			close(waiting)
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), errEnough) {
				t.Error(context.Cause(ctx))
			}
			s.result.State = Stopped
			return context.Cause(ctx)
		}
		t.Errorf("%s began", s.task.Key)
		return nil
	})
	res, failed := r.result(t.Context(), err)
	if !errors.Is(err, errEnough) || !errors.Is(failed, errEnough) {
		t.Errorf("%v, %v", err, failed)
	}
	var states []State
	for _, task := range res.Tasks {
		states = append(states, task.State)
	}
	if diff := cmp.Diff([]State{Completed, Stopped, NotRun, NotRun}, states); diff != "" {
		t.Error(diff)
	}
}

// What a task sees is, whatever the way it is found, what it depends on and the
// latest of the others among all that it waits for.
func TestWhatATaskSees(t *testing.T) {
	for seed := range uint64(30) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		c := &crew.Crew{Agents: []*crew.Agent{{Key: "a"}}, Process: crew.Sequential}
		if seed%3 == 0 {
			c.Process = crew.Parallel
		}
		for i := range 150 {
			task := &crew.Task{Key: fmt.Sprint(i), Async: seed%2 == 0 && rnd.IntN(4) == 0}
			for range min(i, rnd.IntN(4)) {
				task.Dependencies = append(task.Dependencies, crew.Text{V: fmt.Sprint(rnd.IntN(i)), Set: true})
			}
			c.Tasks = append(c.Tasks, task)
		}
		r := newRun(Plan{Crew: c}, c.Tasks)
		stopped, stop := context.WithCancel(t.Context())
		stop() // so that the slots are arranged, and nothing begins
		if err := processOf(c.Process)(stopped, r); err != nil {
			t.Fatal(err)
		}
		var p past
		for _, s := range r.slots {
			behind := map[*slot]bool{}
			var walk func(*slot)
			walk = func(s *slot) {
				for _, w := range s.waits {
					if !behind[w] {
						behind[w] = true
						walk(w)
					}
				}
			}
			walk(s)
			var want []string
			others := 0
			for _, b := range slices.Backward(r.slots) {
				if need := slices.Contains(s.needs, b); behind[b] && (need || others < recent) {
					want = append(want, b.task.Key)
					if !need {
						others++
					}
				}
			}
			slices.Reverse(want)
			var got []string
			for _, o := range p.outputs(s) {
				got = append(got, o.Task)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("%s %d, task %s: %s", c.Process, seed, s.task.Key, diff)
			}
			s.result.State = Completed
		}
	}
}

func FuzzReadAs(f *testing.F) {
	for _, s := range []string{`{"agent_id":"a"}`, "[{}]", `x {"agent_id":7} {"agent_id":"a","reason":"r"}`, "```\n{}\n```", `{"agent_id":"a"`, ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, answer string) {
		got, err := readAs(answer, func(c choice) error {
			if c.AgentID != "a" {
				return errors.New("nobody")
			}
			return nil
		})
		if (err == nil) != (got.AgentID == "a") || err == nil && !strings.Contains(answer, "{") {
			t.Errorf("%q: %+v, %v", answer, got, err)
		}
	})
}
