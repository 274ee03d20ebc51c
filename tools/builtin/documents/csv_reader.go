package documents

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"crewhost/tools"
	"crewhost/tools/builtin/charset"
	"crewhost/tools/mount"
	"crewhost/tools/native"
)

const csvReaderSchema = `{
  "type": "object",
  "properties": {
    "path": {
      "type": "string", "minLength": 1,
      "description": "Path of a file of separated values, such as /data/sales.csv, of any size."
    },
    "has_header": {
      "type": "boolean", "default": true,
      "description": "The first row holds the names of the columns. Without one they are column_1, column_2 and so on."
    },
    "delimiter": {
      "type": "string", "maxLength": 3,
      "description": "What separates values, one character such as ; or tab. Default: what the file uses of , ; tab and |."
    },
    "max_rows": {
      "type": "integer", "minimum": 1, "maximum": 10000, "default": 100,
      "description": "The most rows to return."
    },
    "offset": {
      "type": "integer", "minimum": 1, "default": 1,
      "description": "The first row to return, of those that where and contains choose; rows count from 1, without the header."
    },
    "columns": {
      "type": "array", "items": {"type": "string"}, "maxItems": 500,
      "description": "Names of the columns to return, in this order, such as [\"date\", \"amount\"]. Default: all."
    },
    "where": {
      "type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}, "maxProperties": 20,
      "description": "Only rows whose values are exactly these, such as {\"country\": \"DE\"}."
    },
    "contains": {
      "type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}, "maxProperties": 20,
      "description": "Only rows whose values hold these texts, whatever the case, such as {\"name\": \"smith\"}."
    },
    "summary": {
      "type": "boolean", "default": false,
      "description": "Instead of rows, read the whole file and return how many rows it has, and of each column its type, range and number of empty values."
    },
    "format": {
      "type": "string", "enum": ["table", "json", "csv"], "default": "table",
      "description": "Form of the rows: a Markdown table, a JSON list of objects, or CSV with commas. Values are texts as the file has them."
    },
    "encoding": {
      "type": "string", "maxLength": 40,
      "description": "Encoding of the file, such as windows-1252 or utf-16le. Default: what its bytes say."
    },
    "max_chars": {
      "type": "integer", "minimum": 100, "maximum": 30000, "default": 8000,
      "description": "The most characters to return: as many whole rows as they hold."
    }
  },
  "required": ["path"],
  "additionalProperties": false
}`

func csvReader(fsys *mount.FS) native.Tool {
	return native.Tool{
		Name: "csv_reader", Title: "Read CSV",
		Description: "Reads rows of a CSV file (or one with tabs, semicolons or bars), chooses columns and rows, or sums the file up. " +
			"The file can be of any size. Start with summary where you don't know it.",
		Schema: csvReaderSchema, Effect: native.ReadOnly,
		Run: func(ctx context.Context, _ tools.Call, args *native.Arguments) (tools.Result, error) {
			call := csvCall{
				path:     args.Need("path"),
				header:   !args.Has("has_header") || args.Flag("has_header"),
				rows:     args.Integer("max_rows", 100, 1, 10_000),
				offset:   args.Integer("offset", 1, 1, math.MaxInt),
				columns:  args.List("columns"),
				where:    args.Object("where"),
				contains: args.Object("contains"),
				summary:  args.Flag("summary"),
				format:   args.OneOf("format", "table", "table", "json", "csv"),
				encoding: args.Text("encoding", ""),
				most:     args.Integer("max_chars", defaultChars, 100, maxChars),
			}
			var ok bool
			if call.comma, ok = delimiterOf(args.Text("delimiter", "")); !ok {
				args.Note("the argument %q must be one ASCII character, such as ; or tab", "delimiter")
			}
			if call.encoding != "" {
				if _, err := charset.Find(call.encoding); err != nil {
					args.Note("the argument %q: %v", "encoding", err)
				}
			}
			if res, bad := args.Fault(); bad {
				return res, nil
			}
			text, err := call.run(ctx, fsys)
			switch {
			case ctx.Err() != nil:
				return tools.Result{}, native.Ended(ctx, "csv_reader")
			case err != nil:
				return tools.Failure(err.Error()), nil
			}
			return tools.Text(text), nil
		},
	}
}

