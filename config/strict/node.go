package strict

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strconv"
	"strings"
)

// Kind is the kind of a [Node].
type Kind int

// The kinds of nodes.
const (
	Null Kind = iota
	Bool
	Int
	Float
	String
	List
	Map
	// Untyped is a scalar from a source without types, such as a variable of
	// the environment: it is whatever its field wants it to be.
	Untyped
)

// String names the kind as a person would.
func (k Kind) String() string {
	switch k {
	case Null:
		return "nothing"
	case Bool:
		return "a boolean"
	case Int:
		return "an integer"
	case Float:
		return "a number"
	case List:
		return "a list"
	case Map:
		return "a mapping"
	default:
		return "a string"
	}
}

// Node is a value in a document, with its place.
type Node struct {
	Pos
	Kind    Kind
	Text    string  // of a scalar, without quotes
	Items   []*Node // of a list
	Entries []Entry // of a map, in the document's order; keys are unique
}

// Entry is a key of a map and its value.
type Entry struct {
	Key    string
	KeyPos Pos
	Value  *Node
}

// Get returns the value of key in a map, or nil.
func (n *Node) Get(key string) *Node {
	if n == nil {
		return nil
	}
	for _, e := range n.Entries {
		if e.Key == key {
			return e.Value
		}
	}
	return nil
}

// Any returns the node as plain Go values: nil, bool, json.Number, string,
// []any and map[string]any.
func (n *Node) Any() any {
	switch n.Kind {
	case Null:
		return nil
	case Bool:
		return n.Text == "true"
	case Int, Float:
		if json.Valid([]byte(n.Text)) {
			return json.Number(n.Text)
		}
		if f, err := strconv.ParseFloat(n.Text, 64); err == nil {
			return f
		}
		return n.Text
	case List:
		list := make([]any, len(n.Items))
		for i, item := range n.Items {
			list[i] = item.Any()
		}
		return list
	case Map:
		m := make(map[string]any, len(n.Entries))
		for _, e := range n.Entries {
			m[e.Key] = e.Value.Any()
		}
		return m
	default:
		return n.Text
	}
}

// JSON returns the node as JSON, keys in the document's order.
func (n *Node) JSON() json.RawMessage {
	var b bytes.Buffer
	n.writeJSON(&b)
	return b.Bytes()
}

func (n *Node) writeJSON(b *bytes.Buffer) {
	switch n.Kind {
	case List:
		b.WriteByte('[')
		for i, item := range n.Items {
			if i > 0 {
				b.WriteByte(',')
			}
			item.writeJSON(b)
		}
		b.WriteByte(']')
	case Map:
		b.WriteByte('{')
		for i, e := range n.Entries {
			if i > 0 {
				b.WriteByte(',')
			}
			writeScalar(b, e.Key)
			b.WriteByte(':')
			e.Value.writeJSON(b)
		}
		b.WriteByte('}')
	default:
		writeScalar(b, n.Any())
	}
}

func writeScalar(b *bytes.Buffer, v any) {
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	if enc.Encode(v) != nil { // an infinity, which JSON has no word for
		b.WriteString("null")
		return
	}
	b.Truncate(b.Len() - 1) // the encoder's newline
}

// Limits bound what a parser accepts; zero fields have the defaults below. They
// make a hostile file cheap to refuse (K67).
type Limits struct {
	Bytes int // size of a file; 4 MiB
	Depth int // nesting; 100
	Nodes int // values, those that aliases stand for included; 200,000
}

func (l Limits) orDefaults() Limits {
	if l.Bytes <= 0 {
		l.Bytes = 4 << 20
	}
	if l.Depth <= 0 {
		l.Depth = 100
	}
	if l.Nodes <= 0 {
		l.Nodes = 200_000
	}
	return l
}

// Parse reads a document whose format is told by the file's name: .json and
// .jsonc are JSON with comments and trailing commas, .toml is TOML, all else is
// YAML. The node is nil where the document is empty or has a syntax error; an
// empty document is no issue of the parser's.
func Parse(file string, data []byte, limits Limits) (*Node, Issues) {
	limits = limits.orDefaults()
	if len(data) > limits.Bytes {
		return nil, Issues{{
			Pos: Pos{File: file}, Code: CodeTooLarge,
			Message: "the file has " + strconv.Itoa(len(data)) + " bytes; the limit is " + strconv.Itoa(limits.Bytes),
		}}
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	p := &parser{file: file, limits: limits}
	switch strings.ToLower(filepath.Ext(file)) {
	case ".json", ".jsonc":
		return p.json(data)
	case ".toml":
		return p.toml(data)
	default:
		return p.yaml(data)
	}
}

// parser holds what the parsers of the formats share: the budget and the issues.
type parser struct {
	file   string
	limits Limits
	nodes  int
	issues Issues
	full   bool // the budget is spent and an issue says so
}

func (p *parser) fail(pos Pos, code, message, hint string) {
	p.issues = append(p.issues, Issue{Pos: pos, Code: code, Message: message, Hint: hint})
}

// spend takes one node off the budget at a depth. Where it returns false the
// document is refused, and an issue says why, once.
func (p *parser) spend(pos Pos, depth int) bool {
	p.nodes++
	switch {
	case p.full:
	case depth > p.limits.Depth:
		p.fail(pos, CodeTooLarge, "nested deeper than "+strconv.Itoa(p.limits.Depth)+" levels", "")
		p.full = true
	case p.nodes > p.limits.Nodes:
		p.fail(pos, CodeTooLarge, "more than "+strconv.Itoa(p.limits.Nodes)+" values, those that aliases stand for included", "")
		p.full = true
	}
	return !p.full
}

// add appends an entry unless its key is there already, which is an issue.
func (p *parser) add(n *Node, e Entry) {
	for _, have := range n.Entries {
		if have.Key == e.Key {
			p.fail(e.KeyPos, CodeDuplicateKey, "duplicate key "+strconv.Quote(e.Key),
				"first set in line "+strconv.Itoa(have.KeyPos.Line))
			return
		}
	}
	n.Entries = append(n.Entries, e)
}

// offsets turns byte offsets of data into places.
type offsets struct {
	file  string
	data  []byte
	lines []int // offset of each line's first byte
}

func newOffsets(file string, data []byte) *offsets {
	o := &offsets{file: file, data: data, lines: []int{0}}
	for i, b := range data {
		if b == '\n' {
			o.lines = append(o.lines, i+1)
		}
	}
	return o
}

// at returns the place of a byte; columns count characters.
func (o *offsets) at(offset int) Pos {
	lo, hi := 0, len(o.lines)
	for hi-lo > 1 {
		if mid := (lo + hi) / 2; o.lines[mid] <= offset {
			lo = mid
		} else {
			hi = mid
		}
	}
	offset = min(offset, len(o.data))
	return Pos{File: o.file, Line: lo + 1, Column: len([]rune(string(o.data[o.lines[lo]:offset]))) + 1}
}
