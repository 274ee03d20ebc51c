package agent

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Kinds of what stands behind a keyword.
const (
	isText = iota
	isNumber
	isBool
	isTexts    // a list of texts
	isValues   // a list that is not empty
	isSchema   // a schema, true or false
	isSchemas  // a list of schemas that is not empty
	isSchemaOf // a schema by name
)

// keywords are the keywords of JSON Schema, and what may stand behind them. One
// that is written otherwise has APIs refuse all tools.
var keywords = map[string]int{
	"title": isText, "description": isText, "$comment": isText, "format": isText, "pattern": isText, "$ref": isText,
	"minimum": isNumber, "maximum": isNumber, "exclusiveMinimum": isNumber, "exclusiveMaximum": isNumber, "multipleOf": isNumber,
	"minLength": isNumber, "maxLength": isNumber, "minItems": isNumber, "maxItems": isNumber, "minProperties": isNumber, "maxProperties": isNumber,
	"minContains": isNumber, "maxContains": isNumber,
	"uniqueItems": isBool, "deprecated": isBool, "readOnly": isBool, "writeOnly": isBool,
	"required": isTexts,
	"enum":     isValues,
	"items":    isSchema, "additionalItems": isSchema, "unevaluatedItems": isSchema, "contains": isSchema,
	"additionalProperties": isSchema, "unevaluatedProperties": isSchema, "propertyNames": isSchema,
	"not": isSchema, "if": isSchema, "then": isSchema, "else": isSchema,
	"allOf": isSchemas, "anyOf": isSchemas, "oneOf": isSchemas, "prefixItems": isSchemas,
	"properties": isSchemaOf, "patternProperties": isSchemaOf, "dependentSchemas": isSchemaOf, "$defs": isSchemaOf, "definitions": isSchemaOf,
}

// types are those that JSON Schema knows.
var types = []string{"array", "boolean", "integer", "null", "number", "object", "string"}

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
		if kind, known := keywords[key]; known {
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
		if slices.Contains(types, kind) {
			return
		}
		if lower := strings.ToLower(kind); slices.Contains(types, lower) {
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
			if name, ok := k.(string); ok && slices.Contains(types, name) && !slices.Contains(known, k) {
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
func (t *tidier) keyword(s map[string]any, key string, kind int) {
	value := s[key]
	fit := false
	switch kind {
	case isText:
		_, fit = value.(string)
	case isNumber:
		_, fit = value.(json.Number)
	case isBool:
		_, fit = value.(bool)
	case isTexts:
		var list []any
		if list, fit = value.([]any); fit {
			s[key] = t.texts(list)
		}
	case isValues:
		list, _ := value.([]any)
		fit = len(list) > 0
	case isSchema:
		if fit = value != nil; fit {
			s[key] = t.schema(value)
		}
	case isSchemas:
		list, _ := value.([]any)
		for i := range list {
			list[i] = t.schema(list[i])
		}
		fit = len(list) > 0
	case isSchemaOf:
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

// texts are the texts of a list, each once.
func (t *tidier) texts(list []any) []any {
	texts := make([]any, 0, len(list))
	seen := make(map[string]bool, len(list))
	for _, v := range list {
		if text, ok := v.(string); ok && !seen[text] {
			seen[text] = true
			texts = append(texts, text)
		}
	}
	t.changed = t.changed || len(texts) < len(list)
	return texts
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
