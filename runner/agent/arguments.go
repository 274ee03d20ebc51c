package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"crewhost/tools"
)

// Bounds on the arguments of a call.
const (
	maxArguments = 8 << 20 // bytes
	maxDepth     = 100     // of nested values
)

const noArguments = `{}`

// normalise makes one JSON object of what a model wrote for arguments. Nothing
// and null are no arguments (K29). Members that are null though their schema
// does not allow it, and that are not required, are left out: models write null
// for "not given" (K29). All else stays, digit for digit (K31).
//
// An error says what is wrong, for the model to read.
func normalise(text string, shape any) (json.RawMessage, error) {
	text = strings.TrimSpace(text)
	if text == "" || text == "null" {
		return json.RawMessage(noArguments), nil
	}
	if err := checkObject(text); err != nil {
		return nil, err
	}
	raw := json.RawMessage(text)
	if root, ok := shape.(map[string]any); ok {
		raw = (&nulls{root: root}).drop(raw, root, 0)
	}
	return raw, nil
}

// checkObject reports why text is not exactly one JSON object whose members, at
// every depth, have names of their own. Of two members of one name the policy
// might judge one and the tool take the other.
func checkObject(text string) error {
	switch {
	case len(text) > maxArguments:
		return fmt.Errorf("the arguments have %d bytes; at most %d are taken", len(text), maxArguments)
	case !utf8.ValidString(text):
		return errors.New("the arguments are not valid UTF-8")
	case text[0] != '{':
		return fmt.Errorf("the arguments must be one JSON object, and begin with %q", excerpt(text, 20))
	}
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	var open []map[string]bool // names seen in each open object; nil for an array
	name := false              // whether a member's name comes next
	for {
		tok, err := dec.Token()
		if err != nil {
			return notJSON(err)
		}
		inObject := len(open) > 0 && open[len(open)-1] != nil
		switch v := tok.(type) {
		case json.Delim:
			switch v {
			case '{':
				open = append(open, map[string]bool{})
				name = true
			case '[':
				open = append(open, nil)
				name = false
			default:
				open = open[:len(open)-1]
				name = len(open) > 0 && open[len(open)-1] != nil
			}
			if len(open) > maxDepth {
				return fmt.Errorf("the arguments are nested more than %d deep", maxDepth)
			}
		default:
			if inObject && name {
				key, _ := v.(string)
				if open[len(open)-1][key] {
					return fmt.Errorf("the arguments have two members %q", excerpt(key, 60))
				}
				open[len(open)-1][key] = true
				name = false
			} else {
				name = inObject
			}
		}
		if len(open) == 0 {
			break
		}
	}
	if rest := strings.TrimSpace(text[dec.InputOffset():]); rest != "" {
		return fmt.Errorf("the arguments must be one JSON object, but %q follows it", excerpt(rest, 40))
	}
	return nil
}

func notJSON(err error) error {
	var syntax *json.SyntaxError
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the arguments are not complete JSON: they end too early")
	case errors.As(err, &syntax):
		return fmt.Errorf("the arguments are not JSON: %w, at byte %d", err, syntax.Offset)
	default:
		return fmt.Errorf("the arguments are not JSON: %w", err)
	}
}

// argumentNames are the names of the members of an object, sorted.
func argumentNames(object json.RawMessage) []string {
	var members map[string]json.RawMessage
	if json.Unmarshal(object, &members) != nil {
		return nil
	}
	names := make([]string, 0, len(members))
	for n := range members {
		names = append(names, tools.Truncate(n, 100))
	}
	slices.Sort(names)
	return names[:min(len(names), 50)]
}

// excerpt is the beginning of s, on a rune boundary.
func excerpt(s string, max int) string {
	n := 0
	for i := range s {
		if n == max {
			return s[:i] + "…"
		}
		n++
	}
	return s
}

// nulls drops nulls that a schema does not allow.
type nulls struct {
	root  map[string]any // for $ref
	steps int            // schemas looked at so far
}

// Bounds on looking for nulls: how deep, and at how many schemas. A schema is
// foreign input, and a few references to itself make a tree without end of it.
const (
	maxNulls     = 16
	maxNullSteps = 10_000
)

