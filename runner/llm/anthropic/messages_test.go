package anthropic_test

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crewhost/runner/llm"
	"crewhost/runner/llm/anthropic"
	"crewhost/runner/llm/llmtest"
)

// model returns an adapter without repetitions that speaks to a mock with these
// steps.
func model(t testing.TB, steps ...llmtest.Step) (*anthropic.Model, *llmtest.Mock) {
	t.Helper()
	none := 0
	mock := llmtest.NewMock(t, steps...)
	m, err := anthropic.New(anthropic.Config{BaseURL: "http://model.test", Model: "m", MaxRetries: &none, HTTPClient: llmtest.Serve(t, mock)})
	if err != nil {
		t.Fatal(err)
	}
	return m, mock
}

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

func answer(content string) llmtest.Step {
	return llmtest.Status(200, `{"id":"x","type":"message","role":"assistant","model":"m","content":`+content+`,"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}`)
}

func TestRequests(t *testing.T) {
	zero := 0.0
	hi := []llm.Message{llm.User("hi")}
	const hiJSON = `"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}]`
	png := llm.Part{MIME: "image/png", Data: []byte("png")}
	const pngJSON = `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"cG5n"}}`
	for _, tt := range []struct {
		name string
		req  llm.Request
		want string
	}{
		{"little", llm.Request{Messages: hi}, `{` + hiJSON + `,"max_tokens":8192}`},
		{"system and numbers", llm.Request{Messages: hi, System: "s", Temperature: &zero, MaxTokens: 7}, `{` + hiJSON + `,"max_tokens":7,"temperature":0,"system":[{"type":"text","text":"s"}]}`},
		{"more than the SDK lets through unstreamed", llm.Request{Messages: hi, MaxTokens: 128000}, `{` + hiJSON + `,"max_tokens":128000}`},
		{"thinking within a budget", llm.Request{Messages: hi, Thinking: &llm.Thinking{Enabled: true, BudgetTokens: 2000}}, `{` + hiJSON + `,"max_tokens":8192,"thinking":{"type":"enabled","budget_tokens":2000}}`},
		{"a budget larger than the bound", llm.Request{Messages: hi, MaxTokens: 100, Thinking: &llm.Thinking{Enabled: true, BudgetTokens: 2000}}, `{` + hiJSON + `,"max_tokens":2100,"thinking":{"type":"enabled","budget_tokens":2000}}`},
		{"thinking by effort", llm.Request{Messages: hi, Thinking: &llm.Thinking{Enabled: true, Effort: "low"}}, `{` + hiJSON + `,"max_tokens":8192,"thinking":{"type":"adaptive"},"output_config":{"effort":"low"}}`},
		{"thinking off", llm.Request{Messages: hi, Thinking: &llm.Thinking{Effort: "low"}}, `{` + hiJSON + `,"max_tokens":8192}`},
		{"json_schema", llm.Request{Messages: hi, Format: &llm.ResponseFormat{Type: "json_schema", Schema: []byte(`{"type":"object","properties":{"a":{"type":"string","minLength":3,"format":"date"}}}`)}}, `{` + hiJSON + `,"max_tokens":8192,"output_config":{"format":{"type":"json_schema","schema":{"type":"object","additionalProperties":false,"properties":{"a":{"type":"string","format":"date"}}}}}}`},
		{"a schema that the API can't say", llm.Request{Messages: hi, Format: &llm.ResponseFormat{Type: "json_schema", Schema: []byte(`{"type":"object"}`)}}, `{` + hiJSON + `,"max_tokens":8192,"system":[{"type":"text","text":"Answer with exactly one JSON value that is valid against this JSON Schema, and nothing around it:\n{\"type\":\"object\"}"}]}`},
		{"one call at most", llm.Request{Messages: hi, OneCall: true, Tools: []llm.Tool{{Name: "f"}}}, `{` + hiJSON + `,"max_tokens":8192,"tool_choice":{"type":"auto","disable_parallel_tool_use":true},"tools":[{"name":"f","input_schema":{"type":"object","properties":{}}}]}`},
		{"marks for caching", llm.Request{Messages: hi, System: "s", Cache: &llm.Cache{System: true, Tools: true, TTL: "1h"}, Tools: []llm.Tool{{Name: "f"}, {Name: "g"}}},
			`{` + hiJSON + `,"max_tokens":8192,"system":[{"type":"text","text":"s","cache_control":{"type":"ephemeral","ttl":"1h"}}],"tools":[{"name":"f","input_schema":{"type":"object","properties":{}}},{"name":"g","input_schema":{"type":"object","properties":{}},"cache_control":{"type":"ephemeral","ttl":"1h"}}]}`},
		{"a mark of what is there", llm.Request{Messages: hi, System: "s", Cache: &llm.Cache{System: true, Tools: true}},
			`{` + hiJSON + `,"max_tokens":8192,"system":[{"type":"text","text":"s","cache_control":{"type":"ephemeral"}}]}`},
		{"json_object", llm.Request{Messages: hi, System: "s", Format: &llm.ResponseFormat{Type: "json_object"}}, `{` + hiJSON + `,"max_tokens":8192,"system":[{"type":"text","text":"s\n\nAnswer with exactly one JSON object and nothing around it."}]}`},
		{"tools and none of them", llm.Request{Messages: hi, ToolChoice: llm.ToolNone, Tools: []llm.Tool{{Name: "f"}, {Name: "g", Description: "d", Schema: []byte(`{"type":"object","$defs":{}}`)}}},
			`{` + hiJSON + `,"max_tokens":8192,"tool_choice":{"type":"none"},"tools":[{"name":"f","input_schema":{"type":"object","properties":{}}},{"name":"g","description":"d","input_schema":{"type":"object","$defs":{}}}]}`},
		{"results in one message", llm.Request{Messages: []llm.Message{
			llm.User("q"),
			{Role: llm.RoleAssistant, Parts: []llm.Part{{Text: " "}}, Calls: []llm.ToolCall{{ID: "a", Name: "f", Arguments: "null"}, {ID: "b", Name: "g", Arguments: `[1]`}}},
			{Role: llm.RoleTool, CallID: "a", Parts: []llm.Part{{Text: "look"}, png, {MIME: "audio/x", Data: []byte{1, 2}}}},
			{Role: llm.RoleTool, CallID: "b", IsError: true},
			llm.User("and?"),
			{Role: llm.RoleAssistant},
			{Role: llm.RoleUser, Parts: []llm.Part{png, {MIME: "application/pdf", Data: []byte("pdf")}}},
			llm.User(""),
		}}, `{"model":"m","max_tokens":8192,"messages":[
			{"role":"user","content":[{"type":"text","text":"q"}]},
			{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}},{"type":"tool_use","id":"b","name":"g","input":{"malformed_arguments":"[1]"}}]},
			{"role":"user","content":[
				{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"look"},` + pngJSON + `,{"type":"text","text":"[audio/x, 2 bytes, not shown]"}]},
				{"type":"tool_result","tool_use_id":"b","is_error":true,"content":[{"type":"text","text":"The tool failed and said nothing."}]},
				{"type":"text","text":"and?"}]},
			{"role":"user","content":[` + pngJSON + `,{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"cGRm"}}]},
			{"role":"user","content":[{"type":"text","text":"(no text)"}]}]}`},
	} {
		m, mock := model(t, answer(`[]`))
		if _, err := m.Generate(t.Context(), tt.req); err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		same(t, tt.name, tt.want, mock.Bodies()[0])
		if got := mock.URLs()[0]; got != "/v1/messages" {
			t.Errorf("%s: asked %s", tt.name, got)
		}
		if h := mock.Header(0); h.Get("Anthropic-Version") == "" || h.Get("X-Api-Key")+h.Get("Authorization") != "" {
			t.Errorf("%s: header %v", tt.name, h)
		}
	}
}

