package index

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// maxTerm is the longest term, in bytes: what is longer is no word.
const maxTerm = 64

// Terms returns the terms of a text in order: its words in lower case and without
// diacritics. Scripts that put no spaces between words give a term for each two
// letters that stand together, and the letter itself where it stands alone. A term
// has letters and digits only.
func Terms(text string) []string {
	var terms []string
	var word strings.Builder
	last := rune(0) // the letter before, of a script without spaces
	alone := false  // and it is in no term yet
	end := func() {
		if n := word.Len(); n > 0 && n <= maxTerm {
			terms = append(terms, word.String())
		}
		word.Reset()
		if alone {
			terms = append(terms, string(last))
		}
		last, alone = 0, false
	}
	for _, r := range norm.NFKD.String(strings.ToValidUTF8(text, " ")) {
		switch {
		case unicode.Is(unicode.Mn, r):
			continue
		case dense(r):
			if word.Len() > 0 {
				end()
			}
			if last != 0 {
				terms = append(terms, string(last)+string(r))
			}
			alone = last == 0
			last = r
		case unicode.IsLetter(r) || unicode.IsDigit(r):
			if last != 0 {
				end()
			}
			if word.Len() <= maxTerm { // enough to be seen to be too long
				word.WriteRune(unicode.ToLower(r))
			}
		default:
			end()
		}
	}
	end()
	return terms
}

// dense reports whether a letter is of a script that puts no spaces between words.
func dense(r rune) bool {
	return r >= 0x0e00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

// maxQueryTerms bounds the different terms of one query.
const maxQueryTerms = 96

// queryTerms are the first different terms of a text.
func queryTerms(text string) []string {
	seen := map[string]bool{}
	var terms []string
	for _, t := range Terms(clip(text, 32<<10)) {
		if seen[t] {
			continue
		}
		seen[t] = true
		if terms = append(terms, t); len(terms) == maxQueryTerms {
			break
		}
	}
	return terms
}

// match is the query, in the language of FTS5, for any of the terms. In quotes a
// term is no operator, and it has no quotes itself.
func match(terms []string) string {
	return `"` + strings.Join(terms, `" OR "`) + `"`
}

// clip returns the beginning of a text, of at most n bytes.
func clip(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}
