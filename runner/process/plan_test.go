package process_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"crewhost/crew"
	"crewhost/runner/event"
	"crewhost/runner/event/eventtest"
	"crewhost/runner/llm"
	"crewhost/runner/process"
)

// answers answers questions one after another.
type answers struct {
	texts []string
	err   error
	usage *llm.Usage // of each; nil: some
	asked []process.Question
}

func (a *answers) Ask(_ context.Context, q process.Question) (process.Answer, error) {
	a.asked = append(a.asked, q)
	if a.err != nil {
		return process.Answer{}, a.err
	}
	text := a.texts[0]
	a.texts = a.texts[1:]
	usage := llm.Usage{Input: 100, Output: 10, Measured: true}
	if a.usage != nil {
		usage = *a.usage
	}
	return process.Answer{Text: text, Usage: usage, Turns: 1}, nil
}

// A crew with planning is planned in one question before its first task, and each
// task sees its own part.
func TestACrewIsPlannedAhead(t *testing.T) {
	for name, tt := range map[string]struct {
		asked  answers
		want   map[string]string // section by task
		told   string            // in a notice
		asks   int
		tokens int
	}{
		"planned": {
			answers{texts: []string{`{"plan":[{"task":"b","steps":" Then that. "},{"task":"a","steps":"First this."},{"task":"x","steps":"?"}]}`}},
			map[string]string{"a": "First this.", "b": "Then that."}, "", 1, 106,
		},
		"in part": {answers{texts: []string{`Well: {"plan":[{"task":"b","steps":"Then that."}]}`}}, map[string]string{"b": "Then that."}, "1 of 2", 1, 106},
		"mended":  {answers{texts: []string{`no plan`, `{"plan":[{"task":"a","steps":"This."}]}`}}, map[string]string{"a": "This."}, "1 of 2", 2, 206},
		"no plan": {answers{texts: []string{`{"plan":[]}`, `{"plan":[{"task":"c","steps":"?"}]}`}}, nil, "has no plan, and goes on", 2, 206},
		"failed":  {answers{err: errors.New("no such model")}, nil, "no such model", 1, 6},
	} {
		t.Run(name, func(t *testing.T) {
			c := &crew.Crew{
				Name: text("c"), Goal: text("g"), Planning: true,
				Agents: []*crew.Agent{{Key: "one", Role: text("One"), Goal: text("do"), Tools: []crew.Text{text("search")}}, {Key: "planner"}},
				Tasks:  []*crew.Task{task("a@one"), task("b@one a")},
			}
			w := &worker{}
			var notices []string
			sink := eventtest.Sink(t)
			res, err := process.Run(t.Context(), process.Plan{
				Crew: c, Runner: w, Questioner: &tt.asked,
				Events: event.NewStream("r", time.Now, sink, func(e event.Event) {
					if e.Kind == event.Notice {
						notices = append(notices, e.Text)
					}
				}),
			})
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for _, in := range w.asked {
				for _, s := range in.Sections {
					got[in.Task.Key] += s.Text
				}
			}
			if len(tt.want) == 0 {
				tt.want = map[string]string{}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			if told := strings.Join(notices, "\n"); !strings.Contains(told, tt.told) || tt.told == "" && told != "" {
				t.Errorf("%q was told", told)
			}
			q := tt.asked.asked[0]
			if len(tt.asked.asked) != tt.asks || q.Operation != "plan" || q.Task != nil || q.Agent.Key != "planner_2" {
				t.Errorf("%+v", tt.asked.asked)
			}
			for _, want := range []string{"one (One): do Tools: search.", "## a\n", "Builds on: a", "By: one"} {
				if !strings.Contains(q.Text, want) {
					t.Errorf("%q is not in %s", want, q.Text)
				}
			}
			if res.Usage.Input != tt.tokens {
				t.Errorf("%+v", res.Usage)
			}
		})
	}
}

func TestNothingIsPlannedUnasked(t *testing.T) {
	c := &crew.Crew{Name: text("c"), Agents: []*crew.Agent{{Key: "one"}}, Tasks: []*crew.Task{task("a@one")}}
	asked := &answers{}
	w := &worker{}
	if _, err := process.Run(t.Context(), process.Plan{Crew: c, Runner: w, Questioner: asked}); err != nil || len(asked.asked) > 0 || len(w.asked[0].Sections) > 0 {
		t.Error(err, asked.asked)
	}
	c.Planning = true // and nobody who could be asked
	if _, err := process.Run(t.Context(), process.Plan{Crew: c, Runner: w}); err != nil {
		t.Error(err)
	}
}

// A crew of a thousand tasks is planned in part, in a prompt that stays bounded.
func TestALargeCrewIsPlannedInPart(t *testing.T) {
	c := &crew.Crew{Name: text("c"), Planning: true, Agents: []*crew.Agent{{Key: "one"}}}
	for i := range 1000 {
		made := task(fmt.Sprintf("t%d@one", i))
		made.Description = text(strings.Repeat("x", 3_000))
		c.Tasks = append(c.Tasks, made)
	}
	asked := &answers{texts: []string{`{"plan":[{"task":"t0","steps":"` + strings.Repeat("s", 10_000) + `"}]}`}}
	w := &worker{}
	if _, err := process.Run(t.Context(), process.Plan{Crew: c, Runner: w, Questioner: asked}); err != nil {
		t.Fatal(err)
	}
	if n := len(asked.asked[0].Text); n > 100_000 {
		t.Errorf("the question has %d characters", n)
	}
	i := slices.IndexFunc(w.asked, func(in process.TaskInput) bool { return in.Task.Key == "t0" })
	if n := len(w.asked[i].Sections[0].Text); n > 5_000 {
		t.Errorf("the part has %d characters", n)
	}
}
