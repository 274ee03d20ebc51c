package database

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"crewhost/tools"
	"crewhost/tools/native/nativetest"
)

const queryName = "relational_database_query"

// shop is a bench with the databases of testdata in /in.
func shop(t testing.TB, cfg Config) nativetest.Bench {
	t.Helper()
	b := bench(t, cfg)
	for _, name := range []string{"shop.db", "wal.db", "wal.db-wal"} {
		data, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		b.Put("in/"+name, string(data))
	}
	return b
}

// onShop are arguments for a query of shop.db.
func onShop(query string, more ...any) string {
	return nativetest.Args(append([]any{"connection_string", "/in/shop.db", "query", query}, more...)...)
}

func TestSchemas(t *testing.T) {
	source := func() (string, error) { return "x", nil }
	for _, cfg := range []Config{{}, {Connections: []Connection{{Name: "a", Provider: "sqlite", Source: source}}},
		{Connections: []Connection{{Name: "b", Provider: "mysql", Write: true, Source: source}, {Name: "a", Provider: "sqlite", Source: source}}}} {
		bench(t, cfg).CheckSchemas()
	}
	def := Tools(Config{Connections: []Connection{{Name: "b", Provider: "mysql", Write: true}, {Name: "a", Provider: "sqlite"}}})[0]
	if !strings.Contains(def.Schema, `"enum": ["b","a"]`) || !strings.Contains(def.Description, "b (mysql, may be written to), a (sqlite, read only)") {
		t.Errorf("the model is not told of the connections: %s %s", def.Description, def.Schema)
	}
}

func TestSelect(t *testing.T) {
	b := shop(t, Config{})
	b.WantText(queryName, onShop("SELECT id, name, mail, since, note FROM customers ORDER BY id"), `| id | name | mail | since | note |
| --- | --- | --- | --- | --- |
| 1 | Ada | ada@example.org | 2024-02-29 | '' |
| 2 | Björn \| Söhne | NULL | 2025-01-01T10:00:00Z | two<br>lines |
| 3 | 'NULL' | x@example.org | NULL | NULL |

3 rows.`)
	// Dates are the texts and numbers that they are; a generated column is computed.
	b.WantParts(queryName, onShop("SELECT * FROM orders"), "| 1 | 1 | 1250 | 12.5 | 2026-01-02 03:04:05 |", "2026-01-03 00:00:00+02:00", "| 1767225600 |")
	b.WantParts(queryName, onShop("SELECT * FROM files"), "| short | 0x00ff10 | 9223372036854775807 | 0.1 |", "00... (5000 bytes) | -9007199254740993 |")
	b.WantParts(queryName, onShop("SELECT * FROM totals"), "| Ada | 1349 |")
	b.WantParts(queryName, onShop("SELECT title FROM notes WHERE notes MATCH 'boils'"), "| Kettle |")
	b.WantText(queryName, onShop("SELECT NULL AS a, '' AS b, 'x,\"y' AS c", "format", "csv"), "a,b,c\n,\"\",\"x,\"\"y\"\n")
	b.WantText(queryName, onShop("SELECT 9007199254740993 AS a, 'x' AS a, NULL, 0.5, x'01'", "format", "json"),
		`{"columns": ["a","a","NULL","0.5","x'01'"], "rows": [`+"\n"+`[9007199254740993,"x",null,0.5,"0x01"]`+"\n"+`], "note": "1 row."}`+"\n")
	b.WantText(queryName, onShop("SELECT 1 WHERE false;"), "| 1 |\n| --- |\n\n0 rows.")
	b.WantParts(queryName, onShop("PRAGMA table_info(orders)"), "| cents | INTEGER |")
	b.WantParts(queryName, onShop("EXPLAIN QUERY PLAN SELECT * FROM orders"), "SCAN orders")
	b.WantParts(queryName, onShop("SELECT 'a' || char(27) || '[31m' || char(8238)"), "a\uFFFD[31m\uFFFD")
	// Everything that Orkeon's crews write.
	b.WantParts(queryName, nativetest.Args("connection_string", "Data Source=/in/shop.db;Mode=ReadOnly", "provider_name", "Microsoft.Data.Sqlite",
		"query", "SELECT count(*) FROM orders", "query_type", "scalar", "parameters", []any{}, "max_rows", 5, "timeout_seconds", 600), "| 3 |")
}

