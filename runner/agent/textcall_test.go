package agent

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// forms are texts with one call each, by what it is to be understood as.
func forms() map[string]string {
	return map[string]string{
		"JSON":              `<tool_call>{"name": "f", "arguments": {"k": "v", "n": 5}}</tool_call>`,
		"JSON, no end tag":  "<tool_call>\n" + `{"name": "f", "arguments": {"k": "v", "n": 5}}` + "\n",
		"JSON in JSON":      `<tool_call>{"name":"f","arguments":"{\"k\":\"v\",\"n\":5}"}</tool_call>`,
		"envelope":          `<function_call>{"type":"function","function":{"name":"f","arguments":{"k":"v","n":5}}}</function_call>`,
		"list":              `<tool_calls>[{"tool":"f","args":{"k":"v","n":5}}]</tool_calls>`,
		"pairs":             "<tool_call>f\n<arg_key>k</arg_key>\n<arg_value>v</arg_value>\n<arg_key>n</arg_key><arg_value>5</arg_value>\n</tool_call>",
		"invoke":            `<invoke name="f"><parameter name="k">v</parameter><parameter name="n">5</parameter></invoke>`,
		"invoke, wrapped":   "<function_calls>\n<invoke name=\"f\">\n<parameter name=\"k\">\nv\n</parameter>\n<parameter name='n'>5</parameter>\n</invoke>\n</function_calls>",
		"invoke, attribute": `<invoke name="f" k="v" n='5'/>`,
		"DSML":              "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"f\">\n<｜DSML｜parameter name=\"k\" string=\"true\">v</｜DSML｜parameter>\n<｜DSML｜parameter name=\"n\" string=\"false\">5</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>",
		"function":          "<tool_call>\n<function=f>\n<parameter=k>\nv\n</parameter>\n<parameter=n>\n5\n</parameter>\n</function>\n</tool_call>",
		"function, JSON":    `<function=f>{"k":"v","n":5}</function>`,
		"tokens":            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{\"k\":\"v\",\"n\":5}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
		"tokens, older":     "<｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n{\"k\":\"v\",\"n\":5}\n```<｜tool▁call▁end｜>",
		"arrows":            "[TOOL_CALL]\n{tool => \"f\", args => {\n  --k \"v\"\n  --n 5\n}}\n[/TOOL_CALL]",
		"arrows, one line":  `[TOOL_CALL]{tool => "f", args => {--k v --n 5}}[/TOOL_CALL]`,
		"arrows, JSON args": `[TOOL_CALL]{tool => "f", args => {"k": "v", "n": 5}}[/TOOL_CALL]`,
		"brackets, JSON":    `[TOOL_CALL]{"tool": "f", "args": {"k": "v", "n": 5}}[/TOOL_CALL]`,
	}
}

var schemaOfF = map[string]any{
	"type":       "object",
	"properties": map[string]any{"k": map[string]any{"type": "string"}, "n": map[string]any{"type": "integer"}},
}

// argsOf are the arguments of a call as an object.
func argsOf(t *testing.T, c textCall, schema any) string {
	t.Helper()
	if len(c.fields) == 0 {
		return c.args
	}
	text, err := typed(c.fields, schema)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestCallsInTexts(t *testing.T) {
	for name, text := range forms() {
		t.Run(name, func(t *testing.T) {
			calls, prose := textCalls("Let me see.\n" + text)
			if len(calls) != 1 || calls[0].fault != "" || calls[0].name != "f" {
				t.Fatalf("%+v", calls)
			}
			var got any
			if err := json.Unmarshal([]byte(argsOf(t, calls[0], schemaOfF)), &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(map[string]any{"k": "v", "n": 5.0}, got); diff != "" {
				t.Error(diff)
			}
			if !strings.HasPrefix(prose, "Let me see.") || strings.Contains(prose, `"v"`) {
				t.Errorf("%q", prose)
			}
			twice, _ := textCalls(text + "\n" + strings.Replace(text, "f", "f", 1))
			if strings.Contains(name, "no end tag") {
				return // nobody knows where the first ends
			}
			if len(twice) != 2 || twice[1].fault != "" {
				t.Errorf("twice: %+v", twice)
			}
		})
	}
}

// What only speaks of a call is an answer (and so is a call in a code fence,
// whichever form it has).
func TestQuotedCallsAreNone(t *testing.T) {
	for name, form := range forms() {
		for how, text := range map[string]string{
			"fence":        "So:\n```xml\n" + form + "\n```\nThat is it.",
			"tildes":       "~~~\n" + form + "\n~~~",
			"open fence":   "````\n```\n" + form + "\n",
			"quotation":    "> " + strings.ReplaceAll(form, "\n", "\n> "),
			"after a span": "`a` and ```b``` then\n```\n" + form + "\n```",
		} {
			if strings.Contains(form, "```") && how != "open fence" && how != "tildes" {
				continue
			}
			if calls, prose := textCalls(text); len(calls) > 0 || prose != text {
				t.Errorf("%s in %s: %+v", name, how, calls)
			}
		}
		if strings.Contains(form, "\n") {
			continue
		}
		if calls, _ := textCalls("Write `` " + form + " `` to call."); len(calls) > 0 {
			t.Errorf("%s in a span: %+v", name, calls)
		}
	}
	for _, text := range []string{
		"Use the <tool_call> tag.", "<tool_call></tool_call>", "An <invoke> element, or <invoke name>.", "[TOOL_CALL] is a mark.",
		"if a < b && c[0] > d { }", "<function_calls>", "<function=>", "", "``` unclosed",
		`{"say": "<tool_call>{\"name\": \"f\"}</tool_call>"}`, `["<invoke name='f'></invoke>"]`,
	} {
		if calls, prose := textCalls(text); len(calls) > 0 || prose != text {
			t.Errorf("%q: %+v", text, calls)
		}
	}
}

func TestBrokenCallsHaveAFault(t *testing.T) {
	for _, text := range []string{
		`<tool_call>{"name": "f", "arguments": {"k": }}</tool_call>`,
		`<tool_call>{"name": "f", "arguments": {"k": "v"`,
		`<tool_call>{"arguments": {}}</tool_call>`,
		`<tool_call>{"name": "f", "tool": "g"}</tool_call>`,
		`<tool_call>{"name": "f", "args": {}, "input": {}}</tool_call>`,
		`<tool_call>{"name": "f"} and more</tool_call>`,
		`<tool_call>[]</tool_call>`,
		`<tool_call>f<arg_key>k</arg_key>v</tool_call>`,
		`<invoke name="f"><parameter name="k">v`,
		`<invoke name="f"><parameter name="k">v</parameter>`,
		`<invoke name="f">k=v</invoke>`,
		`<function=f>{"k": </function>`,
		`<｜tool▁call▁begin｜>two words<｜tool▁sep｜>{}<｜tool▁call▁end｜>`,
		`[TOOL_CALL]{tool => "f", args => {k "v"}}[/TOOL_CALL]`,
		`[TOOL_CALL]{tool => "f", args => {--k "v}}[/TOOL_CALL]`,
		`[TOOL_CALL]{args => {--k "v"}}[/TOOL_CALL]`,
		`[TOOL_CALL]{tool => "f"`,
	} {
		if calls, _ := textCalls("x " + text); len(calls) != 1 || calls[0].fault == "" {
			t.Errorf("%s: %+v", text, calls)
		}
	}
}

// Values reach the tool as they were written: nothing is unescaped, cut or
// guessed.
func TestWrittenValuesAreKept(t *testing.T) {
	value := "a\\n\\\"b\\\" </parameter> &lt; <tool_call>\n\n\tend "
	calls, _ := textCalls("<invoke name=\"f\"><parameter name=\"k\">" + value + "</parameter></invoke>")
	if len(calls) != 1 || calls[0].fields[0].text != value {
		t.Errorf("%+v", calls)
	}
	calls, _ = textCalls("[TOOL_CALL]{tool => \"f\", args => {--k \"one\ntwo \\\"three\\\" }}[/TOOL_CALL]\" --m [1, 2]}}[/TOOL_CALL]")
	if len(calls) != 1 || calls[0].fields[0].text != "one\ntwo \"three\" }}[/TOOL_CALL]" || calls[0].fields[1] != (field{"m", "[1, 2]", true}) {
		t.Errorf("%+v", calls)
	}
}

func TestTextsBecomeWhatTheSchemaSays(t *testing.T) {
	var schema any
	if err := json.Unmarshal([]byte(`{
		"type": "object", "$defs": {"count": {"type": "integer"}},
		"properties": {
			"int": {"type": "integer"}, "ref": {"$ref": "#/$defs/count"}, "num": {"type": "number"}, "flag": {"type": "boolean"},
			"list": {"type": "array"}, "object": {"type": "object"}, "text": {"type": "string"},
			"either": {"type": ["string", "integer"]}, "maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
			"one": {"enum": [1, 2]}, "free": {}, "open": {"anyOf": [{"type": "integer"}, {}]}
		}}`), &schema); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, text, want string }{
		{"int", "12", `12`}, {"int", " 9007199254740993 ", `9007199254740993`}, {"int", "1.0", `"1.0"`}, {"int", "007", `"007"`},
		{"ref", "3", `3`}, {"num", "1.50", `1.50`}, {"num", "1e3", `1e3`}, {"num", "NaN", `"NaN"`},
		{"flag", "true", `true`}, {"flag", "True", `"True"`}, {"list", `["a"]`, `["a"]`}, {"list", `["a"`, `"[\"a\""`},
		{"object", `{"a":1}`, `{"a":1}`}, {"text", "5", `"5"`}, {"text", "null", `"null"`}, {"either", "5", `"5"`},
		{"maybe", "5", `5`}, {"maybe", "null", `null`}, {"one", "2", `2`}, {"free", "5", `"5"`}, {"open", "5", `"5"`}, {"other", "5", `"5"`},
	} {
		got, err := typed([]field{{name: tt.name, text: tt.text}}, schema)
		if want := `{"` + tt.name + `":` + tt.want + `}`; err != nil || got != want {
			t.Errorf("%s %q: %s, %v; want %s", tt.name, tt.text, got, err, want)
		}
	}
	if _, err := typed([]field{{name: "a"}, {name: "a"}}, schema); err == nil {
		t.Error("an argument twice")
	}
	if _, err := typed([]field{{name: "a", text: "{", json: true}}, schema); err == nil {
		t.Error("what says that it is JSON and is not")
	}
}

func TestManyCallsInATextAreBounded(t *testing.T) {
	one := `<tool_call>{"name":"f"}</tool_call>`
	if calls, _ := textCalls(strings.Repeat(one, 100)); len(calls) != maxTextCalls {
		t.Errorf("%d calls", len(calls))
	}
	for _, piece := range []string{"`", "`` ", "<tool_call>", "<invoke name=\"a\">", "<invoke a=\"", "</parameter>", "[TOOL_CALL]{", "<｜tool▁call▁begin｜>x<｜tool▁call▁end｜>", "> ", "~~~\n", "<"} {
		textCalls(strings.Repeat(piece, (1<<18)/len(piece))) // ends soon
	}
	if calls, _ := textCalls(strings.Repeat(" ", maxCallText) + one); calls != nil {
		t.Error("a text beyond the bound")
	}
}

func TestACallThatIsTheWholeFence(t *testing.T) {
	for text, want := range map[string]bool{
		"```\n<tool_call>{\"name\":\"f\"}</tool_call>\n```":               true,
		"```xml\n<invoke name=\"f\"></invoke>\n```\n":                     true,
		"```\n<tool_call>{\"name\":}</tool_call>\n```":                    false,
		"So:\n```\n<tool_call>{\"name\":\"f\"}</tool_call>\n```":          false,
		"```\nfmt.Println()\n```":                                         false,
		"```\n```":                                                        false,
		"``````":                                                          false,
		"```\n<tool_call>{\"name\":\"f\"}</tool_call>\n```\n```\nb\n```":  false,
		"```\nan example: <tool_call>{\"name\":\"f\"}</tool_call>\n```\n": false,
	} {
		if got := quotesCall(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func FuzzTextCalls(f *testing.F) {
	for _, text := range forms() {
		f.Add(text)
		f.Add("a `b` ```\n" + text + "\n```\n> " + text[:len(text)/2])
	}
	f.Fuzz(func(t *testing.T, text string) {
		calls, prose := textCalls(text)
		if len(calls) == 0 && prose != text {
			t.Fatal("a text without a call was changed")
		}
		if len(calls) > maxTextCalls {
			t.Fatalf("%d calls", len(calls))
		}
		for _, c := range calls {
			if c.fault == "" && c.name == "" {
				t.Fatalf("a call of nothing: %+v", c)
			}
			if c.wrote == "" || !strings.Contains(text, c.wrote) {
				t.Fatalf("%q is not in the text", c.wrote)
			}
			if c.fault != "" || len(c.fields) == 0 {
				continue
			}
			object, err := typed(c.fields, schemaOfF)
			if err != nil {
				continue
			}
			var values map[string]any
			if err := json.Unmarshal([]byte(object), &values); err != nil {
				t.Fatalf("%s: %v", object, err)
			}
			for _, f := range c.fields {
				if s, ok := values[f.name].(string); ok && utf8.ValidString(f.text) && !f.json && s != f.text {
					t.Fatalf("%q became %q", f.text, s)
				}
			}
			if !slices.ContainsFunc(c.fields, func(f field) bool { return f.name != "" }) {
				t.Fatal("arguments without names")
			}
		}
		quotesCall(text)
	})
}
