package database

import (
	"context"
	"crypto/tls"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-sql-driver/mysql"
)

// mysqlSession is a conversation with a server of MySQL or MariaDB.
type mysqlSession struct {
	config *mysql.Config
	db     *sql.DB
	conn   *sql.Conn
	id     int64       // of the conversation, by which it is killed
	over   atomic.Bool // the server sent too much
}

// mysqlSource reads the connection string of a connection of the settings: a URL, what
// the Go driver has, or what ADO.NET has.
func mysqlSource(source string) (*mysql.Config, error) {
	if scheme, _, ok := strings.Cut(source, "://"); ok && providerNamed(scheme) == mysqlProvider {
		srv, err := serverOfURL(mysqlProvider, source)
		if err != nil {
			return nil, err
		}
		return srv.mysql(nil), nil
	}
	if strings.Contains(source, ";") || !strings.Contains(source, "/") {
		pairs, err := adoPairs(source)
		if err != nil {
			return nil, err
		}
		srv, err := serverOfPairs(mysqlProvider, pairs)
		if err != nil {
			return nil, err
		}
		return srv.mysql(nil), nil
	}
	if strings.Contains(source, "strict=") {
		return nil, errors.New("strict is no key any more") // the driver panics
	}
	cfg, err := mysql.ParseDSN(source)
	if err != nil {
		return nil, err
	}
	return ownMySQL(cfg), nil
}

func (s server) mysql(dial dialer) *mysql.Config {
	cfg := mysql.NewConfig()
	cfg.User, cfg.Passwd, cfg.DBName, cfg.Net, cfg.Addr = s.user, s.password, s.database, "tcp", s.address()
	switch s.tls {
	case tlsPrefer:
		cfg.TLS = &tls.Config{InsecureSkipVerify: true} // what the mode says
		cfg.AllowFallbackToPlaintext = true
	case tlsRequire:
		cfg.TLS = &tls.Config{InsecureSkipVerify: true} // what the mode says
	case tlsVerify:
		cfg.TLS = &tls.Config{ServerName: s.host}
	}
	cfg.DialFunc = dial
	return ownMySQL(cfg)
}

// ownMySQL says how the host speaks to a server: one statement at a time, whose values
// are apart from it, and no file of this machine.
func ownMySQL(cfg *mysql.Config) *mysql.Config {
	cfg.MultiStatements, cfg.AllowAllFiles, cfg.InterpolateParams, cfg.ParseTime = false, false, false, false
	cfg.Logger = quiet{}
	if cfg.DialFunc == nil {
		cfg.DialFunc = (&net.Dialer{}).DialContext
	}
	return cfg
}

// quiet is where the driver's log goes: it would name hosts.
type quiet struct{}

func (quiet) Print(...any) {}

func (s *mysqlSession) connect(ctx context.Context) error {
	if s.conn != nil {
		return nil
	}
	cfg := s.config.Clone()
	cfg.DialFunc = dialer(cfg.DialFunc).bounded(&s.over)
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return &connectError{err}
	}
	s.db = sql.OpenDB(connector)
	if s.conn, err = s.db.Conn(ctx); err != nil {
		s.conn = nil
		return &connectError{err}
	}
	limit := time.Hour
	if deadline, ok := ctx.Deadline(); ok {
		limit = max(time.Second, time.Until(deadline))
	}
	var version string
	if err := s.conn.QueryRowContext(ctx, "SELECT CONNECTION_ID(), VERSION()").Scan(&s.id, &version); err != nil {
		return err
	}
	// The statement was read as UTF-8 with backslashes in texts, so the server must read it so.
	own := "SET SESSION sql_mode = 'STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION', " +
		"SESSION character_set_client = utf8mb4, SESSION character_set_results = utf8mb4, SESSION character_set_connection = utf8mb4, SESSION "
	if strings.Contains(version, "MariaDB") {
		own += "max_statement_time = " + strconv.FormatFloat(limit.Seconds(), 'f', 3, 64)
	} else {
		own += "max_execution_time = " + strconv.FormatInt(limit.Milliseconds(), 10)
	}
	if _, err := s.conn.ExecContext(ctx, own); err != nil {
		return err
	}
	return nil
}

func (s *mysqlSession) run(ctx context.Context, q query, into *rows) error {
	if err := s.connect(ctx); err != nil {
		return err
	}
	begin, end := "START TRANSACTION READ ONLY", "ROLLBACK"
	if q.write {
		begin, end = "START TRANSACTION READ WRITE", "COMMIT"
	}
	if _, err := s.conn.ExecContext(ctx, begin); err != nil {
		return err
	}
	asking, cancel := context.WithCancel(ctx)
	defer cancel()
	left, err := s.ask(asking, cancel, q, into)
	if left || ctx.Err() != nil {
		s.kill(ctx)
		return errors.Join(err, ctx.Err())
	}
	if err != nil {
		_, _ = s.conn.ExecContext(ctx, "ROLLBACK") // or the end of the conversation does
		return err
	}
	_, err = s.conn.ExecContext(ctx, end)
	if err != nil && q.write && mysqlNumber(err) == 0 {
		return &unsureError{err} // it may have been sent, and was not answered
	}
	return err
}

