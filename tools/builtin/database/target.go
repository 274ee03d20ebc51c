package database

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"

	"crewhost/tools/native"
)

// target is the database that a call is about.
type target struct {
	name     string // as messages call it
	provider string
	write    bool
	open     func(context.Context) (session, error)
}

// target finds the database that the arguments name. An error is for the model.
func (c Config) target(connection, connString, provider string) (target, error) {
	named := providerNamed(provider)
	switch {
	case provider != "" && named == "":
		return target{}, refusal(fmt.Sprintf("provider_name %q is not known; there are sqlite, postgresql and mysql (mariadb)", native.Shorten(provider)))
	case connection != "" && connString != "":
		return target{}, refusal("connection and connection_string are both given; give one")
	}
	if n, err := c.pick(connection, connString); err != nil || n != nil {
		if err == nil && named != "" && named != n.Provider {
			err = refusal(fmt.Sprintf("%s is a database of %s; leave provider_name out", n.Name, n.Provider))
		}
		if err != nil {
			return target{}, err
		}
		return target{n.Name, n.Provider, n.Write, func(context.Context) (session, error) { return n.session() }}, nil
	}
	srv, file, err := readConnString(named, connString)
	switch {
	case err != nil:
		return target{}, err
	case file != "":
		return c.file(file)
	case srv.provider == "":
		return target{}, refusal("the connection string names no database" + c.others())
	case c.Dial == nil:
		return target{}, refusal("connection strings of servers are not taken here; tools.database.hosts in the settings may name hosts" + c.others())
	}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		conn, err := c.Dial(ctx, "tcp", srv.address())
		if err != nil {
			return nil, &dialError{err}
		}
		return conn, nil
	}
	return target{"the database", srv.provider, false, func(context.Context) (session, error) {
		if srv.provider == mysqlProvider {
			return &mysqlSession{config: srv.mysql(dial)}, nil
		}
		cfg, err := srv.postgres(dial)
		return &postgresSession{config: cfg}, err
	}}, nil
}

// file is a file of SQLite in a mount.
func (c Config) file(path string) (target, error) {
	if c.FS == nil || len(c.FS.Mounts()) == 0 {
		return target{}, refusal("the connection string names no connection, and there is no mount that a file of SQLite could be in" + c.others())
	}
	if _, err := c.FS.Stat(path); err != nil && !strings.ContainsAny(path, "/.") {
		return target{}, refusal(fmt.Sprintf("there is no database %q%s%s", native.Shorten(path), native.DidYouMean(path, c.names()), c.others()))
	}
	return target{path, sqliteProvider, false, func(context.Context) (session, error) {
		s, err := openMounted(c.FS, path)
		if err != nil {
			return nil, err
		}
		return s, nil
	}}, nil
}

// pick is the connection of the settings that is meant; nil: none is, but an agent's own
// string.
func (c Config) pick(connection, connString string) (*Connection, error) {
	name := connection
	if name == "" {
		name = strings.TrimSpace(connString)
	}
	for i := range c.Connections {
		if c.Connections[i].Name == name || name == "" && len(c.Connections) == 1 {
			return &c.Connections[i], nil
		}
	}
	switch {
	case connection != "":
		return nil, refusal(fmt.Sprintf("there is no connection %q%s%s", native.Shorten(connection), native.DidYouMean(connection, c.names()), c.others()))
	case name == "" && len(c.Connections) == 0:
		return nil, refusal("no database is named: give a connection_string, as a file of SQLite in a mount")
	case name == "":
		return nil, refusal("no database is named: give connection" + c.others())
	}
	return nil, nil
}

func (c Config) names() []string {
	var names []string
	for _, n := range c.Connections {
		names = append(names, n.Name)
	}
	return names
}

// others ends a message: which connections there are.
func (c Config) others() string {
	if len(c.Connections) == 0 {
		return ""
	}
	return "; the connections are " + strings.Join(c.names(), ", ")
}

// effect is what a call with these arguments does: one that may write does it once.
func (c Config) effect(arguments json.RawMessage) native.Effect {
	var args struct {
		Connection string `json:"connection"`
		ConnString string `json:"connection_string"`
	}
	if json.Unmarshal(arguments, &args) != nil {
		return native.Once
	}
	if n, err := c.pick(args.Connection, args.ConnString); err == nil && n != nil && n.Write {
		return native.Once
	}
	return native.ReadOnly
}

// mayWrite reports whether any call may write.
func (c Config) mayWrite() bool {
	return slices.ContainsFunc(c.Connections, func(n Connection) bool { return n.Write })
}

// session opens the connection of the settings.
func (n Connection) session() (session, error) {
	source, err := n.Source()
	if err != nil || source == "" {
		return nil, refusal("its connection string can't be had; the settings must be looked at")
	}
	switch n.Provider {
	case sqliteProvider:
		s, err := openSQLite(source, n.Write)
		if err != nil {
			return nil, err
		}
		return s, nil
	case postgresProvider:
		cfg, err := postgresSource(source)
		if err != nil {
			return nil, refusal("its connection string is not one of PostgreSQL; the settings must be changed")
		}
		return &postgresSession{config: cfg}, nil
	case mysqlProvider:
		cfg, err := mysqlSource(source)
		if err != nil {
			return nil, refusal("its connection string is not one of MySQL; the settings must be changed")
		}
		return &mysqlSession{config: cfg}, nil
	}
	return nil, refusal("its provider is not known")
}

// dialError is why an agent's host was not reached: the settings, or the network.
type dialError struct{ err error }

func (e *dialError) Error() string { return e.err.Error() }
func (e *dialError) Unwrap() error { return e.err }

// errTooMuch ends a conversation in which a server sends too much.
var errTooMuch = errors.New("the server sent too much")

// receiver bounds what comes from a server in one call: values without end, and rows that
// nobody asked to see.
type receiver struct {
	net.Conn
	left int
	over *atomic.Bool // set where more would have come: drivers swallow the error
}

func (r *receiver) Read(b []byte) (int, error) {
	if r.left <= 0 {
		r.over.Store(true)
		return 0, errTooMuch
	}
	n, err := r.Conn.Read(b[:min(len(b), r.left)])
	r.left -= n
	return n, err
}

// dialer opens a connection to a server.
type dialer func(ctx context.Context, network, address string) (net.Conn, error)

// bounded is a dialer whose connections are receivers.
func (d dialer) bounded(over *atomic.Bool) dialer {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := d(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &receiver{conn, maxReceive, over}, nil
	}
}
