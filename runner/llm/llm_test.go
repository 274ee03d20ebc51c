package llm_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crewhost/runner/llm"
)

func TestUsageAdd(t *testing.T) {
	a := llm.Usage{Input: 10, Output: 2, CacheRead: 4, CacheWrite: 1, Reasoning: 1, Measured: true}
	b := llm.Usage{Input: 5, Output: 3}
	sum := llm.Usage{Input: 15, Output: 5, CacheRead: 4, CacheWrite: 1, Reasoning: 1}
	for _, tt := range []struct {
		name       string
		u, v, want llm.Usage
	}{
		{"both measured", a, a, llm.Usage{Input: 20, Output: 4, CacheRead: 8, CacheWrite: 2, Reasoning: 2, Measured: true}},
		{"one measured", a, b, sum},
		{"empty left", llm.Usage{}, a, a},
		{"empty right", a, llm.Usage{}, a},
	} {
		if got := tt.u.Add(tt.v); got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

func TestMessageText(t *testing.T) {
	m := llm.Message{Parts: []llm.Part{{Text: "a"}, {MIME: "image/png", Data: []byte{1}}, {Text: "b"}}}
	if got := m.Text(); got != "ab" {
		t.Errorf("got %q", got)
	}
	if got := (llm.Message{}).Text(); got != "" {
		t.Errorf("of nothing: %q", got)
	}
}

func TestAPIErrorNamesWhoAndWhat(t *testing.T) {
	cause := errors.New("cause")
	err := &llm.APIError{Provider: "acme", Status: 429, Code: "rate_limit", Message: "slow down", Err: cause}
	if got, want := err.Error(), "acme: HTTP 429: rate_limit: slow down"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if !errors.Is(err, cause) {
		t.Error("the cause is lost")
	}
}

// A tape matches requests by their JSON, so encoding must lose nothing of them.
func TestRequestSurvivesJSON(t *testing.T) {
	temp := 0.5
	req := llm.Request{
		Model: "m", System: "s",
		Messages: []llm.Message{
			llm.User("hi"),
			{Role: llm.RoleAssistant, Reasoning: "hm", Opaque: json.RawMessage(`{"n":725653563933458433}`),
				Calls: []llm.ToolCall{{ID: "1", Name: "f", Arguments: `{"id":725653563933458433}`}}},
			{Role: llm.RoleTool, CallID: "1", IsError: true, Parts: []llm.Part{{MIME: "image/png", Data: []byte{0, 255}}}},
		},
		Tools:       []llm.Tool{{Name: "f", Description: "d", Schema: json.RawMessage(`{"type":"object"}`)}},
		ToolChoice:  llm.ToolNone,
		Temperature: &temp,
		MaxTokens:   7,
		Format:      &llm.ResponseFormat{Type: "json_schema", Name: "n", Schema: json.RawMessage(`{}`), Strict: true},
		Thinking:    &llm.Thinking{Enabled: true, Effort: "low", BudgetTokens: 5},
	}
	text, err := json.Marshal(req)
	if err != nil {
		t.Fatal(err)
	}
	var back llm.Request
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(req, back); diff != "" {
		t.Error(diff)
	}
}

func TestToolCallObject(t *testing.T) { // K29, K31
	for _, tt := range []struct{ arguments, want string }{
		{`{"id":725653563933458433, "x":1e400}`, `{"id":725653563933458433, "x":1e400}`},
		{"", "{}"}, {" \n", "{}"}, {"null", "{}"}, {"{}", "{}"},
		{`{"a":`, `{"malformed_arguments":"{\"a\":"}`},
		{`[1]`, `{"malformed_arguments":"[1]"}`},
		{`{"a":1}{"b":2}`, `{"malformed_arguments":"{\"a\":1}{\"b\":2}"}`},
		{`a<b`, `{"malformed_arguments":"a<b"}`},
	} {
		if got := string(llm.ToolCall{Arguments: tt.arguments}.Object()); got != tt.want {
			t.Errorf("%q: got %s, want %s", tt.arguments, got, tt.want)
		}
	}
}

func TestEcho(t *testing.T) {
	var streamed string
	req := llm.Request{
		Messages: []llm.Message{llm.User("first"), {Role: llm.RoleAssistant, Parts: []llm.Part{{Text: "x"}}}, llm.User("second")},
		OnDelta:  func(d llm.Delta) { streamed += d.Text },
	}
	res, err := llm.Echo{}.Generate(t.Context(), req)
	if err != nil || res.Message.Text() != "second" || streamed != "second" || res.Stop != llm.StopEnd || res.Usage.Measured {
		t.Errorf("%+v, %v, streamed %q", res, err, streamed)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (llm.Echo{}).Generate(ctx, req); !errors.Is(err, context.Canceled) {
		t.Errorf("ended context: %v", err)
	}
}
