package agent

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// maxInlined is about how many bytes may come of a schema by writing out its
// references.
const maxInlined = 1 << 20

// inline writes out the references of a schema, which all lead to definitions,
// and leaves the definitions out. Where a type holds itself, its inside is a
// value of the same kind of which no more is said (K25). lost says so, a line each.
func inline(root map[string]any) (_ map[string]any, lost []string) {
	in := &inliner{root: root, within: map[string]bool{}, lost: map[string]bool{}}
	body := maps.Clone(root)
	delete(body, "$defs")
	delete(body, "definitions")
	out, _ := in.write(body).(map[string]any)
	for _, ref := range slices.Sorted(maps.Keys(in.lost)) {
		lost = append(lost, fmt.Sprintf("its schema refers to %s again and again: no more than the first is shown", strconv.Quote(ref)))
	}
	return out, lost
}

type inliner struct {
	root   map[string]any
	within map[string]bool // references that are being written out
	lost   map[string]bool
	size   int
}

// write returns a copy of v without references.
func (in *inliner) write(v any) any {
	in.size += 16
	switch v := v.(type) {
	case string:
		in.size += len(v)
		return v
	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			list[i] = in.write(item)
		}
		return list
	case map[string]any:
		m := make(map[string]any, len(v))
		if ref, ok := v["$ref"].(string); ok {
			m = in.target(ref)
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if key != "$ref" || !isString(v[key]) {
				in.size += len(key)
				m[key] = in.write(v[key])
			}
		}
		return m
	default:
		return v
	}
}

func isString(v any) bool { _, ok := v.(string); return ok }

// target is what a reference leads to, written out.
func (in *inliner) target(ref string) map[string]any {
	home, name, _ := strings.Cut(strings.TrimPrefix(ref, "#/"), "/")
	defs, _ := in.root[home].(map[string]any)
	name = strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
	def, ok := defs[name].(map[string]any)
	if !ok {
		return map[string]any{}
	}
	if in.within[ref] || in.size > maxInlined {
		in.lost[ref] = true
		short := map[string]any{}
		if kind, ok := def["type"]; ok {
			short["type"] = kind
		}
		if text, ok := def["description"].(string); ok && len(text) < 1000 && in.size < 2*maxInlined {
			in.size += len(text)
			short["description"] = text
		}
		if isArray(short["type"]) {
			short["items"] = map[string]any{}
		}
		return short
	}
	in.within[ref] = true
	defer delete(in.within, ref)
	out, _ := in.write(def).(map[string]any)
	return out
}