// ask runs the statement. Where it left amid a result, the conversation is over.
func (s *mysqlSession) ask(ctx context.Context, leave func(), q query, into *rows) (left bool, err error) {
	var args []any
	for _, a := range q.args {
		args = append(args, a)
	}
	if q.write && !hasRows(q.text) {
		res, err := s.conn.ExecContext(ctx, q.text, args...)
		if err == nil && q.counts {
			into.affected, err = res.RowsAffected()
		}
		return false, err
	}
	result, err := s.conn.QueryContext(ctx, q.text, args...)
	if err != nil {
		return false, err
	}
	defer func() { _ = result.Close() }()
	if into.columns, err = result.Columns(); err != nil {
		return false, err
	}
	types, err := result.ColumnTypes()
	if err != nil {
		return false, err
	}
	values := make([]any, len(types))
	places := make([]any, len(types))
	for i := range values {
		places[i] = &values[i]
	}
	for result.Next() {
		if !q.whole && into.full() {
			leave() // so that the rest is not read
			return true, nil
		}
		if err := result.Scan(places...); err != nil {
			return false, err
		}
		var row []cell
		for i, v := range values {
			row = append(row, mysqlCell(types[i].DatabaseTypeName(), v))
		}
		into.add(row)
	}
	return false, result.Err()
}

// hasRows reports whether a statement that may write gives rows back.
func hasRows(text string) bool {
	s, err := readStatement(mysqlProvider, text)
	if err != nil {
		return true
	}
	for _, t := range s.tokens {
		if t.word("RETURNING") {
			return true
		}
	}
	return s.isRead()
}

// kill stops what the conversation does at the server, which doesn't notice that nobody
// listens any more.
func (s *mysqlSession) kill(ctx context.Context) {
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	connector, err := mysql.NewConnector(s.config)
	if err != nil {
		return
	}
	db := sql.OpenDB(connector)
	defer func() { _ = db.Close() }()
	_, _ = db.ExecContext(within, "KILL "+strconv.FormatInt(s.id, 10))
}

func (s *mysqlSession) close() {
	if s.conn != nil {
		_ = s.conn.Raw(func(any) error { return driver.ErrBadConn }) // closed without a word
		_ = s.conn.Close()
	}
	if s.db != nil {
		_ = s.db.Close()
	}
	s.conn, s.db = nil, nil
}

func mysqlCell(typ string, v any) cell {
	switch v := v.(type) {
	case nil:
		return cell{kind: nullCell}
	case int64, uint64:
		return textOf(numberCell, fmt.Sprint(v))
	case float32:
		return textOf(numberCell, strconv.FormatFloat(float64(v), 'g', -1, 32))
	case float64:
		return textOf(numberCell, strconv.FormatFloat(v, 'g', -1, 64))
	case []byte:
		switch {
		case strings.Contains(typ, "BLOB"), strings.Contains(typ, "BINARY"), typ == "BIT", typ == "GEOMETRY":
			return bytesOf(v)
		case typ == "JSON":
			return textOf(jsonCell, string(v))
		case strings.Contains(typ, "INT"), typ == "DECIMAL", typ == "FLOAT", typ == "DOUBLE", typ == "YEAR":
			return textOf(numberCell, string(v))
		}
		c := textOf(textCell, string(v[:min(len(v), maxCell+1)]))
		c.size = len(v)
		return c
	}
	return textOf(textCell, fmt.Sprint(v))
}

func mysqlNumber(err error) uint16 {
	var e *mysql.MySQLError
	if errors.As(err, &e) {
		return e.Number
	}
	return 0
}

func (s *mysqlSession) explain(err error, _ query) string {
	var e *mysql.MySQLError
	var refused *connectError
	switch {
	case errors.As(err, &refused):
		return connectText(err)
	case s.over.Load():
		return tooMuchText()
	case !errors.As(err, &e):
		return "the conversation with the server broke off"
	}
	text := fmt.Sprintf("%s (error %d)", withoutUser(e.Message), e.Number)
	switch e.Number {
	case 1792:
		text += ". The database is read only here"
	case 1142, 1143, 1227, 1370:
		text += ". The user has no right to it"
	}
	return text
}

// withoutUser leaves out for whom and from where a right is missing.
func withoutUser(message string) string {
	return regexp.MustCompile(` (to|for) user '[^']*'@'[^']*'`).ReplaceAllString(message, "")
}
