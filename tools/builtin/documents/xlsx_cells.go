package documents

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"

	"crewhost/tools/native"
)

// Bounds of what is written at once, and of a sheet.
const (
	maxNewCells  = 500_000
	maxNewSheets = 200
	maxSheetName = 31     // units of UTF-16
	maxCellText  = 32_767 // the same
	maxFormula   = 8_192
)

// newSheet is a sheet to write.
type newSheet struct {
	name    string
	headers []string
	rows    [][]newCell
}

// newCell is a cell to write: nothing, a text, a number, a boolean, a formula or a date.
type newCell struct {
	kind cellKind
	text string // of a text, a number as it was given, or a formula without =
	yes  bool
	days float64 // since the epoch
}

type cellKind uint8

const (
	noCell cellKind = iota
	textCell
	numberCell
	yesNoCell
	formulaCell
	dateCell
	momentCell // a date and a time
)

// sheetsOf takes the sheets of a call, and notes all that is wrong with them.
func sheetsOf(args *native.Arguments, name string) []newSheet {
	raw := args.Raw(name)
	if raw == nil {
		args.Note("the argument %q is missing", name)
		return nil
	}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		args.Note("the argument %q must be a list of sheets", name)
		return nil
	}
	if len(list) == 0 || len(list) > maxNewSheets {
		args.Note("the argument %q must have 1 to %d sheets, and has %d", name, maxNewSheets, len(list))
		return nil
	}
	t := taker{args: args, taken: map[string]bool{}}
	var sheets []newSheet
	for i, raw := range list {
		t.where = fmt.Sprintf("sheet %d", i+1)
		sheets = append(sheets, t.sheet(raw))
	}
	if t.cells > maxNewCells {
		args.Note("the sheets have %d cells, and at most %d can be written at once", t.cells, maxNewCells)
	}
	return sheets
}

// taker takes what a call has.
type taker struct {
	args  *native.Arguments
	where string
	taken map[string]bool // names of sheets
	cells int
}

func (t *taker) note(format string, args ...any) {
	t.args.Note("%s", t.where+": "+fmt.Sprintf(format, args...))
}

func (t *taker) sheet(raw json.RawMessage) newSheet {
	var s newSheet
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil || members == nil {
		t.note("it must be an object with name, headers and rows")
		return s
	}
	for _, key := range slices.Sorted(maps.Keys(members)) {
		known := []string{"name", "headers", "rows"}
		if !slices.Contains(known, key) {
			t.note("there is no %q in a sheet%s", native.Shorten(key), native.DidYouMean(key, known))
		}
	}
	if json.Unmarshal(members["name"], &s.name) != nil {
		t.note("its name is missing, or no string")
	} else {
		t.name(s.name)
	}
	if raw := members["headers"]; raw != nil && json.Unmarshal(raw, &s.headers) != nil {
		t.note("headers must be a list of strings")
	}
	for i, h := range s.headers {
		t.length(h, columnName(i+1)+"1")
	}
	var rows []json.RawMessage
	if raw := members["rows"]; raw != nil && json.Unmarshal(raw, &rows) != nil {
		t.note("rows must be a list of rows, each of which is a list of cells")
	}
	first := 1
	if len(s.headers) > 0 {
		first = 2
	}
	switch {
	case len(s.headers) > maxColumn:
		t.note("it has %d columns, and at most %d can be", len(s.headers), maxColumn)
	case len(rows) > maxRow-1:
		t.note("it has %d rows, and at most %d can be", len(rows), maxRow-1)
		return s
	case len(rows) == 0 && len(s.headers) == 0:
		t.note("it has neither headers nor rows")
	}
	for i, raw := range rows {
		s.rows = append(s.rows, t.row(raw, i+first))
	}
	t.cells += len(s.headers)
	return s
}

// name notes what a spreadsheet would refuse in a name.
func (t *taker) name(name string) {
	t.where = fmt.Sprintf("sheet %q", native.Shorten(name))
	low := strings.ToLower(name)
	switch {
	case strings.TrimSpace(name) == "":
		t.note("its name is empty")
	case units(name) > maxSheetName:
		t.note("its name has %d characters, and at most %d can be", units(name), maxSheetName)
	case low == "history":
		t.note("the name History is reserved")
	}
	if strings.ContainsAny(name, `:\/?*[]`) || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' }) {
		t.note(`its name must not have any of : \ / ? * [ ] or a line break`)
	}
	if strings.HasPrefix(name, "'") || strings.HasSuffix(name, "'") {
		t.note("its name must not begin or end with an apostrophe")
	}
	if t.taken[low] {
		t.note("the name is given twice; capitals make no difference")
	}
	t.taken[low] = true
}

func units(s string) int { return len(utf16.Encode([]rune(s))) }

func (t *taker) length(text, cell string) {
	if len(text) > maxCellText && units(text) > maxCellText {
		t.note("the text of cell %s has %d characters, and at most %d can be", cell, units(text), maxCellText)
	}
}

