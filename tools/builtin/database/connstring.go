package database

import (
	"errors"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"crewhost/tools/native"
)

// server is what a connection string of an agent says of a server. It is all that is
// taken from one: no key names a file, a socket, a variable of the environment, or what a
// driver does beyond asking.
type server struct {
	provider       string
	host           string
	port           int
	user, password string
	database       string
	tls            tlsMode
}

// tlsMode is how a server is spoken to.
type tlsMode int

const (
	tlsPrefer  tlsMode = iota // with TLS where the server has it; the certificate is not looked at
	tlsDisable                // without
	tlsRequire                // with TLS alone; the certificate is not looked at
	tlsVerify                 // with TLS, and a certificate of the host
)

func (s server) address() string { return net.JoinHostPort(s.host, strconv.Itoa(s.port)) }

// providerNamed is the provider of a name that is usual somewhere; empty: none is.
func providerNamed(name string) string {
	switch strings.ToLower(strings.NewReplacer(" ", "", "_", "", "-", "", ".", "").Replace(name)) {
	case "sqlite", "sqlite3", "microsoftdatasqlite", "systemdatasqlite":
		return sqliteProvider
	case "postgresql", "postgres", "pg", "npgsql", "pgsql":
		return postgresProvider
	case "mysql", "mariadb", "mysqldatamysqlclient", "mysqlconnector", "mysqlclient":
		return mysqlProvider
	}
	return ""
}

// readConnString reads a connection string of an agent: of a server, or the path of a file
// of SQLite. The provider may be empty. No error holds a part of a value.
func readConnString(provider, s string) (srv server, file string, err error) {
	s = strings.TrimSpace(s)
	scheme, _, hasScheme := strings.Cut(s, "://")
	if named := providerNamed(scheme); hasScheme && named != "" && named != sqliteProvider {
		if provider != "" && provider != named {
			return srv, "", refusal("provider_name and the connection string name different kinds of databases")
		}
		srv, err = serverOfURL(named, s)
		return srv, "", err
	}
	if provider == sqliteProvider || strings.HasPrefix(s, "sqlite:") || strings.HasPrefix(s, "file:") || provider == "" && !strings.Contains(s, "=") {
		file, err = sqlitePath(s)
		return srv, file, err
	}
	pairs, err := adoPairs(s)
	if err != nil {
		return srv, "", err
	}
	if provider == "" {
		isServer := slices.ContainsFunc(pairs, func(p pair) bool {
			return slices.Contains([]string{"server", "host", "userid", "uid", "user", "username"}, p.key)
		})
		if isServer {
			return srv, "", refusal("the connection string doesn't tell the kind of its database; give provider_name")
		}
		file, err = sqlitePath(s)
		return srv, file, err
	}
	srv, err = serverOfPairs(provider, pairs)
	return srv, "", err
}

func serverOfURL(provider, s string) (server, error) {
	u, err := url.Parse(s)
	if err != nil || u.Opaque != "" || u.Fragment != "" {
		return server{}, refusal("the connection string is no URL (in a user, password or name, write other characters as %XX)")
	}
	srv := server{provider: provider, host: u.Hostname(), database: strings.TrimPrefix(u.Path, "/"), user: u.User.Username()}
	srv.password, _ = u.User.Password()
	if srv.port, err = portOf(provider, u.Port()); err != nil {
		return server{}, err
	}
	values := u.Query()
	var keys []string
	for key := range values {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		if err := srv.set(normalKey(key), key, values.Get(key)); err != nil {
			return server{}, err
		}
	}
	return srv, srv.check()
}

func serverOfPairs(provider string, pairs []pair) (server, error) {
	srv := server{provider: provider}
	for _, p := range pairs {
		if err := srv.set(p.key, p.name, p.value); err != nil {
			return server{}, err
		}
	}
	if srv.port == 0 {
		srv.port, _ = portOf(provider, "")
	}
	return srv, srv.check()
}

