package anthropic_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"crewhost/runner/llm"
	"crewhost/runner/llm/anthropic"
	"crewhost/runner/llm/llmtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	llmtest.Conformance(t, llmtest.Vendor{
		New: func(t testing.TB, s llmtest.Settings) llm.Model {
			m, err := anthropic.New(anthropic.Config{
				BaseURL: "http://model.test/v1", APIKey: s.APIKey, Model: "test-model",
				Timeout: s.Timeout, IdleTimeout: s.IdleTimeout, MaxRetries: s.MaxRetries,
				HTTPClient: s.Client, Logger: s.Logger,
			})
			if err != nil {
				t.Fatal(err)
			}
			return m
		},
		Whole:  whole,
		Events: events,
		Fault: func(code, message string) string {
			return encode(map[string]any{"type": "error", "error": map[string]any{"type": code, "message": message}})
		},
		Key: func(h http.Header) string { return h.Get("X-Api-Key") },
		Env: map[string]string{
			"ANTHROPIC_API_KEY": "env-key", "ANTHROPIC_AUTH_TOKEN": "env-token",
			"ANTHROPIC_BASE_URL": "http://env.invalid", "ANTHROPIC_CUSTOM_HEADERS": "X-Env: env-header",
		},
	})
}

func encode(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}

var stop = map[llm.StopReason]string{
	llm.StopEnd: "end_turn", llm.StopTools: "tool_use", llm.StopLength: "max_tokens", llm.StopFilter: "refusal",
}

func usage(u llm.Usage) map[string]any {
	return map[string]any{
		"input_tokens": u.Input - u.CacheRead - u.CacheWrite, "output_tokens": u.Output,
		"cache_read_input_tokens": u.CacheRead, "cache_creation_input_tokens": u.CacheWrite,
	}
}

func whole(res llm.Response) string {
	content := []any{}
	if text := res.Message.Text(); text != "" {
		content = append(content, map[string]any{"type": "text", "text": text})
	}
	for _, c := range res.Message.Calls {
		content = append(content, map[string]any{"type": "tool_use", "id": c.ID, "name": c.Name, "input": json.RawMessage(c.Arguments)})
	}
	return encode(map[string]any{
		"id": "msg_1", "type": "message", "role": "assistant", "model": res.Model, "content": content,
		"stop_reason": stop[res.Stop], "stop_sequence": nil, "usage": usage(res.Usage),
	})
}

// event is one event of a stream.
func event(kind string, fields map[string]any) string {
	fields["type"] = kind
	return llmtest.Event(kind, encode(fields))
}

func block(index int, start map[string]any, deltas ...map[string]any) []string {
	out := []string{event("content_block_start", map[string]any{"index": index, "content_block": start})}
	for _, d := range deltas {
		out = append(out, event("content_block_delta", map[string]any{"index": index, "delta": d}))
	}
	return append(out, event("content_block_stop", map[string]any{"index": index}))
}

func begin(model string, u llm.Usage) string {
	start := u
	start.Output = 1
	return event("message_start", map[string]any{"message": map[string]any{
		"id": "msg_1", "type": "message", "role": "assistant", "model": model, "content": []any{},
		"stop_reason": nil, "stop_sequence": nil, "usage": usage(start),
	}}) + event("ping", map[string]any{})
}

func end(reason string, output int) string {
	return event("message_delta", map[string]any{
		"delta": map[string]any{"stop_reason": reason, "stop_sequence": nil}, "usage": map[string]any{"output_tokens": output},
	}) + event("message_stop", map[string]any{})
}

func events(res llm.Response) []string {
	out := []string{begin(res.Model, res.Usage)}
	index := 0
	if text := res.Message.Text(); text != "" {
		var deltas []map[string]any
		for _, word := range strings.SplitAfter(text, " ") {
			deltas = append(deltas, map[string]any{"type": "text_delta", "text": word})
		}
		out = append(out, block(index, map[string]any{"type": "text", "text": ""}, deltas...)...)
		index++
	}
	for _, c := range res.Message.Calls {
		half := len(c.Arguments) / 2
		out = append(out, block(index, map[string]any{"type": "tool_use", "id": c.ID, "name": c.Name, "input": map[string]any{}},
			map[string]any{"type": "input_json_delta", "partial_json": ""},
			map[string]any{"type": "input_json_delta", "partial_json": c.Arguments[:half]},
			map[string]any{"type": "input_json_delta", "partial_json": c.Arguments[half:]})...)
		index++
	}
	return append(out, end(stop[res.Stop], res.Usage.Output))
}
