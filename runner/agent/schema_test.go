package agent

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
)

// K25: schemas that refer to themselves stay as large as they are, whatever form
// the reference has; one that leads nowhere becomes a schema of anything, with a
// warning.
func TestK25SchemasThatReferToThemselves(t *testing.T) {
	for name, tt := range map[string]struct {
		in, want string
		warnings int
	}{
		"tree by $defs": {
			in:   `{"type":"object","properties":{"root":{"$ref":"#/$defs/node"}},"$defs":{"node":{"type":"object","properties":{"kids":{"type":"array","items":{"$ref":"#/$defs/node"}}}}}}`,
			want: `{"type":"object","properties":{"root":{"$ref":"#/$defs/node"}},"$defs":{"node":{"type":"object","properties":{"kids":{"type":"array","items":{"$ref":"#/$defs/node"}}}}}}`,
		},
		"tree by a path": {
			in:   `{"type":"object","properties":{"nodes":{"type":"array","items":{"type":"object","properties":{"nodes":{"type":"array","items":{"$ref":"#/properties/nodes/items"}}}}}}}`,
			want: `{"type":"object","properties":{"nodes":{"type":"array","items":{"type":"object","properties":{"nodes":{"type":"array","items":{"$ref":"#/$defs/ref1"}}}}}},"$defs":{"ref1":{"type":"object","properties":{"nodes":{"type":"array","items":{"$ref":"#/$defs/ref1"}}}}}}`,
		},
		"the root itself": {
			in:   `{"type":"object","properties":{"child":{"$ref":"#"}}}`,
			want: `{"type":"object","properties":{"child":{"$ref":"#/$defs/ref1"}},"$defs":{"ref1":{"type":"object","properties":{"child":{"$ref":"#/$defs/ref1"}}}}}`,
		},
		"two that refer to each other": {
			in:   `{"type":"object","properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{"type":"object","properties":{"b":{"$ref":"#/$defs/b"}}},"b":{"type":"object","properties":{"a":{"$ref":"#/$defs/a"}}}}}`,
			want: `{"type":"object","properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{"type":"object","properties":{"b":{"$ref":"#/$defs/b"}}},"b":{"type":"object","properties":{"a":{"$ref":"#/$defs/a"}}}}}`,
		},
		"to nothing": {
			in:       `{"type":"object","properties":{"a":{"$ref":"#/$defs/gone","description":"an a"},"n":{"maximum":725653563933458433}}}`,
			want:     `{"type":"object","properties":{"a":{"description":"an a"},"n":{"maximum":725653563933458433}}}`,
			warnings: 1,
		},
		"to another document": {
			in:       `{"type":"object","properties":{"a":{"$ref":"https://example.com/schema.json"}}}`,
			want:     `{"type":"object","properties":{"a":{}}}`,
			warnings: 1,
		},
		"the name is taken": {
			in:   `{"type":"object","properties":{"a":{"$ref":"#/properties/b"},"b":{"type":"string"}},"$defs":{"ref1":{"type":"null"}}}`,
			want: `{"type":"object","properties":{"a":{"$ref":"#/$defs/ref2"},"b":{"type":"string"}},"$defs":{"ref1":{"type":"null"},"ref2":{"type":"string"}}}`,
		},
		"a property that is called so": {
			in:   `{"type":"object","properties":{"$ref":{"type":"string"}}}`,
			want: `{"type":"object","properties":{"$ref":{"type":"string"}}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, warnings := wireSchema(json.RawMessage(tt.in))
			if !sameJSON(t, string(got), tt.want) {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			if len(warnings) != tt.warnings {
				t.Errorf("warnings %q", warnings)
			}
			var s jsonschema.Schema
			if err := json.Unmarshal(got, &s); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Resolve(nil); err != nil {
				t.Errorf("the schema does not resolve: %v", err)
			}
		})
	}
}

// A schema without end in size or depth costs the model its description, and the
// host nothing.
func TestK25SchemasWithoutEnd(t *testing.T) {
	deep := `{"type":"object","properties":{"a":` + strings.Repeat(`{"items":`, 100_000)
	for name, in := range map[string]string{
		"deep":  deep,
		"large": `{"type":"object","description":"` + strings.Repeat("x", maxSchemaBytes) + `"}`,
	} {
		got, warnings := wireSchema(json.RawMessage(in))
		if string(got) != emptySchema || len(warnings) != 1 {
			t.Errorf("%s: %.80s, warnings %q", name, got, warnings)
		}
	}
	// Each definition refers to the next by two pointers: expanded, they would
	// be as many as there are atoms.
	var b strings.Builder
	b.WriteString(`{"type":"object","properties":{`)
	for i := range 60 {
		next := `"#/properties/p` + string(rune('A'+(i+1)%60)) + `"`
		if i > 0 {
			b.WriteString(",")
		}
		b.WriteString(`"p` + string(rune('A'+i)) + `":{"anyOf":[{"$ref":` + next + `},{"$ref":` + next + `}]}`)
	}
	b.WriteString(`}}`)
	got, _ := wireSchema(json.RawMessage(b.String()))
	if len(got) > 4*b.Len() {
		t.Errorf("%d bytes became %d", b.Len(), len(got))
	}
}

func FuzzWireSchema(f *testing.F) {
	f.Add(`{"type":"object","properties":{"child":{"$ref":"#"}}}`)
	f.Add(`{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/a"}}}`)
	f.Add(`{"properties":{"a":{"$ref":"#/properties/b/items/0"},"b":{"items":[{}]}}}`)
	f.Fuzz(func(t *testing.T, in string) {
		got, _ := wireSchema(json.RawMessage(in))
		var root map[string]json.RawMessage
		if err := json.Unmarshal(got, &root); err != nil || string(root["type"]) != `"object"` {
			t.Errorf("%q became %s", in, got)
		}
		if again, warnings := wireSchema(got); !sameJSON(t, string(again), string(got)) || len(warnings) > 0 {
			t.Errorf("%s is not fit: %s, %q", got, again, warnings)
		}
	})
}

func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	var x, y any
	if json.Unmarshal([]byte(a), &x) != nil || json.Unmarshal([]byte(b), &y) != nil {
		return false
	}
	p, _ := json.Marshal(x)
	q, _ := json.Marshal(y)
	return string(p) == string(q)
}
