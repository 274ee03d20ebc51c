package documents

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/antchfx/xpath"

	"crewhost/tools/builtin/charset"
	"crewhost/tools/native"
)

// Bounds of an XML document.
const (
	maxXML        = 4 << 20 // bytes as an argument
	maxXMLFile    = 16 << 20
	maxXMLDepth   = 256
	maxXMLNodes   = 500_000 // elements, attributes and texts
	maxAttributes = 1_000   // of one element
)

// xmlNode is a node of a document. Names are kept as they are written, and with what
// they mean: the URI of their namespace.
type xmlNode struct {
	kind          xpath.NodeType
	prefix, local string
	space         string // URI of the namespace
	text          string // of a text or a comment
	attrs         []xmlAttr
	parent        *xmlNode
	children      []*xmlNode
	index         int // among the children of parent
	order         int // in the document
	instruction   bool
	declarations  []xmlAttr // of namespaces
}

type xmlAttr struct{ prefix, local, space, value string }

// xmlDocument is a document with what is known of it.
type xmlDocument struct {
	root       *xmlNode // the document itself, above its first element
	spaces     map[string]string
	undeclared []string // prefixes that stand for no namespace
	elements   int
	depth      int
}

var xmlEncoding = regexp.MustCompile(`^<\?xml[^>]*?\sencoding\s*=\s*["']([A-Za-z0-9._:-]+)["']`) //nolint:gochecknoglobals // compiled once

// xmlText decodes a document: by its byte order mark, or else by what its first line
// says, or else as UTF-8.
func xmlText(data []byte) (string, error) {
	label := "utf-8"
	switch m := xmlEncoding.FindSubmatch(data[:min(len(data), 1024)]); {
	case m != nil:
		label = string(m[1])
		if strings.HasPrefix(strings.ToLower(label), "utf-16") || strings.HasPrefix(strings.ToLower(label), "utf-32") {
			label = "utf-8" // its first line could not be read if that were so
		}
	case len(data) > 1 && (data[0] == 0 || data[1] == 0):
		label = "" // UTF-16 without a mark
	}
	text, _, err := charset.Decode(data, label)
	return text, err
}

// parseXML reads a document. Entities of its own are refused, whatever they are for, and
// nothing that it refers to is ever read.
func parseXML(ctx context.Context, text string) (*xmlDocument, error) {
	p := xmlParser{doc: &xmlDocument{root: &xmlNode{kind: xpath.RootNode}, spaces: map[string]string{}}}
	p.at = p.doc.root
	p.scope = []map[string]string{{"xml": "http://www.w3.org/XML/1998/namespace", "": ""}}
	p.dec = xml.NewDecoder(strings.NewReader(text))
	p.dec.CharsetReader = func(_ string, r io.Reader) (io.Reader, error) { return r, nil } // it is decoded
	for {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		token, err := p.dec.RawToken()
		if errors.Is(err, io.EOF) {
			return p.end()
		}
		if err == nil {
			err = p.take(token)
		}
		if err != nil {
			return nil, p.place(err, text)
		}
	}
}

type xmlParser struct {
	dec   *xml.Decoder
	doc   *xmlDocument
	at    *xmlNode
	depth int
	scope []map[string]string // of prefixes, per open element
	nodes int
}

var errEntities = errors.New("it declares entities, which are not read, since a few lines of them can stand for gigabytes or for other files; remove the declarations and write out what they stand for")

func (p *xmlParser) take(token xml.Token) error {
	switch t := token.(type) {
	case xml.StartElement:
		return p.open(t)
	case xml.EndElement:
		if p.at.kind == xpath.RootNode {
			return fmt.Errorf("</%s> ends nothing", written(t.Name))
		}
		if p.at.prefix != t.Name.Space || p.at.local != t.Name.Local {
			return fmt.Errorf("<%s> is ended by </%s>", p.at.name(), written(t.Name))
		}
		p.at, p.depth, p.scope = p.at.parent, p.depth-1, p.scope[:len(p.scope)-1]
	case xml.CharData:
		if p.at.kind == xpath.RootNode {
			if strings.TrimSpace(string(t)) != "" {
				return errors.New("there is text outside of the first element")
			}
			return nil
		}
		// A text and the CDATA that follows are one; a long one is not copied for each.
		const long = 4096
		if n := len(p.at.children); n > 0 && p.at.children[n-1].kind == xpath.TextNode && len(p.at.children[n-1].text) < long {
			p.at.children[n-1].text += string(t)
			return nil
		}
		return p.add(&xmlNode{kind: xpath.TextNode, text: string(t)})
	case xml.Comment:
		return p.add(&xmlNode{kind: xpath.CommentNode, text: string(t)})
	case xml.ProcInst:
		if t.Target != "xml" {
			return p.add(&xmlNode{kind: xpath.CommentNode, instruction: true, text: t.Target + " " + string(t.Inst)})
		}
	case xml.Directive:
		if strings.Contains(string(t), "<!ENTITY") {
			return errEntities
		}
	}
	return nil
}

func (p *xmlParser) add(n *xmlNode) error {
	if p.nodes++; p.nodes > maxXMLNodes {
		return fmt.Errorf("it has more than %d elements, attributes and texts, which is too many to work on", maxXMLNodes)
	}
	n.parent, n.index, n.order = p.at, len(p.at.children), p.nodes
	p.at.children = append(p.at.children, n)
	return nil
}

