package web

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"codeberg.org/readeck/go-readability/v2"
	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// The formats of web_scrape.
const (
	asMarkdown = "markdown"
	asText     = "text"
	asHTML     = "html"
	asLinks    = "links"
)

// maxArticle is how many nodes a page may have whose article is looked for: that takes
// several walks over all of them.
const maxArticle = 60_000

// maxIndent is how deep lists and quotations may be within each other in Markdown, each
// line of which is indented once more for each of them.
const maxIndent = 16

func indents(n *html.Node) int {
	deepest := 0
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		deepest = max(deepest, indents(c))
	}
	switch n.DataAtom {
	case atom.Li, atom.Blockquote, atom.Dd:
		deepest++
	}
	return deepest
}

// article is the readable part of the page: what is left without navigation and the
// like. Where there seems to be none, it is the body.
func (p *page) article() *html.Node {
	body := p.body()
	nodes := 0
	for range p.root.Descendants() {
		if nodes++; nodes > maxArticle {
			return body
		}
	}
	reader := readability.NewParser()
	if !reader.CheckDocument(p.root) {
		return body
	}
	found, err := reader.ParseDocument(p.root, p.base)
	// Of a page that is no article, some part still looks most like one.
	if err != nil || found.Node == nil || 4*len(plainText(found.Node)) < len(plainText(body)) {
		return body
	}
	return found.Node
}

// render is a node in a format, which is not links.
func render(ctx context.Context, n *html.Node, format string) (string, error) {
	switch {
	case format == asHTML:
		return source(n), nil
	case format == asText, indents(n) > maxIndent:
		return plainText(n), nil
	}
	conv := converter.NewConverter(converter.WithEscapeMode(converter.EscapeModeDisabled), converter.WithPlugins(base.NewBasePlugin(), commonmark.NewCommonmarkPlugin(), table.NewTablePlugin()))
	text, err := conv.ConvertNode(n, converter.WithContext(ctx))
	if err != nil {
		return "", err
	}
	return string(text), nil
}

// links are the links of a tree, each where it first is, with its words.
func links(n *html.Node, most int) (list []string, more int) {
	seen := make(map[string]bool)
	take := func(c *html.Node) {
		href := ""
		if c.DataAtom == atom.A || c.DataAtom == atom.Area {
			href = attr(c, "href")
		}
		u, err := url.Parse(href)
		if err != nil || !onWeb(u) {
			return
		}
		u.Fragment, u.RawFragment = "", ""
		to := u.String()
		if seen[to] {
			return
		}
		seen[to] = true
		if len(list) == most {
			more++
			return
		}
		words := line(inlineText(c), 150)
		if words == "" {
			words = line(attr(c, "title")+attr(c, "aria-label"), 150)
		}
		if words != "" {
			words += ": "
		}
		list = append(list, "- "+words+line(to, 1000))
	}
	take(n)
	for c := range n.Descendants() {
		take(c)
	}
	return list, more
}

// inlineText is the text of a tree as it is, of at most a few thousand bytes.
func inlineText(n *html.Node) string {
	const most = 4 << 10
	var b strings.Builder
	for c := range n.Descendants() {
		if c.Type == html.TextNode {
			b.WriteString(c.Data)
		} else if c.DataAtom == atom.Br || c.DataAtom == atom.P || c.DataAtom == atom.Div {
			b.WriteByte(' ')
		}
		if b.Len() > most {
			break
		}
	}
	return b.String()
}

// plainText is the text of a tree, with its paragraphs and lines.
func plainText(n *html.Node) string {
	var w textWriter
	w.walk(n, false)
	return strings.TrimSpace(w.b.String())
}

// A textWriter writes the text of a tree as it would be seen: spaces count once, but for
// preformatted text, and a block stands on lines of its own.
type textWriter struct {
	b      strings.Builder
	breaks int  // line feeds that the text ends with
	space  bool // whether a space is due
	marked bool // whether the mark of an item was written, and nothing since
}

func (w *textWriter) walk(n *html.Node, pre bool) {
	switch n.Type {
	case html.TextNode:
		w.text(n.Data, pre)
		return
	case html.ElementNode:
		pre = pre || n.DataAtom == atom.Pre || n.DataAtom == atom.Textarea
	}
	before, after := around(n.DataAtom)
	w.feed(before)
	switch n.DataAtom {
	case atom.Li:
		w.text("- ", true)
		w.marked = true
	case atom.Td, atom.Th:
		if cell, ok := short(n); ok {
			w.text(cell+"\t", true)
			return
		}
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		w.walk(c, pre)
	}
	switch n.DataAtom {
	case atom.Td, atom.Th:
		w.text("\t", true)
	case atom.Br:
		w.feed(min(w.breaks+1, 2))
	case atom.Img:
		if alt := attr(n, "alt"); alt != "" {
			w.text(fmt.Sprintf("[image: %s]", alt), false)
		}
	}
	w.feed(after)
}

func (w *textWriter) text(s string, pre bool) {
	if pre {
		if s != "" {
			w.b.WriteString(s)
			w.breaks, w.space, w.marked = 0, false, false
		}
		return
	}
	fields := strings.Fields(s)
	if len(fields) == 0 {
		w.space = w.space || s != ""
		return
	}
	if (w.space || strings.ContainsRune(" \t\n\r\f", rune(s[0]))) && w.breaks == 0 && !w.marked && w.b.Len() > 0 {
		w.b.WriteByte(' ')
	}
	w.b.WriteString(strings.Join(fields, " "))
	w.breaks, w.marked, w.space = 0, false, strings.ContainsRune(" \t\n\r\f", rune(s[len(s)-1]))
}

// short is the text of a cell on one line, where that loses nothing.
func short(n *html.Node) (string, bool) {
	const most = 200
	for c := range n.Descendants() {
		if c.DataAtom == atom.Table || c.DataAtom == atom.Pre || c.DataAtom == atom.Li || c.DataAtom == atom.Img {
			return "", false
		}
	}
	text := inlineText(n)
	return line(text, most), len(text) <= most
}

// feed ends the line, so that n line feeds follow the text.
func (w *textWriter) feed(n int) {
	for !w.marked && w.b.Len() > 0 && w.breaks < n {
		w.b.WriteByte('\n')
		w.breaks++
	}
	if n > 0 {
		w.space = false
	}
}

// around is how many line feeds stand before and after an element.
func around(tag atom.Atom) (before, after int) {
	switch tag {
	case atom.P, atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6, atom.Blockquote, atom.Pre, atom.Table, atom.Ul, atom.Ol, atom.Dl, atom.Hr, atom.Figure:
		return 2, 2
	case atom.Div, atom.Section, atom.Article, atom.Main, atom.Header, atom.Footer, atom.Nav, atom.Aside, atom.Address, atom.Form, atom.Fieldset,
		atom.Li, atom.Tr, atom.Dt, atom.Dd, atom.Figcaption, atom.Caption, atom.Details, atom.Summary, atom.Option, atom.Body, atom.Title:
		return 1, 1
	}
	return 0, 0
}
