package anthropic

import "encoding/json"

// schemaKeyword reports whether the API's structured outputs know a keyword of
// JSON Schema.
func schemaKeyword(key string) bool {
	switch key {
	case "$ref", "$defs", "type", "anyOf", "allOf", "description", "title", "enum", "const", "default",
		"properties", "additionalProperties", "required", "items", "minItems", "format", "pattern":
		return true
	}
	return false
}

// stringFormat reports whether they know a format of texts.
func stringFormat(name string) bool {
	switch name {
	case "date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid":
		return true
	}
	return false
}

const maxSchemaDepth = 100

// outputSchema returns a schema of the answer as the API takes it: without the
// keywords that it refuses, and with objects that have no further properties.
// What is valid against the one that it returns may break what was left out,
// which is for the validator to see. It returns false where the API has no way
// to say the schema, such as for an object of any properties.
func outputSchema(raw json.RawMessage, depth int) (json.RawMessage, bool) {
	var s map[string]json.RawMessage
	if depth > maxSchemaDepth || json.Unmarshal(raw, &s) != nil || s == nil {
		return nil, false // true and false are schemas too, which the API does not take
	}
	if ref, ok := s["$ref"]; ok && depth > 0 {
		return encode(map[string]json.RawMessage{"$ref": ref})
	}
	if one, ok := s["oneOf"]; ok && s["anyOf"] == nil {
		s["anyOf"] = one
	}
	if old, ok := s["definitions"]; ok && s["$defs"] == nil && len(old) > 0 {
		return nil, false // references to it would lead nowhere
	}
	for key := range s {
		if !schemaKeyword(key) {
			delete(s, key)
		}
	}
	var format string
	if json.Unmarshal(s["format"], &format) == nil && !stringFormat(format) {
		delete(s, "format")
	}
	var least int
	if json.Unmarshal(s["minItems"], &least) == nil && least > 1 {
		s["minItems"] = json.RawMessage("1")
	}
	if !object(s) {
		return nil, false
	}
	for _, key := range []string{"properties", "$defs"} {
		if !each(s, key, depth) {
			return nil, false
		}
	}
	for _, key := range []string{"anyOf", "allOf"} {
		var parts []json.RawMessage
		if json.Unmarshal(s[key], &parts) != nil {
			continue
		}
		for i, part := range parts {
			fit, ok := outputSchema(part, depth+1)
			if !ok {
				return nil, false
			}
			parts[i] = fit
		}
		s[key], _ = json.Marshal(parts) // they are JSON
	}
	if items, ok := s["items"]; ok {
		fit, ok := outputSchema(items, depth+1)
		if !ok {
			return nil, false
		}
		s["items"] = fit
	}
	return encode(s)
}

// object forbids further properties where s is of an object, and reports whether
// the API can say it.
func object(s map[string]json.RawMessage) bool {
	var kind string
	_ = json.Unmarshal(s["type"], &kind) // a list of types has none
	_, properties := s["properties"]
	if kind != "object" && !properties {
		return true
	}
	s["additionalProperties"] = json.RawMessage("false")
	return properties
}

// each fits the schemas of a mapping of them.
func each(s map[string]json.RawMessage, key string, depth int) bool {
	var parts map[string]json.RawMessage
	if json.Unmarshal(s[key], &parts) != nil {
		return true
	}
	for name, part := range parts {
		fit, ok := outputSchema(part, depth+1)
		if !ok {
			return false
		}
		parts[name] = fit
	}
	s[key], _ = json.Marshal(parts) // they are JSON
	return true
}

func encode(s map[string]json.RawMessage) (json.RawMessage, bool) {
	raw, err := json.Marshal(s)
	return raw, err == nil
}
