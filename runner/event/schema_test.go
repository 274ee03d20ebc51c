package event_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"crewhost/runner/event"
	"crewhost/runner/event/eventtest"
)

// full is an event of every kind at once, with a value in every field, made of
// the text s.
func full(s string) event.Event {
	return event.Event{
		Task: s, Agent: s, Role: s, Attempt: 1, Correlation: "7", Cause: "3",
		Call: s, Tool: s, Server: s, Arguments: []string{s},
		Provider: s, Model: s, Operation: s, Turn: 1, Stop: s,
		InputTokens: 10, OutputTokens: 5, CacheHitTokens: 4, EstimatedTokens: 1, Cost: 0.5, Currency: s, CostSource: "vendor",
		Text: s, Reason: s, Error: s, Code: s, Success: new(true), Skipped: true, Turns: 1, ToolCalls: 1, File: s, DurationMS: 1,
		ToRole: s, ToAgent: s,
		Progress: &event.Progress{Done: 1, Total: 2, Message: s},
		Question: &event.Question{
			Input: event.InputForm, Prompt: s, Choices: []string{s}, Default: s, About: s, URL: s,
			Schema: json.RawMessage(`{"title":"` + s + `"}`), Arguments: `{"k":"` + s + `"}`, Scopes: []string{"once"}, Changed: true,
		},
		Answer: &event.Answer{Action: "accept", Allow: true, Scope: "run", By: "command"},
		State: &event.State{
			State: "connected", From: "connecting", Transport: "stdio", Era: "modern", Protocol: s, Required: true, Tools: []string{s}, Agents: []string{s},
			Servers: 1, Connected: 1, Failed: 1, Offered: 1,
		},
		Ballot: &event.Ballot{Ranking: []string{s}, Confidence: 0.5},
		Totals: &event.Totals{Agent: event.Sum{InputTokens: 1, OutputTokens: 1, Cost: 0.5}},
		Begin:  &event.Begin{Target: s, Stream: true, Host: s},
	}
}

// An event of every kind at once leaves nothing out, whatever is added.
func TestFullIsFull(t *testing.T) {
	var walk func(at string, v reflect.Value)
	walk = func(at string, v reflect.Value) {
		switch {
		case v.IsZero():
			t.Errorf("%s is left out", at)
		case v.Kind() == reflect.Pointer:
			walk(at, v.Elem())
		case v.Kind() == reflect.Struct:
			for i := range v.NumField() {
				switch name := v.Type().Field(i).Name; name {
				case "V", "Seq", "Time", "Kind", "Run", "ExitCode", "Operation":
				default:
					walk(at+"."+name, v.Field(i))
				}
			}
		}
	}
	walk("Event", reflect.ValueOf(full("x")))
}

// definitions are those of the kinds in the schema.
func definitions(t *testing.T) map[event.Kind]json.RawMessage {
	t.Helper()
	var schema struct {
		OneOf []struct {
			Ref string `json:"$ref"`
		}
		Defs map[string]json.RawMessage `json:"$defs"`
	}
	if err := json.Unmarshal(event.Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	kinds := map[event.Kind]json.RawMessage{}
	for _, one := range schema.OneOf {
		name := strings.TrimPrefix(one.Ref, "#/$defs/")
		kinds[event.Kind(name)] = schema.Defs[name]
	}
	return kinds
}

// Of every kind, an event with everything is as the schema says, and the schema
// has no member that is never told.
func TestEveryKindIsInTheSchema(t *testing.T) {
	kinds := definitions(t)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(kinds)), event.Kinds()); diff != "" {
		t.Fatal(diff)
	}
	for _, kind := range event.Kinds() {
		var lines []string
		s := event.NewStream("r", clock, func(e event.Event) {
			line, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			lines = append(lines, string(line))
		})
		most := full("x")
		most.Kind = kind
		if kind == event.Failure {
			most.Code = "crew_failed"
		}
		s.Emit(most)
		if err := eventtest.Line([]byte(lines[0])); err != nil {
			t.Errorf("%v\n%s", err, lines[0])
		}
		var definition struct{ Properties map[string]json.RawMessage }
		if err := json.Unmarshal(kinds[kind], &definition); err != nil {
			t.Fatal(err)
		}
		var told map[string]json.RawMessage
		if err := json.Unmarshal([]byte(lines[0]), &told); err != nil {
			t.Fatal(err)
		}
		for name := range definition.Properties {
			if _, ok := told[name]; !ok {
				t.Errorf("%s: the schema has %q, which is never told:\n%s", kind, name, lines[0])
			}
		}
	}
}

