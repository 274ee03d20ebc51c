package native_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"crewhost/tools"
	"crewhost/tools/native"
)

const schema = `{
  "type": "object",
  "properties": {
    "first": {"type": "string"}, "second": {"type": "string"}, "number": {"type": "integer"}, "share": {"type": "number"},
    "flag": {"type": "boolean"}, "kind": {"type": "string"}, "list": {"type": "array"}, "object": {"type": "object"}
  },
  "required": ["number", "second"],
  "additionalProperties": false
}`

// taking is a tool whose call takes arguments, and tells what it took where nothing is
// wrong with them.
func taking(take func(*native.Arguments) string) native.Tool {
	return native.Tool{Name: "taking", Schema: schema, Run: func(_ context.Context, _ tools.Call, args *native.Arguments) (tools.Result, error) {
		took := take(args)
		if res, bad := args.Fault(); bad {
			return res, nil
		}
		return tools.Text(took), nil
	}}
}

func call(t *testing.T, tool native.Tool, args string) string {
	t.Helper()
	res, err := tool.Call(t.Context(), tools.Call{Name: tool.Name, Arguments: json.RawMessage(args)})
	if err != nil {
		t.Fatalf("%s: %v", args, err)
	}
	if text := res.Content[0].Text; !res.IsError {
		return text
	} else {
		return "! " + text
	}
}

// What is wrong is told at once, with the names in the order of the schema: those that are
// required, and then the others.
func TestArguments(t *testing.T) {
	const end = ". Its arguments are: number, second, first, share, flag, kind, list, object."
	for name, tt := range map[string]struct {
		args string
		take func(*native.Arguments) string
		want string
	}{
		"nothing":       {``, func(*native.Arguments) string { return "ok" }, "ok"},
		"null":          {` null `, func(*native.Arguments) string { return "ok" }, "ok"},
		"missing":       {`{}`, func(a *native.Arguments) string { return a.Need("first") }, `the argument "first" is missing`},
		"null is none":  {`{"first":null}`, func(a *native.Arguments) string { return a.Text("first", "default") }, "default"},
		"empty is some": {`{"first":""}`, func(a *native.Arguments) string { return "<" + a.Need("first") + ">" }, "<>"},
		"unknown":       {`{"firts":"x","zzzzzz":1}`, func(*native.Arguments) string { return "" }, `there is no argument "firts" (did you mean "first"?); there is no argument "zzzzzz"`},
		"twice":         {`{"first":"a","first":"b"}`, func(a *native.Arguments) string { return a.Text("first", "") }, `the argument "first" is given twice`},
		"no string":     {`{"first":5}`, func(a *native.Arguments) string { return a.Need("first") }, `the argument "first" must be a string, and is 5`},
		"several":       {`{"first":[],"number":"x"}`, func(a *native.Arguments) string { a.Integer("number", 0, 0, 1); return a.Need("first") }, `the argument "number" must be a whole number, and is the string "x"; the argument "first" must be a string, and is a list`},
		"escapes":       {`{"first":"a\u00e9\n"}`, func(a *native.Arguments) string { return a.Need("first") }, "aé\n"},

		"flag":          {`{"flag":true}`, flag, "true"},
		"flag as text":  {`{"flag":"false"}`, flag, "false"},
		"flag as 1":     {`{"flag":1}`, flag, `the argument "flag" must be true or false, and is 1`},
		"no flag":       {`{}`, flag, "false"},
		"number":        {`{"number":5}`, number, "5"},
		"as text":       {`{"number":" 5 "}`, number, "5"},
		"with a point":  {`{"number":5.0}`, number, "5"},
		"with an e":     {`{"number":1e1}`, number, "10"},
		"no whole one":  {`{"number":5.5}`, number, `the argument "number" must be a whole number, and is 5.5`},
		"too large":     {`{"number":11}`, number, `the argument "number" is 11, and must be from 1 to 10`},
		"huge":          {`{"number":1e400}`, number, `the argument "number" must be a whole number, and is 1e400`},
		"no number":     {`{"number":"NaN"}`, number, `the argument "number" must be a whole number`},
		"none":          {`{}`, number, "7"},
		"share":         {`{"share":0.5}`, share, "ok"},
		"share as text": {`{"share":"0.5"}`, share, "ok"},
		"no share":      {`{"share":1.5}`, share, `the argument "share" must be a number from 0 to 1, and is 1.5`},
		"not a number":  {`{"share":"NaN"}`, share, `the argument "share" must be a number from 0 to 1`},
		"one of":        {`{"kind":"b"}`, kind, "b"},
		"one of none":   {`{"kind":""}`, kind, "a"},
		"none of them":  {`{"kind":"beeta"}`, kind, `the argument "kind" is "beeta", and must be one of a, b, beta (did you mean "beta"?)`},
		"list":          {`{"list":["a","b"]}`, list, "a b"},
		"list of all":   {`{"list":["a",1,{}]}`, list, `item 2 of the argument "list" must be a string, and is 1; item 3 of the argument "list" must be a string, and is an object`},
		"no list":       {`{"list":"a"}`, list, `the argument "list" must be a list of strings, and is the string "a"`},
		"object":        {`{"object":{"b":"2","a":1.50,"c":true}}`, object, "a=1.50 b=2 c=true"},
		"in order":      {`{"object":{"z":"","y":[],"x":null}}`, object, `x of the argument "object" must be a string, and is null; y of the argument "object" must be a string, and is a list`},
		"no object":     {`{"object":["a"]}`, object, `the argument "object" must be an object, and is a list`},
		"within":        {`{"first":"éé"}`, func(a *native.Arguments) string { a.Within("first", a.Need("first"), 2); return "ok" }, "ok"},
		"beyond":        {`{"first":"ééé"}`, func(a *native.Arguments) string { a.Within("first", a.Need("first"), 2); return "ok" }, `the argument "first" is longer than 2 characters`},
		"raw":           {`{"object":{"a": [1]}}`, func(a *native.Arguments) string { return string(a.Raw("object")) + string(a.Raw("list")) }, `{"a": [1]}`},
	} {
		got := call(t, taking(tt.take), tt.args)
		want := tt.want
		if fault, ok := strings.CutPrefix(got, "! Bad arguments for taking: "); ok {
			if !strings.HasSuffix(fault, end) {
				t.Errorf("%s: %s", name, got)
			}
			if strings.HasPrefix(want, "the ") || strings.HasPrefix(want, "there ") || strings.HasPrefix(want, "item ") || strings.HasPrefix(want, "x of") {
				got = fault[:min(len(fault), len(want))]
			}
		}
		if got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, want)
		}
	}
}

