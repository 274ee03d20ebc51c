package web

import (
	"bytes"
	"errors"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Bounds of a page's tree. A parser of HTML mends what is broken, and can be made to
// build far more than it reads.
const (
	maxTags   = 200_000   // that are read, closing ones among them
	maxMended = 3_000_000 // tags that are written again at worst
	maxSpan   = 100       // columns or rows that a cell of a table covers
	maxSpans  = 5_000     // that all of them do
)

var (
	errNested = errors.New("its HTML is nested deeper than 512 elements")
	errBroken = errors.New("its HTML is so broken that it would grow without end")
)

// A page is the tree of an HTML document without what nobody would see of it.
type page struct {
	root      *html.Node
	base      *url.URL
	title     string
	canonical string
	spans     int  // cells that others of tables cover
	cut       bool // whether there is more than was read
}

// parse reads a page, whose text is UTF-8, and which is at the URL.
func parse(text string, at *url.URL) (*page, error) {
	p := &page{base: at}
	text, p.cut = fewer(text, maxTags)
	if mended(text) > maxMended {
		return nil, errBroken
	}
	var err error
	// Without scripts, what is meant for those who run none is there to be read.
	p.root, err = html.ParseWithOptions(strings.NewReader(text), html.ParseOptionEnableScripting(false))
	if err != nil {
		return nil, errNested
	}
	p.about(p.root)
	strip(p.root)
	p.absolute(p.root)
	return p, nil
}

// fewer is the text until it has had so many tags.
func fewer(text string, tags int) (string, bool) {
	at := 0
	for range tags {
		i := strings.IndexByte(text[at:], '<')
		if i < 0 {
			return text, false
		}
		at += i + 1
	}
	if i := strings.IndexByte(text[at:], '<'); i >= 0 {
		return text[:at+i], true
	}
	return text, false
}

// mended is how many tags the parser may have to write again at most: in each new
// paragraph, it opens once more all of b, i, font and the like that were not closed.
func mended(text string) int {
	open := []map[atom.Atom]int{{}} // a level for each cell of a table and the like
	count, total := 0, 0
	z := html.NewTokenizer(strings.NewReader(text))
	for {
		kind := z.Next()
		if kind == html.ErrorToken {
			return total
		}
		total += count
		name, _ := z.TagName()
		tag := atom.Lookup(name)
		inner := open[len(open)-1]
		switch {
		case kind == html.StartTagToken && formats(tag):
			inner[tag]++
			count++
		case kind == html.EndTagToken && formats(tag) && inner[tag] > 0:
			inner[tag]--
			count--
		case kind == html.StartTagToken && fences(tag):
			open = append(open, map[atom.Atom]int{})
		case kind == html.EndTagToken && fences(tag) && len(open) > 1:
			open = open[:len(open)-1]
			for tag, n := range inner {
				open[len(open)-1][tag] += n
			}
		}
		if total > maxMended {
			return total
		}
	}
}

func formats(tag atom.Atom) bool {
	switch tag {
	case atom.A, atom.B, atom.Big, atom.Code, atom.Em, atom.Font, atom.I, atom.Nobr, atom.S, atom.Small, atom.Strike, atom.Strong, atom.Tt, atom.U:
		return true
	}
	return false
}

func fences(tag atom.Atom) bool {
	switch tag {
	case atom.Applet, atom.Caption, atom.Marquee, atom.Object, atom.Td, atom.Th, atom.Template:
		return true
	}
	return false
}

// about finds what the head says of the page.
func (p *page) about(n *html.Node) {
	if n.Type == html.ElementNode {
		switch n.DataAtom {
		case atom.Title:
			if p.title == "" && n.Namespace == "" {
				p.title = line(inlineText(n), 300)
			}
		case atom.Base:
			if href := attr(n, "href"); href != "" {
				if u, err := p.base.Parse(href); err == nil && onWeb(u) {
					p.base = u
				}
			}
		case atom.Link:
			if p.canonical == "" && strings.EqualFold(attr(n, "rel"), "canonical") {
				if u, err := p.base.Parse(attr(n, "href")); err == nil && onWeb(u) {
					p.canonical = line(u.String(), 500)
				}
			}
		}
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		p.about(c)
	}
}

func onWeb(u *url.URL) bool { return (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" }

// strip takes out of a tree what a reader of the page does not see: scripts, styles,
// comments, and what is hidden by an attribute. What a style sheet hides stays: that would
// take a browser to know.
func strip(n *html.Node) {
	for c := n.FirstChild; c != nil; {
		next := c.NextSibling
		if unseen(c) {
			n.RemoveChild(c)
		} else {
			strip(c)
		}
		c = next
	}
}

func unseen(n *html.Node) bool {
	switch n.Type {
	case html.TextNode, html.DocumentNode, html.DoctypeNode:
		return false
	case html.ElementNode:
	default:
		return true
	}
	switch n.DataAtom {
	case atom.Script, atom.Style, atom.Template, atom.Iframe, atom.Frame, atom.Object, atom.Embed, atom.Applet, atom.Canvas, atom.Svg, atom.Math,
		atom.Audio, atom.Video, atom.Link, atom.Meta, atom.Base, atom.Noframes, atom.Dialog, atom.Datalist:
		return n.DataAtom != atom.Dialog || !has(n, "open")
	case atom.Input:
		return strings.EqualFold(attr(n, "type"), "hidden")
	}
	if n.DataAtom == atom.Html || n.DataAtom == atom.Body {
		return false // some pages are shown by a script
	}
	return has(n, "hidden") || strings.EqualFold(attr(n, "aria-hidden"), "true") || invisible(attr(n, "style"))
}

// invisible reports whether a style of an element's own hides it.
func invisible(style string) bool {
	if style == "" {
		return false
	}
	for rule := range strings.SplitSeq(strings.ToLower(style), ";") {
		name, value, _ := strings.Cut(rule, ":")
		name = strings.TrimSpace(name)
		value = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "!important"))
		switch {
		case name == "display" && value == "none",
			name == "visibility" && (value == "hidden" || value == "collapse"),
			name == "content-visibility" && value == "hidden",
			name == "opacity" && strings.Trim(value, "0.%") == "" && value != "",
			name == "font-size" && strings.HasPrefix(value, "0") && strings.Trim(value, "0.pxemrt%") == "",
			(name == "width" || name == "height" || name == "max-height") && strings.Trim(value, "0px") == "" && strings.HasPrefix(value, "0") && strings.Contains(style, "overflow"),
			name == "color" && value == "transparent",
			slices.Contains([]string{"left", "top", "right", "text-indent", "margin-left", "margin-top"}, name) && far(value),
			(name == "clip" || name == "clip-path") && (strings.Contains(value, "rect(0") || strings.Contains(value, "inset(100%") || strings.Contains(value, "inset(50%")):
			return true
		}
	}
	return false
}

// far reports whether a length leads off the screen.
func far(value string) bool {
	digits := strings.TrimLeft(strings.TrimPrefix(value, "-"), "0")
	n := len(digits) - len(strings.TrimLeft(digits, "0123456789"))
	return strings.HasPrefix(value, "-") && n >= 3
}

// absolute makes links lead to where they lead from the page, and takes out those that
// lead nowhere on the web.
func (p *page) absolute(n *html.Node) {
	if n.Type == html.ElementNode {
		if n.DataAtom == atom.Noscript {
			n.DataAtom, n.Data = atom.Div, "div"
		}
		kept := n.Attr[:0]
		for _, a := range n.Attr {
			switch a.Key {
			case "href", "src", "cite", "action", "poster":
				u, err := p.base.Parse(strings.TrimSpace(a.Val))
				if err != nil || !onWeb(u) && u.Scheme != "mailto" && u.Scheme != "tel" {
					continue
				}
				a.Val = clean(u.String())
			case "style", "srcset":
				continue
			case "colspan", "rowspan":
				cells, err := strconv.Atoi(a.Val)
				if p.spans += cells; err != nil || cells < 1 || cells > maxSpan || p.spans > maxSpans {
					continue
				}
			default:
				if strings.HasPrefix(a.Key, "on") {
					continue
				}
			}
			kept = append(kept, a)
		}
		n.Attr = kept
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		p.absolute(c)
	}
}

func attr(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name && a.Namespace == "" {
			return a.Val
		}
	}
	return ""
}

func has(n *html.Node, name string) bool {
	return slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == name && a.Namespace == "" })
}

// body is the element body, or the root.
func (p *page) body() *html.Node {
	for n := range p.root.Descendants() {
		if n.DataAtom == atom.Body {
			return n
		}
	}
	return p.root
}

// source is a node as HTML.
func source(n *html.Node) string {
	var b bytes.Buffer
	if err := html.Render(&b, n); err != nil && !errors.Is(err, io.ErrShortWrite) {
		return ""
	}
	return b.String()
}
