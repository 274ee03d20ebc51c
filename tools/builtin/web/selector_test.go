package web

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"

	"crewhost/tools/native/nativetest"
)

func TestBared(t *testing.T) {
	for selector, want := range map[string]string{
		"Main > P":                   "main > p",
		`a[title="x ~ y"] b`:         "a[title=x] b",
		`a[title='say "'] b ~ c`:     "a[title=x] b ~ c",
		`[t="a\"b"] c ~ d`:           "[t=x] c ~ d",
		`.md\:flex p`:                ".mdxflex p",
		`.a\" b ~ c`:                 ".ax b ~ c",
		`div/**/p/* ~ " */a`:         "div p a",
		`:\68 as(b)`:                 ":has(b)",
		`:\000068as(b)`:              ":has(b)",
		`:\has(b)`:                   ":has(b)", // h is no digit
		`:\Has(b)`:                   ":has(b)",
		`a\`:                         "ax",
		`a/* b`:                      "a * b",
		`:c\6fntains("has(x)") p ~q`: ":contains(x) p ~q",
	} {
		if got := bared(selector); got != want {
			t.Errorf("%s: %q, want %q", selector, got, want)
		}
	}
}

// What a selector costs is seen however it is spelled.
func TestSpelledSelectors(t *testing.T) {
	s := newSite(t, pages(map[string]string{"/p": strings.Repeat("<div>", 480) + strings.Repeat("<p>x", 20_000)}, nil))
	for _, selector := range []string{
		"a div div div p", // would take 2000 million steps for each of 20000 paragraphs
		`:not(.a\") b ~ b ~ b ~ p`,
		`:not([x="a\"b"]) b ~ b ~ b ~ p`,
		"a/**/div/**/div/**/div/**/p",
		`p:not(/*"*/b) a div div div p`,
		`:\68 as(:h\61s(:HA\53(b)))`,
		`:c\6fntains(y):has(:has(b))`,
	} {
		s.WantFailure("web_scrape", nativetest.Args("url", "https://example.com/p", "selector", selector), "too intricate")
	}
	for _, selector := range []string{`[x#=(")] b`, `[x #= (a)]`, "p:matches(a+)", `:m\61tchesown(a)`} {
		s.WantFailure("web_scrape", nativetest.Args("url", "https://example.com/p", "selector", selector), "a regular expression")
	}
	s.WantParts("web_scrape", nativetest.Args("url", "https://example.com/p", "selector", "div p", "max_elements", 1), "[1 of 20000 elements")
}

// A search for elements ends with its context.
func TestSelectedEnds(t *testing.T) {
	p, err := parse(strings.Repeat("<p>x", 10), &url.URL{Scheme: "https", Host: "example.com"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if found, _, err := p.selected(ctx, "p", 5); !errors.Is(err, context.Canceled) {
		t.Errorf("%d found, %v", len(found), err)
	}
}
