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

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"crewhost/config"
	"crewhost/tools"
)

const (
	dialLimit   = 10 * time.Second // to connect to one address
	maxHeader   = 64 << 10
	maxRedirect = 5
)

// An endpoint speaks Streamable HTTP with one server. It is the link of HTTP
// servers: the SDK's transport over an HTTP client of its own, which keeps no
// cookies, sends the configured headers to the configured origin alone, follows no
// redirect to another one (K39), and mends the answers before the SDK sees them.
type endpoint struct {
	sdk.StreamableClientTransport
	transport *http.Transport
	mender    *mender
}

// newEndpoint makes the link of an HTTP server; nothing is sent yet.
func newEndpoint(server config.Server, shutdown time.Duration, limit int, masks *masks, authorized func(http.RoundTripper) http.RoundTripper) (*endpoint, error) {
	target, err := url.Parse(server.URL.Reveal())
	if err != nil {
		return nil, faultf(tools.CodeInitializationFailed, "url %s is not a URL", server.URL)
	}
	if err := admissible(target); err != nil {
		return nil, err
	}
	header := make(http.Header, len(server.Headers))
	for _, v := range server.Headers {
		header.Set(v.Name, v.Value.Reveal())
	}
	e := &endpoint{transport: newTransport()}
	e.mender = &mender{
		next:     authorized(e.transport),
		origin:   origin(target),
		header:   header,
		shutdown: shutdown,
		limit:    int64(limit),
		redact:   masks.redact,
		hurry:    make(chan struct{}),
	}
	e.StreamableClientTransport = sdk.StreamableClientTransport{
		Endpoint: target.String(),
		HTTPClient: &http.Client{
			Transport:     e.mender,
			CheckRedirect: e.mender.redirect,
		},
		// Zero would mean no limit at all. The mender's own limit is the lower
		// one and fails a request, not the session.
		MaxEventSize: 2*limit + maxToken*8,
	}
	return e, nil
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

// redirect decides about a redirect: within the origin, and with the same
// method, it is followed.
func (m *mender) redirect(req *http.Request, via []*http.Request) error {
	switch {
	case origin(req.URL) != m.origin:
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

// fault is nil: that a connection fails is no fact about the next one.
func (e *endpoint) fault() error { return nil }

// abandon cuts farewells short.
func (e *endpoint) abandon() { e.mender.hurried.Do(func() { close(e.mender.hurry) }) }

// speak gives the requests that follow the header of another version.
func (e *endpoint) speak(version string) { e.mender.version.Store(&version) }

// end drops the connections. The SDK's session has said farewell before.
func (e *endpoint) end() error {
	e.transport.CloseIdleConnections()
	return nil
}

// refused is the fault of an answer with an HTTP status that is none of success.
func refused(resp *http.Response, body string) *fault {
	what := fmt.Sprintf("HTTP status %d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
	if body != "" {
		what += ": " + body
	}
	return &fault{code: tools.CodeTransportFailed, detail: what}
}
