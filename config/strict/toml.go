package strict

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// toml decodes a document and puts its keys at their places: the decoder knows
// what the document means, the syntax tree knows where its keys stand and in
// which order.
func (p *parser) toml(data []byte) *Node {
	at := newOffsets(p.file, data)
	if offset, ok := p.tomlNesting(data); !ok {
		p.refuse(at.at(offset), p.tooDeep())
		return nil
	}
	root := p.tomlPlaces(at, data)
	if p.full {
		return nil
	}
	var doc map[string]any
	if err := toml.Unmarshal(data, &doc); err != nil {
		pos, message := Pos{File: p.file}, err.Error()
		var de *toml.DecodeError
		if errors.As(err, &de) {
			pos.Line, pos.Column = de.Position()
			message = strings.TrimPrefix(message, "toml: ")
		}
		p.fail(pos, CodeSyntax, short(message), "")
		return nil
	}
	if len(doc) == 0 {
		return nil
	}
	p.nodes = 0 // the walk over the places counted what is counted now
	return p.tomlValue(doc, root, 1)
}

// tomlNesting finds where the document nests too deep, knowing strings and
// comments: the parser is recursive.
func (p *parser) tomlNesting(data []byte) (at int, ok bool) {
	n := nesting{limit: p.limits.Depth}
	for i := 0; i < len(data); i++ {
		switch b := data[i]; {
		case b == '#':
			for i < len(data) && data[i] != '\n' {
				i++
			}
		case b == '"' || b == '\'':
			i = tomlString(data, i)
		case !n.byte(b):
			return i, false
		}
	}
	return 0, true
}

// tomlString returns the offset of the last byte of the string that begins at i.
func tomlString(data []byte, i int) int {
	quote := data[i]
	if three := bytes.Repeat([]byte{quote}, 3); bytes.HasPrefix(data[i:], three) {
		for i += 3; i < len(data) && !bytes.HasPrefix(data[i:], three); i++ {
			if quote == '"' && data[i] == '\\' {
				i++
			}
		}
		return i + 2
	}
	for i++; i < len(data) && data[i] != quote && data[i] != '\n'; i++ {
		if quote == '"' && data[i] == '\\' {
			i++
		}
	}
	return i
}

// tomlPlace is where a value of a TOML document was first named, and what is in it.
type tomlPlace struct {
	pos      Pos
	order    int                   // among all places, as they were met
	children map[string]*tomlPlace // keys of a table, or indices of an array
	tables   int                   // of an array of tables
}

func (pl *tomlPlace) child(key string) *tomlPlace {
	if pl == nil {
		return nil
	}
	return pl.children[key]
}

func (p *parser) tomlValue(v any, at *tomlPlace, depth int) *Node {
	n := &Node{Pos: at.pos, Kind: String}
	if !p.spend(n.Pos, depth) {
		return n
	}
	under := func(key string) *tomlPlace {
		if c := at.child(key); c != nil {
			return c
		}
		return &tomlPlace{pos: at.pos}
	}
	switch v := v.(type) {
	case map[string]any:
		n.Kind = Map
		order := make(map[string]int, len(v))
		for key := range v {
			order[key] = under(key).order
			n.Entries = append(n.Entries, Entry{Key: key})
		}
		slices.SortFunc(n.Entries, func(a, b Entry) int {
			if d := order[a.Key] - order[b.Key]; d != 0 {
				return d
			}
			return strings.Compare(a.Key, b.Key)
		})
		for i, e := range n.Entries {
			child := p.tomlValue(v[e.Key], under(e.Key), depth+1)
			n.Entries[i].KeyPos, n.Entries[i].Value = child.Pos, child
		}
	case []any:
		n.Kind = List
		for i, value := range v {
			n.Items = append(n.Items, p.tomlValue(value, under(strconv.Itoa(i)), depth+1))
		}
	case bool:
		n.Kind, n.Text = Bool, strconv.FormatBool(v)
	case int64:
		n.Kind, n.Text = Int, strconv.FormatInt(v, 10)
	case float64:
		n.Kind, n.Text = Float, strconv.FormatFloat(v, 'g', -1, 64)
		if math.IsInf(v, 0) || math.IsNaN(v) {
			n.Kind = String
		}
	case string:
		n.Text = v
	case time.Time:
		n.Text = v.Format(time.RFC3339Nano)
	case interface{ String() string }: // local dates and times
		n.Text = v.String()
	}
	return n
}

// tomlPlaces walks the syntax tree and notes where each key is first written.
// It spends the budget, so that a document is refused before it is decoded.
func (p *parser) tomlPlaces(at *offsets, data []byte) *tomlPlace {
	root := &tomlPlace{pos: Pos{p.file, 1, 1}, children: map[string]*tomlPlace{}}
	order := 0
	enter := func(in *tomlPlace, key string, pos Pos) *tomlPlace {
		c := in.children[key]
		if c == nil {
			order++
			c = &tomlPlace{pos: pos, order: order, children: map[string]*tomlPlace{}}
			in.children[key] = c
		}
		return c
	}
	// walk goes down a dotted key. A table of an array of tables is its last.
	walk := func(in *tomlPlace, depth int, keys unstable.Iterator) (*tomlPlace, int) {
		for keys.Next() {
			key := keys.Node()
			pos := at.at(int(key.Raw.Offset))
			depth++
			if !p.spend(pos, depth) || !p.key(string(key.Data), pos) {
				break
			}
			in = enter(in, string(key.Data), pos)
			if in.tables > 0 && !keys.IsLast() {
				in = enter(in, strconv.Itoa(in.tables-1), pos)
			}
		}
		return in, depth
	}
	var inline func(in *tomlPlace, depth int, value *unstable.Node)
	inline = func(in *tomlPlace, depth int, value *unstable.Node) {
		switch value.Kind {
		case unstable.InlineTable:
			for it := value.Children(); it.Next() && !p.full; {
				kv := it.Node()
				inner, d := walk(in, depth, kv.Key())
				inline(inner, d, kv.Value())
			}
		case unstable.Array:
			i := 0
			for it := value.Children(); it.Next() && p.spend(in.pos, depth+1); {
				item := it.Node()
				if item.Kind == unstable.Comment {
					continue
				}
				pos := in.pos
				if item.Raw.Length > 0 {
					pos = at.at(int(item.Raw.Offset))
				}
				inline(enter(in, strconv.Itoa(i), pos), depth+1, item)
				i++
			}
		}
	}
	var parser unstable.Parser
	parser.Reset(data)
	table, depth := root, 1
	for !p.full && parser.NextExpression() {
		switch e := parser.Expression(); e.Kind {
		case unstable.Table:
			table, depth = walk(root, 1, e.Key())
			if table.tables > 0 {
				table = enter(table, strconv.Itoa(table.tables-1), table.pos)
			}
		case unstable.ArrayTable:
			array, d := walk(root, 1, e.Key())
			pos := array.pos
			for it := e.Key(); it.Next(); {
				pos = at.at(int(it.Node().Raw.Offset))
			}
			table, depth = enter(array, strconv.Itoa(array.tables), pos), d+1
			array.tables++
		case unstable.KeyValue:
			inner, d := walk(table, depth, e.Key())
			inline(inner, d, e.Value())
		}
	}
	return root
}
