package documents

import (
	"encoding/xml"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"crewhost/tools/native"
)

// Bounds of a text.
const (
	maxDocx     = 8 << 20 // bytes of the text that is made
	maxDocxCell = 20_000  // bytes of a cell of a table
	maxRefs     = 10_000  // notes and comments
)

// errFull ends the reading where there is enough.
var errFull = errors.New("enough")

// docxText makes Markdown of a text.
type docxText struct {
	*officePackage
	tables, comments bool

	rels   map[string]relation
	styles map[string]docxStyle
	lists  map[string][maxListLevels]listLevel
	counts map[string]*[maxListLevels]int

	size    int      // bytes made so far
	boxes   []string // text boxes of the paragraph at hand
	refs    []string // notes and comments that were referred to, such as f2, in order
	seen    map[string]bool
	deleted bool // tracked changes were left out
	hidden  bool // and hidden text
	skipped int  // tables
}

// refKind is the letter of a reference to a note or a comment.
func refKind(element string) string {
	switch element {
	case "footnoteReference":
		return "f"
	case "endnoteReference":
		return "e"
	case "commentReference":
		return "c"
	}
	return ""
}

// blocks reads paragraphs and tables up to the end of the element that was begun.
func (d *docxText) blocks(x *xmlReader) ([]string, error) {
	var list []string
	for level := x.level; x.level >= level; {
		token, err := x.next()
		if err != nil {
			return list, err
		}
		start, is := token.(xml.StartElement)
		if !is {
			continue
		}
		text := ""
		switch start.Name.Local {
		case "p":
			text, err = d.paragraph(x)
		case "tbl":
			text, err = d.table(x)
		case "del", "moveFrom":
			d.deleted = true
			err = x.pass()
		case "sectPr", "sdtPr", "Fallback":
			err = x.pass()
		}
		if text != "" {
			list = append(list, text)
		}
		if err != nil {
			return list, err
		}
	}
	return list, nil
}

// paragraph reads a paragraph: a heading, an item of a list, or plain text.
func (d *docxText) paragraph(x *xmlReader) (string, error) {
	outer := d.boxes
	d.boxes = nil
	var style docxStyle
	text, err := d.inline(x, &style)
	boxes := d.boxes
	d.boxes = outer
	text = strings.TrimSpace(text)
	switch listed := style.list.id != "" && style.list.id != "0"; {
	case text == "":
	case style.level > 0:
		if listed {
			if label := d.label(style.list); label != "-" {
				text = label + " " + text
			}
		}
		text = strings.Repeat("#", min(style.level, 6)) + " " + strings.ReplaceAll(text, "\n", " ")
	case listed:
		indent := strings.Repeat("  ", style.list.level)
		text = indent + d.label(style.list) + " " + strings.ReplaceAll(text, "\n", "\n"+indent+"  ")
	}
	for _, box := range boxes {
		text = strings.TrimPrefix(text+"\n\n", "\n\n") + box
	}
	if d.size += len(text); err == nil && d.size > maxDocx {
		err = errFull
	}
	return text, err
}

// inline reads what is in a paragraph, or in a part of one.
func (d *docxText) inline(x *xmlReader, style *docxStyle) (string, error) {
	var b strings.Builder
	for level := x.level; x.level >= level; {
		token, err := x.next()
		if err != nil {
			return b.String(), err
		}
		start, is := token.(xml.StartElement)
		if !is {
			continue
		}
		text := ""
		switch start.Name.Local {
		case "pPr":
			err = d.properties(x, style)
		case "r":
			text, err = d.run(x)
		case "hyperlink":
			if text, err = d.inline(x, style); text != "" {
				if r, is := d.rels[relationID(start)]; is && r.external && r.target != text {
					text = "[" + text + "](" + native.Shorten(r.target) + ")"
				}
			}
		case "del", "moveFrom":
			d.deleted = true
			err = x.pass()
		case "sdtPr", "Fallback", "rPr":
			err = x.pass()
		}
		if b.Len() < maxDocx {
			b.WriteString(text)
		}
		if err != nil {
			return b.String(), err
		}
	}
	return b.String(), nil
}

// properties reads what a paragraph is.
func (d *docxText) properties(x *xmlReader, style *docxStyle) error {
	for level := x.level; x.level >= level; {
		token, err := x.next()
		if err != nil {
			return err
		}
		start, is := token.(xml.StartElement)
		if !is {
			continue
		}
		switch value := attribute(start, "val"); start.Name.Local {
		case "pStyle":
			*style = d.style(value)
		case "outlineLvl":
			if n, err := strconv.Atoi(value); err == nil && n >= 0 && n < 9 {
				style.level = n + 1
			}
		case "numId":
			style.list.id = value
		case "ilvl":
			style.list.level = listDepth(value)
		case "pPrChange", "sectPr":
			if err := x.pass(); err != nil { // how it was before
				return err
			}
		}
	}
	return nil
}