// delimiterOf takes a character, or a name of one; zero means that the file tells.
func delimiterOf(text string) (byte, bool) {
	switch strings.ToLower(text) {
	case "":
		return 0, true
	case "tab", `\t`:
		return '\t', true
	}
	if len(text) != 1 || strings.ContainsAny(text, "\"\r\n\x00") || text[0] >= 0x80 {
		return 0, false
	}
	return text[0], true
}

// csvCall is one call of csv_reader.
type csvCall struct {
	path, format, encoding string
	header, summary        bool
	comma                  byte
	rows, offset, most     int
	columns                []string
	where, contains        []native.Member

	names  []string // of the columns
	chosen []int
	tests  []csvTest
	notes  []string
	ragged []int // lines of rows of another length than the first
	uneven int
}

// csvTest is a condition on a value.
type csvTest struct {
	column int
	text   string
	whole  bool
}

func (c *csvCall) note(format string, args ...any) {
	c.notes = append(c.notes, fmt.Sprintf(format, args...))
}

func (c *csvCall) run(ctx context.Context, fsys *mount.FS) (string, error) {
	f, err := fsys.Open(c.path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, form, err := charset.NewReader(native.Reader(ctx, f), c.encoding)
	if err != nil {
		return "", fmt.Errorf("%s can't be read: %w", c.path, err)
	}
	text.Lossy = true // one bad byte is no reason to refuse a million rows
	in := bufio.NewReaderSize(text, 64<<10)
	head, err := in.Peek(64 << 10)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("%s can't be read: %w", c.path, err)
	}
	shape := sniff(head, c.comma)
	if _, err := in.Discard(shape.skip); err != nil {
		return "", err
	}
	s := newCSVScanner(in, shape.comma, shape.end)
	out, err := c.read(s)
	if err != nil {
		return "", fmt.Errorf("%s: %w", c.path, err)
	}
	if note := form.Note(); note != "" && c.encoding == "" {
		c.note("%s", note)
	}
	if c.comma == 0 && shape.comma != ',' {
		c.note("the delimiter is %s", delimiterName(shape.comma))
	}
	c.report(s)
	if n := text.Replaced(); n > 0 {
		c.note("%s no %s and shown as %q; name the encoding", native.Plural(n, "place is", "places are"), form, "\uFFFD")
	}
	for _, n := range c.notes {
		out += "\n[" + n + "]"
	}
	return out, nil
}

func delimiterName(comma byte) string {
	if comma == '\t' {
		return "tab"
	}
	return string(rune(comma))
}

// report notes what was found amiss in the rows that were read.
func (c *csvCall) report(s *csvScanner) {
	if c.uneven > 0 {
		var lines []string
		for _, l := range c.ragged {
			lines = append(lines, strconv.Itoa(l))
		}
		c.note("%s not %s like the first row: line %s%s", native.Plural(c.uneven, "row has", "rows have"),
			native.Plural(len(c.names), "value", "values"), strings.Join(lines, ", "), map[bool]string{true: " and more"}[c.uneven > len(lines)])
	}
	if s.unclosed > 0 {
		c.note("a quote in the row of line %d is never closed; everything behind it was taken for one value", s.unclosed)
	}
	if s.stray > 0 {
		c.note("%s text behind its closing quote, which was taken as a part of it", native.Plural(s.stray, "value has", "values have"))
	}
	if s.cut > 0 {
		c.note("%s longer than %d bytes and cut", native.Plural(s.cut, "value was", "values were"), maxCSVField)
	}
	if s.more > 0 {
		c.note("values beyond column %d were left out", maxCSVColumns)
	}
}

