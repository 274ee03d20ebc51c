package documents

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"crewhost/tools/native"

	"github.com/theory/jsonpath"
	"github.com/theory/jsonpath/spec"
)

// Bounds of a query. A JSONPath of a few dozen characters can select the same
// part a billion times, and no library stops it.
const (
	maxQuery    = 1000 // bytes
	maxSelected = 20_000
	maxTime     = 5 * time.Second
)

// queryJSON returns what a query selects: one value where it can select one only,
// else a list. The members of objects come in the order of their names.
func queryJSON(ctx context.Context, doc []byte, query string) ([]byte, error) {
	dec := json.NewDecoder(bytes.NewReader(doc))
	dec.UseNumber() // keeps every digit (K31)
	var root any
	if err := dec.Decode(&root); err != nil {
		return nil, err
	}
	text := query
	if !strings.HasPrefix(text, "$") {
		text = plainPath(text)
	}
	path, err := jsonpath.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("the query %q can't be read (%w)", query, err)
	}
	for _, seg := range path.Query().Segments() {
		for _, sel := range seg.Selectors() {
			filter, ok := sel.(*spec.FilterSelector)
			if !ok {
				continue
			}
			if err := checkFilter(filter.String()); err != nil {
				return nil, fmt.Errorf("the query %q %w", query, err)
			}
		}
	}
	ctx, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	s := selection{ctx: ctx, root: root}
	nodes := []any{root}
	for _, seg := range path.Query().Segments() {
		if nodes, err = s.apply(seg, nodes); err != nil {
			return nil, fmt.Errorf("the query %q %w", query, err)
		}
	}
	if path.Query().Singular() == nil {
		return encode(nodes)
	}
	if len(nodes) == 0 {
		return nil, fmt.Errorf("the query %q selects nothing; %s", query, outline(root))
	}
	return encode(nodes[0])
}

func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSpace(b.Bytes()), err
}

// outline says what is at the top of a document, for whoever missed it.
func outline(root any) string {
	switch v := root.(type) {
	case map[string]any:
		names := slices.Sorted(maps.Keys(v))
		more := ""
		if len(names) > 20 {
			names, more = names[:20], ", ..."
		}
		for i, n := range names {
			names[i] = native.Shorten(n)
		}
		return "the document is an object with the members " + strings.Join(names, ", ") + more
	case []any:
		return "the document is a list of " + native.Plural(len(v), "item", "items")
	default:
		return "the document is a single value"
	}
}

// plainPath turns a path such as items.0.name or a["b c"][2] into JSONPath. A
// part that is a number means an item of a list; ['0'] means a member.
func plainPath(path string) string {
	var b strings.Builder
	b.WriteByte('$')
	for path != "" {
		if path[0] == '[' {
			end := strings.IndexByte(path, ']')
			if end < 0 {
				end = len(path) - 1
			}
			b.WriteString(path[:end+1])
			path = strings.TrimPrefix(path[end+1:], ".")
			continue
		}
		end := strings.IndexAny(path, ".[")
		if end < 0 {
			end = len(path)
		}
		part := path[:end]
		path = strings.TrimPrefix(path[end:], ".")
		switch _, err := strconv.ParseUint(part, 10, 32); {
		case part == "*":
			b.WriteString("[*]")
		case err == nil && (part == "0" || part[0] != '0'):
			b.WriteString("[" + part + "]")
		default:
			b.WriteString("['" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(part) + "']")
		}
	}
	return b.String()
}

// selection applies the segments of a query. It does itself what visits members
// of objects, in the order of their names, and leaves the rest to the library.
type selection struct {
	ctx  context.Context //nolint:containedctx // a selection lives for one query
	root any
}

func (s selection) apply(seg *spec.Segment, nodes []any) ([]any, error) {
	found := []any{} // not nil: nothing is an empty list
	for _, node := range nodes {
		var err error
		if seg.IsDescendant() {
			found, err = s.descend(seg, node, found)
		} else {
			found, err = s.choose(seg, node, found)
		}
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// descend applies seg to node and to all below it, a node before its children.
func (s selection) descend(seg *spec.Segment, node any, found []any) ([]any, error) {
	found, err := s.choose(seg, node, found)
	if err != nil {
		return nil, err
	}
	for _, child := range children(node) {
		if found, err = s.descend(seg, child, found); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// choose applies the selectors of seg to one node.
func (s selection) choose(seg *spec.Segment, node any, found []any) ([]any, error) {
	if s.ctx.Err() != nil {
		return nil, errors.New("takes too long; make it more specific")
	}
	for _, sel := range seg.Selectors() {
		switch sel := sel.(type) {
		case spec.WildcardSelector:
			found = append(found, children(node)...)
		case *spec.FilterSelector:
			for _, child := range children(node) {
				if s.ctx.Err() != nil {
					return nil, errors.New("takes too long; make it more specific")
				}
				if sel.Eval(child, s.root) {
					found = append(found, child)
				}
			}
		default:
			found = append(found, spec.Child(sel).Select(node, s.root)...)
		}
		if len(found) > maxSelected {
			return nil, fmt.Errorf("selects more than %d parts; make it more specific", maxSelected)
		}
	}
	return found, nil
}

// children are the items of a list, or the members of an object by their names.
func children(node any) []any {
	switch v := node.(type) {
	case []any:
		return v
	case map[string]any:
		values := make([]any, 0, len(v))
		for _, name := range slices.Sorted(maps.Keys(v)) {
			values = append(values, v[name])
		}
		return values
	}
	return nil
}

// checkFilter refuses filters whose evaluation for one node has no bound but the
// document's size to the power of the filter's length: those with a query inside
// that descends, filters again or takes several selectors at a step.
func checkFilter(filter string) error {
	var bare strings.Builder
	var quote byte
	for i := 1; i < len(filter); i++ { // the first character is the filter's own ?
		switch c := filter[i]; {
		case quote != 0 && c == '\\':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		default:
			bare.WriteByte(c)
		}
	}
	text := bare.String()
	if strings.Contains(text, "..") || strings.Contains(text, "?") {
		return errors.New("has a filter that descends or filters again, which is not supported")
	}
	for open := strings.IndexByte(text, '['); open >= 0; open = strings.IndexByte(text, '[') {
		text = text[open+1:]
		end := strings.IndexByte(text, ']')
		if end >= 0 && strings.Contains(text[:end], ",") {
			return errors.New("has a filter that takes several selectors at a step, which is not supported")
		}
	}
	return nil
}
