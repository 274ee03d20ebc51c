package database

import (
	"context"
	"strings"
	"sync"
	"time"
	"unsafe"

	"modernc.org/libc"
	_ "modernc.org/sqlite" // which patches the library, where that is needed
	sqlite "modernc.org/sqlite/lib"
)

// What is here is SQLite's own interface, as far as it takes to ask one statement. The
// driver of database/sql is not used, since it stops a statement until its first row
// alone, copies a value of any size, and turns texts into times. All functions of a
// library are called by one goroutine at a time, except for the interruption.

// library is an open connection to a database of SQLite.
type library struct {
	tls *libc.TLS
	db  uintptr
}

// sqliteError is an error of SQLite.
type sqliteError struct {
	code int32
	text string
	at   int // offset in the statement; -1: unknown
}

func (e *sqliteError) Error() string { return e.text }

// openLibrary opens the database with a name that is a URI. It takes no statement until
// it has been given rights.
func openLibrary(uri, vfs string) (*library, error) {
	l := &library{tls: libc.NewTLS()}
	name, free := l.text(uri)
	defer free()
	module, freeModule := uintptr(0), func() {}
	if vfs != "" {
		module, freeModule = l.text(vfs)
	}
	defer freeModule()
	out := libc.Xcalloc(l.tls, 1, 16)
	defer libc.Xfree(l.tls, out)
	const flags = sqlite.SQLITE_OPEN_READWRITE | sqlite.SQLITE_OPEN_URI | sqlite.SQLITE_OPEN_FULLMUTEX
	rc := sqlite.Xsqlite3_open_v2(l.tls, name, out, flags, module)
	l.db = libc.AtomicLoadNUintptr(out, 0)
	if rc != sqlite.SQLITE_OK {
		err := l.fault(rc)
		l.close()
		return nil, err
	}
	sqlite.Xsqlite3_extended_result_codes(l.tls, l.db, 1)
	l.configure(sqlite.SQLITE_DBCONFIG_DEFENSIVE, true)       // shadow tables and the schema are not written
	l.configure(sqlite.SQLITE_DBCONFIG_TRUSTED_SCHEMA, false) // views of the file call nothing with an effect
	for limit, most := range map[int32]int32{
		sqlite.SQLITE_LIMIT_LENGTH:              maxReceive,
		sqlite.SQLITE_LIMIT_SQL_LENGTH:          1_000_000,
		sqlite.SQLITE_LIMIT_ATTACHED:            0,
		sqlite.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 1_000,
		sqlite.SQLITE_LIMIT_WORKER_THREADS:      0,
	} {
		sqlite.Xsqlite3_limit(l.tls, l.db, limit, most)
	}
	return l, nil
}

func (l *library) close() {
	sqlite.Xsqlite3_close_v2(l.tls, l.db)
	l.tls.Close()
}

func (l *library) configure(what int32, on bool) {
	bp := libc.Xcalloc(l.tls, 2, 8)
	defer libc.Xfree(l.tls, bp)
	value := int32(0)
	if on {
		value = 1
	}
	sqlite.Xsqlite3_db_config(l.tls, l.db, what, libc.VaList(bp, value, uintptr(0)))
}

// authorize has every statement judged, as it is prepared.
func (l *library) authorize(judge func(tls *libc.TLS, arg uintptr, action int32, a, b, db, within uintptr) int32) {
	f := struct {
		f func(*libc.TLS, uintptr, int32, uintptr, uintptr, uintptr, uintptr) int32
	}{judge}
	sqlite.Xsqlite3_set_authorizer(l.tls, l.db, *(*uintptr)(unsafe.Pointer(&f)), 0)
}

// text is s for the library, until free is called.
func (l *library) text(s string) (p uintptr, free func()) {
	p, err := libc.CString(strings.ReplaceAll(s, "\x00", ""))
	if err != nil {
		return 0, func() {}
	}
	return p, func() { libc.Xfree(l.tls, p) }
}

func (l *library) fault(rc int32) error {
	e := &sqliteError{code: rc, text: libc.GoString(sqlite.Xsqlite3_errstr(l.tls, rc)), at: -1}
	if l.db != 0 && sqlite.Xsqlite3_extended_errcode(l.tls, l.db)&0xff == rc&0xff {
		e.text = libc.GoString(sqlite.Xsqlite3_errmsg(l.tls, l.db))
		e.at = int(sqlite.Xsqlite3_error_offset(l.tls, l.db))
	}
	return e
}

