package documents

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// csvTable is a part of a file that is given out.
type csvTable struct {
	columns []string
	rows    [][]string
	cut     int // values that were cut
}

// clip bounds a value for the result.
func (t *csvTable) clip(value string, most int) string {
	total := utf8.RuneCountInString(value)
	if total <= most {
		return value
	}
	t.cut++
	return fmt.Sprintf("%s[... %d more characters]", value[:byteAt(value, most)], total-most)
}

// write returns the table in a format, and how many of its rows fit into most characters;
// the first does always.
func (t *csvTable) write(format string, most int) (string, int) {
	head, line := t.writer(format)
	var b strings.Builder
	b.WriteString(head)
	length, n := utf8.RuneCountInString(head), 0
	for i, row := range t.rows {
		text := line(i, row)
		if length += utf8.RuneCountInString(text); length > most && n > 0 {
			break
		}
		b.WriteString(text)
		n++
	}
	if format == "json" {
		b.WriteString("\n]")
	}
	return strings.TrimSuffix(b.String(), "\n"), n
}

func (t *csvTable) writer(format string) (head string, line func(int, []string) string) {
	switch format {
	case "json":
		return "[", func(i int, row []string) string { return t.object(i, row) }
	case "csv":
		return record(t.columns), func(_ int, row []string) string { return record(row) }
	}
	rule := "|" + strings.Repeat(" --- |", len(t.columns)) + "\n"
	return cells(t.columns) + rule, func(_ int, row []string) string { return cells(row) }
}

// cells is a line of a Markdown table. What would break the table is written as HTML.
func cells(row []string) string {
	var b strings.Builder
	b.WriteString("|")
	for _, value := range row {
		value = strings.NewReplacer("|", `\|`, "\r\n", "<br>", "\n", "<br>", "\r", "<br>", "\t", " ").Replace(value)
		value = strings.Map(func(r rune) rune {
			if unicode.IsControl(r) {
				return utf8.RuneError
			}
			return r
		}, value)
		b.WriteString(" " + value + " |")
	}
	return b.String() + "\n"
}

// record is a line of RFC 4180, but for its end.
func record(row []string) string {
	var b strings.Builder
	w := csv.NewWriter(&b)
	_ = w.Write(row) // a strings.Builder takes everything
	w.Flush()
	return b.String()
}

// object is a row as JSON, its members in the order of the columns.
func (t *csvTable) object(i int, row []string) string {
	var b bytes.Buffer
	if i > 0 {
		b.WriteString(",")
	}
	b.WriteString("\n  {")
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	for j, value := range row {
		if j > 0 {
			b.WriteString(", ")
		}
		_ = enc.Encode(t.columns[j]) // strings always are JSON
		b.Truncate(b.Len() - 1)
		b.WriteString(": ")
		_ = enc.Encode(value)
		b.Truncate(b.Len() - 1)
	}
	b.WriteString("}")
	return b.String()
}
