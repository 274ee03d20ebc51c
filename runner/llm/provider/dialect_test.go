package provider_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crewhost/runner/llm"
	"crewhost/runner/llm/llmtest"
	"crewhost/runner/llm/provider"
)

const hello = `{"choices":[{"message":{"content":"a"},"finish_reason":"stop"}]}`

// model returns a provider's model that speaks to a mock with these steps, and
// the mock.
func model(t *testing.T, name string, c provider.Config, steps ...llmtest.Step) (llm.Model, *llmtest.Mock) {
	t.Helper()
	row, ok := provider.Find(name)
	if !ok {
		t.Fatalf("no provider %s", name)
	}
	none := 0
	mock := llmtest.NewMock(t, steps...)
	c.HTTPClient, c.MaxRetries = llmtest.Serve(t, mock), &none
	if c.BaseURL == "" {
		c.BaseURL = "http://model.test/v1"
	}
	if c.Model == "" {
		c.Model = "m"
	}
	m, err := row.Model(c)
	if err != nil {
		t.Fatal(err)
	}
	return m, mock
}

// same compares two JSON texts.
func same(t *testing.T, name, want, got string) {
	t.Helper()
	var a, b any
	if json.Unmarshal([]byte(want), &a) != nil || json.Unmarshal([]byte(got), &b) != nil {
		t.Fatalf("%s: no JSON: %s or %s", name, want, got)
	}
	if diff := cmp.Diff(a, b); diff != "" {
		t.Errorf("%s: %s", name, diff)
	}
}

// What each vendor is sent where a crew asks for thinking, in the vendor's own
// field, and nothing that it would refuse.
func TestThinkingByProvider(t *testing.T) {
	max, budget, off := &llm.Thinking{Enabled: true, Effort: "max"}, &llm.Thinking{Enabled: true, BudgetTokens: 5000}, &llm.Thinking{}
	for _, tt := range []struct {
		provider string
		thinking *llm.Thinking
		want     string // beside model and messages
	}{
		{"openai", max, `"reasoning_effort":"high"`},
		{"openai", budget, `"reasoning_effort":"medium"`},
		{"openai", off, ``},
		{"openai", &llm.Thinking{Enabled: true}, ``},
		{"azure", max, `"reasoning_effort":"high"`},
		{"gemini", max, `"reasoning_effort":"high"`},
		{"gemini", budget, `"extra_body":{"google":{"thinking_config":{"thinking_budget":5000}}}`},
		{"gemini", off, `"reasoning_effort":"none"`},
		{"openrouter", max, `"reasoning":{"effort":"high"}`},
		{"openrouter", budget, `"reasoning":{"max_tokens":5000}`},
		{"openrouter", off, `"reasoning":{"enabled":false}`},
		{"openrouter", &llm.Thinking{Enabled: true}, `"reasoning":{"enabled":true}`},
		{"mistral", max, ``},
		{"deepseek", max, `"thinking":{"type":"enabled"}`},
		{"deepseek", off, `"thinking":{"type":"disabled"}`},
		{"groq", max, `"reasoning_effort":"high"`},
		{"qwen", &llm.Thinking{Enabled: true, Effort: "low"}, `"enable_thinking":true,"thinking_budget":2048`},
		{"qwen", off, `"enable_thinking":false`},
		{"zai", budget, `"thinking":{"type":"enabled"}`},
		{"minimax", max, ``},
		{"vllm", off, `"chat_template_kwargs":{"enable_thinking":false}`},
		{"openai-compatible", max, `"reasoning_effort":"high"`},
	} {
		m, mock := model(t, tt.provider, provider.Config{}, llmtest.Status(200, hello))
		if _, err := m.Generate(t.Context(), llm.Request{Messages: []llm.Message{llm.User("hi")}, Thinking: tt.thinking}); err != nil {
			t.Errorf("%s: %v", tt.provider, err)
			continue
		}
		want := `{"model":"m","messages":[{"role":"user","content":"hi"}],` + tt.want + `}`
		same(t, tt.provider, strings.Replace(want, ",}", "}", 1), mock.Bodies()[0])
	}
}

