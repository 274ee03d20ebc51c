package database

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"crewhost/tools"
	"crewhost/tools/native/nativetest"
)

func TestConnStrings(t *testing.T) {
	want := server{host: "db.example.org", port: 5433, user: "app", password: "p;w d", database: "shop", tls: tlsVerify}
	for _, tt := range []struct{ provider, s string }{
		{postgresProvider, "postgresql://app:p%3Bw%20d@db.example.org:5433/shop?sslmode=verify-full"},
		{postgresProvider, "Server=db.example.org;Port=5433;Database=shop;User Id=app;Password=\"p;w d\";SSL Mode=VerifyFull;Pooling=true"},
		{postgresProvider, "Host=db.example.org:5433;Username=app;Password='p;w d';Initial Catalog=shop;SslMode=verify-ca"},
		{postgresProvider, "host=db.example.org port=5433 dbname=shop user=app password='p;w d' sslmode=verify-full connect_timeout=5"},
		{mysqlProvider, "mysql://app:p%3Bw%20d@db.example.org:5433/shop?tls=true"},
		{mysqlProvider, "Server=tcp:db.example.org,5433;Uid=app;Pwd=\"p;w d\";Database=shop;SslMode=VerifyIdentity"},
	} {
		want.provider = tt.provider
		got, file, err := readConnString(tt.provider, tt.s)
		if err != nil || file != "" || got != want {
			t.Errorf("%s: got %+v %q %v", tt.s, got, file, err)
		}
	}
	for _, s := range []string{
		"postgres://u:s3cret@/x", "postgres://u:s3cret@%2Fvar%2Frun/x", "postgres://u:s3cret@a,b/x", "postgres://u:s3cret@h/x?sslrootcert=/etc/passwd", "postgres://u:s3cret@h/x?service=s3cret",
		"postgres://u:s3cret@h/x?passfile=/etc/passwd", "postgres://u:s3cret@h/x?host=/var/run", "postgres://u:s3cret@h/x?options=-c%20x", "postgres://u:s3cret@h:0/x", "postgres://u:s3cret@h:s3cret/x",
		"postgres://u:s3cret@h/x?sslmode=s3cret", "mysql://u:s3cret@h/x?allowAllFiles=true", "mysql://u:s3cret@h/x?multiStatements=true", "host=h;password='s3cret", "host=h user=u s3cret",
		"Server=/var/run/s3cret;User Id=x", "postgres://u:s3 cret@h h/x", "Server=h;User Id=u;Password=s3cret",
	} {
		provider := ""
		if strings.HasPrefix(s, "host") || strings.HasPrefix(s, "Server=/") {
			provider = postgresProvider
		}
		_, file, err := readConnString(provider, s)
		if err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: got %q, %v", s, file, err)
		}
	}
}

func TestSecrets(t *testing.T) {
	for source, want := range map[string]string{
		"postgresql://app:p%3Bw%20d@db.example.org/shop?sslmode=require": "p%3Bw%20d p;w d",
		"postgres://app:one@a:1,b:2/x?sslpassword=t%77o":                 "one t%77o two",
		"postgres://app@h/x?password=one":                                "one",
		"mysql://app:p@ss/w:rd@h/x":                                      "p@ss/w:rd",
		"host=h user=u password='it''s' sslpassword=key":                 "it's key",
		"Server=h;Uid=u;Pwd=\"a;b\"":                                     "a;b",
		"app:p@ss:w/rd@tcp(h:1)/x?charset=utf8":                          "p@ss:w/rd",
		"app@tcp(h)/x":                                                   "", "/data/shop.db": "", "file:///data/a@b:c.db": "", "": "",
	} {
		if got := strings.Join(Secrets(source), " "); got != want {
			t.Errorf("%s: got %q, want %q", source, got, want)
		}
	}
}

// TestNoEnvironment holds that a string of an agent gets nothing from the environment of
// the host, and its connection goes where the string says, by the dialer of the host.
func TestNoEnvironment(t *testing.T) {
	for _, name := range []string{"PGHOST", "PGUSER", "PGPASSWORD", "PGDATABASE", "PGSSLMODE", "PGSSLROOTCERT", "PGOPTIONS", "PGAPPNAME", "PGPASSFILE", "PGTARGETSESSIONATTRS", "PGTZ", "PGREQUIREAUTH", "PGCHANNELBINDING", "PGMINPROTOCOLVERSION"} {
		t.Setenv(name, "/s3cret")
	}
	t.Setenv("PGPORT", "1")
	srv, _, err := readConnString("", "postgres://db.example.org/")
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := srv.postgres(func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("x") })
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Host != "db.example.org" || cfg.Port != 5432 || cfg.User != "" || cfg.Password != "" || cfg.Database != "" || len(cfg.RuntimeParams) != 2 || cfg.RequireAuth != "" || cfg.TLSConfig.RootCAs != nil || cfg.ValidateConnect != nil {
		t.Errorf("got %+v", cfg)
	}
	t.Setenv("PGSERVICE", "s3cret")
	if _, err := srv.postgres(nil); err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("with PGSERVICE: got %v", err)
	}
}