func flag(a *native.Arguments) string {
	return map[bool]string{true: "true", false: "false"}[a.Flag("flag")]
}

func number(a *native.Arguments) string {
	data, _ := json.Marshal(a.Integer("number", 7, 1, 10))
	return string(data)
}

func share(a *native.Arguments) string {
	if a.Fraction("share") == 0.5 {
		return "ok"
	}
	return "another"
}

func kind(a *native.Arguments) string { return a.OneOf("kind", "a", "a", "b", "beta") }

func list(a *native.Arguments) string { return strings.Join(a.List("list"), " ") }

func object(a *native.Arguments) string {
	var out []string
	for _, m := range a.Object("object") {
		out = append(out, m.Name+"="+m.Text)
	}
	return strings.Join(out, " ")
}

// However much is wrong, a result stays short.
func TestFaultsAreBounded(t *testing.T) {
	var members []string
	for range 1000 {
		members = append(members, `"`+strings.Repeat("x", 1000)+`":1`)
	}
	got := call(t, taking(func(*native.Arguments) string { return "" }), "{"+strings.Join(members, ",")+"}")
	if len(got) > 4000 || !strings.Contains(got, strings.Repeat("x", 60)+"...") {
		t.Errorf("%d: %.300s", len(got), got)
	}
}

func TestNoObject(t *testing.T) {
	for _, args := range []string{"[]", `"x"`, "5", "{", `{"a":}`, "{}{}", "{} x", "true", "\xff"} {
		_, err := taking(func(*native.Arguments) string { return "" }).Call(t.Context(), tools.Call{Arguments: json.RawMessage(args)})
		var e *tools.Error
		if !errors.As(err, &e) || e.Code != tools.CodeArgumentsInvalid || e.Tool != "taking" {
			t.Errorf("%s: %v", args, err)
		}
	}
	broken := native.Tool{Name: "broken", Schema: "{"}
	if _, err := broken.Call(t.Context(), tools.Call{}); err == nil || !strings.Contains(err.Error(), `the schema of tool "broken"`) {
		t.Error(err)
	}
}

