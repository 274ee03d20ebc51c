package openai_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crewhost/runner/llm"
	"crewhost/runner/llm/llmtest"
	"crewhost/runner/llm/openai"
)

// sent returns the URL path, query and body that a request becomes.
func sent(t *testing.T, c openai.Config, req llm.Request) (body string, mock *llmtest.Mock) {
	t.Helper()
	mock = llmtest.NewMock(t, llmtest.Status(200, `{"choices":[{"message":{"content":"a"},"finish_reason":"stop"}]}`))
	c.HTTPClient = llmtest.Serve(t, mock)
	if c.BaseURL == "" {
		c.BaseURL = "http://model.test/v1"
	}
	if c.Model == "" {
		c.Model = "m"
	}
	m, err := openai.New(c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Generate(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	return mock.Bodies()[0], mock
}

// same compares two JSON texts.
func same(t *testing.T, name, want, got string) {
	t.Helper()
	var a, b any
	if err := json.Unmarshal([]byte(want), &a); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if err := json.Unmarshal([]byte(got), &b); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if diff := cmp.Diff(a, b); diff != "" {
		t.Errorf("%s: %s", name, diff)
	}
}

func TestRequests(t *testing.T) {
	half, zero := 0.5, 0.0
	hi := []llm.Message{llm.User("hi")}
	const hiJSON = `"messages":[{"role":"user","content":"hi"}]`
	png := llm.Part{MIME: "image/png", Data: []byte("png")}
	for _, tt := range []struct {
		name string
		req  llm.Request
		want string
	}{
		{"little", llm.Request{Messages: hi}, `{"model":"m",` + hiJSON + `}`},
		{"another model", llm.Request{Model: "other", Messages: hi}, `{"model":"other",` + hiJSON + `}`},
		{"numbers", llm.Request{Messages: hi, Temperature: &zero, TopP: &half, MaxTokens: 7}, `{"model":"m",` + hiJSON + `,"temperature":0,"top_p":0.5,"max_tokens":7}`},
		{"thinking", llm.Request{Messages: hi, Thinking: &llm.Thinking{Enabled: true, Effort: "high"}}, `{"model":"m",` + hiJSON + `,"reasoning_effort":"high"}`},
		{"thinking off", llm.Request{Messages: hi, Thinking: &llm.Thinking{Effort: "high"}}, `{"model":"m",` + hiJSON + `}`},
		{"json_object", llm.Request{Messages: hi, Format: &llm.ResponseFormat{Type: "json_object"}}, `{"model":"m",` + hiJSON + `,"response_format":{"type":"json_object"}}`},
		{"json_schema", llm.Request{Messages: hi, Format: &llm.ResponseFormat{Type: "json_schema", Schema: []byte(`{"type":"object"}`), Strict: true}},
			`{"model":"m",` + hiJSON + `,"response_format":{"type":"json_schema","json_schema":{"name":"answer","strict":true,"schema":{"type":"object"}}}}`},
		{"tools and none of them", llm.Request{Messages: hi, ToolChoice: llm.ToolNone, Tools: []llm.Tool{{Name: "f"}}},
			`{"model":"m",` + hiJSON + `,"tool_choice":"none","tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{}}}}]}`},
		{"none of no tools", llm.Request{Messages: hi, ToolChoice: llm.ToolNone}, `{"model":"m",` + hiJSON + `}`},
		{"an image", llm.Request{Messages: []llm.Message{{Role: llm.RoleUser, Parts: []llm.Part{{Text: "see"}, png, {MIME: "audio/x", Data: []byte{1, 2}}}}}},
			`{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"see"},{"type":"image_url","image_url":{"url":"data:image/png;base64,cG5n"}},{"type":"text","text":"[audio/x, 2 bytes, not shown]"}]}]}`},
		{"images of tools follow the last result", llm.Request{Messages: []llm.Message{
			{Role: llm.RoleAssistant, Calls: []llm.ToolCall{{ID: "a", Name: "f", Arguments: ""}, {ID: "b", Name: "g", Arguments: `{"a":`}}, Reasoning: "not sent"},
			{Role: llm.RoleTool, CallID: "a", Parts: []llm.Part{{Text: "look"}, png}},
			{Role: llm.RoleTool, CallID: "b", IsError: true},
			llm.User("and?"),
		}}, `{"model":"m","messages":[
			{"role":"assistant","tool_calls":[
				{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},
				{"id":"b","type":"function","function":{"name":"g","arguments":"{\"malformed_arguments\":\"{\\\"a\\\":\"}"}}]},
			{"role":"tool","tool_call_id":"a","content":"look\n[image 1 of the message after the tools' results]"},
			{"role":"tool","tool_call_id":"b","content":"The tool failed and said nothing."},
			{"role":"user","content":[{"type":"text","text":"Images that the tools returned:"},{"type":"image_url","image_url":{"url":"data:image/png;base64,cG5n"}}]},
			{"role":"user","content":"and?"}]}`},
	} {
		body, _ := sent(t, openai.Config{}, tt.req)
		same(t, tt.name, tt.want, body)
	}
}

// TestArgumentsGoBackUnchanged (K31): byte for byte, not only as a number.
func TestArgumentsGoBackUnchanged(t *testing.T) {
	const arguments = `{ "id": 725653563933458433, "x":1e400, "s":"<&>" }`
	body, _ := sent(t, openai.Config{}, llm.Request{Messages: []llm.Message{
		{Role: llm.RoleAssistant, Calls: []llm.ToolCall{{ID: "a", Name: "f", Arguments: arguments}}},
		{Role: llm.RoleTool, CallID: "a", Parts: []llm.Part{{Text: "ok"}}},
	}})
	var b struct {
		Messages []struct {
			Calls []struct{ Function struct{ Arguments string } } `json:"tool_calls"`
		}
	}
	if err := json.Unmarshal([]byte(body), &b); err != nil || b.Messages[0].Calls[0].Function.Arguments != arguments {
		t.Errorf("%v: %s", err, body)
	}
}

func TestTokensField(t *testing.T) {
	req := llm.Request{Messages: []llm.Message{llm.User("hi")}, MaxTokens: 7}
	for _, tt := range []struct {
		base  string
		field openai.TokensField
		want  string
	}{
		{"https://api.openai.com/v1", "", "max_completion_tokens"},
		{"https://mine.openai.azure.com/openai/v1", "", "max_completion_tokens"},
		{"https://api.openai.com.evil.example/v1", "", "max_tokens"},
		{"http://127.0.0.1:11434/v1", "", "max_tokens"},
		{"http://127.0.0.1:11434/v1", openai.MaxCompletionTokens, "max_completion_tokens"},
		{"https://api.openai.com/v1", openai.MaxTokens, "max_tokens"},
	} {
		// The client's every connection leads to the mock; https would need a
		// certificate.
		m, err := openai.New(openai.Config{BaseURL: tt.base, Model: "m", TokensField: tt.field})
		if err != nil {
			t.Fatal(err)
		}
		if got := string(m.TokensField()); got != tt.want {
			t.Errorf("%s, %q: %s, want %s", tt.base, tt.field, got, tt.want)
		}
	}
	body, _ := sent(t, openai.Config{TokensField: openai.MaxCompletionTokens}, req)
	if !strings.Contains(body, `"max_completion_tokens":7`) || strings.Contains(body, `"max_tokens"`) {
		t.Errorf("sent %s", body)
	}
}

func TestStreamAsksForUsage(t *testing.T) {
	mock := llmtest.NewMock(t, llmtest.Events(deltas("stop", `{"content":"a"}`)...))
	m, err := openai.New(openai.Config{BaseURL: "http://model.test", Model: "m", HTTPClient: llmtest.Serve(t, mock)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Generate(t.Context(), llm.Request{Messages: []llm.Message{llm.User("hi")}, OnDelta: func(llm.Delta) {}}); err != nil {
		t.Fatal(err)
	}
	same(t, "stream", `{"model":"m","messages":[{"role":"user","content":"hi"}],"stream":true,"stream_options":{"include_usage":true}}`, mock.Bodies()[0])
}

func TestBaseURL(t *testing.T) {
	for base, want := range map[string]string{
		"http://model.test":                        "/chat/completions",
		"http://model.test/v1/":                    "/v1/chat/completions",
		"http://model.test/deep/v1":                "/deep/v1/chat/completions",
		"http://model.test/v1?api-version=2026-01": "/v1/chat/completions?api-version=2026-01",
	} {
		_, mock := sent(t, openai.Config{BaseURL: base}, llm.Request{Messages: []llm.Message{llm.User("hi")}})
		if got := mock.URLs()[0]; got != want {
			t.Errorf("%s: asked %s, want %s", base, got, want)
		}
		if h := mock.Header(0); h.Get("Authorization") != "" {
			t.Errorf("%s: a key that was not given: %v", base, h)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	for _, tt := range []struct {
		c    openai.Config
		want string
	}{
		{openai.Config{BaseURL: "model.test"}, "http"},
		{openai.Config{BaseURL: "ftp://model.test"}, "http"},
		{openai.Config{BaseURL: "http://sk-secret:x@model.test"}, "credentials"},
		{openai.Config{BaseURL: "http://sk-secret\x7f"}, "cannot be read"},
		{openai.Config{TokensField: "tokens"}, "tokens field"},
	} {
		_, err := openai.New(tt.c)
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "sk-secret") {
			t.Errorf("%+v: got %v, want %s", tt.c, err, tt.want)
		}
	}
	if _, err := openai.New(openai.Config{}); err != nil {
		t.Errorf("the zero configuration: %v", err)
	}
}

func TestRequestsThatCannotBeSaid(t *testing.T) {
	m, err := openai.New(openai.Config{BaseURL: "http://model.test"})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		want string
		req  llm.Request
	}{
		{"no model", llm.Request{}},
		{`schema of tool "f"`, llm.Request{Model: "m", Tools: []llm.Tool{{Name: "f", Schema: []byte(`[]`)}}}},
		{`tool choice "must"`, llm.Request{Model: "m", ToolChoice: "must"}},
		{`response format "xml"`, llm.Request{Model: "m", Format: &llm.ResponseFormat{Type: "xml"}}},
		{"schema of the response format", llm.Request{Model: "m", Format: &llm.ResponseFormat{Type: "json_schema", Schema: []byte(`{`)}}},
	} {
		if _, err := m.Generate(t.Context(), tt.req); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("got %v, want %s", err, tt.want)
		}
	}
}
