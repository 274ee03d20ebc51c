package openai_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crewhost/runner/llm"
	"crewhost/runner/llm/llmtest"
	"crewhost/runner/llm/openai"
)

// answered asks a server that answers with step; streamed if it sends events.
func answered(t testing.TB, step llmtest.Step, streamed bool) (*llm.Response, error) {
	t.Helper()
	none := 0
	m, err := openai.New(openai.Config{
		BaseURL: "http://model.test/v1", Model: "m", MaxRetries: &none,
		HTTPClient: llmtest.Serve(t, llmtest.NewMock(t, step)),
	})
	if err != nil {
		t.Fatal(err)
	}
	req := llm.Request{Messages: []llm.Message{llm.User("q")}}
	if streamed {
		req.OnDelta = func(llm.Delta) {}
	}
	return m.Generate(t.Context(), req)
}

// deltas makes a stream of the JSON of deltas, ended by a finish_reason and
// [DONE].
func deltas(finish string, parts ...string) []string {
	var out []string
	for _, p := range parts {
		out = append(out, llmtest.Event("", `{"choices":[{"index":0,"delta":`+p+`}]}`))
	}
	return append(out,
		llmtest.Event("", `{"choices":[{"index":0,"delta":{},"finish_reason":"`+finish+`"}]}`),
		llmtest.Event("", "[DONE]"))
}

func calls(parts ...string) string { return `{"tool_calls":[` + strings.Join(parts, ",") + `]}` }

