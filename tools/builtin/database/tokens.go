package database

import (
	"fmt"
	"strings"
)

// token is a piece of a statement. Comments and blanks are none.
type token struct {
	kind tokenKind
	text string // of a quoted name, what is in the quotes; otherwise as it stands
	at   int    // offset of its first byte, and
	end  int    // of the byte behind it
}

type tokenKind int

const (
	signToken   tokenKind = iota // one character
	wordToken                    // a keyword or a name
	quotedToken                  // a name in quotes
	textToken                    // a literal: a text or a number
	markToken                    // a placeholder: ?, ?1, $1, :name, @name, $name
)

func (t token) is(sign string) bool   { return t.kind == signToken && t.text == sign }
func (t token) word(word string) bool { return t.kind == wordToken && strings.EqualFold(t.text, word) }

// tokenizer reads a statement as its database does. Where databases read differently,
// this matters: what one takes for a comment, another runs.
type tokenizer struct {
	provider string
	s        string
	at       int
	tokens   []token
}

// refusal is an error whose text is for the model, the end of a sentence.
type refusal string

func (r refusal) Error() string { return string(r) }

func tokenize(provider, text string) ([]token, error) {
	if at := strings.IndexByte(text, 0); at >= 0 {
		return nil, refusal(fmt.Sprintf("the query has a NUL character at %s", place(text, at)))
	}
	z := &tokenizer{provider: provider, s: text}
	for z.at < len(z.s) {
		if err := z.next(); err != nil {
			return nil, err
		}
	}
	return z.tokens, nil
}

func (z *tokenizer) next() error {
	s, start := z.s[z.at:], z.at
	mysql, postgres, sqlite := z.provider == mysqlProvider, z.provider == postgresProvider, z.provider == sqliteProvider
	switch c := s[0]; {
	case c <= ' ':
		z.at++
	case strings.HasPrefix(s, "--") && (!mysql || len(s) == 2 || s[2] <= ' '), mysql && c == '#':
		ends := "\n"
		if postgres {
			ends = "\n\r"
		}
		if end := strings.IndexAny(s, ends); end >= 0 {
			z.at += end
		} else {
			z.at = len(z.s)
		}
	case strings.HasPrefix(s, "/*"):
		return z.comment()
	case c == '\'':
		return z.quoted(textToken, '\'', mysql || postgres && z.escapes())
	case c == '"' && mysql:
		return z.quoted(textToken, '"', true)
	case c == '"':
		return z.quoted(quotedToken, '"', false)
	case c == '`' && !postgres:
		return z.quoted(quotedToken, '`', false)
	case c == '[' && sqlite:
		end := strings.IndexByte(s, ']')
		if end < 0 {
			return z.open("a name in [", start)
		}
		z.add(quotedToken, s[1:end], end+1)
	case c == '$' && postgres && dollarTag(s) != "":
		tag := dollarTag(s)
		end := strings.Index(s[len(tag):], tag)
		if end < 0 {
			return z.open("a text in "+tag, start)
		}
		z.add(textToken, "", end+2*len(tag))
	case c == '?':
		z.add(markToken, s[:1+digits(s[1:])], 1+digits(s[1:]))
	case c == '$' && len(s) > 1 && isWord(s[1]), (c == ':' || c == '@') && len(s) > 1 && isWord(s[1]) && !z.after(c):
		z.add(markToken, s[:1+word(s[1:])], 1+word(s[1:]))
	case c >= '0' && c <= '9':
		n := word(s)
		for n < len(s) && s[n] == '.' {
			n += 1 + word(s[n+1:])
		}
		z.add(textToken, s[:n], n)
	case isWord(c):
		z.add(wordToken, s[:word(s)], word(s))
	default:
		z.add(signToken, s[:1], 1)
	}
	return nil
}

func (z *tokenizer) add(kind tokenKind, text string, length int) {
	z.tokens = append(z.tokens, token{kind, text, z.at, z.at + length})
	z.at += length
}

// after reports whether a colon or an @ continues something: the second of a :: or @@,
// or the bound of a slice, as in a[1:n].
func (z *tokenizer) after(c byte) bool {
	if z.at == 0 {
		return false
	}
	before := z.s[z.at-1]
	return before == c || c == ':' && (isWord(before) || before == ']' || before == ')')
}

// escapes reports whether the text that begins here is one of PostgreSQL's E'...'.
func (z *tokenizer) escapes() bool {
	if len(z.tokens) == 0 {
		return false
	}
	last := z.tokens[len(z.tokens)-1]
	return last.end == z.at && last.word("E")
}

func (z *tokenizer) quoted(kind tokenKind, quote byte, escapes bool) error {
	var text strings.Builder
	for i := z.at + 1; i < len(z.s); i++ {
		switch c := z.s[i]; {
		case c == '\\' && escapes:
			i++
		case c != quote:
			text.WriteByte(c)
		case i+1 < len(z.s) && z.s[i+1] == quote:
			text.WriteByte(c)
			i++
		default:
			z.add(kind, text.String(), i+1-z.at)
			return nil
		}
	}
	return z.open("a quote "+string(quote), z.at)
}

func (z *tokenizer) comment() error {
	start, depth := z.at, 0
	if rest := z.s[z.at+2:]; z.provider == mysqlProvider && (strings.HasPrefix(rest, "!") || strings.HasPrefix(rest, "M!")) {
		return refusal("the query has a comment that MySQL runs (/*! ... */); write its text without the comment")
	}
	for i := z.at; i < len(z.s); i++ {
		switch rest := z.s[i:]; {
		case strings.HasPrefix(rest, "/*") && (depth == 0 || z.provider == postgresProvider):
			depth++
			i++
		case strings.HasPrefix(rest, "*/"):
			depth--
			i++
			if depth == 0 {
				z.at = i + 1
				return nil
			}
		}
	}
	if z.provider == sqliteProvider { // as SQLite has it
		z.at = len(z.s)
		return nil
	}
	return z.open("a comment", start)
}

func (z *tokenizer) open(what string, at int) error {
	return refusal(fmt.Sprintf("the query has no end of %s that begins at %s", what, place(z.s, at)))
}

// dollarTag is the tag that a dollar-quoted text of PostgreSQL begins with, or empty.
func dollarTag(s string) string {
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == '$':
			return s[:i+1]
		case !isWord(c) || i == 1 && c >= '0' && c <= '9':
			return ""
		}
	}
	return ""
}

func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

// word is how many bytes of a name s begins with.
func word(s string) int {
	n := 0
	for n < len(s) && (isWord(s[n]) || n > 0 && s[n] == '$') {
		n++
	}
	return n
}

func digits(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}

// place says where in the query an offset is.
func place(text string, at int) string {
	at = max(0, min(at, len(text)))
	line := 1 + strings.Count(text[:at], "\n")
	column := 1 + len([]rune(text[strings.LastIndexByte(text[:at], '\n')+1:at]))
	return fmt.Sprintf("line %d, column %d", line, column)
}
