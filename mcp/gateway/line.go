package gateway

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"crewhost/config"
	"crewhost/config/secret"
	"crewhost/mcp/admission"
)

// A line leads to one server: what goes over it is admitted, has the server's
// credential, and is told to the audit. It is an [http.RoundTripper] for requests to
// the origin of the server, and no other.
type line struct {
	gateway *Gateway
	name    string
	run     string   // empty for a server of the settings
	agents  []string // likewise nil
	target  *url.URL
	bound   string // the same as credentials are bound to it; empty where it is no URL
	origin  string

	own, led  *admission.Transport
	endpoints *admission.Transport // that the operator named in the vault
	keyed     http.RoundTripper    // own, with the credential of the target
}

// line makes the line to a server. A URL that is none is for each request to report.
func (g *Gateway) line(server config.Server, within admission.Realm) *line {
	text := server.URL.Reveal()
	target, err := url.Parse(text)
	if err != nil {
		target = new(url.URL)
	}
	l := &line{gateway: g, name: server.Name, target: target, origin: originOf(target)}
	l.bound, _ = secret.Binding(text)
	l.own, l.led = g.cfg.Network.For(target, within)
	l.endpoints = g.cfg.Network.Transport(admission.Loopback)
	l.keyed = l.over(text)
	return l
}

// over is the way to the server with the credential that is bound to a URL.
func (l *line) over(bound string) http.RoundTripper {
	return l.gateway.cfg.Keys.Over(Lock{Name: l.name, URL: bound, Endpoints: l.endpoints, Rules: l.gateway.cfg.Network.Rules}, l.own)
}

// CloseIdleConnections closes the connections that carry nothing.
func (l *line) CloseIdleConnections() {
	l.own.CloseIdleConnections()
	l.led.CloseIdleConnections()
	l.endpoints.CloseIdleConnections()
}

// RoundTrip implements [http.RoundTripper].
func (l *line) RoundTrip(req *http.Request) (*http.Response, error) {
	return l.gateway.carry(req, Forward{Run: l.run, Agents: l.agents, Server: l.name, Origin: l.originOf(req.URL)}, l.send)
}

// carry sends a request, and tells the audit what became of it.
func (g *Gateway) carry(req *http.Request, told Forward, send func(*http.Request) (*http.Response, error)) (*http.Response, error) {
	told.At, told.Method, told.Sent = g.cfg.Now(), req.Method, req.ContentLength
	f := &forward{told: told, began: time.Now()}
	ctx := req.Context()
	f.tell = func() { g.tell(context.WithoutCancel(ctx), f.told) }
	resp, err := send(req.WithContext(context.WithValue(ctx, usedKey{}, &f.told)))
	if err != nil {
		f.end(err)
		return nil, err
	}
	f.told.Status = resp.StatusCode
	f.body, resp.Body = resp.Body, f
	return resp, nil
}

// send sends a request by the way that has its credential. A redirect that a client
// follows is known by the answer that it follows.
func (l *line) send(req *http.Request) (*http.Response, error) {
	refuse := func(err error) (*http.Response, error) {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, err
	}
	if l.originOf(req.URL) != l.origin || req.Response != nil && l.elsewhere(req.URL) {
		return refuse(ErrElsewhere)
	}
	if allowed := l.gateway.cfg.Allowed; allowed != nil && !allowed(req.URL) {
		return refuse(ErrNotAllowed)
	}
	way := l.keyed
	if req.Response != nil {
		if bound, err := secret.Binding(req.URL.String()); err != nil || bound != l.bound {
			way = l.over(req.URL.String())
		}
	}
	return way.RoundTrip(req)
}

// elsewhere reports whether a redirect leads away from the server.
func (l *line) elsewhere(to *url.URL) bool { return l.originOf(to) != l.origin || to.User != nil }

// refuse tells of a request that a redirect asked for, and that is not made.
func (l *line) refuse(req *http.Request, to *url.URL) {
	l.gateway.tell(context.WithoutCancel(req.Context()), Forward{
		At: l.gateway.cfg.Now(), Run: l.run, Agents: l.agents, Server: l.name,
		Origin: originOf(to), Method: req.Method, Err: ErrElsewhere,
	})
}

// originOf is the origin of a URL, which is spelled like the server's as a rule.
func (l *line) originOf(u *url.URL) string {
	if u.Scheme == l.target.Scheme && u.Host == l.target.Host {
		return l.origin
	}
	return originOf(u)
}

// Refusals of the gateway's own.
var (
	// ErrElsewhere says that a request was for another origin than the server's, or
	// redirected to another user of it.
	ErrElsewhere = errors.New("it leads to another origin, where nothing is sent")
	// ErrNotAllowed says that the settings' list of hosts lacks the server's.
	ErrNotAllowed = errors.New("its host is not one of mcp.allowed_hosts")
)

// originOf is scheme, host and port of a URL.
func originOf(u *url.URL) string {
	text, err := secret.Binding((&url.URL{Scheme: u.Scheme, Host: u.Host}).String())
	if err != nil {
		return ""
	}
	return text
}

// usedKey is what a request's context keeps its Forward by, for who puts the
// credential in.
type usedKey struct{}

// forward is the body of an answer on its way, and what is told of it in the end.
type forward struct {
	body     io.ReadCloser
	received atomic.Int64
	told     Forward
	began    time.Time
	tell     func()
	once     sync.Once
}

// Read implements [io.Reader].
func (f *forward) Read(p []byte) (int, error) {
	n, err := f.body.Read(p)
	f.received.Add(int64(n))
	if err != nil {
		f.end(err)
	}
	return n, err
}

// Close implements [io.Closer].
func (f *forward) Close() error {
	err := f.body.Close()
	f.end(nil)
	return err
}

// end tells what became of the request, once.
func (f *forward) end(err error) {
	f.once.Do(func() {
		if errors.Is(err, io.EOF) {
			err = nil
		}
		f.told.Received, f.told.Took, f.told.Err = f.received.Load(), time.Since(f.began), err
		f.tell()
	})
}

// tell tells the log and the audit of a request.
func (g *Gateway) tell(ctx context.Context, f Forward) {
	if log := g.cfg.Logger; log.Enabled(ctx, slog.LevelDebug) {
		attrs := []any{"server", f.Server, "origin", f.Origin, "method", f.Method, "status", f.Status, "took", f.Took}
		if f.Tool != "" {
			attrs[0], attrs[1] = "tool", f.Tool
		}
		if f.Err != nil {
			attrs = append(attrs, "err", f.Err)
		}
		log.DebugContext(ctx, "forwarded", attrs...)
	}
	if g.cfg.Audit != nil {
		g.cfg.Audit(ctx, f)
	}
}
