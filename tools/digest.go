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

// Digests returns the digests of the definition. Neither the spaces in a schema nor
// the order of its keys count; which server offers the tool doesn't, either.
func (d Definition) Digests() Digests {
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

// digest is that of v as JSON, whose keys are in order.
func digest(v any) string {
	data, err := json.Marshal(v)
	if err != nil { // of values that were JSON before
		data = []byte(err.Error())
	}
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// canonical is a schema as a value whose numbers keep their digits; one that is no
// JSON is its text.
func canonical(schema json.RawMessage) any {
	if len(bytes.TrimSpace(schema)) == 0 {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(schema))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return string(schema)
	}
	return v
}
