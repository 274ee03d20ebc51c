// Package database has the tools that ask databases: relational_database_query and
// database_schema, for SQLite, PostgreSQL and MySQL (MariaDB, too).
//
// A call is a conversation of its own: it opens the database, runs one statement in one
// transaction, and closes it. So nothing that one call sets, locks or leaves in a
// temporary table reaches another, and nothing stays open.
//
// What may be done is said three times. The statement is read first ([statement.refused]):
// one statement, of a kind that is known, that calls nothing which reaches beyond the
// database. The database itself is told next: a transaction of PostgreSQL and MySQL is
// READ ONLY, SQLite has an authorizer and a file that it can't write to. Last, what was
// done is rolled back, unless the connection says that statements may write.
//
// Files of SQLite that agents name are read through package mount, page by page, never by
// a path of the host (see mounted.go). Connection strings of agents reach the hosts of the
// settings alone, and neither files nor environment (see connstring.go).
package database

import (
	"context"
	"encoding/json"
	"net"
	"strings"
	"time"

	"crewhost/tools/mount"
	"crewhost/tools/native"
)

// The kinds of databases.
const (
	sqliteProvider   = "sqlite"
	postgresProvider = "postgresql"
	mysqlProvider    = "mysql"
)

// Config is what the tools work with.
type Config struct {
	// FS is where the files of SQLite are that agents name; nil holds no mount.
	FS *mount.FS
	// Connections are the databases that agents know by name, in the order of the
	// settings.
	Connections []Connection
	// Dial opens the connections to the hosts that a connection string of an agent may
	// name, and to no others; nil: to none.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Timeout bounds a call, and Rows what one returns.
	Timeout time.Duration
	Rows    int
}

// Connection is a database of the settings.
type Connection struct {
	Name     string
	Provider string // sqlite, postgresql or mysql
	Write    bool   // statements may change it
	// Source returns the connection string or the path of the file. No text of an error
	// of the tools holds a part of it.
	Source func() (string, error)
}

// Tools returns the tools.
func Tools(cfg Config) []native.Tool {
	if cfg.Timeout <= 0 {
		cfg.Timeout = 30 * time.Second
	}
	if cfg.Rows <= 0 {
		cfg.Rows = 200
	}
	return []native.Tool{queryTool(cfg), schemaTool(cfg)}
}

// session is a conversation with one database, for one call.
type session interface {
	// run carries a statement out, in a transaction of its own, and hands to rows what
	// comes back.
	run(ctx context.Context, q query, into *rows) error
	// catalog describes the tables, by name: of one schema, or of all that are not the
	// database's own where scope is empty.
	catalog(ctx context.Context, scope string, wanted func(name string) bool) (catalog, error)
	// explain is the text of an error of the database.
	explain(err error, q query) string
	close()
}

// unsureError is an error of the last step of a change: whether it is kept is not known.
type unsureError struct{ err error }

func (e *unsureError) Error() string { return e.err.Error() }
func (e *unsureError) Unwrap() error { return e.err }

// query is a statement that is ready to be run: its placeholders are those of the
// database, and its arguments in their order.
type query struct {
	text   string
	args   []arg
	write  bool // commit it
	whole  bool // carry it out to its end, however many rows it gives back
	counts bool // say how many rows it changed
}

// places are the properties that both schemas begin with: which database is meant.
func (c Config) places() string {
	connection := `"description": "Name of a database of the settings. `
	var names []string
	for _, n := range c.Connections {
		names = append(names, n.Name)
	}
	switch len(names) {
	case 0:
		connection += `There is none here.", "type": "string"`
	case 1:
		connection += `Default: the only one.", "type": "string"`
	default:
		connection += `Each is one database.", "type": "string"`
	}
	if len(names) > 0 {
		enum, err := json.Marshal(names)
		if err == nil {
			connection += `, "enum": ` + string(enum)
		}
	}
	return `
		"connection": {` + connection + `},
		"connection_string": {"type": "string", "description": "Instead of connection: a SQLite file in a mount (\"/data/shop.db\", \"Data Source=/data/shop.db\"), or a server that the settings allow, as a URL (\"postgresql://user:password@host/db\", \"mysql://...\") or as Server=...;Database=...;User Id=...;Password=.... A name of connection is taken, too. Such a database is read only."},
		"provider_name": {"type": "string", "description": "Kind of the database of connection_string: sqlite, postgresql or mysql (mariadb). Only needed where the string doesn't tell."},`
}

// about ends a description: which databases there are.
func (c Config) about() string {
	if len(c.Connections) == 0 {
		return " No database has a name here: give a connection_string."
	}
	var each []string
	for _, n := range c.Connections {
		rights := "read only"
		if n.Write {
			rights = "may be written to"
		}
		each = append(each, n.Name+" ("+n.Provider+", "+rights+")")
	}
	return " Databases by name: " + strings.Join(each, ", ") + "."
}

// open says whether calls may reach beyond this machine.
func (c Config) open() bool {
	for _, n := range c.Connections {
		if n.Provider != sqliteProvider {
			return true
		}
	}
	return c.Dial != nil
}
