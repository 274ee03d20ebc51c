//go:build interop

package database

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"crewhost/tools"
	"crewhost/tools/native/nativetest"
)

// on are arguments for a query of a connection.
func on(connection, query string, more ...any) string {
	return nativetest.Args(append([]any{"connection", connection, "query", query}, more...)...)
}

// fixed is the source of a connection.
func fixed(s string) func() (string, error) { return func() (string, error) { return s, nil } }

// dialed dials hosts of a list, as the host does.
func dialed(addresses ...string) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		for _, a := range addresses {
			if a == address {
				return (&net.Dialer{}).DialContext(ctx, network, address)
			}
		}
		return nil, fmt.Errorf("%s is not allowed", address)
	}
}

func TestInteropPostgreSQL(t *testing.T) {
	s := startPostgres(t)
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	local := fmt.Sprintf("localhost:%d", s.port)
	agents := fmt.Sprintf("postgresql://super:s3cret-P%%C3%%A4ssword@%s/postgres", local)
	b := bench(t, Config{Rows: 20, Timeout: 20 * time.Second, Dial: dialed(local), Connections: []Connection{
		{Name: "read", Provider: "postgresql", Source: fixed(s.super)},
		{Name: "write", Provider: "postgresql", Write: true, Source: fixed(s.super)},
		{Name: "ado", Provider: "postgresql", Source: fixed(fmt.Sprintf("Server=localhost;Port=%d;Database=postgres;User Id=super;Password=%s;SslMode=Require", s.port, s.password))},
		{Name: "login", Provider: "postgresql", Source: fixed(fmt.Sprintf("host=localhost port=%d user=super password=wr0ng dbname=postgres", s.port))},
		{Name: "nothing", Provider: "postgresql", Source: fixed(fmt.Sprintf("host=localhost port=%d user=super password=%s dbname=gone-s3cret", s.port, s.password))},
		{Name: "untrusted", Provider: "postgresql", Source: fixed(fmt.Sprintf("host=localhost port=%d user=super password=%s dbname=postgres sslmode=verify-full", s.port, s.password))},
	}})
	for _, query := range []string{
		`CREATE TABLE customers (id serial PRIMARY KEY, name text NOT NULL, CHECK (name <> 'x'))`, `COMMENT ON TABLE customers IS 'people who buy'`, `COMMENT ON COLUMN customers.name IS 'first and last'`,
		`CREATE TABLE kinds (id int PRIMARY KEY REFERENCES customers ON DELETE CASCADE, n numeric(30, 10), ts timestamptz, day date, b bytea, arr int[], u uuid, ok bool, j jsonb, e text, f float8 GENERATED ALWAYS AS (n * 2) STORED)`,
		`CREATE UNIQUE INDEX by_n ON kinds (n, lower(e)) WHERE ok`, `CREATE VIEW names AS SELECT name FROM customers`,
	} {
		b.WantText(queryName, on("write", query), "Done.")
	}
	b.WantText(queryName, on("write", "INSERT INTO customers (name) VALUES ($1), ($2)", "parameters", []any{"Ada", "Bj"}), "2 rows affected.")
	b.WantText(queryName, on("write", "INSERT INTO customers (name) VALUES (:a), (:b) RETURNING id", "parameters", map[string]any{"a": "Cy", "b": "'; DROP TABLE customers; --"}),
		"| id |\n| --- |\n| 3 |\n| 4 |\n\n2 rows.\n2 rows affected.")
	b.WantText(queryName, `{"connection":"write","query":"INSERT INTO kinds VALUES ($1, $2, $3, '2024-02-29', $4, '{1,2,NULL}', $5, $6, $7, '')","parameters":[1, 12345678901234567890.0123456789, "2026-01-02T03:04:05.5+02:00", "\\x00ff", "6ba7b810-9dad-11d1-80b4-00c04fd430c8", true, {"a": [1]}]}`, "1 row affected.")
	b.WantParts(queryName, on("read", "SELECT * FROM kinds"), "| 1 | 12345678901234567890.0123456789 |", "04:05.5", "| 2024-02-29 | 0x00ff | {1,2,NULL} | 6ba7b810-9dad-11d1-80b4-00c04fd430c8 | true | {\"a\": [1]} | '' | 2.46")
	b.WantParts(queryName, on("read", "SELECT n, ok, j, e, NULL, arr FROM kinds", "format", "json"), `[12345678901234567890.0123456789,true,{"a": [1]},"",null,"{1,2,NULL}"]`)
	b.WantParts(queryName, on("ado", "SELECT count(*) FROM customers"), "| 4 |")
	for _, str := range []string{agents, agents + "?sslmode=disable", fmt.Sprintf("Host=localhost;Port=%d;Username=super;Password=%s;Database=postgres", s.port, s.password)} {
		b.WantParts(queryName, nativetest.Args("connection_string", str, "provider_name", "postgresql", "query", "SELECT count(*) FROM customers"), "| 4 |")
	}
	b.WantFailure(queryName, nativetest.Args("connection_string", agents, "query", "DELETE FROM customers"), "read only here")
	b.WantFailure(queryName, nativetest.Args("connection_string", strings.Replace(agents, "localhost", "127.0.0.1", 1), "query", "SELECT 1"), "tools.database.hosts")
	for name, want := range map[string]string{"login": "refused the login", "nothing": "no such database", "untrusted": "certificate is not trusted"} {
		got, failed := b.Call(queryName, on(name, "SELECT 1"))
		if !failed || !strings.Contains(got, want) || strings.Contains(got, "s3cret") || strings.Contains(got, "wr0ng") || strings.Contains(got, "super") || strings.Contains(got, "localhost") {
			t.Errorf("%s: %s", name, got)
		}
	}

	b.WantText("database_schema", `{"connection":"read","schema_scope":"public"}`, `read: postgresql, read only, 2 tables, 1 view.

table public.customers: people who buy
  id integer not null default nextval('customers_id_seq'::regclass)
  name text not null: first and last
  primary key (id)
  check ((name <> 'x'::text))

table public.kinds
  id integer not null
  n numeric(30,10)
  ts timestamp with time zone
  day date
  b bytea
  arr integer[]
  u uuid
  ok boolean
  j jsonb
  e text
  f double precision generated as (n * (2)::numeric)
  primary key (id)
  foreign key (id) references customers(id) on delete CASCADE
  unique index by_n using btree (n, lower(e)) WHERE ok

view public.names
  name text`)

	// Errors tell what to do.
	b.WantFailure(queryName, on("read", "SELECT *\nFROM costumers"), "42P01", "line 2, column 6", `did you mean "customers"?`)
	b.WantFailure(queryName, on("read", "SELECT nam FROM customers"), "42703", "line 1, column 8", `did you mean "name"?`)
	b.WantFailure(queryName, on("write", "INSERT INTO customers (id, name) VALUES (90, 'y'), (1, 'z')"), "23505", "Key (id)=(1) already exists", "Nothing is changed.")
	b.WantParts(queryName, on("read", "SELECT count(*) FROM customers WHERE id = 90"), "| 0 |")
	b.WantFailure(queryName, on("read", "SELECT 1 + $1", "parameters", []any{"x"}), "22P02", "$1::text")

	through, end := cutAtCommit(t, local)
	defer end()
	cut := bench(t, Config{Connections: []Connection{{Name: "cut", Provider: "postgresql", Write: true, Source: fixed(fmt.Sprintf("postgresql://super:s3cret-P%%C3%%A4ssword@%s/postgres?sslmode=disable", through))}}})
	cut.WantFailure(queryName, on("cut", "INSERT INTO customers (name) VALUES ('cut')"), "did not say whether the change is kept")
	cut.WantFailure(queryName, on("cut", "INSERT INTO customers (name) VALUES (NULL)"), "23502", "Nothing is changed.")
	b.WantText(queryName, on("write", "CREATE TABLE late (id int REFERENCES customers DEFERRABLE INITIALLY DEFERRED)"), "Done.")
	b.WantFailure(queryName, on("write", "INSERT INTO late VALUES (99)"), "23503", "Nothing is changed.") // it is the COMMIT that fails

	postgresAttacks(t, b)
	bounds(t, b, "SELECT pg_sleep(60)", "SELECT count(*) FROM generate_series(1, 100000000000)",
		"SELECT generate_series(1, 1000000000)", "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT * FROM n", "SELECT repeat(repeat('x', 1000000), 100)")
	// What nobody waits for is over at the server, too.
	b.WantParts(queryName, on("read", "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'crewhost' AND state = 'active' AND pid <> pg_backend_pid()"), "| 0 |")
}

