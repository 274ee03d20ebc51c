package documents

import (
	"context"
	"encoding/csv"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"crewhost/tools"
	"crewhost/tools/mount"
	"crewhost/tools/native"
)

const xlsxReaderSchema = `{
  "type": "object",
  "properties": {
    "path": {
      "type": "string", "minLength": 1,
      "description": "Path of a spreadsheet in the format .xlsx or .xlsm, such as /data/sales.xlsx. Needed, unless file_path is given."
    },
    "file_path": {
      "type": "string", "minLength": 1,
      "description": "Another name for path; give one of them."
    },
    "sheet_name": {
      "type": "string", "maxLength": 100,
      "description": "The sheet to read: its name, such as Sales, or its number, such as 2; sheets count from 1. Default: the first one that is not hidden."
    },
    "range": {
      "type": "string", "maxLength": 40,
      "description": "Only these cells, such as A1:D20, or B:D for columns, or 10:20 for rows. Default: all."
    },
    "has_header_row": {
      "type": "boolean", "default": true,
      "description": "The first row that is not empty names the columns, and is given first, whatever offset is. With false, the letters of the columns are."
    },
    "offset": {
      "type": "integer", "minimum": 1, "maximum": 1048576, "default": 1,
      "description": "The first row to return, by its number in the sheet. A result that was cut says which offset goes on."
    },
    "max_rows": {
      "type": "integer", "minimum": 1, "maximum": 5000, "default": 200,
      "description": "The most rows to return. A result has at most 30000 characters, too."
    },
    "formulas": {
      "type": "boolean", "default": false,
      "description": "Show the formulas of cells that have one, such as =SUM(A1:A3), in place of the values that were stored for them."
    },
    "include_metadata": {
      "type": "boolean", "default": false,
      "description": "First list the sheets, how many rows and columns this one has, and its merged cells. Takes longer for a large sheet, which is read to its end then."
    }
  },
  "additionalProperties": false
}`

const (
	xlsxKind = ".xlsx"
	xlsxTime = 2 * time.Minute
	maxShown = 1_000 // characters of a cell
	maxNoted = 20    // notes of one kind
)

func xlsxReader(fsys *mount.FS) native.Tool {
	return native.Tool{
		Name: "xlsx_reader", Title: "Read spreadsheet",
		Description: "Reads a sheet of an .xlsx file as CSV. The first column, row, is the number of each row in the sheet; empty rows are left out. Dates and times are given as ISO 8601 has them, other numbers without their format.",
		Schema:      xlsxReaderSchema, Effect: native.ReadOnly, Timeout: xlsxTime,
		Run: func(ctx context.Context, _ tools.Call, args *native.Arguments) (tools.Result, error) {
			path := pathOf(args)
			t := &sheetText{
				area:     cellRange{1, 1, maxColumn, maxRow},
				offset:   args.Integer("offset", 1, 1, maxRow),
				most:     args.Integer("max_rows", 200, 1, 5000),
				formulas: args.Flag("formulas"),
				header:   !args.Has("has_header_row") || args.Flag("has_header_row"),
				about:    args.Flag("include_metadata"),
			}
			name := args.Text("sheet_name", "")
			if args.Has("range") {
				var err error
				if t.area, err = parseRange(args.Text("range", "")); err != nil {
					args.Note("the argument %q can't be read: %v; give A1:D20, or B:D, or 10:20", "range", err)
				}
			}
			if res, bad := args.Fault(); bad {
				return res, nil
			}
			text, err := withOffice(ctx, fsys, path, xlsxKind, func(p *officePackage) (string, error) { return t.read(p, name) })
			switch {
			case ctx.Err() != nil:
				return tools.Result{}, native.Ended(ctx, "xlsx_reader")
			case err != nil:
				return native.Failuref("%v.", err), nil
			}
			return tools.Text(text), nil
		},
	}
}

// pathOf takes the path, which has two names.
func pathOf(args *native.Arguments) string {
	switch {
	case args.Has("path") && args.Has("file_path"):
		args.Note("path and file_path are one argument; give path")
	case args.Has("file_path"):
		return args.Text("file_path", "")
	}
	return args.Need("path")
}

// sheetText makes the text of a sheet.
type sheetText struct {
	area             cellRange
	offset, most     int
	formulas, header bool
	about            bool

	length     int    // characters
	names      []cell // the header row, once it was seen
	nameRow    int
	right      int   // the last column that is shown
	rows       []row // that are shown
	next       int   // the row to go on with, where something is left
	calculated int   // formulas without a stored value
}

type row struct {
	number int
	cells  []cell
}

