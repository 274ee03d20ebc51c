package database

import (
	"strings"
	"testing"
)

func TestParameters(t *testing.T) {
	b := shop(t, Config{})
	for _, tt := range []struct {
		query  string
		values any
		want   string
	}{
		{"SELECT ?, ?", []any{1, "x"}, "| 1 | x |"},
		{"SELECT $2, $1, $2", []any{1, "x"}, "| x | 1 | x |"},
		{"SELECT ?2, ?1", []any{1, "x"}, "| x | 1 |"},
		{"SELECT :a, @b, $a", map[string]any{"a": 1, "b": "x"}, "| 1 | x | 1 |"},
		{"SELECT :a", map[string]any{":a": 5}, "| 5 |"},
		{"SELECT typeof(?), typeof(?), typeof(?), typeof(?), typeof(?)", []any{nil, true, 1.5, "x", 7}, "| null | integer | real | text | integer |"},
		{"SELECT '?', \"?\", [?], `?`, ? -- ?\n /* ? */ FROM (SELECT 1 AS \"?\")", []any{1}, "| ? | 1 | 1 | 1 | 1 |"},
		{"SELECT ?", []any{"'; DROP TABLE orders; --"}, "| '; DROP TABLE orders; -- |"},
		{"SELECT json_extract(?, '$[1]')", []any{[]int{4, 5}}, "| 5 |"},
		{"SELECT ?", `[3]`, "| 3 |"},
		{"SELECT hex(?)", []any{"a\x00b"}, "| 610062 |"},
	} {
		b.WantParts(queryName, onShop(tt.query, "parameters", tt.values), tt.want)
	}
	raw := func(values string) string {
		return `{"connection_string":"/in/shop.db","query":"SELECT ?, typeof(?1)","parameters":` + values + `}`
	}
	b.WantParts(queryName, raw(`[9223372036854775807]`), "| 9223372036854775807 | integer |")
	b.WantParts(queryName, raw(`[12345678901234567890.0123456789]`), "| 12345678901234567890.0123456789 | text |")
	b.WantParts(queryName, raw(`[18446744073709551615]`), "| 18446744073709551615 | text |")
	for _, tt := range []struct {
		query  string
		values any
		want   string
	}{
		{"SELECT ?", nil, "there are no parameters"},
		{"SELECT ?, ?", []any{1}, "more placeholders ? than parameters has values, 1"},
		{"SELECT ?", []any{1, 2}, "placeholders for 1 value, and parameters has 2"},
		{"SELECT $3", []any{1, 2}, "$3, and parameters has 2 values"},
		{"SELECT :id", []any{1}, `give an object, as {"id": ...}`},
		{"SELECT ?", map[string]any{"id": 1}, "write :name"},
		{"SELECT :customer", map[string]any{"customers": 1}, `did you mean "customers"?`},
		{"SELECT 1", map[string]any{"id": 1}, "no placeholder :id"},
		{"SELECT 1", 5, "must be a list or an object"},
		{"SELECT 1", "x", "must be a list or an object"},
	} {
		b.WantFailure(queryName, onShop(tt.query, "parameters", tt.values), tt.want)
	}
}

// TestPlaceholders holds what is a placeholder in which database.
func TestPlaceholders(t *testing.T) {
	for _, tt := range []struct{ provider, query, values, want string }{
		{postgresProvider, "SELECT ? + ?", `[1, 2]`, "SELECT $1 + $2"},
		{postgresProvider, "SELECT $2, $1, $2", `[1, 2]`, "SELECT $1, $2, $1"},
		{postgresProvider, "SELECT j ? 'a', $1", `[1]`, "SELECT j ? 'a', $1"},
		{postgresProvider, "SELECT j ? 'a' FROM t WHERE x = :x AND a[1:n] = y::text AND b @> '{}' AND c = @x", `{"x": 1}`, "SELECT j ? 'a' FROM t WHERE x = $1 AND a[1:n] = y::text AND b @> '{}' AND c = $1"},
		{postgresProvider, "SELECT $$ ? $1 $$, $a$ ? $a$, E'\\'?', '\\', ?", `[1]`, "SELECT $$ ? $1 $$, $a$ ? $a$, E'\\'?', '\\', $1"},
		{mysqlProvider, "SELECT @a, @@version, :a, '\\'?', \"?\", `?` -- ?\n#?\n", `{"a": 1}`, "SELECT ?, @@version, ?, '\\'?', \"?\", `?` -- ?\n#?\n"},
		{mysqlProvider, "SELECT @v, :a", `{"a": 1}`, "SELECT @v, ?"},
		{mysqlProvider, "SELECT 1--?", `[1]`, "SELECT 1--?"},
	} {
		s, err := readStatement(tt.provider, tt.query)
		if err != nil {
			t.Errorf("%s: %v", tt.query, err)
			continue
		}
		p, err := readParameters([]byte(tt.values))
		if err != nil {
			t.Fatal(err)
		}
		q, err := p.ready(s)
		if err != nil || q.text != tt.want {
			t.Errorf("%s\ngot  %s %v\nwant %s", tt.query, q.text, err, tt.want)
		}
	}
}

