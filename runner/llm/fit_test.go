package llm_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"crewhost/runner/llm"
)

func TestFit(t *testing.T) {
	half := 0.5
	schema := &llm.ResponseFormat{Type: "json_schema", Schema: []byte(`{"type":"object"}`)}
	object := &llm.ResponseFormat{Type: "json_object"}
	thinking := func(effort string, budget int) llm.Request {
		return llm.Request{Thinking: &llm.Thinking{Enabled: true, Effort: effort, BudgetTokens: budget}}
	}
	const inPrompt = "Answer with exactly one JSON value that is valid against this JSON Schema, and nothing around it:\n" + `{"type":"object"}`
	for _, tt := range []struct {
		name   string
		caps   llm.Capabilities
		req    llm.Request
		want   llm.Request
		change string // of the changes, joined
	}{
		{"what takes all", llm.Capabilities{}, llm.Request{Format: schema, Cache: &llm.Cache{}, Temperature: &half}, llm.Request{Format: schema, Cache: &llm.Cache{}, Temperature: &half}, ""},
		{"one call", llm.Capabilities{OneCall: true}, llm.Request{}, llm.Request{OneCall: true}, ""},
		{"no marks", llm.Capabilities{Cache: llm.CacheAutomatic}, llm.Request{Cache: &llm.Cache{System: true}}, llm.Request{}, "the vendor caches prompts by itself, so no mark is sent"},
		{"an effort for a budget", llm.Capabilities{Thinking: llm.ThinkEffort}, thinking("", 9000), thinking("high", 0), "the thinking budget of 9000 tokens is asked for as the effort high"},
		{"an effort beside a budget", llm.Capabilities{Thinking: llm.ThinkEffort}, thinking("low", 9000), thinking("low", 0), "the thinking budget of 9000 tokens is asked for as the effort low"},
		{"a budget for an effort", llm.Capabilities{Thinking: llm.ThinkBudget}, thinking("medium", 0), thinking("", 8192), "the thinking effort medium is asked for as a budget of 8192 tokens"},
		{"a lower effort", llm.Capabilities{TopEffort: "high"}, thinking("max", 0), thinking("high", 0), "the thinking effort max is asked for as high"},
		{"on or off", llm.Capabilities{Thinking: llm.ThinkSwitch}, thinking("low", 1), thinking("", 0), "thinking is switched on, without effort or budget"},
		{"not at all", llm.Capabilities{Thinking: llm.ThinkNone}, thinking("low", 0), llm.Request{}, "thinking can't be asked for, so the model decides"},
		{"off where it can't be said", llm.Capabilities{Thinking: llm.ThinkNone}, llm.Request{Thinking: &llm.Thinking{Effort: "low"}}, llm.Request{}, ""},
		{"off", llm.Capabilities{Thinking: llm.ThinkEffort}, llm.Request{Thinking: &llm.Thinking{Effort: "low", BudgetTokens: 7}}, llm.Request{Thinking: &llm.Thinking{}}, ""},
		{"warm thoughts", llm.Capabilities{ThinkingAlone: true}, llm.Request{Thinking: &llm.Thinking{Enabled: true}, Temperature: &half, TopP: &half}, llm.Request{Thinking: &llm.Thinking{Enabled: true}}, "temperature and topP are not sent beside thinking"},
		{"no schema", llm.Capabilities{Formats: llm.FormatObject}, llm.Request{System: "s", Format: schema}, llm.Request{System: "s\n\n" + inPrompt, Format: object}, "the response schema is put into the prompt, and any JSON object asked for"},
		{"no format", llm.Capabilities{Formats: llm.FormatNone}, llm.Request{Format: schema}, llm.Request{System: inPrompt}, "the response schema is put into the prompt"},
		{"not beside tools", llm.Capabilities{FormatAlone: true}, llm.Request{Format: schema, Tools: []llm.Tool{{}}}, llm.Request{System: inPrompt, Tools: []llm.Tool{{}}}, "the response format is asked for in the prompt, since the API takes none beside tools"},
		{"without tools", llm.Capabilities{FormatAlone: true}, llm.Request{Format: schema}, llm.Request{Format: schema}, ""},
	} {
		before, _ := json.Marshal(tt.req)
		got, changes := tt.caps.Fit(tt.req)
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
		if joined := strings.Join(changes, "; "); joined != tt.change {
			t.Errorf("%s: said %q, want %q", tt.name, joined, tt.change)
		}
		if after, _ := json.Marshal(tt.req); string(after) != string(before) {
			t.Errorf("%s: the caller's request was changed", tt.name)
		}
		if again, more := tt.caps.Fit(got); cmp.Diff(got, again) != "" || len(more) > 0 {
			t.Errorf("%s: fitted twice: %v", tt.name, more)
		}
	}
}

