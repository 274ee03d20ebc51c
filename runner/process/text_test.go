package process

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCandidates(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		want     []string
	}{
		{"the whole", " {\"a\":1} \n", []string{`{"a":1}`, `{"a":1}`}},
		{"a number", "42", []string{"42"}},
		{"fenced", "Here:\n```json\n{\"a\": 1}\n```\nand\n```\n[2]\n```", []string{`{"a": 1}`, `[2]`, `{"a": 1}`, `[2]`}},
		{"in the text", `I found {"a":{"b":"}"}} and [1,2] {bad}.`, []string{`{"a":{"b":"}"}}`, `[1,2]`}},
		{"digits", `so {"id":725653563933458433,"e":1e400}`, []string{`{"id":725653563933458433,"e":1e400}`}},
		{"with a mark", "\uFEFF[1]", []string{`[1]`, `[1]`}},
		{"an open fence", "```json\n{\"a\":1}", []string{`{"a":1}`}},
		{"a fence in a fence", "````\n```\n[1]\n```\n````", []string{`[1]`}},
		{"after citations", strings.Repeat("So [1], and [2, 3]. ", 50) + `{"a":1}` + " [4]", append([]string{`{"a":1}`}, citations(16)...)},
		{"an array after a citation", `By [1]: [{"a":1},{"b":2}]`, []string{`[{"a":1},{"b":2}]`, `[1]`}},
		{"no citations", `["a"] [true] [[1]] []`, []string{`["a"]`, `[true]`, `[[1]]`, `[]`}},
		{"none", "sorry", nil},
		{"empty", "", nil},
		{"brackets without end", strings.Repeat("[", 1<<16), nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, candidates(tt.in)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// citations are the first of [1], [2, 3], [1], …
func citations(n int) []string {
	var all []string
	for i := range n {
		all = append(all, []string{"[1]", "[2, 3]"}[i%2])
	}
	return all
}

// However an answer is made, little of it is taken up.
func TestCandidatesAreBounded(t *testing.T) {
	for _, in := range []string{"[1]", "{} ", `["a"]`, "{"} {
		if n := len(candidates(strings.Repeat(in, 1<<16))); n > maxFound+maxNumbers {
			t.Errorf("%s: %d", in, n)
		}
	}
}

func FuzzCandidates(f *testing.F) {
	for _, s := range []string{`{"a":1}`, "```json\n[1]\n```", `x {"a":[{}]} y`, "{{{[[[", "```\n```\n```", "\uFEFF{}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		for _, c := range candidates(in) {
			if !json.Valid([]byte(c)) || !strings.Contains(in, c) {
				t.Errorf("%q is not JSON of %q", c, in)
			}
		}
	})
}

