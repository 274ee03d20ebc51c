package agent

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

func shape(t testing.TB, schema string) any {
	t.Helper()
	if schema == "" {
		return nil
	}
	var v any
	if err := json.Unmarshal([]byte(schema), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

const k29 = `{"type":"object","required":["must"],
	"properties":{"q":{"type":"string"},"limit":{"type":"integer"},"tag":{"type":["string","null"]},
		"any":{},"off":false,"on":true,"must":{"type":"string"},
		"e1":{"enum":["a",null]},"e2":{"enum":["a"]},"c":{"const":1},
		"or":{"anyOf":[{"type":"string"},{"type":"null"}]},"or2":{"oneOf":[{"type":"string"},{"type":"number"}]},
		"and":{"allOf":[{"type":["null","string"]},{"minLength":1}]},"nullable":{"type":"string","nullable":true},
		"ref":{"$ref":"#/$defs/s"},"loop":{"$ref":"#/$defs/loop"},"lost":{"$ref":"#/$defs/none"},
		"deep":{"type":"object","properties":{"x":{"type":"string"}}},
		"list":{"type":"array","items":{"type":"object","properties":{"x":{"type":"string"}}}}},
	"$defs":{"s":{"type":"string"},"loop":{"$ref":"#/$defs/loop"}}}`

func TestNormalise(t *testing.T) {
	for _, tt := range []struct{ name, in, schema, want string }{
		{"nothing K29", "", "", `{}`},
		{"blank K29", " \n", "", `{}`},
		{"null K29", "null", "", `{}`},
		{"empty K29", "{}", k29, `{}`},
		{"the case of K29", `{"q":"x","limit":null,"tag":null}`, k29, `{"q":"x","tag":null}`},
		{"required stays for the server to judge", `{"must":null}`, k29, `{"must":null}`},
		{"unknown members stay W8", `{"new":null,"q":null}`, k29, `{"new":null}`},
		{"any, true and false", `{"any":null,"on":null,"off":null}`, k29, `{"any":null,"on":null}`},
		{"enum and const", `{"e1":null,"e2":null,"c":null}`, k29, `{"e1":null}`},
		{"combined", `{"or":null,"or2":null,"and":null,"nullable":null}`, k29, `{"or":null,"and":null,"nullable":null}`},
		{"references", `{"ref":null,"loop":null,"lost":null}`, k29, `{"loop":null,"lost":null}`},
		{"nested", `{"deep":{"x":null,"y":null},"list":[{"x":null},{"x":"a"}]}`, k29, `{"deep":{"y":null},"list":[{},{"x":"a"}]}`},
		{"no schema", `{"a":null}`, "", `{"a":null}`},
		{"schema that is no object", `{"a":null}`, `true`, `{"a":null}`},
		{"digits K31", `{"id":725653563933458433,"f":0.1000000000000000055,"e":1e400}`, `{"properties":{"id":{"type":"integer"}}}`,
			`{"id":725653563933458433,"f":0.1000000000000000055,"e":1e400}`},
		{"digits beside a dropped null K31", `{"id":725653563933458433,"limit":null,"e":1e400,"q":"é\u00e9<"}`, k29,
			`{"id":725653563933458433,"e":1e400,"q":"é\u00e9<"}`},
		{"spelling stays", `{ "q" : "null" }`, k29, `{ "q" : "null" }`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := normalise(tt.in, shape(t, tt.schema))
			if err != nil || string(got) != tt.want {
				t.Errorf("got %s, %v, want %s", got, err, tt.want)
			}
		})
	}
}

func TestNormaliseRefuses(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"a list", `[1]`, "must be one JSON object"},
		{"a text", `"{}"`, "must be one JSON object"},
		{"no JSON", `q=1`, "must be one JSON object"},
		{"glued K73", `{"a":1}{"b":2}`, "follows it"},
		{"cut", `{"a":"x`, "end too early"},
		{"cut at once", `{`, "end too early"},
		{"a comma too many", `{"a":1,}`, "not JSON"},
		{"twins", `{"a":1,"a":2}`, `two members "a"`},
		{"twins in other letters", `{"a":1,"\u0061":2}`, `two members "a"`},
		{"twins within", `{"x":[{"a":1,"b":{},"a":2}]}`, `two members "a"`},
		{"deep", strings.Repeat(`{"a":`, 200) + "1" + strings.Repeat("}", 200), "nested more than"},
		{"not UTF-8", "{\"a\":\"\xff\"}", "UTF-8"},
		{"large", `{"a":"` + strings.Repeat("x", maxArguments) + `"}`, "bytes"},
	} {
		if _, err := normalise(tt.in, nil); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
	for _, in := range []string{`{"a":{"a":{"a":1}}}`, `{"a":[{"a":1},{"a":2}],"b":"a"}`, `{"":1}`} {
		if _, err := normalise(in, nil); err != nil {
			t.Errorf("%s: %v", in, err)
		}
	}
}

// hostile is a schema that, followed everywhere, has 8^16 branches.
var hostile = `{"properties":{"a":{"anyOf":[` + strings.Repeat(`{"allOf":[{"$ref":"#/properties/a"},{"type":"string"}]},`, 7) + `{"type":"string"}]}}}`

func TestNormaliseIsBoundedOnHostileSchemas(t *testing.T) {
	got, err := normalise(`{"a":null,"b":1}`, shape(t, hostile))
	if err != nil || !strings.Contains(string(got), `"b":1`) {
		t.Errorf("%s, %v", got, err)
	}
}

func FuzzNormalise(f *testing.F) {
	for _, s := range []string{"", "null", `{"a":null,"b":1e400}`, `{"q":null,"deep":{"x":null}}`, `{"a":1}{"b":2}`, `[[[`, `{"a":`} {
		f.Add(s, k29)
	}
	f.Add(`{"a":{"a":null}}`, `{"properties":{"a":{"$ref":"#"}}}`)
	f.Add(`{"a":null}`, `{"properties":{"a":{"anyOf":[{"$ref":"#/properties/a"}]}}}`)
	f.Add(`{"a":null}`, hostile)
	f.Fuzz(func(t *testing.T, in, schema string) {
		var s any
		_ = json.Unmarshal([]byte(schema), &s) // nil is a schema too
		got, err := normalise(in, s)
		if err != nil {
			return
		}
		var v map[string]json.RawMessage
		if json.Unmarshal(got, &v) != nil || v == nil {
			t.Fatalf("%q became %q, which is no object", in, got)
		}
		again, err := normalise(string(got), s)
		if err != nil || !bytes.Equal(got, again) {
			t.Errorf("%q: not stable: %q, then %q (%v)", in, got, again, err)
		}
	})
}
