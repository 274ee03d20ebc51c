package ollama_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"crewhost/runner/llm"
	"crewhost/runner/llm/llmtest"
	"crewhost/runner/llm/ollama"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	llmtest.Conformance(t, llmtest.Vendor{
		New: func(t testing.TB, s llmtest.Settings) llm.Model {
			m, err := ollama.New(ollama.Config{
				BaseURL: "http://model.test", APIKey: s.APIKey, Model: "test-model",
				Timeout: s.Timeout, IdleTimeout: s.IdleTimeout, MaxRetries: s.MaxRetries, HTTPClient: s.Client, Logger: s.Logger,
			})
			if err != nil {
				t.Fatal(err)
			}
			return m
		},
		Whole: whole, Events: events,
		Fault: func(code, message string) string {
			return encode(map[string]any{"error": message, "code": code})
		},
		Key:      func(h http.Header) string { return strings.TrimPrefix(h.Get("Authorization"), "Bearer ") },
		Env:      map[string]string{"OLLAMA_HOST": "env.invalid:1"},
		Uncached: true,
	})
}

func encode(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}

var finish = map[llm.StopReason]string{llm.StopEnd: "stop", llm.StopTools: "stop", llm.StopLength: "length", llm.StopFilter: "content_filter"}

func calls(res llm.Response) []any {
	var out []any
	for _, c := range res.Message.Calls {
		var arguments any = c.Arguments
		if json.Valid([]byte(c.Arguments)) {
			arguments = json.RawMessage(c.Arguments)
		}
		out = append(out, map[string]any{"id": c.ID, "function": map[string]any{"name": c.Name, "arguments": arguments}})
	}
	return out
}

func line(res llm.Response, message map[string]any, done bool) string {
	message["role"] = "assistant"
	l := map[string]any{"model": res.Model, "created_at": "2026-01-01T00:00:00Z", "message": message, "done": done}
	if done {
		l["done_reason"], l["prompt_eval_count"], l["eval_count"] = finish[res.Stop], res.Usage.Input, res.Usage.Output
	}
	return encode(l) + "\n"
}

func whole(res llm.Response) string {
	message := map[string]any{"content": res.Message.Text()}
	if c := calls(res); c != nil {
		message["tool_calls"] = c
	}
	return line(res, message, true)
}

func events(res llm.Response) []string {
	out := []string{line(res, map[string]any{"content": ""}, false)}
	for _, word := range strings.SplitAfter(res.Message.Text(), " ") {
		out = append(out, line(res, map[string]any{"content": word}, false))
	}
	for _, c := range calls(res) { // each whole, one a line
		out = append(out, line(res, map[string]any{"content": "", "tool_calls": []any{c}}, false))
	}
	return append(out, line(res, map[string]any{"content": ""}, true))
}

func model(t testing.TB, c ollama.Config, steps ...llmtest.Step) (*ollama.Model, *llmtest.Mock) {
	t.Helper()
	none := 0
	mock := llmtest.NewMock(t, steps...)
	c.MaxRetries, c.HTTPClient, c.Model = &none, llmtest.Serve(t, mock), "m"
	if c.BaseURL == "" {
		c.BaseURL = "http://model.test"
	}
	m, err := ollama.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return m, mock
}

const hello = `{"model":"m","message":{"role":"assistant","content":"a"},"done":true}`

