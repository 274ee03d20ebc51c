package database

import (
	"fmt"
	"slices"
	"strings"

	"crewhost/tools/native"
)

// statement is the one statement of a call, cut into tokens.
type statement struct {
	provider string
	text     string
	tokens   []token
}

// readStatement cuts text into tokens. A semicolon at its end is left out.
func readStatement(provider, text string) (statement, error) {
	tokens, err := tokenize(provider, text)
	if err != nil {
		return statement{}, err
	}
	for len(tokens) > 0 && tokens[len(tokens)-1].is(";") {
		text = text[:tokens[len(tokens)-1].at]
		tokens = tokens[:len(tokens)-1]
	}
	return statement{provider, text, tokens}, nil
}

// verb is the word that says what the statement does, in upper case: behind the WITH of
// a statement that has one, the word that its common tables are for.
func (s statement) verb() string {
	depth, with := 0, -1 // the depth of its WITH
	for _, t := range s.tokens {
		switch {
		case t.is("("):
			depth++
		case t.is(")"):
			depth--
		case with < 0 && t.word("WITH"):
			with = depth
		case with < 0:
			if t.kind != wordToken {
				return ""
			}
			return strings.ToUpper(t.text)
		case t.kind == wordToken && depth == with && slices.Contains([]string{"SELECT", "INSERT", "UPDATE", "DELETE", "MERGE", "REPLACE", "VALUES", "TABLE"}, strings.ToUpper(t.text)):
			return strings.ToUpper(t.text)
		}
	}
	return ""
}

// reads are the kinds of statements that ask, and writes those that change, by provider.
func reads(provider string) []string {
	common := []string{"SELECT", "VALUES", "EXPLAIN"}
	switch provider {
	case sqliteProvider:
		return append(common, "PRAGMA")
	case postgresProvider:
		return append(common, "TABLE", "SHOW")
	}
	return append(common, "TABLE", "SHOW", "DESCRIBE", "DESC")
}

func writes(provider string) []string {
	common := []string{"INSERT", "UPDATE", "DELETE", "CREATE", "ALTER", "DROP"}
	switch provider {
	case sqliteProvider:
		return append(common, "REPLACE")
	case postgresProvider:
		return append(common, "MERGE", "TRUNCATE", "COMMENT")
	}
	return append(common, "REPLACE", "TRUNCATE")
}

// isRead reports whether the statement is of a kind that asks.
func (s statement) isRead() bool { return slices.Contains(reads(s.provider), s.verb()) }

// refused says why the statement is not run on a connection; empty: it may be. The
// database refuses writing by itself; this is what it would not refuse.
func (s statement) refused(write bool) string {
	verb := s.verb()
	switch {
	case verb == "":
		return "the query holds no statement"
	case s.several() && !(write && s.provider == sqliteProvider && s.creates("TRIGGER")):
		return "the query holds several statements; make a call for each"
	case s.isRead():
	case !slices.Contains(writes(s.provider), verb):
		return fmt.Sprintf("%s statements are not run here; %s are", native.Shorten(verb), strings.Join(s.kinds(write), ", "))
	case !write:
		return verb + " statements change a database, and this one is read only here; ask with SELECT"
	case slices.Contains([]string{"CREATE", "ALTER", "DROP"}, verb) && !s.creates("TABLE", "INDEX", "VIEW", "SEQUENCE", "TYPE", "TRIGGER"):
		return verb + " is run here for tables, indexes, views, sequences, types and triggers alone"
	}
	return s.reachesOut(write)
}

func (s statement) kinds(write bool) []string {
	if write {
		return append(reads(s.provider), writes(s.provider)...)
	}
	return reads(s.provider)
}

// several reports whether something stands behind a semicolon.
func (s statement) several() bool {
	return slices.ContainsFunc(s.tokens, func(t token) bool { return t.is(";") })
}

// creates reports whether a CREATE, ALTER or DROP is about one of the kinds of objects.
func (s statement) creates(objects ...string) bool {
	between := []string{"OR", "REPLACE", "TEMP", "TEMPORARY", "UNIQUE", "FULLTEXT", "SPATIAL", "MATERIALIZED", "VIRTUAL", "UNLOGGED", "RECURSIVE"}
	for _, t := range s.tokens[min(1, len(s.tokens)):] {
		word := strings.ToUpper(t.text)
		if t.kind != wordToken || !slices.Contains(between, word) {
			return t.kind == wordToken && slices.Contains(objects, word)
		}
	}
	return false
}

