package database

import (
	"context"
	"strings"
)

func (s *mysqlSession) catalog(ctx context.Context, scope string, wanted func(string) bool) (catalog, error) {
	const within = "TABLE_SCHEMA = CASE WHEN ? = '' THEN DATABASE() ELSE ? END"
	list, err := askAll(ctx, s, `SELECT TABLE_NAME, CASE TABLE_TYPE WHEN 'BASE TABLE' THEN 'table' WHEN 'SYSTEM VERSIONED' THEN 'versioned table' WHEN 'SYSTEM VIEW' THEN 'system view' ELSE LOWER(TABLE_TYPE) END,
			CASE WHEN TABLE_ROWS IS NULL OR TABLE_TYPE = 'VIEW' THEN '' ELSE CONCAT('about ', TABLE_ROWS) END, CASE WHEN TABLE_TYPE = 'VIEW' THEN '' ELSE TABLE_COMMENT END
		FROM information_schema.TABLES WHERE `+within+` ORDER BY BINARY TABLE_NAME`, scope, scope)
	if err != nil {
		return catalog{}, err
	}
	var c catalog
	index := map[string]int{}
	for _, row := range list {
		if !wanted(row[0]) {
			continue
		}
		if len(c.tables) == maxTables {
			c.more = true
			break
		}
		if len(c.tables) < maxDescribed {
			index[row[0]] = len(c.tables)
		}
		c.tables = append(c.tables, table{schema: scope, name: row[0], kind: row[1], rows: row[2], comment: row[3]})
	}
	if len(index) == 0 {
		return c, nil
	}
	names := strings.TrimSuffix(strings.Repeat("?, ", len(index)), ", ")
	args := []arg{scope, scope}
	for _, t := range c.tables[:min(len(c.tables), maxDescribed)] {
		args = append(args, t.name)
	}
	among := within + " AND TABLE_NAME IN (" + names + ")"
	for _, part := range []struct {
		text string
		take func(t *table, row []string)
	}{
		{`SELECT TABLE_NAME, COLUMN_NAME, COLUMN_TYPE, IS_NULLABLE, COALESCE(COLUMN_DEFAULT, ''), EXTRA, COALESCE(GENERATION_EXPRESSION, ''), COLUMN_COMMENT
			FROM information_schema.COLUMNS WHERE ` + among + ` ORDER BY BINARY TABLE_NAME, ORDINAL_POSITION`,
			func(t *table, row []string) {
				x := column{name: row[1], typ: row[2], notNull: row[3] == "NO", comment: row[7]}
				switch {
				case row[6] != "":
					x.preset = "generated as " + row[6]
				case row[4] != "" && row[4] != "NULL":
					x.preset = "default " + row[4]
				}
				if row[6] == "" && row[5] != "" {
					x.preset = strings.TrimSpace(x.preset + " " + strings.ToLower(row[5]))
				}
				t.columns = append(t.columns, x)
			}},
		{`SELECT k.TABLE_NAME, k.CONSTRAINT_NAME, GROUP_CONCAT(k.COLUMN_NAME ORDER BY k.ORDINAL_POSITION SEPARATOR ', '), k.REFERENCED_TABLE_NAME,
				GROUP_CONCAT(k.REFERENCED_COLUMN_NAME ORDER BY k.ORDINAL_POSITION SEPARATOR ', ')
			FROM information_schema.KEY_COLUMN_USAGE k WHERE k.REFERENCED_TABLE_NAME IS NOT NULL AND k.` + strings.Replace(among, "AND TABLE_NAME", "AND k.TABLE_NAME", 1) + `
			GROUP BY k.TABLE_NAME, k.CONSTRAINT_NAME, k.REFERENCED_TABLE_NAME ORDER BY BINARY k.TABLE_NAME, BINARY k.CONSTRAINT_NAME`,
			func(t *table, row []string) {
				t.foreign = append(t.foreign, "foreign key ("+row[2]+") references "+row[3]+" ("+row[4]+")")
			}},
		{`SELECT TABLE_NAME, INDEX_NAME, MIN(NON_UNIQUE), GROUP_CONCAT(COALESCE(COLUMN_NAME, 'an expression') ORDER BY SEQ_IN_INDEX SEPARATOR ', ')
			FROM information_schema.STATISTICS WHERE ` + among + ` GROUP BY TABLE_NAME, INDEX_NAME ORDER BY BINARY TABLE_NAME, BINARY INDEX_NAME`,
			func(t *table, row []string) {
				switch {
				case row[1] == "PRIMARY":
					t.primary = strings.Split(row[3], ", ")
				case row[2] == "0":
					t.indexes = append(t.indexes, "unique index "+row[1]+" ("+row[3]+")")
				default:
					t.indexes = append(t.indexes, "index "+row[1]+" ("+row[3]+")")
				}
			}},
	} {
		list, err := askAll(ctx, s, part.text, args...)
		if err != nil {
			return catalog{}, err
		}
		for _, row := range list {
			if i, ok := index[row[0]]; ok {
				part.take(&c.tables[i], row)
			}
		}
	}
	return c, nil
}