func TestWhereTheFileIs(t *testing.T) {
	b := shop(t, Config{})
	const query = "SELECT count(*) FROM orders"
	for _, s := range []string{"/in/shop.db", "sqlite:///in/shop.db", "sqlite:/in/shop.db", "file:/in/shop.db", "file:///in/shop.db?mode=ro", "file://localhost/in/shop.db",
		"Data Source=/in/shop.db", "data source = '/in/shop.db' ; Cache=Shared", "Filename=/in/shop.db", "/in/sh%6fp.db?x"} {
		if strings.HasPrefix(s, "/in/sh%") {
			b.WantFailure(queryName, nativetest.Args("connection_string", s, "query", query), "there is no file")
			continue
		}
		b.WantParts(queryName, nativetest.Args("connection_string", s, "query", query), "| 3 |")
	}
	b.Put("in/no.db", "this is no database, it is a text that is long enough to be looked at as if it were one, page by page")
	b.Put("in/empty.db", "")
	b.Put("in/folder/x", "")
	if err := os.Symlink("/etc/passwd", filepath.Join(b.Root, "in", "link.db")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("shop.db", filepath.Join(b.Root, "in", "inner.db")); err != nil {
		t.Fatal(err)
	}
	b.WantParts(queryName, nativetest.Args("connection_string", "/in/inner.db", "query", query), "| 3 |")
	for s, want := range map[string]string{
		"/in/none.db": "there is no file /in/none.db", "/in/no.db": "no database of SQLite, or it is encrypted", "/in/folder": "is a folder",
		"/etc/passwd": "no mount holds this path", "/in/link.db": "out of its mount", "/in/../../../etc/passwd": "no mount", ":memory:": "there is no database",
		"file::memory:?cache=shared": "there is no database", "shop": "there is no database \"shop\"",
	} {
		b.WantFailure(queryName, nativetest.Args("connection_string", s, "query", query), want)
	}
	b.WantFailure(queryName, nativetest.Args("connection_string", "/in/empty.db", "query", query), "no such table: orders")
}

// TestDamage takes files that are no longer what they were: the host lives on, and says so.
func TestDamage(t *testing.T) {
	b := shop(t, Config{})
	whole := b.Get("in/shop.db")
	b.Put("in/cut.db", whole[:5000])
	b.WantFailure(queryName, nativetest.Args("connection_string", "/in/cut.db", "query", "SELECT * FROM orders JOIN files"), "damaged")
	b.Put("in/hot.db", whole)
	b.Put("in/hot.db-journal", "\xd9\xd5\x05\xf9\x20\xa1\x63\xd7\x00\x00\x00\x01"+strings.Repeat("\x00", 600))
	b.WantFailure(queryName, nativetest.Args("connection_string", "/in/hot.db", "query", "SELECT * FROM orders"), "journal of an unfinished change")
}

// TestLog holds that rows are seen which stand in the write-ahead log alone, and that the
// files are left as they are.
func TestLog(t *testing.T) {
	b := shop(t, Config{})
	log := b.Get("in/wal.db-wal")
	for range 2 {
		b.WantParts(queryName, nativetest.Args("connection_string", "/in/wal.db", "query", "SELECT v FROM t"), "in the file", "in the log")
	}
	// Without its log, the file alone is read.
	b.Put("in/alone.db", b.Get("in/wal.db"))
	b.WantText(queryName, nativetest.Args("connection_string", "/in/alone.db", "query", "SELECT v FROM t"), "| v |\n| --- |\n| in the file |\n\n1 row.")
	if b.Get("in/wal.db-wal") != log {
		t.Error("the log was changed")
	}
	if _, err := os.Stat(filepath.Join(b.Root, "in", "wal.db-shm")); err == nil {
		t.Error("a file was made beside the database")
	}
}

func TestReadOnly(t *testing.T) {
	dir := t.TempDir()
	data, err := os.ReadFile("testdata/shop.db")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "own.db")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	b := shop(t, Config{Connections: []Connection{{Name: "own", Provider: "sqlite", Source: func() (string, error) { return file, nil }}}})
	for _, query := range []string{
		"DELETE FROM orders", "UPDATE orders SET cents = 1", "INSERT INTO files VALUES (1,2,3,4)", "REPLACE INTO files VALUES (1,2,3,4)",
		"WITH x AS (SELECT 1) DELETE FROM orders", "DROP TABLE orders", "CREATE TABLE x (y)", "CREATE TEMP TABLE x (y)", "ALTER TABLE orders ADD x",
		"ATTACH '/tmp/crewhost-x.db' AS x", "DETACH main", "VACUUM", "VACUUM INTO '/tmp/crewhost-x.db'", "REINDEX", "ANALYZE", "BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT x",
		"PRAGMA writable_schema = 1", "PRAGMA journal_mode = DELETE", "PRAGMA query_only = 0", "PRAGMA user_version = 5", "PRAGMA database_list",
		"SELECT * FROM pragma_database_list", "PRAGMA temp_store_directory = '/'", "PRAGMA wal_checkpoint", "PRAGMA locking_mode",
		"SELECT load_extension('/x')", "SELECT \"load_extension\"('/x')", "SELECT /* x */ load_extension /* y */ ('/x')", "SELECT writefile('x','y')", "SELECT readfile('/etc/passwd')",
		"SELECT 1; DELETE FROM orders", "SELECT 1;; DELETE FROM orders", "/* x */ DELETE FROM orders", "-- x\nDELETE FROM orders", "EXPLAIN SELECT 1; DELETE FROM orders",
		"INSERT INTO notes(notes) VALUES ('optimize')", "", ";", "  -- nothing", "(DELETE FROM orders)", "\x00SELECT 1", "SELECT 'x", "SELECT fts3_tokenizer('x', x'00')",
	} {
		b.WantFailure(queryName, onShop(query))
		b.WantFailure(queryName, nativetest.Args("connection", "own", "query", query))
	}
	after, err := os.ReadFile(file)
	if err != nil || string(after) != string(data) || b.Get("in/shop.db") != string(data) {
		t.Error("a database was changed")
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("files were made: %v", entries)
	}
	if _, err := os.Stat("/tmp/crewhost-x.db"); err == nil {
		t.Error("a file was made by ATTACH or VACUUM")
	}
}