// TestStreamedCalls (K73): parts of calls as servers are known to send them. The
// calls come out separate and whole, or there is a plain error.
func TestStreamedCalls(t *testing.T) {
	two := []llm.ToolCall{
		{ID: "a", Name: "weather", Arguments: `{"city":"Oslo"}`},
		{ID: "b", Name: "weather", Arguments: `{"city":"Rome"}`},
	}
	unnamed := func(n1, n2 string) []llm.ToolCall {
		return []llm.ToolCall{{ID: "call_1", Name: n1, Arguments: two[0].Arguments}, {ID: "call_2", Name: n2, Arguments: two[1].Arguments}}
	}
	const oslo, rome = `"{\"city\":\"Oslo\"}"`, `"{\"city\":\"Rome\"}"`
	for _, tt := range []struct {
		name  string
		parts []string
		want  []llm.ToolCall
		fails string
	}{
		{"as documented", []string{
			calls(`{"index":0,"id":"a","function":{"name":"weather","arguments":""}}`),
			calls(`{"index":0,"function":{"arguments":"{\"city\":"}}`), calls(`{"index":0,"function":{"arguments":"\"Oslo\"}"}}`),
			calls(`{"index":1,"id":"b","function":{"name":"weather","arguments":""}}`),
			calls(`{"index":1,"function":{"arguments":"{\"city\":\"Rome\"}"}}`),
		}, two, ""},
		{"without index", []string{
			calls(`{"id":"a","function":{"name":"weather","arguments":` + oslo + `}}`),
			calls(`{"id":"b","function":{"name":"weather","arguments":` + rome + `}}`),
		}, two, ""},
		{"without index, both in one piece", []string{
			calls(`{"id":"a","function":{"name":"weather","arguments":`+oslo+`}}`, `{"id":"b","function":{"name":"weather","arguments":`+rome+`}}`),
		}, two, ""},
		{"index 0 twice, different ids", []string{
			calls(`{"index":0,"id":"a","function":{"name":"weather","arguments":` + oslo + `}}`),
			calls(`{"index":0,"id":"b","function":{"name":"weather","arguments":` + rome + `}}`),
		}, two, ""},
		{"index 0 twice, in parts", []string{
			calls(`{"index":0,"id":"a","function":{"name":"weather"}}`), calls(`{"index":0,"function":{"arguments":` + oslo + `}}`),
			calls(`{"index":0,"id":"b","function":{"name":"weather"}}`), calls(`{"index":0,"function":{"arguments":` + rome + `}}`),
		}, two, ""},
		{"interleaved by index without id", []string{
			calls(`{"index":0,"id":"a","function":{"name":"weather"}}`, `{"index":1,"id":"b","function":{"name":"weather"}}`),
			calls(`{"index":1,"function":{"arguments":"{\"city\":"}}`), calls(`{"index":0,"function":{"arguments":"{\"city\":"}}`),
			calls(`{"index":0,"function":{"arguments":"\"Oslo\"}"}}`), calls(`{"index":1,"function":{"arguments":"\"Rome\"}"}}`),
		}, two, ""},
		{"interleaved by id", []string{
			calls(`{"id":"a","function":{"name":"weather","arguments":"{\"city\":"}}`), calls(`{"id":"b","function":{"name":"weather","arguments":"{\"city\":"}}`),
			calls(`{"id":"a","function":{"arguments":"\"Oslo\"}"}}`), calls(`{"id":"b","function":{"arguments":"\"Rome\"}"}}`),
		}, two, ""},
		{"id and name in every part", []string{
			calls(`{"index":0,"id":"a","function":{"name":"weather","arguments":"{\"city\":"}}`), calls(`{"index":0,"id":"a","function":{"name":"weather","arguments":"\"Oslo\"}"}}`),
			calls(`{"index":1,"id":"b","function":{"name":"weather","arguments":` + rome + `}}`),
		}, two, ""},
		{"name twice", []string{
			calls(`{"index":0,"id":"a","function":{"name":"weather"}}`), calls(`{"index":0,"function":{"name":"weather","arguments":` + oslo + `}}`),
			calls(`{"index":1,"id":"b","function":{"name":"weather","arguments":` + rome + `}}`),
		}, two, ""},
		{"no ids", []string{
			calls(`{"index":0,"function":{"name":"weather","arguments":` + oslo + `}}`), calls(`{"index":1,"function":{"name":"forecast","arguments":` + rome + `}}`),
		}, unnamed("weather", "forecast"), ""},
		{"no ids and one index", []string{
			calls(`{"index":0,"function":{"name":"weather","arguments":` + oslo + `}}`), calls(`{"index":0,"function":{"name":"weather","arguments":` + rome + `}}`),
		}, unnamed("weather", "weather"), ""},
		{"neither ids nor index", []string{
			calls(`{"function":{"name":"weather","arguments":` + oslo + `}}`), calls(`{"function":{"name":"weather","arguments":` + rome + `}}`),
		}, unnamed("weather", "weather"), ""},
		{"one id for both", []string{
			calls(`{"index":0,"id":"a","function":{"name":"weather","arguments":` + oslo + `}}`), calls(`{"index":1,"id":"a","function":{"name":"weather","arguments":` + rome + `}}`),
		}, []llm.ToolCall{two[0], {ID: "call_1", Name: "weather", Arguments: two[1].Arguments}}, ""},
		{"arguments null", []string{
			calls(`{"index":0,"id":"a","function":{"name":"now","arguments":null}}`), calls(`{"index":1,"id":"b","function":{"name":"now"}}`),
		}, []llm.ToolCall{{ID: "a", Name: "now"}, {ID: "b", Name: "now"}}, ""},
		{"arguments as an object, digit for digit (K31)", []string{
			calls(`{"index":0,"id":"a","function":{"name":"get","arguments":{"id": 725653563933458433, "x":1e400}}}`),
		}, []llm.ToolCall{{ID: "a", Name: "get", Arguments: `{"id": 725653563933458433, "x":1e400}`}}, ""},
		{"a placeholder first", []string{
			calls(`{"index":0,"id":"a","function":{"name":"weather","arguments":"{}"}}`), calls(`{"index":0,"function":{"arguments":` + oslo + `}}`),
		}, two[:1], ""},
		{"all of it once more at the end", []string{
			calls(`{"index":0,"id":"a","function":{"name":"weather","arguments":` + oslo + `}}`), calls(`{"index":0,"id":"a","function":{"arguments":` + oslo + `}}`),
		}, two[:1], ""},
		{"braces in strings", []string{
			calls(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"a\":\"}\\\"}"}}`), calls(`{"index":0,"function":{"arguments":"{\"}"}}`),
		}, []llm.ToolCall{{ID: "a", Name: "f", Arguments: `{"a":"}\"}{"}`}}, ""},
		{"the old function_call", []string{
			`{"function_call":{"name":"weather","arguments":"{\"city\":"}}`, `{"function_call":{"arguments":"\"Oslo\"}"}}`,
		}, []llm.ToolCall{{ID: "call_1", Name: "weather", Arguments: two[0].Arguments}}, ""},
		{"arguments behind their end", []string{
			calls(`{"index":0,"id":"a","function":{"name":"weather","arguments":` + oslo + `}}`), calls(`{"index":0,"function":{"arguments":` + rome + `}}`),
		}, nil, `"weather" go on after their end`},
		{"no name", []string{calls(`{"index":0,"id":"a","function":{"arguments":"{}"}}`)}, nil, "no name"},
	} {
		stream := deltas("tool_calls", tt.parts...)
		for _, end := range []struct {
			how    string
			events []string
		}{
			{"", stream},
			{", no [DONE]", stream[:len(stream)-1]},
			{", no empty line at the end", append(stream[:len(stream)-2:len(stream)-2], strings.TrimRight(stream[len(stream)-2], "\n"))},
		} {
			res, err := answered(t, llmtest.Events(end.events...), true)
			if tt.fails != "" {
				var api *llm.APIError
				if !errors.As(err, &api) || !strings.Contains(err.Error(), tt.fails) {
					t.Errorf("%s%s: got %+v, %v; want the error %q", tt.name, end.how, res, err, tt.fails)
				}
				continue
			}
			if err != nil {
				t.Errorf("%s%s: %v", tt.name, end.how, err)
				continue
			}
			if diff := cmp.Diff(tt.want, res.Message.Calls); diff != "" || res.Stop != llm.StopTools {
				t.Errorf("%s%s: stop %s, %s", tt.name, end.how, res.Stop, diff)
			}
		}
	}
}

// TestAnswerForms (K75): what servers make of an answer, whole and in a stream.
func TestAnswerForms(t *testing.T) {
	call := []llm.ToolCall{{ID: "a", Name: "f", Arguments: "{}"}}
	const callJSON = `"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]`
	for _, tt := range []struct {
		name, message, finish string
		text, reasoning       string
		calls                 []llm.ToolCall
		stop                  llm.StopReason
	}{
		{"reasoning_content alone", `{"content":"","reasoning_content":"Let me think."}`, "stop", "", "Let me think.", nil, llm.StopEnd},
		{"reasoning alone", `{"content":null,"reasoning":"Let me think."}`, "stop", "", "Let me think.", nil, llm.StopEnd},
		{"both, which are one", `{"content":"a","reasoning":"r","reasoning_content":"r"}`, "stop", "a", "r", nil, llm.StopEnd},
		{"null", `{"content":null}`, "stop", "", "", nil, llm.StopEnd},
		{"nothing", `{}`, "stop", "", "", nil, llm.StopEnd},
		{"think alone", `{"content":"<think>Let me think.</think>"}`, "stop", "", "Let me think.", nil, llm.StopEnd},
		{"think first", `{"content":"\n<think>\nLet me think.\n</think>\n\nSeven."}`, "stop", "Seven.", "Let me think.", nil, llm.StopEnd},
		{"think without end", `{"content":"<think>Let me"}`, "length", "", "Let me", nil, llm.StopLength},
		{"think later is text", `{"content":"Use <think>x</think>."}`, "stop", "Use <think>x</think>.", "", nil, llm.StopEnd},
		{"a tag that is none", `{"content":"<thin"}`, "stop", "<thin", "", nil, llm.StopEnd},
		{"parts", `{"content":[{"type":"text","text":"Se"},"ve",{"type":"thinking","thinking":[]},{"type":"text","text":"n."}]}`, "stop", "Seven.", "", nil, llm.StopEnd},
		{"one part", `{"content":{"type":"text","text":"Seven."}}`, "stop", "Seven.", "", nil, llm.StopEnd},
		{"text beside a call", `{"content":"Let me look.",` + callJSON + `}`, "tool_calls", "Let me look.", "", call, llm.StopTools},
		{"a call and stop", `{"content":null,` + callJSON + `}`, "stop", "", "", call, llm.StopTools},
		{"a call and no reason", `{` + callJSON + `}`, "", "", "", call, llm.StopTools},
		{"a call that was cut (K71)", `{` + callJSON + `}`, "length", "", "", call, llm.StopLength},
		{"a call that was withheld (K71)", `{` + callJSON + `}`, "content_filter", "", "", call, llm.StopFilter},
		{"old function_call", `{"content":null,"function_call":{"name":"f","arguments":"{}"}}`, "function_call", "", "", []llm.ToolCall{{ID: "call_1", Name: "f", Arguments: "{}"}}, llm.StopTools},
		{"tool_calls null", `{"content":"a","tool_calls":null,"function_call":null,"refusal":null}`, "stop", "a", "", nil, llm.StopEnd},
		{"refusal", `{"content":null,"refusal":"I must not."}`, "stop", "I must not.", "", nil, llm.StopFilter},
		{"reason of its own", `{"content":"a"}`, "eos", "a", "", nil, llm.StopUnknown},
		{"no calls though said", `{"content":"a"}`, "tool_calls", "a", "", nil, llm.StopUnknown},
	} {
		want := &llm.Response{Message: llm.Message{Role: llm.RoleAssistant, Reasoning: tt.reasoning, Calls: tt.calls}, Stop: tt.stop}
		if tt.text != "" {
			want.Message.Parts = []llm.Part{{Text: tt.text}}
		}
		finish := encode(tt.finish)
		if tt.finish == "" {
			finish = "null"
		}
		whole := llmtest.Status(200, `{"choices":[{"index":0,"message":`+tt.message+`,"finish_reason":`+finish+`}]}`)
		if got, err := answered(t, whole, false); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		} else if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
		events := llmtest.Events(
			llmtest.Event("", `{"choices":[{"index":0,"delta":`+tt.message+`,"finish_reason":`+finish+`}],"error":null,"usage":null}`),
			": keep-alive\n\n", llmtest.Event("", "[DONE]"))
		if got, err := answered(t, events, true); err != nil {
			t.Errorf("%s, streamed: %v", tt.name, err)
		} else if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s, streamed: %s", tt.name, diff)
		}
	}
}

