package openai_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"crewhost/runner/llm"
	"crewhost/runner/llm/llmtest"
	"crewhost/runner/llm/openai"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	llmtest.Conformance(t, llmtest.Vendor{
		New: func(t testing.TB, s llmtest.Settings) llm.Model {
			m, err := openai.New(openai.Config{
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
			return encode(map[string]any{"error": map[string]any{"message": message, "type": "error", "code": code}})
		},
		Key: func(h http.Header) string { return strings.TrimPrefix(h.Get("Authorization"), "Bearer ") },
		Env: map[string]string{
			"OPENAI_API_KEY": "env-key", "OPENAI_ADMIN_KEY": "env-admin", "OPENAI_ORG_ID": "env-org",
			"OPENAI_PROJECT_ID": "env-project", "OPENAI_BASE_URL": "http://env.invalid/v1",
			"OPENAI_CUSTOM_HEADERS": "X-Env: env-header",
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

var finish = map[llm.StopReason]string{
	llm.StopEnd: "stop", llm.StopTools: "tool_calls", llm.StopLength: "length", llm.StopFilter: "content_filter",
}

func usage(u llm.Usage) map[string]any {
	return map[string]any{
		"prompt_tokens": u.Input, "completion_tokens": u.Output, "total_tokens": u.Input + u.Output,
		"prompt_tokens_details":     map[string]any{"cached_tokens": u.CacheRead},
		"completion_tokens_details": map[string]any{"reasoning_tokens": u.Reasoning},
	}
}

func whole(res llm.Response) string {
	message := map[string]any{"role": "assistant", "content": res.Message.Text()}
	var calls []any
	for _, c := range res.Message.Calls {
		calls = append(calls, map[string]any{"id": c.ID, "type": "function", "function": map[string]any{"name": c.Name, "arguments": c.Arguments}})
	}
	if calls != nil {
		message["tool_calls"] = calls
	}
	return encode(map[string]any{
		"id": "chatcmpl-1", "object": "chat.completion", "model": res.Model, "usage": usage(res.Usage),
		"choices": []any{map[string]any{"index": 0, "message": message, "finish_reason": finish[res.Stop]}},
	})
}

// chunk is one event of a stream.
func chunk(delta any, finish any) string {
	return llmtest.Event("", encode(map[string]any{
		"object": "chat.completion.chunk", "model": "test-model",
		"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish}},
	}))
}

func events(res llm.Response) []string {
	out := []string{chunk(map[string]any{"role": "assistant", "content": ""}, nil)}
	for _, word := range strings.SplitAfter(res.Message.Text(), " ") {
		out = append(out, chunk(map[string]any{"content": word}, nil))
	}
	for i, c := range res.Message.Calls {
		half := len(c.Arguments) / 2
		out = append(out,
			chunk(map[string]any{"tool_calls": []any{map[string]any{"index": i, "id": c.ID, "type": "function", "function": map[string]any{"name": c.Name, "arguments": ""}}}}, nil),
			chunk(map[string]any{"tool_calls": []any{map[string]any{"index": i, "function": map[string]any{"arguments": c.Arguments[:half]}}}}, nil),
			chunk(map[string]any{"tool_calls": []any{map[string]any{"index": i, "function": map[string]any{"arguments": c.Arguments[half:]}}}}, nil),
		)
	}
	return append(out, chunk(map[string]any{}, finish[res.Stop])+
		llmtest.Event("", encode(map[string]any{"object": "chat.completion.chunk", "choices": []any{}, "usage": usage(res.Usage)}))+
		llmtest.Event("", "[DONE]"))
}
