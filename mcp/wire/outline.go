package wire

import (
	"bytes"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// An Outline knows of a JSON object, given in pieces and never held, how deep it
// is open and a few members of its outermost level. The zero Outline is that of
// nothing.
type Outline struct {
	Depth     int
	ID        []byte // the JSON of "id"; nil where there is none
	Method    bool   // whether there is a "method"
	Versioned bool   // whether there is a "jsonrpc"

	inString, escaped bool
	value             bool   // whether a value is read, not a key
	key, token        []byte // of the outermost level, at most MaxToken bytes
}

// MaxToken is how much of a name, a number or an id an [Outline] holds, in bytes.
const MaxToken = 128

// Add takes the next piece.
func (o *Outline) Add(p []byte) {
	for i := 0; i < len(p); i++ {
		if o.inString && !o.escaped && (o.Depth != 1 || len(o.token) == MaxToken) {
			// Most bytes of a long line are in strings that don't matter.
			n := bytes.IndexAny(p[i:], `"\\`)
			if n < 0 {
				return
			}
			i += n
		}
		switch b := p[i]; {
		case o.inString:
			switch {
			case o.escaped:
				o.escaped = false
			case b == '\\':
				o.escaped = true
			case b == '"':
				o.inString = false
			}
			o.collect(b)
			if !o.inString && o.Depth == 1 && !o.value {
				o.key = append(o.key[:0], o.token...)
			}
		case b == '"':
			o.inString = true
			if o.Depth == 1 {
				o.token = o.token[:0]
			}
			o.collect(b)
		case b == '{' || b == '[':
			o.Depth++
		case b == '}' || b == ']':
			if o.Depth == 1 {
				o.member()
			}
			o.Depth--
		case b == ':' && o.Depth == 1:
			o.value, o.token = true, o.token[:0]
		case b == ',' && o.Depth == 1:
			o.member()
		case b != ' ' && b != '\t' && b != '\r' && b != '\n':
			o.collect(b)
		}
	}
}

// collect adds to the token of the outermost level.
func (o *Outline) collect(b byte) {
	if o.Depth == 1 && len(o.token) < MaxToken {
		o.token = append(o.token, b)
	}
}

// member ends a member of the outermost level.
func (o *Outline) member() {
	switch string(o.key) {
	case `"id"`:
		o.ID = bytes.Clone(o.token)
	case `"method"`:
		o.Method = true
	case `"jsonrpc"`:
		o.Versioned = true
	}
	o.value, o.key, o.token = false, o.key[:0], o.token[:0]
}

// Refuse is an answer that stands for one that can't be used, or nil where it
// can't be told which request that was for.
func (o *Outline) Refuse(err error) *jsonrpc.Response {
	var v any
	if o.Method || len(o.ID) == 0 || json.Unmarshal(o.ID, &v) != nil {
		return nil
	}
	id, mismade := jsonrpc.MakeID(v)
	if mismade != nil || !id.IsValid() {
		return nil
	}
	return &jsonrpc.Response{ID: id, Error: err}
}
