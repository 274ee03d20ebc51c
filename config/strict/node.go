package strict

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
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
		return strings.EqualFold(n.Text, "true")
	case Int, Float:
		if json.Valid([]byte(n.Text)) {
			return json.Number(n.Text) // every digit kept
		}
		if i, err := strconv.ParseInt(n.Text, 0, 64); err == nil {
			return json.Number(strconv.FormatInt(i, 10))
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
	Bytes int // size of a file; 1 MiB
	Depth int // nesting; 100
	Nodes int // values, those that aliases stand for included; 50,000
}

func (l Limits) orDefaults() Limits {
	if l.Bytes <= 0 {
		l.Bytes = 1 << 20
	}
	if l.Depth <= 0 {
		l.Depth = 100
	}
	if l.Nodes <= 0 {
		l.Nodes = 50_000
	}
	return l
}

// Parse reads a document whose format is told by the file's name: .json and
// .jsonc are JSON with comments and trailing commas, .toml is TOML, all else is
// YAML. The text is UTF-8, with or without a byte order mark. The node is nil
// where the document is empty or has a syntax error; an empty document is no
// issue of the parser's.
func Parse(file string, data []byte, limits Limits) (*Node, Issues) {
	p := &parser{file: file, limits: limits.orDefaults()}
	if len(data) > p.limits.Bytes {
		p.fail(Pos{File: file}, CodeTooLarge,
			"the file has "+strconv.Itoa(len(data))+" bytes; the limit is "+strconv.Itoa(p.limits.Bytes), "")
		return nil, p.issues
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if !utf8.Valid(data) {
		p.notUTF8(data)
		return nil, p.issues
	}
	var n *Node
	switch strings.ToLower(filepath.Ext(file)) {
	case ".json", ".jsonc":
		n = p.json(data)
	case ".toml":
		n = p.toml(data)
	default:
		n = p.yaml(data)
	}
	if p.full {
		return nil, p.issues
	}
	return n, p.issues
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
	p.issues = p.issues.add(Issue{Pos: pos, Code: code, Message: message, Hint: hint})
}

func (p *parser) notUTF8(data []byte) {
	hint := "save it as UTF-8"
	if bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) {
		hint = "it looks like UTF-16; save it as UTF-8"
	}
	at := 0
	for at < len(data) {
		r, size := utf8.DecodeRune(data[at:])
		if r == utf8.RuneError && size == 1 {
			break
		}
		at += size
	}
	p.fail(newOffsets(p.file, data).at(at), CodeSyntax, "the text is not UTF-8", hint)
}

// spend takes one node off the budget at a depth. Where it returns false the
// document is refused, and an issue says why, once.
func (p *parser) spend(pos Pos, depth int) bool {
	p.nodes++
	switch {
	case p.full:
	case depth > p.limits.Depth:
		p.refuse(pos, p.tooDeep())
	case p.nodes > p.limits.Nodes:
		p.refuse(pos, p.tooMany())
	}
	return !p.full
}

// refuse ends the reading of the document.
func (p *parser) refuse(pos Pos, message string) {
	p.fail(pos, CodeTooLarge, message, "")
	p.full = true
}

func (p *parser) tooDeep() string {
	return "nested deeper than " + strconv.Itoa(p.limits.Depth) + " levels"
}

func (p *parser) tooMany() string {
	return "more than " + strconv.Itoa(p.limits.Nodes) + " values, those that aliases stand for included"
}

// builder makes a map whose keys are unique.
type builder struct {
	node *Node
	seen map[string]Pos
}

func newBuilder(pos Pos) *builder {
	return &builder{node: &Node{Pos: pos, Kind: Map}, seen: map[string]Pos{}}
}

// add appends an entry unless its key is there already, and reports which.
func (b *builder) add(e Entry) bool {
	if _, have := b.seen[e.Key]; have {
		return false
	}
	b.seen[e.Key] = e.KeyPos
	b.node.Entries = append(b.node.Entries, e)
	return true
}

// longestKey is the length of a key in bytes beyond which a document is
// refused: what reads it may build paths of keys.
const longestKey = 1024

// key reports whether a key is of a sane length; if not, the document is refused.
func (p *parser) key(key string, pos Pos) bool {
	if len(key) > longestKey && !p.full {
		p.refuse(pos, "a key of "+strconv.Itoa(len(key))+" bytes; the limit is "+strconv.Itoa(longestKey))
	}
	return !p.full
}

// add appends an entry to a map; a key that is there already is an issue.
func (p *parser) add(b *builder, e Entry) {
	if p.key(e.Key, e.KeyPos) && !b.add(e) {
		p.fail(e.KeyPos, CodeDuplicateKey, "duplicate key "+Quote(e.Key),
			"first set in line "+strconv.Itoa(b.seen[e.Key].Line))
	}
}

// nesting watches brackets before a recursive parser sees them: too deep is
// refused at the bracket that goes too deep.
type nesting struct {
	depth int
	limit int
}

// byte counts one byte outside of strings and comments, and reports whether
// the limit still holds.
func (n *nesting) byte(b byte) bool {
	switch b {
	case '[', '{':
		n.depth++
	case ']', '}':
		n.depth = max(0, n.depth-1) // a stray one is the parser's business
	}
	return n.depth <= n.limit
}

// block is the distance of the marks in offsets.runes.
const block = 1024

// offsets turns byte offsets of data into places. A place costs the same
// wherever it stands, also in a long line.
type offsets struct {
	file  string
	data  []byte
	lines []int // offset of each line's first byte
	runes []int // characters before each block
}

func newOffsets(file string, data []byte) *offsets {
	o := &offsets{file: file, data: data, lines: []int{0}}
	runes := 0
	for i, b := range data {
		if i%block == 0 {
			o.runes = append(o.runes, runes)
		}
		if utf8.RuneStart(b) {
			runes++
		}
		if b == '\n' {
			o.lines = append(o.lines, i+1)
		}
	}
	o.runes = append(o.runes, runes) // for an offset at the very end
	return o
}

// at returns the place of a byte; columns count characters.
func (o *offsets) at(offset int) Pos {
	offset = max(0, min(offset, len(o.data)))
	line, exact := slices.BinarySearch(o.lines, offset)
	if !exact {
		line--
	}
	return Pos{File: o.file, Line: line + 1, Column: o.before(offset) - o.before(o.lines[line]) + 1}
}

// before counts the characters before an offset.
func (o *offsets) before(offset int) int {
	start := offset / block * block
	if start >= len(o.data) {
		return o.runes[len(o.runes)-1]
	}
	runes := o.runes[offset/block]
	for _, b := range o.data[start:offset] {
		if utf8.RuneStart(b) {
			runes++
		}
	}
	return runes
}
