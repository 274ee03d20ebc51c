package strict

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"

	"go.yaml.in/yaml/v4"
)

func (p *parser) yaml(data []byte) *Node {
	if !p.yamlBudget(data) {
		return nil
	}
	loader, err := yaml.NewLoader(bytes.NewReader(data), yaml.WithUniqueKeys(false))
	if err != nil {
		p.fail(Pos{File: p.file}, CodeSyntax, short(err.Error()), "")
		return nil
	}
	var doc yaml.Node
	if err := loader.Load(&doc); err != nil {
		if !errors.Is(err, io.EOF) {
			p.yamlSyntax(data, err)
		}
		return nil
	}
	var second yaml.Node
	if err := loader.Load(&second); err == nil {
		p.fail(p.pos(&second), CodeSyntax, "a second document begins here; a file holds one", "")
	} else if !errors.Is(err, io.EOF) {
		p.yamlSyntax(data, err)
		return nil
	}
	if doc.Kind == yaml.DocumentNode {
		if len(doc.Content) == 0 {
			return nil
		}
		doc = *doc.Content[0]
	}
	if doc.Kind == 0 {
		return nil
	}
	return p.convert(&doc, p.pos(&doc), 1, nil)
}

// yamlBudget refuses a document before the parser reads it where the parser
// would need far more memory than the document has bytes: it keeps every token
// of a line and is recursive. What may begin a token is counted, so that text
// with many such signs counts somewhat more than it should; brackets count as
// nesting only where nothing but spaces, dashes, tags and the like is between
// them, since text has brackets too.
func (p *parser) yamlBudget(data []byte) bool {
	marks, run, before := 0, 0, byte(' ')
	for i, b := range data {
		switch b {
		case '[', '{':
			marks++
			if run++; run > p.limits.Depth {
				p.refuse(newOffsets(p.file, data).at(i), p.tooDeep())
				return false
			}
		case ',', ']', '}', '\n':
			marks++
		case '"', '\'', '&', '*', '!', '|', '>', '?', ':', '-', '#', '%', '@', '`':
			if isSpace(before) || bytes.IndexByte([]byte(",[]{}\"'&*!|>?:-#%@`"), before) >= 0 {
				marks++
			}
		}
		if b != '[' && b != '{' && b != '-' && !isSpace(b) {
			run = 0
		}
		if marks > 3*p.limits.Nodes {
			p.refuse(newOffsets(p.file, data).at(i), "more than "+strconv.Itoa(3*p.limits.Nodes)+" lines, commas, brackets and other signs")
			return false
		}
		before = b
	}
	return true
}

func isSpace(b byte) bool { return b == ' ' || b == '\t' || b == '\r' || b == '\n' }

func (p *parser) pos(n *yaml.Node) Pos { return Pos{File: p.file, Line: n.Line, Column: n.Column} }

// convert turns a YAML node into a Node, with aliases and merge keys resolved.
// open holds the anchored nodes around it, which an alias must not name.
func (p *parser) convert(n *yaml.Node, pos Pos, depth int, open []*yaml.Node) *Node {
	if !p.spend(pos, depth) {
		return &Node{Pos: pos}
	}
	switch n.Kind {
	case yaml.AliasNode:
		for _, o := range open {
			if o == n.Alias {
				p.fail(pos, CodeSyntax, fmt.Sprintf("alias *%s stands inside its own anchor", n.Value), "")
				return &Node{Pos: pos}
			}
		}
		return p.convert(n.Alias, pos, depth, open)
	case yaml.SequenceNode:
		if n.Anchor != "" {
			open = append(open, n)
		}
		list := &Node{Pos: pos, Kind: List}
		for _, item := range n.Content {
			list.Items = append(list.Items, p.convert(item, p.pos(item), depth+1, open))
			if p.full {
				break
			}
		}
		return list
	case yaml.MappingNode:
		if n.Anchor != "" {
			open = append(open, n)
		}
		return p.mapping(n, pos, depth, open)
	default:
		return p.scalar(n, pos)
	}
}

