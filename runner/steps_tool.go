package runner

import (
	"context"
	"encoding/json"

	"crewhost/runner/journal"
	"crewhost/tools"
	"crewhost/tools/native"
	"crewhost/tools/permission"
)

// result is what a tool gave back, as JSON keeps it.
type result struct {
	Content    []tools.Content `json:"content,omitempty"`
	Structured json.RawMessage `json:"structured,omitempty"`
	IsError    bool            `json:"isError,omitempty"`
	Unasked    bool            `json:"unasked,omitempty"`
}

// stepOfTool has a call of a run be a step of it. The tools by which agents put work
// to one another are none: they do nothing themselves, and what comes of that work is
// steps of its own.
func (h *Host) stepOfTool(ctx context.Context, o permission.Observation, run func(context.Context) (tools.Result, error)) (tools.Result, error) {
	if stepsOf(ctx) == nil {
		return run(ctx)
	}
	if _, registered := h.registry.Lookup(o.Call.Name); !registered {
		return run(ctx)
	}
	came, err := take(ctx, step{
		kind: journal.Tool, name: o.Call.Name, effect: h.effectOf(o), request: o.Call.Arguments,
	}, func(ctx context.Context) (result, error) {
		res, err := run(ctx)
		return result(res), err
	})
	return tools.Result(came), err
}

// effectOf says what a call of a tool does to the world. Of the host's own tools the
// host knows; of others, nobody but the settings is believed, whatever a server says
// of its tools (R4).
func (h *Host) effectOf(o permission.Observation) journal.Effect {
	if t, _ := h.registry.Lookup(o.Call.Name); o.Request.Server == "" {
		if own, ok := t.(native.Tool); ok {
			switch own.Does(o.Call.Arguments) {
			case native.ReadOnly:
				return journal.NoEffect
			case native.Repeatable:
				return journal.Repeatable
			case native.Once:
			}
		}
	}
	return h.twice.effect(o.Request)
}
