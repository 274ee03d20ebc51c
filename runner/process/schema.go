package process

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// maxSchema is how large a deliverable's schema may be, in bytes.
const maxSchema = 1 << 20

// resolve makes a JSON Schema (2020-12 or draft-07) ready to judge by. Its
// references must be pointers into itself (#/…). One that leads back to itself
// without going down in the value would never end, and is refused.
func resolve(text string) (*jsonschema.Resolved, error) {
	if len(text) > maxSchema {
		return nil, fmt.Errorf("it has %d bytes; at most %d are read", len(text), maxSchema)
	}
	var s jsonschema.Schema
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return nil, err
	}
	// What the validator has read is checked, not what was written: it takes
	// "$Ref" for "$ref".
	understood, err := json.Marshal(&s)
	if err != nil {
		return nil, err
	}
	var root any
	if err := json.Unmarshal(understood, &root); err != nil {
		return nil, err
	}
	r := references{root: root, state: make(map[string]visit)}
	if err := r.check("", root); err != nil {
		return nil, err
	}
	return s.Resolve(nil)
}

// validate judges a JSON text. The schema's own numbers are 64-bit floats, so
// those of the value are too; the text that is kept has every digit.
func validate(s *jsonschema.Resolved, text string) error {
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		return err
	}
	return s.Validate(value)
}

type visit int

const (
	visiting visit = iota + 1
	visited
)

// references finds references that lead in a circle.
type references struct {
	root  any
	state map[string]visit // by JSON pointer
}

// check follows every schema in value, which stands at the pointer at.
func (r *references) check(at string, value any) error {
	switch v := value.(type) {
	case map[string]any:
		if err := r.follow(at, v); err != nil {
			return err
		}
		for _, k := range slices.Sorted(maps.Keys(v)) {
			switch k {
			case "const", "enum", "default", "examples": // values, not schemas
				continue
			}
			if err := r.check(at+"/"+escape(k), v[k]); err != nil {
				return err
			}
		}
	case []any:
		for i, e := range v {
			if err := r.check(at+"/"+strconv.Itoa(i), e); err != nil {
				return err
			}
		}
	}
	return nil
}

// follow visits the schema at a pointer and all that judge the same value as it.
func (r *references) follow(at string, schema map[string]any) error {
	switch r.state[at] {
	case visited:
		return nil
	case visiting:
		return fmt.Errorf("the reference at #%s leads back to itself", at)
	}
	r.state[at] = visiting
	for _, next := range beside(at, schema) {
		if err := r.followPointer(next); err != nil {
			return err
		}
	}
	if _, ok := schema["$dynamicRef"].(string); ok {
		return errors.New("$dynamicRef is not supported")
	}
	if _, ok := schema["$id"].(string); ok && at != "" {
		return errors.New("$id is supported at the root alone")
	}
	if ref, ok := schema["$ref"].(string); ok {
		target, local := strings.CutPrefix(ref, "#")
		target, err := url.PathUnescape(target)
		if err != nil || !local || target != "" && target[0] != '/' {
			return fmt.Errorf("$ref %.100q is no pointer into the schema (#/…)", ref)
		}
		if err := r.followPointer(target); err != nil {
			return err
		}
	}
	r.state[at] = visited
	return nil
}

// followPointer visits the schema at a pointer. One that points nowhere is for
// the validator to report.
func (r *references) followPointer(pointer string) error {
	value := r.root
	for _, step := range strings.Split(pointer, "/")[1:] {
		step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		switch v := value.(type) {
		case map[string]any:
			value = v[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(v) {
				return nil
			}
			value = v[i]
		default:
			return nil
		}
	}
	schema, ok := value.(map[string]any)
	if !ok {
		return nil
	}
	return r.follow(pointer, schema)
}

// beside are the pointers of the schemas within one that judge the same value.
func beside(at string, schema map[string]any) []string {
	var out []string
	for _, k := range []string{"allOf", "anyOf", "oneOf"} {
		list, _ := schema[k].([]any)
		for i := range list {
			out = append(out, at+"/"+k+"/"+strconv.Itoa(i))
		}
	}
	for _, k := range []string{"not", "if", "then", "else"} {
		if schema[k] != nil {
			out = append(out, at+"/"+k)
		}
	}
	for _, k := range []string{"dependentSchemas", "dependencies"} {
		m, _ := schema[k].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(m)) {
			out = append(out, at+"/"+k+"/"+escape(name))
		}
	}
	return out
}

func escape(step string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(step) }
