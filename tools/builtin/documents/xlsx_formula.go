package documents

import (
	"encoding/xml"
	"strconv"
	"strings"
)

// maxFormulas bounds the formulas of a sheet that are remembered for other cells.
const maxFormulas = 50_000

// sharedFormula is a formula that is written out in one cell and used in others, with
// its references moved by as far as those are away.
type sharedFormula struct {
	text        string
	column, row int
}

// formula is the formula of a cell, without =, and empty where a table of Excel's makes
// the value.
func (s *sheetReader) formula(e xml.StartElement, text string, column, row int) string {
	if attribute(e, "t") != "shared" {
		if text == "" {
			return "(a formula that is not stored in this cell)"
		}
		return text
	}
	id := attribute(e, "si")
	if text != "" {
		if s.shared == nil {
			s.shared = map[string]sharedFormula{}
		}
		if len(s.shared) < maxFormulas && len(text) <= maxFormula {
			s.shared[id] = sharedFormula{text, column, row}
		}
		return text
	}
	first, known := s.shared[id]
	if !known {
		return "(a formula that is not stored in this cell)"
	}
	return moved(first.text, column-first.column, row-first.row)
}

// moved is a formula whose references lie so many columns and rows further on, but for
// what a $ holds.
func moved(formula string, columns, rows int) string {
	var b strings.Builder
	for i := 0; i < len(formula); {
		c := formula[i]
		switch {
		case c == '"' || c == '\'': // a text, or the name of a sheet
			end := strings.IndexByte(formula[i+1:], c)
			if end < 0 {
				return b.String() + formula[i:]
			}
			b.WriteString(formula[i : i+end+2])
			i += end + 2
		case isWordPart(c):
			end := i
			for end < len(formula) && isWordPart(formula[end]) {
				end++
			}
			word, next := formula[i:end], formula[end:]
			if next != "" && strings.IndexByte("(![", next[0]) >= 0 { // a function, a sheet, a table
				b.WriteString(word)
			} else {
				whole := strings.HasPrefix(next, ":") || strings.HasSuffix(formula[:i], ":")
				b.WriteString(movedReference(word, columns, rows, whole))
			}
			i = end
		case c == '[': // columns of a table, or another file
			end := strings.IndexByte(formula[i:], ']')
			if end < 0 {
				return b.String() + formula[i:]
			}
			b.WriteString(formula[i : i+end+1])
			i += end + 1
		default:
			b.WriteByte(c)
			i++
		}
	}
	return b.String()
}

func isWordPart(c byte) bool { return c == '$' || isNamePart(c) || isLetter(c) }

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// movedReference moves B7, $B7 or B$7, and whole columns or rows at an end of a range, such
// as B:B or $7:9. What is none of these stays as it is.
func movedReference(word string, columns, rows int, whole bool) string {
	rest, fixedColumn := strings.CutPrefix(word, "$")
	n := 0
	for n < len(rest) && isLetter(rest[n]) {
		n++
	}
	letters := rest[:n]
	digits, fixedRow := strings.CutPrefix(rest[n:], "$")
	if n == 0 {
		fixedRow = fixedColumn
	}
	column, row, ok := parseCell(letters + digits)
	if !ok || (column == 0 || row == 0) && !whole {
		return word
	}
	text := ""
	if column > 0 {
		if fixedColumn {
			text = "$"
		} else if column += columns; column < 1 || column > maxColumn {
			return "#REF!"
		}
		text += columnName(column)
	}
	if row > 0 {
		if fixedRow {
			text += "$"
		} else if row += rows; row < 1 || row > maxRow {
			return "#REF!"
		}
		text += strconv.Itoa(row)
	}
	return text
}