// cutAtCommit is a way to a server that breaks off when a COMMIT has gone through it.
func cutAtCommit(t *testing.T, address string) (through string, end func()) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer client.Close()
				server, err := net.Dial("tcp", address)
				if err != nil {
					return
				}
				defer server.Close()
				all.Go(func() { _, _ = io.Copy(client, server); _ = client.Close() })
				buf := make([]byte, 64<<10)
				for {
					n, err := client.Read(buf)
					if err != nil {
						return
					}
					commits := bytes.Contains(buf[:n], []byte("COMMIT"))
					if commits {
						_ = client.Close() // before the answer can come
					}
					if _, err := server.Write(buf[:n]); err != nil || commits {
						return
					}
				}
			})
		}
	})
	return l.Addr().String(), func() {
		_ = l.Close()
		all.Wait()
	}
}

// postgresAttacks are ways to change something through a connection that may not.
func postgresAttacks(t *testing.T, b nativetest.Bench) {
	t.Helper()
	for _, query := range []string{"CREATE TABLE canary (v int)", "CREATE SEQUENCE counter"} {
		b.WantText(queryName, on("write", query), "Done.")
	}
	b.WantText(queryName, on("write", "INSERT INTO canary VALUES (1)"), "1 row affected.")
	for _, query := range []string{
		"WITH x AS (INSERT INTO canary VALUES (2) RETURNING v) SELECT * FROM x", "WITH x AS (DELETE FROM canary RETURNING v) SELECT * FROM x",
		"SELECT * INTO canary2 FROM canary", "CREATE TEMP TABLE x (y int)", "SELECT nextval('counter')", "SELECT setval('counter', 9)",
		"EXPLAIN ANALYZE INSERT INTO canary VALUES (2)", "EXPLAIN (ANALYZE) DELETE FROM canary",
		"SELECT set_config('transaction_read_only', 'off', true), query_to_xml('INSERT INTO canary VALUES (2)', true, true, '')",
		"SELECT set_config('transaction_read_only', 'off', false)", "SELECT query_to_xml('DELETE FROM canary', true, true, '')",
		"SELECT query_to_xml('SET TRANSACTION READ WRITE', true, true, '')", "SELECT 1; INSERT INTO canary VALUES (2)", "SELECT 1;;COMMIT",
		"COPY canary TO '/tmp/crewhost-canary'", "COPY canary TO PROGRAM 'touch /tmp/crewhost-canary'", "COPY canary FROM PROGRAM 'echo 2'",
		"SET TRANSACTION READ WRITE", "SET default_transaction_read_only = off", "RESET ALL", "BEGIN READ WRITE", "COMMIT", "COMMIT AND CHAIN", "ROLLBACK", "END", "SAVEPOINT x",
		"PREPARE x AS DELETE FROM canary", "EXECUTE x", "DECLARE c CURSOR FOR SELECT 1", "DO $$ BEGIN DELETE FROM canary; END $$", "CALL x()", "LOCK TABLE canary", "LISTEN x", "NOTIFY x", "VACUUM canary",
		"/* x */ DELETE FROM canary", "-- x\nDELETE FROM canary", "-- x\rDELETE FROM canary", "SELECT 1 FROM canary FOR UPDATE", "MERGE INTO canary USING (SELECT 1) x ON true WHEN MATCHED THEN DELETE",
		"SELECT lo_export(1, '/tmp/crewhost-canary')", "SELECT pg_read_file('/etc/passwd')", "SELECT U&\"pg\\005fread_file\" ('PG_VERSION') ",
		"SELECT ('PG_VERSION'::text).pg_read_file", "SELECT (t).c.pg_read_file FROM (SELECT 'PG_VERSION'::text AS c) t", "SELECT ts_stat('SELECT to_tsvector(pg_read_file(''PG_VERSION''))')",
		"SELECT pg_terminate_backend(1)", "SELECT pg_notify('x', 'y')", "SELECT pg_reload_conf()", "TABLE canary; DELETE FROM canary", "REFRESH MATERIALIZED VIEW x",
	} {
		b.WantFailure(queryName, on("read", query))
	}
	// What the server lets pass in such a transaction is rolled back.
	for _, query := range []string{"EXPLAIN ANALYZE CREATE TABLE canary2 AS SELECT 1", "SELECT lo_create(4711)"} {
		_, _ = b.Call(queryName, on("read", query))
	}
	b.WantText(queryName, on("read", "SELECT (SELECT string_agg(v::text, ',') FROM canary), (SELECT is_called FROM counter), to_regclass('canary2'), (SELECT count(*) FROM pg_largeobject_metadata)", "format", "csv"),
		"string_agg,is_called,to_regclass,count\n1,false,,0\n")
	// What one call sets does not reach the next.
	b.WantParts(queryName, on("read", "SELECT set_config('search_path', 'nowhere', false), pg_advisory_lock(7)"), "nowhere")
	b.WantParts(queryName, on("read", "SELECT current_setting('search_path'), pg_try_advisory_lock(7)"), "public", "true")
	for _, query := range []string{"CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'", "CREATE ROLE x", "CREATE EXTENSION dblink", "COPY canary TO PROGRAM 'x'", "DO $$ BEGIN END $$", "COMMIT", "DELETE FROM canary; COMMIT"} {
		b.WantFailure(queryName, on("write", query))
	}
}

