package mcp

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	"crewhost/config"
	"crewhost/mcp/admission"
	"crewhost/tools"
)

const maxRedirect = 5

// A Route is where the requests for one server over HTTP end (A6).
type Route struct {
	// Server carries the requests to the server itself.
	Server http.RoundTripper
	// OAuth carries those to the OAuth endpoints that the server leads to. Nil: who
	// is calling is none of the client's business, and the route's own.
	OAuth http.RoundTripper
	// Rules are what the operator allows beyond what is admitted anyway.
	Rules admission.Rules
}

// direct is the route of a server of the settings where nothing stands between.
func direct(target *url.URL) Route {
	own, led := admission.Config{}.For(target, admission.Loopback)
	return Route{Server: own, OAuth: led}
}

// routeOf is the route of a server. A URL that is none is the reach's to report.
func routeOf(server config.Server, route func(config.Server) Route) Route {
	if route != nil {
		if r := route(server); r.Server != nil {
			return r
		}
	}
	target, err := url.Parse(server.URL.Reveal())
	if err != nil {
		target = new(url.URL)
	}
	return direct(target)
}

// A reach is all that the HTTP of one server can get to: one origin, without
// cookies, with the configured headers, and through no redirect that leads
// elsewhere (W4, K39). Every request of every transport goes through one.
type reach struct {
	target *url.URL
	origin string
	header http.Header // the configured headers
	next   http.RoundTripper
	ends   http.RoundTripper // where next does
}

// newReach makes the reach of a server; nothing is sent yet. Allowed says which
// addresses the settings allow, authorized adds to each request what authorizes it
// before the route takes it.
func newReach(server config.Server, allowed func(*url.URL) bool, route Route, authorized func(http.RoundTripper) http.RoundTripper) (*reach, error) {
	target, err := url.Parse(server.URL.Reveal())
	if err != nil {
		return nil, faultf(tools.CodeInitializationFailed, "url %s is not a URL", server.URL)
	}
	if err, refused := errors.AsType[*admission.Error](route.Rules.URL(target, admission.Loopback)); refused {
		return nil, faultf(tools.CodeInitializationFailed, "its url is %s", err.Reason)
	}
	if server.Agents == nil && !allowed(target) { // else it is the route's to judge
		return nil, faultf(tools.CodeInitializationFailed, "its host %s is not one of mcp.allowed_hosts", target.Host)
	}
	header := make(http.Header, len(server.Headers))
	for _, v := range server.Headers {
		header.Set(v.Name, v.Value.Reveal())
	}
	return &reach{target: target, origin: origin(target), header: header, next: authorized(route.Server), ends: route.Server}, nil
}

// close drops the connections that carry nothing.
func (r *reach) close() {
	if t, ok := r.ends.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
}

// client is an HTTP client that sends by way of next, which ends here.
func (r *reach) client(next http.RoundTripper) *http.Client {
	return &http.Client{Transport: next, CheckRedirect: r.redirect}
}

// RoundTrip implements http.RoundTripper.
func (r *reach) RoundTrip(req *http.Request) (*http.Response, error) {
	return r.send(req.Clone(req.Context()))
}

// send is RoundTrip for a request that is the caller's to change.
func (r *reach) send(req *http.Request) (*http.Response, error) {
	if same := req.URL.Scheme == r.target.Scheme && req.URL.Host == r.target.Host; !same && origin(req.URL) != r.origin {
		return nil, faultf(tools.CodeTransportFailed, "it leads to another origin, %s", origin(req.URL))
	}
	for name, values := range r.header {
		req.Header[name] = values
	}
	return r.next.RoundTrip(req)
}

// redirect decides about a redirect: within the origin, and with the same
// method, it is followed.
func (r *reach) redirect(req *http.Request, via []*http.Request) error {
	switch {
	case origin(req.URL) != r.origin:
		target := origin(req.URL)
		if req.URL.Scheme != "http" && req.URL.Scheme != "https" {
			target = req.URL.Scheme + ":"
		}
		return faultf(tools.CodeTransportFailed, "it redirects to another origin, %s, where no header or message is sent", target)
	case req.Method != via[0].Method:
		return faultf(tools.CodeTransportFailed, "it redirects to %s, which cannot be followed with a message: give that address in the settings", origin(req.URL)+req.URL.EscapedPath())
	case len(via) >= maxRedirect:
		return faultf(tools.CodeTransportFailed, "it redirects for ever")
	}
	return nil
}

// origin is scheme, host and port of a URL, as they are compared and shown.
func origin(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

// refused is the fault of an answer with an HTTP status that is none of success.
// Answers that can't come from an endpoint of Streamable HTTP say that the
// server has none (W3).
func refused(resp *http.Response, body string) *fault {
	f := &fault{code: tools.CodeTransportFailed, status: resp.StatusCode}
	f.detail = fmt.Sprintf("HTTP status %d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
	switch resp.StatusCode {
	case http.StatusUnauthorized:
		f.code = tools.CodeUnauthorized
		f.detail += " (it wants credentials, or refuses those it got; crewhost vault set keeps some for its URL)"
	case http.StatusForbidden:
		f.code = tools.CodeForbidden
		f.detail += " (it does not allow this to the credentials it got)"
	case http.StatusNotFound:
		if resp.Request == nil || resp.Request.Header.Get(sessionHeader) == "" {
			f.detail += " (wrong URL?)"
		}
		f.unsupported = true
	case http.StatusBadRequest, http.StatusMethodNotAllowed, http.StatusNotAcceptable, http.StatusUnsupportedMediaType:
		f.unsupported = true
	}
	if body != "" {
		f.detail += ": " + body
	}
	return f
}
