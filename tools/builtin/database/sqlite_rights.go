package database

import (
	"slices"
	"strings"

	"modernc.org/libc"
	sqlite "modernc.org/sqlite/lib"
)

// judgeRead is the authorizer of SQLite for statements that ask.
func judgeRead(_ *libc.TLS, _ uintptr, action int32, a, b, _, _ uintptr) int32 {
	switch action {
	case sqlite.SQLITE_SELECT, sqlite.SQLITE_READ, sqlite.SQLITE_RECURSIVE:
		return sqlite.SQLITE_OK
	case sqlite.SQLITE_FUNCTION:
		if slices.Contains(outside(sqliteProvider), strings.ToLower(libc.GoString(b))) {
			return sqlite.SQLITE_DENY
		}
		return sqlite.SQLITE_OK
	case sqlite.SQLITE_PRAGMA:
		if mayAsk(strings.ToLower(libc.GoString(a)), b != 0) {
			return sqlite.SQLITE_OK
		}
	case sqlite.SQLITE_INSERT, sqlite.SQLITE_UPDATE, sqlite.SQLITE_DELETE:
		// An R-tree prepares how it would write when it is opened to be read. It has no
		// file to write to here.
		if name := libc.GoString(a); strings.HasSuffix(name, "_node") || strings.HasSuffix(name, "_rowid") || strings.HasSuffix(name, "_parent") {
			return sqlite.SQLITE_OK
		}
	}
	return sqlite.SQLITE_DENY
}

// judgeWrite is the authorizer for statements that may change the database, and nothing
// but it.
func judgeWrite(tls *libc.TLS, arg uintptr, action int32, a, b, db, within uintptr) int32 {
	switch action {
	case sqlite.SQLITE_INSERT, sqlite.SQLITE_UPDATE, sqlite.SQLITE_DELETE,
		sqlite.SQLITE_CREATE_TABLE, sqlite.SQLITE_CREATE_INDEX, sqlite.SQLITE_CREATE_VIEW, sqlite.SQLITE_CREATE_TRIGGER, sqlite.SQLITE_CREATE_VTABLE,
		sqlite.SQLITE_CREATE_TEMP_TABLE, sqlite.SQLITE_CREATE_TEMP_INDEX, sqlite.SQLITE_CREATE_TEMP_VIEW, sqlite.SQLITE_CREATE_TEMP_TRIGGER,
		sqlite.SQLITE_DROP_TABLE, sqlite.SQLITE_DROP_INDEX, sqlite.SQLITE_DROP_VIEW, sqlite.SQLITE_DROP_TRIGGER, sqlite.SQLITE_DROP_VTABLE,
		sqlite.SQLITE_ALTER_TABLE, sqlite.SQLITE_REINDEX, sqlite.SQLITE_SAVEPOINT:
		return sqlite.SQLITE_OK
	}
	return judgeRead(tls, arg, action, a, b, db, within)
}

// judgeOwn lets the host begin, end and prepare its own transaction.
func judgeOwn(*libc.TLS, uintptr, int32, uintptr, uintptr, uintptr, uintptr) int32 {
	return sqlite.SQLITE_OK
}

// mayAsk reports whether a PRAGMA tells something and sets nothing. None of them tells
// where a file is.
func mayAsk(name string, valued bool) bool {
	switch name {
	case "table_info", "table_xinfo", "index_info", "index_xinfo", "index_list", "foreign_key_list", "foreign_key_check",
		"table_list", "integrity_check", "quick_check":
		return true
	case "user_version", "schema_version", "data_version", "application_id", "encoding", "page_count", "page_size", "freelist_count",
		"collation_list", "function_list", "module_list", "pragma_list", "compile_options", "journal_mode", "auto_vacuum", "foreign_keys":
		return !valued
	}
	return false
}
