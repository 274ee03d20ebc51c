package agent

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crewhost/runner/llm"
)

// What servers write that is no JSON Schema of today becomes some; what is stays,
// byte for byte.
func TestTidy(t *testing.T) {
	for name, tt := range map[string]struct {
		in, want string
		warnings int
	}{
		"valid":                       {`{ "type":"object","properties":{"a":{"type":["string","null"],"enum":["x",null],"default":null},"b":true},"x-odd":{"type":5} }`, "", 0},
		"a null type":                 {`{"properties":{"a":{"type":null,"description":"d"}}}`, `{"properties":{"a":{"description":"d"}}}`, 0},
		"null in a list of types":     {`{"properties":{"a":{"type":["string",null]}}}`, `{"properties":{"a":{"type":["string","null"]}}}`, 0},
		"a type that is none":         {`{"properties":{"a":{"type":"any"},"b":{"type":"String"},"c":{"type":{}}}}`, `{"properties":{"a":{},"b":{"type":"string"},"c":{}}}`, 2},
		"nulls":                       {`{"properties":{"a":{"description":null,"minimum":null,"enum":null,"items":null}},"required":null,"$defs":null}`, `{"properties":{"a":{}}}`, 0},
		"no schema":                   {`{"properties":{"a":"string","b":[],"c":null}}`, `{"properties":{"a":{},"b":{},"c":{}}}`, 1},
		"an array of nothing":         {`{"properties":{"a":{"type":"array"},"b":{"type":["array","null"]}}}`, `{"properties":{"a":{"type":"array","items":{}},"b":{"type":["array","null"],"items":{}}}}`, 0},
		"a tuple of draft-07":         {`{"properties":{"a":{"items":[{"type":"string"}],"additionalItems":false}}}`, `{"properties":{"a":{"prefixItems":[{"type":"string"}],"items":false}}}`, 0},
		"limits of draft-04":          {`{"properties":{"a":{"minimum":1,"exclusiveMinimum":true,"maximum":9,"exclusiveMaximum":false}}}`, `{"properties":{"a":{"exclusiveMinimum":1,"maximum":9}}}`, 0},
		"required of draft-03":        {`{"properties":{"a":{"type":"string","required":true}}}`, `{"properties":{"a":{"type":"string"}}}`, 1},
		"required twice, and no text": {`{"required":["a","a",1]}`, `{"required":["a"]}`, 0},
		"empty lists":                 {`{"properties":{"a":{"anyOf":[],"enum":[]}}}`, `{"properties":{"a":{}}}`, 2},
		"texts for numbers":           {`{"properties":{"a":{"minimum":"1","pattern":5}}}`, `{"properties":{"a":{}}}`, 2},
		"values are not schemas":      {`{"default":{"type":null},"enum":[{"type":null}],"const":{"items":null}}`, "", 0},
		"large numbers":               {`{"properties":{"a":{"type":null,"maximum":725653563933458433}}}`, `{"properties":{"a":{"maximum":725653563933458433}}}`, 0},
	} {
		got, warnings := tidy(json.RawMessage(tt.in))
		if tt.want == "" && string(got) != tt.in || tt.want != "" && !sameJSON(t, string(got), tt.want) {
			t.Errorf("%s: got %s", name, got)
		}
		if strings.Contains(tt.in, "725653563933458433") && !strings.Contains(string(got), "725653563933458433") {
			t.Errorf("%s: got %s", name, got)
		}
		if len(warnings) != tt.warnings {
			t.Errorf("%s: %q", name, warnings)
		}
	}
}

var (
	openAI    = llm.SchemaDialect{RootKeywords: []string{"anyOf", "oneOf", "allOf", "enum", "not"}}
	anthropic = llm.SchemaDialect{RootKeywords: []string{"anyOf", "oneOf", "allOf"}, PlainKeys: true}
	plain     = llm.SchemaDialect{RootKeywords: openAI.RootKeywords, PlainKeys: true, NoReferences: true, OneType: true}
)