func TestAnswersThatAreNone(t *testing.T) {
	for _, tt := range []struct {
		name, want string
		step       llmtest.Step
		streamed   bool
	}{
		{"no choices (K75)", "no choices", llmtest.Status(200, `{"choices":[]}`), false},
		{"no choices, streamed", "no choices", llmtest.Events(llmtest.Event("", `{"choices":[]}`), llmtest.Event("", "[DONE]")), true},
		{"only [DONE]", "no choices", llmtest.Events(llmtest.Event("", "[DONE]")), true},
		{"empty stream", "ended before", llmtest.Events(), true},
		{"empty body", "not the JSON", llmtest.Status(200, ""), false},
		{"a page", "not the JSON", llmtest.Status(200, "<html>log in</html>"), false},
		{"an error in a success", "model_not_found: no such model", llmtest.Status(200, `{"error":{"code":"model_not_found","message":"no such model"}}`), false},
		{"an error in a stream", "HTTP 503: overloaded", llmtest.Events(llmtest.Event("", `{"error":{"code":503,"message":"overloaded"}}`)), true},
		{"an error of text in a stream", "overloaded", llmtest.Events(llmtest.Event("", `{"error":"overloaded"}`)), true},
		{"a broken piece", "not JSON", llmtest.Events(llmtest.Event("", `{"choices":[{`)), true},
	} {
		_, err := answered(t, tt.step, tt.streamed)
		var api *llm.APIError
		if !errors.As(err, &api) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want an APIError with %q", tt.name, err, tt.want)
		}
	}
}