// bounds holds that what has no end is stopped, at the server too, and that nothing large
// gets into memory.
func bounds(t *testing.T, b nativetest.Bench, sleep, count, series, recursive, large string) {
	t.Helper()
	for _, query := range []string{sleep, count} {
		began := time.Now()
		b.WantFailure(queryName, on("read", query, "timeout_seconds", 1), "stopped after 1s")
		if took := time.Since(began); took > 8*time.Second {
			t.Errorf("%s took %v", query, took)
		}
	}
	for _, query := range []string{series, recursive} {
		b.WantParts(queryName, on("read", query), "[rows 1 to 20 of more than 10000;")
	}
	b.WantFailure(queryName, on("read", large), "larger than 64 MiB")
	ctx, cancel := context.WithCancel(t.Context())
	stop := time.AfterFunc(300*time.Millisecond, cancel)
	defer stop.Stop()
	tool, _ := b.Reg.Lookup(queryName)
	if _, err := tool.Call(ctx, tools.Call{Arguments: []byte(on("read", sleep))}); tools.CodeOf(err) != tools.CodeCancelled {
		t.Errorf("a cancelled call: %v", err)
	}
}

func TestInteropMariaDB(t *testing.T) {
	s := startMySQL(t)
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	local := fmt.Sprintf("127.0.0.1:%d", s.port)
	root := bench(t, Config{Connections: []Connection{{Name: "root", Provider: "mysql", Write: true, Source: fixed(s.root)}}})
	root.WantParts(queryName, on("root", "SELECT 1"), "| 1 |")
	ownStatements(t, s.root, "CREATE DATABASE shop", "CREATE TABLE shop.customers (id int)", "CREATE USER app@'%' IDENTIFIED BY 's3cret'", "GRANT ALL ON shop.* TO app@'%'", "CREATE USER poor@'%' IDENTIFIED BY 's3cret'", "GRANT SELECT ON shop.customers TO poor@'%'", "DROP TABLE shop.customers")
	url := func(user string) string { return "mysql://" + user + ":s3cret@" + local + "/shop" }
	b := bench(t, Config{Rows: 20, Timeout: 20 * time.Second, Dial: dialed(local), Connections: []Connection{
		{Name: "read", Provider: "mysql", Source: fixed(s.root[:strings.LastIndex(s.root, "/")] + "/shop")}, // root may write files
		{Name: "write", Provider: "mysql", Write: true, Source: fixed(url("app"))},
		{Name: "ado", Provider: "mysql", Source: fixed(fmt.Sprintf("Server=127.0.0.1;Port=%d;Database=shop;Uid=app;Pwd=s3cret", s.port))},
		{Name: "dsn", Provider: "mysql", Source: fixed("app:s3cret@tcp(" + local + ")/shop?multiStatements=true&allowAllFiles=true&charset=gbk")},
		{Name: "login", Provider: "mysql", Source: fixed(strings.Replace(url("app"), "s3cret", "wr0ng", 1))},
		{Name: "nothing", Provider: "mysql", Source: fixed(url("app") + "-s3cret")},
		{Name: "poor", Provider: "mysql", Source: fixed("poor:s3cret@tcp(" + local + ")/")},
	}})
	for _, query := range []string{
		"CREATE TABLE customers (id int AUTO_INCREMENT PRIMARY KEY, name varchar(50) NOT NULL COMMENT 'first and last') COMMENT 'people who buy'",
		"CREATE TABLE kinds (id int PRIMARY KEY, n decimal(30,10) DEFAULT 1.5, ts datetime(3), day date, b varbinary(20), ok bool, big bigint unsigned, e text, f double, FOREIGN KEY owner (id) REFERENCES customers (id), UNIQUE KEY by_n (n, day))",
		"CREATE VIEW names AS SELECT name FROM customers",
	} {
		b.WantText(queryName, on("write", query), "Done.")
	}
	b.WantText(queryName, on("write", "INSERT INTO customers (name) VALUES (?), (?)", "parameters", []any{"Ada", "'; DROP TABLE customers; --"}), "2 rows affected.")
	b.WantParts(queryName, on("write", "INSERT INTO customers (name) VALUES (:a) RETURNING id", "parameters", map[string]any{"a": "Cy"}), "| 3 |")
	b.WantText(queryName, `{"connection":"write","query":"INSERT INTO kinds VALUES (?, ?, '2026-01-02 03:04:05.5', '2024-02-29', x'00ff', ?, ?, '', 0.1)","parameters":[1, 12345678901234567890.0123456789, true, 18446744073709551615]}`, "1 row affected.")
	const row = "| 1 | 12345678901234567890.0123456789 | 2026-01-02 03:04:05.500 | 2024-02-29 | 0x00ff | 1 | 18446744073709551615 | '' | 0.1 |"
	b.WantParts(queryName, on("read", "SELECT * FROM kinds"), row)
	b.WantParts(queryName, on("read", "SELECT * FROM kinds WHERE id = ?", "parameters", []any{1}), row) // of the binary protocol
	// In GBK, a backslash would end a letter here, and the quote behind it the text.
	b.WantParts(queryName, on("dsn", "SELECT 'ſ\\' AS a, ' = 5 -- x'", "format", "csv"), "\n0\n")
	for _, name := range []string{"ado", "dsn"} {
		b.WantParts(queryName, on(name, "SELECT count(*) FROM customers"), "| 3 |")
	}
	for _, str := range []string{url("app"), "Server=" + strings.Replace(local, ":", ";Port=", 1) + ";Database=shop;User Id=app;Password=s3cret"} {
		b.WantParts(queryName, nativetest.Args("connection_string", str, "provider_name", "mariadb", "query", "SELECT count(*) FROM customers"), "| 3 |")
	}
	b.WantFailure(queryName, nativetest.Args("connection_string", url("app"), "query", "DELETE FROM customers"), "read only here")
	b.WantFailure(queryName, nativetest.Args("connection_string", strings.Replace(url("app"), "127.0.0.1", "localhost", 1), "query", "SELECT 1"), "tools.database.hosts")
	for name, want := range map[string]string{"login": "refused the login", "nothing": "no such database", "poor": "No database selected"} {
		got, failed := b.Call(queryName, on(name, "SELECT * FROM customers"))
		if !failed || !strings.Contains(got, want) || strings.Contains(got, "s3cret") || strings.Contains(got, "app") || strings.Contains(got, "127.0.0.1") {
			t.Errorf("%s: %s", name, got)
		}
	}
	b.WantFailure(queryName, on("poor", "SELECT * FROM shop.kinds"), "SELECT command denied for table", "has no right to it")

	b.WantText("database_schema", `{"connection":"write"}`, `write: mysql, may be written to, 2 tables, 1 view.

table customers (about 3 rows): people who buy
  id int(11) not null auto_increment
  name varchar(50) not null: first and last
  primary key (id)

table kinds (about 1 rows)
  id int(11) not null
  n decimal(30,10) default 1.5000000000
  ts datetime(3)
  day date
  b varbinary(20)
  ok tinyint(1)
  big bigint(20) unsigned
  e text
  f double
  primary key (id)
  foreign key (id) references customers (id)
  unique index by_n (n, day)

view names
  name varchar(50) not null: first and last`)

	b.WantFailure(queryName, on("read", "SELECT * FROM costumers"), "error 1146", `did you mean "customers"?`)
	b.WantFailure(queryName, on("read", "SELECT nam FROM customers"), "error 1054", `did you mean "name"?`)
	b.WantFailure(queryName, on("write", "INSERT INTO customers (id, name) VALUES (90, 'y'), (1, 'z')"), "error 1062", "Nothing is changed.")
	b.WantParts(queryName, on("read", "SELECT count(*) FROM customers WHERE id = 90"), "| 0 |")

	through, end := cutAtCommit(t, local)
	defer end()
	cut := bench(t, Config{Connections: []Connection{{Name: "cut", Provider: "mysql", Write: true, Source: fixed("mysql://app:s3cret@" + through + "/shop")}}})
	cut.WantFailure(queryName, on("cut", "INSERT INTO customers (name) VALUES ('cut')"), "did not say whether the change is kept")
	cut.WantFailure(queryName, on("cut", "INSERT INTO customers (name) VALUES (NULL)"), "error 1048", "Nothing is changed.")

	mysqlAttacks(t, b, s)
	bounds(t, b, "SELECT sleep(60)", "SELECT count(*) FROM information_schema.columns a, information_schema.columns b, information_schema.columns c",
		"SELECT seq FROM seq_1_to_100000000", "SELECT a.seq FROM seq_1_to_1000 a, seq_1_to_1000 b",
		"SELECT repeat(repeat('x', 1000000), 10) FROM seq_1_to_30")
	b.WantParts(queryName, on("read", "SELECT count(*) FROM information_schema.processlist WHERE command <> 'Daemon' AND id <> CONNECTION_ID() AND time_ms > 5000 AND info IS NOT NULL"), "| 0 |")
}

