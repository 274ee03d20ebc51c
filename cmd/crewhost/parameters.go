package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// parameter is one of a tool's, as its schema has it, for people.
type parameter struct {
	Name     string
	Type     string // in words; empty: not said
	Required bool
	Default  string // as JSON; empty: none
	Bounds   string // in words; empty: none
	Text     string // what the schema says of it
	types    []string
}

// property is what is read of the schema of a parameter. What is not known is left out.
type property struct {
	Type        json.RawMessage   `json:"type"`
	Description string            `json:"description"`
	Default     json.RawMessage   `json:"default"`
	Enum        []json.RawMessage `json:"enum"`
	Items       *property         `json:"items"`
	AnyOf       []property        `json:"anyOf"`
	OneOf       []property        `json:"oneOf"`
	Minimum     json.Number       `json:"minimum"`
	Maximum     json.Number       `json:"maximum"`
	MinLength   json.Number       `json:"minLength"`
	MaxLength   json.Number       `json:"maxLength"`
	MinItems    json.Number       `json:"minItems"`
	MaxItems    json.Number       `json:"maxItems"`
}

// parametersOf reads a schema: those that are required first, and all in its order.
func parametersOf(schema json.RawMessage) []parameter {
	var s struct {
		Properties json.RawMessage `json:"properties"`
		Required   []string        `json:"required"`
	}
	if json.Unmarshal(schema, &s) != nil {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(s.Properties))
	if _, err := dec.Token(); err != nil {
		return nil
	}
	var all []parameter
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil
		}
		var p property
		var raw json.RawMessage
		if dec.Decode(&raw) != nil || json.Unmarshal(raw, &p) != nil {
			continue
		}
		text, _ := name.(string)
		one := parameter{
			Name: text, Type: p.words(), Required: slices.Contains(s.Required, text), Default: string(p.Default),
			Bounds: p.bounds(), Text: p.Description, types: p.types(),
		}
		all = append(all, one)
	}
	slices.SortStableFunc(all, func(a, b parameter) int { return rank(a) - rank(b) })
	return all
}

func rank(p parameter) int {
	if p.Required {
		return 0
	}
	return 1
}

// types are the names of JSON Schema for what a value may be.
func (p property) types() []string {
	var one string
	var many []string
	switch {
	case json.Unmarshal(p.Type, &one) == nil && one != "":
		return []string{one}
	case json.Unmarshal(p.Type, &many) == nil:
		return many
	}
	for _, of := range slices.Concat(p.AnyOf, p.OneOf) {
		many = append(many, of.types()...)
	}
	return many
}

// words say what a value may be.
func (p property) words() string {
	var words []string
	for _, t := range p.types() {
		if t == "array" {
			t = "list"
			if p.Items != nil && p.Items.words() != "" {
				t += " of " + p.Items.words() + "s"
			}
		}
		if !slices.Contains(words, t) {
			words = append(words, t)
		}
	}
	return strings.Join(words, " or ")
}

// bounds say what else holds of a value.
func (p property) bounds() string {
	var parts []string
	if len(p.Enum) > 0 {
		var words []string
		for _, e := range p.Enum {
			words = append(words, strings.Trim(string(e), `"`))
		}
		parts = append(parts, "one of "+strings.Join(words, ", "))
	}
	between := func(low, high json.Number, unit string) {
		switch {
		case low != "" && high != "":
			parts = append(parts, fmt.Sprintf("%s to %s%s", low, high, unit))
		case low != "":
			parts = append(parts, fmt.Sprintf("at least %s%s", low, unit))
		case high != "":
			parts = append(parts, fmt.Sprintf("at most %s%s", high, unit))
		}
	}
	between(p.Minimum, p.Maximum, "")
	if p.MinLength == "1" && p.MaxLength == "" {
		parts = append(parts, "not empty")
	} else {
		between(p.MinLength, p.MaxLength, " characters")
	}
	between(p.MinItems, p.MaxItems, " items")
	return strings.Join(parts, "; ")
}
