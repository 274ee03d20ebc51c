package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/mail"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"crewhost/config/secret"
)

// FieldKind is the kind of value that a field takes.
type FieldKind string

// The kinds of fields.
const (
	FieldText    FieldKind = "text"
	FieldInteger FieldKind = "integer"
	FieldNumber  FieldKind = "number"
	FieldBoolean FieldKind = "boolean" // true or false
	FieldChoice  FieldKind = "choice"  // one of Choices
	FieldChoices FieldKind = "choices" // some of Choices
)

// Field is one field of a form, as a property of a flat JSON Schema describes it.
type Field struct {
	Name        string
	Title       string // may be empty
	Description string // may be empty
	Kind        FieldKind
	Required    bool
	Choices     []Choice

	// Default is the server's proposal in the form that Parse takes, where
	// HasDefault is set. It is never sent unless a person takes it.
	Default    string
	HasDefault bool
	// Declared is the answer that the settings declare for a field of this
	// name, or zero. It may hold a secret.
	Declared secret.Text

	format   string
	pattern  *regexp.Regexp
	from, to *float64 // of a number, of a text's characters, of how many are chosen
	above    bool     // from itself is not allowed
	below    bool     // to itself is not allowed
}

// Choice is one value that may be chosen.
type Choice struct{ Value, Title string }

// Limits of a form.
const (
	maxFields    = 50
	maxChoices   = 500
	maxFieldName = 128      // bytes
	maxFieldText = 2 << 10  // bytes of a title, a description, a choice
	maxValue     = 64 << 10 // bytes of a value
)

// fields reads the schema of a form: a flat object whose properties are plain
// values. They keep the order in which they were written.
func fields(raw json.RawMessage, redact func(string) string) ([]Field, error) {
	if raw = bytes.TrimSpace(raw); len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	var s struct {
		Type       json.RawMessage `json:"type"`
		Properties json.RawMessage `json:"properties"`
		Required   []string        `json:"required"`
	}
	if err := json.Unmarshal(raw, &s); err != nil || len(s.Type) > 0 && string(s.Type) != `"object"` {
		return nil, errors.New("the schema of its form is not that of an object")
	}
	if len(s.Properties) == 0 {
		return nil, nil
	}
	properties, err := membersOf(s.Properties)
	if err != nil {
		return nil, errors.New("the schema of its form has no list of properties")
	}
	if len(properties) > maxFields {
		return nil, fmt.Errorf("its form has %d fields; at most %d are taken", len(properties), maxFields)
	}
	var all []Field
	for _, p := range properties {
		if p.name == "" || len(p.name) > maxFieldName || oneLine(p.name, maxFieldName) != p.name {
			return nil, errors.New("a field of its form has a name that can't be shown")
		}
		f, err := field(p.value, redact)
		if err != nil {
			return nil, fmt.Errorf("the field %q of its form %w", p.name, err)
		}
		f.Name, f.Required = p.name, slices.Contains(s.Required, p.name)
		all = append(all, f)
	}
	for _, name := range s.Required {
		if !slices.ContainsFunc(all, func(f Field) bool { return f.Name == name }) {
			return nil, fmt.Errorf("its form requires a field that it does not describe, %q", oneLine(name, maxFieldName))
		}
	}
	return all, nil
}

// property is the schema of a field.
type property struct {
	Type             string            `json:"type"`
	Title            string            `json:"title"`
	Description      string            `json:"description"`
	Default          json.RawMessage   `json:"default"`
	Format           string            `json:"format"`
	Pattern          string            `json:"pattern"`
	MinLength        *float64          `json:"minLength"`
	MaxLength        *float64          `json:"maxLength"`
	Minimum          *float64          `json:"minimum"`
	Maximum          *float64          `json:"maximum"`
	ExclusiveMinimum *float64          `json:"exclusiveMinimum"`
	ExclusiveMaximum *float64          `json:"exclusiveMaximum"`
	MinItems         *float64          `json:"minItems"`
	MaxItems         *float64          `json:"maxItems"`
	Enum             []json.RawMessage `json:"enum"`
	EnumNames        []string          `json:"enumNames"`
	OneOf            []constant        `json:"oneOf"`
	AnyOf            []constant        `json:"anyOf"`
	Items            *property         `json:"items"`
}

type constant struct {
	Const *string `json:"const"`
	Title string  `json:"title"`
}