// drop returns value, which is valid JSON, without the optional members that
// are null against schema. Where there are none, it returns value itself.
func (n *nulls) drop(value json.RawMessage, schema any, depth int) json.RawMessage {
	s, ok := n.follow(schema, 0).(map[string]any)
	if !ok || depth > maxNulls || !bytes.Contains(value, []byte("null")) {
		return value
	}
	switch bytes.TrimLeft(value, " \t\r\n")[0] {
	case '{':
		return n.dropMembers(value, s, depth)
	case '[':
		var items []json.RawMessage
		if s["items"] == nil || json.Unmarshal(value, &items) != nil {
			return value
		}
		changed := false
		for i, item := range items {
			items[i] = n.drop(item, s["items"], depth+1)
			changed = changed || len(items[i]) != len(item)
		}
		if !changed {
			return value
		}
		return slices.Concat([]byte("["), bytes.Join(rawBytes(items), []byte(",")), []byte("]"))
	}
	return value
}

func (n *nulls) dropMembers(value json.RawMessage, s map[string]any, depth int) json.RawMessage {
	properties, _ := s["properties"].(map[string]any)
	required, _ := s["required"].([]any)
	dec := json.NewDecoder(bytes.NewReader(value))
	if _, err := dec.Token(); err != nil {
		return value
	}
	var members []json.RawMessage
	changed := false
	for dec.More() {
		tok, err := dec.Token()
		if err != nil {
			return value
		}
		var member json.RawMessage
		if err := dec.Decode(&member); err != nil {
			return value
		}
		name, _ := tok.(string)
		property, known := properties[name]
		if known && string(member) == "null" && !slices.Contains(required, any(name)) && !n.allows(property, 0) {
			changed = true
			continue
		}
		if known {
			kept := n.drop(member, property, depth+1)
			changed = changed || len(kept) != len(member)
			member = kept
		}
		key, err := json.Marshal(name)
		if err != nil {
			return value
		}
		members = append(members, slices.Concat(key, []byte(":"), member))
	}
	if !changed {
		return value
	}
	return slices.Concat([]byte("{"), bytes.Join(rawBytes(members), []byte(",")), []byte("}"))
}

func rawBytes(in []json.RawMessage) [][]byte {
	out := make([][]byte, len(in))
	for i, r := range in {
		out[i] = r
	}
	return out
}

// allows reports whether a schema may allow null. Where it cannot tell, it does.
func (n *nulls) allows(schema any, depth int) bool {
	if n.steps++; depth > maxNulls || n.steps > maxNullSteps {
		return true
	}
	schema = n.follow(schema, 0)
	if b, ok := schema.(bool); ok {
		return b
	}
	s, ok := schema.(map[string]any)
	if !ok || s["nullable"] == true {
		return true
	}
	switch kind := s["type"].(type) {
	case string:
		if kind != "null" {
			return false
		}
	case []any:
		if !slices.Contains(kind, any("null")) {
			return false
		}
	}
	if values, ok := s["enum"].([]any); ok && !slices.Contains(values, nil) {
		return false
	}
	if value, ok := s["const"]; ok && value != nil {
		return false
	}
	for _, word := range []string{"anyOf", "oneOf"} {
		if some, ok := s[word].([]any); ok && !slices.ContainsFunc(some, func(o any) bool { return n.allows(o, depth+1) }) {
			return false
		}
	}
	if all, ok := s["allOf"].([]any); ok && slices.ContainsFunc(all, func(o any) bool { return !n.allows(o, depth+1) }) {
		return false
	}
	return true
}

// follow returns what a schema's local $ref points to; true, which allows
// anything, where it points nowhere.
func (n *nulls) follow(schema any, depth int) any {
	s, ok := schema.(map[string]any)
	if !ok {
		return schema
	}
	ref, ok := s["$ref"].(string)
	if !ok {
		return schema
	}
	path, local := strings.CutPrefix(ref, "#")
	if !local || depth > maxNulls {
		return true
	}
	var at any = n.root
	for _, step := range strings.Split(strings.TrimPrefix(path, "/"), "/") {
		if step == "" {
			continue
		}
		m, ok := at.(map[string]any)
		if !ok {
			return true
		}
		at, ok = m[strings.NewReplacer("~1", "/", "~0", "~").Replace(step)]
		if !ok {
			return true
		}
	}
	return n.follow(at, depth+1)
}
