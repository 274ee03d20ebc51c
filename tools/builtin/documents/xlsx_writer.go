package documents

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/xuri/excelize/v2"

	"crewhost/tools"
	"crewhost/tools/mount"
	"crewhost/tools/native"
)

const xlsxWriterSchema = `{
  "type": "object",
  "properties": {
    "path": {
      "type": "string", "minLength": 1,
      "description": "Path of the file, which ends with .xlsx, such as /output/sales.xlsx. Missing folders are created. Needed, unless file_path is given."
    },
    "file_path": {
      "type": "string", "minLength": 1,
      "description": "Another name for path; give one of them."
    },
    "sheets": {
      "type": "array", "minItems": 1, "maxItems": 200,
      "description": "The sheets to write, at most 500000 cells in all. Example: [{\"name\": \"Sales\", \"headers\": [\"Day\", \"Amount\"], \"rows\": [[{\"date\": \"2026-11-30\"}, 12.5], [\"Sum\", {\"formula\": \"=SUM(B2:B2)\"}]]}]",
      "items": {
        "type": "object",
        "properties": {
          "name": {
            "type": "string", "minLength": 1, "maxLength": 31,
            "description": "Name of the sheet: at most 31 characters, without : \\ / ? * [ ], and different from the others."
          },
          "headers": {
            "type": "array", "items": {"type": "string"},
            "description": "Names of the columns. They become the first row, bold, with a filter, and stay in sight."
          },
          "rows": {
            "type": "array",
            "description": "The rows, in order, each a list of cells. A string stays a string, even if it begins with =.",
            "items": {
              "type": "array",
              "items": {
                "type": ["string", "number", "boolean", "null", "object"],
                "description": "A string, a number, true or false, null for an empty cell, {\"formula\": \"=SUM(A1:A3)\"} with English names of functions and commas between arguments, or {\"date\": \"2026-11-30\"} or {\"date\": \"2026-11-30T13:45:10\"}."
              }
            }
          }
        },
        "required": ["name"],
        "additionalProperties": false
      }
    },
    "append_to_existing": {
      "type": "boolean", "default": false,
      "description": "Keep what the file has: rows go below those of the sheet of that name, and sheets that are not there are added. headers must be those of the sheet then, or be left out. Otherwise the file is replaced."
    }
  },
  "required": ["sheets"],
  "additionalProperties": false
}`

// Bounds of a file that is added to: it is held in memory as a whole.
const (
	maxAppended = 16 << 20 // bytes
	maxUnpacked = 64 << 20 // bytes of all its parts
	maxWritten  = 128 << 20
)

func xlsxWriter(fsys *mount.FS) native.Tool {
	return native.Tool{
		Name: "xlsx_writer", Title: "Write spreadsheet",
		Description: "Writes sheets to an .xlsx file, replacing it unless append_to_existing is true. The file is replaced as a whole or not at all.",
		Schema:      xlsxWriterSchema, EffectOf: xlsxEffect, WritesFiles: true, Timeout: xlsxTime,
		Run: func(ctx context.Context, _ tools.Call, args *native.Arguments) (tools.Result, error) {
			name := pathOf(args)
			if name != "" && !strings.EqualFold(path.Ext(name), ".xlsx") {
				args.Note("the path %q does not end with .xlsx", native.Shorten(name))
			}
			w := bookWriter{add: args.Flag("append_to_existing"), sheets: sheetsOf(args, "sheets")}
			if res, bad := args.Fault(); bad {
				return res, nil
			}
			text, err := guarded(func() (string, error) { return w.write(ctx, fsys, name) })
			switch {
			case ctx.Err() != nil:
				return tools.Result{}, native.Ended(ctx, "xlsx_writer")
			case err != nil:
				return native.Failuref("%v.", err), nil
			}
			return tools.Text(text), nil
		},
	}
}

// xlsxEffect is the effect of a call: rows that are added would be there twice.
func xlsxEffect(arguments json.RawMessage) native.Effect {
	var args struct {
		Append json.RawMessage `json:"append_to_existing"`
	}
	_ = json.Unmarshal(arguments, &args)
	switch string(args.Append) {
	case "", "null", "false", `"false"`:
		return native.Repeatable
	}
	return native.Once
}

