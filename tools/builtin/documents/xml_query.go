package documents

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/antchfx/xpath"

	"crewhost/tools/native"
)

// Bounds of an XPath. The library that evaluates it can't be told to stop, but it moves
// through the document by a cursor of ours, and that one can.
const (
	maxXPathMoves = 30_000_000
	maxXPathBytes = 128 << 20 // of values
	maxXPathFound = 20_000
)

// queryXML returns what an XPath gives, a line each: elements as XML or as their text,
// the rest as text.
func queryXML(ctx context.Context, doc *xmlDocument, query string, namespaces []native.Member, asText bool) (out string, err error) {
	spaces := maps.Clone(doc.spaces)
	spaces["xml"] = "http://www.w3.org/XML/1998/namespace"
	for _, m := range namespaces {
		spaces[m.Name] = m.Text
	}
	if err := refuseReplace(query); err != nil {
		return "", fmt.Errorf("the XPath %q %w", query, err)
	}
	ctx, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	defer func() {
		// The cursor ends an evaluation by a panic, as the library does with functions
		// that are given the wrong things.
		switch r := recover().(type) {
		case nil:
		case xpathEnd:
			out, err = "", fmt.Errorf("the XPath %q %s", query, r)
		default:
			out, err = "", fmt.Errorf("the XPath %q can't be used (%s)", query, oneLine(fmt.Sprint(r)))
		}
	}()
	expr, err := xpath.CompileWithNS(query, spaces)
	if err != nil {
		hint := ""
		if strings.Contains(err.Error(), "prefix") {
			known := slices.Sorted(maps.Keys(doc.spaces))
			hint = "; the document's prefixes are " + native.Shorten(strings.Join(known, ", ")) + "; others are given in namespaces"
		}
		return "", fmt.Errorf("the XPath %q can't be read (%s%s)", query, oneLine(err.Error()), hint)
	}
	meter := &xpathMeter{ctx: ctx}
	switch v := expr.Evaluate(&xmlCursor{meter: meter, at: doc.root, attr: -1}).(type) {
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), nil
	case bool:
		return strconv.FormatBool(v), nil
	case string:
		return v, nil
	case *xpath.NodeIterator:
		return collect(doc, v, query, asText)
	default:
		return fmt.Sprint(v), nil
	}
}

// refuseReplace refuses the one function whose result grows with each time that it is
// applied to itself.
func refuseReplace(query string) error {
	var quote rune
	bare := strings.Map(func(r rune) rune {
		switch {
		case quote != 0:
			if r == quote {
				quote = 0
			}
			return -1
		case r == '"' || r == '\'':
			quote = r
			return -1
		case r == ' ' || r == '\t' || r == '\n' || r == '\r':
			return -1
		}
		return r
	}, query)
	if strings.Contains(bare, "replace(") {
		return errors.New("uses replace(), which is not available; translate() is")
	}
	return nil
}

// collect returns what was found, in the order of the document: the library finds it in
// an order of its own.
func collect(doc *xmlDocument, found *xpath.NodeIterator, query string, asText bool) (string, error) {
	var places []xmlCursor
	for found.MoveNext() {
		c, ok := found.Current().(*xmlCursor)
		switch {
		case !ok:
			return "", fmt.Errorf("the XPath %q selects no nodes", query)
		case len(places) == maxXPathFound:
			return "", tooMuchFound(query)
		}
		places = append(places, *c)
	}
	slices.SortFunc(places, func(a, b xmlCursor) int {
		return cmp.Or(cmp.Compare(a.at.order, b.at.order), cmp.Compare(a.attr, b.attr))
	})
	places = slices.CompactFunc(places, func(a, b xmlCursor) bool { return a.at == b.at && a.attr == b.attr })
	var b strings.Builder
	for n, c := range places {
		if b.Len() > maxXMLFile {
			return "", tooMuchFound(query)
		}
		if n > 0 {
			b.WriteByte('\n')
		}
		switch {
		case c.attr >= 0 || asText || c.at.kind != xpath.ElementNode && c.at.kind != xpath.RootNode:
			b.WriteString(strings.TrimSpace(c.Value()))
		case c.at.kind == xpath.RootNode:
			writeXML(&b, doc.first(), -1)
		default:
			writeXML(&b, c.at, -1)
		}
	}
	if b.Len() == 0 {
		names, more := elementNames(doc)
		return "", fmt.Errorf("the XPath %q selects nothing; the elements are %s%s. Names match as they are written, prefixes included", query, strings.Join(names, ", "), more)
	}
	return b.String(), nil
}

func tooMuchFound(query string) error {
	return fmt.Errorf("the XPath %q selects more than can be returned; make it more specific", query)
}