func TestHosts(t *testing.T) {
	var dialed atomic.Value
	b := bench(t, Config{Dial: func(_ context.Context, _, address string) (net.Conn, error) {
		dialed.Store(address)
		return nil, errors.New("the host s3cret is not there")
	}})
	for s, address := range map[string]string{
		"postgres://u:s3cret@db.example.org/x": "db.example.org:5432", "postgres://u:s3cret@127.0.0.1:99/x?sslmode=disable": "127.0.0.1:99",
		"mysql://u:s3cret@db.example.org/x": "db.example.org:3306", "mariadb://u:s3cret@[::1]:9/x": "[::1]:9",
	} {
		dialed.Store("")
		got, failed := b.Call(queryName, nativetest.Args("connection_string", s, "query", "SELECT 1"))
		if !failed || strings.Contains(got, "s3cret") || strings.Contains(got, "example") || !strings.Contains(got, "tools.database.hosts") {
			t.Errorf("%s: %s", s, got)
		}
		if dialed.Load() != address {
			t.Errorf("%s: dialed %v", s, dialed.Load())
		}
	}
}

func FuzzConnString(f *testing.F) {
	f.Add("", "postgres://u:p@h:5/x?sslmode=require")
	f.Add("mysql", "Server=h;User Id='a''b';Password=\"x\"")
	f.Add("", "sqlite:////a/b?c#d")
	f.Add("postgresql", "host=h user=u\\")
	f.Fuzz(func(t *testing.T, provider, s string) {
		srv, _, err := readConnString(providerNamed(provider), s)
		if err == nil && srv.provider != "" && (srv.host == "" || strings.ContainsAny(srv.host, "/\\,")) {
			t.Errorf("%q: got %+v", s, srv)
		}
	})
}

func FuzzStatement(f *testing.F) {
	for _, s := range []string{"SELECT 'a''b', $1, ?2, :a FROM \"x\" /* y */ -- z", "SELECT $a$ x $a$, E'\\''", "WITH a AS (SELECT 1) DELETE FROM b", "[a]`b`#c", "/*/**/*/;", "CREATE TRIGGER x BEGIN; END"} {
		for _, p := range []string{sqliteProvider, postgresProvider, mysqlProvider} {
			f.Add(p, s, `[1, "x"]`)
			f.Add(p, s, `{"a": null}`)
		}
	}
	f.Fuzz(func(t *testing.T, provider, text, values string) {
		s, err := readStatement(provider, text)
		if err != nil {
			return
		}
		end := 0
		for _, token := range s.tokens {
			if token.at < end || token.end <= token.at || token.end > len(text) {
				t.Fatalf("%q: the tokens overlap: %+v", text, s.tokens)
			}
			end = token.end
		}
		_, _, _ = s.refused(true), s.refused(false), s.disagrees("select")
		p, err := readParameters([]byte(values))
		if err == nil {
			_, _ = p.ready(s)
		}
	})
}

// FuzzFile opens files of SQLite that were damaged.
func FuzzFile(f *testing.F) {
	b := shop(f, Config{})
	whole := b.Get("in/shop.db")
	f.Add(100, []byte{0xff, 0xff}, 2000, []byte{0})
	f.Fuzz(func(t *testing.T, at int, some []byte, at2 int, more []byte) {
		data := []byte(whole)
		for _, change := range []struct {
			at    int
			bytes []byte
		}{{at, some}, {at2, more}} {
			if change.at >= 0 && change.at < len(data) {
				copy(data[change.at:], change.bytes)
			}
		}
		if err := os.WriteFile(filepath.Join(b.Root, "in", "fuzz.db"), data, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, name := range b.Reg.Names() {
			tool, _ := b.Reg.Lookup(name)
			for _, query := range []string{"SELECT * FROM orders JOIN customers", "SELECT * FROM notes WHERE notes MATCH 'it'", "SELECT * FROM files, totals", "PRAGMA integrity_check"} {
				args := map[string]any{"connection_string": "/in/fuzz.db"}
				if name == queryName {
					args["query"], args["timeout_seconds"] = query, 2
				}
				if _, err := tool.Call(t.Context(), tools.Call{Arguments: []byte(mustJSON(args))}); err != nil {
					t.Error(err)
				}
			}
		}
	})
}
