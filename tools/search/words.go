package search

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/kljensen/snowball/english"

	"crewhost/tools"
)

// How much of a text is read, in bytes, and how much of a schema.
const (
	maxQuery  = 1 << 10
	maxText   = 4 << 10
	maxSchema = 256 << 10
	maxDepth  = 4 // of parameters of parameters
)

// texts are the fields of a definition.
func texts(d tools.Definition) [fields]string {
	var out [fields]string
	out[inName] = cut(d.Name, maxText)
	if d.Server != "" && !strings.Contains(d.Name, d.Server) {
		out[inTitle] = d.Server + " "
	}
	out[inTitle] += cut(d.Title, maxText)
	out[inDescription] = cut(d.Description, maxText)
	if len(d.InputSchema) > maxSchema {
		return out
	}
	var s schema
	if json.Unmarshal(d.InputSchema, &s) != nil {
		return out
	}
	var names, explained strings.Builder
	s.read(&names, &explained, maxDepth)
	out[inParameters], out[inExplanations] = names.String(), explained.String()
	return out
}

// A schema is what of a JSON Schema says something of a tool. What is of another
// shape than it should be says nothing.
type schema struct {
	Title, Description text
	Enum               values
	Properties         members
	Items              *schema
	AnyOf, OneOf       []schema
}

type text string

func (t *text) UnmarshalJSON(b []byte) error {
	var s string
	if json.Unmarshal(b, &s) == nil {
		*t = text(s)
	}
	return nil
}

type values []string

func (v *values) UnmarshalJSON(b []byte) error {
	var all []any
	if json.Unmarshal(b, &all) != nil {
		return nil
	}
	for _, one := range all {
		if s, ok := one.(string); ok {
			*v = append(*v, s)
		}
	}
	return nil
}

type members map[string]schema

func (m *members) UnmarshalJSON(b []byte) error {
	var all map[string]json.RawMessage
	if json.Unmarshal(b, &all) != nil {
		return nil
	}
	*m = members{}
	for name, raw := range all {
		var s schema
		_ = json.Unmarshal(raw, &s) // true and false are schemas too
		(*m)[name] = s
	}
	return nil
}

// read collects the names of parameters, and what is said of them.
func (s schema) read(names, explained *strings.Builder, depth int) {
	add := func(b *strings.Builder, text string) {
		if b.Len()+len(text) < maxText {
			b.WriteString(text)
			b.WriteByte(' ')
		}
	}
	add(explained, string(s.Title))
	add(explained, string(s.Description))
	for _, v := range s.Enum {
		add(explained, v)
	}
	if depth == 0 {
		return
	}
	properties := make([]string, 0, len(s.Properties))
	for name := range s.Properties {
		properties = append(properties, name)
	}
	slices.Sort(properties) // the same are left out each time where there are too many
	for _, name := range properties {
		add(names, name)
		s.Properties[name].read(names, explained, depth-1)
	}
	if s.Items != nil {
		s.Items.read(names, explained, depth-1)
	}
	for _, one := range slices.Concat(s.AnyOf, s.OneOf) {
		one.read(names, explained, depth-1)
	}
}

// cut is a text of at most so many bytes.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}

// A language is what is known of the words of definitions and queries. It does not
// change.
type language struct {
	stop, vague map[string]bool
	synonyms    map[string][]string
}

func newLanguage() *language {
	known := map[string]string{}
	l := &language{stop: map[string]bool{}, vague: map[string]bool{}, synonyms: map[string][]string{}}
	for word := range strings.FieldsSeq(stopWords) {
		l.stop[word] = true
	}
	for word := range strings.FieldsSeq(vagueWords) {
		l.vague[stem(word, known)] = true
	}
	for line := range strings.Lines(synonymWords) {
		var group []string
		for word := range strings.FieldsSeq(line) {
			if s := stem(word, known); !slices.Contains(group, s) {
				group = append(group, s)
			}
		}
		for _, s := range group {
			for _, other := range group {
				if other != s && !slices.Contains(l.synonyms[s], other) {
					l.synonyms[s] = append(l.synonyms[s], other)
				}
			}
		}
	}
	return l
}

// words are the stems of a text, in its order, without those that are in every
// text. known are stems that were found before; many tools have the same.
func (l *language) words(text string, known map[string]string) []string {
	var out []string
	for _, word := range split(text) {
		if !l.stop[word] {
			out = append(out, stem(word, known))
		}
	}
	return out
}

func stem(word string, known map[string]string) string {
	if len(word) < 3 || !isLetters(word) {
		return word
	}
	stem, ok := known[word]
	if !ok {
		stem = english.Stem(word, true)
		known[word] = stem
	}
	return stem
}

func isLetters(word string) bool {
	for i := range len(word) {
		if word[i] < 'a' || word[i] > 'z' {
			return false
		}
	}
	return true
}

// split cuts a text where anything but a letter or a digit stands, where a word
// written together has a capital letter, and between letters and digits; so that
// getHTTPUrl2, get_http_url_2 and "get HTTP URL 2" are the same words.
func split(text string) []string {
	var out []string
	var word []rune
	end := func() {
		if len(word) > 0 {
			out = append(out, strings.ToLower(string(word)))
			word = word[:0]
		}
	}
	runes := []rune(text)
	for i, r := range runes {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			if (r == '\'' || r == '’') && len(word) > 0 && i+1 < len(runes) && unicode.IsLetter(runes[i+1]) {
				continue // don't, user's
			}
			end()
			continue
		}
		if len(word) > 0 {
			last := word[len(word)-1]
			capital := unicode.IsUpper(r) && (unicode.IsLower(last) || i+1 < len(runes) && unicode.IsLower(runes[i+1]) && unicode.IsUpper(last))
			if capital || unicode.IsDigit(r) != unicode.IsDigit(last) {
				end()
			}
		}
		word = append(word, r)
	}
	end()
	return out
}