// What one API refuses is written otherwise for that API alone, and what a model
// makes of it reaches the server as its own schema has it.
func TestAdapt(t *testing.T) {
	const union = `{"type":"object","properties":{"a":{"$ref":"#/$defs/s"}},"anyOf":[{"required":["a"]},{"required":["b"]}],"$defs":{"s":{"type":"string"}}}`
	const tree = `{"type":"object","properties":{"root":{"$ref":"#/$defs/node"}},"$defs":{"node":{"type":"object","description":"A node.","properties":{"kids":{"type":"array","items":{"$ref":"#/$defs/node"}}}}}}`
	long := strings.Repeat("k", 70)
	for name, tt := range map[string]struct {
		dialect    llm.SchemaDialect
		in, want   string // want is empty where nothing changes
		args, back string
		warnings   int
	}{
		"an API that takes all": {in: union, want: union, args: `{"input":{"a":1}}`, back: `{"input":{"a":1}}`},
		"a union at the root": {
			dialect: openAI, in: union,
			want: `{"type":"object","required":["input"],"additionalProperties":false,"$defs":{"s":{"type":"string"}},"properties":{"input":{"type":"object","properties":{"a":{"$ref":"#/$defs/s"}},"anyOf":[{"required":["a"]},{"required":["b"]}]}}}`,
			args: `{ "input" : {"a":"x","n":725653563933458433, "b":1e400} }`, back: `{"a":"x","n":725653563933458433, "b":1e400}`,
		},
		"a model that does not wrap":    {dialect: anthropic, in: union, want: "wrapped", args: `{"a":"x"}`, back: `{"a":"x"}`},
		"a wrapper that is no object":   {dialect: anthropic, in: union, want: "wrapped", args: `{"input":"x"}`, back: `{"input":"x"}`},
		"the wrapper's name is taken":   {dialect: openAI, in: `{"properties":{"input":{},"input_":{}},"oneOf":[{}]}`, want: "wrapped", args: `{"input__":{"input":{"a":1}}}`, back: `{"input":{"a":1}}`},
		"enum is not for all to refuse": {dialect: anthropic, in: `{"type":"object","properties":{},"enum":[{}]}`, args: `{}`, back: `{}`},
		"a union below the root":        {dialect: openAI, in: `{"type":"object","properties":{"a":{"anyOf":[{"type":"string"},{"type":"null"}]}}}`, args: `{"a":null}`, back: `{"a":null}`},
		"names that are refused": {
			dialect: anthropic,
			in:      `{"type":"object","properties":{"$top":{"type":"integer"},"filter[id]":{},"filter_id_":{},"a.b-c":{}},"required":["$top","a.b-c"]}`,
			want:    `{"type":"object","properties":{"_top":{"type":"integer"},"filter_id__665d001d741bec47":{},"filter_id_":{},"a.b-c":{}},"required":["_top","a.b-c"]}`,
			args:    `{"_top":12345678901234567890,"filter_id__665d001d741bec47":{"_top":1},"filter_id_":2,"other":[1.0]}`,
			back:    `{"$top":12345678901234567890,"filter[id]":{"_top":1},"filter_id_":2,"other":[1.0]}`,
		},
		"names, and a model that knows better": {dialect: anthropic, in: `{"type":"object","properties":{"$top":{}}}`, want: "renamed", args: `{"$top":1,"_top":2}`, back: `{"$top":1,"_top":2}`},
		"a long name":                          {dialect: anthropic, in: `{"type":"object","properties":{"` + long + `":{}}}`, want: "renamed", args: `{"` + long + `":1}`, back: `{"` + long + `":1}`},
		"names that are not refused":           {dialect: openAI, in: `{"type":"object","properties":{"$top":{}}}`, args: `{"$top":1}`, back: `{"$top":1}`},
		"no references, and a tree": {
			dialect: plain, in: tree, warnings: 1,
			want: `{"type":"object","properties":{"root":{"type":"object","description":"A node.","properties":{"kids":{"type":"array","items":{"type":"object","description":"A node."}}}}}}`,
			args: `{"root":{"kids":[{}]}}`, back: `{"root":{"kids":[{}]}}`,
		},
		"types that are lists": {
			dialect: plain,
			in:      `{"type":"object","properties":{"a":{"type":["string","array","null"],"items":{"type":["integer","string"]},"maxItems":3,"description":"A."},"b":{"type":["string"]},"c":{"type":["string","null"],"anyOf":[{"type":"string"}]},"type":{"type":"string","default":{"type":["a","b"]}}},"additionalProperties":{"type":["number","null"],"minimum":725653563933458433}}`,
			want:    `{"type":"object","properties":{"a":{"anyOf":[{"type":"string"},{"type":"array","items":{"anyOf":[{"type":"integer"},{"type":"string"}]},"maxItems":3},{"type":"null"}],"description":"A."},"b":{"type":"string"},"c":{"anyOf":[{"type":"string"}]},"type":{"type":"string","default":{"type":["a","b"]}}},"additionalProperties":{"anyOf":[{"type":"number","minimum":725653563933458433},{"type":"null"}]}}`,
			args:    `{"a":["x"]}`, back: `{"a":["x"]}`,
		},
		"types that are lists, and an API that takes them": {dialect: openAI, in: `{"type":"object","properties":{"a":{"type":["string","null"]}}}`, args: `{}`, back: `{}`},
		"no references, and the root itself": {
			dialect: plain, in: `{"type":"object","properties":{"child":{"$ref":"#"}}}`, warnings: 1,
			want: `{"type":"object","properties":{"child":{"type":"object","properties":{"child":{"type":"object"}}}}}`,
			args: `{}`, back: `{}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := adapt(json.RawMessage(tt.in), tt.dialect)
			switch tt.want {
			case "wrapped":
				if a.wrapper == "" {
					t.Errorf("got %s", a.schema)
				}
			case "renamed":
				if len(a.own) != 1 {
					t.Errorf("got %s", a.schema)
				}
			case "":
				if string(a.schema) != tt.in {
					t.Errorf("got %s", a.schema)
				}
			default:
				if !sameJSON(t, string(a.schema), tt.want) {
					t.Errorf("got  %s\nwant %s", a.schema, tt.want)
				}
			}
			if diff := cmp.Diff(tt.back, string(a.back(json.RawMessage(tt.args)))); diff != "" {
				t.Error(diff)
			}
			if len(a.warnings) != tt.warnings {
				t.Errorf("warnings %q", a.warnings)
			}
		})
	}
}

// K29 through a wrapper: nulls are dropped by the server's own schema.
func TestArgumentsAreTheServersOwn(t *testing.T) {
	in := `{"type":"object","properties":{"q":{"type":"string"},"limit":{"type":"integer"},"tag":{"type":["string","null"]}},"oneOf":[{}]}`
	h := held{fitting: new(fitter).to(openAI)(json.RawMessage(in))}
	for text, want := range map[string]string{
		`{"input":{"q":"x","limit":null,"tag":null}}`: `{"q":"x","tag":null}`,
		`{"q":"x","limit":null}`:                      `{"q":"x"}`,
		``:                                            `{}`,
		`{"input":{}}`:                                `{}`,
	} {
		got, err := h.arguments(text)
		if err != nil || !sameJSON(t, string(got), want) {
			t.Errorf("%s: got %s, %v", text, got, err)
		}
	}
	if _, err := h.arguments(`[]`); err == nil {
		t.Error("a list was taken")
	}
}

// Whatever a server writes, an API gets a schema of its dialect, and adapting
// that again changes nothing.
func FuzzAdapt(f *testing.F) {
	for _, seed := range []string{
		`{"type":"object","properties":{"$a":{"$ref":"#/$defs/b"}},"anyOf":[{"$ref":"#"}],"$defs":{"b":{"$ref":"#/$defs/b"}}}`,
		`{"properties":{"a":{"type":"array"},"b":{"items":[1,null]}},"required":true,"not":{}}`,
		`{"type":[null,"object"],"enum":[],"properties":{"é":5},"required":["é"]}`,
		`{"definitions":{"a/b":{"oneOf":[{"$ref":"#/definitions/a~1b"}]}},"$ref":"#/definitions/a~1b"}`,
		`{"properties":{"$ref":"#","x":{"$ref":5}}}`, `{"$defs":[],"allOf":{}}`, "{\"title\":\"\xff\"}",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		for name, d := range map[string]llm.SchemaDialect{"none": {}, "openai": openAI, "anthropic": anthropic, "plain": plain} {
			a := adapt(json.RawMessage(in), d)
			var root map[string]json.RawMessage
			if err := json.Unmarshal(a.schema, &root); err != nil || string(root["type"]) != `"object"` {
				t.Fatalf("%s: %q became %s", name, in, a.schema)
			}
			for _, k := range d.RootKeywords {
				if root[k] != nil {
					t.Errorf("%s: %q became %s", name, in, a.schema)
				}
			}
			var properties map[string]json.RawMessage
			if json.Unmarshal(root["properties"], &properties) != nil {
				t.Errorf("%s: %q became %s", name, in, a.schema)
			}
			for key := range properties {
				if d.PlainKeys && !plainKey.MatchString(key) {
					t.Errorf("%s: %q became %s", name, in, a.schema)
				}
			}
			again := adapt(a.schema, d)
			if !sameJSON(t, string(again.schema), string(a.schema)) || len(again.warnings) > 0 {
				t.Errorf("%s: %s is not fit: %s, %q", name, a.schema, again.schema, again.warnings)
			}
			if got := a.back(json.RawMessage(`{"a":[1]}`)); !json.Valid(got) {
				t.Errorf("%s: arguments became %s", name, got)
			}
		}
	})
}
