package agent

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// jsonNumber and jsonInteger are numbers as JSON writes them.
var (
	jsonNumber  = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)
	jsonInteger = regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`)
)

// typed makes an object of arguments that were written as texts. A text becomes a
// number, a boolean, null, an object or a list where the tool's schema allows that
// and no text, and only if it is written exactly so in JSON: nothing is lost, and
// where the schema says nothing a text stays one.
func typed(fields []field, schema any) (string, error) {
	root, _ := schema.(map[string]any)
	n := &nulls{root: root}
	object, _ := n.follow(schema, 0).(map[string]any)
	properties, _ := object["properties"].(map[string]any)
	var b strings.Builder
	b.WriteByte('{')
	seen := make(map[string]bool, len(fields))
	for i, f := range fields {
		if seen[f.name] {
			return "", fmt.Errorf("the argument %q is given twice", excerpt(f.name, 60))
		}
		seen[f.name] = true
		value, err := f.value(n, properties[f.name])
		if err != nil {
			return "", err
		}
		key, err := json.Marshal(f.name)
		if err != nil {
			return "", fmt.Errorf("the name of an argument: %w", err)
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(key)
		b.WriteByte(':')
		b.WriteString(value)
	}
	b.WriteByte('}')
	return b.String(), nil
}

// value is the field in JSON, by the schema of its property.
func (f field) value(n *nulls, schema any) (string, error) {
	text := strings.TrimSpace(f.text)
	if f.json {
		if !json.Valid([]byte(text)) {
			return "", fmt.Errorf("the argument %q is not JSON", excerpt(f.name, 60))
		}
		return text, nil
	}
	kinds := n.kinds(schema, 0)
	if len(kinds) > 0 && !slices.Contains(kinds, "string") {
		for _, kind := range kinds {
			if isWritten(text, kind) {
				return text, nil
			}
		}
	}
	quoted, err := json.Marshal(f.text) // the tool says what is wrong with it
	return string(quoted), err
}

// isWritten reports whether a text is a value of that kind in JSON.
func isWritten(text, kind string) bool {
	switch kind {
	case "integer":
		return jsonInteger.MatchString(text)
	case "number":
		return jsonNumber.MatchString(text)
	case "boolean":
		return text == "true" || text == "false"
	case "null":
		return text == "null"
	case "object":
		return strings.HasPrefix(text, "{") && json.Valid([]byte(text))
	case "array":
		return strings.HasPrefix(text, "[") && json.Valid([]byte(text))
	}
	return false
}

// kinds are the types that a schema allows at most, none where it does not say.
func (n *nulls) kinds(schema any, depth int) []string {
	if n.steps++; depth > maxNulls || n.steps > maxNullSteps {
		return nil
	}
	s, ok := n.follow(schema, 0).(map[string]any)
	if !ok {
		return nil
	}
	switch kind := s["type"].(type) {
	case string:
		return []string{kind}
	case []any:
		var kinds []string
		for _, k := range kind {
			if k, ok := k.(string); ok {
				kinds = append(kinds, k)
			}
		}
		return kinds
	}
	for _, word := range []string{"anyOf", "oneOf"} {
		some, _ := s[word].([]any)
		var kinds []string
		for _, o := range some {
			of := n.kinds(o, depth+1)
			if of == nil {
				return nil // it may be anything
			}
			kinds = append(kinds, of...)
		}
		if kinds != nil {
			return kinds
		}
	}
	var kinds []string
	values, _ := s["enum"].([]any)
	if value, ok := s["const"]; ok {
		values = append(values, value)
	}
	for _, v := range values {
		kinds = append(kinds, kindOfValue(v))
	}
	return kinds
}

func kindOfValue(v any) string {
	switch v.(type) {
	case string:
		return "string"
	case bool:
		return "boolean"
	case nil:
		return "null"
	case map[string]any:
		return "object"
	case []any:
		return "array"
	}
	return "number"
}
