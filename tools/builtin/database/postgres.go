package database

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgproto3"
)

// postgresSession is a conversation with a PostgreSQL server. It speaks the extended
// protocol, which takes one statement, and gets all values as the server writes them: so
// no digit, no zone and no type is lost on the way.
type postgresSession struct {
	config *pgconn.Config
	conn   *pgconn.PgConn
	over   atomic.Bool // the server sent too much
	left   bool        // the conversation was ended amid a result
}

// postgresSource reads the connection string of a connection of the settings: a URL or
// keywords, as libpq has them, or what ADO.NET has.
func postgresSource(source string) (*pgconn.Config, error) {
	if strings.Contains(source, ";") && !strings.Contains(source, "://") {
		pairs, err := adoPairs(source)
		if err != nil {
			return nil, err
		}
		srv, err := serverOfPairs(postgresProvider, pairs)
		if err != nil {
			return nil, err
		}
		return srv.postgres(func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", srv.address())
		})
	}
	cfg, err := pgconn.ParseConfig(source)
	if err != nil {
		return nil, err
	}
	return own(cfg), nil
}

// postgres is the configuration for a server, of which nothing comes from elsewhere: the
// driver reads a configuration from a text, files and the environment alone, so it gets a
// text in which all is said that it would look for, and then what is meant.
func (s server) postgres(dial dialer) (*pgconn.Config, error) {
	if _, set := os.LookupEnv("PGSERVICE"); set {
		return nil, refusal("connection strings of PostgreSQL are not taken while PGSERVICE is set in the environment of crewhost")
	}
	cfg, err := pgconn.ParseConfig("host=localhost port=5432 user=x password=x dbname=x sslmode=disable sslcertmode=disable sslrootcert='' sslcert='' sslkey='' " +
		"sslpassword='' sslsni=1 sslnegotiation=postgres passfile='' servicefile='' target_session_attrs=any connect_timeout=10 " +
		"min_protocol_version=3.0 max_protocol_version=3.0 channel_binding=prefer require_auth='' options='' timezone='' application_name=''")
	if err != nil {
		return nil, err
	}
	cfg.Host, cfg.Port, cfg.User, cfg.Password, cfg.Database = s.host, uint16(s.port), s.user, s.password, s.database
	cfg.TLSConfig, cfg.Fallbacks = nil, nil
	cfg.RuntimeParams = map[string]string{}
	// The name is looked up by who dials, and a cancellation goes where the query went.
	cfg.DialFunc = pgconn.DialFunc(dial)
	cfg.LookupFunc = func(_ context.Context, host string) ([]string, error) { return []string{host}, nil }
	with := &tls.Config{ServerName: s.host, InsecureSkipVerify: s.tls != tlsVerify} // what the mode says
	switch s.tls {
	case tlsPrefer:
		cfg.TLSConfig = with
		cfg.Fallbacks = []*pgconn.FallbackConfig{{Host: cfg.Host, Port: cfg.Port}}
	case tlsRequire, tlsVerify:
		cfg.TLSConfig = with
	}
	return own(cfg), nil
}

// own says how the host speaks to a server: what is no longer waited for is cancelled
// there, too.
func own(cfg *pgconn.Config) *pgconn.Config {
	if cfg.RuntimeParams["application_name"] == "" {
		cfg.RuntimeParams["application_name"] = "crewhost"
	}
	cfg.RuntimeParams["client_encoding"] = "UTF8"
	cfg.MaxProtocolMessageBodyLen = maxReceive
	cfg.BuildContextWatcherHandler = func(conn *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.CancelRequestContextWatcherHandler{Conn: conn, DeadlineDelay: time.Second}
	}
	return cfg
}

func (s *postgresSession) connect(ctx context.Context) (err error) {
	if s.conn != nil {
		return nil
	}
	cfg := s.config.Copy()
	cfg.DialFunc = pgconn.DialFunc(dialer(cfg.DialFunc).bounded(&s.over))
	if s.conn, err = pgconn.ConnectConfig(ctx, cfg); err != nil {
		s.conn = nil
		return &connectError{err}
	}
	return nil
}

// connectError is why there is no conversation.
type connectError struct{ err error }

func (e *connectError) Error() string { return e.err.Error() }
func (e *connectError) Unwrap() error { return e.err }

func (s *postgresSession) run(ctx context.Context, q query, into *rows) error {
	if err := s.connect(ctx); err != nil {
		return err
	}
	rights, end := "READ ONLY", "ROLLBACK"
	if q.write {
		rights, end = "READ WRITE", "COMMIT"
	}
	limit := "0"
	if deadline, ok := ctx.Deadline(); ok {
		limit = strconv.FormatInt(max(1, time.Until(deadline).Milliseconds()), 10)
	}
	// Behind a first query, a transaction can't be made one that writes.
	begin := "BEGIN " + rights + "; SET LOCAL statement_timeout = " + limit + "; SET LOCAL standard_conforming_strings = on; " +
		"SET LOCAL datestyle = 'ISO, YMD'; SET LOCAL bytea_output = hex; SELECT 1"
	if _, err := s.conn.Exec(ctx, begin).ReadAll(); err != nil {
		return err
	}
	err := s.ask(ctx, q, into)
	switch {
	case s.left:
		return err
	case err != nil:
		_, _ = s.conn.Exec(ctx, "ROLLBACK").ReadAll() // or the end of the conversation does
		return err
	}
	_, err = s.conn.Exec(ctx, end).ReadAll()
	var said *pgconn.PgError
	if err != nil && q.write && !errors.As(err, &said) && !pgconn.SafeToRetry(err) {
		return &unsureError{err} // it was sent, and not answered
	}
	return err
}