// reachesOut says what in the statement reaches beyond the database: files and programs
// of the server, other servers, other people's sessions. A role should have no right to
// any of it, and mostly has none; names can be hidden from what is looked at here.
func (s statement) reachesOut(write bool) string {
	for i, t := range s.tokens {
		name := strings.ToLower(t.text)
		called := i+1 < len(s.tokens) && s.tokens[i+1].is("(")
		switch {
		case t.kind == wordToken && s.provider == mysqlProvider && (name == "outfile" || name == "dumpfile"):
			return "a query may not write files of the server"
		case t.kind == wordToken && s.provider == mysqlProvider && !write && name == "into":
			return "SELECT ... INTO is not run here; leave INTO out"
		case s.provider == postgresProvider && t.word("U") && i+2 < len(s.tokens) && s.tokens[i+1].is("&") && s.tokens[i+2].kind == quotedToken:
			return "names in the form U&\"...\" are not taken here; write the name itself"
		case t.kind != wordToken && t.kind != quotedToken:
		case !called && !s.attribute(i):
		case slices.Contains(outside(s.provider), name), slices.ContainsFunc(families(s.provider), func(f string) bool { return strings.HasPrefix(name, f) }):
			return fmt.Sprintf("%s() reaches beyond the database, or runs a text as SQL, and is not called here", native.Shorten(name))
		}
	}
	return ""
}

// outside are functions that reach beyond the database.
func outside(provider string) []string {
	switch provider {
	case postgresProvider:
		return []string{
			"lo_import", "lo_export", "pg_stat_file", "pg_current_logfile",
			"pg_terminate_backend", "pg_cancel_backend", "pg_reload_conf", "pg_rotate_logfile", "pg_promote",
			"pg_switch_wal", "pg_notify", "pg_hba_file_rules", "pg_show_all_file_settings",
			"ts_stat", "ts_rewrite", "xpath_table",
		}
	case mysqlProvider:
		return []string{"load_file", "sys_exec", "sys_eval", "sys_get", "sys_set"}
	}
	return []string{"load_extension", "readfile", "writefile", "edit", "fts3_tokenizer"}
}

// families are the beginnings of the names of such functions of PostgreSQL: of those of
// files, other servers and replication, which no rollback takes back, and of those that
// run a text as SQL, in which any name could stand.
func families(provider string) []string {
	if provider != postgresProvider {
		return nil
	}
	return []string{
		"dblink", "pg_read_", "pg_ls_", "pg_file_", "pg_log", "pg_create_", "pg_copy_", "pg_drop_replication", "pg_replication_", "pg_wal_replay",
		"pg_backup_", "pg_start_backup", "pg_stop_backup", "pg_stat_reset",
		"query_to_xml", "cursor_to_xml", "table_to_xml", "schema_to_xml", "database_to_xml", "crosstab", "connectby",
	}
}

// attribute reports whether the name at i is a function that PostgreSQL calls as if it
// were a part of a value: ('x').f, $1.f, a[1].f and (t).x.f.
func (s statement) attribute(i int) bool {
	if s.provider != postgresProvider {
		return false
	}
	for ; i >= 2 && s.tokens[i-1].is("."); i -= 2 {
		if of := s.tokens[i-2]; of.is(")") || of.is("]") || of.kind == markToken {
			return true
		}
	}
	return false
}

// changes reports whether the statement is, or has in it, one that changes rows.
func (s statement) changes() bool {
	return slices.ContainsFunc(s.tokens, func(t token) bool {
		return t.word("INSERT") || t.word("UPDATE") || t.word("DELETE") || t.word("MERGE") || t.word("REPLACE")
	})
}

// disagrees says how query_type and the statement differ; empty: they don't.
func (s statement) disagrees(queryType string) string {
	verb := s.verb()
	switch queryType {
	case "", "execute", "non_query":
		return ""
	case "select", "query", "scalar":
		if s.isRead() {
			return ""
		}
	default:
		if strings.EqualFold(queryType, verb) {
			return ""
		}
	}
	return fmt.Sprintf("query_type is %q, and the query is a %s statement; leave query_type out, or change one of them", queryType, native.Shorten(verb))
}
