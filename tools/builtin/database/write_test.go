package database

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"

	"crewhost/tools"
	"crewhost/tools/native"
	"crewhost/tools/native/nativetest"
)

func TestWrite(t *testing.T) {
	file := filepath.Join(t.TempDir(), "own.db")
	data, err := os.ReadFile("testdata/shop.db")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	source := func() (string, error) { return file, nil }
	b := shop(t, Config{Connections: []Connection{{Name: "own", Provider: "sqlite", Write: true, Source: source}, {Name: "seen", Provider: "sqlite", Source: source}}})
	on := func(query string, more ...any) string {
		return nativetest.Args(append([]any{"connection", "own", "query", query}, more...)...)
	}
	b.WantText(queryName, on("UPDATE orders SET cents = cents + 1 WHERE customer = ?", "parameters", []any{1}), "2 rows affected.")
	b.WantText(queryName, on("INSERT INTO orders (customer, cents) VALUES (1, 5), (1, 6) RETURNING cents", "max_rows", 1),
		"| cents |\n| --- |\n| 5 |\n\n[rows 1 to 1 of 2; go on with LIMIT and OFFSET behind an ORDER BY, or ask for less]\n2 rows affected.")
	b.WantText(queryName, on("CREATE TABLE x (y)"), "Done.")
	b.WantText(queryName, on("CREATE TRIGGER z AFTER INSERT ON x BEGIN DELETE FROM files; INSERT INTO x VALUES (2); END"), "Done.")
	b.WantText(queryName, on("INSERT INTO x VALUES (1)", "query_type", "insert"), "4 rows affected.")
	b.WantParts(queryName, nativetest.Args("connection", "seen", "query", "SELECT (SELECT count(*) FROM x), (SELECT count(*) FROM files)"), "| 2 | 0 |")
	// What fails half-way is not kept.
	b.WantFailure(queryName, on("INSERT INTO customers (id, name) VALUES (9, 'x'), (1, 'y')"), "UNIQUE constraint failed", "Nothing is changed.")
	b.WantFailure(queryName, on("INSERT INTO orders (customer, cents) VALUES (77, 1)"), "FOREIGN KEY")
	b.WantParts(queryName, on("SELECT count(*) FROM customers WHERE id = 9"), "| 0 |")
	for _, query := range []string{"ATTACH 'x' AS y", "PRAGMA writable_schema = 1", "VACUUM", "SELECT load_extension('x')", "COMMIT", "DELETE FROM x; DELETE FROM orders"} {
		b.WantFailure(queryName, on(query))
	}
	b.WantFailure(queryName, on("DELETE FROM x", "query_type", "select"), "query_type is \"select\"")
	b.WantFailure(queryName, nativetest.Args("connection", "seen", "query", "DELETE FROM x"), "read only here")
	// A mount is never written to, whatever it lets others do.
	b.Put("out/shop.db", string(data))
	b.WantFailure(queryName, nativetest.Args("connection_string", "/out/shop.db", "query", "DELETE FROM orders"), "read only here")
}

// endsLate is a context that ends when it is asked for the second time.
type endsLate struct {
	context.Context
	asked int
}

func (c *endsLate) Err() error {
	if c.asked++; c.asked > 1 {
		return context.Canceled
	}
	return nil
}

// TestEndBeforeCommit holds that a change which is not kept any more is no success.
func TestEndBeforeCommit(t *testing.T) {
	b := shop(t, Config{})
	file := filepath.Join(b.Root, "in", "shop.db")
	s, err := openSQLite(file, true)
	if err != nil {
		t.Fatal(err)
	}
	err = s.run(&endsLate{Context: t.Context()}, query{text: "DELETE FROM orders", write: true, whole: true, counts: true}, &rows{most: 1})
	s.close()
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	b.WantParts(queryName, onShop("SELECT count(*) FROM orders"), "| 3 |")
}

// TestTogether holds that calls at one time, some of which fail or are stopped, neither
// see each other nor leave anything.
func TestTogether(t *testing.T) {
	b := shop(t, Config{Timeout: time.Minute})
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	tool, _ := b.Reg.Lookup(queryName)
	var all errgroup.Group
	for i := range 100 {
		all.Go(func() error {
			text, want := fmt.Sprintf("SELECT %d + count(*) FROM orders, customers", i), fmt.Sprintf("| %d |", i+9)
			switch i % 5 {
			case 1:
				text, want = "SELECT * FROM nowhere", "no such table"
			case 2:
				text, want = "SELECT json(name) FROM customers", "malformed JSON"
			case 3: // amid a sort
				text, want = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 100000000) SELECT i FROM n ORDER BY -i", ""
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if want == "" {
				stop := time.AfterFunc(20*time.Millisecond, cancel)
				defer stop.Stop()
			}
			res, err := tool.Call(ctx, tools.Call{Arguments: []byte(onShop(text))})
			if want == "" {
				if tools.CodeOf(err) != tools.CodeCancelled {
					return fmt.Errorf("%s: got %w", text, err)
				}
				return nil
			}
			if err != nil || len(res.Content) != 1 || !strings.Contains(res.Content[0].Text, want) {
				return fmt.Errorf("%s: got %+v %w", text, res, err)
			}
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		t.Error(err)
	}
}

func TestEffect(t *testing.T) {
	cfg := Config{Connections: []Connection{{Name: "w", Provider: "sqlite", Write: true}, {Name: "r", Provider: "sqlite"}}}
	for args, want := range map[string]native.Effect{
		`{"connection":"w"}`: native.Once, `{"connection":"r"}`: native.ReadOnly, `{"connection_string":"w"}`: native.Once,
		`{"connection_string":" w "}`: native.Once, `{"connection_string":"/in/x.db"}`: native.ReadOnly, `{}`: native.ReadOnly, `[`: native.Once,
	} {
		if got := Tools(cfg)[0].Does([]byte(args)); got != want {
			t.Errorf("%s: got %v", args, got)
		}
		if got := Tools(cfg)[1].Does([]byte(args)); got != native.ReadOnly {
			t.Errorf("schema %s: got %v", args, got)
		}
	}
	if got := Tools(Config{Connections: cfg.Connections[:1]})[0].Does([]byte(`{}`)); got != native.Once {
		t.Errorf("the only connection: got %v", got)
	}
}