func TestRequests(t *testing.T) {
	half, zero := 0.5, 0.0
	hi := []llm.Message{llm.User("hi")}
	const hiJSON = `"model":"m","stream":false,"messages":[{"role":"user","content":"hi"}]`
	png := llm.Part{MIME: "image/png", Data: []byte("png")}
	for _, tt := range []struct {
		name string
		c    ollama.Config
		req  llm.Request
		want string
	}{
		{"little", ollama.Config{}, llm.Request{Messages: hi}, `{` + hiJSON + `}`},
		{"a longer context", ollama.Config{ContextTokens: 32768}, llm.Request{Messages: hi}, `{` + hiJSON + `,"options":{"num_ctx":32768}}`},
		{"numbers", ollama.Config{}, llm.Request{Messages: hi, Temperature: &zero, TopP: &half, MaxTokens: 7}, `{` + hiJSON + `,"options":{"num_predict":7,"temperature":0,"top_p":0.5}}`},
		{"thinking", ollama.Config{}, llm.Request{Messages: hi, Thinking: &llm.Thinking{Enabled: true}}, `{` + hiJSON + `,"think":true}`},
		{"an effort", ollama.Config{}, llm.Request{Messages: hi, Thinking: &llm.Thinking{Enabled: true, Effort: "low"}}, `{` + hiJSON + `,"think":"low"}`},
		{"no thinking", ollama.Config{}, llm.Request{Messages: hi, Thinking: &llm.Thinking{Effort: "low"}}, `{` + hiJSON + `,"think":false}`},
		{"any object", ollama.Config{}, llm.Request{Messages: hi, Format: &llm.ResponseFormat{Type: "json_object"}}, `{` + hiJSON + `,"format":"json"}`},
		{"a schema", ollama.Config{}, llm.Request{Messages: hi, Format: &llm.ResponseFormat{Type: "json_schema", Schema: []byte(`{"type":"object"}`)}}, `{` + hiJSON + `,"format":{"type":"object"}}`},
		{"none of the tools", ollama.Config{}, llm.Request{Messages: hi, ToolChoice: llm.ToolNone, Tools: []llm.Tool{{Name: "f"}}}, `{` + hiJSON + `}`},
		{"tools", ollama.Config{}, llm.Request{Messages: hi, Tools: []llm.Tool{{Name: "f"}, {Name: "g", Description: "d", Schema: []byte(`{"type":"object","x":1e400}`)}}},
			`{` + hiJSON + `,"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{}}}},{"type":"function","function":{"name":"g","description":"d","parameters":{"type":"object","x":1e400}}}]}`},
		{"a conversation", ollama.Config{}, llm.Request{System: "s", Messages: []llm.Message{
			{Role: llm.RoleUser, Parts: []llm.Part{{Text: "see"}, png, {MIME: "audio/x", Data: []byte{1, 2}}}},
			{Role: llm.RoleAssistant, Reasoning: "hm", Calls: []llm.ToolCall{{ID: "a", Name: "f"}, {ID: "b", Name: "g", Arguments: `{"id":725653563933458433}`}}},
			{Role: llm.RoleTool, CallID: "a", Parts: []llm.Part{{Text: "one"}, {Text: "two"}, png}},
			{Role: llm.RoleTool, CallID: "b", IsError: true},
			{Role: llm.RoleAssistant, Reasoning: "over", Parts: []llm.Part{{Text: "ok"}}},
		}}, `{"model":"m","stream":false,"messages":[
			{"role":"system","content":"s"},
			{"role":"user","content":"see[audio/x, 2 bytes, not shown]","images":["cG5n"]},
			{"role":"assistant","content":"","thinking":"hm","tool_calls":[
				{"id":"a","function":{"name":"f","arguments":{}}},{"id":"b","function":{"name":"g","arguments":{"id":725653563933458433}}}]},
			{"role":"tool","content":"one\ntwo","tool_name":"f","tool_call_id":"a"},
			{"role":"tool","content":"The tool failed and said nothing.","tool_name":"g","tool_call_id":"b"},
			{"role":"user","content":"Images that the tools returned:","images":["cG5n"]},
			{"role":"assistant","content":"ok"}]}`},
	} {
		m, mock := model(t, tt.c, llmtest.Status(200, hello))
		if _, err := m.Generate(t.Context(), tt.req); err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if diff := cmp.Diff(tree(t, tt.want), tree(t, mock.Bodies()[0])); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}

// tree reads JSON, with numbers as they are written.
func tree(t *testing.T, text string) any {
	t.Helper()
	var v any
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return v
}

func TestBaseURL(t *testing.T) {
	for base, want := range map[string]string{
		"http://model.test": "/api/chat", "http://model.test/v1/": "/api/chat", "http://model.test/deep/v1": "/deep/api/chat",
	} {
		m, mock := model(t, ollama.Config{BaseURL: base}, llmtest.Status(200, hello))
		if _, err := m.Generate(t.Context(), llm.Request{Messages: []llm.Message{llm.User("q")}}); err != nil || mock.URLs()[0] != want || mock.Header(0).Get("Authorization") != "" {
			t.Errorf("%s: asked %s, %v, %v", base, mock.URLs()[0], mock.Header(0), err)
		}
	}
	if _, err := ollama.New(ollama.Config{BaseURL: "http://u:sk-secret@h"}); err == nil || strings.Contains(err.Error(), "sk-secret") {
		t.Errorf("got %v", err)
	}
}

func TestAnswers(t *testing.T) {
	for _, tt := range []struct {
		name, answer string
		want         llm.Response
	}{
		{"no ids", `{"message":{"tool_calls":[{"function":{"name":"f","arguments":{"n":725653563933458433}}},{"id":"call_1","function":{"name":"f","arguments":null}}]},"done":true}`,
			llm.Response{Message: llm.Message{Role: llm.RoleAssistant, Calls: []llm.ToolCall{{ID: "call_2", Name: "f", Arguments: `{"n":725653563933458433}`}, {ID: "call_1", Name: "f"}}}, Stop: llm.StopTools}},
		{"thinking alone (K75)", `{"message":{"content":"","thinking":"Hm."},"done":true,"done_reason":"stop","eval_count":3}`,
			llm.Response{Message: llm.Message{Role: llm.RoleAssistant, Reasoning: "Hm."}, Stop: llm.StopEnd, Usage: llm.Usage{Output: 3, Measured: true}}},
		{"cut in a call (K71)", `{"message":{"tool_calls":[{"id":"a","function":{"name":"f","arguments":{}}}]},"done":true,"done_reason":"length"}`,
			llm.Response{Message: llm.Message{Role: llm.RoleAssistant, Calls: []llm.ToolCall{{ID: "a", Name: "f", Arguments: "{}"}}}, Stop: llm.StopLength}},
		{"a reason of its own", `{"message":{"content":"a"},"done":true,"done_reason":"unload"}`,
			llm.Response{Message: llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{{Text: "a"}}}, Stop: llm.StopUnknown}},
	} {
		m, _ := model(t, ollama.Config{}, llmtest.Status(200, tt.answer))
		got, err := m.Generate(t.Context(), llm.Request{Messages: []llm.Message{llm.User("q")}})
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
		} else if diff := cmp.Diff(&tt.want, got); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
	for _, tt := range []struct{ answer, want string }{
		{`{"error":"model not found"}`, "model not found"},
		{`{"message":{"content":"a"},"done":false}` + "\n" + `{"error":"the runner has died"}`, "the runner has died"},
		{`{"message":{"tool_calls":[{"function":{"arguments":{}}}]},"done":true}`, "no name"},
		{`{"message":[],"done":true}`, "not the JSON of a chat"},
		{`<html>`, "not the JSON of a chat"},
		{``, "ended before"},
	} {
		m, _ := model(t, ollama.Config{}, llmtest.Events(tt.answer))
		_, err := m.Generate(t.Context(), llm.Request{Messages: []llm.Message{llm.User("q")}, OnDelta: func(llm.Delta) {}})
		var api *llm.APIError
		if !errors.As(err, &api) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", tt.answer, err)
		}
	}
	for _, req := range []llm.Request{
		{Tools: []llm.Tool{{Name: "f", Schema: []byte(`[]`)}}}, {ToolChoice: "must"}, {Format: &llm.ResponseFormat{Type: "xml"}}, {Format: &llm.ResponseFormat{Type: "json_schema"}},
	} {
		m, _ := model(t, ollama.Config{})
		if _, err := m.Generate(t.Context(), req); err == nil {
			t.Errorf("%+v can't be said, and was", req)
		}
	}
}

// FuzzStream: no stream makes the adapter panic, and every answer can be handed
// back.
func FuzzStream(f *testing.F) {
	f.Add([]byte(`{"message":{"content":"a","tool_calls":[{"function":{"name":"f","arguments":{"a":1}}}]}}` + "\n" + hello))
	f.Add([]byte(`{"message":{"tool_calls":[{"id":"call_1","function":{"name":"f"}},{"function":{"name":"f","arguments":[1]}}]},"done":true}`))
	f.Fuzz(func(t *testing.T, stream []byte) {
		m, _ := model(t, ollama.Config{}, llmtest.Events(string(stream)))
		res, err := m.Generate(t.Context(), llm.Request{Messages: []llm.Message{llm.User("q")}, OnDelta: func(llm.Delta) {}})
		if (res == nil) == (err == nil) {
			t.Fatalf("%v, %v", res, err)
		}
		if err != nil {
			return
		}
		ids := map[string]bool{}
		for _, c := range res.Message.Calls {
			if c.ID == "" || ids[c.ID] || c.Name == "" || !json.Valid(c.Object()) {
				t.Errorf("a call that can't be handed back: %+v", res.Message.Calls)
			}
			ids[c.ID] = true
		}
	})
}