// Which schemas may be strict where that means: all properties required, no
// others allowed, at every depth.
func TestStrictSubset(t *testing.T) {
	const good = `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`
	for schema, want := range map[string]bool{
		good:                                    true,
		`{"type":"array","items":` + good + `}`: true,
		`{"type":"string"}`:                     true,
		`{"type":"object"}`:                     false,
		`{"type":"object","properties":{"a":{}},"additionalProperties":false}`:                                                       false,
		`{"properties":{"a":{}},"required":["a"]}`:                                                                                   false,
		`{"type":"array","items":{"type":"object"}}`:                                                                                 false,
		`{"anyOf":[` + good + `,{"type":"object"}]}`:                                                                                 false,
		`{"$defs":{"x":{"type":"object"}},"$ref":"#/$defs/x"}`:                                                                       false,
		`{"type":"object","properties":{"a":{"type":"object"}},"required":["a"],"additionalProperties":false}`:                       false,
		strings.Repeat(`{"items":`, 150) + `{}` + strings.Repeat(`}`, 150):                                                           false,
		`{"type":"object","properties":{"a":{"type":["object","null"]}},"required":["a"],"additionalProperties":false,"items":null}`: true,
	} {
		req := llm.Request{Format: &llm.ResponseFormat{Type: "json_schema", Schema: []byte(schema), Strict: true}}
		got, changes := llm.Capabilities{StrictSubset: true}.Fit(req)
		if got.Format.Strict != want || (len(changes) == 0) != want || !req.Format.Strict {
			t.Errorf("%s: strict %v, %v", schema, got.Format.Strict, changes)
		}
	}
}

// refusing refuses requests as a vendor does, and keeps what it was asked.
type refusing struct {
	refuse func(llm.Request) error
	asked  []llm.Request
}

func (r *refusing) Generate(_ context.Context, req llm.Request) (*llm.Response, error) {
	r.asked = append(r.asked, req)
	if err := r.refuse(req); err != nil {
		return nil, err
	}
	return &llm.Response{Stop: llm.StopEnd}, nil
}

// A field that the vendor refuses is given up once, with a line on the log, and
// not asked of that model again.
func TestRefusedFieldsAreGivenUp(t *testing.T) {
	half := 0.5
	bad := func(param, message string) error {
		return &llm.APIError{Provider: "p", Status: 400, Param: param, Message: message}
	}
	full := func(model string) llm.Request {
		return llm.Request{
			Model: model, MaxTokens: 100_000, Temperature: &half, TopP: &half, Thinking: &llm.Thinking{Enabled: true},
			Format: &llm.ResponseFormat{Type: "json_object"}, Cache: &llm.Cache{System: true}, OneCall: true,
		}
	}
	for _, tt := range []struct {
		name   string
		refuse func(llm.Request) error
		want   func(*llm.Request)
		tries  int
	}{
		{"a temperature", func(r llm.Request) error {
			if r.Temperature != nil {
				return bad("temperature", "Unsupported value")
			}
			return nil
		}, func(r *llm.Request) { r.Temperature = nil }, 2},
		{"named in the text alone", func(r llm.Request) error {
			if r.TopP != nil {
				return bad("", "`top_p` is not supported by this model")
			}
			return nil
		}, func(r *llm.Request) { r.TopP = nil }, 2},
		{"Anthropic's own limit", func(r llm.Request) error {
			if r.MaxTokens > 64_000 {
				return bad("", "max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens for claude-x-4-5")
			}
			return nil
		}, func(r *llm.Request) { r.MaxTokens = 64_000 }, 2},
		{"a limit with commas", func(r llm.Request) error {
			if r.MaxTokens > 16_384 {
				return bad("max_tokens", "max_tokens is too large: 100,000. This model supports at most 16,384 completion tokens")
			}
			return nil
		}, func(r *llm.Request) { r.MaxTokens = 16_384 }, 2},
		{"a limit that is refused too", func(r llm.Request) error {
			if r.MaxTokens > 0 {
				return bad("max_completion_tokens", "try 4096")
			}
			return nil
		}, func(r *llm.Request) { r.MaxTokens = 0 }, 3},
		{"an effort", func(r llm.Request) error {
			if r.Thinking != nil {
				return bad("reasoning_effort", "no")
			}
			return nil
		}, func(r *llm.Request) { r.Thinking = nil }, 2},
		{"a format, which goes into the prompt", func(r llm.Request) error {
			if r.Format != nil {
				return bad("response_format.type", "no")
			}
			return nil
		}, func(r *llm.Request) {
			r.Format, r.System = nil, "Answer with exactly one JSON object and nothing around it."
		}, 2},
		{"all of them", func(r llm.Request) error {
			switch {
			case r.MaxTokens > 0:
				return bad("max_tokens", "")
			case r.Cache != nil:
				return bad("", "messages.0.content.0.cache_control: extra input")
			case r.OneCall:
				return bad("parallel_tool_calls", "")
			}
			return nil
		}, func(r *llm.Request) { r.MaxTokens, r.Cache, r.OneCall = 0, nil, false }, 4},
	} {
		var log strings.Builder
		vendor := &refusing{refuse: tt.refuse}
		m := llm.Fitted(vendor, llm.Capabilities{}, slog.New(slog.NewTextHandler(&log, nil)))
		if _, err := m.Generate(t.Context(), full("a")); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		want := full("a")
		tt.want(&want)
		if diff := cmp.Diff(want, vendor.asked[len(vendor.asked)-1]); diff != "" || len(vendor.asked) != tt.tries {
			t.Errorf("%s: %d requests, %s", tt.name, len(vendor.asked), diff)
		}
		if n := strings.Count(log.String(), "level=WARN"); n != tt.tries-1 {
			t.Errorf("%s: %d lines on the log: %s", tt.name, n, log.String())
		}
		vendor.asked = nil
		if _, err := m.Generate(t.Context(), full("a")); err != nil || len(vendor.asked) != 1 {
			t.Errorf("%s: asked again: %d requests, %v", tt.name, len(vendor.asked), err)
		}
		vendor.asked = nil
		if _, err := m.Generate(t.Context(), full("b")); err != nil || len(vendor.asked) != tt.tries {
			t.Errorf("%s: another model: %d requests, %v", tt.name, len(vendor.asked), err)
		}
	}
}