func TestTheSchemaIsClosed(t *testing.T) {
	for kind, definition := range definitions(t) {
		var d struct {
			Unevaluated *bool `json:"unevaluatedProperties"`
		}
		if err := json.Unmarshal(definition, &d); err != nil || d.Unevaluated == nil || *d.Unevaluated {
			t.Errorf("%s takes what it does not know", kind)
		}
	}
	for _, line := range []string{
		`{"v":2,"seq":1,"ts":"2026-03-04T04:06:07Z","kind":"notice","crewId":"r","text":"x","more":1}`,
		`{"v":2,"seq":1,"ts":"2026-03-04T04:06:07Z","kind":"notice","crewId":"r"}`,
		`{"v":1,"seq":1,"ts":"2026-03-04T04:06:07Z","kind":"notice","crewId":"r","text":"x"}`,
		`{"v":2,"seq":1,"ts":"2026-03-04T04:06:07Z","kind":"notice","crewId":"r","text":null}`,
		`{"v":2,"seq":1,"ts":"2026-03-04T04:06:07Z","kind":"unknown","crewId":"r"}`,
		`[]`, ``,
	} {
		if eventtest.Line([]byte(line)) == nil {
			t.Errorf("taken: %s", line)
		}
	}
}

// A secret in any text of any kind is masked, and what the emitter holds stays as
// it is.
func TestEveryTextIsMasked(t *testing.T) {
	const secret = "sk-secret-1"
	for _, kind := range event.Kinds() {
		e := full(secret)
		e.Kind = kind
		s := event.NewStream("r", clock, func(e event.Event) {
			line, err := json.Marshal(e)
			if err != nil || strings.Contains(string(line), secret) {
				t.Errorf("%v: %s", err, line)
			}
		})
		s.Mask(masker(secret))
		s.Emit(e)
		if e.Arguments[0] != secret || e.Question.Choices[0] != secret || e.State.Tools[0] != secret || e.Progress.Message != secret {
			t.Errorf("%s: the emitter's own was masked", kind)
		}
	}
}

// masker is a secret that is masked.
type masker string

func (m masker) Redact(text string) string { return strings.ReplaceAll(text, string(m), "•••") }

func (m masker) Held(text string) int {
	for n := min(len(m)-1, len(text)); n > 0; n-- {
		if strings.HasSuffix(text, string(m[:n])) {
			return n
		}
	}
	return 0
}

// A secret that comes in pieces is masked as well; answers side by side are told
// apart.
func TestASecretInPiecesIsMasked(t *testing.T) {
	var told []string
	s := event.NewStream("r", clock, eventtest.Sink(t), func(e event.Event) {
		told = append(told, fmt.Sprintf("%s %s %q", e.Kind, e.Correlation, e.Text))
	})
	s.Mask(masker("secret"))
	piece := func(id, text string) {
		s.Emit(event.Event{Kind: event.ModelDelta, Agent: "a", Correlation: id, Text: text})
	}
	piece("1", "the se")
	piece("2", "cret")
	piece("1", "cret is se")
	piece("1", "")
	piece("1", "c")
	s.Emit(event.Event{Kind: event.ModelReturned, Agent: "a", Correlation: "1", Success: new(false)})
	s.Emit(event.Event{Kind: event.ModelReturned, Agent: "a", Correlation: "2", Success: new(false)})
	want := []string{
		`llm.delta 1 "the "`, `llm.delta 2 "cret"`, `llm.delta 1 "••• is "`,
		`llm.delta 1 "sec"`, `model.returned 1 ""`, `model.returned 2 ""`,
	}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Error(diff)
	}
}

