package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

const emptySchema = `{"type":"object","properties":{}}`

// The bounds of a schema that is looked into. One that exceeds them, or is no
// JSON, is offered to the model as an object of anything: no model can follow
// such a schema anyway.
const (
	maxSchemaBytes = 256 << 10
	maxSchemaDepth = 200
	// Each reference that is no plain one to a definition copies what it leads
	// to; without a bound a hostile schema would grow by its own size each time.
	maxMoved = 32
)

// wireSchema makes a tool's schema one that the APIs of all models take: valid,
// an object at the root, with a type and properties, in which every reference
// leads to a definition of the same document. What a vendor refuses beyond that is
// the business of adapt.
//
// A schema that is fit already is returned as it came, byte for byte. warnings
// say what the model will not be told, a line each.
func wireSchema(schema json.RawMessage) (fit json.RawMessage, warnings []string) {
	if len(bytes.TrimSpace(schema)) == 0 {
		return json.RawMessage(emptySchema), nil
	}
	if len(schema) > maxSchemaBytes {
		return json.RawMessage(emptySchema), []string{fmt.Sprintf("its schema has %d bytes, and at most %d are shown to a model", len(schema), maxSchemaBytes)}
	}
	if depth(schema) > maxSchemaDepth {
		return json.RawMessage(emptySchema), []string{fmt.Sprintf("its schema nests deeper than %d levels", maxSchemaDepth)}
	}
	schema = bytes.ToValidUTF8(schema, []byte("�"))
	schema, warnings = tidy(schema)
	if bytes.Contains(schema, []byte(`$ref`)) {
		var lost []string
		schema, lost = localReferences(schema)
		warnings = append(warnings, lost...)
	}
	if fit = rootObject(schema); fit == nil {
		return json.RawMessage(emptySchema), append(warnings, "its schema does not describe an object: any arguments are allowed")
	}
	return fit, warnings
}

// rootObject gives the root a type and properties where it lacks them. It returns
// nil where the root can't be an object.
func rootObject(schema json.RawMessage) json.RawMessage {
	var root map[string]json.RawMessage
	if json.Unmarshal(schema, &root) != nil || root == nil {
		return nil
	}
	var add string
	var kinds []string
	switch kind := bytes.TrimSpace(root["type"]); {
	case string(kind) == `"object"`:
	case len(kind) == 0:
		add = `"type":"object",`
	case json.Unmarshal(kind, &kinds) == nil && slices.Contains(kinds, "object"):
		root["type"] = json.RawMessage(`"object"`)
		if _, ok := root["properties"]; !ok {
			root["properties"] = json.RawMessage(`{}`)
		}
		fit, err := json.Marshal(root)
		if err != nil {
			return nil // what was decoded can be encoded
		}
		return fit
	default:
		return nil
	}
	if _, ok := root["properties"]; !ok {
		add += `"properties":{},`
	}
	if add == "" {
		return schema
	}
	body := bytes.TrimSpace(bytes.TrimSpace(schema)[1:])
	if body[0] == '}' {
		add = strings.TrimSuffix(add, ",")
	}
	return slices.Concat([]byte("{"+add), body)
}

// localReferences rewrites a schema so that each $ref leads to "#/$defs/…" or
// "#/definitions/…" (K25). What another pointer leads to, the root included, is
// copied once to a definition of its own, so a type that holds itself stays as
// large as it is; what leads nowhere becomes a schema of anything.
func localReferences(schema json.RawMessage) (json.RawMessage, []string) {
	decoder := json.NewDecoder(bytes.NewReader(schema))
	decoder.UseNumber() // digits stay as they are
	var root map[string]any
	if decoder.Decode(&root) != nil || root == nil {
		return schema, nil
	}
	l := &linker{root: root, moved: map[string]string{}, lost: map[string]bool{}}
	fit, _ := l.rewrite(root).(map[string]any)
	if len(l.moved) > 0 {
		defs, _ := fit["$defs"].(map[string]any)
		if defs == nil {
			defs = map[string]any{}
		}
		maps.Copy(defs, l.defs)
		fit["$defs"] = defs
	}
	text, err := json.Marshal(fit)
	if err != nil {
		return json.RawMessage(emptySchema), []string{"its schema could not be written: " + err.Error()}
	}
	var warnings []string
	for _, ref := range slices.Sorted(maps.Keys(l.lost)) {
		warnings = append(warnings, fmt.Sprintf("its schema refers to %s, which can't be shown to a model: any value is allowed in that place", strconv.Quote(ref)))
	}
	return text, warnings
}

