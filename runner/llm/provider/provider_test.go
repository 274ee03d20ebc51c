package provider_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"crewhost/runner/llm"
	"crewhost/runner/llm/llmtest"
	"crewhost/runner/llm/provider"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// dialect is how a vendor's server bends the API, as it is known to.
type dialect struct {
	key       func(http.Header) string
	parts     bool // content is a list of parts (Mistral)
	oneIndex  bool // all calls of a stream have index 0, each in one piece (Ollama, LM Studio)
	noIndex   bool // calls of a stream have no index, each in one piece (Gemini)
	objects   bool // arguments are objects where they are such
	hits      bool // cached tokens are prompt_cache_hit_tokens (DeepSeek)
	emptyLead bool // a stream begins with a chunk without choices (Azure)
	fault     func(code, message string) string
}

func bearer(h http.Header) string { return strings.TrimPrefix(h.Get("Authorization"), "Bearer ") }

func openAIFault(code, message string) string {
	return encode(map[string]any{"error": map[string]any{"message": message, "type": "error", "code": code, "param": nil}})
}

// dialects are those of rows that differ from the API itself.
var dialects = map[string]dialect{
	"gemini": {noIndex: true, fault: func(code, message string) string {
		return "[" + encode(map[string]any{"error": map[string]any{"code": 400, "message": message, "status": code}}) + "]"
	}},
	"azure": {key: func(h http.Header) string { return h.Get("Api-Key") }, emptyLead: true, fault: func(code, message string) string {
		return encode(map[string]any{"error": map[string]any{"code": code, "message": message, "innererror": map[string]any{"code": "x"}}})
	}},
	"lmstudio": {oneIndex: true, fault: func(code, message string) string {
		return encode(map[string]any{"error": map[string]any{"message": message, "type": code, "param": nil, "code": nil}})
	}},
	"mistral": {parts: true, fault: func(code, message string) string {
		return encode(map[string]any{"object": "error", "message": message, "type": "x", "param": nil, "code": code})
	}},
	"deepseek": {hits: true},
	"xai": {oneIndex: true, fault: func(code, message string) string {
		return encode(map[string]any{"code": code, "error": message})
	}},
	"openrouter": {fault: func(code, message string) string {
		return encode(map[string]any{"error": map[string]any{"message": message, "code": code, "metadata": map[string]any{}}, "user_id": "u"})
	}},
	"docker-model-runner": {noIndex: true},
	"huggingface":         {objects: true},
	"vllm": {fault: func(code, message string) string {
		return encode(map[string]any{"object": "error", "message": message, "type": "BadRequestError", "param": nil, "code": code})
	}},
}

// TestConformance runs the suite of every adapter against each vendor's dialect.
func TestConformance(t *testing.T) {
	for _, row := range provider.All() {
		if row.Name == "anthropic" || row.Name == "ollama" {
			continue // their adapters' own tests speak their dialects
		}
		t.Run(row.Name, func(t *testing.T) {
			d := dialects[row.Name]
			if d.key == nil {
				d.key = bearer
			}
			if d.fault == nil {
				d.fault = openAIFault
			}
			llmtest.Conformance(t, llmtest.Vendor{
				New: func(t testing.TB, s llmtest.Settings) llm.Model {
					m, err := row.Model(provider.Config{
						BaseURL: "http://model.test", Key: s.APIKey, Model: "test-model",
						Timeout: s.Timeout, IdleTimeout: s.IdleTimeout, MaxRetries: s.MaxRetries, HTTPClient: s.Client, Logger: s.Logger,
					})
					if err != nil {
						t.Fatal(err)
					}
					return m
				},
				Whole: d.whole, Events: d.events, Fault: d.fault, Key: d.key,
				Env: map[string]string{"OPENAI_API_KEY": "env-key", "OPENAI_ORG_ID": "env-org", "OPENAI_BASE_URL": "http://env.invalid/v1"},
			})
		})
	}
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

func (d dialect) usage(u llm.Usage) map[string]any {
	out := map[string]any{"prompt_tokens": u.Input, "completion_tokens": u.Output, "total_tokens": u.Input + u.Output}
	if d.hits {
		out["prompt_cache_hit_tokens"], out["prompt_cache_miss_tokens"] = u.CacheRead, u.Input-u.CacheRead
	} else {
		out["prompt_tokens_details"] = map[string]any{"cached_tokens": u.CacheRead}
	}
	out["completion_tokens_details"] = map[string]any{"reasoning_tokens": u.Reasoning}
	return out
}

func (d dialect) content(text string) any {
	if d.parts {
		return []any{map[string]any{"type": "text", "text": text}}
	}
	return text
}

func (d dialect) arguments(text string) any {
	if d.objects && json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	return text
}

func (d dialect) whole(res llm.Response) string {
	message := map[string]any{"role": "assistant", "content": d.content(res.Message.Text())}
	var calls []any
	for _, c := range res.Message.Calls {
		calls = append(calls, map[string]any{"id": c.ID, "type": "function", "function": map[string]any{"name": c.Name, "arguments": d.arguments(c.Arguments)}})
	}
	if calls != nil {
		message["tool_calls"] = calls
	}
	return encode(map[string]any{
		"id": "1", "object": "chat.completion", "model": res.Model, "usage": d.usage(res.Usage),
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

func (d dialect) events(res llm.Response) []string {
	lead := chunk(map[string]any{"role": "assistant", "content": ""}, nil)
	if d.emptyLead {
		lead = llmtest.Event("", `{"choices":[],"prompt_filter_results":[{"prompt_index":0}]}`) + lead
	}
	out := []string{lead}
	for _, word := range strings.SplitAfter(res.Message.Text(), " ") {
		out = append(out, chunk(map[string]any{"content": d.content(word)}, nil))
	}
	for i, c := range res.Message.Calls {
		call := func(fields map[string]any) {
			out = append(out, chunk(map[string]any{"tool_calls": []any{fields}}, nil))
		}
		whole := map[string]any{"id": c.ID, "type": "function", "function": map[string]any{"name": c.Name, "arguments": d.arguments(c.Arguments)}}
		switch {
		case d.oneIndex:
			whole["index"] = 0
			call(whole)
		case d.noIndex:
			call(whole)
		default:
			half := len(c.Arguments) / 2
			call(map[string]any{"index": i, "id": c.ID, "type": "function", "function": map[string]any{"name": c.Name, "arguments": ""}})
			call(map[string]any{"index": i, "function": map[string]any{"arguments": c.Arguments[:half]}})
			call(map[string]any{"index": i, "function": map[string]any{"arguments": c.Arguments[half:]}})
		}
	}
	return append(out, chunk(map[string]any{}, finish[res.Stop])+
		llmtest.Event("", encode(map[string]any{"object": "chat.completion.chunk", "choices": []any{}, "usage": d.usage(res.Usage)}))+
		llmtest.Event("", "[DONE]"))
}
