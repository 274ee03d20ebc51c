package documents

import (
	"encoding/xml"
	"errors"
	"strconv"
	"strings"
)

// cell is a cell with something in it.
type cell struct {
	column  int
	text    string
	formula string // without =; empty for a value
}

// sheetReader reads the rows of a sheet.
type sheetReader struct {
	book *book
	area cellRange
	rows func(row int, cells []cell) error // errDone ends it

	shared map[string]sharedFormula // by their numbers

	merged []string // ranges of merged cells, those that are named
	merges int      // how many there are
	last   int      // the last row that has something in it
	width  int      // and the last column
}

// read hands out the rows of a sheet that have something in the area, in their
// order, and then knows what the whole sheet has.
func (s *sheetReader) read(part string) error {
	if err := s.book.readStrings(); err != nil {
		return err
	}
	row, column := 0, 0
	var cells []cell
	flush := func() error {
		if len(cells) == 0 {
			return nil
		}
		out := cells
		cells = nil
		return s.rows(row, out)
	}
	if s.book.parts[strings.ToLower(part)] == nil {
		return errors.New("the sheet is missing in the file, or is a chart")
	}
	return s.book.each(part, func(x *xmlReader, token xml.Token) error {
		switch t := token.(type) {
		case xml.StartElement:
			switch t.Name.Local {
			case "row":
				row++
				if n, err := strconv.Atoi(attribute(t, "r")); err == nil {
					row = n
				}
				if column = 0; row < 1 || row > maxRow {
					return errors.New("a row has no number that a row can have")
				}
			case "c":
				column++
				if c, r, ok := parseCell(attribute(t, "r")); ok && c > 0 && (r == 0 || r == row) {
					column = c
				}
				if column > maxColumn {
					return errors.New("a row has more columns than a sheet can have")
				}
				c, err := s.cell(x, t, column, row)
				if err != nil {
					return err
				}
				if c.text == "" && c.formula == "" {
					return nil
				}
				s.last, s.width = max(s.last, row), max(s.width, column)
				c.text, c.formula = shorten(c.text), shorten(c.formula)
				if a := s.area; row >= a.top && row <= a.bottom && column >= a.left && column <= a.right {
					if n := len(cells); n > 0 && cells[n-1].column >= column {
						return errors.New("the cells of a row are out of order")
					}
					cells = append(cells, c)
				}
			case "mergeCell":
				if s.merges++; s.merges <= maxMerged {
					if r, err := parseRange(attribute(t, "ref")); err == nil {
						s.merged = append(s.merged, columnName(r.left)+strconv.Itoa(r.top)+":"+columnName(r.right)+strconv.Itoa(r.bottom))
					}
				}
			}
		case xml.EndElement:
			if t.Name.Local == "row" {
				return flush()
			}
		}
		return nil
	})
}

// cell reads the cell that was begun, whose place is given.
func (s *sheetReader) cell(x *xmlReader, start xml.StartElement, column, row int) (cell, error) {
	c := cell{column: column}
	var value string
	for level := x.level; x.level >= level; {
		token, err := x.next()
		if err != nil {
			return c, err
		}
		e, is := token.(xml.StartElement)
		if !is {
			continue
		}
		switch e.Name.Local {
		case "v":
			value, err = x.text(maxCell)
		case "is":
			value, err = richText(x)
		case "f":
			var text string
			text, err = x.text(maxCell)
			c.formula = s.formula(e, text, column, row)
		}
		if err != nil {
			return c, err
		}
	}
	switch attribute(start, "t") {
	case "s":
		if value == "" { // some programs write empty cells so
			break
		}
		i, err := strconv.Atoi(strings.TrimSpace(value))
		text, ok := s.book.strings.at(i)
		if err != nil || !ok {
			return c, errors.New("a cell has a text that is not there")
		}
		c.text = text
	case "b":
		c.text = "FALSE"
		if isTrue(value) {
			c.text = "TRUE"
		}
	case "str":
		c.text = escaped(value)
	case "inlineStr", "e":
		c.text = value
	case "d": // ISO 8601
		c.text = value
	default:
		if value == "" {
			break
		}
		kind := plainNumber
		if i, err := strconv.Atoi(attribute(start, "s")); err == nil && i >= 0 && i < len(s.book.kinds) {
			kind = s.book.kinds[i]
		}
		c.text = showNumber(value, kind, s.book.epoch1904)
	}
	return c, nil
}
