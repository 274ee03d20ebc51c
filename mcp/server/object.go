package server

import (
	"bytes"
	"encoding/json"
	"strings"

	"crewhost/mcp/wire"
)

// An object is a JSON object that is being written, member by member.
type object struct{ b []byte }

func newObject() *object { return &object{b: []byte{'{'}} }

func (o *object) name(name string) {
	if len(o.b) > 1 {
		o.b = append(o.b, ',')
	}
	odd := func(r rune) bool { return r < 0x20 || r > 0x7e || r == '"' || r == '\\' }
	if strings.ContainsFunc(name, odd) { // all but those that tools give are plain
		o.b = append(o.b, encode(name)...)
	} else {
		o.b = append(append(append(o.b, '"'), name...), '"')
	}
	o.b = append(o.b, ':')
}

// raw adds a value that is JSON already.
func (o *object) raw(name string, value []byte) {
	o.name(name)
	o.b = append(o.b, value...)
}

// value adds a value that can be encoded.
func (o *object) value(name string, value any) {
	o.name(name)
	o.b = append(o.b, encode(value)...)
}

func (o *object) text(name, value string) {
	if !isPlain(value) {
		o.value(name, value)
		return
	}
	o.name(name)
	o.b = append(o.b, '"')
	o.b = append(o.b, value...)
	o.b = append(o.b, '"')
}

// isPlain reports whether a text is in JSON as it is.
func isPlain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

func (o *object) textIf(name, value string) {
	if value != "" {
		o.value(name, value)
	}
}

// list adds an array of values that are JSON already.
func (o *object) list(name string, values [][]byte) {
	o.name(name)
	o.b = append(o.b, '[')
	o.b = append(o.b, bytes.Join(values, []byte{','})...)
	o.b = append(o.b, ']')
}

// end closes the object and returns it.
func (o *object) end() []byte { return append(o.b, '}') }

// encode is a value as JSON, with no character escaped that needn't be. The value
// is one that can be encoded.
func encode(value any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return []byte("null")
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// isObject reports whether a text is one JSON object, fit to be a part of a message.
func isObject(raw []byte) bool {
	raw = bytes.TrimSpace(raw)
	return len(raw) > 0 && raw[0] == '{' && isFit(raw)
}

// isFit reports whether a text is JSON that can be a part of a message: around what
// nests too deep the SDK can't write one, and answers nothing at all.
func isFit(raw []byte) bool { return json.Valid(raw) && wire.Nesting(raw) <= maxDepth }
