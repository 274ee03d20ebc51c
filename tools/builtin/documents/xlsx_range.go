package documents

import (
	"fmt"
	"strconv"
	"strings"
)

// The bounds of a sheet.
const (
	maxRow    = 1_048_576
	maxColumn = 16_384
)

// cellRange is a rectangle of cells, its ends included. Rows and columns count from 1.
type cellRange struct{ left, top, right, bottom int }

// parseRange reads A1:D20, A:D, 2:20 or A1.
func parseRange(text string) (cellRange, error) {
	first, second, is := strings.Cut(strings.ReplaceAll(strings.TrimSpace(text), "$", ""), ":")
	if !is {
		second = first
	}
	left, top, ok1 := parseCell(first)
	right, bottom, ok2 := parseCell(second)
	if !ok1 || !ok2 || (left == 0) != (right == 0) || (top == 0) != (bottom == 0) {
		return cellRange{}, fmt.Errorf("%.40q is no range of cells", text)
	}
	r := cellRange{min(left, right), min(top, bottom), max(left, right), max(top, bottom)}
	if r.left == 0 {
		r.left, r.right = 1, maxColumn
	}
	if r.top == 0 {
		r.top, r.bottom = 1, maxRow
	}
	return r, nil
}

// parseCell reads B7, B or 7; what is missing is zero.
func parseCell(text string) (column, row int, ok bool) {
	i := 0
	for ; i < len(text); i++ {
		c := text[i] &^ 0x20 // capital
		if c < 'A' || c > 'Z' {
			break
		}
		if column = column*26 + int(c-'A') + 1; column > maxColumn {
			return 0, 0, false
		}
	}
	if i == len(text) {
		return column, 0, i > 0
	}
	n, err := strconv.ParseUint(text[i:], 10, 31)
	if err != nil || n == 0 || n > maxRow {
		return 0, 0, false
	}
	return column, int(n), true
}

// columnName is the letters of a column.
func columnName(column int) string {
	var name []byte
	for ; column > 0; column = (column - 1) / 26 {
		name = append([]byte{byte('A' + (column-1)%26)}, name...)
	}
	return string(name)
}
