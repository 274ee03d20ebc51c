package native

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/agnivade/levenshtein"

	"crewhost/tools"
)

// Arguments are a call's arguments while a tool takes them. Each method takes one
// and notes what is wrong with it; [Arguments.Fault] gives the notes, all at once.
type Arguments struct {
	tool   string
	params []string
	values map[string]json.RawMessage
	faults []string
}

// decode reads one JSON object. A null member is an absent one: models write
// null for what they don't set (K29).
func decode(raw json.RawMessage, params []string) (*Arguments, error) {
	a := &Arguments{params: params, values: map[string]json.RawMessage{}}
	raw = bytes.Trim(raw, " \t\r\n")
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
			a.Note("there is no argument %q%s", Shorten(name), DidYouMean(name, params))
		case twice:
			a.Note("the argument %q is given twice", name)
		case string(value) != "null":
			a.values[name] = value
		}
	}
	return a, nil
}

func (a *Arguments) Note(format string, args ...any) {
	const most = 20 // a foreign object may hold thousands
	if len(a.faults) < most {
		a.faults = append(a.faults, fmt.Sprintf(format, args...))
	}
}

// Fault returns the result that tells the model all that is wrong, if anything.
func (a *Arguments) Fault() (tools.Result, bool) {
	if len(a.faults) == 0 {
		return tools.Result{}, false
	}
	return Failuref("Bad arguments for %s: %s. Its arguments are: %s.",
		a.tool, strings.Join(a.faults, "; "), strings.Join(a.params, ", ")), true
}

// Has reports whether the argument is given.
func (a *Arguments) Has(name string) bool { return a.values[name] != nil }

// Need takes a string that must be given.
func (a *Arguments) Need(name string) string {
	if !a.Has(name) {
		a.Note("the argument %q is missing", name)
	}
	return a.Text(name, "")
}

// Text takes a string.
func (a *Arguments) Text(name, fallback string) string {
	raw := a.values[name]
	if raw == nil {
		return fallback
	}
	s, ok := asString(raw)
	if !ok {
		a.Note("the argument %q must be a string, and is %s", name, kindOf(raw))
	}
	return s
}

// OneOf takes one of some words.
func (a *Arguments) OneOf(name, fallback string, words ...string) string {
	s := a.Text(name, fallback)
	if a.Has(name) && s != "" && !slices.Contains(words, s) {
		a.Note("the argument %q is %q, and must be one of %s%s", name, Shorten(s), strings.Join(words, ", "), DidYouMean(s, words))
	}
	if s == "" {
		return fallback
	}
	return s
}

// Flag takes a boolean, or "true" or "false" as a string.
func (a *Arguments) Flag(name string) bool {
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
	a.Note("the argument %q must be true or false, and is %s", name, kindOf(raw))
	return false
}

// Integer takes a whole number in a range, or a string that is one.
func (a *Arguments) Integer(name string, fallback, low, high int) int {
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
			a.Note("the argument %q must be a whole number, and is %s", name, kindOf(raw))
			return fallback
		}
		n = int(f)
	}
	if n < low || n > high {
		a.Note("the argument %q is %d, and must be from %d to %d", name, n, low, high)
		return fallback
	}
	return n
}

// Fraction takes a number from 0 to 1, or a string that is one.
func (a *Arguments) Fraction(name string) float64 {
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
		a.Note("the argument %q must be a number from 0 to 1, and is %s", name, kindOf(raw))
		return 0
	}
	return f
}

// List takes a list of strings.
func (a *Arguments) List(name string) []string {
	raw := a.values[name]
	if raw == nil {
		return nil
	}
	var items []json.RawMessage
	if json.Unmarshal(raw, &items) != nil {
		a.Note("the argument %q must be a list of strings, and is %s", name, kindOf(raw))
		return nil
	}
	var texts []string
	for i, item := range items {
		s, ok := asString(item)
		if !ok {
			a.Note("item %d of the argument %q must be a string, and is %s", i+1, name, kindOf(item))
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
		return "the string " + Shorten(string(raw))
	}
	return Shorten(string(raw))
}

// Shorten is s as a message may quote it.
func Shorten(s string) string {
	const most = 60
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "..."
	}
	return s
}

// DidYouMean names the known word that is nearest to word, if one is near.
func DidYouMean(word string, known []string) string {
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

// Within notes a text of more than max characters.
func (a *Arguments) Within(name, text string, max int) {
	if utf8.RuneCountInString(text) > max {
		a.Note("the argument %q is longer than %d characters", name, max)
	}
}

// Raw returns the JSON of an argument, as it was given; nil where it wasn't.
func (a *Arguments) Raw(name string) json.RawMessage { return a.values[name] }

// Object takes an object whose members are strings, numbers or booleans, and returns
// them as text, sorted by name.
func (a *Arguments) Object(name string) []Member {
	raw := a.values[name]
	if raw == nil {
		return nil
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(raw, &object) != nil {
		a.Note("the argument %q must be an object, and is %s", name, kindOf(raw))
		return nil
	}
	var members []Member
	for _, key := range slices.Sorted(maps.Keys(object)) { // and so are the notes
		value := object[key]
		text, ok := asString(value)
		switch {
		case ok:
		case len(value) > 0 && strings.IndexByte("{[n", value[0]) < 0:
			text = string(value)
		default:
			a.Note("%s of the argument %q must be a string, and is %s", Shorten(key), name, kindOf(value))
		}
		members = append(members, Member{key, text})
	}
	return members
}

// Member is a member of an object.
type Member struct{ Name, Text string }