func (t *taker) row(raw json.RawMessage, number int) []newCell {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		t.note("row %d must be a list of cells", number)
		return nil
	}
	if len(list) > maxColumn {
		t.note("row %d has %d cells, and at most %d can be", number, len(list), maxColumn)
		return nil
	}
	t.cells += len(list)
	cells := make([]newCell, len(list))
	for i, raw := range list {
		where := columnName(i+1) + strconv.Itoa(number)
		cell, err := cellOf(raw)
		if err != nil {
			t.note("cell %s: %v", where, err)
		}
		if cell.kind == textCell {
			t.length(cell.text, where)
		}
		cells[i] = cell
	}
	return cells
}

// cellOf reads a cell of a call.
func cellOf(raw json.RawMessage) (newCell, error) {
	raw = bytes.TrimSpace(raw)
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return newCell{}, nil
	case string(raw) == "true" || string(raw) == "false":
		return newCell{kind: yesNoCell, yes: raw[0] == 't'}, nil
	case raw[0] == '"':
		var s string
		err := json.Unmarshal(raw, &s)
		return newCell{kind: textCell, text: s}, err
	case raw[0] == '{':
		return specialCell(raw)
	case raw[0] == '[':
		return newCell{}, fmt.Errorf("a cell can't be a list")
	}
	return newCell{kind: numberCell, text: string(raw)}, nil
}

func specialCell(raw json.RawMessage) (newCell, error) {
	var members map[string]*string
	if json.Unmarshal(raw, &members) != nil || len(members) != 1 {
		return newCell{}, fmt.Errorf(`an object must be {"formula": "=SUM(A1:A3)"} or {"date": "2026-11-30"}`)
	}
	switch formula, date := members["formula"], members["date"]; {
	case formula != nil:
		text := strings.TrimPrefix(strings.TrimSpace(*formula), "=")
		return newCell{kind: formulaCell, text: text}, checkFormula(text)
	case date != nil:
		return dateOf(strings.TrimSpace(*date))
	}
	return newCell{}, fmt.Errorf(`an object must be {"formula": "=SUM(A1:A3)"} or {"date": "2026-11-30"}`)
}

// dateOf reads a date, with or without a time of day.
func dateOf(text string) (newCell, error) {
	kind := dateCell
	when, err := time.Parse(time.DateOnly, text)
	if err != nil {
		kind = momentCell
		for _, layout := range []string{"2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04"} {
			if when, err = time.Parse(layout, text); err == nil {
				break
			}
		}
	}
	if err != nil {
		return newCell{}, fmt.Errorf("%q is no date such as 2026-11-30, or 2026-11-30T13:45:10 without a time zone", native.Shorten(text))
	}
	epoch := time.Date(1899, 12, 30, 0, 0, 0, 0, time.UTC)
	days := when.Sub(epoch).Hours() / 24
	switch {
	case when.Year() < 1900 || when.Year() > 9999:
		return newCell{}, fmt.Errorf("%s can't be a date in a spreadsheet, which begins with 1900; give it as a text", text)
	case days < 61:
		days-- // spreadsheets have a 29th of February 1900
	}
	return newCell{kind: kind, days: days}, nil
}

// checkFormula refuses what would make a spreadsheet program call the file damaged, and
// functions that start programs or fetch from the network when somebody opens it.
func checkFormula(text string) error {
	if text == "" {
		return fmt.Errorf("the formula is empty")
	}
	if units(text) > maxFormula {
		return fmt.Errorf("the formula is longer than %d characters", maxFormula)
	}
	depth := 0
	var bare strings.Builder // what is not in quotes
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '"', '\'':
			end := strings.IndexByte(text[i+1:], c)
			if end < 0 {
				return fmt.Errorf("a quote in the formula %q has no end", native.Shorten(text))
			}
			i += end + 1
			bare.WriteByte(c)
		case '(':
			depth++
			bare.WriteByte(c)
		case ')':
			if depth--; depth < 0 {
				return fmt.Errorf("the formula %q closes a bracket that it did not open", native.Shorten(text))
			}
			bare.WriteByte(c)
		case '|':
			return fmt.Errorf("the formula %q starts another program, which is not written here", native.Shorten(text))
		default:
			if c < ' ' && c != '\n' && c != '\t' {
				return fmt.Errorf("the formula has a control character")
			}
			bare.WriteByte(c)
		}
	}
	if depth > 0 {
		return fmt.Errorf("the formula %q opens a bracket that it does not close", native.Shorten(text))
	}
	upper := strings.ToUpper(strings.Join(strings.Fields(bare.String()), ""))
	for _, f := range []string{"WEBSERVICE", "IMAGE", "RTD", "DDE", "CALL", "REGISTER", "REGISTER.ID", "EXEC"} {
		for rest := upper; ; {
			at := strings.Index(rest, f+"(")
			if at < 0 {
				break
			}
			if at == 0 || !isNamePart(rest[at-1]) || strings.HasSuffix(rest[:at], "_XLFN.") {
				return fmt.Errorf("the function %s reaches out of the file, and is not written here", f)
			}
			rest = rest[at+1:]
		}
	}
	return nil
}

func isNamePart(c byte) bool {
	return c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '.' || c >= 0x80
}

// fits reports whether a number keeps all its digits in a spreadsheet, which has
// fifteen, and whether it is one there at all.
func fits(number string) bool {
	f, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return false
	}
	if strings.ContainsAny(number, ".eE") {
		return f <= 9.99999999999999e307 && f >= -9.99999999999999e307
	}
	return len(strings.TrimRight(strings.TrimLeft(number, "-0"), "0")) <= 15
}