func TestTheStreamEndsTasksAndKeepsAccounts(t *testing.T) {
	var told []string
	check := eventtest.Sink(t)
	s := event.NewStream("r", clock, check, func(e event.Event) {
		line, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(line), `"kind":`)
		told = append(told, strings.ReplaceAll(rest, `"crewId":"r",`, ""))
	})
	s.Emit(event.Event{Kind: event.TaskFailed, Task: "a", Agent: "one", Attempt: 2, Error: "no", DurationMS: 3, ToolCalls: 1})
	s.Emit(event.Event{Kind: event.TaskSkipped, Task: "b", Agent: "one", Attempt: 1, Reason: "a failed"})
	returned := event.Event{Kind: event.ModelReturned, Agent: "one", Correlation: "1", Success: new(true), InputTokens: 5, OutputTokens: 2, Cost: 0.25, Currency: "USD", CostSource: "prices"}
	s.Emit(returned)
	returned.Agent, returned.Operation, returned.CacheHitTokens, returned.CostSource = "two", "vote", 4, "vendor"
	s.Emit(returned)
	returned.Success = new(false)
	s.Emit(returned)
	s.Emit(event.Event{Kind: event.CostUpdated, Task: "a", Cause: "1", Operation: "embed", InputTokens: 3, EstimatedTokens: 3, Cost: 0.5, Currency: "USD", CostSource: "prices"})
	s.Emit(event.Event{Kind: event.RunFinished, Success: new(false), ExitCode: 2, InputTokens: 99})
	s.Emit(event.Event{Kind: event.Notice, Text: "too late"})
	want := []string{
		`"task.failed","taskId":"a","agentId":"one","attempt":2,"error":"no","durationMs":3}`,
		`"task.completed","taskId":"a","agentId":"one","attempt":2,"success":false,"skipped":false,"durationMs":3,"tokens":0,"promptTokens":0,"completionTokens":0,"toolCalls":1}`,
		`"task.skipped","taskId":"b","agentId":"one","attempt":1,"reason":"a failed"}`,
		`"task.completed","taskId":"b","agentId":"one","attempt":1,"success":false,"skipped":true,"durationMs":0,"tokens":0,"promptTokens":0,"completionTokens":0,"toolCalls":0}`,
		`"model.returned","agentId":"one","correlationId":"1","operation":"agent","success":true,"durationMs":0,"tokens":7,"promptTokens":5,"completionTokens":2,"cost":0.25,"currency":"USD","costSource":"prices"}`,
		`"cost.updated","agentId":"one","causationId":"1","operation":"agent","tokens":7,"promptTokens":5,"completionTokens":2,"cost":0.25,"currency":"USD","costSource":"prices","agentTotals":{"tokens":7,"promptTokens":5,"completionTokens":2,"cost":0.25},"operationTotals":{"tokens":7,"promptTokens":5,"completionTokens":2,"cost":0.25}}`,
		`"model.returned","agentId":"two","correlationId":"1","operation":"vote","success":true,"durationMs":0,"tokens":7,"promptTokens":5,"completionTokens":2,"cacheHitTokens":4,"cacheMissTokens":1,"cost":0.25,"currency":"USD","costSource":"vendor"}`,
		`"cost.updated","agentId":"two","causationId":"1","operation":"vote","tokens":14,"promptTokens":10,"completionTokens":4,"cacheHitTokens":4,"cacheMissTokens":6,"cost":0.5,"currency":"USD","costSource":"mixed","agentTotals":{"tokens":7,"promptTokens":5,"completionTokens":2,"cost":0.25},"operationTotals":{"tokens":7,"promptTokens":5,"completionTokens":2,"cost":0.25}}`,
		`"model.returned","agentId":"two","correlationId":"1","operation":"vote","success":false,"durationMs":0,"tokens":7,"promptTokens":5,"completionTokens":2,"cacheHitTokens":4,"cacheMissTokens":1,"cost":0.25,"currency":"USD","costSource":"vendor"}`,
		`"cost.updated","taskId":"a","causationId":"1","operation":"embed","tokens":17,"promptTokens":13,"completionTokens":4,"cacheHitTokens":4,"cacheMissTokens":9,"estimatedTokens":3,"cost":1,"currency":"USD","costSource":"mixed","operationTotals":{"tokens":3,"promptTokens":3,"completionTokens":0,"cost":0.5}}`,
		`"run.finished","success":false,"exitCode":2,"durationMs":0,"tokens":17,"promptTokens":13,"completionTokens":4,"cacheHitTokens":4,"cacheMissTokens":9,"estimatedTokens":3,"cost":1,"currency":"USD","costSource":"mixed"}`,
	}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Error(diff)
	}
}

// Two currencies make no sum.
func TestCurrenciesAreNotAdded(t *testing.T) {
	var last event.Event
	s := event.NewStream("r", time.Now, eventtest.Sink(t), func(e event.Event) { last = e })
	for _, currency := range []string{"USD", "EUR"} {
		s.Emit(event.Event{Kind: event.ModelReturned, Agent: "a", Correlation: "1", Success: new(true), Cost: 1, Currency: currency, CostSource: "vendor"})
	}
	if last.Kind != event.CostUpdated || last.Cost != 0 || last.Currency != "" {
		t.Errorf("%+v", last)
	}
}

func TestAScopeTravelsWithTheContext(t *testing.T) {
	s := event.Scope{Task: "t", Agent: "a", Role: "r", Attempt: 2, Call: "c1", Tool: "ask", Server: "s", Correlation: "9"}
	ctx := event.NewContext(t.Context(), s)
	got := event.ScopeOf(ctx).Within(event.Event{Kind: event.InputNeeded, Correlation: "10"})
	want := event.Event{Kind: event.InputNeeded, Correlation: "10", Task: "t", Agent: "a", Role: "r", Attempt: 2, Call: "c1", Tool: "ask", Server: "s", Cause: "9"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	own := event.Event{Task: "other", Tool: "mine", Cause: "1", Server: "x"}
	if diff := cmp.Diff(own, event.ScopeOf(ctx).Within(own)); diff != "" {
		t.Error(diff)
	}
	if got := event.ScopeOf(t.Context()); got != (event.Scope{}) {
		t.Errorf("%+v", got)
	}
}
