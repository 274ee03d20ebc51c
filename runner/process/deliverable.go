package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"crewhost/crew"
	"crewhost/runner/llm"
)

// DeliverableError says why a task did not leave what it was to leave. It fails
// the task.
type DeliverableError struct {
	Path string // virtual
	Err  error
}

// Error names the path and what went wrong.
func (e *DeliverableError) Error() string { return fmt.Sprintf("deliverable %s: %v", e.Path, e.Err) }

// Unwrap returns the cause.
func (e *DeliverableError) Unwrap() error { return e.Err }

// The sources of a deliverable.
const (
	finalMessage     = "final_message"     // the answer is the file
	structuredOutput = "structured_output" // the JSON in the answer is the file
	toolCall         = "tool_call"         // the agent writes the file with a tool
)

// deliverable is what a task is to leave.
type deliverable struct {
	plan   Plan
	what   *crew.Deliverable // nil: nothing
	schema json.RawMessage
	valid  *jsonschema.Schema // nil: any JSON
	before Stamp              // of the file that a tool is to write, as the task began
}

func newDeliverable(ctx context.Context, plan Plan, t *crew.Task) (*deliverable, error) {
	d := &deliverable{plan: plan, what: t.Deliverable}
	if d.what == nil || d.source() == "" {
		d.what = nil
		return d, nil
	}
	if plan.Deliverer == nil {
		return nil, d.fail(errors.New("this run keeps no files"))
	}
	if d.source() == toolCall {
		before, err := plan.Deliverer.Stamp(ctx, d.what.Path.V)
		if err != nil {
			return nil, d.fail(fmt.Errorf("looking for it: %w", err))
		}
		d.before = before
	}
	if d.source() != structuredOutput {
		return d, nil
	}
	text := d.what.SchemaInline.V
	if text == "" && d.what.SchemaPath.V != "" {
		if plan.Schema == nil {
			return nil, d.fail(fmt.Errorf("reading schema %s: this run reads no schema files", d.what.SchemaPath.V))
		}
		data, err := plan.Schema(ctx, d.what.SchemaPath.V)
		if err != nil {
			return nil, d.fail(fmt.Errorf("reading schema %s: %w", d.what.SchemaPath.V, err))
		}
		text = string(data)
	}
	if strings.TrimSpace(text) == "" {
		return d, nil
	}
	valid, err := resolve(text)
	if err != nil {
		return nil, d.fail(fmt.Errorf("its schema is no JSON Schema: %w", err))
	}
	d.schema, d.valid = json.RawMessage(text), valid
	return d, nil
}

// source is what the file is made of, or "" where there is none to leave.
func (d *deliverable) source() string {
	switch d.what.Source {
	case finalMessage, structuredOutput, toolCall:
		return d.what.Source
	}
	return ""
}

func (d *deliverable) fail(err error) error { return &DeliverableError{Path: d.what.Path.V, Err: err} }

// accept judges an answer while it can still be mended; nil takes any.
func (d *deliverable) accept() func(context.Context, string) error {
	if d.what == nil {
		return nil
	}
	switch d.source() {
	case structuredOutput:
		return func(_ context.Context, answer string) error {
			_, err := d.pick(answer)
			return err
		}
	case toolCall:
		return func(ctx context.Context, _ string) error { return d.written(ctx) }
	}
	return nil
}

// output is what others get to see of an answer: where JSON was asked for, that
// alone. The answer has been accepted.
func (d *deliverable) output(answer string) string {
	if d.what == nil || d.source() != structuredOutput {
		return answer
	}
	if picked, err := d.pick(answer); err == nil {
		return picked
	}
	return answer
}

// leave writes the file, or makes sure that it was written, and returns its path.
func (d *deliverable) leave(ctx context.Context, answer string) (string, error) {
	if d.what == nil {
		return "", nil
	}
	content := answer
	switch d.source() {
	case toolCall:
		if err := d.written(ctx); err != nil {
			return "", d.fail(err)
		}
		return d.what.Path.V, nil
	case structuredOutput:
		picked, err := d.pick(answer)
		if err != nil {
			return "", d.fail(err)
		}
		content = picked + "\n"
	case finalMessage:
		if d.what.Sanitize {
			content = sanitize(answer, d.what.Format)
		}
	}
	if err := d.plan.Deliverer.Deliver(ctx, d.what.Path.V, []byte(content)); err != nil {
		return "", d.fail(fmt.Errorf("writing it: %w", err))
	}
	return d.what.Path.V, nil
}

// written makes sure that the task wrote the file; one that an earlier run left
// does not count.
func (d *deliverable) written(ctx context.Context) error {
	now, err := d.plan.Deliverer.Stamp(ctx, d.what.Path.V)
	switch {
	case err != nil:
		return fmt.Errorf("looking for %s: %w", d.what.Path.V, err)
	case now == Stamp{}:
		return fmt.Errorf("the file %s was to be written with a tool and is not there", d.what.Path.V)
	case now == d.before:
		return fmt.Errorf("the file %s was to be written with a tool and is still the one that was there before", d.what.Path.V)
	}
	return nil
}

// pick returns the JSON in an answer that is valid by the schema.
func (d *deliverable) pick(answer string) (string, error) { return pick(d.valid, answer) }

// FormOf returns what finds the JSON in answers that are to have a form of it: what
// its errors say is for the model to read. It is nil for other forms. A schema that
// is none is an error.
func FormOf(f llm.ResponseFormat) (func(answer string) (string, error), error) {
	switch {
	case !f.IsJSON():
		return nil, nil
	case len(f.Schema) == 0:
		f.Schema = json.RawMessage(`{"type":"object"}`)
	}
	valid, err := resolve(string(f.Schema))
	if err != nil {
		return nil, fmt.Errorf("the schema is no JSON Schema: %w", err)
	}
	return func(answer string) (string, error) { return pick(valid, answer) }, nil
}

// pick returns the JSON in an answer that is valid by the schema; nil takes any.
func pick(valid *jsonschema.Schema, answer string) (string, error) {
	var first error
	for _, c := range candidates(answer) {
		if valid == nil {
			return c, nil
		}
		err := validate(valid, c)
		if err == nil {
			return c, nil
		}
		if first == nil {
			first = fmt.Errorf("the JSON does not hold to its schema: %w", err)
		}
	}
	if first == nil {
		first = errors.New("the answer holds no JSON")
	}
	return "", first
}
