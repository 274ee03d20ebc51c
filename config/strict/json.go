package strict

import (
	"strings"

	"github.com/tailscale/hujson"
)

func (p *parser) json(data []byte) (*Node, Issues) {
	places := newOffsets(p.file, data)
	if len(strings.TrimSpace(string(data))) == 0 {
		return nil, nil
	}
	if pos, deep := p.flowTooDeep(data); deep {
		p.spend(pos, p.limits.Depth+1)
		return nil, p.issues
	}
	v, err := hujson.Parse(data)
	if err != nil {
		// The parser's only form of place is in its text: "hujson: line 3, column 7: …".
		pos, message := jsonErrorPlace(p.file, err.Error())
		p.fail(pos, CodeSyntax, message, "")
		return nil, p.issues
	}
	n := p.jsonValue(v, places, 1)
	if p.full {
		return nil, p.issues
	}
	return n, p.issues
}

func (p *parser) jsonValue(v hujson.Value, places *offsets, depth int) *Node {
	n := &Node{Pos: places.at(v.StartOffset)}
	if !p.spend(n.Pos, depth) {
		return n
	}
	switch value := v.Value.(type) {
	case *hujson.Object:
		n.Kind = Map
		for _, m := range value.Members {
			name, _ := m.Name.Value.(hujson.Literal)
			p.add(n, Entry{Key: name.String(), KeyPos: places.at(m.Name.StartOffset), Value: p.jsonValue(m.Value, places, depth+1)})
		}
	case *hujson.Array:
		n.Kind = List
		for _, e := range value.Elements {
			n.Items = append(n.Items, p.jsonValue(e, places, depth+1))
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

// jsonErrorPlace takes the place off the front of the parser's message.
func jsonErrorPlace(file, text string) (Pos, string) {
	text = strings.TrimPrefix(text, "hujson: ")
	place, message, ok := strings.Cut(text, ": ")
	pos := Pos{File: file}
	rest, isLine := strings.CutPrefix(place, "line ")
	line, column, both := strings.Cut(rest, ", column ")
	if !ok || !isLine || !both {
		return pos, text
	}
	pos.Line, pos.Column = atoi(line), atoi(column)
	return pos, message
}
