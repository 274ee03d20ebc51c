package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"

	"crewhost/mcp/wire"
	"crewhost/tools"
)

// A promise is what a tool's output schema says of its results. It is read when
// the first result is there. The zero promise is of a tool that has not been called.
type promise struct {
	read   sync.Once
	schema *jsonschema.Resolved // nil where nothing can be judged by it
	weight weight
	warned sync.Once
}

// Bounds on judging. The work is not to be interrupted, and schema and content
// both come from the server: what might take long is not judged at all.
const (
	maxJudgedSchema  = 256 << 10 // bytes
	maxJudgedContent = 4 << 20   // bytes
	maxJudgedDepth   = 100       // of either
	maxJudging       = 500_000   // schemas applied to values
	maxStates        = 100_000   // of all patterns
	maxMatching      = 20 << 20  // states times bytes of content
)

// judged is a result with a note to the model where its structured content is not
// what the tool's output schema promises. The content itself stays as it is; a
// failure promises nothing.
func (t *tool) judged(res tools.Result) tools.Result {
	if len(t.def.OutputSchema) == 0 || res.IsError {
		return res
	}
	s := t.session
	t.promise.read.Do(func() {
		var err error
		if t.promise.schema, t.promise.weight, err = readPromise(t.def.OutputSchema); err != nil {
			s.log.Debug("results are not judged", "tool", t.def.Name, "reason", s.masks.line(err.Error(), maxDetail))
		}
	})
	if t.promise.schema == nil {
		return res
	}
	var broken string
	if len(res.Structured) == 0 {
		broken = "there is none"
	} else if err := t.promise.judge(res.Structured); err != nil {
		broken = err.Error()
	}
	if broken == "" {
		return res
	}
	broken = s.masks.line(broken, maxBroken)
	t.promise.warned.Do(func() {
		s.warn(fmt.Sprintf("the tool %q gave structured content that its own output schema does not allow: %s", t.def.Name, broken))
	})
	if len(res.Structured) > 0 {
		res.Content = append(slices.Clip(res.Content), tools.Content{Kind: tools.KindText, Text: fmt.Sprintf(
			"[Note of the host: the structured content of this result is not what the tool's output schema promises: %s]", broken)})
	}
	return res
}

// maxBroken is how much is said of a broken promise, in bytes.
const maxBroken = 300

// judge says what of a content breaks the promise, or nil, also where it can't be
// judged.
func (p *promise) judge(content json.RawMessage) (broken error) {
	if len(content) > maxJudgedContent || int64(p.weight.states)*int64(len(content)) > maxMatching {
		return nil
	}
	var value any // of floats: the validator takes json.Number for a string
	if json.Unmarshal(content, &value) != nil {
		return nil // a number that no float holds
	}
	if p.weight.of(value, 1) > maxJudging {
		return nil
	}
	defer func() {
		if recover() != nil { // the schema is foreign, the validator young
			broken = nil
		}
	}()
	return p.schema.Validate(value)
}

// readPromise makes an output schema ready to judge by. The error is why it isn't.
func readPromise(schema json.RawMessage) (_ *jsonschema.Resolved, w weight, err error) {
	if len(schema) > maxJudgedSchema {
		return nil, w, fmt.Errorf("its output schema has %d bytes", len(schema))
	}
	if wire.Nesting(schema) > maxJudgedDepth {
		return nil, w, errors.New("its output schema is nested too deep")
	}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("its output schema can't be read: %v", r)
		}
	}()
	var s jsonschema.Schema
	if err := json.Unmarshal(schema, &s); err != nil {
		return nil, w, err
	}
	// What the validator has read is weighed, not what was written: it takes
	// "$Ref" for "$ref".
	understood, err := json.Marshal(&s)
	if err != nil {
		return nil, w, err
	}
	var root any
	if err := json.Unmarshal(understood, &root); err != nil {
		return nil, w, err
	}
	if w, err = weigh(root); err != nil {
		return nil, w, err
	}
	resolved, err := s.Resolve(nil)
	return resolved, w, err
}

// A weight bounds the work of judging a value by a schema.
type weight struct {
	inPlace int // schemas that judge one value together, at most
	below   int // of these, how many hand its members on, at most
	states  int // of all patterns
}

// of is a bound on how many times a schema is applied to a part of value.
// Paths are the ways in which a schema comes to it.
func (w weight) of(value any, paths int) int {
	n := saturate(paths * w.inPlace)
	paths = saturate(paths * max(w.below, 1))
	switch v := value.(type) {
	case map[string]any:
		for _, member := range v {
			n = saturate(n + w.of(member, paths))
		}
	case []any:
		for _, item := range v {
			n = saturate(n + w.of(item, paths))
		}
	}
	return n
}

// saturate keeps counts from running over.
func saturate(n int) int { return min(n, maxJudging+1) }

