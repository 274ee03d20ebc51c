package mcp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"crewhost/config"
	"crewhost/tools"
)

const (
	dialLimit   = 10 * time.Second // to connect to one address
	maxHeader   = 64 << 10
	maxRedirect = 5
)

// A reach is all that the HTTP of one server can get to: one origin, without
// cookies, with the configured headers, and through no redirect that leads
// elsewhere (W4, K39). Every request of every transport goes through one.
type reach struct {
	target    *url.URL
	origin    string
	header    http.Header // the configured headers
	next      http.RoundTripper
	transport *http.Transport // where next ends
}

// newReach makes the reach of a server; nothing is sent yet. Allowed says which
// addresses the settings allow, authorized adds to each request what authorizes it.
func newReach(server config.Server, allowed func(*url.URL) bool, authorized func(http.RoundTripper) http.RoundTripper) (*reach, error) {
	target, err := url.Parse(server.URL.Reveal())
	if err != nil {
		return nil, faultf(tools.CodeInitializationFailed, "url %s is not a URL", server.URL)
	}
	if err := admissible(target); err != nil {
		return nil, err
	}
	if !allowed(target) {
		return nil, faultf(tools.CodeInitializationFailed, "its host %s is not one of mcp.allowed_hosts", target.Host)
	}
	header := make(http.Header, len(server.Headers))
	for _, v := range server.Headers {
		header.Set(v.Name, v.Value.Reveal())
	}
	transport := newTransport()
	return &reach{target: target, origin: origin(target), header: header, next: authorized(transport), transport: transport}, nil
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

// admissible reports why a URL may not be used (W4).
func admissible(u *url.URL) error {
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return faultf(tools.CodeInitializationFailed, "the scheme of its url is %q, not https or http", u.Scheme)
	case u.Hostname() == "":
		return faultf(tools.CodeInitializationFailed, "its url names no host")
	case u.Scheme == "http" && !loopback(u.Hostname()):
		return faultf(tools.CodeInitializationFailed, "its url is plain http to %s: https is required, except on loopback", u.Hostname())
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

// origin is scheme, host and port of a URL, as they are compared and shown.
func origin(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

// newTransport is an HTTP transport that reaches loopback directly, on whichever
// family the server listens (K47).
func newTransport() *http.Transport {
	dialer := &net.Dialer{Timeout: dialLimit}
	return &http.Transport{
		Proxy: func(r *http.Request) (*url.URL, error) {
			if loopback(r.URL.Hostname()) {
				return nil, nil
			}
			return http.ProxyFromEnvironment(r)
		},
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			host, port, err := net.SplitHostPort(address)
			if err != nil || !strings.EqualFold(host, "localhost") {
				return dialer.DialContext(ctx, network, address)
			}
			var tried []error
			for _, ip := range []string{"127.0.0.1", "::1"} {
				conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(ip, port))
				if err == nil {
					return conn, nil
				}
				tried = append(tried, err)
			}
			return nil, errors.Join(tried...)
		},
		ForceAttemptHTTP2:      true,
		TLSHandshakeTimeout:    dialLimit,
		MaxIdleConnsPerHost:    8,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: maxHeader,
	}
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
		f.detail += " (it wants credentials, or refuses those it got)"
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
