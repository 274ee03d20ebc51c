package web

import (
	"bytes"
	"encoding/json"
)

// maxFew is how many entries of a list are taken: more than any API gives at once.
const maxFew = 1_000

// few is the first entries of a list of JSON. An entry that is short to write may be
// large to keep, and a body holds millions of such.
type few[T any] []T

// UnmarshalJSON implements [json.Unmarshaler].
func (f *few[T]) UnmarshalJSON(data []byte) error {
	*f = nil
	if string(data) == "null" {
		return nil
	}
	if data[0] != '[' {
		return json.Unmarshal(data, (*[]T)(f)) // which says what it is
	}
	d := json.NewDecoder(bytes.NewReader(data))
	if _, err := d.Token(); err != nil {
		return err
	}
	for len(*f) < maxFew && d.More() {
		var entry T
		if err := d.Decode(&entry); err != nil {
			return err
		}
		*f = append(*f, entry)
	}
	return nil
}
