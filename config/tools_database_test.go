package config

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestDatabases(t *testing.T) {
	dir := files(t, map[string]string{"crewhost.yaml": `
tools:
  database:
    enabled: true
    connections:
      shop: {url: "${SHOP}", write: true}
      ado: {url: "Server=h;Password=${PW}", provider: mysql}
      local: {file: data/shop.db}
    hosts: [db.example.org, "10.0.0.1:5432"]
    timeout: 5s
    rows: 10
`})
	s, err := Load(Source{CrewDir: dir, Environ: []string{"SHOP=postgres://u:sk-canary@h/x", "PW=sk-canary"}})
	if err != nil {
		t.Fatal(err)
	}
	got := s.Tools.Database
	if !got.Enabled || got.Timeout != 5*time.Second || got.Rows != 10 || strings.Join(got.Hosts, " ") != "db.example.org 10.0.0.1:5432" || len(got.Connections) != 3 {
		t.Errorf("%+v", got)
	}
	for i, want := range []struct {
		name, provider, source string
		write                  bool
	}{
		{"shop", "postgresql", "postgres://u:sk-canary@h/x", true},
		{"ado", "mysql", "Server=h;Password=sk-canary", false},
		{"local", "sqlite", filepath.Join(dir, "data/shop.db"), false},
	} {
		c := got.Connections[i]
		if c.Name != want.name || c.Provider != want.provider || c.Source.Reveal() != want.source || c.Write != want.write || strings.Contains(c.Source.String(), "canary") {
			t.Errorf("%s: %+v", want.name, c)
		}
	}
	if diff := cmp.Diff(strings.TrimSpace(`
crewhost.yaml:4:10: tools.database.connections.a has neither url nor file, or both (url: ${NAME} of a server, or file: of SQLite) [missing]
crewhost.yaml:5:10: tools.database.connections.b has no provider, and its url tells of none (provider: sqlite, postgresql or mysql) [missing]
crewhost.yaml:6:33: tools.database.connections.c is a file, and its provider is not sqlite (url: ${NAME} of a server) [bad-value]
crewhost.yaml:7:21: tools.database.connections.d.provider: "oracle" is not known (known: mysql, postgresql, sqlite) [bad-value]
crewhost.yaml:8:13: tools.database.hosts: "a/b" is no host (HOST or HOST:PORT) [bad-value]
`), faults(t, `tools:
  database:
    connections:
      a: {write: true}
      b: {url: "Server=h"}
      c: {file: x.db, provider: mysql}
      d: {provider: oracle, url: "x://y"}
    hosts: ["a/b"]
`)); diff != "" {
		t.Error(diff)
	}
}