func TestSanitize(t *testing.T) {
	for _, tt := range []struct{ name, format, in, want string }{
		{"plain", "markdown", "# T\n\ntext", "# T\n\ntext\n"},
		{"announced", "markdown", "Here is the report:\n\n# T\ntext\n\n\n", "# T\ntext\n"},
		{"an introduction is content", "markdown", "Tides are old.\n\n## More\n", "Tides are old.\n\n## More\n"},
		{"two paragraphs are content", "", "One.\n\nTwo:\n\n# T", "One.\n\nTwo:\n\n# T\n"},
		{"fenced whole", "md", "```markdown\n# T\n````go\nx\n````\n```", "# T\n````go\nx\n````\n"},
		{"two fences", "markdown", "```\na\n```\nb\n```\nc\n```", "```\na\n```\nb\n```\nc\n```\n"},
		{"another language is content", "markdown", "```go\nx\n```", "```go\nx\n```\n"},
		{"yaml", "yaml", "```yaml\na: 1\n```", "a: 1\n"},
		{"stop tokens", "markdown", "text</s> <|eot_id|>\n", "text\n"},
		{"stop tokens within stay", "markdown", "the token </s> ends", "the token </s> ends\n"},
		{"json keeps all but the mark", "json", "\uFEFF {\"a\":\"\\n\"} ", " {\"a\":\"\\n\"} "},
		{"text too", "text", "Here:\n# x </s>", "Here:\n# x </s>"},
		{"empty", "markdown", "", "\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := sanitize(tt.in, tt.format); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestSchemas(t *testing.T) {
	for _, tt := range []struct{ name, schema, value, err string }{
		{"large integer", `{"type":"integer","const":725653563933458433}`, `725653563933458433`, ""},
		{"large integer, one off", `{"type":"integer","const":725653563933458433}`, `725653563933458432`, "must be 725653563933458433"},
		{"an integer as a float", `{"type":"integer"}`, `1.0`, ""},
		{"no integer", `{"type":"integer"}`, `1.5`, "got number, want integer"},
		{"number out of range", `{"items":{"type":"number","minimum":0}}`, `[1e99999]`, "1e99999 is out of range"},
		{"small number out of range", `{"type":"number","minimum":0}`, `1e-99999999999999999999`, "out of range"},
		{"schema out of range", `{"type":"number","minimum":1e99999}`, `1`, "out of range"},
		{"recursive through a property", `{"type":"object","properties":{"next":{"$ref":"#"}}}`, `{"next":{"next":{}}}`, ""},
		{"recursive through a property, violated", `{"type":"object","properties":{"next":{"$ref":"#"}}}`, `{"next":1}`, "/next: got number, want object"},
		{"definition used twice", `{"$defs":{"s":{"type":"string"}},"properties":{"a":{"$ref":"#/$defs/s"},"b":{"$ref":"#/$defs/s"}}}`, `{"a":"","b":1}`, "/b: got number, want string"},
		{"names that look like references", `{"properties":{"$ref":{"type":"string"}},"default":{"$ref":"http://x"}}`, `{"$ref":"a"}`, ""},
		{"any", `true`, `1`, ""},
		{"none", `false`, `1`, "false schema"},
		{"itself", `{"$ref":"#"}`, `1`, "leads back"},
		{"itself by way of allOf", `{"allOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"anyOf":[{"$ref":"#/allOf/0"}]}}}`, `1`, "leads back"},
		{"itself, in a property", `{"properties":{"a":{"$ref":"#/properties/a"}}}`, `{"a":1}`, "reference cycle"},
		{"elsewhere", `{"$ref":"http://example.com/s"}`, `1`, "refers to nothing but itself"},
		{"a file", `{"$ref":"file:///etc/passwd"}`, `1`, "refers to nothing but itself"},
		{"an anchor", `{"$ref":"#a","$defs":{"a":{"$anchor":"a","type":"string"}}}`, `1`, "want string"},
		{"an id within", `{"$ref":"urn:x","$defs":{"a":{"$id":"urn:x","type":"string"}}}`, `1`, "want string"},
		{"no type", `{"type":"strange"}`, `1`, "/type"},
		{"no JSON", `{`, `1`, "JSON"},
		{"no JSON value", `{}`, `{} {}`, "JSON"},
		{"an older draft", `{"$schema":"http://json-schema.org/draft-07/schema#","items":[{"type":"string"}]}`, `[1]`, "/0: got number, want string"},
		{"a draft that nobody knows", `{"$schema":"http://example.com/draft"}`, `1`, "refers to nothing but itself"},
		{"a format", `{"properties":{"d":{"format":"date"},"e":{"format":"strange"}}}`, `{"d":"yesterday","e":""}`, "/d: 'yesterday' is not valid date"},
		{"every fault", `{"required":["a"],"additionalProperties":false,"properties":{"a":{},"b":{"items":{"enum":["x"]}}}}`, `{"b":["y","x","z"],"c":1}`,
			"missing property 'a'; /b/0: value must be 'x'; /b/2: value must be 'x'; additional properties 'c' not allowed"},
		{"too many faults", `{"items":{"type":"string"}}`, `[1,2,3,4,5,6,7,8,9,10,11,12]`, "/9: got number, want string; and 2 more faults"},
		{"alternatives", `{"items":{"anyOf":[{"type":"string"},{"type":"null"}]}}`, `["a",1]`, "/1: it fits none of the alternatives (/1: got number, want string; or /1: got number, want null)"},
		{"too large", `{"x":"` + strings.Repeat("x", maxSchema) + `"}`, `1`, "bytes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := resolve(tt.schema)
			if err == nil {
				err = validate(s, tt.value)
			}
			switch {
			case tt.err == "" && err != nil:
				t.Error(err)
			case tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)):
				t.Errorf("%v, want %q", err, tt.err)
			}
		})
	}
}

func FuzzSchema(f *testing.F) {
	f.Add(`{"type":"object","properties":{"a":{"$ref":"#"}}}`, `{"a":{}}`)
	f.Add(`{"allOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"not":{"$ref":"#/allOf/0"}}}}`, `1`)
	f.Add(`{"if":{"enum":[1,null]},"then":{"const":1e400}}`, `[1,{"a":1.0}]`)
	f.Fuzz(func(t *testing.T, schema, value string) {
		s, err := resolve(schema)
		if err == nil && len(value) < 1000 {
			_ = validate(s, value) // it must come back
		}
	})
}
