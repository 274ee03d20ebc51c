// Package native is what the host's own tools are made of: a definition with a JSON
// Schema, and a function over arguments that were decoded strictly.
//
//	var clock = native.Tool{
//		Name: "clock", Title: "Clock", Description: "Tells the time in a zone.",
//		Schema: `{"type": "object", "properties": {"zone": {"type": "string", "description": "…"}},
//			"required": ["zone"], "additionalProperties": false}`,
//		Effect: native.ReadOnly,
//		Run: func(ctx context.Context, _ tools.Call, args *native.Arguments) (tools.Result, error) {
//			zone := args.Need("zone")
//			if res, bad := args.Fault(); bad {
//				return res, nil
//			}
//			…
//		},
//	}
//	err := reg.Add(clock)
//
// The tools are strict with their arguments and helpful about it: a result that is
// an error names every wrong argument at once, with the nearest known name, so that
// a model can do better in its next try. A number or a boolean that a model wrote as
// a string is taken where nothing is lost by it; nothing else is converted. What a
// tool gives back is bounded, and says so where it was cut.
package native

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"crewhost/tools"
)

// MaxText is how many characters a result has where nothing else is said.
const MaxText = 4_000

// MaxResult is how many characters a result has at most, whatever is asked for: more would
// not reach a model.
const MaxResult = 32_000

// Effect is what a call does to the world: what may be done about one whose end
// nobody saw.
type Effect int

// The effects. The zero value is the one that nothing is risked with.
const (
	Once       Effect = iota // a second call does more, or something else
	Repeatable               // a second call after the first changes nothing
	ReadOnly                 // nothing is changed at all
)

// Tool is a tool of the host. It implements [tools.Tool].
type Tool struct {
	Name, Title, Description string
	// Schema is the JSON Schema of the arguments: an object that names all its
	// properties and takes no other. Errors list them in its order.
	Schema string
	// Effect is what calls do, and EffectOf, where set, what a call with these
	// arguments does, which are one JSON object.
	Effect   Effect
	EffectOf func(arguments json.RawMessage) Effect
	// WritesFiles says that what it does to the world is in the mounts alone.
	WritesFiles bool
	// Open says that it reaches beyond this machine.
	Open bool
	// Timeout bounds a call; zero leaves that to the caller. A call that takes longer
	// is a failure that the model is told of.
	Timeout time.Duration
	// Run carries a call out. It returns when ctx ends, with [Ended].
	Run func(ctx context.Context, call tools.Call, args *Arguments) (tools.Result, error)
}

// Definition implements [tools.Tool].
func (t Tool) Definition() tools.Definition {
	readOnly, open := t.Effect == ReadOnly, t.Open
	return tools.Definition{
		Name: t.Name, Title: t.Title, Description: t.Description, InputSchema: json.RawMessage(t.Schema),
		Annotations: tools.Annotations{ReadOnly: &readOnly, OpenWorld: &open},
	}
}

// Does is the effect of a call with these arguments.
func (t Tool) Does(arguments json.RawMessage) Effect {
	if t.EffectOf != nil {
		return t.EffectOf(arguments)
	}
	return t.Effect
}

// Call implements [tools.Tool].
func (t Tool) Call(ctx context.Context, call tools.Call) (tools.Result, error) {
	if ctx.Err() != nil {
		return tools.Result{}, Ended(ctx, t.Name)
	}
	params, err := parameters(t.Schema)
	if err != nil {
		return tools.Result{}, fmt.Errorf("the schema of tool %q: %w", t.Name, err)
	}
	args, err := decode(call.Arguments, params)
	if err != nil {
		return tools.Result{}, &tools.Error{Code: tools.CodeArgumentsInvalid, Tool: t.Name, Detail: err.Error(), Err: err}
	}
	args.tool = t.Name
	if t.Timeout <= 0 {
		return t.Run(ctx, call, args)
	}
	within, cancel := context.WithTimeout(ctx, t.Timeout)
	defer cancel()
	res, err := t.Run(within, call, args)
	if err != nil && within.Err() != nil && ctx.Err() == nil {
		return Failuref("%s did not end within %v and was stopped. Ask for less, or for a part.", t.Name, t.Timeout), nil
	}
	return res, err
}

// parameters are the names of a schema's properties: those that are required, and then
// the others, each in the order of the schema.
func parameters(schema string) ([]string, error) {
	var s struct {
		Properties json.RawMessage `json:"properties"`
		Required   []string        `json:"required"`
	}
	if err := json.Unmarshal([]byte(schema), &s); err != nil {
		return nil, err
	}
	names := s.Required
	dec := json.NewDecoder(strings.NewReader(string(s.Properties)))
	if _, err := dec.Token(); err != nil {
		return nil, err
	}
	for dec.More() {
		token, err := dec.Token()
		if err != nil {
			return nil, err
		}
		var skip json.RawMessage
		if err := dec.Decode(&skip); err != nil {
			return nil, err
		}
		if name, ok := token.(string); ok && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names, nil
}

// Ended is the error of a call whose context ended.
func Ended(ctx context.Context, tool string) error {
	e := &tools.Error{Code: tools.CodeCancelled, Tool: tool, Detail: "the call was cancelled", Err: context.Cause(ctx)}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		e.Code, e.Detail = tools.CodeCallTimeout, "the call took too long"
	}
	return e
}

// Failuref is [tools.Failure] with a format.
func Failuref(format string, args ...any) tools.Result {
	return tools.Failure(fmt.Sprintf(format, args...))
}

// Plural is a number with its noun.
func Plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
