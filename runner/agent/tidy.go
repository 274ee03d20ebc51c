package agent

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// valueKind is what may stand behind a keyword.
type valueKind int

const (
	anything valueKind = iota // also where JSON Schema does not know the keyword
	aText
	aNumber
	aBool
	texts
	values    // a list that is not empty
	aSchema   // also true or false
	schemas   // a list of schemas that is not empty
	schemasBy // schemas by name
)

// kindOf is what may stand behind a keyword of JSON Schema. One that is written
// otherwise has APIs refuse all tools.
func kindOf(keyword string) valueKind {
	switch keyword {
	case "title", "description", "$comment", "format", "pattern", "$ref":
		return aText
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength",
		"minItems", "maxItems", "minContains", "maxContains", "minProperties", "maxProperties":
		return aNumber
	case "uniqueItems", "deprecated", "readOnly", "writeOnly":
		return aBool
	case "required":
		return texts
	case "enum":
		return values
	case "items", "additionalItems", "unevaluatedItems", "contains", "additionalProperties", "unevaluatedProperties",
		"propertyNames", "not", "if", "then", "else":
		return aSchema
	case "allOf", "anyOf", "oneOf", "prefixItems":
		return schemas
	case "properties", "patternProperties", "dependentSchemas", "$defs", "definitions":
		return schemasBy
	}
	return anything
}

// isType reports whether JSON Schema knows a type.
func isType(name string) bool {
	switch name {
	case "array", "boolean", "integer", "null", "number", "object", "string":
		return true
	}
	return false
}

// tidier makes schemas of what servers take for them: of older drafts, generated
// with holes, or written by hand.
type tidier struct {
	changed bool
	lost    map[string]bool // what of a schema the model is not told
}

func (t *tidier) lose(format string, args ...any) {
	t.changed = true
	t.lost[fmt.Sprintf(format, args...)] = true
}

// warnings are what was lost, a line each.
func (t *tidier) warnings() []string {
	const shown = 10
	lines := slices.Sorted(maps.Keys(t.lost))
	if n := len(lines) - shown; n > 0 {
		lines = append(lines[:shown], fmt.Sprintf("there are %d more faults in its schema", n))
	}
	return lines
}

// schema tidies one schema, in place.
func (t *tidier) schema(v any) any {
	s, ok := v.(map[string]any)
	if !ok {
		if b, isBool := v.(bool); isBool {
			return b
		}
		t.lose("its schema has something else in the place of a schema: any value is allowed there")
		return map[string]any{}
	}
	t.modernise(s)
	t.kind(s)
	for _, key := range slices.Sorted(maps.Keys(s)) {
		if kind := kindOf(key); kind != anything {
			t.keyword(s, key, kind)
		}
	}
	if _, has := s["items"]; !has && isArray(s["type"]) {
		s["items"] = map[string]any{} // without it, APIs refuse an array
		t.changed = true
	}
	return s
}

func isArray(kind any) bool {
	list, _ := kind.([]any)
	return kind == "array" || slices.Contains(list, any("array"))
}

// modernise turns what older drafts wrote into what the APIs read.
func (t *tidier) modernise(s map[string]any) {
	for key, limit := range map[string]string{"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"} {
		exclusive, ok := s[key].(bool)
		if !ok {
			continue
		}
		t.changed = true
		delete(s, key)
		if value, has := s[limit]; has && exclusive {
			s[key] = value
			delete(s, limit)
		}
	}
	if list, ok := s["items"].([]any); ok { // a tuple
		t.changed = true
		delete(s, "items")
		if _, has := s["prefixItems"]; !has && len(list) > 0 {
			s["prefixItems"] = list
			if rest, has := s["additionalItems"]; has {
				s["items"] = rest
				delete(s, "additionalItems")
			}
		}
	}
}

// kind tidies the keyword type.
func (t *tidier) kind(s map[string]any) {
	kind, has := s["type"]
	if !has {
		return
	}
	switch kind := kind.(type) {
	case string:
		if isType(kind) {
			return
		}
		if lower := strings.ToLower(kind); isType(lower) {
			s["type"], t.changed = lower, true
			return
		}
		t.lose("its schema has the type %.40q, which JSON Schema does not know: any value is allowed there", kind)
	case []any:
		var known []any
		for _, k := range kind {
			if k == nil {
				k = "null"
			}
			if name, ok := k.(string); ok && isType(name) && !slices.Contains(known, k) {
				known = append(known, k)
			}
		}
		if slices.Equal(known, kind) && len(known) > 0 {
			return
		}
		t.changed = true
		if len(known) > 0 {
			s["type"] = known
			return
		}
	case nil: // the type was not known to whoever wrote it
		t.changed = true
	default:
		t.lose("its schema has a type that is no text: any value is allowed there")
	}
	delete(s, "type")
}

// keyword tidies what stands behind a keyword, or leaves the keyword out.
func (t *tidier) keyword(s map[string]any, key string, kind valueKind) {
	value := s[key]
	fit := false
	switch kind {
	case aText:
		_, fit = value.(string)
	case aNumber:
		_, fit = value.(json.Number)
	case aBool:
		_, fit = value.(bool)
	case texts:
		var list []any
		if list, fit = value.([]any); fit {
			s[key] = t.once(list)
		}
	case values:
		list, _ := value.([]any)
		fit = len(list) > 0
	case aSchema:
		if fit = value != nil; fit {
			s[key] = t.schema(value)
		}
	case schemas:
		list, _ := value.([]any)
		for i := range list {
			list[i] = t.schema(list[i])
		}
		fit = len(list) > 0
	case schemasBy:
		var named map[string]any
		if named, fit = value.(map[string]any); fit {
			for _, name := range slices.Sorted(maps.Keys(named)) {
				named[name] = t.schema(named[name])
			}
		}
	}
	switch {
	case fit:
	case value == nil: // nothing was meant
		t.changed = true
		delete(s, key)
	default:
		t.lose("its schema has %q with a value that JSON Schema does not allow", key)
		delete(s, key)
	}
}

// once are the texts of a list, each once.
func (t *tidier) once(list []any) []any {
	found := make([]any, 0, len(list))
	seen := make(map[string]bool, len(list))
	for _, v := range list {
		if text, ok := v.(string); ok && !seen[text] {
			seen[text] = true
			found = append(found, text)
		}
	}
	t.changed = t.changed || len(found) < len(list)
	return found
}

// tidy makes a valid schema of one that is nearly so. One that is valid is
// returned as it came. Schema is an object that is not nested too deep.
func tidy(schema json.RawMessage) (json.RawMessage, []string) {
	var root map[string]any
	if digits(schema).Decode(&root) != nil || root == nil {
		return schema, nil
	}
	t := &tidier{lost: map[string]bool{}}
	t.schema(root)
	if !t.changed {
		return schema, nil
	}
	text, err := json.Marshal(root)
	if err != nil {
		return schema, nil // what was decoded can be encoded
	}
	return text, t.warnings()
}
