package documents

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/antchfx/xpath"

	"crewhost/tools/native"
)

// maxIndent bounds what a deep document is indented by, which may be more than it holds.
const maxIndent = 40

// writeXML writes an element, indented from a level on, or as it is where that is -1. An
// element that holds text of its own is not indented within: blanks would be part of it.
func writeXML(b *strings.Builder, n *xmlNode, level int) {
	switch {
	case n.kind == xpath.TextNode:
		escape(b, n.text, "\r", "&#13;")
		return
	case n.instruction:
		b.WriteString("<?" + n.text + "?>")
		return
	case n.kind == xpath.CommentNode:
		b.WriteString("<!--" + n.text + "-->")
		return
	}
	b.WriteString("<" + n.name())
	for _, list := range [][]xmlAttr{n.declarations, n.attrs} {
		for _, a := range list {
			b.WriteString(" " + a.name() + `="`)
			escape(b, a.value, `"`, "&quot;", "\n", "&#10;", "\r", "&#13;", "\t", "&#9;")
			b.WriteString(`"`)
		}
	}
	if len(n.children) == 0 {
		b.WriteString("/>")
		return
	}
	b.WriteString(">")
	inner := level
	if level >= 0 {
		inner = level + 1
		if slices.ContainsFunc(n.children, func(c *xmlNode) bool {
			return c.kind == xpath.TextNode && strings.TrimSpace(c.text) != ""
		}) {
			inner = -1
		}
	}
	broken := false
	for _, c := range n.children {
		if inner >= 0 {
			if c.kind == xpath.TextNode {
				continue
			}
			b.WriteString("\n" + strings.Repeat("  ", min(inner, maxIndent)))
			broken = true
		}
		writeXML(b, c, inner)
	}
	if broken {
		b.WriteString("\n" + strings.Repeat("  ", min(level, maxIndent)))
	}
	b.WriteString("</" + n.name() + ">")
}

func escape(b *strings.Builder, text string, more ...string) {
	_, _ = strings.NewReplacer(append([]string{"&", "&amp;", "<", "&lt;", ">", "&gt;"}, more...)...).WriteString(b, text) // a Builder takes everything
}

// formatXML indents a document.
func formatXML(doc *xmlDocument) string {
	var b strings.Builder
	b.WriteString(`<?xml version="1.0" encoding="UTF-8"?>`)
	for _, n := range doc.root.children {
		b.WriteByte('\n')
		writeXML(&b, n, 0)
	}
	return b.String()
}

// jsonOfXML writes a document as JSON: attributes are members with an @, elements of one
// name a list, an element with nothing but text is that text, and text beside elements is
// the member #text.
func jsonOfXML(doc *xmlDocument) string {
	var b bytes.Buffer
	first := doc.first()
	b.WriteString("{" + quote(first.name()) + ":")
	writeJSON(&b, first)
	b.WriteString("}")
	if doc.depth > maxIndent {
		return b.String()
	}
	var out bytes.Buffer
	_ = json.Indent(&out, b.Bytes(), "", "  ") // it is JSON
	return out.String()
}

func quote(s string) string {
	out, _ := encode(s) // strings always are JSON
	return string(out)
}

func writeJSON(b *bytes.Buffer, n *xmlNode) {
	text := ""
	var names []string
	groups := map[string][]*xmlNode{}
	for _, c := range n.children {
		switch c.kind {
		case xpath.TextNode:
			text += c.text
		case xpath.ElementNode:
			name := c.name()
			if groups[name] == nil {
				names = append(names, name)
			}
			groups[name] = append(groups[name], c)
		}
	}
	if len(n.attrs) == 0 && len(names) == 0 {
		b.WriteString(quote(text))
		return
	}
	var sep string
	member := func(name string) {
		b.WriteString(sep + quote(name) + ":")
		sep = ","
	}
	b.WriteString("{")
	for _, a := range n.attrs {
		member("@" + a.name())
		b.WriteString(quote(a.value))
	}
	for _, name := range names {
		member(name)
		group := groups[name]
		if len(group) == 1 {
			writeJSON(b, group[0])
			continue
		}
		for i, c := range group {
			b.WriteString([]string{"[", ","}[min(i, 1)])
			writeJSON(b, c)
		}
		b.WriteString("]")
	}
	if strings.TrimSpace(text) != "" {
		member("#text")
		b.WriteString(quote(strings.TrimSpace(text)))
	}
	b.WriteString("}")
}

// outlineXML tells the shape of a document: the paths of its elements, how many there are
// of each, and their attributes.
func outlineXML(doc *xmlDocument) string {
	type entry struct {
		count int
		attrs []string
		text  string
	}
	var order []string
	entries := map[string]*entry{}
	var visit func(path string, n *xmlNode)
	visit = func(path string, n *xmlNode) {
		path += "/" + n.name()
		e := entries[path]
		if e == nil {
			const most = 500
			if len(order) == most {
				return
			}
			e = &entry{}
			entries[path] = e
			order = append(order, path)
		}
		e.count++
		for _, a := range n.attrs {
			if name := a.name(); !slices.Contains(e.attrs, name) && len(e.attrs) < 20 {
				e.attrs = append(e.attrs, name)
			}
		}
		for _, c := range n.children {
			if c.kind == xpath.TextNode && e.text == "" {
				e.text = native.Shorten(oneLine(c.text[:min(len(c.text), 300)]))
			}
			if c.kind == xpath.ElementNode {
				visit(path, c)
			}
		}
	}
	visit("", doc.first())
	var b strings.Builder
	fmt.Fprintf(&b, "Well-formed: %s, at most %s deep.", native.Plural(doc.elements, "element", "elements"), native.Plural(doc.depth, "level", "levels"))
	for _, path := range order {
		e := entries[path]
		fmt.Fprintf(&b, "\n%s (%d)", path, e.count)
		for _, a := range e.attrs {
			b.WriteString(" @" + a)
		}
		if e.text != "" {
			fmt.Fprintf(&b, " such as %q", strings.ToValidUTF8(e.text, ""))
		}
	}
	return b.String()
}