// A call that takes too long is a failure that the model is told of; one that its caller
// ends is an error.
func TestTimeout(t *testing.T) {
	slow := native.Tool{Name: "slow", Schema: schema, Timeout: time.Minute, Run: func(ctx context.Context, _ tools.Call, _ *native.Arguments) (tools.Result, error) {
		<-ctx.Done()
		return tools.Result{}, native.Ended(ctx, "slow")
	}}
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if got := call(t, slow, "{}"); got != "! slow did not end within 1m0s and was stopped. Ask for less, or for a part." || time.Since(began) != time.Minute {
			t.Errorf("%s after %v", got, time.Since(began))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := slow.Call(ctx, tools.Call{}); tools.CodeOf(err) != tools.CodeCallTimeout || !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		why := errors.New("the run was given up")
		given, end := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { end(why) })
		if _, err := slow.Call(given, tools.Call{}); tools.CodeOf(err) != tools.CodeCancelled || !errors.Is(err, why) {
			t.Error(err)
		}
		if _, err := slow.Call(given, tools.Call{}); tools.CodeOf(err) != tools.CodeCancelled { // it ended before
			t.Error(err)
		}
		// An error that has nothing to do with time is what it is.
		slow.Run = func(context.Context, tools.Call, *native.Arguments) (tools.Result, error) { return tools.Result{}, why }
		if _, err := slow.Call(t.Context(), tools.Call{}); !errors.Is(err, why) {
			t.Error(err)
		}
		slow.Timeout = 0 // the caller's alone
		slow.Run = func(ctx context.Context, _ tools.Call, _ *native.Arguments) (tools.Result, error) {
			_, has := ctx.Deadline()
			return tools.Text(map[bool]string{true: "bounded", false: "free"}[has]), nil
		}
		if got := call(t, slow, "{}"); got != "free" {
			t.Error(got)
		}
	})
}

func TestDoesAndDefinition(t *testing.T) {
	tool := native.Tool{Name: "a", Title: "A", Description: "Does it.", Schema: schema, Effect: native.Once, EffectOf: func(args json.RawMessage) native.Effect {
		if strings.Contains(string(args), "GET") {
			return native.ReadOnly
		}
		return native.Repeatable
	}}
	if tool.Does(json.RawMessage(`{"method":"GET"}`)) != native.ReadOnly || tool.Does(json.RawMessage(`{}`)) != native.Repeatable {
		t.Error("EffectOf is not asked")
	}
	tool.EffectOf = nil
	if tool.Does(json.RawMessage(`{"method":"GET"}`)) != native.Once {
		t.Error("Effect is not asked")
	}
	yes, no := true, false
	want := tools.Definition{Name: "a", Title: "A", Description: "Does it.", InputSchema: json.RawMessage(schema), Annotations: tools.Annotations{ReadOnly: &no, OpenWorld: &yes}}
	tool.Open = true
	if diff := cmp.Diff(want, tool.Definition()); diff != "" {
		t.Error(diff)
	}
	tool.Effect, tool.Open = native.ReadOnly, false
	if d := tool.Definition(); !*d.Annotations.ReadOnly || *d.Annotations.OpenWorld {
		t.Errorf("%+v", d.Annotations)
	}
}

func TestWords(t *testing.T) {
	if got := []string{native.Plural(1, "row", "rows"), native.Plural(0, "row", "rows"), native.Shorten(strings.Repeat("é", 61)), native.Shorten("é"), native.DidYouMean("Pth", []string{"query", "path"}), native.DidYouMean("zzz", []string{"path"}), native.DidYouMean(strings.Repeat("p", 65), []string{"path"})}; cmp.Diff([]string{"1 row", "0 rows", strings.Repeat("é", 60) + "...", "é", ` (did you mean "path"?)`, "", ""}, got) != "" {
		t.Errorf("%q", got)
	}
}

// Whatever the arguments are, a call ends with a text of a bounded length, or says that
// they are no object.
func FuzzDecode(f *testing.F) {
	for _, args := range []string{`{"first":"x","number":5}`, `{"object":{"a":[{}]},"list":[1,"2"]}`, `{"share":1e-9,"kind":"\ud800"}`, `{`, `[]`, `{"a":1,"a":2}`, "{\"first\":\"\xff\"}"} {
		f.Add(args)
	}
	f.Fuzz(func(t *testing.T, args string) {
		tool := taking(func(a *native.Arguments) string {
			a.Within("first", a.Text("first", ""), 10)
			return flag(a) + number(a) + share(a) + kind(a) + list(a) + object(a) + a.Need("second")
		})
		res, err := tool.Call(t.Context(), tools.Call{Arguments: json.RawMessage(args)})
		trimmed := strings.Trim(args, " \t\r\n")
		if object := json.Valid([]byte(args)) && strings.HasPrefix(trimmed, "{") || trimmed == "" || trimmed == "null"; object != (err == nil) {
			t.Errorf("%q: %v", args, err)
		}
		if err == nil && res.IsError && len(res.Content[0].Text) > 10_000 {
			t.Errorf("%q: %d", args, len(res.Content[0].Text))
		}
	})
}