func (s *postgresSession) ask(ctx context.Context, q query, into *rows) error {
	var values [][]byte
	for _, a := range q.args {
		values = append(values, postgresText(a))
	}
	result := s.conn.ExecParams(ctx, q.text, values, nil, nil, nil)
	var kinds []cellKind
	for result.NextRow() {
		if kinds == nil {
			into.columns, kinds = postgresColumns(result.FieldDescriptions())
		}
		if !q.whole && into.full() {
			s.leave(ctx)
			return nil
		}
		var row []cell
		for i, raw := range result.Values() {
			row = append(row, postgresCell(kinds[i], raw))
		}
		into.add(row)
	}
	if kinds == nil {
		into.columns, _ = postgresColumns(result.FieldDescriptions())
	}
	tag, err := result.Close()
	if err == nil && q.counts && !tag.Select() {
		into.affected = tag.RowsAffected()
	}
	return err
}

// leave ends the conversation amid a result: the server is told to stop, and what it has
// sent is not read.
func (s *postgresSession) leave(ctx context.Context) {
	s.left = true
	within, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	_ = s.conn.CancelRequest(within)
	_ = s.conn.Conn().Close()
}

func (s *postgresSession) close() {
	if s.conn == nil {
		return
	}
	_ = s.conn.Conn().Close() // a transaction that is open is rolled back
	s.conn = nil
}

func postgresText(a arg) []byte {
	switch v := a.(type) {
	case nil:
		return nil
	case float64:
		return []byte(strconv.FormatFloat(v, 'g', -1, 64))
	default:
		return fmt.Append([]byte{}, v)
	}
}

func postgresColumns(fields []pgconn.FieldDescription) ([]string, []cellKind) {
	var names []string
	kinds := make([]cellKind, 0, len(fields))
	for _, f := range fields {
		names = append(names, f.Name)
		switch f.DataTypeOID {
		case 16:
			kinds = append(kinds, boolCell)
		case 17:
			kinds = append(kinds, bytesCell)
		case 20, 21, 23, 26, 700, 701, 1700:
			kinds = append(kinds, numberCell)
		case 114, 3802:
			kinds = append(kinds, jsonCell)
		default:
			kinds = append(kinds, textCell)
		}
	}
	return names, kinds
}

func postgresCell(kind cellKind, raw []byte) cell {
	switch {
	case raw == nil:
		return cell{kind: nullCell}
	case kind == boolCell && string(raw) == "t":
		return textOf(boolCell, "true")
	case kind == boolCell:
		return textOf(boolCell, "false")
	case kind == bytesCell && strings.HasPrefix(string(raw[:min(2, len(raw))]), `\x`):
		return cell{bytesCell, string(raw[2:min(len(raw), 2+64)]), (len(raw) - 2) / 2}
	}
	c := textOf(kind, string(raw[:min(len(raw), maxCell+1)]))
	c.size = len(raw)
	return c
}

func (s *postgresSession) explain(err error, q query) string {
	var e *pgconn.PgError
	var refused *connectError
	var tooLong *pgproto3.ExceededMaxBodyLenErr
	switch {
	case errors.As(err, &refused):
		return connectText(err)
	case s.over.Load(), errors.As(err, &tooLong):
		return tooMuchText()
	case !errors.As(err, &e):
		return "the conversation with the server broke off"
	}
	text := fmt.Sprintf("%s (SQLSTATE %s)", e.Message, e.Code)
	if e.Position > 0 {
		at := 0
		for i := range q.text { // the position counts characters
			if e.Position--; e.Position == 0 {
				at = i
				break
			}
		}
		text += " at " + place(q.text, at)
	}
	if e.Detail != "" {
		text += ". " + e.Detail
	}
	if e.Hint != "" {
		text += ". " + e.Hint
	}
	switch e.Code {
	case "42501":
		text += ". The role has no right to it"
	case "22P02":
		text += ". A parameter takes the type of where it stands; $1::text or CAST(... AS ...) says another"
	}
	return strings.TrimSuffix(text, ".")
}

func tooMuchText() string {
	return fmt.Sprintf("the result is larger than %d MiB; ask for less, or for a part of the values", maxReceive>>20)
}

// connectText says why there is no conversation with a server. What the server or the
// network says is not shown: it names hosts and users.
func connectText(err error) string {
	var e *pgconn.PgError
	var byHost *dialError
	code := ""
	if errors.As(err, &e) {
		code = e.Code
	}
	if n := mysqlNumber(err); n != 0 {
		code = map[uint16]string{1044: "3D000", 1045: "28000", 1049: "3D000", 1040: "53300", 1698: "28000"}[n]
	}
	var dns *net.DNSError
	var network *net.OpError
	var certificate *tls.CertificateVerificationError
	switch {
	case code == "3D000":
		return "the server has no such database, or the user may not see it"
	case strings.HasPrefix(code, "28"):
		return "the server refused the login"
	case code == "53300" || code == "57P03":
		return "the server takes no more connections now; try again"
	case errors.As(err, &certificate):
		return "the server's certificate is not trusted"
	case errors.As(err, &dns):
		return "the server's name is not known"
	case errors.As(err, &network):
		return "the server can't be reached"
	case errors.As(err, &byHost):
		return "the host is not one of tools.database.hosts in the settings, or can't be reached"
	}
	return "the server can't be spoken to: it refused the login, TLS or the connection"
}
