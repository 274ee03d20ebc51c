package database

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"crewhost/tools"
	"crewhost/tools/native"
)

func queryTool(cfg Config) native.Tool {
	effect, effectOf := native.ReadOnly, (func(json.RawMessage) native.Effect)(nil)
	if cfg.mayWrite() {
		effect, effectOf = native.Once, cfg.effect
	}
	return native.Tool{
		Name: "relational_database_query", Title: "Query a database",
		Description: "Runs one SQL statement on a database of SQLite, PostgreSQL or MySQL, and returns its rows as a table. " +
			"A call is a transaction of its own. On a database that is read only, statements that change something fail; on others, a change is kept where the call succeeds. " +
			"Give values in parameters, with ?, $1 or :name in the query, and never write them into it. " +
			"Call database_schema first to see which tables and columns there are." + cfg.about(),
		Schema: fmt.Sprintf(`{"type": "object", "properties": {%s
		"query": {"type": "string", "minLength": 1, "maxLength": 100000, "description": "One SQL statement of the database's own dialect, as \"SELECT name, total FROM orders WHERE total > ? ORDER BY total DESC\"."},
		"query_type": {"type": "string", "enum": ["select", "insert", "update", "delete", "merge", "replace", "create", "alter", "drop", "truncate", "query", "scalar", "execute", "non_query"], "description": "What kind of statement it is. A call whose query is of another kind fails; leave it out if in doubt."},
		"parameters": {"type": ["array", "object"], "items": {}, "description": "Values of the placeholders: a list for ? and $1, as [100, \"DE\", null], or an object for :name and @name, as {\"country\": \"DE\"}. A list or an object in it is given as its JSON text."},
		"max_rows": {"type": "integer", "minimum": 1, "maximum": 100000, "default": %d, "description": "How many rows are returned. More than %d never are; use LIMIT and OFFSET for the next ones."},
		"timeout_seconds": {"type": "integer", "minimum": 1, "maximum": 86400, "default": %d, "description": "After how many seconds the statement is stopped. It is %d at the latest."},
		"format": {"type": "string", "enum": ["table", "json", "csv"], "default": "table", "description": "table: Markdown, with NULL as NULL and an empty text as two single quotes. json: an object of columns (names) and rows (a list of values each). csv: NULL as nothing and an empty text in quotes. Binary values are their size and first bytes in hexadecimal."}
	}, "required": ["query"], "additionalProperties": false}`, cfg.places(), cfg.Rows, cfg.Rows, seconds(cfg.Timeout), seconds(cfg.Timeout)),
		Effect: effect, EffectOf: effectOf, Open: cfg.open(), Timeout: cfg.Timeout,
		Run: func(ctx context.Context, _ tools.Call, args *native.Arguments) (tools.Result, error) {
			connection, connString, provider := args.Text("connection", ""), args.Text("connection_string", ""), args.Text("provider_name", "")
			text := args.Need("query")
			args.Within("query", text, 100_000)
			queryType := args.OneOf("query_type", "", "select", "insert", "update", "delete", "merge", "replace", "create", "alter", "drop", "truncate", "query", "scalar", "execute", "non_query")
			most := min(cfg.Rows, args.Integer("max_rows", cfg.Rows, 1, 100_000))
			timeout := time.Duration(args.Integer("timeout_seconds", seconds(cfg.Timeout), 1, 86_400)) * time.Second
			format := args.OneOf("format", "table", "table", "json", "csv")
			if res, bad := args.Fault(); bad {
				return res, nil
			}
			of, err := cfg.target(connection, connString, provider)
			if err != nil {
				return native.Failuref("The query was not run: %v.", err), nil
			}
			q, err := prepare(of, text, queryType, args)
			if err != nil {
				return native.Failuref("The query was not run on %s: %v.", of.name, err), nil
			}
			return ask(ctx, of, q, min(timeout, cfg.Timeout), most, format)
		},
	}
}

// prepare is the statement of a call, if it may be run.
func prepare(of target, text, queryType string, args *native.Arguments) (query, error) {
	s, err := readStatement(of.provider, text)
	if err != nil {
		return query{}, err
	}
	for _, why := range []string{s.refused(of.write), s.disagrees(queryType)} {
		if why != "" {
			return query{}, refusal(why)
		}
	}
	values, err := readParameters(args.Raw("parameters"))
	if err != nil {
		return query{}, err
	}
	q, err := values.ready(s)
	defines := slices.Contains([]string{"CREATE", "ALTER", "DROP", "TRUNCATE", "COMMENT"}, s.verb())
	q.write = of.write
	q.counts = q.write && s.changes() && !defines
	q.whole = q.counts || q.write && defines
	return q, err
}

// ask carries the statement out.
func ask(ctx context.Context, of target, q query, timeout time.Duration, most int, format string) (tools.Result, error) {
	within, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	into := &rows{most: most, write: q.write, affected: -1}
	s, err := of.open(within)
	if err == nil {
		defer s.close()
		err = s.run(within, q, into)
	}
	var unsure *unsureError
	switch {
	case err == nil:
		return tools.Text(into.text(format)), nil
	case ctx.Err() != nil:
		return tools.Result{}, native.Ended(ctx, "relational_database_query")
	case errors.As(err, &unsure):
		return native.Failuref("The query was run on %s, and the database did not say whether the change is kept. Look before you run it again.", of.name), nil
	case within.Err() != nil:
		return native.Failuref("The query was stopped after %v, and nothing of it is kept. Ask for less, with an index or a LIMIT, or give a longer timeout_seconds.", timeout), nil
	}
	return tools.Failure(failure(within, of, s, q, err)), nil
}

// failure is what a model is told of an error.
func failure(ctx context.Context, of target, s session, q query, err error) string {
	why := explain(s, err, q)
	if word, isColumn := missing(why); word != "" && s != nil {
		if c, err := s.catalog(ctx, "", func(string) bool { return true }); err == nil {
			why += c.nearest(word, isColumn)
		}
	}
	kept := ""
	if q.write {
		kept = " Nothing is changed."
	}
	return fmt.Sprintf("The query failed on %s: %s.%s", of.name, clean(textOf(textCell, strings.TrimSuffix(why, ".")).shown()), kept)
}

// explain is the text of an error.
func explain(s session, err error, q query) string {
	var refused refusal
	switch {
	case errors.As(err, &refused):
		return refused.Error()
	case s != nil:
		return s.explain(err, q)
	}
	return (*sqliteSession)(nil).explain(err, q)
}

// missing is the name that an error says is not there, the last part of it; empty: it is
// about something else.
func missing(why string) (word string, isColumn bool) {
	for _, pattern := range []string{
		`no such (table|column): ([^\s()]+)`, `(relation|column) "?([^\s"]+)"? does not exist`,
		`(Table) '([^']+)' doesn't exist`, `Unknown (column) '([^']+)'`,
	} {
		if m := regexp.MustCompile(pattern).FindStringSubmatch(why); m != nil {
			return m[2][strings.LastIndexByte(m[2], '.')+1:], m[1] == "column"
		}
	}
	return "", false
}

func seconds(d time.Duration) int { return max(1, int(d/time.Second)) }