// TestRefused holds what is not run, whatever the connection may do.
func TestRefused(t *testing.T) {
	for _, tt := range []struct {
		provider, query, want string
		write                 bool
	}{
		{postgresProvider, "COPY t TO PROGRAM 'x'", "COPY statements are not run", true},
		{postgresProvider, "DO $$ BEGIN END $$", "DO statements are not run", true},
		{postgresProvider, "CALL p()", "CALL statements are not run", true},
		{postgresProvider, "SET ROLE x", "SET statements are not run", true},
		{postgresProvider, "LISTEN x", "LISTEN statements are not run", true},
		{postgresProvider, "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'", "CREATE is run here for", true},
		{postgresProvider, "CREATE EXTENSION dblink", "CREATE is run here for", true},
		{postgresProvider, "ALTER SYSTEM SET x = 1", "ALTER is run here for", true},
		{postgresProvider, "CREATE ROLE x", "CREATE is run here for", true},
		{postgresProvider, "SELECT pg_read_file('/etc/passwd')", "reaches beyond", true},
		{postgresProvider, "SELECT \"pg_read_file\"('/etc/passwd')", "reaches beyond", true},
		{postgresProvider, "SELECT pg_catalog . pg_read_file /**/ ('/etc/passwd')", "reaches beyond", true},
		{postgresProvider, "SELECT 1 -- \r, pg_ls_dir('/')", "reaches beyond", true},
		{postgresProvider, "SELECT * FROM dblink_exec('x', 'y')", "reaches beyond", true},
		{postgresProvider, "SELECT ('/etc/passwd'::text).pg_read_file", "reaches beyond", true},
		{postgresProvider, "SELECT ('/etc/passwd'::text) . \"pg_read_file\"", "reaches beyond", false},
		{postgresProvider, "SELECT (t).c.pg_read_file FROM (SELECT 'x' AS c) t", "reaches beyond", false},
		{postgresProvider, "SELECT $1.pg_read_file", "reaches beyond", false},
		{postgresProvider, "SELECT a[1].pg_read_file FROM (SELECT ARRAY['x'] a) t", "reaches beyond", false},
		{postgresProvider, "SELECT query_to_xml('SELECT 1', true, true, '')", "runs a text as SQL", false},
		{postgresProvider, "SELECT query_to_xml_and_xmlschema('SELECT 1', true, true, '')", "runs a text as SQL", true},
		{postgresProvider, "SELECT ts_stat('SELECT 1')", "runs a text as SQL", false},
		{postgresProvider, "SELECT pg_logical_slot_get_changes('x', NULL, NULL)", "reaches beyond", false},
		{postgresProvider, "SELECT 1 /* /* */ */; SELECT 2", "several statements", true},
		{postgresProvider, "INSERT INTO t VALUES (1)", "read only here", false},
		{postgresProvider, "WITH x AS (SELECT 1) UPDATE t SET a = 1", "read only here", false},
		{postgresProvider, "SELECT 'x", "no end of a quote", false},
		{postgresProvider, "SELECT $a$ x", "no end of a text", false},
		{postgresProvider, "SELECT 1 /* /* */", "no end of a comment", false},
		{mysqlProvider, "SELECT 1 INTO OUTFILE '/tmp/x'", "write files", true},
		{mysqlProvider, "SELECT 1 INTO DUMPFILE '/tmp/x'", "write files", true},
		{mysqlProvider, "SELECT 1 INTO @x", "INTO is not run", false},
		{mysqlProvider, "SELECT 1 --1 INTO OUTFILE '/tmp/x'", "INTO is not run", false},
		{mysqlProvider, "SELECT '\\' INTO @x -- ', 'x' INTO OUTFILE '/tmp/x'", "INTO is not run", false},
		{mysqlProvider, "SELECT 1 /*!50000 INTO OUTFILE '/tmp/x' */", "comment that MySQL runs", true},
		{mysqlProvider, "SELECT 1 /*M!100100 INTO OUTFILE '/tmp/x' */", "comment that MySQL runs", true},
		{mysqlProvider, "SELECT LOAD_FILE('/etc/passwd')", "reaches beyond", true},
		{mysqlProvider, "LOAD DATA LOCAL INFILE '/etc/passwd' INTO TABLE t", "LOAD statements are not run", true},
		{mysqlProvider, "SET GLOBAL x = 1", "SET statements are not run", true},
		{mysqlProvider, "HANDLER t OPEN", "HANDLER statements are not run", true},
		{mysqlProvider, "CREATE USER x", "CREATE is run here for", true},
		{mysqlProvider, "ANALYZE DELETE FROM t", "ANALYZE statements are not run", false},
	} {
		s, err := readStatement(tt.provider, tt.query)
		got := s.refused(tt.write)
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, tt.want) {
			t.Errorf("%s: got %q, want %q", tt.query, got, tt.want)
		}
	}
	for _, query := range []string{"CREATE TEMPORARY TABLE x (y int)", "CREATE OR REPLACE VIEW x AS SELECT 1", "CREATE UNIQUE INDEX a ON b (c)", "DROP MATERIALIZED VIEW x", "TRUNCATE x", "WITH a AS (SELECT 1) INSERT INTO x SELECT * FROM a", "(SELECT 1)", "SELECT pg_read_file, t.dblink FROM public.crosstab t", "(WITH a AS (SELECT 1) SELECT * FROM a)"} {
		if s, err := readStatement(postgresProvider, query); err != nil || s.refused(true) != "" {
			t.Errorf("%s is refused: %v %s", query, err, s.refused(true))
		}
	}
}
