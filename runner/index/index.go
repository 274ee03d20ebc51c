// Package index keeps texts in one SQLite file and finds them again, by their
// words (FTS5, BM25) and, where vectors are given, by their meaning.
//
// A [File] belongs to one package, which has tables of its own in it. One of them
// is called entry and has an integer id for each text; the index knows the texts
// by these ids and keeps nothing of them but their words and vectors:
//
//	f, err := index.Open(ctx, index.Config{Path: path, Application: 0x6372656d, Schema: schema})
//	err = f.Update(ctx, func(tx *index.Tx) error {
//		id, err := tx.Insert("INSERT INTO entry (text) VALUES (?)", text)
//		…
//		return tx.Index(id, text)
//	})
//	hits, err := f.Search(ctx, index.Query{Text: "which tides are highest?", Top: 5})
//
// Several processes may use one file at a time: readers never wait, and writers
// wait for one another a while. A file that is damaged, of another program or of a
// later version is refused by an error that names it, and left as it is.
package index

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"modernc.org/sqlite" // which also registers the driver
)

// Config is a file to open.
type Config struct {
	// Path is the file; empty: in memory, and gone when it is closed. Its folder
	// is made where it is missing. Only its owner may read it.
	Path string
	// Application says whose file it is, and Schema, in SQL, the tables of the
	// package that it belongs to. Version is that of the schema, from 1.
	Application int32
	Version     int
	Schema      string
}

// File is an open file. It is safe for concurrent use. Its errors name it.
type File struct {
	db   *sql.DB
	name string
}

// The reasons for which a file is refused, to be found by errors.Is.
var (
	ErrDamaged = errors.New("the file is damaged; it was left as it is: move it away to begin anew")
	ErrForeign = errors.New("the file is none of this program's; it was left as it is")
	ErrLater   = errors.New("the file was written by a later version of this program; it was left as it is")
)

// patience is how long a writer waits for another, also one of another process.
const patience = 15 * time.Second

// words and vectors are the tables of the index itself. The words are cut apart
// here, by [Terms], so that the tokenizer has but spaces to look for.
const ownSchema = `
CREATE VIRTUAL TABLE words USING fts5(text, content='', contentless_delete=1, tokenize='porter ascii');
CREATE TABLE vector (id INTEGER PRIMARY KEY, model TEXT NOT NULL, vec BLOB NOT NULL);
`

// Open opens a file, and makes it where there is none.
func Open(ctx context.Context, cfg Config) (*File, error) {
	f := &File{name: cfg.Path}
	if cfg.Path == "" {
		f.name = "the index in memory"
	} else if err := prepare(cfg.Path); err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", source(cfg.Path))
	if err != nil {
		return nil, f.explain(err)
	}
	f.db = db
	if cfg.Path == "" {
		db.SetMaxOpenConns(1) // each connection would have a memory of its own
	}
	if err := f.begin(ctx, cfg); err != nil {
		return nil, errors.Join(f.explain(err), db.Close())
	}
	return f, nil
}

// prepare makes the folder and the file, which SQLite itself would leave open to
// everybody.
//
// It never opens a file that SQLite may have open: closing one gives up the locks
// that this process has on it, whoever took them.
func prepare(path string) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	info, err := os.Stat(path)
	switch {
	case err == nil && !info.Mode().IsRegular():
		return fmt.Errorf("%s: it is no regular file", path)
	case err == nil || !errors.Is(err, fs.ErrNotExist):
		return err
	}
	fresh, err := os.CreateTemp(dir, ".crewhost-*.tmp") // which its owner alone may read
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(fresh.Name()) }()
	if err := fresh.Close(); err != nil {
		return err
	}
	// A name is given to it as long as nobody else has.
	if err := os.Link(fresh.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return os.Rename(fresh.Name(), path) // no links here
	}
	return nil
}

// source is the name of a file, with what holds for each connection to it.
func source(path string) string {
	if path == "" {
		return ":memory:"
	}
	path = filepath.ToSlash(path)
	if runtime.GOOS == "windows" && !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	u := url.URL{Scheme: "file", OmitHost: true, Path: path}
	u.RawQuery = url.Values{
		"_pragma": {fmt.Sprintf("busy_timeout(%d)", patience.Milliseconds()), "synchronous(NORMAL)", "trusted_schema(0)"},
		"_txlock": {"immediate"}, // a reader that turns writer would not be let wait
	}.Encode()
	return u.String()
}