// field reads the schema of one property. The error goes on after the field's name.
func field(raw json.RawMessage, redact func(string) string) (Field, error) {
	var p property
	if err := json.Unmarshal(raw, &p); err != nil {
		return Field{}, errors.New("has a schema that can't be read")
	}
	f := Field{
		Title:       oneLine(redact(p.Title), maxFieldText),
		Description: oneLine(redact(p.Description), maxFieldText),
		from:        p.Minimum, to: p.Maximum,
	}
	chosen := len(p.Enum)+len(p.OneOf)+len(p.AnyOf) > 0
	switch {
	case p.Type == "array" && p.Items != nil && (p.Items.Type == "" || p.Items.Type == "string"):
		f.Kind, f.from, f.to = FieldChoices, p.MinItems, p.MaxItems
		p.Enum, p.EnumNames, p.OneOf, p.AnyOf = p.Items.Enum, p.Items.EnumNames, p.Items.OneOf, p.Items.AnyOf
	case (p.Type == "string" || p.Type == "") && chosen:
		f.Kind = FieldChoice
	case chosen:
		return Field{}, errors.New("has choices that are not texts")
	case p.Type == "string":
		f.Kind, f.from, f.to, f.format = FieldText, p.MinLength, p.MaxLength, p.Format
		if p.Pattern != "" && len(p.Pattern) <= maxFieldText {
			// What is no pattern here may be one there: the server checks, too.
			f.pattern, _ = regexp.Compile(p.Pattern)
		}
	case p.Type == "integer", p.Type == "number":
		f.Kind = FieldKind(p.Type)
		if p.ExclusiveMinimum != nil {
			f.from, f.above = p.ExclusiveMinimum, true
		}
		if p.ExclusiveMaximum != nil {
			f.to, f.below = p.ExclusiveMaximum, true
		}
	case p.Type == "boolean":
		f.Kind = FieldBoolean
	default:
		return Field{}, errors.New("is no plain value")
	}
	if f.Kind == FieldChoice || f.Kind == FieldChoices {
		if err := f.choose(p, redact); err != nil {
			return Field{}, err
		}
	}
	f.propose(p.Default)
	return f, nil
}

// choose takes over the choices of a property.
func (f *Field) choose(p property, redact func(string) string) error {
	add := func(value, title string) error {
		if oneLine(value, maxFieldText) != value || slices.ContainsFunc(f.Choices, func(c Choice) bool { return c.Value == value }) {
			return errors.New("has a choice that can't be shown")
		}
		f.Choices = append(f.Choices, Choice{Value: value, Title: oneLine(redact(title), maxFieldText)})
		return nil
	}
	titled := slices.Concat(p.OneOf, p.AnyOf)
	if n := len(p.Enum) + len(titled); n == 0 || n > maxChoices {
		return fmt.Errorf("has %d choices; from 1 to %d are taken", n, maxChoices)
	}
	for i, raw := range p.Enum {
		var value string
		if json.Unmarshal(raw, &value) != nil {
			return errors.New("has choices that are not texts")
		}
		title := ""
		if len(p.EnumNames) == len(p.Enum) {
			title = p.EnumNames[i]
		}
		if err := add(value, title); err != nil {
			return err
		}
	}
	for _, c := range titled {
		if c.Const == nil {
			return errors.New("has choices that are not texts")
		}
		if err := add(*c.Const, c.Title); err != nil {
			return err
		}
	}
	return nil
}

// propose takes over a default if it is a value of the field.
func (f *Field) propose(raw json.RawMessage) {
	if len(raw) == 0 || string(raw) == "null" {
		return
	}
	text := string(raw)
	if f.Kind == FieldText || f.Kind == FieldChoice {
		var s string
		if json.Unmarshal(raw, &s) != nil || oneLine(s, maxFieldText) != s {
			return
		}
		text = s
	}
	var several []string
	if f.Kind == FieldChoices && json.Unmarshal(raw, &several) == nil {
		if joined := strings.Join(several, ", "); strings.Count(joined, ",") == len(several)-1 {
			text = joined // as a person would write it
		}
	}
	if _, err := f.Parse(text); err == nil {
		f.Default, f.HasDefault = text, true
	}
}

// Parse returns the JSON of a value that is given as text: the text itself, a
// number, true or false, the value of a choice, or several of them, separated by
// commas or as a JSON array. The error says in a few words, fit for whoever wrote
// the text, why it is no value of the field; it does not repeat the text.
func (f Field) Parse(text string) (json.RawMessage, error) {
	if len(text) > maxValue {
		return nil, fmt.Errorf("it is longer than %d KiB", maxValue>>10)
	}
	switch f.Kind {
	case FieldInteger, FieldNumber:
		return f.number(strings.TrimSpace(text))
	case FieldBoolean:
		if text = strings.TrimSpace(text); text != "true" && text != "false" {
			return nil, errors.New("it must be true or false")
		}
		return json.RawMessage(text), nil
	case FieldChoice:
		if !f.has(text) {
			return nil, errors.New("it must be one of the choices")
		}
		return quoted(text)
	case FieldChoices:
		return f.several(text)
	default:
		return f.text(text)
	}
}