func (p *xmlParser) open(t xml.StartElement) error {
	if p.depth++; p.depth > maxXMLDepth {
		return fmt.Errorf("it is nested more than %d levels deep", maxXMLDepth)
	}
	if p.at.kind == xpath.RootNode && p.doc.first() != nil {
		return fmt.Errorf("a second element <%s> stands beside the first; a document has one", written(t.Name))
	}
	if len(t.Attr) > maxAttributes {
		return fmt.Errorf("<%s> has more than %d attributes", written(t.Name), maxAttributes)
	}
	p.nodes += len(t.Attr)
	scope := p.scope[len(p.scope)-1]
	n := &xmlNode{kind: xpath.ElementNode, prefix: t.Name.Space, local: t.Name.Local}
	for _, a := range t.Attr {
		prefix, isSpace := "", false
		switch {
		case a.Name.Space == "xmlns":
			prefix, isSpace = a.Name.Local, true
		case a.Name.Space == "" && a.Name.Local == "xmlns":
			isSpace = true
		}
		if !isSpace {
			continue
		}
		if len(n.declarations) == 0 {
			own := make(map[string]string, len(scope)+1)
			for k, v := range scope {
				own[k] = v
			}
			scope = own
			p.nodes += len(own)
		}
		if len(scope) > maxAttributes {
			return fmt.Errorf("it declares more than %d namespaces within one another", maxAttributes)
		}
		scope[prefix] = a.Value
		n.declarations = append(n.declarations, xmlAttr{prefix: a.Name.Space, local: a.Name.Local, value: a.Value})
		if _, known := p.doc.spaces[prefix]; !known && prefix != "" {
			p.doc.spaces[prefix] = a.Value
		}
	}
	n.space = p.space(scope, n.prefix)
	seen := make(map[string]bool, len(t.Attr))
	for _, a := range t.Attr {
		if a.Name.Space == "xmlns" || a.Name.Space == "" && a.Name.Local == "xmlns" {
			continue
		}
		attr := xmlAttr{prefix: a.Name.Space, local: a.Name.Local, value: a.Value}
		if attr.prefix != "" {
			attr.space = p.space(scope, attr.prefix)
		}
		if name := written(a.Name); seen[name] {
			return fmt.Errorf("<%s> has the attribute %s twice", n.name(), native.Shorten(name))
		} else {
			seen[name] = true
		}
		n.attrs = append(n.attrs, attr)
	}
	if err := p.add(n); err != nil {
		return err
	}
	p.doc.elements++
	p.doc.depth = max(p.doc.depth, p.depth)
	p.at, p.scope = n, append(p.scope, scope)
	return nil
}

// space is what a prefix stands for. One that stands for nothing is no fault of the
// document's form: parts of documents are often given without their first lines.
func (p *xmlParser) space(scope map[string]string, prefix string) string {
	uri, ok := scope[prefix]
	if !ok && !slices.Contains(p.doc.undeclared, prefix) && len(p.doc.undeclared) < 20 {
		p.doc.undeclared = append(p.doc.undeclared, prefix)
	}
	return uri
}

func (p *xmlParser) end() (*xmlDocument, error) {
	line, column := p.dec.InputPos()
	if p.at.kind != xpath.RootNode {
		return nil, fmt.Errorf("line %d, column %d: <%s> is not ended", line, column, p.at.name())
	}
	if p.doc.first() == nil {
		return nil, errors.New("it has no element")
	}
	return p.doc, nil
}

// place adds where a fault is, and what the text may be if it is no XML at all.
func (p *xmlParser) place(err error, text string) error {
	if errors.Is(err, errEntities) {
		return err
	}
	line, column := p.dec.InputPos()
	message := err.Error()
	var syntax *xml.SyntaxError
	if errors.As(err, &syntax) {
		message = syntax.Msg
		if syntax.Line < line {
			line, column = syntax.Line, 1
		}
	}
	hint := ""
	start := strings.ToLower(strings.TrimSpace(text[:min(len(text), 1024)]))
	switch {
	case strings.HasPrefix(start, "<!doctype html") || strings.HasPrefix(start, "<html"):
		hint = "; it looks like HTML, which is seldom XML: a tool for web pages reads it"
	case strings.HasPrefix(start, "{") || strings.HasPrefix(start, "["):
		hint = "; it looks like JSON, which json_tool reads"
	case strings.Contains(message, "invalid character entity"):
		hint = "; XML itself knows &lt; &gt; &amp; &apos; &quot; and numbers such as &#228; alone"
	}
	return fmt.Errorf("line %d, column %d: %s%s", line, column, oneLine(message), hint)
}

func written(n xml.Name) string {
	if n.Space == "" {
		return native.Shorten(n.Local)
	}
	return native.Shorten(n.Space + ":" + n.Local)
}

func (n *xmlNode) name() string {
	if n.prefix == "" {
		return n.local
	}
	return n.prefix + ":" + n.local
}

func (a xmlAttr) name() string {
	if a.prefix == "" {
		return a.local
	}
	return a.prefix + ":" + a.local
}

// first is the document's element.
func (d *xmlDocument) first() *xmlNode {
	for _, n := range d.root.children {
		if n.kind == xpath.ElementNode {
			return n
		}
	}
	return nil
}