// What each vendor is sent where a crew asks for an answer of a form.
func TestFormatByProvider(t *testing.T) {
	const schema = `{"type":"object","properties":{"a":{"type":"string"}}}`
	const strictSchema = `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`
	const inPrompt = `{"role":"system","content":"Answer with exactly one JSON value that is valid against this JSON Schema, and nothing around it:\n{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\"}}}"},`
	const wordInPrompt = `{"role":"system","content":"Answer with exactly one JSON object and nothing around it."},`
	native := func(strict, schema string) string {
		return `"response_format":{"type":"json_schema","json_schema":{"name":"answer",` + strict + `"schema":` + schema + `}}`
	}
	object := &llm.ResponseFormat{Type: "json_object"}
	any := &llm.ResponseFormat{Type: "json_schema", Schema: []byte(schema), Strict: true}
	exact := &llm.ResponseFormat{Type: "json_schema", Schema: []byte(strictSchema), Strict: true}
	for _, tt := range []struct {
		provider, system string
		format           *llm.ResponseFormat
		tools            bool
		prompt, want     string
	}{
		{"openai", "", exact, false, "", native(`"strict":true,`, strictSchema)},
		{"openai", "", any, false, "", native("", schema)}, // strict would be refused
		{"openai", "", object, false, wordInPrompt, `"response_format":{"type":"json_object"}`},
		{"openai", "As JSON.", object, false, `{"role":"system","content":"As JSON."},`, `"response_format":{"type":"json_object"}`},
		{"together", "", any, false, "", native(`"strict":true,`, schema)},
		{"deepseek", "", any, false, inPrompt, `"response_format":{"type":"json_object"}`},
		{"minimax", "", any, false, inPrompt, ""},
		{"minimax", "", object, false, wordInPrompt, ""},
		{"groq", "", exact, false, "", native(`"strict":true,`, strictSchema)},
		{"groq", "", any, true, inPrompt, ""}, // no format beside tools
		{"gemini", "", any, true, inPrompt, ""},
	} {
		m, mock := model(t, tt.provider, provider.Config{}, llmtest.Status(200, hello))
		req := llm.Request{System: tt.system, Messages: []llm.Message{llm.User("hi")}, Format: tt.format}
		tools := ""
		if tt.tools {
			req.Tools = []llm.Tool{{Name: "f"}}
			tools = `,"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{}}}}]`
		}
		if _, err := m.Generate(t.Context(), req); err != nil {
			t.Errorf("%s: %v", tt.provider, err)
			continue
		}
		want := `{"model":"m","messages":[` + tt.prompt + `{"role":"user","content":"hi"}]` + tools + `,` + tt.want + `}`
		same(t, tt.provider, strings.Replace(want, ",}", "}", 1), mock.Bodies()[0])
	}
}

// Azure is reached by its resource, with a version by the deployment, and the key
// in a header of its own.
func TestAzure(t *testing.T) {
	for _, tt := range []struct {
		base, deployment, version string
		url, model                string
	}{
		{"http://mine.test", "", "", "/openai/v1/chat/completions", "gpt-5"},
		{"http://mine.test/", "chat one", "", "/openai/v1/chat/completions", "chat one"},
		{"http://mine.test", "chat one", "2026-01-01", "/openai/deployments/chat%20one/chat/completions?api-version=2026-01-01", "gpt-5"},
		{"http://mine.test", "", "2026-01-01", "/openai/deployments/gpt-5/chat/completions?api-version=2026-01-01", "gpt-5"},
		{"http://gateway.test/ai/v1", "", "", "/ai/v1/chat/completions", "gpt-5"},
	} {
		m, mock := model(t, "azure-openai", provider.Config{BaseURL: tt.base, Model: "gpt-5", Deployment: tt.deployment, APIVersion: tt.version, Key: "key-of-azure"}, llmtest.Status(200, hello))
		if _, err := m.Generate(t.Context(), llm.Request{Messages: []llm.Message{llm.User("hi")}, MaxTokens: 9}); err != nil {
			t.Fatal(err)
		}
		if got := mock.URLs()[0]; got != tt.url {
			t.Errorf("asked %s, want %s", got, tt.url)
		}
		if h := mock.Header(0); h.Get("Api-Key") != "key-of-azure" || h.Get("Authorization") != "" {
			t.Errorf("%s: header %v", tt.url, h)
		}
		same(t, tt.url, `{"model":"`+tt.model+`","messages":[{"role":"user","content":"hi"}],"max_completion_tokens":9}`, mock.Bodies()[0])
	}
	// A prompt that its filter stops is a refusal, with the reason.
	m, _ := model(t, "azure", provider.Config{}, llmtest.Status(400, `{"error":{"message":"The response was filtered","param":"prompt","code":"content_filter","status":400}}`))
	var api *llm.APIError
	if _, err := m.Generate(t.Context(), llm.Request{Messages: []llm.Message{llm.User("hi")}}); !errors.As(err, &api) || api.Code != "content_filter" || api.Provider != "azure" {
		t.Errorf("got %v", err)
	}
}

