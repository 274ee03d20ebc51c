package server

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// HTTPConfig is how a server is reached over HTTP. The zero value listens on a
// free port of loopback, asks nobody who they are, and refuses every browser. A
// zero number or duration means its default.
type HTTPConfig struct {
	Listen string // host:port; 127.0.0.1:0
	Path   string // of the one endpoint; /mcp

	// AllowedOrigins are the pages whose scripts may call, scheme://host[:port]
	// as browsers write it. None: a request with an Origin is refused (I12).
	AllowedOrigins []string
	// AllowedHosts are the names, host or host:port, by which the server may be
	// called; loopback's own names are always among them. What comes over loopback
	// may be called by no other, so that no page reaches it by a name that it had
	// resolve to this machine. Elsewhere an empty list allows all names.
	AllowedHosts []string

	Tokens []Token            // whoever has one of them may call
	OAuth  *ProtectedResource // so may who has a token of its issuers; nil: nobody
	// AllowUnauthenticated says that a server beyond loopback that asks nobody
	// who they are is meant.
	AllowUnauthenticated bool

	CertFile, KeyFile string // PEM; both or neither: plain HTTP

	Connections  int           // open at a time; 1,024
	Sessions     int           // of the initialize lineage; 1,024
	SessionIdle  time.Duration // after which such a session ends; 30 min
	ReadTimeout  time.Duration // of a request, from its first byte to its last; 30 s
	WriteTimeout time.Duration // of a piece of an answer, until the client has taken it; 30 s
	IdleTimeout  time.Duration // of a connection between requests; 2 min
}

// A Token lets its bearer in under a name. It keeps the value's digest alone.
type Token struct {
	Name  string // for the log; nobody is let in by it
	sum   [sha256.Size]byte
	fault string
}

// minToken is the least length of a token that may be worth its name.
const minToken = 16