// TestThinkingGoesBackAsItCame: signed blocks, in their order, streamed and not;
// and only where the message's calls are those that it came with.
func TestThinkingGoesBackAsItCame(t *testing.T) {
	const content = `[
		{"type":"thinking","thinking":"Hm, <a>.","signature":"sig+/="},
		{"type":"text","text":"Let me look."},
		{"type":"redacted_thinking","data":"ZGF0YQ=="},
		{"type":"tool_use","id":"t1","name":"f","input":{"id": 725653563933458433}}]`
	streamed := []string{begin("m", llm.Usage{})}
	streamed = append(streamed, block(0, map[string]any{"type": "thinking", "thinking": "", "signature": ""},
		map[string]any{"type": "thinking_delta", "thinking": "Hm, "}, map[string]any{"type": "thinking_delta", "thinking": "<a>."},
		map[string]any{"type": "signature_delta", "signature": "sig+/="})...)
	streamed = append(streamed, block(1, map[string]any{"type": "text", "text": ""}, map[string]any{"type": "text_delta", "text": "Let me look."})...)
	streamed = append(streamed, block(2, map[string]any{"type": "redacted_thinking", "data": "ZGF0YQ=="})...)
	streamed = append(streamed, block(3, map[string]any{"type": "tool_use", "id": "t1", "name": "f", "input": map[string]any{}},
		map[string]any{"type": "input_json_delta", "partial_json": `{"id": 725653563933458433}`})...)
	streamed = append(streamed, end("tool_use", 3))

	for _, how := range []string{"whole", "streamed"} {
		req := llm.Request{Messages: []llm.Message{llm.User("q")}}
		first := answer(content)
		if how == "streamed" {
			first = llmtest.Events(streamed...)
			req.OnDelta = func(llm.Delta) {}
		}
		m, mock := model(t, first, answer(`[]`), answer(`[]`), answer(`[]`))
		res, err := m.Generate(t.Context(), req)
		if err != nil {
			t.Fatalf("%s: %v", how, err)
		}
		if res.Message.Reasoning != "Hm, <a>." || res.Message.Text() != "Let me look." || res.Message.Calls[0].Arguments != `{"id": 725653563933458433}` {
			t.Errorf("%s: got %+v", how, res.Message)
		}

		// As a journal or a tape would keep it.
		kept, err := json.Marshal(res.Message)
		if err != nil {
			t.Fatal(err)
		}
		var back llm.Message
		if err := json.Unmarshal(kept, &back); err != nil {
			t.Fatal(err)
		}
		result := llm.Message{Role: llm.RoleTool, CallID: "t1", Parts: []llm.Part{{Text: "ok"}}}
		other := back
		other.Calls = nil
		foreign := back
		foreign.Opaque = json.RawMessage(`{"another":[{}]}`)
		const plain = `{"role":"assistant","content":[{"type":"text","text":"Let me look."}`
		for i, tt := range []struct {
			name, want string
			messages   []llm.Message
		}{
			{"unchanged", `{"role":"assistant","content":` + content + `}`, []llm.Message{llm.User("q"), back, result}},
			{"calls taken out", plain + `]}`, []llm.Message{llm.User("q"), other}},
			{"of another adapter", plain + `,{"type":"tool_use","id":"t1","name":"f","input":{"id":725653563933458433}}]}`, []llm.Message{llm.User("q"), foreign, result}},
		} {
			if _, err := m.Generate(t.Context(), llm.Request{Messages: tt.messages}); err != nil {
				t.Fatalf("%s, %s: %v", how, tt.name, err)
			}
			var body struct{ Messages []json.RawMessage }
			if err := json.Unmarshal([]byte(mock.Bodies()[i+1]), &body); err != nil {
				t.Fatal(err)
			}
			same(t, how+", "+tt.name, tt.want, string(body.Messages[1]))
			if strings.Contains(tt.want, "tool_use") && !strings.Contains(string(body.Messages[1]), "725653563933458433") { // K31
				t.Errorf("%s, %s: the digits are lost: %s", how, tt.name, body.Messages[1])
			}
		}
	}
}

