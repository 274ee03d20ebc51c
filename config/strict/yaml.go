package strict

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v4"
)

func (p *parser) yaml(data []byte) (*Node, Issues) {
	if pos, deep := p.flowTooDeep(data); deep {
		p.spend(pos, p.limits.Depth+1)
		return nil, p.issues
	}
	loader, err := yaml.NewLoader(bytes.NewReader(data), yaml.WithUniqueKeys(false))
	if err != nil {
		p.fail(Pos{File: p.file}, CodeSyntax, err.Error(), "")
		return nil, p.issues
	}
	var doc yaml.Node
	if err := loader.Load(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		p.syntax(data, err)
		return nil, p.issues
	}
	var second yaml.Node
	if err := loader.Load(&second); err == nil {
		p.fail(p.pos(&second), CodeSyntax, "a second document begins here; a file holds one", "")
	} else if !errors.Is(err, io.EOF) {
		p.syntax(data, err)
		return nil, p.issues
	}
	if doc.Kind == yaml.DocumentNode {
		if len(doc.Content) == 0 {
			return nil, p.issues
		}
		doc = *doc.Content[0]
	}
	if doc.Kind == 0 {
		return nil, p.issues
	}
	n := p.convert(&doc, p.pos(&doc), 1, nil)
	if p.full {
		return nil, p.issues
	}
	return n, p.issues
}

// flowTooDeep finds flow collections nested beyond the limit before the YAML
// parser, which is recursive, sees them. It does not know strings and comments,
// so it counts brackets only where one follows another with nothing between
// them but spaces: text does not look like that.
func (p *parser) flowTooDeep(data []byte) (Pos, bool) {
	run := 0
	for i, b := range data {
		switch b {
		case '[', '{':
			if run++; run > p.limits.Depth {
				return newOffsets(p.file, data).at(i), true
			}
		case ' ', '\t', '\r', '\n', '-':
		default:
			run = 0
		}
	}
	return Pos{}, false
}

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
	m := &Node{Pos: pos, Kind: Map}
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
		if key.Kind != yaml.ScalarNode {
			p.fail(p.pos(key), CodeWrongType, "a key must be plain text", "")
			continue
		}
		p.add(m, Entry{Key: key.Value, KeyPos: p.pos(key), Value: v})
	}
	for _, e := range merged {
		if m.Get(e.Key) == nil { // what the mapping says itself wins
			m.Entries = append(m.Entries, e)
		}
	}
	return m
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
		s.Kind, s.Text = Bool, strings.ToLower(n.Value)
	case "!!int":
		s.Kind = Int
	case "!!float":
		s.Kind = Float
	case "!!str", "!!timestamp":
	default:
		p.fail(pos, CodeWrongType, "the tag "+n.Tag+" is not known here", "")
	}
	return s
}

// syntax reports an error of the YAML parser. A tab in the indentation is the
// commonest fault and the worst reported one (K61), so it is looked for.
func (p *parser) syntax(data []byte, err error) {
	pos, message := Pos{File: p.file}, err.Error()
	var le *yaml.LoadError
	if errors.As(err, &le) {
		pos.Line, pos.Column, message = le.Mark.Line, le.Mark.Column, le.Message
	}
	if line, column, ok := tabIndent(data, pos.Line); ok {
		p.fail(Pos{p.file, line, column}, CodeSyntax,
			"a tab in the indentation; YAML indents with spaces only", "replace the tab with spaces")
		return
	}
	hint := ""
	if strings.Contains(message, "mapping values are not allowed") {
		hint = "a colon followed by a space needs quotes around the text, or a line is indented wrongly"
	}
	p.fail(pos, CodeSyntax, message, hint)
}

// tabIndent finds a line indented with a tab at the line of a syntax error or
// just before it.
func tabIndent(data []byte, at int) (line, column int, ok bool) {
	lines := bytes.Split(data, []byte("\n"))
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
