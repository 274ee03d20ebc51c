package replay_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crewhost/runner/llm"
	"crewhost/runner/llm/llmtest"
	"crewhost/runner/llm/replay"
)

const head = `{"tape":"crewhost","version":1}` + "\n"

func read(t *testing.T, text string) *replay.Tape {
	t.Helper()
	tape, err := replay.Read(strings.NewReader(text), "t.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	return tape
}

func ask(texts ...string) llm.Request {
	req := llm.Request{Model: "m", System: "You are terse."}
	for i, text := range texts {
		m := llm.User(text)
		if i%2 == 1 {
			m.Role = llm.RoleAssistant
		}
		req.Messages = append(req.Messages, m)
	}
	return req
}

func record(t *testing.T, req llm.Request, answer string) string {
	t.Helper()
	text, err := json.Marshal(map[string]any{"request": req, "response": map[string]any{
		"message": map[string]any{"parts": []any{map[string]any{"text": answer}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return string(text) + "\n"
}

func TestRecordedThenReplayed(t *testing.T) {
	answers := []llm.Response{
		{
			Message: llm.Message{
				Role: llm.RoleAssistant, Reasoning: "hm", Opaque: json.RawMessage(`{"b":1,"a":725653563933458433}`),
				Parts: []llm.Part{{Text: "Let me <look> & see."}},
				Calls: []llm.ToolCall{{ID: "1", Name: "f", Arguments: `{"id":725653563933458433}`}}, // K31
			},
			Stop: llm.StopTools, Usage: llm.Usage{Input: 3, Output: 4, Measured: true}, Model: "real",
		},
		{Message: llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{{Text: "Done."}}}, Stop: llm.StopEnd},
	}
	var written strings.Builder
	recorder := replay.NewRecorder(llmtest.New(t, llmtest.Reply(answers[0]), llmtest.Fail(errors.New("down")), llmtest.Reply(answers[1])), &written)

	first := ask("hi")
	first.Tools = []llm.Tool{{Name: "f", Schema: json.RawMessage(`{"type":"object","maximum":725653563933458433}`)}}
	res, err := recorder.Generate(t.Context(), first)
	if err != nil {
		t.Fatal(err)
	}
	second := first
	second.Messages = append(second.Messages, res.Message, llm.Message{Role: llm.RoleTool, CallID: "1", Parts: []llm.Part{{Text: "42"}}})
	if _, err := recorder.Generate(t.Context(), second); err == nil {
		t.Error("the model's error is lost")
	}
	if _, err := recorder.Generate(t.Context(), second); err != nil {
		t.Fatal(err)
	}

	path := filepath.Join(t.TempDir(), "tape.jsonl")
	if err := os.WriteFile(path, []byte(written.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	tape, err := replay.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	// Equal but for spaces and the order of keys.
	first.Tools = []llm.Tool{{Name: "f", Schema: json.RawMessage(`{ "maximum": 725653563933458433, "type": "object" }`)}}
	var streamed strings.Builder
	first.OnDelta = func(d llm.Delta) { streamed.WriteString(d.Reasoning + d.Text) }
	for i, req := range []llm.Request{first, second} {
		got, err := tape.Generate(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(&answers[i], got); diff != "" {
			t.Error(diff)
		}
	}
	if got := streamed.String(); got != "hmLet me <look> & see." {
		t.Errorf("streamed %q", got)
	}
	if left := tape.Unused(); len(left) != 0 {
		t.Errorf("left: %+v", left)
	}
}

func TestEqualRequestsInRecordedOrderOthersInAny(t *testing.T) {
	tape := read(t, head+record(t, ask("a"), "a1")+"\n"+record(t, ask("b"), "b1")+record(t, ask("a"), "a2"))
	var got []string
	for _, q := range []string{"b", "a", "a"} {
		res, err := tape.Generate(t.Context(), ask(q))
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, res.Message.Text())
	}
	if diff := cmp.Diff([]string{"b1", "a1", "a2"}, got); diff != "" {
		t.Error(diff)
	}
	_, err := tape.Generate(t.Context(), ask("a"))
	var div *replay.DivergenceError
	if !errors.As(err, &div) || div.Used != 5 || div.Line != 0 || div.Total != 3 {
		t.Errorf("a request more than recorded: %#v", err)
	}
}

func TestConcurrentRequestsTakeARecordEach(t *testing.T) {
	const n = 50
	text := head
	for range n {
		text += `{"match":{},"response":{"message":{"parts":[{"text":"x"}]}}}` + "\n"
	}
	tape := read(t, text)
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			if _, err := tape.Generate(t.Context(), ask("q")); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if left := tape.Unused(); len(left) != 0 {
		t.Errorf("%d left", len(left))
	}
}

func TestMatch(t *testing.T) {
	tape := read(t, head+
		`{"note":"asks for the tool","match":{"contains":["terse","Oslo"],"turn":0},"response":{"message":{"calls":[{"id":"1","name":"weather","arguments":"{}"}]}}}`+"\n"+
		`{"match":{"contains":["Oslo","weather","12 °C"],"turn":1},"response":{"message":{"parts":[{"text":"Cold."}]},"stop":"length"}}`+"\n"+
		`{"match":{"contains":["Rome"]},"response":{"message":{"parts":[{"text":"Warm."}]}}}`+"\n")
	res, err := tape.Generate(t.Context(), ask("Weather in Oslo?"))
	if err != nil || res.Stop != llm.StopTools || res.Message.Role != llm.RoleAssistant {
		t.Fatalf("%+v, %v", res, err)
	}
	req := ask("Weather in Oslo?")
	req.Messages = append(req.Messages, res.Message, llm.Message{Role: llm.RoleTool, CallID: "1", Parts: []llm.Part{{Text: "it is 12 °C"}}})
	if res, err = tape.Generate(t.Context(), req); err != nil || res.Stop != llm.StopLength || res.Message.Text() != "Cold." {
		t.Errorf("%+v, %v", res, err)
	}
	_, err = tape.Generate(t.Context(), ask("Weather in Paris?"))
	var div *replay.DivergenceError
	if !errors.As(err, &div) || div.Line != 4 || div.Unused != 1 || !strings.Contains(div.Diff, `does not contain "Rome"`) || !strings.Contains(div.Diff, "Weather in Paris?") {
		t.Errorf("got %v", err)
	}
	if left := tape.Unused(); len(left) != 1 || left[0].Line != 4 {
		t.Errorf("left: %+v", left)
	}
}

func TestDivergenceShowsTheNearestRecord(t *testing.T) {
	tape := read(t, head+
		record(t, ask("Something else", "entirely", "Tell me a lot"), "1")+
		record(t, ask("Plan the trip.\nStart in Oslo.\nEnd in Rome."), "2")+
		record(t, ask("Write a poem."), "3"))
	_, err := tape.Generate(t.Context(), ask("Plan the trip.\nStart in Bergen.\nEnd in Rome."))
	var div *replay.DivergenceError
	if !errors.As(err, &div) {
		t.Fatalf("got %v", err)
	}
	if div.Tape != "t.jsonl" || div.Line != 3 || div.Unused != 3 || div.Used != 0 {
		t.Errorf("got %+v", div)
	}
	for _, want := range []string{"t.jsonl:3", "-            Start in Oslo.\\n", "+            Start in Bergen.\\n", " End in Rome."} {
		if !strings.Contains(err.Error()+"\n"+div.Diff, want) {
			t.Errorf("the error lacks %q: %v\n%s", want, err, div.Diff)
		}
	}
}

func TestDivergenceIsBounded(t *testing.T) {
	tape := read(t, head+record(t, ask(strings.Repeat("line\n", 5000)), "1"))
	_, err := tape.Generate(t.Context(), ask(strings.Repeat("other\n", 5000)+strings.Repeat("é", 5000)))
	var div *replay.DivergenceError
	if !errors.As(err, &div) {
		t.Fatalf("got %v", err)
	}
	if n := len(div.Diff); n > 64<<10 {
		t.Errorf("%d bytes", n)
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("the error is no single line: %q", err)
	}
	if !strings.Contains(div.Diff, "more lines") {
		t.Errorf("nothing says that it is cut")
	}
}

func TestReadRefuses(t *testing.T) {
	good := `{"match":{},"response":{"message":{}}}` + "\n"
	for _, tt := range []struct{ name, text, want string }{
		{"empty", "", "t.jsonl:1: the tape is empty"},
		{"no header", good, "t.jsonl:1: not a tape"},
		{"other file", "\x89PNG\n", "t.jsonl:1: not a tape"},
		{"version", `{"tape":"crewhost","version":3}`, "t.jsonl:1: the tape has version 3"},
		{"version of whole runs", `{"tape":"crewhost","version":2}`, "t.jsonl:1: this is a tape of a whole run (version 2), which crewhost run --replay plays"},
		{"unknown key", head + good + `{"match":{},"respnse":{}}`, `t.jsonl:3: json: unknown field "respnse"`},
		{"unknown key within", head + `{"match":{"contain":["x"]},"response":{}}`, `t.jsonl:2: json: unknown field "contain"`},
		{"unknown key of a message", head + `{"match":{},"response":{"message":{"text":"x"}}}`, `unknown field "text"`},
		{"neither", head + `{"response":{}}`, "t.jsonl:2: a record needs a request or a match"},
		{"both", head + `{"request":{"messages":[]},"match":{},"response":{}}`, "not both"},
		{"no response", head + `{"match":{}}`, "needs a response"},
		{"two on a line", head + strings.TrimSpace(good) + good, "t.jsonl:2: there is more"},
		{"cut", head + `{"match":{`, "t.jsonl:2: unexpected EOF"},
		{"role", head + `{"match":{},"response":{"message":{"role":"user"}}}`, "role"},
		{"stop", head + `{"match":{},"response":{"message":{},"stop":"done"}}`, `"done" is unknown`},
		{"turn", head + `{"match":{"turn":-1},"response":{}}`, "counts from 0"},
		{"long line", head + `{"note":"` + strings.Repeat("x", 17<<20) + `"}`, "t.jsonl:2: the line is longer than 16 MiB"},
	} {
		_, err := replay.Read(strings.NewReader(tt.text), "t.jsonl")
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %s", tt.name, err, tt.want)
		}
	}
	if _, err := replay.Open(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

func TestReadTakesWindowsFiles(t *testing.T) {
	text := "\ufeff" + strings.ReplaceAll(head+"\n"+record(t, ask("a"), "x"), "\n", "\r\n")
	if _, err := read(t, text).Generate(t.Context(), ask("a")); err != nil {
		t.Error(err)
	}
}

func TestEndedContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	tape := read(t, head+record(t, ask("a"), "x"))
	if _, err := tape.Generate(ctx, ask("a")); !errors.Is(err, context.Canceled) || len(tape.Unused()) != 1 {
		t.Errorf("%v, %d left", err, len(tape.Unused()))
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestRecorderFailsWithItsTape(t *testing.T) {
	r := replay.NewRecorder(llm.Echo{}, fullDisk{})
	for range 2 {
		if _, err := r.Generate(t.Context(), ask("a")); err == nil || !strings.Contains(err.Error(), "no space left") {
			t.Errorf("got %v", err)
		}
	}
}

// A tape that can be read answers every request that it holds whole.
func FuzzRead(f *testing.F) {
	f.Add([]byte(head + `{"request":{"messages":[{"role":"user","parts":[{"text":"a"}]}]},"response":{"message":{"parts":[{"text":"b"}]},"stop":"end"}}`))
	f.Add([]byte(head + `{"match":{"contains":["a"],"turn":1},"response":{"message":{"calls":[{"id":"","name":"","arguments":""}]}}}`))
	f.Add([]byte(head + `{"request":{"messages":null,"tools":[{"name":"x","schema":1e400}]},"response":{}}`))
	f.Add([]byte(head + `{"request":{"messages":[{"role":"x","opaque":{"a":[1,{}]}}],"thinking":{"enabled":true}},"response":{}}`))
	f.Add([]byte("\ufeff" + head + "\r\n\r\n{}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		tape, err := replay.Read(strings.NewReader(string(text)), "fuzz")
		if err != nil {
			return
		}
		_, _ = tape.Generate(t.Context(), llm.Request{System: "\x00 nothing like it", MaxTokens: 12345})
		for _, r := range tape.Unused() {
			if r.Request == nil {
				continue
			}
			if _, err := tape.Generate(t.Context(), *r.Request); err != nil {
				t.Errorf("record at line %d: %v", r.Line, err)
			}
		}
	})
}

// K31: requests that differ in the last digit of a number are not equal.
func TestDigitsDecide(t *testing.T) {
	req := ask("a")
	req.Tools = []llm.Tool{{Name: "f", Schema: json.RawMessage(`{"maximum":725653563933458433}`)}}
	tape := read(t, head+record(t, req, "x"))
	req.Tools = []llm.Tool{{Name: "f", Schema: json.RawMessage(`{"maximum":725653563933458434}`)}}
	_, err := tape.Generate(t.Context(), req)
	var div *replay.DivergenceError
	if !errors.As(err, &div) || !strings.Contains(div.Diff, "725653563933458434") {
		t.Errorf("got %v", err)
	}
}

type dialectal struct {
	llm.Echo
	dialect llm.SchemaDialect
}

func (d dialectal) SchemaDialect() llm.SchemaDialect { return d.dialect }

// A tape is asked in the dialect of the model that was recorded: otherwise its
// requests would have other schemas.
func TestDialectIsOnTheTape(t *testing.T) {
	for _, want := range []llm.SchemaDialect{{}, {PlainKeys: true, RootKeywords: []string{"anyOf"}}} {
		var b strings.Builder
		recorder := replay.NewRecorder(dialectal{dialect: want}, &b)
		if _, err := recorder.Generate(t.Context(), ask("hello")); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, llm.DialectOf(recorder)); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(want, llm.DialectOf(read(t, b.String()))); diff != "" {
			t.Error(diff)
		}
	}
	if diff := cmp.Diff(llm.SchemaDialect{}, llm.DialectOf(llm.Echo{})); diff != "" {
		t.Error(diff)
	}
}