// bookWriter writes a spreadsheet.
type bookWriter struct {
	sheets []newSheet
	add    bool

	file         *excelize.File
	bold         int // styles
	date, moment int
	texts        int // numbers that became texts
	done         []string
}

func (w *bookWriter) write(ctx context.Context, fsys *mount.FS, name string) (string, error) {
	if err := fsys.CanWrite(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	_, err := fsys.Stat(name)
	there := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if w.add && there {
		w.file, err = openExisting(ctx, fsys, name)
	} else {
		w.file = excelize.NewFile()
		err = w.file.SetSheetName("Sheet1", w.sheets[0].name)
	}
	if err != nil {
		return "", err
	}
	defer func() { _ = w.file.Close() }()
	if err := errors.Join(w.styles(), w.fill(ctx)); err != nil {
		return "", fmt.Errorf("%s was not written: %w", name, err)
	}
	whole := true // what formulas come to is worked out when the file is opened
	if err := w.file.SetCalcProps(&excelize.CalcPropsOptions{FullCalcOnLoad: &whole}); err != nil {
		return "", fmt.Errorf("%s was not written: %w", name, err)
	}
	var buf bytes.Buffer
	if err := w.file.Write(&buf); err != nil {
		return "", fmt.Errorf("%s was not written: %w", name, err)
	}
	if err := ctx.Err(); err != nil {
		return "", err
	}
	if !there {
		if err := fsys.MkdirAll(path.Dir(path.Clean(name))); err != nil {
			return "", err
		}
	}
	out, err := fsys.Create(name, maxWritten)
	if err != nil {
		return "", err
	}
	defer func() { _ = out.Close() }()
	if _, err := out.Write(buf.Bytes()); err != nil {
		return "", err
	}
	if err := out.Commit(); err != nil {
		return "", err
	}
	return w.report(out.Path(), there, buf.Len()), nil
}

func (w *bookWriter) report(name string, there bool, size int) string {
	verb := "Created"
	switch {
	case there && w.add:
		verb = "Added to"
	case there:
		verb = "Replaced"
	}
	const most = 20
	if n := len(w.done); n > most {
		w.done = append(w.done[:most:most], fmt.Sprintf("and %d more", n-most))
	}
	text := fmt.Sprintf("%s %s (%s): %s.", verb, name, native.Plural(size, "byte", "bytes"), strings.Join(w.done, ", "))
	if w.texts > 0 {
		text += fmt.Sprintf(" %s written as text, with every digit: spreadsheets keep 15.",
			native.Plural(w.texts, "number was", "numbers were"))
	}
	return text
}

// openExisting opens the file to add to.
func openExisting(ctx context.Context, fsys *mount.FS, name string) (*excelize.File, error) {
	data, err := readFile(ctx, fsys, name, maxAppended)
	if err != nil {
		return nil, err
	}
	p, err := openOffice(ctx, bytes.NewReader(data), int64(len(data)), xlsxKind)
	if err == nil {
		_, err = openBook(p)
	}
	if err != nil {
		return nil, at(name, err)
	}
	file, err := excelize.OpenReader(bytes.NewReader(data), excelize.Options{UnzipSizeLimit: maxUnpacked, UnzipXMLSizeLimit: maxUnpacked})
	if err != nil {
		return nil, fmt.Errorf("%s can't be added to: %w; write to another file", name, err)
	}
	return file, nil
}

func (w *bookWriter) styles() error {
	var err1, err2, err3 error
	day, moment := "yyyy-mm-dd", "yyyy-mm-dd hh:mm:ss"
	w.bold, err1 = w.file.NewStyle(&excelize.Style{Font: &excelize.Font{Bold: true}})
	w.date, err2 = w.file.NewStyle(&excelize.Style{CustomNumFmt: &day})
	w.moment, err3 = w.file.NewStyle(&excelize.Style{CustomNumFmt: &moment})
	return errors.Join(err1, err2, err3)
}

// fill writes the sheets.
func (w *bookWriter) fill(ctx context.Context) error {
	for _, s := range w.sheets {
		there := slices.IndexFunc(w.file.GetSheetList(), func(n string) bool { return strings.EqualFold(n, s.name) })
		first := 1
		switch {
		case there >= 0 && w.add:
			s.name = w.file.GetSheetList()[there]
			var err error
			if first, err = w.below(&s); err != nil {
				return err
			}
		case there < 0:
			if _, err := w.file.NewSheet(s.name); err != nil {
				return err
			}
		}
		if first+len(s.rows) > maxRow {
			return fmt.Errorf("sheet %q would have more than %d rows", s.name, maxRow)
		}
		if err := w.sheet(ctx, s, first); err != nil {
			return err
		}
		w.done = append(w.done, fmt.Sprintf("sheet %q with %s", s.name, native.Plural(len(s.rows), "row", "rows")))
	}
	return nil
}

// below returns the first free row of a sheet that is there, and takes the headers off
// that it has already.
func (w *bookWriter) below(s *newSheet) (int, error) {
	rows, err := w.file.Rows(s.name)
	if err != nil {
		return 0, err
	}
	defer func() { _ = rows.Close() }()
	last, number := 0, 0
	for rows.Next() {
		number++
		cells, err := rows.Columns()
		if err != nil {
			return 0, err
		}
		if len(cells) == 0 {
			continue
		}
		if last == 0 && len(s.headers) > 0 && !slices.Equal(cells, s.headers) {
			return 0, fmt.Errorf("the headers of sheet %q are %s; give these, or none", s.name, native.Shorten(strings.Join(cells, ", ")))
		}
		last = number
	}
	if last > 0 {
		s.headers = nil
	}
	return last + 1, nil
}

// sheet writes headers and rows from a row on.
func (w *bookWriter) sheet(ctx context.Context, s newSheet, row int) error {
	widths := map[int]int{}
	wide := func(column int, text string) {
		longest := 0
		for line := range strings.SplitSeq(text, "\n") {
			longest = max(longest, utf8.RuneCountInString(line))
		}
		widths[column] = max(widths[column], longest)
	}
	top := row
	if len(s.headers) > 0 {
		for i, h := range s.headers {
			if err := w.file.SetCellStr(s.name, address(i+1, row), h); err != nil {
				return err
			}
			wide(i+1, h)
		}
		if err := w.head(s, row); err != nil {
			return err
		}
		row++
	}
	for _, cells := range s.rows {
		if err := ctx.Err(); err != nil {
			return err
		}
		for i, c := range cells {
			if err := w.cell(s.name, address(i+1, row), c); err != nil {
				return err
			}
			if c.kind == dateCell || c.kind == momentCell {
				wide(i+1, "2026-11-30 13:45:10")
			} else if c.kind != formulaCell {
				wide(i+1, c.text)
			}
		}
		row++
	}
	if top > 1 {
		return nil // the widths of a sheet that was there are its own
	}
	for _, column := range slices.Sorted(maps.Keys(widths)) {
		name := columnName(column)
		if err := w.file.SetColWidth(s.name, name, name, float64(min(max(widths[column]+2, 9), 60))); err != nil {
			return err
		}
	}
	return nil
}

// head makes a row of headers bold, filters by it and keeps it in sight.
func (w *bookWriter) head(s newSheet, row int) error {
	first, last := address(1, row), address(len(s.headers), row)
	end := address(len(s.headers), row+len(s.rows))
	return errors.Join(
		w.file.SetCellStyle(s.name, first, last, w.bold),
		w.file.AutoFilter(s.name, first+":"+end, nil),
		w.file.SetPanes(s.name, &excelize.Panes{Freeze: true, YSplit: row, TopLeftCell: address(1, row+1), ActivePane: "bottomLeft"}),
	)
}

func address(column, row int) string { return fmt.Sprintf("%s%d", columnName(column), row) }

func (w *bookWriter) cell(sheet, at string, c newCell) error {
	switch c.kind {
	case textCell:
		return w.file.SetCellStr(sheet, at, c.text)
	case yesNoCell:
		return w.file.SetCellBool(sheet, at, c.yes)
	case formulaCell:
		return w.file.SetCellFormula(sheet, at, c.text)
	case numberCell:
		if !fits(c.text) {
			w.texts++
			return w.file.SetCellStr(sheet, at, c.text)
		}
		return w.file.SetCellDefault(sheet, at, c.text)
	case dateCell, momentCell:
		style := w.date
		if c.kind == momentCell {
			style = w.moment
		}
		return errors.Join(w.file.SetCellFloat(sheet, at, c.days, -1, 64), w.file.SetCellStyle(sheet, at, at, style))
	}
	return nil
}
