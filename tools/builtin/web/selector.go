package web

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/andybalholm/cascadia"
	"golang.org/x/net/html"

	"crewhost/tools/native"
)

const (
	maxSelector = 500        // characters
	maxMatch    = 20_000_000 // steps that it may take to match one element at worst, when nothing ends it
)

// selected are the first elements that a CSS selector matches, and how many more there
// are. The error is words for a model, or else ctx has ended.
func (p *page) selected(ctx context.Context, selector string, most int) (found []*html.Node, more int, err error) {
	group, err := cascadia.ParseGroup(selector)
	if err != nil {
		return nil, 0, fmt.Errorf("the selector is no CSS selector that is known: %s; write one such as \"article h2 a\", \"#main > p\" or \"a[href^='/docs']\"", native.Shorten(err.Error()))
	}
	bare := bared(selector)
	switch {
	case strings.Contains(bare, "#=") || strings.Contains(bare, ":matches"):
		return nil, 0, errors.New("the selector has a regular expression in it, which CSS has not; write one such as \"a[href^='/docs']\" or \"p:contains('word')\"")
	case p.shape().effort(bare) > maxMatch:
		return nil, 0, errors.New("the selector is too intricate for this page; write a shorter one, such as a class or an id alone")
	}
	for c := range p.root.Descendants() {
		if ctx.Err() != nil {
			return nil, 0, ctx.Err()
		}
		if c.Type != html.ElementNode || !group.Match(c) {
			continue
		}
		if len(found) == most {
			more++
			continue
		}
		found = append(found, c)
	}
	return found, more, nil
}

// shape is how large a tree is.
type shape struct{ nodes, depth, siblings int }

func (p *page) shape() shape {
	var s shape
	var walk func(n *html.Node, depth int)
	walk = func(n *html.Node, depth int) {
		s.nodes++
		s.depth = max(s.depth, depth)
		children := 0
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			children++
			walk(c, depth+1)
		}
		s.siblings = max(s.siblings, children)
	}
	walk(p.root, 0)
	return s
}

// bared is a selector as the matcher understands it, in lower case: without comments and
// what is quoted, and with its escapes resolved. A letter that means something to CSS
// stands for nothing where it is escaped.
func bared(selector string) string {
	var b strings.Builder
	quote := byte(0)
	for i := 0; i < len(selector); i++ {
		c := selector[i]
		switch {
		case c == '\\':
			end := i + 1
			for end < len(selector) && end < i+7 && strings.IndexByte("0123456789abcdefABCDEF", selector[end]) >= 0 {
				end++
			}
			letter := byte('x')
			if code, err := strconv.ParseUint(selector[i+1:end], 16, 32); err == nil {
				if code == '-' || code < 0x80 && unicode.IsLetter(rune(code)) {
					letter = byte(code)
				}
				if end < len(selector) && strings.IndexByte(" \t\n\r\f", selector[end]) >= 0 {
					end++ // which ends the number
				}
				i = end - 1
			} else if i++; i < len(selector) && selector[i]|0x20 >= 'a' && selector[i]|0x20 <= 'z' {
				letter = selector[i]
			}
			if quote == 0 {
				b.WriteByte(letter)
			}
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
			b.WriteByte('x')
		case strings.HasPrefix(selector[i:], "/*"):
			if end := strings.Index(selector[i+2:], "*/"); end >= 0 {
				i += 2 + end + 1
			}
			b.WriteByte(' ')
		default:
			b.WriteByte(c)
		}
	}
	return strings.ToLower(b.String())
}

// effort is how many steps it may take to match one element of such a tree, for a bare
// selector: a matcher tries each ancestor for a space, each sibling for a tilde, and all
// that is below for what looks there.
func (s shape) effort(selector string) float64 {
	steps, ancestors := 1.0, 0.0
	var before rune // the last character that is no space
	spaces := false
	for _, r := range selector {
		switch r {
		case ' ', '\t', '\n', '\r', '\f':
			spaces = true
			continue
		case '~':
			steps *= float64(s.siblings + 1)
		}
		if spaces && !strings.ContainsRune(">+~,(", before) && !strings.ContainsRune(">+~,)", r) && before != 0 {
			ancestors++
			steps *= float64(s.depth+1) / ancestors // they are tried in order
		}
		spaces, before = false, r
	}
	for _, word := range []string{":nth-", ":first-", ":last-", ":only-", ":empty"} {
		for range strings.Count(selector, word) {
			steps *= float64(s.siblings + 1)
		}
	}
	for _, word := range []string{":has", ":contains"} {
		for range strings.Count(selector, word) {
			steps *= float64(s.nodes + 1)
		}
	}
	return steps
}
