package mcp

import (
	"context"
	"net/http"
	"strings"
	"time"

	"crewhost/config"
	"crewhost/config/secret"
	"crewhost/mcp/oauth"
	"crewhost/tools"
)

// KeyVariable is the variable of the environment that encrypts tokens in files,
// an age identity. Where it is unset, the folder of the files has a key of its own.
const KeyVariable = "CREWHOST_TOKEN_KEY"

// tokenStore opens the store of the settings. Nothing is read before a server
// asks for tokens.
func tokenStore(cfg config.MCP, environ []string) (oauth.Store, error) {
	var key secret.Value
	for _, line := range environ {
		if value, ok := strings.CutPrefix(line, KeyVariable+"="); ok {
			key = secret.New(value)
		}
	}
	return oauth.Open(cfg.TokenStore, cfg.TokenDir, key)
}

// equip gives the session its route, and has it authorize its requests, unless the
// settings give it an Authorization header, which is then the whole of it, or that is
// the route's own business. A URL that is none is the endpoint's to report.
func (s *session) equip(store oauth.Store) {
	if s.route = routeOf(s.server, s.opts.Route); s.route.OAuth == nil {
		return
	}
	for _, h := range s.server.Headers {
		if strings.EqualFold(h.Name, "Authorization") {
			return
		}
	}
	a, err := oauth.New(oauth.Config{
		Name: s.server.Name, URL: s.server.URL.Reveal(), Settings: s.server.OAuth,
		Secrets: []secret.Source{
			secret.Env(s.opts.Environ), secret.File{Logger: s.opts.Logger},
			secret.Command{Environ: append([]string{}, s.opts.Environ...)}, // nil would be this process's
		},
		Store: store, Redactor: s.opts.Redactor, Allowed: s.allows,
		Base: s.route.OAuth, Rules: s.route.Rules, Browse: s.opts.Browse, Warn: s.warn, ClientName: s.opts.Name,
	})
	if err == nil {
		s.tokens = a
	}
}

// authorized is the round trip of the server over base.
func (s *session) authorized(base http.RoundTripper) http.RoundTripper {
	if s.tokens != nil {
		base = s.tokens.Over(base)
	}
	return authorizing{base} // the route may authorize, too
}

// authorizing gives the errors of authorization their code.
type authorizing struct{ next http.RoundTripper }

func (a authorizing) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := a.next.RoundTrip(req)
	if err != nil && oauth.Denied(err) {
		return nil, &fault{code: tools.CodeUnauthorized, detail: err.Error(), err: err}
	}
	return resp, err
}

// A Login is what a login gave, without what is secret.
type Login struct {
	Issuer string    // the authorization server
	Scopes []string  // granted
	Expiry time.Time // of the first token; zero where it is not known
	Renews bool      // whether it is renewed without a login
	Store  string    // where the tokens are, such as "the keyring"
}

// ErrOpen says that a server takes requests without a token.
var ErrOpen = oauth.ErrOpen

// LogIn has a person log in to a server of the settings, by opts.Browse, and stores
// the tokens. It ends with ctx. The error is a *tools.Error, around [ErrOpen] where
// there is nothing to log in for.
func LogIn(ctx context.Context, cfg config.MCP, server string, opts Options) (Login, error) {
	s, store, err := forLogin(cfg, server, opts)
	if err != nil {
		return Login{}, err
	}
	r, err := s.tokens.Login(ctx)
	if err != nil {
		code := tools.CodeTransportFailed
		if oauth.Denied(err) {
			code = tools.CodeUnauthorized
		}
		return Login{}, s.wrap(code, cause(err).Error(), err)
	}
	scopes := make([]string, len(r.Scopes))
	for i, scope := range r.Scopes {
		scopes[i] = s.masks.line(scope, maxName)
	}
	return Login{Issuer: s.masks.line(r.Issuer, maxDetail), Scopes: scopes, Expiry: r.Expiry, Renews: !r.Refresh.IsZero(), Store: store.String()}, nil
}

// LogOut forgets the tokens of a server; ok is false where none were stored.
func LogOut(ctx context.Context, cfg config.MCP, server string, opts Options) (ok bool, err error) {
	s, _, err := forLogin(cfg, server, opts)
	if err != nil {
		return false, err
	}
	if ok, err = s.tokens.Logout(ctx); err != nil {
		return false, s.wrap(tools.CodeTransportFailed, err.Error(), err)
	}
	return ok, nil
}

// forLogin is the session of a server that one can log in to. It is never connected.
func forLogin(cfg config.MCP, server string, opts Options) (*session, oauth.Store, error) {
	opts = opts.complete()
	store, err := tokenStore(cfg, opts.Environ)
	if err != nil {
		return nil, nil, err
	}
	for _, one := range cfg.Servers {
		if one.Name != server {
			continue
		}
		s := newSession(one, cfg, opts)
		if !one.Transport.Remote() {
			return nil, nil, s.wrap(tools.CodeInitializationFailed, "it is started, not called: there is nobody to log in with", nil)
		}
		s.equip(store)
		if _, err := newReach(s.server, s.allows, s.route, s.authorized); err != nil {
			return nil, nil, s.wrap(tools.CodeInitializationFailed, err.Error(), err)
		}
		if s.tokens == nil {
			return nil, nil, s.wrap(tools.CodeInitializationFailed, "its settings have an Authorization header, which takes the place of a login", nil)
		}
		return s, store, nil
	}
	return nil, nil, &tools.Error{Code: tools.CodeTransportFailed, Server: server, Detail: "the settings declare no such MCP server"}
}