// ownStatements are run as they stand, by the driver itself.
func ownStatements(t *testing.T, source string, statements ...string) {
	t.Helper()
	cfg, err := mysqlSource(source)
	if err != nil {
		t.Fatal(err)
	}
	s := &mysqlSession{config: cfg}
	defer s.close()
	if err := s.connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, text := range statements {
		if _, err := s.conn.ExecContext(t.Context(), text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
}

// mysqlAttacks are ways to change something through a connection that may not.
func mysqlAttacks(t *testing.T, b nativetest.Bench, s mysqlServer) {
	t.Helper()
	ownStatements(t, strings.TrimSuffix(s.root, "mysql")+"shop", "CREATE TABLE canary (v int)", "INSERT INTO canary VALUES (1)", "CREATE SEQUENCE counter", "CREATE USER nobody",
		"CREATE FUNCTION f() RETURNS int BEGIN DELETE FROM canary; RETURN 1; END", "SELECT 1")
	outfile := s.dir + "/data/stolen"
	for _, query := range []string{
		"DELETE FROM canary", "/* x */ DELETE FROM canary", "# x\nDELETE FROM canary", "-- x\nDELETE FROM canary", "WITH x AS (SELECT 1) DELETE FROM canary", "SELECT f()", "SELECT nextval(counter)", "SELECT NEXT VALUE FOR counter",
		"SELECT 1; DELETE FROM canary", "SELECT v INTO @x FROM canary", "SELECT v FROM canary FOR UPDATE; COMMIT",
		"SELECT * FROM canary INTO OUTFILE '" + outfile + "'", "SELECT 'x' INTO DUMPFILE '" + outfile + "'", "SELECT 1 /*!50000 INTO OUTFILE '" + outfile + "' */", "SELECT 1 /*M! INTO OUTFILE '" + outfile + "' */",
		"SELECT 1 --1 INTO OUTFILE '" + outfile + "'", "SELECT LOAD_FILE('/etc/passwd')",
		"LOAD DATA LOCAL INFILE '/etc/passwd' INTO TABLE canary", "LOAD DATA INFILE '/etc/passwd' INTO TABLE canary", "SET SESSION transaction_read_only = 0", "SET @x = 1", "COMMIT", "START TRANSACTION READ WRITE", "BEGIN", "ROLLBACK",
		"CREATE TABLE x (y int)", "CREATE TEMPORARY TABLE x (y int)", "TRUNCATE canary", "DROP TABLE canary", "RENAME TABLE canary TO x", "ANALYZE DELETE FROM canary", "ANALYZE FORMAT=JSON DELETE FROM canary",
		"CALL p()", "DO f()", "HANDLER canary OPEN", "LOCK TABLES canary WRITE", "PREPARE x FROM 'DELETE FROM canary'", "EXECUTE IMMEDIATE 'DELETE FROM canary'", "KILL 1", "FLUSH TABLES", "GRANT ALL ON *.* TO nobody", "BEGIN NOT ATOMIC DELETE FROM canary; END",
	} {
		b.WantFailure(queryName, on("read", query))
	}
	b.WantText(queryName, on("read", "SELECT (SELECT group_concat(v) FROM canary) AS v, (SELECT next_not_cached_value FROM counter) AS n"), "| v | n |\n| --- | --- |\n| 1 | 1 |\n\n1 row.")
	if exists(outfile) {
		t.Error("a file was written")
	}
	// What one call sets does not reach the next.
	b.WantParts(queryName, on("read", "SELECT @x := 5, GET_LOCK('l', 0)"), "5")
	b.WantParts(queryName, on("read", "SELECT @x, GET_LOCK('l', 1)"), "| NULL | 1 |")
	for _, query := range []string{"CREATE USER x", "CREATE FUNCTION g() RETURNS int RETURN 1", "SET GLOBAL x = 1", "DELETE FROM canary; COMMIT", "SELECT 1 INTO OUTFILE '" + outfile + "'", "LOAD DATA LOCAL INFILE '/etc/passwd' INTO TABLE canary"} {
		b.WantFailure(queryName, on("write", query))
	}
}