func TestUsage(t *testing.T) {
	for _, tt := range []struct {
		name, usage string
		want        llm.Usage
	}{
		{"all of it", `{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":2}}`,
			llm.Usage{Input: 10, Output: 5, CacheRead: 4, Reasoning: 2, Measured: true}},
		{"DeepSeek's cache", `{"prompt_tokens":10,"completion_tokens":5,"prompt_cache_hit_tokens":3}`, llm.Usage{Input: 10, Output: 5, CacheRead: 3, Measured: true}},
		{"no details", `{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":null}`, llm.Usage{Input: 10, Output: 5, Measured: true}},
		{"with a point", `{"prompt_tokens":10.0,"completion_tokens":5e0}`, llm.Usage{Input: 10, Output: 5, Measured: true}},
		{"not counted, and beyond counting", `{"prompt_tokens":-1,"completion_tokens":1e300}`, llm.Usage{Output: 1 << 40, Measured: true}},
		{"unreadable", `{"prompt_tokens":"many"}`, llm.Usage{}},
		{"null", `null`, llm.Usage{}},
		{"empty", `{}`, llm.Usage{}},
	} {
		res, err := answered(t, llmtest.Status(200, `{"choices":[{"message":{"content":"a"},"finish_reason":"stop"}],"usage":`+tt.usage+`}`), false)
		if err != nil || res.Usage != tt.want {
			t.Errorf("%s: %+v, %v; want %+v", tt.name, res, err, tt.want)
		}
	}
}

