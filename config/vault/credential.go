package vault

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"crewhost/config/secret"
)

// The kinds of credential.
const (
	StaticBearer = "static_bearer" // a token, as Authorization: Bearer
	Header       = "header"        // the value of a header
	OAuth        = "mcp_oauth"     // a token that expires and can be renewed
)

// How a client authenticates itself at a token endpoint (RFC 7591).
const (
	AuthNone  = "none"
	AuthBasic = "client_secret_basic"
	AuthPost  = "client_secret_post"
)

// A Credential is what a server wants to see.
type Credential struct {
	// Name is what tools ask for it by, in place of its URL; it may be empty.
	Name string
	Kind string
	URL  string    // of the server
	Set  time.Time // when it was put into the vault; for the vault to say

	// Header is the name of the header, of the kind header.
	Header string
	// Secret is what is sent: the bearer token, the value of the header, or the
	// access token, which may be empty where Refresh can bring one.
	Secret secret.Value

	// Of the kind mcp_oauth.
	Expiry  time.Time // of the access token; zero where nobody knows
	Refresh *Refresh  // nil: it can't be renewed
}

// Refresh is how an access token is renewed.
type Refresh struct {
	TokenEndpoint string
	ClientID      string
	Token         secret.Value
	Auth          string       // one of the constants; empty is none
	ClientSecret  secret.Value // of the other two
	Scopes        []string
}

// Secrets are the values that must not be seen.
func (c Credential) Secrets() []secret.Value {
	all := []secret.Value{c.Secret}
	if c.Refresh != nil {
		all = append(all, c.Refresh.Token, c.Refresh.ClientSecret)
	}
	return slices.DeleteFunc(all, secret.Value.IsZero)
}

// Sent is the header that carries the credential. It is not known to be fresh.
func (c Credential) Sent() (name string, value secret.Value) {
	if c.Kind == Header {
		return c.Header, c.Secret
	}
	return "Authorization", secret.New("Bearer " + c.Secret.Reveal())
}

// String names the credential by what may be seen of it.
func (c Credential) String() string { return c.Kind + " for " + c.URL }

// Bind returns the URL that a credential for a server is kept by: as
// [secret.Binding] has it, without a query, since host and path are what counts.
func Bind(raw string) (string, error) {
	bound, err := secret.Binding(raw)
	if err != nil {
		return "", err
	}
	bound, _, _ = strings.Cut(bound, "?")
	return strings.TrimRight(bound, "/"), nil
}

// own are headers that belong to HTTP or to the protocol, not to a credential.
func own(header string) bool {
	switch h := strings.ToLower(header); h {
	case "host", "connection", "content-length", "content-type", "content-encoding", "transfer-encoding", "te", "trailer",
		"upgrade", "keep-alive", "accept", "accept-encoding", "user-agent", "origin", "last-event-id", "expect", "traceparent":
		return true
	default:
		return strings.HasPrefix(h, "mcp-") || strings.HasPrefix(h, "proxy-") && h != "proxy-authorization"
	}
}

// check reports everything that is wrong with a credential whose URL is normalised.
func (c Credential) check() error {
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if err := checkURL(c.URL); err != nil {
		wrong("the url of the server %w", err)
	}
	if strings.ContainsFunc(c.Name, func(r rune) bool { return r <= ' ' || r == 0x7f }) || len(c.Name) > maxName {
		wrong("the name is not one word of at most %d bytes", maxName)
	}
	if c.Kind != OAuth && (c.Refresh != nil || !c.Expiry.IsZero()) {
		wrong("a credential of the kind %s is not renewed", c.Kind)
	}
	if c.Kind != Header && c.Header != "" {
		wrong("a credential of the kind %s has a header of its own", c.Kind)
	}
	switch c.Kind {
	case StaticBearer:
		checkToken(wrong, "token", c.Secret, false)
	case Header:
		switch {
		case !httpguts.ValidHeaderFieldName(c.Header):
			wrong("%q is not the name of a header", c.Header)
		case own(c.Header):
			wrong("the header %s belongs to the protocol", c.Header)
		}
		switch {
		case c.Secret.IsZero():
			wrong("the value of the header is empty")
		case !httpguts.ValidHeaderFieldValue(c.Secret.Reveal()):
			wrong("the value can't stand in a header: it has a line break or the like")
		}
	case OAuth:
		checkToken(wrong, "access token", c.Secret, c.Refresh != nil)
		if c.Refresh != nil {
			c.Refresh.check(wrong)
		}
	default:
		wrong("the kind %q is not known: %s, %s or %s", c.Kind, StaticBearer, Header, OAuth)
	}
	return errors.Join(errs...)
}

const (
	maxName   = 64       // of a credential, in bytes
	maxSecret = 64 << 10 // in bytes
)

func (r *Refresh) check(wrong func(string, ...any)) {
	if err := checkURL(r.TokenEndpoint); err != nil {
		wrong("the token endpoint %w", err)
	}
	if r.ClientID == "" {
		wrong("the client id is missing")
	}
	if r.Token.IsZero() {
		wrong("the refresh token is missing")
	}
	switch r.Auth {
	case "", AuthNone:
		if !r.ClientSecret.IsZero() {
			wrong("the client has a secret, and authenticates itself by %s: it takes %s or %s", AuthNone, AuthBasic, AuthPost)
		}
	case AuthBasic, AuthPost:
		if r.ClientSecret.IsZero() {
			wrong("the client authenticates itself by %s, and has no secret", r.Auth)
		}
	default:
		wrong("the authentication %q at the token endpoint is not known: %s, %s or %s", r.Auth, AuthNone, AuthBasic, AuthPost)
	}
	if i := slices.IndexFunc(r.Scopes, func(s string) bool { return s == "" || strings.ContainsAny(s, " \t\r\n\"\\") }); i >= 0 {
		wrong("%q is not one scope", r.Scopes[i])
	}
}

func checkToken(wrong func(string, ...any), what string, v secret.Value, mayMiss bool) {
	text := v.Reveal()
	switch {
	case text == "" && !mayMiss:
		wrong("the %s is empty", what)
	case len(text) > maxSecret:
		wrong("the %s has more than %d bytes", what, maxSecret)
	case strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }):
		wrong("the %s has a character that a token can't have: a space, a line break or the like", what)
	}
}

// checkURL reports why nothing secret may be sent to a URL. It does not repeat the
// URL.
func checkURL(raw string) error {
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Hostname() == "":
		return errors.New("is not a URL with a host")
	case u.User != nil:
		return errors.New("has a user or password in it")
	case u.Scheme == "http" && !loopback(u.Hostname()):
		return errors.New("is plain http: https is required, except on loopback")
	case u.Scheme != "http" && u.Scheme != "https":
		return errors.New("is not https")
	}
	return nil
}

// loopback reports whether a host is this machine, by its name or address alone.
func loopback(host string) bool {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