// weigh weighs every schema in root. One that leads back to itself without going
// down in the value would be judged by for ever, and is an error.
func weigh(root any) (weight, error) {
	s := scale{root: root, known: make(map[uintptr]weight)}
	var total weight
	err := s.all(root, &total)
	return total, err
}

// scale weighs the schemas of one document.
type scale struct {
	root  any
	known map[uintptr]weight // by schema; zero while it is being weighed
}

// all weighs what is in value and adds the heaviest to total.
func (s *scale) all(value any, total *weight) error {
	switch v := value.(type) {
	case map[string]any:
		w, err := s.weigh(v)
		if err != nil {
			return err
		}
		total.inPlace = max(total.inPlace, w.inPlace)
		total.below = max(total.below, w.below)
		patterns := slices.Collect(maps.Keys(mapping(v["patternProperties"])))
		if p, ok := v["pattern"].(string); ok {
			patterns = append(patterns, p)
		}
		for _, p := range patterns {
			if total.states += states(p); total.states > maxStates {
				return errors.New("its output schema has patterns that are too large")
			}
		}
		for _, member := range v {
			if err := s.all(member, total); err != nil {
				return err
			}
		}
	case []any:
		for _, item := range v {
			if err := s.all(item, total); err != nil {
				return err
			}
		}
	}
	return nil
}

// weigh weighs one schema with all that judge the same value.
func (s *scale) weigh(schema map[string]any) (weight, error) {
	id := reflect.ValueOf(schema).Pointer()
	if w, ok := s.known[id]; ok {
		if w.inPlace == 0 {
			return w, errors.New("its output schema leads back to itself")
		}
		return w, nil
	}
	s.known[id] = weight{}
	w := weight{inPlace: 1}
	for _, k := range []string{
		"properties", "patternProperties", "additionalProperties", "unevaluatedProperties", "propertyNames",
		"items", "prefixItems", "additionalItems", "unevaluatedItems", "contains",
	} {
		if _, ok := schema[k]; ok {
			w.below++
		}
	}
	beside, err := s.beside(schema)
	if err != nil {
		return w, err
	}
	for _, other := range beside {
		o, err := s.weigh(other)
		if err != nil {
			return w, err
		}
		w.inPlace = saturate(w.inPlace + o.inPlace)
		w.below = saturate(w.below + o.below)
	}
	s.known[id] = w
	return w, nil
}

// beside are the schemas within one, or referred to, that judge the same value.
func (s *scale) beside(schema map[string]any) ([]map[string]any, error) {
	for _, k := range []string{"$dynamicRef", "$recursiveRef", "$id"} {
		if _, ok := schema[k].(string); ok && (k != "$id" || !s.isRoot(schema)) {
			return nil, fmt.Errorf("its output schema has a %s, which is not followed", k)
		}
	}
	var found []any
	for _, k := range []string{"allOf", "anyOf", "oneOf"} {
		list, _ := schema[k].([]any)
		found = append(found, list...)
	}
	for _, k := range []string{"not", "if", "then", "else"} {
		found = append(found, schema[k])
	}
	for _, k := range []string{"dependentSchemas", "dependencies"} {
		found = slices.AppendSeq(found, maps.Values(mapping(schema[k])))
	}
	if ref, ok := schema["$ref"].(string); ok {
		target, ok := s.at(ref)
		if !ok {
			return nil, fmt.Errorf("its output schema refers to %.100q, which is no place in it", ref)
		}
		found = append(found, target)
	}
	var schemas []map[string]any
	for _, f := range found {
		if m := mapping(f); m != nil {
			schemas = append(schemas, m)
		}
	}
	return schemas, nil
}

// isRoot reports whether a schema is the whole document.
func (s *scale) isRoot(schema map[string]any) bool {
	root, ok := s.root.(map[string]any)
	return ok && reflect.ValueOf(root).Pointer() == reflect.ValueOf(schema).Pointer()
}

// at is what a reference within the document leads to.
func (s *scale) at(ref string) (any, bool) {
	if ref == "#" {
		return s.root, true
	}
	path, ok := strings.CutPrefix(ref, "#/")
	if !ok || strings.Contains(path, "%") {
		return nil, false
	}
	value := s.root
	for step := range strings.SplitSeq(path, "/") {
		switch v := value.(type) {
		case map[string]any:
			if value, ok = v[strings.NewReplacer("~1", "/", "~0", "~").Replace(step)]; !ok {
				return nil, false
			}
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(v) {
				return nil, false
			}
			value = v[i]
		default:
			return nil, false
		}
	}
	return value, true
}

func mapping(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

// states is about how large a pattern is once its repetitions are written out.
func states(pattern string) int {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return 0 // the validator refuses it
	}
	var count func(re *syntax.Regexp) int
	count = func(re *syntax.Regexp) int {
		n := 1 + len(re.Rune)
		for _, sub := range re.Sub {
			n = saturate(n + count(sub))
		}
		if re.Op == syntax.OpRepeat {
			n = saturate(n * max(re.Min, re.Max, 1))
		}
		return n
	}
	return count(re)
}
