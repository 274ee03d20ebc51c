package people_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crewhost/tools"
	"crewhost/tools/builtin/people"
	"crewhost/tools/mount"
	"crewhost/tools/native"
	"crewhost/tools/native/nativetest"
)

// person answers with a function.
type person func(context.Context, people.Question) (string, error)

func (p person) Ask(ctx context.Context, q people.Question) (people.Answer, error) {
	said, err := p(ctx, q)
	return people.Answer{Text: said}, err
}

func newBench(t testing.TB, asker people.Asker) nativetest.Bench {
	t.Helper()
	return nativetest.New(t, func(*mount.FS) []native.Tool { return people.Tools(asker) })
}

func TestSchemas(t *testing.T) { newBench(t, nil).CheckSchemas() }

func TestHumanInputWithNobody(t *testing.T) {
	b := newBench(t, nil)
	for _, kind := range []string{"text", "approval", "choice"} {
		b.WantFailure("human_input", nativetest.Args("prompt", "Go on?", "input_type", kind, "choices", []string{"yes"}, "default_value", "yes"),
			"Nobody can be asked here", "Nothing was approved")
	}
}

func TestHumanInput(t *testing.T) {
	var answer string
	b := newBench(t, person(func(context.Context, people.Question) (string, error) { return answer, nil }))
	for _, tt := range []struct {
		args, answer, want string
		failed             bool
	}{
		{`{"prompt":"Name?"}`, " Ada \n", "Ada", false},
		{`{"prompt":"Name?","default_value":"Bob"}`, "", "Bob", false},
		{`{"prompt":"Name?"}`, "", "The person gave no answer.", true},
		{`{"prompt":"OK?","input_type":"approval"}`, "Yes", "approved", false},
		{`{"prompt":"OK?","input_type":"approval"}`, "n", "rejected", false},
		{`{"prompt":"OK?","input_type":"approval"}`, "", "rejected", false},
		{`{"prompt":"OK?","input_type":"approval","default_value":"yes"}`, "", "rejected", false},
		{`{"prompt":"OK?","input_type":"approval"}`, "yes, but not today", "rejected: the person did not say yes, but: yes, but not today", false},
		{`{"prompt":"Which?","input_type":"choice","choices":["Red","Blue"]}`, "Blue", "Blue", false},
		{`{"prompt":"Which?","input_type":"choice","choices":["Red","Blue"]}`, "blue", "Blue", false},
		{`{"prompt":"Which?","input_type":"choice","choices":["Red","Blue"]}`, "1", "Red", false},
		{`{"prompt":"Which?","input_type":"choice","choices":["2","1"]}`, "1", "1", false},
		{`{"prompt":"Which?","input_type":"choice","choices":["a","A"]}`, "A", "A", false},
		{`{"prompt":"Which?","input_type":"choice","choices":["Red","Blue"],"default_value":"Red"}`, "", "Red", false},
		{`{"prompt":"Which?","input_type":"choice","choices":["Red","Blue"]}`, "", "The person chose nothing.", true},
		{`{"prompt":"Which?","input_type":"choice","choices":["Red","Blue"]}`, "3", "The person gave an answer that is none of the choices: 3", true},
	} {
		answer = tt.answer
		if got, failed := b.Call("human_input", tt.args); got != tt.want || failed != tt.failed {
			t.Errorf("%s, answer %q: got %q (failed: %t), want %q", tt.args, tt.answer, got, failed, tt.want)
		}
	}
	for _, a := range []string{
		`{"prompt":"\u200b"}`, `{"prompt":"?","input_type":"choice","choices":["a","a"]}`, `{"prompt":"?","input_type":"choice","choices":[" "]}`,
		`{"prompt":"?","input_type":"choice","choices":["a"],"default_value":"b"}`, `{"prompt":"?","input_type":"choice","choices":[]}`,
		nativetest.Args("prompt", "?", "input_type", "choice", "choices", strings.Split(strings.Repeat("x,", 50)+"y", ",")),
	} {
		b.WantFailure("human_input", a, "Bad arguments")
	}
	// A file that the person edits is none of its arguments; the description says what to do.
	b.WantFailure("human_input", `{"prompt":"?","edit_file_path":"/out/a.md"}`, `there is no argument "edit_file_path"`)
}

func TestHumanInputQuestionIsCleanAndBounded(t *testing.T) {
	var got people.Question
	b := newBench(t, person(func(_ context.Context, q people.Question) (string, error) { got = q; return "x", nil }))
	tool, _ := b.Reg.Lookup("human_input")
	_, err := tool.Call(t.Context(), tools.Call{Agent: "writer", Task: "draft", Arguments: json.RawMessage(
		`{"prompt":"\u001b[2JDelete\u202e all?\n\tReally\u0000","choices":["a"],"default_value":"\u0007no"}`)})
	if err != nil {
		t.Fatal(err)
	}
	want := people.Question{Prompt: "[2JDelete all?\n\tReally", Kind: people.KindText, Default: "no", Agent: "writer", Task: "draft"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	b.Call("human_input", nativetest.Args("prompt", strings.Repeat("é", 100_000)))
	if n := len([]rune(got.Prompt)); n > 4000 {
		t.Errorf("the prompt has %d characters", n)
	}
}

// absent says no in the place of a person.
type absent struct{}

func (absent) Ask(context.Context, people.Question) (people.Answer, error) {
	return people.Answer{Text: "no", Unasked: true}, nil
}

func TestHumanInputTellsThatNobodyWasAsked(t *testing.T) {
	tool, _ := newBench(t, absent{}).Reg.Lookup("human_input")
	res, err := tool.Call(t.Context(), tools.Call{Arguments: json.RawMessage(`{"prompt":"OK?","input_type":"approval"}`)})
	if err != nil || !res.Unasked || res.IsError || res.Content[0].Text != "rejected" {
		t.Errorf("got %+v, %v", res, err)
	}
}

func TestHumanInputAskerFails(t *testing.T) {
	b := newBench(t, person(func(context.Context, people.Question) (string, error) { return "yes", io.ErrUnexpectedEOF }))
	tool, _ := b.Reg.Lookup("human_input")
	res, err := tool.Call(t.Context(), tools.Call{Arguments: json.RawMessage(`{"prompt":"?"}`)})
	if !errors.Is(err, io.ErrUnexpectedEOF) || len(res.Content) != 0 {
		t.Errorf("got %+v, %v", res, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	b = newBench(t, person(func(ctx context.Context, _ people.Question) (string, error) {
		cancel()
		<-ctx.Done()
		return "yes", ctx.Err()
	}))
	tool, _ = b.Reg.Lookup("human_input")
	if _, err := tool.Call(ctx, tools.Call{Arguments: json.RawMessage(`{"prompt":"?"}`)}); tools.CodeOf(err) != tools.CodeCancelled {
		t.Errorf("got %v", err)
	}
}