// run reads text of one look.
func (d *docxText) run(x *xmlReader) (string, error) {
	var b strings.Builder
	hidden := false
	for level := x.level; x.level >= level; {
		token, err := x.next()
		if err != nil {
			return b.String(), err
		}
		start, is := token.(xml.StartElement)
		if !is {
			continue
		}
		switch start.Name.Local {
		case "vanish":
			value := attribute(start, "val")
			hidden = value == "" || isTrue(value)
		case "rPrChange", "Fallback", "instrText", "delText":
			err = x.pass()
		case "t":
			var text string
			text, err = x.text(maxDocx)
			if !hidden {
				b.WriteString(text)
			}
			d.hidden = d.hidden || hidden && text != ""
		case "tab":
			b.WriteByte('\t')
		case "br", "cr":
			b.WriteByte('\n')
		case "noBreakHyphen":
			b.WriteByte('-')
		case "docPr":
			if text := strings.TrimSpace(attribute(start, "descr")); text != "" && !hidden {
				b.WriteString("[image: " + native.Shorten(text) + "]")
			}
		case "txbxContent":
			var box []string
			box, err = d.blocks(x)
			if !hidden {
				d.boxes = append(d.boxes, box...)
			}
		default:
			if kind := refKind(start.Name.Local); kind != "" && !hidden {
				b.WriteString(d.refer(kind, attribute(start, "id")))
			}
		}
		if err != nil {
			return b.String(), err
		}
	}
	return b.String(), nil
}

// refer is the mark of a note or a comment, which is given at the end.
func (d *docxText) refer(kind, id string) string {
	if kind == "c" && !d.comments || len(d.refs) >= maxRefs || len(id) > 20 {
		return ""
	}
	key := kind + id
	if !d.seen[key] {
		d.seen[key] = true
		d.refs = append(d.refs, key)
	}
	return "[^" + key + "]"
}

// table reads a table.
func (d *docxText) table(x *xmlReader) (string, error) {
	if !d.tables {
		d.skipped++
		return "", x.pass()
	}
	var b strings.Builder
	var cells []string
	rows, width, gone := 0, 0, false
	flush := func() {
		if gone || len(cells) == 0 {
			cells, gone = nil, false
			return
		}
		if rows == 0 {
			width = len(cells)
		}
		for len(cells) < width {
			cells = append(cells, "")
		}
		b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
		if rows == 0 {
			b.WriteString("|" + strings.Repeat(" --- |", width) + "\n")
		}
		rows, cells = rows+1, nil
	}
	for level := x.level; x.level >= level; {
		token, err := x.next()
		if err != nil {
			flush()
			return b.String(), err
		}
		start, is := token.(xml.StartElement)
		if !is {
			continue
		}
		switch start.Name.Local {
		case "tr":
			flush()
		case "tc":
			var text string
			var span int
			text, span, err = d.cell(x)
			cells = append(cells, text)
			for i := 1; i < span && len(cells) < 500; i++ {
				cells = append(cells, "")
			}
		case "del", "moveFrom":
			d.deleted, gone = true, true // the properties of a row that is deleted say so
		case "tblPr", "tblGrid":
			err = x.pass()
		}
		if err != nil {
			flush()
			return b.String(), err
		}
	}
	flush()
	return strings.TrimSuffix(b.String(), "\n"), nil
}

// cell reads a cell of a table, and how many columns it takes.
func (d *docxText) cell(x *xmlReader) (string, int, error) {
	span := 1
	var list []string
	for level := x.level; x.level >= level; {
		token, err := x.next()
		if err != nil {
			return strings.Join(list, " "), span, err
		}
		start, is := token.(xml.StartElement)
		if !is {
			continue
		}
		text := ""
		switch start.Name.Local {
		case "gridSpan":
			span, _ = strconv.Atoi(attribute(start, "val"))
		case "p":
			text, err = d.paragraph(x)
		case "tbl":
			text, err = d.table(x)
		case "del", "moveFrom":
			d.deleted = true
			err = x.pass()
		case "sdtPr", "Fallback":
			err = x.pass()
		}
		if text != "" {
			list = append(list, text)
		}
		if err != nil {
			return strings.Join(list, " "), span, err
		}
	}
	text := strings.Join(list, "\n")
	if len(text) > maxDocxCell {
		text = strings.ToValidUTF8(text[:maxDocxCell], "") + "... [cut]"
	}
	return strings.NewReplacer("|", `\|`, "\n", "<br>", "\t", " ").Replace(text), span, nil
}

// notes reads the notes or comments of a part that were referred to.
func (d *docxText) notes(part, kind, element string, found map[string]string) error {
	if part == "" {
		return nil
	}
	return d.each(part, func(x *xmlReader, token xml.Token) error {
		start, is := token.(xml.StartElement)
		if !is || start.Name.Local != element {
			return nil
		}
		key := kind + attribute(start, "id")
		list, err := d.blocks(x)
		if !d.seen[key] {
			return err
		}
		text := strings.Join(list, " ")
		if author := attribute(start, "author"); author != "" {
			text = fmt.Sprintf("(%s) %s", native.Shorten(author), text)
		}
		found[key] = text
		return err
	})
}