// set takes one key. Those that mean nothing to a single call are taken without effect,
// and all others are refused.
func (s *server) set(key, name, value string) (err error) {
	switch key {
	case "server", "host", "datasource", "address", "addr", "hostaddr":
		s.host = strings.TrimPrefix(value, "tcp:")
		if host, port, ok := strings.Cut(s.host, ","); ok { // of ADO.NET
			s.host = host
			s.port, err = portOf(s.provider, port)
		} else if host, port, splitErr := net.SplitHostPort(s.host); splitErr == nil {
			s.host = host
			s.port, err = portOf(s.provider, port)
		}
	case "port":
		s.port, err = portOf(s.provider, value)
	case "database", "dbname", "initialcatalog":
		s.database = value
	case "userid", "user", "uid", "username":
		s.user = value
	case "password", "pwd":
		s.password = value
	case "sslmode", "ssl", "tls", "encrypt":
		s.tls, err = tlsNamed(value)
	case "pooling", "timeout", "connecttimeout", "connectiontimeout", "commandtimeout", "defaultcommandtimeout", "maxpoolsize", "minpoolsize",
		"maximumpoolsize", "minimumpoolsize", "applicationname", "charset", "characterset", "clientencoding", "persistsecurityinfo", "keepalive",
		"includeerrordetail", "trustservercertificate", "multipleactiveresultsets", "parsetime", "protocol", "connectionlifetime":
	default:
		return refusal("the connection string has the key " + native.Shorten(name) + ", which is not taken here; leave it out")
	}
	return err
}

func (s *server) check() error {
	switch {
	case s.host == "":
		return refusal("the connection string names no host")
	case strings.ContainsAny(s.host, "/\\@,% \x00"):
		return refusal("the connection string names no single host; sockets and lists of hosts are not taken")
	case strings.ContainsRune(s.user+s.password+s.database, 0):
		return refusal("the connection string has a NUL character")
	}
	return nil
}

func portOf(provider, text string) (int, error) {
	switch {
	case text == "" && provider == mysqlProvider:
		return 3306, nil
	case text == "":
		return 5432, nil
	}
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil || n < 1 || n > 65535 {
		return 0, refusal("the connection string has a port that is none")
	}
	return n, nil
}

func tlsNamed(text string) (tlsMode, error) {
	switch normalKey(text) {
	case "prefer", "preferred", "allow":
		return tlsPrefer, nil
	case "disable", "disabled", "none", "false", "no":
		return tlsDisable, nil
	case "require", "required", "skipverify":
		return tlsRequire, nil
	case "verifyca", "verifyfull", "verifyidentity", "true", "yes":
		return tlsVerify, nil
	}
	return 0, refusal("the connection string has no known mode of TLS; there are disable, prefer, require and verify-full")
}

// pair is a key of a connection string, as it is compared and as it stands there.
type pair struct{ key, name, value string }

func normalKey(s string) string {
	return strings.ToLower(strings.NewReplacer(" ", "", "_", "", "-", "").Replace(s))
}

// adoPairs reads "Server=a;User Id=b", as ADO.NET has it, and "host=a user=b", as libpq
// has it. Values may be in quotes.
func adoPairs(s string) ([]pair, error) {
	wrong := refusal("the connection string is not like KEY=VALUE;KEY=VALUE, or a URL")
	between := ";"
	if bare := unquoted(s); !strings.Contains(bare, ";") && strings.Count(bare, "=") > 1 {
		between = " \t\n"
	}
	var pairs []pair
	for {
		s = strings.TrimLeft(s, "; \t\r\n")
		if s == "" {
			return pairs, nil
		}
		name, rest, ok := strings.Cut(s, "=")
		name = strings.TrimSpace(name)
		if !ok || name == "" || strings.ContainsAny(name, ";'\"") {
			return nil, wrong
		}
		rest = strings.TrimLeft(rest, " \t")
		var value string
		if rest != "" && (rest[0] == '\'' || rest[0] == '"') {
			var err error
			if value, s, err = quotedValue(rest); err != nil {
				return nil, wrong
			}
		} else {
			end := strings.IndexAny(rest, between)
			if end < 0 {
				end = len(rest)
			}
			value, s = strings.TrimSpace(rest[:end]), rest[end:]
		}
		pairs = append(pairs, pair{normalKey(name), name, value})
	}
}

// unquoted is s without what is in quotes.
func unquoted(s string) string {
	return regexp.MustCompile(`'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"`).ReplaceAllString(s, "")
}

// quotedValue is the value in quotes that s begins with: a quote in it is written twice,
// or behind a backslash.
func quotedValue(s string) (value, rest string, err error) {
	quote := s[0]
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s) && (s[i+1] == quote || s[i+1] == '\\'), s[i] == quote && i+1 < len(s) && s[i+1] == quote:
			i++
			b.WriteByte(s[i])
		case s[i] == quote:
			return b.String(), s[i+1:], nil
		default:
			b.WriteByte(s[i])
		}
	}
	return "", "", errors.New("a value in quotes has no end")
}
