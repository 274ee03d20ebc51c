package mcp

import (
	"bytes"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// An outline knows of a JSON object, given in pieces and never held, how deep it
// is open and a few members of its outermost level. The zero outline is that of
// nothing.
type outline struct {
	depth     int
	id        []byte // the JSON of "id"
	method    bool   // whether there is a "method"
	versioned bool   // whether there is a "jsonrpc"

	inString, escaped bool
	value             bool   // whether a value is read, not a key
	key, token        []byte // of the outermost level, at most maxToken bytes
}

const maxToken = 128

func (o *outline) write(p []byte) {
	for i := 0; i < len(p); i++ {
		if o.inString && !o.escaped && (o.depth != 1 || len(o.token) == maxToken) {
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
			if !o.inString && o.depth == 1 && !o.value {
				o.key = append(o.key[:0], o.token...)
			}
		case b == '"':
			o.inString = true
			if o.depth == 1 {
				o.token = o.token[:0]
			}
			o.collect(b)
		case b == '{' || b == '[':
			o.depth++
		case b == '}' || b == ']':
			if o.depth == 1 {
				o.member()
			}
			o.depth--
		case b == ':' && o.depth == 1:
			o.value, o.token = true, o.token[:0]
		case b == ',' && o.depth == 1:
			o.member()
		case b != ' ' && b != '\t' && b != '\r' && b != '\n':
			o.collect(b)
		}
	}
}

// collect adds to the token of the outermost level.
func (o *outline) collect(b byte) {
	if o.depth == 1 && len(o.token) < maxToken {
		o.token = append(o.token, b)
	}
}

// member ends a member of the outermost level.
func (o *outline) member() {
	switch string(o.key) {
	case `"id"`:
		o.id = bytes.Clone(o.token)
	case `"method"`:
		o.method = true
	case `"jsonrpc"`:
		o.versioned = true
	}
	o.value, o.key, o.token = false, o.key[:0], o.token[:0]
}

// refuse is an answer that stands for one that can't be used, or nil where it
// can't be told which request that was for.
func (o *outline) refuse(f *fault) *jsonrpc.Response {
	var v any
	if o.method || len(o.id) == 0 || json.Unmarshal(o.id, &v) != nil {
		return nil
	}
	id, err := jsonrpc.MakeID(v)
	if err != nil || !id.IsValid() {
		return nil
	}
	return &jsonrpc.Response{ID: id, Error: f}
}