// linker rewrites the references of one schema.
type linker struct {
	root  map[string]any
	moved map[string]string // pointer → its definition's name
	defs  map[string]any    // the definitions that were made
	lost  map[string]bool   // references that lead nowhere
}

// rewrite returns a copy of v with its references rewritten.
func (l *linker) rewrite(v any) any {
	switch v := v.(type) {
	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			list[i] = l.rewrite(item)
		}
		return list
	case map[string]any:
		m := make(map[string]any, len(v))
		for key, value := range v {
			ref, isText := value.(string)
			if key != "$ref" || !isText {
				m[key] = l.rewrite(value)
			} else if ref, ok := l.link(ref); ok {
				m[key] = ref
			}
		}
		return m
	default:
		return v
	}
}

// link returns where a reference leads after the rewriting.
func (l *linker) link(ref string) (string, bool) {
	if name, ok := l.moved[ref]; ok {
		return "#/$defs/" + name, true
	}
	target, ok := l.find(ref)
	if !ok {
		l.lost[ref] = true
		return "", false
	}
	for _, home := range []string{"#/$defs/", "#/definitions/"} {
		if name, ok := strings.CutPrefix(ref, home); ok && !strings.Contains(name, "/") {
			return ref, true
		}
	}
	if len(l.moved) == maxMoved {
		l.lost[ref] = true
		return "", false
	}
	if l.defs == nil {
		l.defs = map[string]any{}
	}
	name := l.name()
	l.moved[ref] = name // before its inside is rewritten, which may refer to it
	l.defs[name] = l.rewrite(target)
	if def, ok := l.defs[name].(map[string]any); ok && ref == "#" {
		delete(def, "$defs") // they are at the root already
		delete(def, "definitions")
	}
	return "#/$defs/" + name, true
}

// name returns the name of the next definition, one that the schema has not got.
func (l *linker) name() string {
	have, _ := l.root["$defs"].(map[string]any)
	for i := len(l.moved) + 1; ; i++ {
		name := "ref" + strconv.Itoa(i)
		_, taken := have[name]
		_, ours := l.defs[name]
		if !taken && !ours {
			return name
		}
	}
}

// find follows a JSON pointer in the root.
func (l *linker) find(ref string) (any, bool) {
	pointer, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil, false // another document, which nobody fetches
	}
	var at any = l.root
	if pointer == "" {
		return at, true
	}
	unescape := strings.NewReplacer("~1", "/", "~0", "~").Replace
	for step := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		switch v := at.(type) {
		case map[string]any:
			if at, ok = v[unescape(step)]; !ok {
				return nil, false
			}
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(v) {
				return nil, false
			}
			at = v[i]
		default:
			return nil, false
		}
	}
	_, isSchema := at.(map[string]any)
	return at, isSchema
}

// depth returns how deep a JSON text nests, or more than the limit where it does.
func depth(text json.RawMessage) int {
	decoder := json.NewDecoder(bytes.NewReader(text))
	deepest, now := 0, 0
	for {
		token, err := decoder.Token()
		if err == io.EOF || err != nil {
			return deepest
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			if now++; now > deepest {
				deepest = now
			}
			if deepest > maxSchemaDepth {
				return deepest
			}
		case json.Delim('}'), json.Delim(']'):
			now--
		}
	}
}