// TestCutCallKeepsItsText (K71): the SDK makes {} of an input that is cut, which
// would look like a call without arguments.
func TestCutCallKeepsItsText(t *testing.T) {
	stream := []string{begin("m", llm.Usage{})}
	stream = append(stream, block(0, map[string]any{"type": "tool_use", "id": "t", "name": "write", "input": map[string]any{}},
		map[string]any{"type": "input_json_delta", "partial_json": `{"path":"/a","con`})...)
	m, _ := model(t, llmtest.Events(append(stream, end("max_tokens", 1))...))
	res, err := m.Generate(t.Context(), llm.Request{Messages: []llm.Message{llm.User("q")}, OnDelta: func(llm.Delta) {}})
	if err != nil || res.Stop != llm.StopLength || res.Message.Calls[0].Arguments != `{"path":"/a","con` {
		t.Errorf("got %+v, %v", res, err)
	}
}

func TestStopReasons(t *testing.T) {
	const call = `{"type":"tool_use","id":"t","name":"f","input":{}}`
	for _, tt := range []struct {
		reason, content string
		want            llm.StopReason
	}{
		{"end_turn", ``, llm.StopEnd},
		{"stop_sequence", ``, llm.StopEnd},
		{"tool_use", call, llm.StopTools},
		{"end_turn", call, llm.StopTools},
		{"tool_use", ``, llm.StopUnknown},
		{"pause_turn", ``, llm.StopUnknown},
		{"something_new", ``, llm.StopUnknown},
		{"max_tokens", call, llm.StopLength},
		{"model_context_window_exceeded", call, llm.StopLength},
		{"refusal", call, llm.StopFilter},
	} {
		m, _ := model(t, llmtest.Status(200, `{"type":"message","content":[`+tt.content+`],"stop_reason":"`+tt.reason+`"}`))
		res, err := m.Generate(t.Context(), llm.Request{Messages: []llm.Message{llm.User("q")}})
		if err != nil || res.Stop != tt.want || res.Usage.Measured {
			t.Errorf("%s with [%s]: %+v, %v; want %s, not measured", tt.reason, tt.content, res, err, tt.want)
		}
	}
}

