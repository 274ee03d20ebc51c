package web

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/andybalholm/cascadia"
	"golang.org/x/net/html"

	"crewhost/tools/native"
)

const (
	maxSelector = 500         // characters
	maxMatch    = 200_000_000 // steps that it may take to match one element at worst
)

// selected are the first elements that a CSS selector matches, and how many more there
// are. The error is words for a model, or else ctx has ended.
func (p *page) selected(ctx context.Context, selector string, most int) (found []*html.Node, more int, err error) {
	group, err := cascadia.ParseGroup(selector)
	if err != nil {
		return nil, 0, fmt.Errorf("the selector is no CSS selector that is known: %s; write one such as \"article h2 a\", \"#main > p\" or \"a[href^='/docs']\"", native.Shorten(err.Error()))
	}
	if s := p.shape(); s.effort(selector) > maxMatch {
		return nil, 0, errors.New("the selector is too intricate for this page; write a shorter one, such as a class or an id alone")
	}
	n := 0
	for c := range p.root.Descendants() {
		if n++; n%256 == 0 && ctx.Err() != nil {
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

// effort is how many steps it may take to match one element of such a tree: a matcher
// tries each ancestor for a space, each sibling for a tilde, and all that is below for
// what looks there.
func (s shape) effort(selector string) float64 {
	steps, ancestors := 1.0, 0.0
	quote := rune(0)
	var before rune // the last character that is no space
	spaces := false
	for _, r := range selector {
		if quote != 0 {
			if r == quote {
				quote = 0
			}
			before = r
			continue
		}
		switch r {
		case ' ', '\t', '\n', '\r', '\f':
			spaces = true
			continue
		case '"', '\'':
			quote = r
		case '~':
			steps *= float64(s.siblings + 1)
		}
		if spaces && !strings.ContainsRune(">+~,(", before) && !strings.ContainsRune(">+~,)", r) && before != 0 {
			ancestors++
			steps *= float64(s.depth+1) / ancestors // they are tried in order
		}
		spaces, before = false, r
	}
	lower := strings.ToLower(selector)
	for _, word := range []string{":nth-", ":first-", ":last-", ":only-"} {
		for range strings.Count(lower, word) {
			steps *= float64(s.siblings + 1)
		}
	}
	for _, word := range []string{":has", ":contains", ":matches"} {
		for range strings.Count(lower, word) {
			steps *= float64(s.nodes + 1)
		}
	}
	return steps
}
