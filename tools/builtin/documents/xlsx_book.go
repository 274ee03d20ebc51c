package documents

import (
	"encoding/xml"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"crewhost/tools/native"
)

// Bounds of what is held of a spreadsheet. Rows are read one by one.
const (
	maxShared      = 256 << 20 // bytes of the texts that cells share
	maxSharedCount = 5_000_000
	maxSheets      = 5_000
	maxStyles      = 100_000
	maxMerged      = 200 // that are named
	maxCell        = 40_000
)

// book is an open spreadsheet.
type book struct {
	*officePackage
	sheets    []sheet
	epoch1904 bool
	kinds     []numberKind // by the number of a style
	texts     string       // the part of the texts that cells share, or empty
	strings   sharedStrings
	read      bool // strings are there
}

// sheet is a sheet of a book.
type sheet struct {
	name, part string
	hidden     bool
}

// sharedStrings are texts in one piece of memory: a file may have millions.
type sharedStrings struct {
	text []byte
	ends []uint32
}

func (s *sharedStrings) at(i int) (string, bool) {
	if i < 0 || i >= len(s.ends) {
		return "", false
	}
	from := uint32(0)
	if i > 0 {
		from = s.ends[i-1]
	}
	return string(s.text[from:s.ends[i]]), true
}

func openBook(p *officePackage) (*book, error) {
	b := &book{officePackage: p}
	main, err := p.main()
	if err != nil {
		return nil, err
	}
	rels, err := p.relations(main)
	if err != nil {
		return nil, err
	}
	root := ""
	err = p.each(main, func(_ *xmlReader, token xml.Token) error {
		start, is := token.(xml.StartElement)
		if !is {
			return nil
		}
		if root == "" {
			root = start.Name.Local
		}
		switch start.Name.Local {
		case "workbookPr":
			b.epoch1904 = isTrue(attribute(start, "date1904"))
		case "sheet":
			r := rels[relationID(start)]
			if len(b.sheets) < maxSheets {
				b.sheets = append(b.sheets, sheet{attribute(start, "name"), r.target, strings.Contains(strings.ToLower(attribute(start, "state")), "hidden")})
			}
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case root != "workbook" || len(b.sheets) == 0:
		return nil, errors.New("it is no spreadsheet, or of a binary kind (.xlsb); save it as .xlsx")
	}
	b.texts, _ = firstOf(rels, "sharedStrings")
	if part, is := firstOf(rels, "styles"); is {
		return b, b.readStyles(part)
	}
	return b, nil
}

// relationID is the id of a relation, which has the local name of other ids, too.
func relationID(e xml.StartElement) string {
	for _, a := range e.Attr {
		if a.Name.Local == "id" && strings.HasSuffix(a.Name.Space, "/relationships") {
			return a.Value
		}
	}
	return ""
}

func isTrue(s string) bool { return s == "1" || s == "true" || s == "on" }

// readStyles learns what numbers stand for.
func (b *book) readStyles(part string) error {
	custom := map[int]numberKind{}
	inside := false
	return b.each(part, func(_ *xmlReader, token xml.Token) error {
		switch t := token.(type) {
		case xml.StartElement:
			switch t.Name.Local {
			case "numFmt":
				if id, err := strconv.Atoi(attribute(t, "numFmtId")); err == nil && len(custom) < maxStyles {
					custom[id] = formatKind(attribute(t, "formatCode"))
				}
			case "cellXfs":
				inside = true
			case "xf":
				if !inside || len(b.kinds) >= maxStyles {
					return nil
				}
				id, _ := strconv.Atoi(attribute(t, "numFmtId"))
				kind, is := custom[id]
				if !is {
					kind = builtinKind(id)
				}
				b.kinds = append(b.kinds, kind)
			}
		case xml.EndElement:
			inside = inside && t.Name.Local != "cellXfs"
		}
		return nil
	})
}

// readStrings reads the texts that cells share, once.
func (b *book) readStrings() error {
	if b.read {
		return nil
	}
	b.read = true
	return b.each(b.texts, func(x *xmlReader, token xml.Token) error {
		start, is := token.(xml.StartElement)
		if !is || start.Name.Local != "si" {
			return nil
		}
		text, err := richText(x)
		if err != nil {
			return err
		}
		if len(b.strings.ends) >= maxSharedCount || len(b.strings.text)+len(text) > maxShared {
			return errors.New("it has more text than can be read")
		}
		b.strings.text = append(b.strings.text, text...)
		b.strings.ends = append(b.strings.ends, uint32(len(b.strings.text)))
		return nil
	})
}

// richText reads a text that may be in runs of different looks. How it is pronounced
// is left out.
func richText(x *xmlReader) (string, error) {
	var b strings.Builder
	for level := x.level; x.level >= level; {
		token, err := x.next()
		if err != nil {
			return "", err
		}
		start, is := token.(xml.StartElement)
		if !is {
			continue
		}
		switch start.Name.Local {
		case "rPh":
			err = x.pass()
		case "t":
			var text string
			text, err = x.text(maxCell)
			if b.Len() < maxCell {
				b.WriteString(text)
			}
		}
		if err != nil {
			return "", err
		}
	}
	return escaped(b.String()), nil
}

// escaped turns _x000D_ and the like, which stand for characters that XML has not,
// into nothing, or a line break.
func escaped(s string) string {
	if !strings.Contains(s, "_x") {
		return strings.ReplaceAll(s, "\r\n", "\n")
	}
	return strings.NewReplacer("_x000D_\n", "\n", "_x000D_", "\n", "_x000A_", "\n", "_x0009_", "\t", "_x005F_", "_", "\r\n", "\n").Replace(s)
}

// find returns the sheet of a name, or else of a number; the first one that is not
// hidden where it is empty.
func (b *book) find(name string) (sheet, error) {
	if name == "" {
		for _, s := range b.sheets {
			if !s.hidden {
				return s, nil
			}
		}
		return b.sheets[0], nil
	}
	var names []string
	for _, s := range b.sheets {
		if strings.EqualFold(s.name, name) {
			return s, nil
		}
		names = append(names, s.name)
	}
	if n, err := strconv.Atoi(name); err == nil && n >= 1 && n <= len(b.sheets) {
		return b.sheets[n-1], nil
	}
	return sheet{}, fmt.Errorf("there is no sheet %q%s; the sheets are %s", native.Shorten(name), native.DidYouMean(name, lower(names)), b.names())
}

func lower(names []string) []string {
	var low []string
	for _, n := range names {
		low = append(low, strings.ToLower(n))
	}
	return low
}

// names lists the sheets.
func (b *book) names() string {
	const most = 50
	var list []string
	for i, s := range b.sheets {
		if i == most {
			list = append(list, fmt.Sprintf("and %d more", len(b.sheets)-most))
			break
		}
		name := fmt.Sprintf("%q", native.Shorten(s.name))
		if s.hidden {
			name += " (hidden)"
		}
		list = append(list, name)
	}
	return strings.Join(list, ", ")
}
