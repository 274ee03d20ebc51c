package database

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"crewhost/tools/native"
)

// The bounds of a description.
const (
	maxTables    = 2_000 // that are named
	maxDescribed = 60    // whose columns are told
)

// catalog is what a database holds.
type catalog struct {
	tables []table // by schema and name
	more   bool    // there are more tables
}

// table is a table or a view.
type table struct {
	schema, name string // schema is empty where there is but one
	kind         string // table, view, materialized view, ...
	rows         string // as "about 1200"; empty: unknown
	comment      string
	columns      []column
	primary      []string // columns of the primary key
	foreign      []string // as "customer references customers(id)"
	indexes      []string // as "unique index by_mail (mail)"
}

// column is a column of a table.
type column struct {
	name, typ, comment string
	notNull            bool
	preset             string // the default, as SQL; of a generated column, how it is
}

func (t table) full() string {
	if t.schema == "" {
		return t.name
	}
	return t.schema + "." + t.name
}

// matches makes a filter of a pattern: * and % stand for any characters, ? for one. Letter
// case makes no difference. An empty pattern takes all.
func matches(pattern string) (func(name string) bool, error) {
	if pattern == "" {
		return func(string) bool { return true }, nil
	}
	p := strings.ToLower(strings.ReplaceAll(pattern, "%", "*"))
	if _, err := path.Match(p, ""); err != nil {
		return nil, refusal(fmt.Sprintf("the argument \"table_filter\" is no pattern: %q", native.Shorten(pattern)))
	}
	return func(name string) bool {
		ok, err := path.Match(p, strings.ToLower(name))
		return ok && err == nil
	}, nil
}

// text describes the tables; names alone where brief is set.
func (c catalog) text(of target, brief bool) string {
	var b bounded
	kinds := map[string]int{}
	for _, t := range c.tables {
		kinds[t.kind]++
	}
	var counts []string
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		counts = append(counts, native.Plural(kinds[kind], kind, kind+"s"))
	}
	rights := "read only"
	if of.write {
		rights = "may be written to"
	}
	head := fmt.Sprintf("%s: %s, %s, %s.", of.name, of.provider, rights, strings.Join(counts, ", "))
	if len(c.tables) == 0 {
		head = fmt.Sprintf("%s: %s, %s. No table is there, none is visible, or none is of that name.", of.name, of.provider, rights)
	}
	if c.more {
		head += fmt.Sprintf(" There are more than these %d tables; use table_filter.", len(c.tables))
	}
	b.line(head)
	if brief || len(c.tables) > maxDescribed {
		for _, t := range c.tables {
			b.row(clean(oneLine(t.head())))
		}
		if !brief {
			b.line(fmt.Sprintf("\n[names alone, since there are more than %d; table_filter gives the columns of some]", maxDescribed))
		}
	} else {
		for _, t := range c.tables {
			b.row("\n" + clean(t.text()))
		}
	}
	if b.rows < len(c.tables) {
		b.line(fmt.Sprintf("\n[%d of %d shown; table_filter gives others]", b.rows, len(c.tables)))
	}
	return strings.TrimSuffix(b.text.String(), "\n")
}

func (t table) head() string {
	s := t.kind + " " + t.full()
	if t.rows != "" {
		s += " (" + t.rows + " rows)"
	}
	if t.comment != "" {
		s += ": " + short(t.comment)
	}
	return s
}

func (t table) text() string {
	const most = 200 // columns of one table
	lines := []string{t.head()}
	for i, c := range t.columns {
		if i == most {
			lines = append(lines, fmt.Sprintf("  ... and %d more columns", len(t.columns)-most))
			break
		}
		s := "  " + c.name + " " + short(c.typ)
		if c.notNull {
			s += " not null"
		}
		if c.preset != "" {
			s += " " + short(c.preset)
		}
		if c.comment != "" {
			s += ": " + short(c.comment)
		}
		lines = append(lines, strings.TrimRight(s, " "))
	}
	if len(t.primary) > 0 {
		lines = append(lines, "  primary key ("+strings.Join(t.primary, ", ")+")")
	}
	for _, f := range t.foreign {
		lines = append(lines, "  "+short(f))
	}
	for _, x := range t.indexes {
		lines = append(lines, "  "+short(x))
	}
	for i := range lines {
		lines[i] = oneLine(lines[i])
	}
	return strings.Join(lines, "\n")
}

// oneLine is a text whose names have no line breaks, which names may have.
func oneLine(s string) string { return strings.NewReplacer("\r\n", " ", "\n", " ").Replace(s) }

// short is a text in one line, of bounded length.
func short(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > 200 {
		return string(r[:200]) + "..."
	}
	return s
}

// nearest names what a missing name may have been meant to be.
func (c catalog) nearest(word string, isColumn bool) string {
	var tables, columns []string
	for _, t := range c.tables {
		tables = append(tables, t.name)
		for _, column := range t.columns {
			columns = append(columns, column.name)
		}
	}
	if isColumn {
		return native.DidYouMean(word, columns)
	}
	near := native.DidYouMean(word, tables)
	if near == "" && len(tables) > 0 {
		near = " (the tables are " + strings.Join(tables[:min(len(tables), 20)], ", ") + ")"
	}
	return near
}