// TestAuthorizer goes past what reads the statement, to what SQLite itself refuses.
func TestAuthorizer(t *testing.T) {
	b := shop(t, Config{})
	for _, query := range []struct{ text, want string }{
		{"DELETE FROM orders", "not authorized"}, {"ATTACH 'x' AS y", "not authorized"}, {"PRAGMA query_only = 0", "not authorized"}, {"SELECT load_extension('x')", "not authorized"},
		{"COMMIT", "not authorized"}, {"CREATE TEMP TABLE x (y)", "not authorized"}, {"VACUUM INTO 'x'", "within a transaction"},
	} {
		s, err := openMounted(b.FS, "/in/shop.db")
		if err != nil {
			t.Fatal(err)
		}
		err = s.run(t.Context(), queryOf(query.text), &rows{most: 1})
		if err == nil || !strings.Contains(err.Error(), query.want) {
			t.Errorf("%s: got %v", query.text, err)
		}
		s.close()
	}
}

func queryOf(text string) query { return query{text: text} }

func TestBounds(t *testing.T) {
	b := shop(t, Config{Rows: 50, Timeout: 2 * time.Second})
	const numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n%s) SELECT i FROM n"
	b.WantParts(queryName, onShop(strings.Replace(numbers, "%s", " LIMIT 60", 1)), "| 50 |", "[rows 1 to 50 of 60; go on with LIMIT and OFFSET")
	b.WantParts(queryName, onShop(strings.Replace(numbers, "%s", "", 1), "max_rows", 3), "| 3 |", "[rows 1 to 3 of more than 10000;")
	b.WantParts(queryName, onShop("SELECT hex(zeroblob(100000))"), "000... (200000 bytes)")
	for _, format := range []string{"table", "csv", "json"} {
		got, failed := b.Call(queryName, onShop("SELECT hex(zeroblob(900)), i FROM ("+strings.Replace(numbers, "%s", " LIMIT 60", 1)+")", "format", format))
		if failed || len(got) > maxText+5_000 || !strings.Contains(got, "of 60; go on with") {
			t.Errorf("%s: %d bytes (failed: %t): ...%s", format, len(got), failed, got[max(0, len(got)-100):])
		}
	}
	b.WantFailure(queryName, onShop("SELECT hex(zeroblob(99999999))"), "a value may have 64 MiB")
	// The first row comes at once, the second never.
	b.WantFailure(queryName, onShop("SELECT 1 UNION ALL SELECT count(*) FROM ("+strings.Replace(numbers, "%s", "", 1)+")", "timeout_seconds", 1), "stopped after 1s", "longer timeout_seconds")
	b.WantFailure(queryName, onShop("SELECT count(*) FROM ("+strings.Replace(numbers, "%s", "", 1)+")"), "2s")
	// Sorting without end runs out of the memory that it may have, or of time.
	b.WantFailure(queryName, onShop("SELECT i, hex(zeroblob(2000)) AS h FROM ("+strings.Replace(numbers, "%s", "", 1)+") ORDER BY h, i"))
}

func TestCancel(t *testing.T) {
	b := shop(t, Config{})
	ctx, cancel := context.WithCancel(t.Context())
	tool, _ := b.Reg.Lookup(queryName)
	stop := time.AfterFunc(50*time.Millisecond, cancel)
	defer stop.Stop()
	_, err := tool.Call(ctx, tools.Call{Arguments: []byte(onShop("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"))})
	if !errors.Is(err, context.Canceled) || tools.CodeOf(err) != tools.CodeCancelled {
		t.Errorf("got %v", err)
	}
}

