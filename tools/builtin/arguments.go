package builtin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/agnivade/levenshtein"

	"crewhost/tools"
)

// arguments are a call's arguments while a tool takes them. Each method takes one
// and notes what is wrong with it; fault gives the notes, all at once.
type arguments struct {
	tool   string
	params []string
	values map[string]json.RawMessage
	faults []string
}

// decode reads one JSON object. A null member is an absent one: models write
// null for what they don't set (K29).
func decode(raw json.RawMessage, params []string) (*arguments, error) {
	a := &arguments{params: params, values: map[string]json.RawMessage{}}
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || string(raw) == "null" {
		return a, nil
	}
	if !json.Valid(raw) || raw[0] != '{' {
		return nil, errors.New("the arguments are not one JSON object")
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	if _, err := dec.Token(); err != nil {
		return nil, err
	}
	for dec.More() {
		token, err := dec.Token()
		if err != nil {
			return nil, err
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, err
		}
		name := token.(string)
		_, twice := a.values[name]
		switch {
		case !slices.Contains(params, name):
			a.note("there is no argument %q%s", shorten(name), didYouMean(name, params))
		case twice:
			a.note("the argument %q is given twice", name)
		case string(value) != "null":
			a.values[name] = value
		}
	}
	return a, nil
}

func (a *arguments) note(format string, args ...any) {
	const most = 20 // a foreign object may hold thousands
	if len(a.faults) < most {
		a.faults = append(a.faults, fmt.Sprintf(format, args...))
	}
}

// fault returns the result that tells the model all that is wrong, if anything.
func (a *arguments) fault() (tools.Result, bool) {
	if len(a.faults) == 0 {
		return tools.Result{}, false
	}
	return failuref("Bad arguments for %s: %s. Its arguments are: %s.",
		a.tool, strings.Join(a.faults, "; "), strings.Join(a.params, ", ")), true
}

// has reports whether the argument is given.
func (a *arguments) has(name string) bool { return a.values[name] != nil }

// need takes a string that must be given.
func (a *arguments) need(name string) string {
	if !a.has(name) {
		a.note("the argument %q is missing", name)
	}
	return a.text(name, "")
}

// text takes a string.
func (a *arguments) text(name, fallback string) string {
	raw := a.values[name]
	if raw == nil {
		return fallback
	}
	s, ok := asString(raw)
	if !ok {
		a.note("the argument %q must be a string, and is %s", name, kindOf(raw))
	}
	return s
}

// oneOf takes one of some words.
func (a *arguments) oneOf(name, fallback string, words ...string) string {
	s := a.text(name, fallback)
	if a.has(name) && s != "" && !slices.Contains(words, s) {
		a.note("the argument %q is %q, and must be one of %s%s", name, shorten(s), strings.Join(words, ", "), didYouMean(s, words))
	}
	if s == "" {
		return fallback
	}
	return s
}

// flag takes a boolean, or "true" or "false" as a string.
func (a *arguments) flag(name string) bool {
	raw := a.values[name]
	if raw == nil {
		return false
	}
	switch text, _ := asString(raw); {
	case string(raw) == "true" || text == "true":
		return true
	case string(raw) == "false" || text == "false":
		return false
	}
	a.note("the argument %q must be true or false, and is %s", name, kindOf(raw))
	return false
}

// integer takes a whole number in a range, or a string that is one.
func (a *arguments) integer(name string, fallback, low, high int) int {
	raw := a.values[name]
	if raw == nil {
		return fallback
	}
	text := string(raw)
	if s, ok := asString(raw); ok {
		text = strings.TrimSpace(s)
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		// 5.0 and 5e2 are whole numbers, too.
		f, ferr := strconv.ParseFloat(text, 64)
		if ferr != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
			a.note("the argument %q must be a whole number, and is %s", name, kindOf(raw))
			return fallback
		}
		n = int(f)
	}
	if n < low || n > high {
		a.note("the argument %q is %d, and must be from %d to %d", name, n, low, high)
		return fallback
	}
	return n
}

// fraction takes a number from 0 to 1, or a string that is one.
func (a *arguments) fraction(name string) float64 {
	raw := a.values[name]
	if raw == nil {
		return 0
	}
	text := string(raw)
	if s, ok := asString(raw); ok {
		text = strings.TrimSpace(s)
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || !(f >= 0 && f <= 1) {
		a.note("the argument %q must be a number from 0 to 1, and is %s", name, kindOf(raw))
		return 0
	}
	return f
}

// list takes a list of strings.
func (a *arguments) list(name string) []string {
	raw := a.values[name]
	if raw == nil {
		return nil
	}
	var items []json.RawMessage
	if json.Unmarshal(raw, &items) != nil {
		a.note("the argument %q must be a list of strings, and is %s", name, kindOf(raw))
		return nil
	}
	var texts []string
	for i, item := range items {
		s, ok := asString(item)
		if !ok {
			a.note("item %d of the argument %q must be a string, and is %s", i+1, name, kindOf(item))
		}
		texts = append(texts, s)
	}
	return texts
}

func asString(raw json.RawMessage) (string, bool) {
	if len(raw) == 0 || raw[0] != '"' {
		return "", false
	}
	var s string
	return s, json.Unmarshal(raw, &s) == nil
}

// kindOf says what a JSON value is, with its text where that is short.
func kindOf(raw json.RawMessage) string {
	switch raw[0] {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "the string " + shorten(string(raw))
	}
	return shorten(string(raw))
}

func shorten(s string) string {
	const most = 60
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "..."
	}
	return s
}

// didYouMean names the known word that is nearest to word, if one is near.
func didYouMean(word string, known []string) string {
	best, least := "", 0
	for _, k := range known {
		if len(word) > 64 {
			break
		}
		d := levenshtein.ComputeDistance(strings.ToLower(word), k)
		if d <= max(1, len(k)/2) && (best == "" || d < least) {
			best, least = k, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %q?)", best)
}