var (
	tokenPattern = regexp.MustCompile(`^[A-Za-z0-9._~+/-]+=*$`) // RFC 6750, b64token
	namePattern  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]*$`)
)

// NewToken returns a token. What is wrong with it, [HTTPConfig.Check] says.
func NewToken(name, value string) Token {
	t := Token{Name: name, sum: sha256.Sum256([]byte(value))}
	switch {
	case value == "":
		t.fault = "is empty"
	case !tokenPattern.MatchString(value):
		t.fault = "has characters that no Authorization header can carry: letters, digits and -._~+/ are fine"
	case len(value) < minToken:
		t.fault = fmt.Sprintf("has fewer than %d characters", minToken)
	}
	return t
}

// String is the token's name.
func (t Token) String() string { return t.Name }

// GoString is the token's name.
func (t Token) GoString() string { return strconv.Quote(t.Name) }

// ProtectedResource is the server as OAuth sees it: it takes tokens, and says
// whose (RFC 9728).
type ProtectedResource struct {
	Resource string   // the endpoint's URL, as clients know it
	Issuers  []Issuer // whose tokens are taken
	Scopes   []string // that a token must have, all of them
	Audience string   // that a token must be for; Resource
	Leeway   time.Duration
}

// Issuer is an authorization server.
type Issuer struct {
	URL  string // as in the iss of its tokens
	JWKS string // where its keys are; empty: where its metadata says
}

func (c HTTPConfig) withDefaults() HTTPConfig {
	if c.Listen == "" {
		c.Listen = "127.0.0.1:0"
	}
	if c.Path == "" {
		c.Path = "/mcp"
	}
	for _, d := range []struct {
		n     *int
		value int
	}{{&c.Connections, 1024}, {&c.Sessions, 1024}} {
		if *d.n == 0 {
			*d.n = d.value
		}
	}
	for _, d := range []struct {
		d     *time.Duration
		value time.Duration
	}{
		{&c.SessionIdle, 30 * time.Minute},
		{&c.ReadTimeout, 30 * time.Second},
		{&c.WriteTimeout, 30 * time.Second},
		{&c.IdleTimeout, 2 * time.Minute},
	} {
		if *d.d == 0 {
			*d.d = d.value
		}
	}
	if c.OAuth != nil {
		o := *c.OAuth
		if o.Audience == "" {
			o.Audience = o.Resource
		}
		if o.Leeway == 0 {
			o.Leeway = 30 * time.Second
		}
		c.OAuth = &o
	}
	return c
}

// Check reports all that is wrong, joined, before anything is opened: what can't
// be meant (I13), and a server beyond loopback that asks nobody who they are.
func (c HTTPConfig) Check() error {
	c = c.withDefaults()
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }

	host, port, err := net.SplitHostPort(c.Listen)
	if n, perr := strconv.Atoi(port); err != nil || perr != nil || n < 0 || n > 65535 {
		wrong("listen: %q is not host:port", c.Listen)
	} else if !isLoopback(host) && len(c.Tokens) == 0 && c.OAuth == nil && !c.AllowUnauthenticated {
		wrong("listen: %s is not loopback, and nobody is asked who they are: set tokens or oauth, or allow_unauthenticated where that is meant", c.Listen)
	}
	if err := checkPath(c.Path); err != nil {
		wrong("path: %w", err)
	}
	for _, o := range c.AllowedOrigins {
		if err := checkOrigin(o); err != nil {
			wrong("allowed origin %q: %w", o, err)
		}
	}
	for _, h := range c.AllowedHosts {
		if err := checkHost(h); err != nil {
			wrong("allowed host %q: %w", h, err)
		}
	}
	names := map[string]bool{}
	for i, t := range c.Tokens {
		switch {
		case len(t.Name) > maxName || !namePattern.MatchString(t.Name):
			wrong("token %d: the name %q is not letters, digits, dots, dashes and underscores, at most 128", i+1, t.Name)
		case names[t.Name]:
			wrong("token %q: there are two of that name", t.Name)
		}
		names[t.Name] = true
		switch {
		case t.sum == [sha256.Size]byte{}:
			wrong("token %q: it has no value", t.Name)
		case t.fault != "":
			wrong("token %q: it %s", t.Name, t.fault)
		case slices.ContainsFunc(c.Tokens[:i], func(o Token) bool { return o.sum == t.sum }):
			wrong("token %q: another has the same value", t.Name)
		}
	}
	if c.OAuth != nil {
		errs = append(errs, c.OAuth.check()...)
	}
	if (c.CertFile == "") != (c.KeyFile == "") {
		wrong("TLS: a certificate and its key go together")
	}
	for _, n := range []struct {
		name  string
		value int
	}{{"connections", c.Connections}, {"sessions", c.Sessions}} {
		if n.value < 1 {
			wrong("%s: %d is not a positive number", n.name, n.value)
		}
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"session idle", c.SessionIdle}, {"read timeout", c.ReadTimeout},
		{"write timeout", c.WriteTimeout}, {"idle timeout", c.IdleTimeout},
	} {
		if d.value < 0 {
			wrong("%s: %s is not above zero", d.name, d.value)
		}
	}
	return errors.Join(errs...)
}

func (r *ProtectedResource) check() []error {
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf("OAuth: "+format, args...)) }
	if err := checkURL(r.Resource); err != nil {
		wrong("resource: %w", err)
	}
	if len(r.Issuers) == 0 {
		wrong("there is no issuer")
	}
	seen := map[string]bool{}
	for _, i := range r.Issuers {
		if err := checkURL(i.URL); err != nil {
			wrong("issuer: %w", err)
		}
		if seen[i.URL] {
			wrong("issuer %q: it is there twice", i.URL)
		}
		seen[i.URL] = true
		if i.JWKS != "" {
			if err := checkURL(i.JWKS); err != nil {
				wrong("keys of %q: %w", i.URL, err)
			}
		}
	}
	for _, s := range r.Scopes {
		if !scopePattern.MatchString(s) {
			wrong("scope %q: it has characters that no scope may have", s)
		}
	}
	if r.Leeway < 0 || r.Leeway > 5*time.Minute {
		wrong("leeway: %s is not between 0 and 5m", r.Leeway)
	}
	return errs
}

var scopePattern = regexp.MustCompile(`^[\x21\x23-\x5B\x5D-\x7E]+$`) // RFC 6749, scope-token

// checkPath wants a path that means one place, and none of the server's own.
func checkPath(path string) error {
	u, err := url.Parse(path)
	switch {
	case !strings.HasPrefix(path, "/") || err != nil || u.Path != path || u.Host != "" || strings.ContainsAny(path, "{}"):
		return fmt.Errorf("%q is not a plain path like /mcp", path)
	case path != "/" && strings.HasSuffix(path, "/"), strings.Contains(path, "//"), strings.Contains(path+"/", "/./"), strings.Contains(path+"/", "/../"):
		return fmt.Errorf("%q has empty or dotted parts", path)
	case path == healthPath || path == readyPath || strings.HasPrefix(path, "/.well-known/"):
		return fmt.Errorf("%q is the server's own", path)
	}
	return nil
}

// checkOrigin wants an origin as browsers write one, for no other can be equal
// to one.
func checkOrigin(origin string) error {
	u, err := url.Parse(origin)
	switch {
	case strings.Contains(origin, "*"):
		return errors.New("there are no wildcards: each origin is named")
	case err != nil || u.Scheme == "" || u.Host == "" || u.User != nil:
		return errors.New("it is not scheme://host[:port]")
	case strings.ToLower(origin) != origin:
		return errors.New("browsers write it in lower case")
	case origin != u.Scheme+"://"+u.Host:
		return errors.New("it has more than scheme, host and port")
	case u.Hostname() == "" || strings.HasSuffix(u.Host, ":"):
		return errors.New("it is not scheme://host[:port]")
	case u.Scheme == "https" && u.Port() == "443" || u.Scheme == "http" && u.Port() == "80":
		return errors.New("browsers leave out a scheme's own port")
	}
	return nil
}

func checkHost(host string) error {
	name, port := splitHost(host)
	switch {
	case strings.Contains(host, "*"):
		return errors.New("there are no wildcards: each host is named")
	case name == "" || strings.ContainsAny(host, "/@?# \t"):
		return errors.New("it is not host or host:port")
	}
	if port != "" {
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
			return errors.New("it is not host or host:port")
		}
	}
	return nil
}

// checkURL wants https, or http on loopback: what comes from there is believed.
func checkURL(raw string) error {
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.Fragment != "":
		return fmt.Errorf("%q is not a URL with a host, and without user and fragment", raw)
	case u.Scheme == "https", u.Scheme == "http" && isLoopback(u.Hostname()):
		return nil
	default:
		return fmt.Errorf("%q is not https", raw)
	}
}

// splitHost splits host[:port], in lower case, without brackets, and without the
// dot of a full name. The name is empty if it is nothing of the kind.
func splitHost(s string) (name, port string) {
	s = strings.ToLower(s)
	if h, p, err := net.SplitHostPort(s); err == nil {
		s, port = h, p
	} else if strings.HasPrefix(s, "[") && strings.HasSuffix(s, "]") {
		s = s[1 : len(s)-1]
		if !strings.Contains(s, ":") {
			return "", ""
		}
	} else if strings.ContainsAny(s, "[]:") && net.ParseIP(s) == nil {
		return "", ""
	}
	return strings.TrimSuffix(s, "."), port
}

// isLoopback reports whether a host is this machine by its name or address alone.
func isLoopback(host string) bool {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if host == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}