// Gemini refuses a call that comes back without the signature of its thoughts.
func TestSignaturesGoBack(t *testing.T) {
	const call = `"id":"c1","type":"function","function":{"name":"f","arguments":"{}"},"extra_content":{"google":{"thought_signature":"c2ln"}}`
	whole := llmtest.Status(200, `{"choices":[{"message":{"role":"assistant","tool_calls":[{`+call+`}]},"finish_reason":"stop"}]}`)
	stream := llmtest.Events(llmtest.Event("", `{"choices":[{"delta":{"tool_calls":[{"index":0,`+call+`}]},"finish_reason":"stop"}]}`), llmtest.Event("", "[DONE]"))
	for _, first := range []llmtest.Step{whole, stream} {
		m, mock := model(t, "gemini", provider.Config{}, first, llmtest.Status(200, hello))
		again(t, m)
		if !strings.Contains(mock.Bodies()[1], `"extra_content":{"google":{"thought_signature":"c2ln"}}`) {
			t.Errorf("handed back without it: %s", mock.Bodies()[1])
		}
	}
}

// again asks, runs the calls of the answer, and asks again.
func again(t *testing.T, m llm.Model) *llm.Response {
	t.Helper()
	req := llm.Request{Messages: []llm.Message{llm.User("q")}, OnDelta: func(llm.Delta) {}}
	res, err := m.Generate(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(res.Message) // as a journal keeps it
	if err != nil {
		t.Fatal(err)
	}
	var kept llm.Message
	if err := json.Unmarshal(text, &kept); err != nil {
		t.Fatal(err)
	}
	req.Messages = append(req.Messages, kept)
	for _, c := range kept.Calls {
		req.Messages = append(req.Messages, llm.Message{Role: llm.RoleTool, CallID: c.ID, Parts: []llm.Part{{Text: "ok"}}})
	}
	req.OnDelta = nil
	if _, err := m.Generate(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	return res
}

// OpenRouter wants reasoning back as it came; pieces of one text are one.
func TestReasoningDetailsGoBack(t *testing.T) {
	delta := func(fields string) string {
		return llmtest.Event("", `{"choices":[{"delta":{`+fields+`}}]}`)
	}
	m, mock := model(t, "openrouter", provider.Config{}, llmtest.Events(
		delta(`"reasoning":"Let me ","reasoning_details":[{"type":"reasoning.text","text":"Let me ","index":0,"format":"x","signature":null}]`),
		delta(`"reasoning":"think.","reasoning_details":[{"type":"reasoning.text","text":"think.","index":0}]`),
		delta(`"reasoning_details":[{"type":"reasoning.text","text":"","signature":"c2ln","index":0}]`),
		delta(`"reasoning_details":[{"type":"reasoning.encrypted","data":"ZA==","index":1}]`),
		delta(`"tool_calls":[{"index":0,"id":"c1","function":{"name":"f","arguments":"{}"}}]`),
		llmtest.Event("", `{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}`),
		llmtest.Event("", `{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5,"cost":0.00014}}`),
		llmtest.Event("", "[DONE]"),
	), llmtest.Status(200, hello))
	res := again(t, m)
	if res.Message.Reasoning != "Let me think." {
		t.Errorf("reasoning %q", res.Message.Reasoning)
	}
	if want := (llm.Charge{Amount: 140_000_000, Currency: "USD", Source: llm.ChargeVendor}); res.Charge == nil || *res.Charge != want {
		t.Errorf("charge %+v", res.Charge)
	}
	var body struct {
		Messages []struct {
			Details json.RawMessage `json:"reasoning_details"`
		}
	}
	if err := json.Unmarshal([]byte(mock.Bodies()[1]), &body); err != nil {
		t.Fatal(err)
	}
	same(t, "details", `[{"type":"reasoning.text","text":"Let me think.","index":0,"format":"x","signature":"c2ln"},{"type":"reasoning.encrypted","data":"ZA==","index":1}]`, string(body.Messages[1].Details))
}

// DeepSeek and Moonshot want the reasoning of a turn with calls back; others
// refuse it.
func TestReasoningContentGoesBack(t *testing.T) {
	for name, want := range map[string]bool{"deepseek": true, "moonshot": true, "openai": false, "groq": false} {
		answer := `{"choices":[{"message":{"content":"","reasoning_content":"Hm.","tool_calls":[{"id":"c1","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`
		m, mock := model(t, name, provider.Config{}, llmtest.Status(200, answer), llmtest.Status(200, hello))
		again(t, m)
		if got := strings.Contains(mock.Bodies()[1], `"reasoning_content":"Hm."`); got != want {
			t.Errorf("%s: %s", name, mock.Bodies()[1])
		}
	}
}

// Answers as vendors are known to send them.
func TestAnswersByProvider(t *testing.T) {
	for _, tt := range []struct {
		provider, message string
		text, reasoning   string
	}{
		{"mistral", `{"content":[{"type":"thinking","thinking":[{"type":"text","text":"Hm."}]},{"type":"text","text":"Seven."}]}`, "Seven.", "Hm."},
		{"mistral", `{"content":[{"type":"thinking","thinking":"Hm."},{"type":"text","text":"Seven."}]}`, "Seven.", "Hm."},
		{"deepseek", `{"content":"Seven.","reasoning_content":"Hm."}`, "Seven.", "Hm."},
		{"groq", `{"content":"Seven.","reasoning":"Hm."}`, "Seven.", "Hm."},
		{"lmstudio", `{"content":"Seven.","thinking":"Hm."}`, "Seven.", "Hm."},
		{"minimax", `{"content":"<think>Hm.</think>\n\nSeven."}`, "Seven.", "Hm."},
	} {
		m, _ := model(t, tt.provider, provider.Config{}, llmtest.Status(200, `{"choices":[{"message":`+tt.message+`,"finish_reason":"stop"}]}`))
		res, err := m.Generate(t.Context(), llm.Request{Messages: []llm.Message{llm.User("q")}})
		if err != nil || res.Message.Text() != tt.text || res.Message.Reasoning != tt.reasoning {
			t.Errorf("%s: %+v, %v", tt.provider, res, err)
			continue
		}
		if res.Usage.Measured { // figures that did not come are not made up
			t.Errorf("%s: usage %+v", tt.provider, res.Usage)
		}
	}
}

// Ollama is asked in its own API, at its own address or at that of the other, and
// embeds by the other.
func TestOllama(t *testing.T) {
	for _, base := range []string{"http://model.test", "http://model.test/v1"} {
		m, mock := model(t, "ollama", provider.Config{BaseURL: base, ContextTokens: 9000}, llmtest.Status(200, `{"message":{"content":"a"},"done":true}`))
		if _, err := m.Generate(t.Context(), llm.Request{Messages: []llm.Message{llm.User("hi")}, Thinking: &llm.Thinking{Enabled: true, BudgetTokens: 5000}}); err != nil {
			t.Fatal(err)
		}
		same(t, base, `{"model":"m","messages":[{"role":"user","content":"hi"}],"stream":false,"think":"medium","options":{"num_ctx":9000}}`, mock.Bodies()[0])
		if mock.URLs()[0] != "/api/chat" {
			t.Errorf("asked %s", mock.URLs()[0])
		}
		row, _ := provider.Find("ollama")
		mock = llmtest.NewMock(t, llmtest.Status(200, `{"data":[{"embedding":[1]}]}`))
		e, err := row.Embedder(provider.Config{BaseURL: base, Model: "m", HTTPClient: llmtest.Serve(t, mock)})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := e.Embed(t.Context(), "", []string{"a"}); err != nil || mock.URLs()[0] != "/v1/embeddings" {
			t.Errorf("asked %v, %v", mock.URLs(), err)
		}
	}
}

// Mistral refuses stream_options, and reports the usage of a stream unasked.
func TestStreamOptions(t *testing.T) {
	for name, want := range map[string]bool{"mistral": false, "openai": true} {
		m, mock := model(t, name, provider.Config{}, llmtest.Events(
			llmtest.Event("", `{"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}`), llmtest.Event("", "[DONE]")))
		res, err := m.Generate(t.Context(), llm.Request{Messages: []llm.Message{llm.User("q")}, OnDelta: func(llm.Delta) {}})
		if err != nil || res.Usage.Output != 2 {
			t.Errorf("%s: %+v, %v", name, res, err)
		}
		if got := strings.Contains(mock.Bodies()[0], "stream_options"); got != want {
			t.Errorf("%s: sent %s", name, mock.Bodies()[0])
		}
	}
}
