package tools

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// Digests are what a definition is told apart by: of each part on its own, so that
// it can be said what changed, and of all of it. Each is "sha256:" and hex digits.
type Digests struct {
	Description string // with the title
	Schema      string // of the arguments and of what comes back
	Definition  string // the whole, name and annotations included
}

// Digests returns the digests of the definition, as its server gave it. Neither the
// spaces in a schema nor the order of its keys count; which server offers the tool
// doesn't, either.
func (d Definition) Digests() Digests {
	if d.Given != nil {
		return *d.Given
	}
	type text struct{ Title, Description string }
	type schemas struct{ Input, Output any }
	texts, shapes := text{d.Title, d.Description}, schemas{canonical(d.InputSchema), canonical(d.OutputSchema)}
	return Digests{
		Description: digest(texts),
		Schema:      digest(shapes),
		Definition: digest(struct {
			Name        string
			Texts       text
			Schemas     schemas
			Annotations Annotations
		}{d.ServerName(), texts, shapes, d.Annotations}),
	}
}

// DigestJSON is the digest of one JSON value, in which neither the spaces nor the order
// of keys count.
func DigestJSON(data json.RawMessage) string { return digest(canonical(data)) }

// digest is that of v as JSON, whose keys are in order.
func digest(v any) string {
	data, err := json.Marshal(v)
	if err != nil { // of values that were JSON before
		data = []byte(err.Error())
	}
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// canonical is a schema as a value whose numbers keep their digits. One that is no
// JSON is its text, and so is one that names a key twice: a reader of the text sees
// both, and the value has one.
func canonical(schema json.RawMessage) any {
	if len(bytes.TrimSpace(schema)) == 0 {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(schema))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil || entries(v) != members(schema) {
		return string(schema)
	}
	return v
}

// entries counts the keys of all objects in v.
func entries(v any) int {
	n := 0
	switch v := v.(type) {
	case map[string]any:
		n = len(v)
		for _, item := range v {
			n += entries(item)
		}
	case []any:
		for _, item := range v {
			n += entries(item)
		}
	}
	return n
}

// members counts the keys of all objects in a text of JSON, each as often as it is
// there: a colon outside of strings is one.
func members(text []byte) int {
	n, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case c == ':' && !quoted:
			n++
		}
	}
	return n
}