// read reads the header and then the rows, or sums them up.
func (c *csvCall) read(s *csvScanner) (string, error) {
	fields, err := s.next()
	if errors.Is(err, io.EOF) {
		return "[the file has no rows]", nil
	}
	if err != nil {
		return "", err
	}
	c.name(fields)
	if err := c.choose(); err != nil {
		return "", err
	}
	if c.header {
		fields = nil
	}
	if c.summary {
		return c.sumUp(s, fields)
	}
	return c.page(s, fields)
}

// name names the columns after the first row. A name that is there already gets a number.
func (c *csvCall) name(first [][]byte) {
	taken, next := map[string]bool{}, map[string]int{} // next is the number to try for a name
	var twice []string
	for i, field := range first {
		name := fmt.Sprintf("column_%d", i+1)
		if text := strings.TrimSpace(string(field)); c.header && text != "" {
			name = native.Shorten(text)
		}
		if taken[name] {
			twice = append(twice, name)
		}
		base := name
		for n := max(next[base], 2); taken[name]; n++ {
			name = fmt.Sprintf("%s_%d", base, n)
			next[base] = n + 1
		}
		taken[name] = true
		c.names = append(c.names, name)
	}
	if len(twice) > 0 {
		c.note("several columns are named %s; the later ones have a number added", strings.Join(slices.Compact(twice[:min(len(twice), 5)]), ", "))
	}
}

// choose finds the columns that the arguments name.
func (c *csvCall) choose() error {
	for _, name := range c.columns {
		i, err := c.column(name)
		if err != nil {
			return err
		}
		c.chosen = append(c.chosen, i)
	}
	for i, members := range [][]native.Member{c.where, c.contains} {
		for _, m := range members {
			at, err := c.column(m.Name)
			if err != nil {
				return err
			}
			t := csvTest{column: at, text: m.Text, whole: i == 0}
			if !t.whole {
				t.text = strings.ToLower(t.text)
			}
			c.tests = append(c.tests, t)
		}
	}
	return nil
}

func (c *csvCall) column(name string) (int, error) {
	if i := slices.Index(c.names, name); i >= 0 {
		return i, nil
	}
	if i := slices.IndexFunc(c.names, func(n string) bool { return strings.EqualFold(n, strings.TrimSpace(name)) }); i >= 0 {
		return i, nil
	}
	shown := strings.Join(c.names[:min(len(c.names), 50)], ", ")
	if len(c.names) > 50 {
		shown += fmt.Sprintf(" and %d more", len(c.names)-50)
	}
	return 0, fmt.Errorf("there is no column %q%s; the columns are %s", native.Shorten(name), native.DidYouMean(name, c.names), shown)
}

// matches applies the conditions to a row.
func (c *csvCall) matches(row [][]byte) bool {
	for _, t := range c.tests {
		value := ""
		if t.column < len(row) {
			value = string(row[t.column])
		}
		if t.whole && value != t.text || !t.whole && !strings.Contains(strings.ToLower(value), t.text) {
			return false
		}
	}
	return true
}

// each calls do for the rows that match, until it returns false. It returns whether it
// came to the end.
func (c *csvCall) each(s *csvScanner, first [][]byte, do func(row [][]byte) bool) (bool, error) {
	for row := first; ; row = nil {
		if row == nil {
			var err error
			if row, err = s.next(); errors.Is(err, io.EOF) {
				return true, nil
			} else if err != nil {
				return false, err
			}
		}
		if len(row) != len(c.names) {
			if c.uneven++; len(c.ragged) < 5 {
				c.ragged = append(c.ragged, s.line)
			}
		}
		if c.matches(row) && !do(row) {
			return false, nil
		}
	}
}

