package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
)

// A member is one member of a JSON object.
type member struct {
	name  string
	value json.RawMessage
}

// membersOf returns the members of a JSON object in the order in which they were
// written. Of a name that is there twice, the last one counts, as it does to
// encoding/json.
func membersOf(raw json.RawMessage) ([]member, error) {
	if !isObject(bytes.TrimSpace(raw)) {
		return nil, errors.New("it is not an object")
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	if _, err := dec.Token(); err != nil {
		return nil, err
	}
	var all []member
	at := make(map[string]int)
	for dec.More() {
		token, err := dec.Token()
		if err != nil {
			return nil, err
		}
		m := member{name: token.(string)} // keys of an object are
		if err := dec.Decode(&m.value); err != nil {
			return nil, err
		}
		if i, twice := at[m.name]; twice {
			all[i] = m
			continue
		}
		at[m.name] = len(all)
		all = append(all, m)
	}
	if _, err := dec.Token(); err != nil {
		return nil, err
	}
	return all, nil
}
