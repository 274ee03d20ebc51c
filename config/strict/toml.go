package strict

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// toml decodes a document and then puts its keys at their places: the decoder
// knows what the document means, the syntax tree knows where its keys stand.
func (p *parser) toml(data []byte) (*Node, Issues) {
	var doc map[string]any
	if err := toml.Unmarshal(data, &doc); err != nil {
		pos, message := Pos{File: p.file}, err.Error()
		var de *toml.DecodeError
		if errors.As(err, &de) {
			pos.Line, pos.Column = de.Position()
			message = strings.TrimPrefix(message, "toml: ")
		}
		p.fail(pos, CodeSyntax, message, "")
		return nil, p.issues
	}
	if len(doc) == 0 {
		return nil, nil
	}
	n := p.tomlValue(doc, "", tomlPlaces(p.file, data), Pos{p.file, 1, 1}, 1)
	if p.full {
		return nil, p.issues
	}
	return n, p.issues
}

func (p *parser) tomlValue(v any, path string, places map[string]Pos, around Pos, depth int) *Node {
	pos, ok := places[path]
	if !ok {
		pos = around
	}
	n := &Node{Pos: pos, Kind: String}
	if !p.spend(pos, depth) {
		return n
	}
	switch v := v.(type) {
	case map[string]any:
		n.Kind = Map
		for key, value := range v {
			child := p.tomlValue(value, path+"\x00"+key, places, pos, depth+1)
			n.Entries = append(n.Entries, Entry{Key: key, KeyPos: child.Pos, Value: child})
		}
		sortEntries(n.Entries)
	case []any:
		n.Kind = List
		for i, value := range v {
			n.Items = append(n.Items, p.tomlValue(value, path+"\x00"+strconv.Itoa(i), places, pos, depth+1))
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

// tomlPlaces maps the path of each key to where it is first written.
func tomlPlaces(file string, data []byte) map[string]Pos {
	places := map[string]Pos{}
	at := newOffsets(file, data)
	arrays := map[string]int{} // tables seen of each array of tables
	table := ""
	var parser unstable.Parser
	parser.Reset(data)

	walk := func(base string, keys unstable.Iterator) string {
		path := base
		for keys.Next() {
			key := keys.Node()
			path += "\x00" + string(key.Data)
			if _, seen := places[path]; !seen {
				places[path] = at.at(int(key.Raw.Offset))
			}
			if count, ok := arrays[path]; ok && !keys.IsLast() {
				path += "\x00" + strconv.Itoa(count-1)
			}
		}
		return path
	}
	var inline func(path string, value *unstable.Node)
	inline = func(path string, value *unstable.Node) {
		switch value.Kind {
		case unstable.InlineTable:
			for it := value.Children(); it.Next(); {
				kv := it.Node()
				inline(walk(path, kv.Key()), kv.Value())
			}
		case unstable.Array:
			i := 0
			for it := value.Children(); it.Next(); i++ {
				inline(path+"\x00"+strconv.Itoa(i), it.Node())
			}
		}
	}
	for parser.NextExpression() {
		switch e := parser.Expression(); e.Kind {
		case unstable.Table:
			table = walk("", e.Key())
			if count, ok := arrays[table]; ok {
				table += "\x00" + strconv.Itoa(count-1)
			}
		case unstable.ArrayTable:
			path := walk("", e.Key())
			table = path + "\x00" + strconv.Itoa(arrays[path])
			arrays[path]++
			for it := e.Key(); it.Next(); {
				places[table] = at.at(int(it.Node().Raw.Offset))
			}
		case unstable.KeyValue:
			inline(walk(table, e.Key()), e.Value())
		}
	}
	return places
}