func (p *parser) mapping(n *yaml.Node, pos Pos, depth int, open []*yaml.Node) *Node {
	m := newBuilder(pos)
	var merged []Entry
	for i := 0; i+1 < len(n.Content) && !p.full; i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		v := p.convert(value, p.pos(value), depth+1, open)
		if key.ShortTag() == "!!merge" {
			merged = append(merged, p.merged(v)...)
			continue
		}
		if key.Kind == yaml.AliasNode {
			key = key.Alias
		}
		if key.Kind != yaml.ScalarNode || key.ShortTag() == "!!null" {
			p.fail(p.pos(key), CodeWrongType, "a key must be plain text", "")
			continue
		}
		p.add(m, Entry{Key: key.Value, KeyPos: p.pos(key), Value: v})
	}
	for _, e := range merged {
		m.add(e) // what the mapping says itself wins
	}
	return m.node
}

// merged returns the entries that a merge key brings: of one mapping, or of a
// list of them, the earlier winning.
func (p *parser) merged(v *Node) []Entry {
	switch v.Kind {
	case Map:
		return v.Entries
	case List:
		var all []Entry
		for _, item := range v.Items {
			if item.Kind != Map {
				p.fail(item.Pos, CodeWrongType, "a merge key takes mappings, not "+item.Kind.String(), "")
				continue
			}
			all = append(all, item.Entries...)
		}
		return all
	default:
		p.fail(v.Pos, CodeWrongType, "a merge key takes a mapping, not "+v.Kind.String(), "")
		return nil
	}
}

func (p *parser) scalar(n *yaml.Node, pos Pos) *Node {
	s := &Node{Pos: pos, Kind: String, Text: n.Value}
	switch n.ShortTag() {
	case "!!null":
		s.Kind = Null
	case "!!bool":
		s.Kind = Bool
	case "!!int":
		s.Kind = Int
	case "!!float":
		s.Kind = Float
	case "!!str", "!!timestamp":
	default:
		p.fail(pos, CodeWrongType, "the tag "+Quote(n.Tag)+" is not known here", "")
	}
	return s
}

// yamlSyntax reports an error of the YAML parser. A tab in the indentation is
// the commonest fault and the worst reported one (K61), so it is looked for.
func (p *parser) yamlSyntax(data []byte, err error) {
	pos, message, hint := Pos{File: p.file}, err.Error(), ""
	lines := bytes.Split(data, []byte("\n"))
	var le *yaml.LoadError
	if errors.As(err, &le) {
		pos.Line, pos.Column, message = le.Mark.Line, le.Mark.Column, le.Message
	}
	if line, column, ok := tabIndent(lines, pos.Line); ok {
		p.fail(Pos{p.file, line, column}, CodeSyntax,
			"a tab in the indentation; YAML indents with spaces only", "replace the tab with spaces")
		return
	}
	switch {
	case le == nil:
	case le.Stage == yaml.ReaderStage:
		if i := bytes.IndexFunc(data, isControl); i >= 0 {
			pos = newOffsets(p.file, data).at(i)
		}
	case le.Stage == yaml.ScannerStage && le.ContextMark.Line > 0 && le.ContextMark != le.Mark:
		// What was begun and not ended is at fault, not the place where that
		// shows: a key without its colon, a quote without its twin.
		pos.Line, pos.Column = le.ContextMark.Line, le.ContextMark.Column
		message = fmt.Sprintf("%s (found in line %d)", message, le.Mark.Line)
	case le.Stage == yaml.ScannerStage && charAt(lines, pos) == ':':
		hint = "a colon followed by a space needs quotes around the text; or the line before lacks a colon, or a line is indented wrongly"
	}
	p.fail(pos, CodeSyntax, short(message), hint)
}

func isControl(r rune) bool { return r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0x7f }

// charAt returns the character at a place, or 0.
func charAt(lines [][]byte, pos Pos) rune {
	if pos.Line < 1 || pos.Line > len(lines) {
		return 0
	}
	text := []rune(string(lines[pos.Line-1]))
	if pos.Column < 1 || pos.Column > len(text) {
		return 0
	}
	return text[pos.Column-1]
}

// tabIndent finds a line indented with a tab at the line of a syntax error or
// just before it.
func tabIndent(lines [][]byte, at int) (line, column int, ok bool) {
	for _, n := range []int{at, at - 1, at + 1} {
		if n < 1 || n > len(lines) {
			continue
		}
		text := lines[n-1]
		indent := text[:len(text)-len(bytes.TrimLeft(text, " \t"))]
		if i := bytes.IndexByte(indent, '\t'); i >= 0 && len(bytes.TrimSpace(text)) > 0 {
			return n, i + 1, true
		}
	}
	return 0, 0, false
}
