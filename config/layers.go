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

// place is where a map and its key stand.
type place struct{ Key, Pos strict.Pos }

// leaf is a value that layers replace as a whole.
type leaf struct{ Entry strict.Entry }

// layer is one of the sources of settings; it is a [koanf.Provider].
type layer struct{ root *strict.Node }

// Read returns the layer as nested maps whose leaves know their place.
func (l layer) Read() (map[string]any, error) { return levels(l.root, strict.Pos{}, 0), nil }

// ReadBytes is part of [koanf.Provider]; a layer has no bytes.
func (l layer) ReadBytes() ([]byte, error) { return nil, errors.New("a layer has no bytes") }

func levels(n *strict.Node, key strict.Pos, depth int) map[string]any {
	m := map[string]any{placeKey: place{key, n.Pos}}
	for _, e := range n.Entries {
		if e.Value.Kind == strict.Map && depth < maxLevels {
			m[e.Key] = levels(e.Value, e.KeyPos, depth+1)
		} else {
			m[e.Key] = leaf{e}
		}
	}
	return m
}

// merge lays the layers over each other, low to high, and returns the tree that
// results. Its entries stand in the order of the files given, each in its own
// order; what no file has comes last, by name.
func merge(order []string, layers ...*strict.Node) (*strict.Node, error) {
	k := koanf.New(delim)
	for _, l := range layers {
		if l == nil {
			continue
		}
		if err := k.Load(layer{l}, nil, koanf.WithMergeFunc(overlay)); err != nil {
			return nil, err
		}
	}
	return tree(k.Raw(), place{}, order), nil
}

// overlay lays src over dest. A key with nothing after it does not hide what is
// below, and a mapping does not hide that something below it is none, except
// where a key may be either.
func overlay(src, dest map[string]any) error {
	for key, value := range src {
		below, both := dest[key]
		if !both {
			dest[key] = value
			continue
		}
		switch value := value.(type) {
		case place:
			if value.Pos.Line > 0 || below.(place).Pos.Line == 0 { // a file's place is worth keeping
				dest[key] = value
			}
		case leaf:
			if value.Entry.Value.Kind == strict.Null {
				continue
			}
			if b, ok := below.(leaf); ok && value.Entry.KeyPos.Line == 0 {
				value.Entry.KeyPos = b.Entry.KeyPos // keeps its rank among its siblings
			}
			dest[key] = value
		case map[string]any:
			switch b := below.(type) {
			case map[string]any:
				if err := overlay(value, b); err != nil {
					return err
				}
			case leaf:
				if b.Entry.Value.Kind == strict.Null || key == keyAPIKey {
					dest[key] = value
				}
			}
		}
	}
	return nil
}

// tree turns merged maps into a node again.
func tree(m map[string]any, at place, order []string) *strict.Node {
	if p, ok := m[placeKey].(place); ok {
		at = p
	}
	n := &strict.Node{Pos: at.Pos, Kind: strict.Map}
	for key, value := range m {
		switch value := value.(type) {
		case leaf:
			n.Entries = append(n.Entries, value.Entry)
		case map[string]any:
			p, _ := value[placeKey].(place)
			n.Entries = append(n.Entries, strict.Entry{Key: key, KeyPos: p.Key, Value: tree(value, p, order)})
		}
	}
	rank := func(p strict.Pos) int {
		if i := slices.Index(order, p.File); i >= 0 && p.Line > 0 {
			return i
		}
		return len(order)
	}
	slices.SortFunc(n.Entries, func(a, b strict.Entry) int {
		if ra, rb := rank(a.KeyPos), rank(b.KeyPos); ra != rb || ra == len(order) {
			return cmp.Or(cmp.Compare(ra, rb), cmp.Compare(a.Key, b.Key))
		}
		return cmp.Or(cmp.Compare(a.KeyPos.Line, b.KeyPos.Line), cmp.Compare(a.KeyPos.Column, b.KeyPos.Column), cmp.Compare(a.Key, b.Key))
	})
	return n
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
