package permission

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// glob is a parsed pattern for one text. Matching takes time in the product of
// the two lengths, whatever the pattern: it follows every way at once instead of
// trying one after another.
type glob struct {
	tokens []token
	fold   bool // letter case doesn't matter; the tokens are in lower case
}

// token is one step of a glob: a character, or a wildcard.
type token struct {
	kind kind
	char rune // of a literal
}

type kind byte

const (
	literal  kind = iota
	one           // one character
	many          // any characters
	oneName       // one character, not a slash
	manyName      // any characters, no slash
)

// anything matches every text.
var anything = glob{tokens: []token{{kind: many}}}

// parseGlob parses a glob. Where slashes is set, * and ? match a slash, too.
func parseGlob(text string, slashes bool) (glob, error) {
	var g glob
	runes := []rune(text)
	for i := 0; i < len(runes); i++ {
		t := token{kind: literal, char: runes[i]}
		switch r := runes[i]; {
		case r == '\\':
			i++
			if i == len(runes) {
				return glob{}, errors.New("the backslash at the end escapes nothing")
			}
			t.char = runes[i]
		case strings.ContainsRune("[]{}()", r):
			return glob{}, fmt.Errorf(`%q has no meaning in patterns; write \%c for the character, and tool:argument=pattern for a condition`, r, r)
		case r == '?' && slashes:
			t.kind = one
		case r == '?':
			t.kind = oneName
		case r == '*':
			t.kind = manyName
			for i+1 < len(runes) && runes[i+1] == '*' {
				t.kind = many
				i++
			}
			if slashes {
				t.kind = many
			}
		}
		g.tokens = append(g.tokens, t)
	}
	return g, nil
}

// match reports whether the glob matches the whole of s.
func (g glob) match(s string) bool {
	if len(g.tokens) == 1 && g.tokens[0].kind == many {
		return true
	}
	return g.run(s, false)
}

// matchTail reports whether there is a text that ends in s and that the glob
// matches as a whole.
func (g glob) matchTail(s string) bool { return g.run(s, true) }

// run follows s through the glob. State i means that tokens[:i] are done with.
func (g glob) run(s string, anywhere bool) bool {
	n := len(g.tokens)
	now, next := make([]bool, n+1), make([]bool, n+1)
	now[0] = true
	if anywhere {
		for i := range now {
			now[i] = true
		}
	}
	g.skip(now)
	for _, r := range s {
		if g.fold {
			r = unicode.ToLower(r)
		}
		alive := false
		clear(next)
		for i, t := range g.tokens {
			if !now[i] || !t.takes(r) {
				continue
			}
			alive = true
			if t.kind == many || t.kind == manyName {
				next[i] = true
			} else {
				next[i+1] = true
			}
		}
		if !alive {
			return false
		}
		g.skip(next)
		now, next = next, now
	}
	return now[n]
}

// skip adds the states that are reached without a character.
func (g glob) skip(states []bool) {
	for i, t := range g.tokens {
		if states[i] && (t.kind == many || t.kind == manyName) {
			states[i+1] = true
		}
	}
}

func (t token) takes(r rune) bool {
	switch t.kind {
	case literal:
		return t.char == r
	case oneName, manyName:
		return r != '/'
	default:
		return true
	}
}

// below returns the glob for what g matches, in any folder.
func (g glob) below() glob {
	tokens := []token{{kind: many}, {kind: literal, char: '/'}}
	return glob{tokens: append(tokens, g.tokens...), fold: g.fold}
}

// folded returns the glob for what g matches, in any letter case.
func (g glob) folded() glob {
	tokens := slices.Clone(g.tokens)
	for i := range tokens {
		tokens[i].char = unicode.ToLower(tokens[i].char)
	}
	return glob{tokens: tokens, fold: true}
}
