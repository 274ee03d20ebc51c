package database

import (
	"context"
	"strings"
)

func (s *sqliteSession) catalog(ctx context.Context, _ string, wanted func(string) bool) (catalog, error) {
	ask := func(text string, args ...arg) ([][]string, error) { return askAll(ctx, s, text, args...) }
	list, err := ask("SELECT name, type, (SELECT sql FROM sqlite_schema s WHERE s.name = l.name AND s.type IN ('table', 'view')) FROM pragma_table_list l " +
		"WHERE schema = 'main' AND type <> 'shadow' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name")
	if err != nil {
		return catalog{}, err
	}
	var c catalog
	for _, row := range list {
		if !wanted(row[0]) {
			continue
		}
		if len(c.tables) == maxTables {
			c.more = true
			break
		}
		kind := row[1]
		if kind == "virtual" {
			kind = "virtual table"
		}
		c.tables = append(c.tables, table{name: row[0], kind: kind})
	}
	for i := range c.tables {
		if i == maxDescribed {
			break
		}
		if err := s.describe(ask, &c.tables[i]); err != nil {
			return catalog{}, err
		}
	}
	return c, nil
}

func (s *sqliteSession) describe(ask func(string, ...arg) ([][]string, error), t *table) error {
	columns, err := ask(`SELECT name, type, "notnull", dflt_value, pk, hidden FROM pragma_table_xinfo(?) WHERE hidden <> 1 ORDER BY cid`, t.name)
	if err != nil {
		if t.kind != "table" {
			t.comment = "it can't be described here" // a view of what is gone, or a table of a module that isn't here
			return nil
		}
		return err
	}
	for _, row := range columns {
		x := column{name: row[0], typ: row[1], notNull: row[2] == "1"}
		switch {
		case row[5] == "2" || row[5] == "3":
			x.preset = "generated"
		case row[3] != "":
			x.preset = "default " + row[3]
		}
		t.columns = append(t.columns, x)
	}
	keys, err := ask("SELECT name FROM pragma_table_xinfo(?) WHERE pk > 0 ORDER BY pk", t.name)
	if err != nil {
		return err
	}
	for _, row := range keys {
		t.primary = append(t.primary, row[0])
	}
	if t.kind != "table" {
		return nil
	}
	foreign, err := ask(`SELECT group_concat("from", ', '), "table", group_concat("to", ', '), on_delete FROM (SELECT * FROM pragma_foreign_key_list(?) ORDER BY id, seq) GROUP BY id ORDER BY id`, t.name)
	if err != nil {
		return err
	}
	for _, row := range foreign {
		text := "foreign key (" + row[0] + ") references " + row[1]
		if row[2] != "" {
			text += " (" + row[2] + ")"
		}
		if row[3] != "" && row[3] != "NO ACTION" {
			text += " on delete " + strings.ToLower(row[3])
		}
		t.foreign = append(t.foreign, text)
	}
	indexes, err := ask(`SELECT i.name, i."unique", i.partial, (SELECT group_concat(coalesce(name, 'an expression'), ', ') FROM (SELECT name FROM pragma_index_info(i.name) ORDER BY seqno))
		FROM pragma_index_list(?) i WHERE i.origin <> 'pk' ORDER BY i.name`, t.name)
	if err != nil {
		return err
	}
	for _, row := range indexes {
		text := "index " + row[0] + " (" + row[3] + ")"
		if row[1] == "1" {
			text = "unique " + text
		}
		if row[2] == "1" {
			text += " of a part of the rows"
		}
		t.indexes = append(t.indexes, text)
	}
	// To count a large table would take long.
	count, err := ask("SELECT count(*) FROM (SELECT 1 FROM " + quoteName(t.name) + " LIMIT 10001)")
	switch {
	case err != nil:
		return err
	case count[0][0] == "10001":
		t.rows = "more than 10000"
	default:
		t.rows = count[0][0]
	}
	return nil
}

func quoteName(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// askAll runs a statement of the host's own, and returns its rows as texts. NULL is empty.
func askAll(ctx context.Context, s session, text string, args ...arg) ([][]string, error) {
	into := &rows{most: maxCounted, affected: -1, roomy: true}
	if err := s.run(ctx, query{text: text, args: args}, into); err != nil {
		return nil, err
	}
	var out [][]string
	for _, row := range into.kept {
		var texts []string
		for _, c := range row {
			texts = append(texts, c.text)
		}
		out = append(out, texts)
	}
	return out, nil
}
