package strict

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/tailscale/hujson"
)

func (p *parser) json(data []byte) *Node {
	places := newOffsets(p.file, data)
	if len(bytes.TrimSpace(data)) == 0 {
		return nil
	}
	if at, message := p.jsonBudget(data); message != "" {
		p.refuse(places.at(at), message)
		return nil
	}
	v, err := hujson.Parse(append(data[:len(data):len(data)], '\n')) // the parser wants a comment's line to end
	if err != nil {
		p.jsonSyntax(data, places, err)
		return nil
	}
	return p.jsonValue(v, places, 1)
}

// jsonBudget finds where the document nests too deep or has too many values,
// knowing strings and comments: hujson is recursive and has no limits.
func (p *parser) jsonBudget(data []byte) (pos int, message string) {
	n, commas := nesting{limit: p.limits.Depth}, 0
	for i := 0; i < len(data); i++ {
		switch b := data[i]; {
		case b == ',':
			if commas++; commas > p.limits.Nodes { // there are no more commas than values
				return i, p.tooMany()
			}
		case b == '"':
			for i++; i < len(data) && data[i] != '"'; i++ {
				if data[i] == '\\' {
					i++
				}
			}
		case bytes.HasPrefix(data[i:], []byte("//")):
			for i < len(data) && data[i] != '\n' {
				i++
			}
		case bytes.HasPrefix(data[i:], []byte("/*")):
			end := bytes.Index(data[i+2:], []byte("*/"))
			if end < 0 {
				return 0, "" // the parser says so
			}
			i += 2 + end + 1
		case !n.byte(b):
			return i, p.tooDeep()
		}
	}
	return 0, ""
}

func (p *parser) jsonValue(v hujson.Value, places *offsets, depth int) *Node {
	n := &Node{Pos: places.at(v.StartOffset)}
	if !p.spend(n.Pos, depth) {
		return n
	}
	switch value := v.Value.(type) {
	case *hujson.Object:
		b := newBuilder(n.Pos)
		for _, m := range value.Members {
			name, _ := m.Name.Value.(hujson.Literal)
			p.add(b, Entry{Key: name.String(), KeyPos: places.at(m.Name.StartOffset), Value: p.jsonValue(m.Value, places, depth+1)})
			if p.full {
				break
			}
		}
		return b.node
	case *hujson.Array:
		n.Kind = List
		for _, e := range value.Elements {
			n.Items = append(n.Items, p.jsonValue(e, places, depth+1))
			if p.full {
				break
			}
		}
	case hujson.Literal:
		switch value.Kind() {
		case 'n':
		case 't', 'f':
			n.Kind, n.Text = Bool, string(value)
		case '0':
			n.Kind, n.Text = Int, string(value)
			if strings.ContainsAny(n.Text, ".eE") {
				n.Kind = Float
			}
		default:
			n.Kind, n.Text = String, value.String()
		}
	}
	return n
}

// jsonSyntax reports an error of the parser, which has its place nowhere but at
// the front of its text and counts columns in bytes.
func (p *parser) jsonSyntax(data []byte, places *offsets, err error) {
	pos, message, hint := Pos{File: p.file}, err.Error(), ""
	var line, column int
	if n, _ := fmt.Sscanf(message, "hujson: line %d, column %d:", &line, &column); n == 2 && line >= 1 && line <= len(places.lines)+1 {
		offset := len(data)
		if line <= len(places.lines) {
			offset = places.lines[line-1] + column - 1
		}
		pos = places.at(offset)
		if cause := errors.Unwrap(err); cause != nil {
			message = cause.Error()
		}
		if offset < len(data) && (data[offset] == '\'' || data[offset] == '_' || data[offset]|0x20 >= 'a' && data[offset]|0x20 <= 'z') {
			hint = "keys and texts stand in double quotes"
		}
	}
	p.fail(pos, CodeSyntax, short(message), hint)
}