// Two requests that are refused side by side for the same field teach the same
// once: the bound that the first found is not given up for the second.
func TestRefusalsSideBySide(t *testing.T) {
	sent := make(chan struct{}, 2)
	both := make(chan struct{})
	var mu sync.Mutex
	var asked []int
	vendor := generator(func(_ context.Context, req llm.Request) (*llm.Response, error) {
		mu.Lock()
		asked = append(asked, req.MaxTokens)
		mu.Unlock()
		if req.MaxTokens <= 64_000 {
			return &llm.Response{Stop: llm.StopEnd}, nil
		}
		sent <- struct{}{}
		<-both
		return nil, &llm.APIError{Status: 400, Message: "max_tokens: 100000 > 64000"}
	})
	m := llm.Fitted(vendor, llm.Capabilities{}, nil)
	var group errgroup.Group
	for range 2 {
		group.Go(func() error {
			_, err := m.Generate(t.Context(), llm.Request{MaxTokens: 100_000})
			return err
		})
	}
	<-sent
	<-sent
	close(both)
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int{100_000, 100_000, 64_000, 64_000}, asked); diff != "" {
		t.Error(diff)
	}
}

type generator func(context.Context, llm.Request) (*llm.Response, error)

func (g generator) Generate(ctx context.Context, req llm.Request) (*llm.Response, error) {
	return g(ctx, req)
}

// What is no refusal of a field that was sent is nothing to learn from.
func TestOtherRefusalsStand(t *testing.T) {
	half := 0.5
	req := llm.Request{Temperature: &half, MaxTokens: 5000}
	for name, err := range map[string]error{
		"another status":                   &llm.APIError{Status: 401, Message: "temperature"},
		"another field":                    &llm.APIError{Status: 400, Param: "messages.0.temperature_unit", Message: "temperature"},
		"a field that was not sent":        &llm.APIError{Status: 400, Message: "top_p"},
		"part of a word":                   &llm.APIError{Status: 400, Message: "temperatures, a_temperature, temperature_x"},
		"a context too long":               &llm.APIError{Status: 400, Code: "context_length_exceeded", Message: "reduce max_tokens"},
		"a context too long, of Anthropic": &llm.APIError{Status: 400, Message: "input length and `max_tokens` exceed context limit: exceeds the context window, decrease max_tokens"},
		"no refusal":                       errors.New("temperature"),
	} {
		vendor := &refusing{refuse: func(llm.Request) error { return err }}
		if _, got := llm.Fitted(vendor, llm.Capabilities{}, nil).Generate(t.Context(), req); !errors.Is(got, err) || len(vendor.asked) != 1 {
			t.Errorf("%s: %d requests, %v", name, len(vendor.asked), got)
		}
	}
}

// FuzzRefusedField: whatever a vendor says, requests end.
func FuzzRefusedField(f *testing.F) {
	f.Add("max_tokens", "max_tokens: 9 > 8, temperature, thinking, response_format 4000")
	f.Add("", "`reasoning_effort` cache_control parallel_tool_calls 99999999999999999999")
	f.Fuzz(func(t *testing.T, param, message string) {
		half := 0.5
		vendor := &refusing{refuse: func(llm.Request) error { return &llm.APIError{Status: 400, Param: param, Message: message} }}
		_, err := llm.Fitted(vendor, llm.Capabilities{}, nil).Generate(t.Context(), llm.Request{
			MaxTokens: 100_000, Temperature: &half, TopP: &half, Thinking: &llm.Thinking{Enabled: true},
			Format: &llm.ResponseFormat{Type: "json_object"}, Cache: &llm.Cache{System: true}, OneCall: true,
		})
		if err == nil || len(vendor.asked) > 9 {
			t.Errorf("%d requests, %v", len(vendor.asked), err)
		}
	})
}