func TestStreamThatIsNone(t *testing.T) {
	res, err := answered(t, llmtest.Status(200, `{"choices":[{"message":{"content":"<think>r</think>a"},"finish_reason":"stop"}]}`, "Content-Type", "application/json; charset=utf-8"), true)
	if err != nil || res.Message.Text() != "a" || res.Message.Reasoning != "r" || res.Stop != llm.StopEnd {
		t.Errorf("got %+v, %v", res, err)
	}
}

// TestThinkTagsInPieces: wherever the stream is cut, the same is text and the same
// is reasoning, and no tag is delivered.
func TestThinkTagsInPieces(t *testing.T) {
	const all = " <think>a < b</thin> c</think>\n\nSo: <b>."
	for size := 1; size < len(all); size++ {
		var parts []string
		for at := 0; at < len(all); at += size {
			parts = append(parts, `{"content":`+encode(all[at:min(at+size, len(all))])+`}`)
		}
		res, err := answered(t, llmtest.Events(deltas("stop", parts...)...), true)
		if err != nil || res.Message.Text() != "So: <b>." || res.Message.Reasoning != "a < b</thin> c" {
			t.Errorf("pieces of %d: %+v, %v", size, res, err)
		}
	}
}

// FuzzStream: no stream makes the adapter panic, and every answer can be handed
// back: each call has a name, an id that no other has, and an object.
func FuzzStream(f *testing.F) {
	f.Add([]byte(strings.Join(deltas("tool_calls", calls(`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`, `{"index":0,"id":"b","function":{"name":"f","arguments":"{}"}}`)), "")))
	f.Add([]byte(strings.Join(deltas("stop", `{"content":"<think>a</think>b"}`, `{"content":[{"text":"c"}],"reasoning":"d"}`), "")))
	f.Add([]byte("data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":-1,\"function\":{\"arguments\":{}}}]}}]}\n\ndata: [DONE]"))
	f.Add([]byte("data:\n\nevent: x\ndata: {\"error\":{}}\n\n: c\r\n\r\n"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		res, err := answered(t, llmtest.Events(string(stream)), true)
		if (res == nil) == (err == nil) {
			t.Fatalf("%v, %v", res, err)
		}
		if err != nil {
			return
		}
		ids := map[string]bool{}
		for _, c := range res.Message.Calls {
			if c.ID == "" || ids[c.ID] || c.Name == "" {
				t.Errorf("a call without an id or name of its own: %+v", res.Message.Calls)
			}
			ids[c.ID] = true
			if !json.Valid(c.Object()) {
				t.Errorf("no object: %s", c.Object())
			}
		}
	})
}
