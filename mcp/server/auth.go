package server

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
)

// maxBearer bounds a token in bytes, before anything is computed from it.
const maxBearer = 16 << 10

// identity is who somebody was found to be. Two are the same caller only if all
// of it is the same: a token's name and a subject may look alike.
type identity struct {
	name   string // for the log; empty: nobody was asked
	issuer string // of a name that came by OAuth
	kind   string // what the issuer names so: subject or client; empty for the name of a token
}

// principal is the identity as one text, the same for nobody else: neither an
// issuer nor a kind has a # in it.
func (id identity) principal() string { return id.issuer + "#" + id.kind + "#" + id.name }

type identityKey struct{}

// CallerName returns the name of whoever sent the request that ctx belongs to:
// that of a [Token], or the subject of an OAuth token. It is empty on stdio and
// where nobody is asked. It is for logs, and for a tool's own log.
func CallerName(ctx context.Context) string {
	id, _ := ctx.Value(identityKey{}).(identity)
	return id.name
}

// vouched has the SDK know who sent a request that goes on to next: it binds a
// session to whoever began it.
func vouched(who identity, next http.Handler) http.Handler {
	return auth.RequireBearerToken(
		func(context.Context, string, *http.Request) (*auth.TokenInfo, error) {
			return &auth.TokenInfo{UserID: who.principal()}, nil
		},
		&auth.RequireBearerTokenOptions{AllowMissingExpiration: true}, // judged before
	)(next)
}

// authenticator knows who may call.
type authenticator struct {
	tokens   []Token
	resource *ProtectedResource // nil: no OAuth
	metadata string             // where the resource's metadata is
	keys     map[string]*keySet // by issuer
}

func newAuthenticator(cfg HTTPConfig) *authenticator {
	a := &authenticator{tokens: cfg.Tokens, resource: cfg.OAuth}
	if a.resource != nil {
		a.metadata = metadataURL(a.resource.Resource)
		a.keys = map[string]*keySet{}
		for _, i := range a.resource.Issuers {
			a.keys[i.URL] = newKeySet(i)
		}
	}
	return a
}

// open reports whether nobody is asked.
func (a *authenticator) open() bool { return len(a.tokens) == 0 && a.resource == nil }

// A denial is why somebody is not let in, as an answer says it.
type denial struct {
	status int
	code   string // of RFC 6750; empty where no token came at all
	reason string
}

func (d *denial) Error() string { return d.reason }

func invalidToken(format string, args ...any) *denial {
	return &denial{http.StatusUnauthorized, "invalid_token", fmt.Sprintf(format, args...)}
}

// authenticate finds out who sent a request with these headers. The error is a
// *denial, or [errKeys]. It holds until then, or for ever where that is zero.
func (a *authenticator) authenticate(ctx context.Context, h http.Header) (who identity, until time.Time, err error) {
	if a.open() {
		return identity{}, until, nil
	}
	token, err := bearer(h.Values("Authorization"))
	if err != nil {
		return identity{}, until, err
	}
	if name, ok := a.named(token); ok {
		return identity{name: name}, until, nil
	}
	if a.resource == nil {
		return identity{}, until, invalidToken("the token is not known")
	}
	return a.verify(ctx, token)
}

// named compares the token with each of those there are, in a time that tells
// nothing of how much of one was right, or which.
func (a *authenticator) named(token string) (string, bool) {
	sum := sha256.Sum256([]byte(token))
	found := -1
	for i := range a.tokens {
		found = subtle.ConstantTimeSelect(subtle.ConstantTimeCompare(sum[:], a.tokens[i].sum[:]), i, found)
	}
	if found < 0 {
		return "", false
	}
	return a.tokens[found].Name, true
}

// bearer reads the one Authorization header of a request.
func bearer(values []string) (string, error) {
	if len(values) == 0 {
		return "", &denial{status: http.StatusUnauthorized, reason: "there is no Authorization header"}
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	token = strings.TrimLeft(token, " ")
	switch {
	case len(values) > 1:
		return "", &denial{http.StatusBadRequest, "invalid_request", "there is more than one Authorization header"}
	case !strings.EqualFold(scheme, "Bearer"):
		return "", &denial{status: http.StatusUnauthorized, reason: "the Authorization header has no bearer token"}
	case len(token) > maxBearer || !tokenPattern.MatchString(token):
		return "", invalidToken("the token is malformed")
	}
	return token, nil
}

// challenge is what the answer to a denial says of how to be let in.
func (a *authenticator) challenge(d *denial) string {
	params := []string{}
	if d.code != "" {
		params = append(params, "error="+quoted(d.code), "error_description="+quoted(d.reason))
	}
	if a.resource != nil {
		if len(a.resource.Scopes) > 0 {
			params = append(params, "scope="+quoted(strings.Join(a.resource.Scopes, " ")))
		}
		params = append(params, "resource_metadata="+quoted(a.metadata))
	}
	if len(params) == 0 {
		return `Bearer realm="mcp"`
	}
	return "Bearer " + strings.Join(params, ", ")
}

var unquotable = regexp.MustCompile(`[^\x20-\x21\x23-\x5B\x5D-\x7E]`)

// quoted is s as a quoted string of RFC 6750, which has neither quotes nor
// backslashes in it.
func quoted(s string) string { return `"` + unquotable.ReplaceAllString(s, "'") + `"` }

// deny answers with a denial.
func (a *authenticator) deny(w http.ResponseWriter, err error) {
	var d *denial
	if !errors.As(err, &d) {
		d = &denial{status: http.StatusServiceUnavailable, reason: "tokens can't be checked now"}
	}
	switch d.status {
	case http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", retryAfter)
	default:
		w.Header().Set("WWW-Authenticate", a.challenge(d))
	}
	refusal{status: d.status, code: CodeUnauthorized, message: d.reason}.reply(w)
}

const metadataPath = "/.well-known/oauth-protected-resource"

// metadataURL is where the metadata of a resource is, by RFC 9728: the
// well-known part goes between host and path.
func metadataURL(resource string) string {
	u, err := url.Parse(resource)
	if err != nil {
		return ""
	}
	path := strings.TrimSuffix(u.Path, "/")
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: metadataPath + path, RawQuery: u.RawQuery}).String()
}

// metadataPaths are the paths where the metadata is served: at the root, and
// where the endpoint's path and the resource's say.
func (a *authenticator) metadataPaths(endpoint string) []string {
	paths := []string{metadataPath, metadataPath + strings.TrimSuffix(endpoint, "/")}
	if u, err := url.Parse(a.metadata); err == nil {
		paths = append(paths, u.Path)
	}
	return paths
}

// serveMetadata says whose tokens are taken (RFC 9728).
func (a *authenticator) serveMetadata(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		methodNotAllowed(w, "GET, HEAD")
		return
	}
	issuers := make([]string, len(a.resource.Issuers))
	for i, issuer := range a.resource.Issuers {
		issuers[i] = issuer.URL
	}
	w.Header().Set("Cache-Control", "max-age=300")
	answerJSON(w, http.StatusOK, struct {
		Resource string   `json:"resource"`
		Servers  []string `json:"authorization_servers"`
		Scopes   []string `json:"scopes_supported,omitempty"`
		Methods  []string `json:"bearer_methods_supported"`
	}{a.resource.Resource, issuers, a.resource.Scopes, []string{"header"}})
}