// page returns the rows from the offset on.
func (c *csvCall) page(s *csvScanner, first [][]byte) (string, error) {
	table := csvTable{}
	seen, size, width := 0, 0, len(c.names)
	all, err := c.each(s, first, func(row [][]byte) bool {
		if seen++; seen < c.offset {
			return true
		}
		if len(table.rows) == c.rows || size > 4*c.most {
			return false
		}
		values := c.pick(row)
		for i, v := range values {
			values[i] = table.clip(v, c.most/2)
			size += len(values[i])
		}
		width = max(width, len(values))
		table.rows = append(table.rows, values)
		return true
	})
	if err != nil {
		return "", err
	}
	kind := "row"
	if len(c.tests) > 0 {
		kind = "matching row"
	}
	if all && len(table.rows) == 0 {
		if c.offset > 1 && seen > 0 {
			return "", fmt.Errorf("%s is all that there is; offset lies behind them", native.Plural(seen, kind, kind+"s"))
		}
		return fmt.Sprintf("[no %s; the columns are %s]", kind, strings.Join(c.names[:min(len(c.names), 100)], ", ")), nil
	}
	table.columns = c.heads(width)
	for i, row := range table.rows {
		for len(row) < len(table.columns) {
			row = append(row, "")
		}
		table.rows[i] = row
	}
	text, n := table.write(c.format, c.most)
	last := c.offset + n - 1
	switch {
	case all && n == len(table.rows) && c.offset == 1:
		c.notes = append([]string{native.Plural(n, kind, kind+"s")}, c.notes...)
	case all && n == len(table.rows):
		c.notes = append([]string{fmt.Sprintf("%ss %d to %d of %d", kind, c.offset, last, seen)}, c.notes...)
	case all:
		c.notes = append([]string{fmt.Sprintf("%ss %d to %d of %d; go on with offset %d", kind, c.offset, last, seen, last+1)}, c.notes...)
	default:
		c.notes = append([]string{fmt.Sprintf("%ss %d to %d, and there are more; go on with offset %d", kind, c.offset, last, last+1)}, c.notes...)
	}
	if table.cut > 0 {
		c.note("%s cut; raise max_chars to see more of them", native.Plural(table.cut, "long value was", "long values were"))
	}
	return text, nil
}

// pick takes the chosen values of a row, all where none are chosen.
func (c *csvCall) pick(row [][]byte) []string {
	var values []string
	if len(c.columns) == 0 {
		for _, v := range row {
			values = append(values, string(v))
		}
		return values
	}
	for _, i := range c.chosen {
		v := ""
		if i < len(row) {
			v = string(row[i])
		}
		values = append(values, v)
	}
	return values
}

// heads are the names of the columns that are shown; those beyond the first row's, too.
func (c *csvCall) heads(width int) []string {
	if len(c.columns) == 0 {
		names := slices.Clone(c.names)
		for len(names) < width {
			names = append(names, fmt.Sprintf("column_%d", len(names)+1))
		}
		return names
	}
	var names []string
	for _, i := range c.chosen {
		names = append(names, c.names[i])
	}
	return names
}

// sumUp reads all rows and says what they are.
func (c *csvCall) sumUp(s *csvScanner, first [][]byte) (string, error) {
	shown := c.chosen
	if len(c.columns) == 0 {
		for i := range c.names {
			shown = append(shown, i)
		}
	}
	columns := make([]csvColumn, len(shown))
	for i, at := range shown {
		columns[i] = csvColumn{name: c.names[at], kinds: map[string]int{}}
	}
	rows := 0
	_, err := c.each(s, first, func(row [][]byte) bool {
		rows++
		for i, at := range shown {
			var v []byte
			if at < len(row) {
				v = row[at]
			}
			columns[i].add(v)
		}
		return true
	})
	if err != nil {
		return "", err
	}
	kind := "row"
	if len(c.tests) > 0 {
		kind = "matching row"
	}
	lines := []string{fmt.Sprintf("%s, %s", native.Plural(rows, kind, kind+"s"), native.Plural(len(c.names), "column", "columns"))}
	size := 0
	for i := range columns {
		line := columns[i].String()
		if size += len(line); size > c.most {
			lines = append(lines, fmt.Sprintf("[%s not shown; name them in columns]", native.Plural(len(columns)-i, "more column is", "more columns are")))
			break
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n"), nil
}
