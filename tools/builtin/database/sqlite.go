package database

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"strings"

	sqlite "modernc.org/sqlite/lib"
)

// sqliteSession is a conversation with a database of SQLite.
type sqliteSession struct {
	lib   *library
	files io.Closer // what the database is read through; nil: a path of the host
}

// openSQLite opens the file of a connection of the settings.
func openSQLite(source string, write bool) (*sqliteSession, error) {
	path, err := sqlitePath(source)
	if err != nil || !filepath.IsAbs(path) {
		return nil, refusal("its file is no absolute path; the settings must be changed")
	}
	mode := "ro"
	if write {
		mode = "rw"
	}
	l, err := openLibrary((&url.URL{Scheme: "file", OmitHost: true, Path: filepath.ToSlash(path), RawQuery: "mode=" + mode}).String(), "")
	if err != nil {
		return nil, err
	}
	own := []string{"PRAGMA busy_timeout = 5000", "PRAGMA foreign_keys = ON"}
	if !write {
		own = append(own, "PRAGMA query_only = ON")
	}
	return newSQLite(l, nil, own...)
}

// newSQLite makes a session, prepared by statements of the host.
func newSQLite(l *library, files io.Closer, own ...string) (*sqliteSession, error) {
	s := &sqliteSession{l, files}
	for _, text := range own {
		if err := s.own(text); err != nil {
			s.close()
			return nil, err
		}
	}
	return s, nil
}

// own runs a statement of the host.
func (s *sqliteSession) own(text string) error {
	s.lib.authorize(judgeOwn)
	p, err := s.lib.prepare(text, nil)
	if err != nil {
		return err
	}
	defer p.finalize()
	for more := true; more; {
		if more, err = p.step(); err != nil {
			return err
		}
	}
	return nil
}

func (s *sqliteSession) run(ctx context.Context, q query, into *rows) error {
	end := s.lib.interruptible(ctx)
	defer end()
	begin, judge := "BEGIN", judgeRead
	if q.write {
		begin, judge = "BEGIN IMMEDIATE", judgeWrite
	}
	if err := s.own(begin); err != nil {
		return err
	}
	s.lib.authorize(judge)
	err := s.step(ctx, q, into)
	if err == nil {
		err = ctx.Err() // or it would look as if what is rolled back were kept
	}
	if err == nil && q.write && !into.more {
		err = s.own("COMMIT")
	}
	if sqlite.Xsqlite3_get_autocommit(s.lib.tls, s.lib.db) == 0 {
		_ = s.own("ROLLBACK") // closing it would do so, too
	}
	return err
}

// step goes through the rows of the statement. One that writes is carried out to its end,
// however many rows it gives back.
func (s *sqliteSession) step(ctx context.Context, q query, into *rows) error {
	p, err := s.lib.prepare(q.text, q.args)
	if err != nil {
		return err
	}
	defer p.finalize()
	before := sqlite.Xsqlite3_total_changes64(s.lib.tls, s.lib.db)
	into.columns = p.columns()
	for ctx.Err() == nil {
		more, err := p.step()
		switch {
		case err != nil:
			return err
		case !more:
			if q.counts {
				into.affected = max(0, sqlite.Xsqlite3_total_changes64(s.lib.tls, s.lib.db)-before)
			}
			return nil
		case !q.whole && into.full():
			return nil
		}
		var row []cell
		for i := range into.columns {
			row = append(row, p.cell(int32(i)))
		}
		into.add(row)
	}
	return ctx.Err()
}

func (s *sqliteSession) close() {
	s.lib.close()
	if s.files != nil {
		_ = s.files.Close()
	}
}

func (s *sqliteSession) explain(err error, q query) string {
	e, ok := err.(*sqliteError) //nolint:errorlint // made here, never wrapped
	if !ok {
		return err.Error()
	}
	text := e.text
	switch e.code & 0xff {
	case sqlite.SQLITE_NOTADB:
		text = "the file is no database of SQLite, or it is encrypted"
	case sqlite.SQLITE_CORRUPT:
		text = "the file is damaged, or being written to: " + text
	case sqlite.SQLITE_AUTH:
		text = "the query does what is not allowed here: " + text
	case sqlite.SQLITE_READONLY:
		text = "the database is read only here"
	case sqlite.SQLITE_BUSY, sqlite.SQLITE_LOCKED:
		text = "another program holds the database; try again"
	case sqlite.SQLITE_TOOBIG:
		text = fmt.Sprintf("a value or the query is too long; a value may have %d MiB", maxReceive>>20)
	case sqlite.SQLITE_CANTOPEN, sqlite.SQLITE_IOERR, sqlite.SQLITE_NOMEM:
		text = "the file can't be read"
		if s != nil && s.files != nil {
			text = "there is a journal of an unfinished change beside the file, or the query sorts or groups more than memory holds; ask for less, or with an index"
		}
	}
	if e.at >= 0 {
		text += " (at " + place(q.text, e.at) + ")"
	}
	return text
}

// sqlitePath is the path that a connection string of SQLite names.
func sqlitePath(source string) (string, error) {
	if strings.Contains(source, "=") && !strings.HasPrefix(source, "file:") && !strings.HasPrefix(source, "sqlite:") && !strings.HasPrefix(source, "/") {
		pairs, err := adoPairs(source)
		if err != nil {
			return "", err
		}
		for _, p := range pairs {
			if p.key == "datasource" || p.key == "filename" {
				source = p.value
			}
		}
	}
	rest, isURL := strings.CutPrefix(source, "sqlite:")
	if !isURL {
		rest, isURL = strings.CutPrefix(source, "file:")
	}
	if !isURL {
		return source, nil
	}
	rest, _, _ = strings.Cut(rest, "?")
	rest, _, _ = strings.Cut(rest, "#")
	if after, ok := strings.CutPrefix(rest, "//"); ok {
		// file:///data/shop.db, and file://localhost/data/shop.db
		rest = strings.TrimPrefix(after, "localhost")
		for strings.HasPrefix(rest, "//") {
			rest = rest[1:]
		}
	}
	path, err := url.PathUnescape(rest)
	if err != nil {
		return "", refusal("the connection string has a wrong escape")
	}
	return path, nil
}
