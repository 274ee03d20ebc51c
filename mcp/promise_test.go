package mcp

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// An output schema is judged by where that is safe, and each case is decided in
// no time, whatever the schema.
func TestPromise(t *testing.T) {
	const tree = `{"type":"object","properties":{"n":{"type":"integer"},"kids":{"type":"array","items":{"$ref":"#"}}},"required":["n"]}`
	laughs := `{"$ref":"#/$defs/d0","$defs":{`
	for i := range 40 {
		laughs += fmt.Sprintf(`"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
	}
	laughs += `"d40":{"type":"string"}}}`
	doubling := `{"type":"object","properties":{"a":{"allOf":[{"$ref":"#"},{"$ref":"#"}]}}}`
	deep := strings.Repeat(`{"a":`, 90) + "{}" + strings.Repeat("}", 90)
	for name, tt := range map[string]struct {
		schema, content string
		want            string // "", "broken", or "unread"
	}{
		"kept":                         {tree, `{"n":1,"kids":[{"n":2}]}`, ""},
		"broken":                       {tree, `{"n":1,"kids":[{"m":2}]}`, "broken"},
		"a large integer":              {tree, `{"n":725653563933458433}`, ""},
		"a number beyond floats":       {tree, `{"n":1e400}`, ""},
		"of another type":              {tree, `[]`, "broken"},
		"a null type":                  {`{"type":null}`, `{}`, "unread"},
		"draft-07":                     {`{"definitions":{"s":{"type":"string"}},"properties":{"a":{"$ref":"#/definitions/s"}}}`, `{"a":1}`, "broken"},
		"a cycle":                      {`{"$ref":"#/$defs/a","$defs":{"a":{"anyOf":[{"$ref":"#/$defs/a"}]}}}`, `{}`, "unread"},
		"a cycle in odd letters":       {`{"$Ref":"#"}`, `{}`, "unread"},
		"a cycle by an anchor":         {`{"$anchor":"x","$ref":"#x"}`, `{}`, "unread"},
		"a cycle through if":           {`{"if":{"$ref":"#"},"then":{}}`, `{}`, "unread"},
		"a cycle under another id":     {`{"$defs":{"a":{"$id":"x","$ref":"#/b","b":{"$ref":"#"}}},"$ref":"#/$defs/a"}`, `{}`, "unread"},
		"a reference to nothing":       {`{"$ref":"#/$defs/gone"}`, `{}`, "unread"},
		"a reference elsewhere":        {`{"$ref":"https://example.com/s"}`, `{}`, "unread"},
		"dynamic":                      {`{"$dynamicRef":"#x"}`, `{}`, "unread"},
		"a pattern that is none":       {`{"pattern":"("}`, `"x"`, "unread"},
		"a pattern too large":          {`{"pattern":"` + strings.Repeat(`(a{1000}b?)`, 200) + `"}`, `"x"`, "unread"},
		"many branches":                {laughs, `1`, ""},
		"branches at every level":      {doubling, deep, ""},
		"nested too deep":              {strings.Repeat(`{"not":`, 200) + "{}" + strings.Repeat("}", 200), `{}`, "unread"},
		"larger than is read":          {`{"type":"string","description":"` + strings.Repeat("x", 300<<10) + `"}`, `1`, "unread"},
		"a property that is called so": {`{"properties":{"$id":{"type":"string"},"$ref":{"type":"string"}}}`, `{"$id":"x"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			var p promise
			var err error
			got := ""
			if p.schema, p.weight, err = readPromise(json.RawMessage(tt.schema)); err != nil {
				got = "unread"
			} else if err = p.judge(json.RawMessage(tt.content)); err != nil {
				got = "broken"
			}
			if got != tt.want {
				t.Errorf("got %q, want %q: %v", got, tt.want, err)
			}
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("took %v", took)
			}
		})
	}
}

// Neither a schema nor a content can hold up or break the host.
func FuzzPromise(f *testing.F) {
	for _, seed := range [][2]string{
		{`{"type":"object","properties":{"a":{"$ref":"#"}}}`, `{"a":{"a":{}}}`},
		{`{"$defs":{"a":{"anyOf":[{"$ref":"#/$defs/b"}]},"b":{"not":{"$ref":"#/$defs/a"}}},"$ref":"#/$defs/a"}`, `1`},
		{`{"pattern":"(a{100}){10}","uniqueItems":true,"items":[{},{"const":1}]}`, `["a",[1,1]]`},
		{`{"dependencies":{"a":["b"],"c":{"$ref":"#"}},"if":{},"then":{"$ref":"#/if"}}`, `{"c":1}`},
		{`{"$anchor":"x","$ref":"#x"}`, `{}`}, {`{"$id":"a","$defs":{"b":{"$id":"c","$ref":"#"}},"$ref":"c"}`, `{}`},
		{`{"unevaluatedProperties":false,"allOf":[{"properties":{"a":true}}]}`, `{"a":1,"b":2}`},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, schema, content string) {
		var p promise
		var err error
		began := time.Now()
		if p.schema, p.weight, err = readPromise(json.RawMessage(schema)); err == nil && json.Valid([]byte(content)) {
			_ = p.judge(json.RawMessage(content))
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("took %v", took)
		}
	})
}
