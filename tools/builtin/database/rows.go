package database

import (
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"crewhost/tools/native"
)

// The bounds of what one call gives back and takes in.
const (
	maxCell    = 2_000        // characters of a value that are shown
	maxText    = 40_000       // characters of a result
	maxCounted = 10_000       // rows that are counted
	maxReceive = 64 * 1 << 20 // bytes that come from a server, and that a value of SQLite has
)

// rows takes in what a statement gives back, and keeps what will be shown.
type rows struct {
	most    int  // rows that are kept
	write   bool // the statement may have changed something
	roomy   bool // however long they are
	columns []string
	kept    [][]cell
	size    int // of what is kept
	seen    int
	// more says that there were rows beyond those seen.
	more bool
	// affected is how many rows the statement changed; -1 where that is not known.
	affected int64
}

// cell is a value of a row.
type cell struct {
	kind cellKind
	text string // at most the first maxCell characters; of bytes, in hexadecimal
	size int    // bytes that the whole value has
}

type cellKind int

const (
	textCell cellKind = iota
	nullCell
	numberCell
	boolCell
	bytesCell
	jsonCell
)

// full reports whether no more rows are to be read.
func (r *rows) full() bool {
	if r.seen < maxCounted {
		return false
	}
	r.more = true
	return true
}

func (r *rows) add(row []cell) {
	r.seen++
	if len(r.kept) >= r.most || r.size > maxText && !r.roomy {
		return
	}
	r.kept = append(r.kept, row)
	for _, c := range row {
		r.size += len(c.text) + 3
	}
}

func textOf(kind cellKind, whole string) cell {
	text := whole
	if len(text) > maxCell {
		text = strings.ToValidUTF8(text[:maxCell], "")
	}
	return cell{kind, text, len(whole)}
}

func bytesOf(whole []byte) cell {
	return cell{bytesCell, hex.EncodeToString(whole[:min(len(whole), 32)]), len(whole)}
}

// shown is the value as a table and CSV have it.
func (c cell) shown() string {
	switch {
	case c.kind == nullCell:
		return "NULL"
	case c.kind == bytesCell && c.size > len(c.text)/2:
		return fmt.Sprintf("0x%s... (%d bytes)", c.text, c.size)
	case c.kind == bytesCell:
		return "0x" + c.text
	case c.size > len(c.text):
		return fmt.Sprintf("%s... (%d bytes)", c.text, c.size)
	}
	return c.text
}

// table is the rows as a table of Markdown. An empty text is two quotes, so that it is no NULL.
func (r *rows) table(b *bounded) {
	b.line("| " + strings.Join(escaped(r.columns), " | ") + " |")
	b.line("|" + strings.Repeat(" --- |", len(r.columns)))
	for _, row := range r.kept {
		var cells []string
		for _, c := range row {
			text := c.shown()
			if c.kind == textCell && (text == "" || text == "NULL") {
				text = "'" + text + "'"
			}
			cells = append(cells, escape(text))
		}
		b.row("| " + strings.Join(cells, " | ") + " |")
	}
}

// csv is the rows as CSV. NULL is an empty field without quotes, an empty text one with.
func (r *rows) csv(b *bounded) {
	field := func(s string) string {
		var text strings.Builder
		w := csv.NewWriter(&text)
		if s == "" || w.Write([]string{s}) != nil {
			return `""`
		}
		w.Flush()
		return strings.TrimSuffix(text.String(), "\n")
	}
	line := func(fields []string) string { return strings.Join(fields, ",") }
	var head []string
	for _, c := range r.columns {
		head = append(head, field(c))
	}
	b.line(line(head))
	for _, row := range r.kept {
		var fields []string
		for _, c := range row {
			if c.kind == nullCell {
				fields = append(fields, "")
				continue
			}
			fields = append(fields, field(clean(c.shown())))
		}
		b.row(line(fields))
	}
}

// json is the rows as lists of values below the names of the columns, since two columns
// may have one name.
func (r *rows) json(b *bounded) {
	b.line(`{"columns": ` + marshal(r.columns) + `, "rows": [`)
	for i, row := range r.kept {
		var values []string
		for _, c := range row {
			values = append(values, c.json())
		}
		comma := ""
		if i > 0 {
			comma = ","
		}
		b.row(comma + "[" + strings.Join(values, ",") + "]")
	}
	note := r.counted(b.rows)
	if r.affected >= 0 {
		note += " " + r.changed()
	}
	b.line(`], "note": ` + marshal(note) + "}")
}

func (c cell) json() string {
	switch {
	case c.kind == nullCell:
		return "null"
	case c.kind == boolCell && (c.text == "true" || c.text == "false"):
		return c.text
	case (c.kind == numberCell || c.kind == jsonCell) && c.size == len(c.text) && json.Valid([]byte(c.text)):
		return c.text
	}
	return marshal(c.shown())
}

func marshal(v any) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return `""`
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// bounded is a text of lines that stops to grow before it is too long.
type bounded struct {
	text strings.Builder
	rows int
	full bool
}

func (b *bounded) line(s string) { b.text.WriteString(s + "\n") }

func (b *bounded) row(s string) {
	if b.full = b.full || b.text.Len()+len(s) > maxText && b.rows > 0; b.full {
		return
	}
	b.line(s)
	b.rows++
}

// text is the whole result.
func (r *rows) text(format string) string {
	var b bounded
	switch {
	case len(r.columns) == 0:
	case format == "json":
		r.json(&b)
	case format == "csv":
		r.csv(&b)
	default:
		r.table(&b)
	}
	out := b.text.String()
	if len(out) > 2*maxText { // many columns, or names without end
		out = strings.ToValidUTF8(out[:2*maxText], "") + "... (cut here; ask for fewer columns)\n"
	}
	if len(r.columns) > 0 && format == "json" {
		return out // which has it all
	}
	// A CSV that is whole has nothing else in it.
	if len(r.columns) > 0 && (format != "csv" || b.rows < r.seen || r.more) {
		out += "\n" + r.counted(b.rows)
	}
	if r.affected >= 0 {
		if out != "" {
			out += "\n"
		}
		out += r.changed()
	}
	if out == "" {
		out = "Done."
	}
	return out
}

func (r *rows) changed() string { return native.Plural(int(r.affected), "row", "rows") + " affected." }

// counted says how many rows there are, and how to get those that aren't shown.
func (r *rows) counted(shown int) string {
	all := strconv.Itoa(r.seen)
	if r.more {
		all = "more than " + all
	}
	if shown == r.seen && !r.more {
		return native.Plural(shown, "row", "rows") + "."
	}
	if shown == 0 {
		return fmt.Sprintf("None of %s rows shown.", all)
	}
	kept := ""
	if r.more && r.write {
		kept = "; if the query changed something, it is not kept"
	}
	return fmt.Sprintf("[rows 1 to %d of %s; go on with LIMIT and OFFSET behind an ORDER BY, or ask for less%s]", shown, all, kept)
}

func escaped(names []string) []string {
	var out []string
	for _, n := range names {
		out = append(out, escape(textOf(textCell, n).shown()))
	}
	return out
}

// escape is a text in one line of a table.
func escape(s string) string {
	s = strings.NewReplacer("|", `\|`, "\r\n", "<br>", "\n", "<br>").Replace(s)
	return clean(s)
}

// clean is a text without the characters that terminals act on, and those that change
// what is read.
func clean(s string) string {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || r >= 0x202A && r <= 0x202E || r >= 0x2066 && r <= 0x2069) {
			return '\uFFFD'
		}
		return r
	}, s)
}