func (t *sheetText) read(p *officePackage, name string) (string, error) {
	b, err := openBook(p)
	if err != nil {
		return "", err
	}
	s, err := b.find(name)
	if err != nil {
		return "", err
	}
	r := sheetReader{book: b, area: t.area, rows: t.take}
	if err := r.read(s.part); err != nil {
		return "", err
	}
	return t.text(b, s, &r), nil
}

// take takes a row, as long as there is room.
func (t *sheetText) take(number int, cells []cell) error {
	heads := t.header && t.nameRow == 0
	if !heads && (number < t.offset || t.next != 0) {
		return nil
	}
	for i, c := range cells {
		if c.formula != "" && c.text == "" {
			t.calculated++
		}
		if c.formula != "" && (t.formulas || c.text == "") {
			cells[i].text = "=" + c.formula
		}
	}
	size := width(cells)
	if heads {
		t.names, t.nameRow = cells, number
		t.length += size
		t.right = max(t.right, cells[len(cells)-1].column)
		return nil
	}
	if len(t.rows) == t.most || len(t.rows) > 0 && t.length+size > maxLength {
		t.next = number
		if t.about {
			return nil
		}
		return errDone
	}
	t.length += size
	t.right = max(t.right, cells[len(cells)-1].column)
	t.rows = append(t.rows, row{number, cells})
	return nil
}

// width is about how many characters a row takes.
func width(cells []cell) int {
	n := 8 + cells[len(cells)-1].column
	for _, c := range cells {
		n += utf8.RuneCountInString(c.text) + 2
	}
	return n
}

// shorten cuts the text of a cell that is very long.
func shorten(s string) string {
	if len(s) <= maxShown {
		return s
	}
	r := []rune(s)
	if len(r) <= maxShown {
		return s
	}
	return string(r[:maxShown]) + fmt.Sprintf("... [%d more characters]", len(r)-maxShown)
}

func (t *sheetText) text(b *book, s sheet, r *sheetReader) string {
	var out strings.Builder
	if t.about {
		fmt.Fprintf(&out, "Sheets: %s\nThis sheet, %q, has %s and %s.\n", b.names(), native.Shorten(s.name),
			native.Plural(r.last, "row", "rows"), native.Plural(r.width, "column", "columns"))
		if r.merges > 0 {
			shown := r.merged[:min(len(r.merged), maxNoted)]
			fmt.Fprintf(&out, "Merged cells, whose value is in the first: %s", strings.Join(shown, ", "))
			if r.merges > len(shown) {
				fmt.Fprintf(&out, " and %d more", r.merges-len(shown))
			}
			out.WriteString(".\n")
		}
		out.WriteString("\n")
	}
	var table strings.Builder
	w := csv.NewWriter(&table)
	if t.right > 0 {
		_ = w.Write(t.heads())
	}
	for _, row := range t.rows {
		_ = w.Write(t.record(strconv.Itoa(row.number), row.cells))
	}
	w.Flush()
	out.WriteString(tools.Truncate(table.String(), maxLength)) // a single row may be longer
	out.WriteString(t.note(s))
	return out.String()
}

// heads are the names of the columns.
func (t *sheetText) heads() []string {
	if t.header {
		return t.record("row", t.names)
	}
	heads := []string{"row"}
	for c := t.area.left; c <= t.right; c++ {
		heads = append(heads, columnName(c))
	}
	return heads
}

// record is a row from the first column of the area to the last that is shown.
func (t *sheetText) record(first string, cells []cell) []string {
	record := make([]string, 1, 2+t.right-t.area.left)
	record[0] = first
	for _, c := range cells {
		for t.area.left+len(record)-1 < c.column {
			record = append(record, "")
		}
		record = append(record, c.text)
	}
	return record
}

func (t *sheetText) note(s sheet) string {
	notes := []string{fmt.Sprintf("sheet %q", native.Shorten(s.name))}
	if s.hidden {
		notes[0] += ", which is hidden"
	}
	switch n := len(t.rows); {
	case n == 0 && t.nameRow > 0 && t.offset > 1:
		notes = append(notes, "no row from the offset on")
	case n == 0 && t.nameRow > 0:
		notes = append(notes, "nothing but the row of names")
	case n == 0:
		notes = append(notes, "nothing in these cells")
	case t.next > 0:
		notes = append(notes, fmt.Sprintf("rows %d to %d; more follow, go on with offset %d", t.rows[0].number, t.rows[n-1].number, t.next))
	default:
		notes = append(notes, fmt.Sprintf("rows %d to %d, which is the end", t.rows[0].number, t.rows[n-1].number))
	}
	if t.calculated > 0 {
		notes = append(notes, native.Plural(t.calculated, "formula has no stored value and is", "formulas have no stored value and are")+" shown instead")
	}
	return "[" + strings.Join(notes, "; ") + "]"
}
