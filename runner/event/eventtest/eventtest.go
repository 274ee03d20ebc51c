// Package eventtest holds events against the schema, in tests of whoever emits
// them.
//
//	stream := event.NewStream("r", time.Now, eventtest.Sink(t), …)
package eventtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"crewhost/runner/event"
)

// Sink returns a sink that fails the test with each event that is not as the
// schema says.
func Sink(t testing.TB) event.Sink {
	return func(e event.Event) {
		line, err := json.Marshal(e)
		if err == nil {
			err = Line(line)
		}
		if err != nil {
			t.Errorf("%v\n%s", err, line)
		}
	}
}

// Line judges one event as it is written.
func Line(line []byte) error {
	var e struct{ Kind string }
	if err := json.Unmarshal(line, &e); err != nil {
		return fmt.Errorf("an event that is no JSON: %w", err)
	}
	schemas, err := kinds()
	if err != nil {
		return err
	}
	s := schemas[e.Kind]
	if s == nil {
		return fmt.Errorf("the schema has no kind %q", e.Kind)
	}
	var value any
	if err := json.Unmarshal(line, &value); err != nil {
		return err
	}
	if err := s.Validate(value); err != nil {
		return fmt.Errorf("%s is not as the schema says: %w", e.Kind, err)
	}
	return nil
}

// Run judges the whole stream of a program's run: that it is whole lines, each an
// event, numbered without gaps, all of one run, from run.started to run.finished;
// that every attempt at a task and every call has its end, unless the run was
// interrupted, and every cause its effect's beginning.
func Run(data []byte) error {
	if len(data) == 0 || data[len(data)-1] != '\n' {
		return fmt.Errorf("the last line is not whole: %q", data[max(0, len(data)-80):])
	}
	lines := bytes.Split(bytes.TrimSuffix(data, []byte("\n")), []byte("\n"))
	var j judge
	for i, line := range lines {
		if err := Line(line); err != nil {
			return fmt.Errorf("line %d: %w\n%s", i+1, err, line)
		}
		var r record
		if err := json.Unmarshal(line, &r); err != nil {
			return err
		}
		if err := j.take(i, len(lines), r); err != nil {
			return fmt.Errorf("line %d: %w\n%s", i+1, err, line)
		}
	}
	return j.over()
}

// record is what the judge of a stream looks at.
type record struct {
	Seq           int
	Kind          string
	CrewID        string `json:"crewId"`
	TaskID        string `json:"taskId"`
	Attempt       int
	CorrelationID string `json:"correlationId"`
	CausationID   string `json:"causationId"`
	Skipped       bool
	ExitCode      int
}

type judge struct {
	run   string
	exit  int
	tasks map[string]bool // attempts that began and did not end
	calls map[string]string
	known map[string]bool
}

// ends are the kinds that end what others began.
var ends = map[string]string{
	"tool.returned": "tool.called", "model.returned": "model.called",
	"input.given": "input.needed",
}

func (j *judge) take(i, n int, r record) error {
	if i == 0 {
		*j = judge{run: r.CrewID, tasks: map[string]bool{}, calls: map[string]string{}, known: map[string]bool{}}
	}
	task := fmt.Sprintf("%s/%d", r.TaskID, r.Attempt)
	began, isEnd := ends[r.Kind]
	switch {
	case r.Seq != i+1:
		return fmt.Errorf("it is number %d", r.Seq)
	case r.CrewID != j.run:
		return fmt.Errorf("it is of another run")
	case (r.Kind == "run.started") != (i == 0), (r.Kind == "run.finished") != (i == n-1):
		return fmt.Errorf("%s is line %d of %d", r.Kind, i+1, n)
	case r.CausationID != "" && !j.known[r.CausationID]:
		return fmt.Errorf("its cause %q did not happen", r.CausationID)
	case isEnd && j.calls[r.CorrelationID] != began:
		return fmt.Errorf("there was no %s", began)
	case (r.Kind == "task.completed" && !r.Skipped || r.Kind == "task.retried") && !j.tasks[task]:
		return fmt.Errorf("the attempt did not begin")
	}
	j.known[r.CorrelationID] = true
	j.exit = r.ExitCode
	switch {
	case isEnd:
		delete(j.calls, r.CorrelationID)
	case r.Kind == "task.started":
		j.tasks[task] = true
	case r.Kind == "task.completed" || r.Kind == "task.retried":
		delete(j.tasks, task)
	case r.Kind == "tool.called" || r.Kind == "model.called" || r.Kind == "input.needed":
		j.calls[r.CorrelationID] = r.Kind
	}
	return nil
}

func (j *judge) over() error {
	if len(j.tasks) > 0 {
		return fmt.Errorf("tasks that did not end: %v", j.tasks)
	}
	if len(j.calls) > 0 && j.exit != 130 {
		return fmt.Errorf("calls that did not end: %v", j.calls)
	}
	return nil
}

// kinds are the schemas of the kinds, each ready to judge by.
var kinds = sync.OnceValues(func() (map[string]*jsonschema.Resolved, error) {
	var root struct {
		OneOf []struct {
			Ref string `json:"$ref"`
		}
	}
	if err := json.Unmarshal(event.Schema(), &root); err != nil {
		return nil, err
	}
	all := make(map[string]*jsonschema.Resolved)
	for _, one := range root.OneOf {
		var s jsonschema.Schema
		if err := json.Unmarshal(event.Schema(), &s); err != nil {
			return nil, err
		}
		s.OneOf, s.Ref = nil, one.Ref
		resolved, err := s.Resolve(nil)
		if err != nil {
			return nil, err
		}
		all[strings.TrimPrefix(one.Ref, "#/$defs/")] = resolved
	}
	return all, nil
})
