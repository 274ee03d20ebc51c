package gateway

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"

	"crewhost/config/vault"
	"crewhost/mcp/admission"
)

// A Tool is one of the host's own tools that speaks HTTP.
type Tool struct {
	Name string // for the audit
	// Home is a URL of the settings, or one that the program itself knows, to whose
	// origin alone requests go: it may be as near as a server of the settings. Nil:
	// requests go wherever anybody may say, which is the public network, and what an
	// operator allows besides.
	Home *url.URL
	// Credentials are the names of those of the vault that may go with its requests: each
	// to the URL that it is bound to and below it, in place of what a model says of itself.
	Credentials []string
	// Authorize, if set, puts a credential of the settings into a request to Home.
	Authorize func(*http.Request) error
}

// Client returns a client for a tool. It follows redirects as a client does by itself:
// each is admitted, and a credential looked up, anew. Its errors don't say what a host
// resolved to.
func (g *Gateway) Client(t Tool) *http.Client {
	within := admission.Public
	if t.Home != nil {
		within = admission.Loopback
	}
	e := &errand{
		gateway: g, tool: t, warned: make(map[string]bool),
		base: g.cfg.Network.Transport(within), endpoints: g.cfg.Network.Transport(admission.Loopback),
	}
	g.mu.Lock()
	g.errands = append(g.errands, e)
	g.mu.Unlock()
	return &http.Client{Transport: e}
}

// An errand is the way of a tool's requests. It is an [http.RoundTripper].
type errand struct {
	gateway   *Gateway
	tool      Tool
	base      *admission.Transport
	endpoints *admission.Transport // that the operator named in the vault

	mu     sync.Mutex
	warned map[string]bool // names that the vault does not have
}

// CloseIdleConnections closes the connections that carry nothing.
func (e *errand) CloseIdleConnections() {
	e.base.CloseIdleConnections()
	e.endpoints.CloseIdleConnections()
}

// RoundTrip implements [http.RoundTripper].
func (e *errand) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := e.gateway.carry(req, Forward{Tool: e.tool.Name, Origin: originOf(req.URL)}, e.send)
	if err != nil {
		e.gateway.cfg.Logger.Info("a request of a tool was not answered", "tool", e.tool.Name, "origin", originOf(req.URL), "err", err)
		return nil, veiled(err)
	}
	resp.Body = &veiledBody{resp.Body}
	return resp, nil
}

func (e *errand) send(req *http.Request) (*http.Response, error) {
	refuse := func(err error) (*http.Response, error) {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, err
	}
	if e.tool.Home != nil && originOf(req.URL) != originOf(e.tool.Home) {
		return refuse(ErrElsewhere)
	}
	if err := e.base.Admits(req); err != nil { // before anything secret is looked for
		return refuse(err)
	}
	c, ok, err := e.credential(req)
	switch {
	case err != nil:
		return refuse(err)
	case ok:
		out := req.Clone(req.Context())
		name, _ := c.Sent()
		for _, header := range []string{"Authorization", "Cookie", name} {
			out.Header.Del(header)
		}
		lock := Lock{Name: e.tool.Name, URL: c.URL, Endpoints: e.endpoints, Rules: e.gateway.cfg.Network.Rules}
		return e.gateway.cfg.Keys.Over(lock, e.base).RoundTrip(out)
	case e.tool.Authorize != nil && e.tool.Home != nil:
		out := req.Clone(req.Context())
		if err := e.tool.Authorize(out); err != nil {
			return refuse(&Error{text: err.Error(), err: err})
		}
		return e.base.RoundTrip(out)
	}
	return e.base.RoundTrip(req)
}

// credential is what the vault has for a request: of several that cover its URL, that of
// the longest path. What another origin redirected to has none: no page sends anybody's
// credential anywhere.
func (e *errand) credential(req *http.Request) (found vault.Credential, ok bool, err error) {
	keys := e.gateway.cfg.Keys
	if keys == nil || len(e.tool.Credentials) == 0 || strayed(req) {
		return vault.Credential{}, false, nil
	}
	for _, name := range e.tool.Credentials {
		c, known, err := keys.vault.Named(req.Context(), name)
		switch {
		case err != nil:
			return vault.Credential{}, false, &Error{text: "the vault can't be read, in which its credential may be", err: err}
		case known && covers(c.URL, req.URL):
			if len(c.URL) > len(found.URL) {
				found, ok = c, true
			}
		case e.tool.Home != nil && !known:
			err := fmt.Errorf("the vault has no credential %q, which the settings name for it", name)
			return vault.Credential{}, false, &Error{text: err.Error(), err: err}
		case e.tool.Home != nil:
			err := fmt.Errorf("the credential %q, which the settings name for it, is bound to another URL", name)
			return vault.Credential{}, false, &Error{text: err.Error(), err: err}
		case !known:
			e.miss(req.Context(), name)
		}
	}
	return found, ok, nil
}

// miss warns of a name that the vault does not have, once.
func (e *errand) miss(ctx context.Context, name string) {
	e.mu.Lock()
	before := e.warned[name]
	e.warned[name] = true
	e.mu.Unlock()
	if !before {
		e.gateway.cfg.Logger.WarnContext(ctx, "the settings name a credential that the vault does not have; requests go without it", "tool", e.tool.Name, "credential", name)
	}
}

// strayed reports whether another origin has redirected to the request.
func strayed(req *http.Request) bool {
	origin := originOf(req.URL)
	for before := req.Response; before != nil && before.Request != nil; before = before.Request.Response {
		if originOf(before.Request.URL) != origin {
			return true
		}
	}
	return false
}

// covers reports whether a URL is that which a credential is bound to, or below it. A
// path that a server may read as another one is below nothing.
func covers(bound string, u *url.URL) bool {
	b, err := url.Parse(bound)
	if err != nil || u.User != nil || originOf(b) != originOf(u) {
		return false
	}
	above := strings.TrimRight(b.Path, "/")
	if u.Path != above && !strings.HasPrefix(u.Path, above+"/") {
		return false
	}
	if above == "" {
		return true
	}
	// %2F and %5C are characters here, and separators for some servers.
	plain := strings.ToLower(u.EscapedPath())
	return !slices.ContainsFunc([]string{`\`, "%2f", "%5c", "%25", ";", "//"}, func(s string) bool { return strings.Contains(plain, s) }) &&
		path.Clean(u.Path) == strings.TrimSuffix(u.Path, "/")
}
