package runner

import (
	"context"
	"encoding/json"

	"crewhost/runner/journal"
	"crewhost/tools"
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
	if o.Request.Server == "" {
		switch o.Call.Name {
		case "file_read", "directory_read", "json_tool", "human_input", "semantic_search", "rag_search":
			return journal.NoEffect
		case "memory_store": // a note that is there already takes its own place
			return journal.Repeatable
		case "file_write":
			var args map[string]json.RawMessage
			_ = json.Unmarshal(o.Call.Arguments, &args) // the guard has seen that it is an object
			if _, ok := args["append"]; ok {
				return journal.Once
			}
			if _, ok := args["create_backup"]; ok {
				return journal.Once // of the second, the backup would be what the first wrote
			}
			return journal.Repeatable
		}
	}
	return h.twice.effect(o.Request)
}
