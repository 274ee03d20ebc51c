package process

import (
	"context"
	"errors"
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