// prepared is a statement that is ready to be stepped through.
type prepared struct {
	*library
	stmt uintptr
}

func (l *library) prepare(text string, args []arg) (*prepared, error) {
	p, free := l.text(text)
	defer free()
	out := libc.Xcalloc(l.tls, 1, 16)
	defer libc.Xfree(l.tls, out)
	rc := sqlite.Xsqlite3_prepare_v2(l.tls, l.db, p, -1, out, 0)
	if rc != sqlite.SQLITE_OK {
		return nil, l.fault(rc)
	}
	s := &prepared{l, libc.AtomicLoadNUintptr(out, 0)}
	if s.stmt == 0 {
		return nil, refusal("the query holds no statement")
	}
	for i, a := range args {
		if rc := s.bind(int32(i+1), a); rc != sqlite.SQLITE_OK {
			err := l.fault(rc)
			s.finalize()
			return nil, err
		}
	}
	return s, nil
}

func (s *prepared) bind(i int32, a arg) int32 {
	switch v := a.(type) {
	case bool:
		n := int64(0)
		if v {
			n = 1
		}
		return sqlite.Xsqlite3_bind_int64(s.tls, s.stmt, i, n)
	case int64:
		return sqlite.Xsqlite3_bind_int64(s.tls, s.stmt, i, v)
	case float64:
		return sqlite.Xsqlite3_bind_double(s.tls, s.stmt, i, v)
	case string:
		p, err := libc.CString(v)
		if err != nil {
			return sqlite.SQLITE_NOMEM
		}
		defer libc.Xfree(s.tls, p)
		return sqlite.Xsqlite3_bind_text(s.tls, s.stmt, i, p, int32(len(v)), ^uintptr(0)) // SQLite makes a copy
	}
	return sqlite.Xsqlite3_bind_null(s.tls, s.stmt, i)
}

// step goes to the next row; there is none where more is false.
func (s *prepared) step() (more bool, err error) {
	switch rc := sqlite.Xsqlite3_step(s.tls, s.stmt); rc {
	case sqlite.SQLITE_ROW:
		return true, nil
	case sqlite.SQLITE_DONE:
		return false, nil
	default:
		return false, s.fault(rc)
	}
}

func (s *prepared) finalize() { sqlite.Xsqlite3_finalize(s.tls, s.stmt) }

func (s *prepared) columns() []string {
	var names []string
	for i := range sqlite.Xsqlite3_column_count(s.tls, s.stmt) {
		names = append(names, libc.GoString(sqlite.Xsqlite3_column_name(s.tls, s.stmt, i)))
	}
	return names
}

// cell is a value of the row, of which only what is shown is copied.
func (s *prepared) cell(i int32) cell {
	switch sqlite.Xsqlite3_column_type(s.tls, s.stmt, i) {
	case sqlite.SQLITE_NULL:
		return cell{kind: nullCell}
	case sqlite.SQLITE_BLOB:
		p := sqlite.Xsqlite3_column_blob(s.tls, s.stmt, i)
		size := int(sqlite.Xsqlite3_column_bytes(s.tls, s.stmt, i))
		c := bytesOf(libc.GoBytes(p, min(size, 32)))
		c.size = size
		return c
	case sqlite.SQLITE_INTEGER, sqlite.SQLITE_FLOAT:
		return s.textCell(numberCell, i)
	}
	return s.textCell(textCell, i)
}

func (s *prepared) textCell(kind cellKind, i int32) cell {
	p := sqlite.Xsqlite3_column_text(s.tls, s.stmt, i)
	size := int(sqlite.Xsqlite3_column_bytes(s.tls, s.stmt, i))
	c := textOf(kind, string(libc.GoBytes(p, min(size, maxCell+1))))
	c.size = size
	return c
}

// interruptible stops what the connection does when ctx ends, until the function that it
// returns is called.
func (l *library) interruptible(ctx context.Context) (end func()) {
	done := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-done:
			return
		case <-ctx.Done():
		}
		// An interruption between two steps is forgotten, so it is repeated.
		again := time.NewTicker(time.Millisecond)
		defer again.Stop()
		tls := libc.NewTLS()
		defer tls.Close()
		for {
			sqlite.Xsqlite3_interrupt(tls, l.db)
			select {
			case <-done:
				return
			case <-again.C:
			}
		}
	})
	return func() {
		close(done)
		watch.Wait()
	}
}
