package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Texts of a server are read by models and shown on terminals, so nothing stays
// in them that the one reads and a person can't see, or that changes how the rest
// is shown (R4). It is taken out rather than replaced: what a word hides inside
// itself is a word again, and a text of tags is no text.

// unprintable reports whether r is a control character, or one that is not
// seen: direction marks, zero widths, tags, variation selectors, fillers.
func unprintable(r rune) bool {
	if r < utf8.RuneSelf {
		return r < ' ' || r == 0x7f
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) &&
		!unicode.Is(unicode.Prepended_Concatenation_Mark, r) // which are seen
}

// readable is s without what is not to be seen.
func readable(s string) string {
	s, _ = unhide(s)
	return s
}

// unhide is s without what is not to be seen, and how many characters that was. Line ends of every kind become line feeds; the joiners and selectors inside
// of emoji stay.
func unhide(s string) (clean string, hidden int) {
	if !strings.ContainsFunc(s, func(r rune) bool { return unprintable(r) || r == utf8.RuneError }) {
		return s, 0
	}
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "�"), "\r\n", "\n")
	var b strings.Builder
	var last rune
	for i, r := range s {
		switch {
		case r == '\u0085', r == '\u2028', r == '\u2029':
			b.WriteByte('\n')
		case !unprintable(r), r == '\n', r == '\t', inEmoji(last, r, s[i+utf8.RuneLen(r):]):
			b.WriteRune(r)
		default:
			hidden++
			continue
		}
		last = r
	}
	return b.String(), hidden
}

const (
	joiner    = '\u200d'
	textStyle = '\ufe0e'
	pictured  = '\ufe0f'
	keycap    = '\u20e3'
)

// inEmoji reports whether r, between last and rest, is a part of an emoji.
func inEmoji(last, r rune, rest string) bool {
	next, _ := utf8.DecodeRuneInString(rest)
	switch r {
	case joiner:
		return (unicode.Is(unicode.So, last) || unicode.Is(unicode.Sk, last) || last == pictured) && unicode.Is(unicode.So, next)
	case textStyle, pictured:
		return unicode.Is(unicode.So, last) || next == keycap
	}
	return false
}

// annotates reports whether the value of a schema's keyword is a text for a reader.
func annotates(keyword string) bool {
	return keyword == "title" || keyword == "description" || keyword == "$comment"
}

// isData reports whether the value of a schema's keyword is one of the server's,
// and no schema.
func isData(keyword string) bool {
	switch keyword {
	case "default", "const", "enum", "examples":
		return true
	}
	return false
}

// unhideSchema is a schema whose texts for a reader are readable. All else is
// kept as it came (W7): what stands hidden in other strings has a meaning for the
// server and becomes an escape, which is seen and means the same. Hidden is how
// many characters were not to be seen.
func unhideSchema(schema json.RawMessage) (clean json.RawMessage, hidden int) {
	// No string of JSON holds a control character of ASCII but the last.
	hides := func(r rune) bool { return r >= 0x7f && unprintable(r) }
	if !bytes.ContainsFunc(schema, hides) && !bytes.Contains(schema, []byte(`\u`)) {
		return schema, 0
	}
	type level struct {
		object bool
		value  bool   // whether the next token of an object is a value
		key    string // of that value
		data   bool   // whether this is a value of the server's, no schema
	}
	var open []level
	var out bytes.Buffer
	copied := 0
	dec := json.NewDecoder(bytes.NewReader(schema))
	dec.UseNumber()
	for {
		from := int(dec.InputOffset())
		token, err := dec.Token()
		if err != nil { // the end: the schema was valid JSON before
			break
		}
		to := int(dec.InputOffset())
		top := &level{}
		if len(open) > 0 {
			top = &open[len(open)-1]
		}
		text, isText := token.(string)
		isKey := isText && top.object && !top.value
		if isText {
			from = to - len(bytes.TrimLeft(schema[from:to], " \t\r\n,:"))
			literal := schema[from:to]
			plain, n := unhide(text)
			switch {
			case n == 0 && !bytes.ContainsFunc(literal, unprintable):
			case !isKey && !top.data && annotates(top.key):
				hidden += n
				literal, err = json.Marshal(plain)
			default:
				hidden += n
				literal = escaped(literal)
			}
			if err == nil {
				out.Write(schema[copied:from])
				out.Write(literal)
				copied = to
			}
		}
		switch delim, isDelim := token.(json.Delim); {
		case isDelim && (delim == '{' || delim == '['):
			data := top.data || top.object && isData(top.key)
			top.value = false
			open = append(open, level{object: delim == '{', data: data})
		case isDelim:
			open = open[:len(open)-1]
		case isKey:
			top.key, top.value = text, true
		default:
			top.value = false
		}
	}
	out.Write(schema[copied:])
	return out.Bytes(), hidden
}

// escaped is the literal of a JSON string with escapes for what is not seen.
func escaped(literal []byte) []byte {
	var out []byte
	for _, r := range string(literal) {
		if unprintable(r) {
			for _, unit := range utf16.Encode([]rune{r}) {
				out = fmt.Appendf(out, `\u%04x`, unit)
			}
			continue
		}
		out = utf8.AppendRune(out, r)
	}
	return out
}
