package database

import (
	"context"
	"strings"
)

func (s *postgresSession) catalog(ctx context.Context, scope string, wanted func(string) bool) (catalog, error) {
	list, err := askAll(ctx, s, `SELECT n.nspname, c.relname, c.oid,
			CASE c.relkind WHEN 'r' THEN 'table' WHEN 'p' THEN 'partitioned table' WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view' ELSE 'foreign table' END,
			CASE WHEN c.relkind IN ('v', 'f') OR c.reltuples < 0 THEN '' ELSE 'about ' || c.reltuples::bigint END,
			coalesce(obj_description(c.oid, 'pg_class'), '')
		FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition AND has_schema_privilege(n.oid, 'USAGE')
			AND CASE WHEN $1::text = '' THEN n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname NOT LIKE 'pg\_toast%' AND n.nspname NOT LIKE 'pg\_temp%' ELSE n.nspname = $1::text END
		ORDER BY n.nspname COLLATE "C", c.relname COLLATE "C"`, scope)
	if err != nil {
		return catalog{}, err
	}
	var c catalog
	index := map[string]int{} // by oid
	for _, row := range list {
		if !wanted(row[1]) {
			continue
		}
		if len(c.tables) == maxTables {
			c.more = true
			break
		}
		if len(c.tables) < maxDescribed {
			index[row[2]] = len(c.tables)
		}
		c.tables = append(c.tables, table{schema: row[0], name: row[1], kind: row[3], rows: row[4], comment: row[5]})
	}
	if len(index) == 0 {
		return c, nil
	}
	var ids []string
	for _, row := range list {
		if _, ok := index[row[2]]; ok {
			ids = append(ids, row[2])
		}
	}
	return c, s.describe(ctx, &c, index, "{"+strings.Join(ids, ",")+"}")
}

// describe adds what there is to tell of some tables, whose ids are an array.
func (s *postgresSession) describe(ctx context.Context, c *catalog, index map[string]int, ids string) error {
	for _, part := range []struct {
		text string
		take func(t *table, row []string)
	}{
		{`SELECT a.attrelid, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull::text,
				CASE WHEN a.attgenerated <> '' THEN 'generated as ' WHEN a.attidentity <> '' THEN 'identity' WHEN d.oid IS NULL THEN '' ELSE 'default ' END || coalesce(pg_get_expr(d.adbin, d.adrelid), ''),
				coalesce(col_description(a.attrelid, a.attnum), '')
			FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
			WHERE a.attrelid = ANY($1::oid[]) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attrelid, a.attnum`,
			func(t *table, row []string) {
				t.columns = append(t.columns, column{name: row[1], typ: row[2], notNull: row[3] == "true", preset: row[4], comment: row[5]})
			}},
		{`SELECT conrelid, contype::text, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = ANY($1::oid[]) AND contype IN ('p', 'f', 'c') ORDER BY conrelid, contype, conname COLLATE "C"`,
			func(t *table, row []string) {
				if key, ok := strings.CutPrefix(row[2], "PRIMARY KEY ("); ok && row[1] == "p" {
					t.primary = strings.Split(strings.TrimSuffix(key, ")"), ", ")
					return
				}
				t.foreign = append(t.foreign, lowered(row[2]))
			}},
		{`SELECT i.indrelid, pg_get_indexdef(i.indexrelid) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
			WHERE i.indrelid = ANY($1::oid[]) AND NOT i.indisprimary ORDER BY i.indrelid, c.relname COLLATE "C"`,
			func(t *table, row []string) {
				text := strings.TrimPrefix(row[1], "CREATE ")
				text = strings.Replace(strings.Replace(text, "UNIQUE INDEX", "unique index", 1), "INDEX", "index", 1)
				if head, rest, ok := strings.Cut(text, " ON "); ok {
					if _, rest, ok = strings.Cut(rest, " USING "); ok {
						text = head + " using " + rest
					}
				}
				t.indexes = append(t.indexes, text)
			}},
	} {
		list, err := askAll(ctx, s, part.text, ids)
		if err != nil {
			return err
		}
		for _, row := range list {
			part.take(&c.tables[index[row[0]]], row)
		}
	}
	return nil
}

// lowered is a constraint with its first words in lower case, as the rest is written.
func lowered(s string) string {
	for _, w := range []string{"FOREIGN KEY", "REFERENCES", "ON DELETE", "ON UPDATE", "CHECK"} {
		s = strings.Replace(s, w, strings.ToLower(w), 1)
	}
	return s
}