func TestUsageCountsCachedInput(t *testing.T) {
	m, _ := model(t, llmtest.Status(200, `{"type":"message","content":[],"stop_reason":"end_turn","usage":{
		"input_tokens":10,"cache_read_input_tokens":200,"cache_creation_input_tokens":3000,"output_tokens":50,"output_tokens_details":{"thinking_tokens":40}}}`))
	res, err := m.Generate(t.Context(), llm.Request{Messages: []llm.Message{llm.User("q")}})
	want := llm.Usage{Input: 3210, Output: 50, CacheRead: 200, CacheWrite: 3000, Reasoning: 40, Measured: true}
	if err != nil || res.Usage != want {
		t.Errorf("got %+v, %v; want %+v", res.Usage, err, want)
	}
}

func TestAnswersThatAreNone(t *testing.T) {
	fault := func(kind string) string {
		return event("error", map[string]any{"error": map[string]any{"type": kind, "message": "what it says"}})
	}
	start := begin("m", llm.Usage{})
	for _, tt := range []struct {
		name, want string
		step       llmtest.Step
		streamed   bool
		temporary  bool
	}{
		{"empty body", "not the JSON", llmtest.Status(200, ""), false, false},
		{"another API", "no message", llmtest.Status(200, `{"choices":[]}`), false, false},
		{"overloaded in the stream", "overloaded_error: what it says", llmtest.Events(start, fault("overloaded_error")), true, true},
		{"refused in the stream", "invalid_request_error: what it says", llmtest.Events(start, fault("invalid_request_error")), true, false},
		{"no start", "cannot be followed", llmtest.Events(event("content_block_delta", map[string]any{"index": 3, "delta": map[string]any{"type": "text_delta", "text": "x"}})), true, false},
		{"a gap", "cannot be followed", llmtest.Events(start, event("content_block_start", map[string]any{"index": 5, "content_block": map[string]any{"type": "text", "text": ""}})), true, false},
		{"broken piece", "not JSON", llmtest.Events(start, llmtest.Event("content_block_delta", "{")), true, false},
		{"empty stream", "ended before", llmtest.Events(), true, true},
	} {
		m, _ := model(t, tt.step)
		req := llm.Request{Messages: []llm.Message{llm.User("q")}}
		if tt.streamed {
			req.OnDelta = func(llm.Delta) {}
		}
		_, err := m.Generate(t.Context(), req)
		var api *llm.APIError
		if !errors.As(err, &api) || !strings.Contains(err.Error(), tt.want) || api.Temporary != tt.temporary {
			t.Errorf("%s: got %#v, want %q, temporary %v", tt.name, err, tt.want, tt.temporary)
		}
	}
}