// elementNames are the names of a document's elements, as they are written.
func elementNames(doc *xmlDocument) (names []string, more string) {
	seen := map[string]bool{}
	var visit func(n *xmlNode)
	visit = func(n *xmlNode) {
		if n.kind == xpath.ElementNode && !seen[n.name()] && len(seen) <= 40 {
			seen[n.name()] = true
			names = append(names, native.Shorten(n.name()))
		}
		for _, c := range n.children {
			visit(c)
		}
	}
	visit(doc.root)
	if len(names) > 40 {
		names, more = names[:40], " and more"
	}
	return names, more
}

// xpathEnd ends an evaluation.
type xpathEnd string

// xpathMeter counts what an evaluation does.
type xpathMeter struct {
	ctx   context.Context //nolint:containedctx // a cursor has no other way to it
	moves int
	bytes int
}

func (m *xpathMeter) move() {
	m.moves++
	switch {
	case m.moves > maxXPathMoves:
		panic(xpathEnd("takes too many steps; make it more specific"))
	case m.moves%4096 == 0 && m.ctx.Err() != nil:
		panic(xpathEnd("takes too long; make it more specific"))
	}
}

func (m *xpathMeter) read(n int) {
	m.move()
	if m.bytes += n; m.bytes > maxXPathBytes {
		panic(xpathEnd("reads too much text; make it more specific"))
	}
}

// xmlCursor is a place in a document. It implements [xpath.NodeNavigator].
type xmlCursor struct {
	meter *xpathMeter
	at    *xmlNode
	attr  int // of at, or -1
}

func (c *xmlCursor) NodeType() xpath.NodeType {
	if c.attr >= 0 {
		return xpath.AttributeNode
	}
	return c.at.kind
}

func (c *xmlCursor) LocalName() string {
	if c.attr >= 0 {
		return c.at.attrs[c.attr].local
	}
	return c.at.local
}

func (c *xmlCursor) Prefix() string {
	if c.attr >= 0 {
		return c.at.attrs[c.attr].prefix
	}
	return c.at.prefix
}

// NamespaceURL is looked for by package xpath, too.
func (c *xmlCursor) NamespaceURL() string {
	if c.attr >= 0 {
		return c.at.attrs[c.attr].space
	}
	return c.at.space
}

func (c *xmlCursor) Value() string {
	if c.attr >= 0 {
		v := c.at.attrs[c.attr].value
		c.meter.read(len(v))
		return v
	}
	if c.at.kind == xpath.TextNode || c.at.kind == xpath.CommentNode {
		c.meter.read(len(c.at.text))
		return c.at.text
	}
	var b strings.Builder
	c.gather(&b, c.at)
	return b.String()
}

func (c *xmlCursor) gather(b *strings.Builder, n *xmlNode) {
	for _, child := range n.children {
		switch child.kind {
		case xpath.TextNode:
			c.meter.read(len(child.text))
			b.WriteString(child.text)
		case xpath.ElementNode:
			c.meter.move()
			c.gather(b, child)
		}
	}
}

func (c *xmlCursor) Copy() xpath.NodeNavigator {
	c.meter.move()
	other := *c
	return &other
}

func (c *xmlCursor) MoveToRoot() {
	for c.attr = -1; c.at.parent != nil; c.at = c.at.parent {
		c.meter.move()
	}
}

func (c *xmlCursor) MoveToParent() bool {
	c.meter.move()
	if c.attr >= 0 {
		c.attr = -1
		return true
	}
	if c.at.parent == nil {
		return false
	}
	c.at = c.at.parent
	return true
}

func (c *xmlCursor) MoveToNextAttribute() bool {
	c.meter.move()
	if c.attr+1 >= len(c.at.attrs) {
		return false
	}
	c.attr++
	return true
}

func (c *xmlCursor) MoveToChild() bool {
	c.meter.move()
	if c.attr >= 0 || len(c.at.children) == 0 {
		return false
	}
	c.at = c.at.children[0]
	return true
}

func (c *xmlCursor) MoveToFirst() bool { return c.sibling(0) }

func (c *xmlCursor) MoveToNext() bool { return c.sibling(c.at.index + 1) }

func (c *xmlCursor) MoveToPrevious() bool { return c.sibling(c.at.index - 1) }

func (c *xmlCursor) sibling(i int) bool {
	c.meter.move()
	if c.attr >= 0 || c.at.parent == nil || i < 0 || i >= len(c.at.parent.children) || i == c.at.index {
		return false
	}
	c.at = c.at.parent.children[i]
	return true
}

func (c *xmlCursor) MoveTo(other xpath.NodeNavigator) bool {
	c.meter.move()
	o, ok := other.(*xmlCursor)
	if !ok {
		return false
	}
	c.at, c.attr = o.at, o.attr
	return true
}