func (f Field) has(value string) bool {
	return slices.ContainsFunc(f.Choices, func(c Choice) bool { return c.Value == value })
}

func (f Field) number(text string) (json.RawMessage, error) {
	if text == "" || text[0] != '-' && (text[0] < '0' || text[0] > '9') || !json.Valid([]byte(text)) {
		return nil, errors.New("it must be a number")
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil, errors.New("the number is too large")
	}
	if f.Kind == FieldInteger && strings.ContainsAny(text, ".eE") {
		return nil, errors.New("it must be a whole number")
	}
	if !f.within(n) {
		return nil, fmt.Errorf("it must be %s", f.bounds(""))
	}
	return json.RawMessage(text), nil // digit for digit (K31)
}

func (f Field) several(text string) (json.RawMessage, error) {
	var values []string
	if strings.HasPrefix(strings.TrimSpace(text), "[") {
		if json.Unmarshal([]byte(text), &values) != nil {
			return nil, errors.New("it must be a list of choices")
		}
	} else {
		for value := range strings.SplitSeq(text, ",") {
			if value = strings.TrimSpace(value); value != "" {
				values = append(values, value)
			}
		}
	}
	for i, value := range values {
		switch {
		case !f.has(value):
			return nil, errors.New("each must be one of the choices")
		case slices.Contains(values[:i], value):
			return nil, errors.New("a choice is there twice")
		}
	}
	if !f.within(float64(len(values))) {
		return nil, fmt.Errorf("choose %s", f.bounds(""))
	}
	if values == nil {
		values = []string{}
	}
	return quoted(values)
}

func (f Field) text(text string) (json.RawMessage, error) {
	switch {
	case !utf8.ValidString(text):
		return nil, errors.New("it must be a text")
	case !f.within(float64(utf8.RuneCountInString(text))):
		return nil, fmt.Errorf("it must have %s", f.bounds(" characters"))
	case f.pattern != nil && !f.pattern.MatchString(text):
		return nil, fmt.Errorf("it must match %s", oneLine(f.pattern.String(), maxFieldText))
	}
	var err error
	switch f.format {
	case "email":
		var a *mail.Address
		if a, err = mail.ParseAddress(text); err == nil && a.Address != text {
			err = errors.New("more than an address")
		}
	case "uri":
		var u *url.URL
		if u, err = url.Parse(text); err == nil && !u.IsAbs() {
			err = errors.New("relative")
		}
	case "date":
		_, err = time.Parse(time.DateOnly, text)
	case "date-time":
		_, err = time.Parse(time.RFC3339, text)
	}
	if err != nil {
		return nil, fmt.Errorf("it must be %s", formats(f.format))
	}
	return quoted(text)
}

// formats says what a format means.
func formats(format string) string {
	switch format {
	case "email":
		return "an e-mail address"
	case "uri":
		return "a URL with its scheme"
	case "date":
		return "a date such as 2026-07-28"
	case "date-time":
		return "a date and time such as 2026-07-28T09:30:00Z"
	}
	return ""
}

func (f Field) within(n float64) bool {
	return (f.from == nil || n > *f.from || n == *f.from && !f.above) &&
		(f.to == nil || n < *f.to || n == *f.to && !f.below)
}

// bounds says what a number, or a count of what unit says, must be.
func (f Field) bounds(unit string) string {
	number := func(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }
	low, high := "at least ", "at most "
	if f.above {
		low = "more than "
	}
	if f.below {
		high = "less than "
	}
	switch {
	case f.from != nil && f.to != nil && !f.above && !f.below:
		return "from " + number(*f.from) + " to " + number(*f.to) + unit
	case f.from != nil && f.to != nil:
		return low + number(*f.from) + " and " + high + number(*f.to) + unit
	case f.from != nil:
		return low + number(*f.from) + unit
	case f.to != nil:
		return high + number(*f.to) + unit
	}
	return ""
}

// Takes says in a few words what the field takes, such as "a whole number, from 1
// to 10". It is empty where any text will do.
func (f Field) Takes() string {
	var kind string
	bounds := f.bounds("")
	switch f.Kind {
	case FieldInteger:
		kind = "a whole number"
	case FieldNumber:
		kind = "a number"
	case FieldBoolean:
		return "yes or no"
	case FieldChoice:
		return "one of the choices"
	case FieldChoices:
		kind = "some of the choices"
	default:
		kind, bounds = formats(f.format), f.bounds(" characters")
	}
	if kind == "" || bounds == "" {
		return kind + bounds
	}
	return kind + ", " + bounds
}

// quoted is the JSON of a text or of several.
func quoted(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(b.Bytes()), nil
}
