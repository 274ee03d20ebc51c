package config

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/knadh/koanf/v2"

	"crewhost/config/strict"
)

// delim stands between the keys of a path in koanf. No key has it.
const delim = "\x00"

// placeKey is the entry of a map that keeps its place. No key of a document is
// equal to it, because none has delim.
const placeKey = delim + "place"

// maxLevels is how deep layers are merged key by key: mcp, servers, a server,
// env, a variable. What is deeper is replaced as a whole.
const maxLevels = 4

// table holds what the layers are made of. What koanf holds are numbers of its
// rows, since koanf copies its values deeply.
type table struct {
	entries []strict.Entry
	order   []string // files, in the order of their entries
}

// leaf is the row of a value that layers replace as a whole.
type leaf int

// place is the row of a map, which is merged key by key.
type place int

func (t *table) row(e strict.Entry) int {
	t.entries = append(t.entries, e)
	return len(t.entries) - 1
}

// layer is one of the sources of settings; it is a [koanf.Provider].
type layer struct {
	table *table
	root  *strict.Node
}

// Read returns the layer as nested maps.
func (l layer) Read() (map[string]any, error) {
	return l.table.levels(strict.Entry{Value: l.root}, 0), nil
}

// ReadBytes is part of [koanf.Provider]; a layer has no bytes.
func (l layer) ReadBytes() ([]byte, error) { return nil, errors.New("a layer has no bytes") }

func (t *table) levels(e strict.Entry, depth int) map[string]any {
	m := map[string]any{placeKey: place(t.row(e))}
	for _, inner := range e.Value.Entries {
		if inner.Value.Kind == strict.Map && depth < maxLevels {
			m[inner.Key] = t.levels(inner, depth+1)
		} else {
			m[inner.Key] = leaf(t.row(inner))
		}
	}
	return m
}

// merge lays the layers over each other, low to high, and returns the tree that
// results. Its entries stand in the order of the files given, each in its own
// order; what no file has comes last, by name.
func merge(order []string, layers ...*strict.Node) (*strict.Node, error) {
	t := &table{order: order}
	k := koanf.New(delim)
	for _, l := range layers {
		if l == nil || len(l.Entries) == 0 {
			continue
		}
		if err := k.Load(layer{t, l}, nil, koanf.WithMergeFunc(t.overlay)); err != nil {
			return nil, err
		}
	}
	return t.tree(k.Raw(), &strict.Node{}), nil
}

// overlay lays src over dest. A key with nothing after it does not hide what is
// below, and a mapping does not hide that something below it is none, except
// where a key may be either.
func (t *table) overlay(src, dest map[string]any) error {
	for key, value := range src {
		below, both := dest[key]
		if !both {
			dest[key] = value
			continue
		}
		switch value := value.(type) {
		case place:
			if t.entries[value].Value.Line > 0 || t.entries[below.(place)].Value.Line == 0 { // a file's place is worth keeping
				dest[key] = value
			}
		case leaf:
			e := &t.entries[value]
			if e.Value.Kind == strict.Null {
				continue
			}
			if b, ok := below.(leaf); ok && e.KeyPos.Line == 0 {
				e.KeyPos = t.entries[b].KeyPos // keeps its rank among its siblings
			}
			dest[key] = value
		case map[string]any:
			switch b := below.(type) {
			case map[string]any:
				if err := t.overlay(value, b); err != nil {
					return err
				}
			case leaf:
				if t.entries[b].Value.Kind == strict.Null || key == keyAPIKey {
					dest[key] = value
				}
			}
		}
	}
	return nil
}

// tree turns merged maps into a node again, with the place of like.
func (t *table) tree(m map[string]any, like *strict.Node) *strict.Node {
	n := &strict.Node{Pos: like.Pos, Kind: strict.Map}
	for key, value := range m {
		switch value := value.(type) {
		case place:
			n.Pos = t.entries[value].Value.Pos
		case leaf:
			n.Entries = append(n.Entries, t.entries[value])
		case map[string]any:
			e := strict.Entry{Key: key, Value: &strict.Node{}}
			if p, ok := value[placeKey].(place); ok {
				e = t.entries[p]
			}
			e.Value = t.tree(value, e.Value)
			n.Entries = append(n.Entries, e)
		}
	}
	slices.SortFunc(n.Entries, t.compare)
	return n
}

// compare orders entries by file, then by place, and what no file has by name.
func (t *table) compare(a, b strict.Entry) int {
	rank := func(p strict.Pos) int {
		if i := slices.Index(t.order, p.File); i >= 0 && p.Line > 0 {
			return i
		}
		return len(t.order)
	}
	ra, rb := rank(a.KeyPos), rank(b.KeyPos)
	if ra == rb && ra < len(t.order) {
		return cmp.Or(cmp.Compare(a.KeyPos.Line, b.KeyPos.Line), cmp.Compare(a.KeyPos.Column, b.KeyPos.Column), cmp.Compare(a.Key, b.Key))
	}
	return cmp.Or(cmp.Compare(ra, rb), cmp.Compare(a.Key, b.Key))
}

// withoutDelim drops the entries whose key has delim, of which no document has
// an honest one, and reports them.
func withoutDelim(n *strict.Node, fail func(pos strict.Pos, code, message, hint string)) {
	for _, item := range n.Items {
		withoutDelim(item, fail)
	}
	n.Entries = slices.DeleteFunc(n.Entries, func(e strict.Entry) bool {
		if strings.Contains(e.Key, delim) {
			fail(e.KeyPos, strict.CodeBadValue, "the key "+strict.Quote(e.Key)+" holds a NUL character", "")
			return true
		}
		withoutDelim(e.Value, fail)
		return false
	})
}
