// Package database has the tools that ask databases: relational_database_query and
// database_schema, for SQLite, PostgreSQL and MySQL.
package database

import (
	"context"
	"net"
	"time"

	"crewhost/tools/mount"
	"crewhost/tools/native"
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
func Tools(Config) []native.Tool { return nil }