func TestErrors(t *testing.T) {
	secret := "/nowhere/s3cret-path.db"
	b := shop(t, Config{Connections: []Connection{
		{Name: "gone", Provider: "sqlite", Source: func() (string, error) { return secret, nil }},
		{Name: "wrong", Provider: "postgresql", Source: func() (string, error) { return "postgres://u:s3cret@h:99999/x", nil }},
		{Name: "strict", Provider: "mysql", Source: func() (string, error) { return "u:s3cret@tcp(h)/x?strict=true", nil }},
		{Name: "locked", Provider: "mysql", Source: func() (string, error) { return "", errors.New("s3cret") }},
	}})
	for _, name := range []string{"gone", "wrong", "strict", "locked"} {
		for _, tool := range []string{queryName, "database_schema"} {
			args := map[string]any{"connection": name}
			if tool == queryName {
				args["query"] = "SELECT 1"
			}
			if got, failed := b.Call(tool, mustJSON(args)); !failed || strings.Contains(got, "s3cret") || strings.Contains(got, "nowhere") {
				t.Errorf("%s: %s", name, got)
			}
		}
	}
	b.WantFailure(queryName, nativetest.Args("query", "SELECT 1"), "give connection; the connections are gone, wrong")
	b.WantFailure(queryName, nativetest.Args("connection", "gnoe", "query", "SELECT 1"), "did you mean \"gone\"?")
	b.WantFailure(queryName, nativetest.Args("connection", "gone", "connection_string", "x", "query", "SELECT 1"), "give one")
	b.WantFailure(queryName, nativetest.Args("connection", "gone", "provider_name", "mysql", "query", "SELECT 1"), "is a database of sqlite")
	b.WantFailure(queryName, nativetest.Args("connection_string", "x", "provider_name", "SqlServer", "query", "SELECT 1"), `"SqlServer" is not known`)
	b.WantFailure(queryName, nativetest.Args("connection_string", "postgres://u:p@h/x", "query", "SELECT 1"), "tools.database.hosts")
	b.WantFailure(queryName, onShop("SELECT *\nFROM orders\nWHERE customr = 1"), "no such column: customr", "line 3, column 7", `did you mean "customer"?`)
	b.WantFailure(queryName, onShop("SELECT * FROM order_s"), "no such table", `did you mean "orders"?`)
	b.WantFailure(queryName, onShop("SELEC 1"), "SELEC statements are not run here; SELECT")
}

func TestSchema(t *testing.T) {
	b := shop(t, Config{})
	b.WantText("database_schema", `{"connection_string":"/in/shop.db","table_filter":"ORDER*"}`, `/in/shop.db: sqlite, read only, 1 table.

table orders (3 rows)
  id INTEGER
  customer INTEGER not null
  cents INTEGER not null
  total NUMERIC generated
  placed TIMESTAMP
  primary key (id)
  foreign key (customer) references customers (id) on delete cascade
  index by_customer (customer, placed)
  index by_expression (an expression) of a part of the rows`)
	b.WantText("database_schema", `{"connection_string":"/in/shop.db","schema_scope":"tables"}`, `/in/shop.db: sqlite, read only, 3 tables, 1 view, 1 virtual table.
table customers (3 rows)
table files (2 rows)
virtual table notes
table orders (3 rows)
view totals`)
	b.WantParts("database_schema", `{"connection_string":"/in/shop.db","table_filter":"%o%s"}`, "note TEXT default 'none'", "virtual table notes\n  title\n  body")
	b.WantParts("database_schema", `{"connection_string":"/in/shop.db","table_filter":"x"}`, "none is of that name")
	b.WantFailure("database_schema", `{"connection_string":"/in/shop.db","table_filter":"[a"}`, "is no pattern")
	b.WantFailure("database_schema", `{"connection_string":"/in/none.db"}`, "there is no file")

	// Names may have anything in them.
	file := filepath.Join(t.TempDir(), "odd.db")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	b = bench(t, Config{Connections: []Connection{{Name: "odd", Provider: "sqlite", Write: true, Source: func() (string, error) { return file, nil }}}})
	b.WantText(queryName, nativetest.Args("query", "CREATE TABLE \"a|\ntable secrets\" (\"b\n  c\" int, \"\" int)"), "Done.")
	b.WantText("database_schema", `{}`, "odd: sqlite, may be written to, 1 table.\n\ntable a| table secrets (0 rows)\n  b   c INT\n   INT")
	b.WantText(queryName, nativetest.Args("query", "SELECT * FROM \"a|\ntable secrets\""), "| b<br>  c |  |\n| --- | --- |\n\n0 rows.")
}
