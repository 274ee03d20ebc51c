package agent

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"regexp"
	"slices"

	"crewhost/runner/llm"
)

// An adapted schema is a tool's schema as one vendor's API takes it, and how what
// a model makes of it is changed back: the server gets arguments of its own schema.
type adapted struct {
	schema   json.RawMessage
	warnings []string // what the model is not told, a line each

	wrapper string            // the property that holds all the arguments, or ""
	own     map[string]string // the server's name of a property, by the model's, where they differ
}

// adapt makes a schema fit for every API, and then for the dialect of one.
func adapt(schema json.RawMessage, dialect llm.SchemaDialect) adapted {
	var a adapted
	a.schema, a.warnings = wireSchema(schema)
	var root map[string]any
	if decoder := digits(a.schema); decoder.Decode(&root) != nil {
		return a
	}
	changed := false
	if dialect.NoReferences && bytes.Contains(a.schema, []byte(`"$ref"`)) {
		var lost []string
		if root, lost = inline(root); root == nil {
			root = map[string]any{"type": "object", "properties": map[string]any{}}
		}
		a.warnings = append(a.warnings, lost...)
		changed = true
	}
	if dialect.OneType {
		changed = unite(root) || changed
	}
	switch {
	case slices.ContainsFunc(dialect.RootKeywords, func(k string) bool { _, ok := root[k]; return ok }):
		root = a.wrap(root)
		changed = true
	case dialect.PlainKeys:
		changed = a.rename(root) || changed
	}
	if changed {
		if text, err := json.Marshal(root); err == nil {
			a.schema = text
		}
	}
	return a
}

// digits decodes JSON with its numbers as they are written.
func digits(text json.RawMessage) *json.Decoder {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return d
}

// wrap makes a schema the only property of another, whose root is plain. The
// definitions move up, where references find them.
func (a *adapted) wrap(root map[string]any) map[string]any {
	a.wrapper = "input"
	properties, _ := root["properties"].(map[string]any)
	for properties[a.wrapper] != nil {
		a.wrapper += "_"
	}
	outer := map[string]any{"type": "object", "required": []any{a.wrapper}, "additionalProperties": false}
	inner := maps.Clone(root)
	for _, k := range []string{"$schema", "$defs", "definitions"} {
		if v, ok := inner[k]; ok {
			outer[k] = v
			delete(inner, k)
		}
	}
	outer["properties"] = map[string]any{a.wrapper: inner}
	return outer
}

var plainKey = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)

// rename gives properties of the root plain names. A name that is plain stays.
func (a *adapted) rename(root map[string]any) bool {
	properties, _ := root["properties"].(map[string]any)
	renamed := make(map[string]any, len(properties))
	var strange []string
	for _, key := range slices.Sorted(maps.Keys(properties)) {
		if plainKey.MatchString(key) {
			renamed[key] = properties[key]
		} else {
			strange = append(strange, key)
		}
	}
	if len(strange) == 0 {
		return false
	}
	a.own = make(map[string]string, len(strange))
	wire := make(map[string]string, len(strange))
	for _, key := range strange {
		name := fitName(key)
		if _, taken := renamed[name]; taken || len(key) > maxWireName {
			sum := sha256.Sum256([]byte(key))
			name = name[:min(len(name), maxWireName-17)] + "_" + hex.EncodeToString(sum[:8])
		}
		renamed[name] = properties[key]
		a.own[name], wire[key] = key, name
	}
	root["properties"] = renamed
	if required, ok := root["required"].([]any); ok {
		required = slices.Clone(required)
		for i, key := range required {
			if key, ok := key.(string); ok && wire[key] != "" {
				required[i] = wire[key]
			}
		}
		root["required"] = required
	}
	return true
}

// back makes of the arguments that a model wrote for the adapted schema those of
// the server's own, digit for digit. Arguments is an object. What a model wrote
// in the server's own way, as some do from a description, stays.
func (a adapted) back(arguments json.RawMessage) json.RawMessage {
	if a.wrapper == "" && len(a.own) == 0 {
		return arguments
	}
	members, ok := membersOf(arguments)
	if !ok {
		return arguments
	}
	if a.wrapper != "" {
		if len(members) == 1 && members[0].name == a.wrapper && members[0].value[0] == '{' {
			return members[0].value
		}
		return arguments
	}
	given := make(map[string]bool, len(members))
	for _, m := range members {
		given[m.name] = true
	}
	var parts [][]byte
	for _, m := range members {
		if own, ok := a.own[m.name]; ok && !given[own] {
			m.name = own
		}
		key, err := json.Marshal(m.name)
		if err != nil {
			return arguments
		}
		parts = append(parts, slices.Concat(key, []byte(":"), m.value))
	}
	return slices.Concat([]byte("{"), bytes.Join(parts, []byte(",")), []byte("}"))
}

// member is a member of an object, its value as it is written.
type member struct {
	name  string
	value json.RawMessage
}

// membersOf are the members of an object in their order.
func membersOf(object json.RawMessage) ([]member, bool) {
	dec := json.NewDecoder(bytes.NewReader(object))
	if tok, err := dec.Token(); err != nil || tok != json.Delim('{') {
		return nil, false
	}
	var members []member
	for dec.More() {
		tok, err := dec.Token()
		if err != nil {
			return nil, false
		}
		m := member{}
		m.name, _ = tok.(string)
		if dec.Decode(&m.value) != nil {
			return nil, false
		}
		members = append(members, m)
	}
	return members, true
}