// TestNothingOnStandardError: the SDK warns there of budgets for some models.
func TestNothingOnStandardError(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	stderr := os.Stderr
	os.Stderr = w
	m, _ := model(t, answer(`[]`))
	_, err = m.Generate(t.Context(), llm.Request{Model: "claude-opus-4-6", Messages: []llm.Message{llm.User("q")}, Thinking: &llm.Thinking{Enabled: true, BudgetTokens: 2000}})
	os.Stderr = stderr
	if err != nil {
		t.Error(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if said, err := io.ReadAll(r); err != nil || len(said) > 0 {
		t.Errorf("said %q, %v", said, err)
	}
}

func TestNewAndRequestsThatCannotBeSaid(t *testing.T) {
	for _, base := range []string{"model.test", "ftp://model.test", "http://sk-secret@model.test", "http://sk-secret\x7f"} {
		if _, err := anthropic.New(anthropic.Config{BaseURL: base}); err == nil || strings.Contains(err.Error(), "sk-secret") {
			t.Errorf("%s: got %v", base, err)
		}
	}
	m, err := anthropic.New(anthropic.Config{})
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
		{"schema of the response format", llm.Request{Model: "m", Format: &llm.ResponseFormat{Type: "json_schema"}}},
	} {
		if _, err := m.Generate(t.Context(), tt.req); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("got %v, want %s", err, tt.want)
		}
	}
}

// FuzzStream: no stream makes the adapter panic, and each call of an answer can be
// handed back as an object.
func FuzzStream(f *testing.F) {
	res := llm.Response{
		Message: llm.Message{Parts: []llm.Part{{Text: "one two"}}, Calls: []llm.ToolCall{{ID: "a", Name: "f", Arguments: `{"a":1}`}}},
		Stop:    llm.StopTools, Model: "m",
	}
	f.Add([]byte(strings.Join(events(res), "")))
	f.Add([]byte("event: message_start\ndata: {\"type\":\"message_start\"}\n\nevent: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":-1}\n\n"))
	f.Add([]byte("event: error\ndata: {}\n\n"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		m, _ := model(t, llmtest.Events(string(stream)))
		res, err := m.Generate(t.Context(), llm.Request{Messages: []llm.Message{llm.User("q")}, OnDelta: func(llm.Delta) {}})
		if (res == nil) == (err == nil) {
			t.Fatalf("%v, %v", res, err)
		}
		if err != nil {
			return
		}
		for _, c := range res.Message.Calls {
			if !json.Valid(c.Object()) {
				t.Errorf("no object: %s", c.Object())
			}
		}
	})
}