// begin judges what is there, and makes the tables where nothing is.
func (f *File) begin(ctx context.Context, cfg Config) error {
	fresh, err := f.judge(ctx, f.db, cfg)
	if err != nil {
		return err
	}
	if !fresh {
		return f.check(ctx)
	}
	if err := f.walMode(ctx); err != nil {
		return err
	}
	tx, err := f.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // which a commit makes nothing of
	// Another process may have been quicker.
	if fresh, err = f.judge(ctx, tx, cfg); err != nil || !fresh {
		return err
	}
	for _, statement := range []string{
		ownSchema, cfg.Schema,
		fmt.Sprintf("PRAGMA application_id = %d", cfg.Application), fmt.Sprintf("PRAGMA user_version = %d", cfg.Version),
	} {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// walMode has readers not wait for writers. SQLite gives up at once where another
// process is doing the same, so it is asked again.
func (f *File) walMode(ctx context.Context) error {
	deadline := time.Now().Add(patience)
	for {
		_, err := f.db.ExecContext(ctx, "PRAGMA journal_mode = WAL")
		if !busy(err) || time.Now().After(deadline) {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// querier is a database or a transaction.
type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// judge says whether a file is empty, and refuses one that is not ours.
func (f *File) judge(ctx context.Context, q querier, cfg Config) (fresh bool, err error) {
	var application, version, tables int
	for _, ask := range []struct {
		of   string
		into *int
	}{
		{"PRAGMA application_id", &application},
		{"PRAGMA user_version", &version},
		{"SELECT count(*) FROM sqlite_schema", &tables},
	} {
		if err := q.QueryRowContext(ctx, ask.of).Scan(ask.into); err != nil {
			return false, err
		}
	}
	switch {
	case tables == 0 && application == 0:
		return true, nil
	case application != int(cfg.Application):
		return false, ErrForeign
	case version > cfg.Version:
		return false, ErrLater
	case version < cfg.Version:
		return false, fmt.Errorf("the file has version %d of its tables, which this program does not know", version)
	}
	return false, nil
}

// check looks through the pages of the file.
func (f *File) check(ctx context.Context) error {
	var verdict string
	if err := f.db.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&verdict); err != nil {
		return err
	}
	if verdict != "ok" {
		return fmt.Errorf("%w (%s)", ErrDamaged, strings.Join(strings.Fields(verdict), " "))
	}
	return nil
}

// The result codes of SQLite that mean something here.
const (
	codeBusy    = 5
	codeCorrupt = 11
	codeNotADB  = 26
)

func code(err error) int {
	var e *sqlite.Error
	if errors.As(err, &e) {
		return e.Code() & 0xff
	}
	return 0
}

func busy(err error) bool { return code(err) == codeBusy }

// explain has an error name the file, and say what a code of SQLite comes to.
func (f *File) explain(err error) error {
	switch {
	case err == nil:
		return nil
	case code(err) == codeCorrupt:
		err = fmt.Errorf("%w (%w)", ErrDamaged, err)
	case code(err) == codeNotADB:
		err = fmt.Errorf("%w (%w)", ErrForeign, err)
	case busy(err):
		err = fmt.Errorf("another process has been writing to the file for more than %v: %w", patience, err)
	}
	return fmt.Errorf("%s: %w", f.name, err)
}

// Close closes the file.
func (f *File) Close() error { return f.explain(f.db.Close()) }

// Probe makes sure that the file can be written to, and writes nothing.
func (f *File) Probe(ctx context.Context) error {
	tx, err := f.db.BeginTx(ctx, nil)
	if err != nil {
		return f.explain(err)
	}
	defer func() { _ = tx.Rollback() }()
	// A transaction alone takes the lock; it does not find a disk read-only.
	if _, err := tx.ExecContext(ctx, "INSERT OR REPLACE INTO vector (id, model, vec) VALUES (-1, '', x'')"); err != nil {
		return f.explain(err)
	}
	return nil
}

// Compact gives back the room of what was removed, of which nothing is left in the
// file then.
func (f *File) Compact(ctx context.Context) error {
	for _, statement := range []string{"VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)"} {
		if _, err := f.db.ExecContext(ctx, statement); err != nil {
			return f.explain(err)
		}
	}
	return nil
}

// Rows calls each for every row of a query; it scans the row it is at.
func (f *File) Rows(ctx context.Context, each func(scan func(...any) error) error, query string, args ...any) error {
	rows, err := f.db.QueryContext(ctx, query, args...)
	if err != nil {
		return f.explain(err)
	}
	defer func() { _ = rows.Close() }() // Err tells what went wrong
	for rows.Next() {
		if err := each(rows.Scan); err != nil {
			return f.explain(err)
		}
	}
	return f.explain(rows.Err())
}

// Update has do change the file: all of it, or, where it returns an error, nothing.
func (f *File) Update(ctx context.Context, do func(*Tx) error) error {
	tx, err := f.db.BeginTx(ctx, nil)
	if err != nil {
		return f.explain(err)
	}
	defer func() { _ = tx.Rollback() }()
	if err := do(&Tx{ctx, tx}); err != nil {
		return f.explain(err)
	}
	return f.explain(tx.Commit())
}

// Tx is a change of a file. It is used within [File.Update] alone.
type Tx struct {
	ctx context.Context //nolint:containedctx // a change lives for one Update
	tx  *sql.Tx
}

// Insert adds a row and returns its id.
func (t *Tx) Insert(query string, args ...any) (int64, error) {
	res, err := t.tx.ExecContext(t.ctx, query, args...)
	if err != nil {
		return 0, err
	}
	return res.LastInsertId()
}

// Exec carries out a statement.
func (t *Tx) Exec(query string, args ...any) error {
	_, err := t.tx.ExecContext(t.ctx, query, args...)
	return err
}

// Row scans the one row of a query; it reports false where there is none.
func (t *Tx) Row(query string, args []any, into ...any) (bool, error) {
	err := t.tx.QueryRowContext(t.ctx, query, args...).Scan(into...)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// Index makes the text of an id to be found; it had none before.
func (t *Tx) Index(id int64, text string) error {
	return t.Exec("INSERT INTO words (rowid, text) VALUES (?, ?)", id, strings.Join(Terms(text), " "))
}

// Embed gives an id a vector, of the model that made it; one that has no
// direction is left out.
func (t *Tx) Embed(id int64, model string, vector []float32) error {
	vec := encode(vector)
	if vec == nil {
		return nil
	}
	return t.Exec("INSERT OR REPLACE INTO vector (id, model, vec) VALUES (?, ?, ?)", id, model, vec)
}

// Drop removes entries that a condition on them picks, and all that is known of
// them.
func (t *Tx) Drop(where string, args ...any) error {
	picked := "(SELECT id FROM entry WHERE " + where + ")"
	for _, statement := range []string{
		"DELETE FROM words WHERE rowid IN " + picked,
		"DELETE FROM vector WHERE id IN " + picked,
		"DELETE FROM entry WHERE " + where,
	} {
		if err := t.Exec(statement, args...); err != nil {
			return err
		}
	}
	return nil
}
