package process_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"crewhost/runner/event"
	"crewhost/runner/llm"
	"crewhost/runner/process"
)

// diary is everybody that a process works with: it does tasks and answers
// questions by script, and writes down each call in order.
type diary struct {
	do   map[string][]doing  // by task, one for each attempt; then the answer is "<task> <attempt>"
	says map[string][]string // by operation and task, or operation alone; "!…" is an error

	mu    sync.Mutex
	lines []string
	tasks []process.TaskInput
	asked []process.Question
}

func (d *diary) RunTask(ctx context.Context, in process.TaskInput) (process.Answer, error) {
	d.mu.Lock()
	line := fmt.Sprintf("%s tries %s, %d", in.Agent.Key, in.Task.Key, in.Attempt)
	for _, s := range in.Sections {
		line += fmt.Sprintf(" [%s: %s]", s.Title, strings.ReplaceAll(s.Text, "\n", " "))
	}
	d.lines, d.tasks = append(d.lines, line), append(d.tasks, in)
	var do doing
	if script := d.do[in.Task.Key]; len(script) > 0 {
		do, d.do[in.Task.Key] = script[0], script[1:]
	}
	d.mu.Unlock()
	if do != nil {
		return do(ctx, in)
	}
	return said(fmt.Sprintf("%s %d", in.Task.Key, in.Attempt)), nil
}

func (d *diary) Ask(_ context.Context, q process.Question) (process.Answer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines, d.asked = append(d.lines, fmt.Sprintf("%s is asked to %s %s", q.Agent.Key, q.Operation, q.Task.Key)), append(d.asked, q)
	usage := llm.Usage{Input: 100, Output: 10, Measured: true}
	for _, key := range []string{q.Operation + " " + q.Task.Key, q.Operation} {
		if script := d.says[key]; len(script) > 0 {
			d.says[key] = script[1:]
			if text, failed := strings.CutPrefix(script[0], "!"); failed {
				return process.Answer{Usage: usage}, errors.New(text)
			}
			return process.Answer{Text: script[0], Usage: usage}, nil
		}
	}
	return process.Answer{}, fmt.Errorf("nobody wrote an answer to %s %s", q.Operation, q.Task.Key)
}

// events returns a stream that writes what it is told into the diary too: kind,
// agent, attempt and what was said.
func (d *diary) events() *event.Stream {
	return event.NewStream("r", time.Now, func(e event.Event) {
		d.mu.Lock()
		defer d.mu.Unlock()
		line := fmt.Sprintf("%s %s %s %d", e.Kind, e.Task, e.Agent, e.Attempt)
		for _, s := range []string{e.ToAgent, e.Error, e.Reason} {
			if s != "" {
				line += ": " + s
			}
		}
		if e.Kind == event.TaskReviewed || e.Kind == event.Notice {
			line += ": " + e.Text
		}
		if e.Ballot != nil {
			line += fmt.Sprintf(" for %s, %.2f", strings.Join(e.Ballot.Ranking, " "), e.Ballot.Confidence)
		}
		if e.Success != nil {
			line += fmt.Sprintf(" (%t)", *e.Success)
		}
		d.lines = append(d.lines, line)
	})
}

func (d *diary) check(t *testing.T, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, d.lines); diff != "" {
		t.Error(diff)
	}
}

// seen is the keys of the outputs that a task was given.
func seen(in process.TaskInput) string {
	var keys []string
	for _, p := range in.Prior {
		keys = append(keys, p.Task)
	}
	return strings.Join(keys, " ")
}

// stopper has the run stopped during one of its calls, which then ends as calls
// do whose context has ended.
type stopper struct {
	after int
	stop  func()

	mu    sync.Mutex
	calls int
}

func (s *stopper) call(ctx context.Context, answer string) (process.Answer, error) {
	s.mu.Lock()
	if s.calls++; s.calls > s.after {
		s.stop()
	}
	s.mu.Unlock()
	if ctx.Err() != nil {
		return said("half"), context.Cause(ctx)
	}
	return said(answer), nil
}

func (s *stopper) RunTask(ctx context.Context, in process.TaskInput) (process.Answer, error) {
	return s.call(ctx, in.Task.Key)
}

func (s *stopper) Ask(ctx context.Context, q process.Question) (process.Answer, error) {
	return s.call(ctx, map[string]string{"assign": toA, "review": fine}[q.Operation])
}
