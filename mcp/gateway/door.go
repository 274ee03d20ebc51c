package gateway

import (
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"crewhost/config"
)

// host is the one of the addresses that entries have. It is nobody's (RFC 6761).
const host = "gateway.invalid"

const maxRedirects = 5

// address is where an agent's side finds a server that was entered.
func address(run, server string) string {
	return (&url.URL{Scheme: "https", Host: host}).JoinPath(url.PathEscape(run), url.PathEscape(server)).String()
}

// A door is the agents' side of the gateway: it knows the name of a server, and shows a
// pass with each request.
type door struct {
	gateway *Gateway
	at      place
	agents  []string

	mu       sync.Mutex
	messages []*url.URL // the addresses for messages that the server gave, the last ones
	first    int        // the number of the first of them
}

// door returns the door for an entry.
func (g *Gateway) door(server config.Server) *door {
	d := &door{gateway: g, agents: server.Agents, at: place{server: server.Name}}
	if u, err := url.Parse(server.URL.Reveal()); err == nil && u.Host == host {
		run, _, _ := strings.Cut(strings.TrimPrefix(u.EscapedPath(), "/"), "/")
		d.at.run, _ = url.PathUnescape(run)
	}
	return d
}

// RoundTrip implements [http.RoundTripper].
func (d *door) RoundTrip(req *http.Request) (*http.Response, error) {
	c := pass{Run: d.at.run, Agents: d.agents, Server: d.at.server, Expiry: d.gateway.cfg.Now().Add(passLife).Unix()}
	out := req.Clone(req.Context())
	out.Header.Set("Authorization", "Bearer "+d.gateway.passes.issue(c))
	resp, err := d.gateway.serve(out, d)
	if err != nil {
		return nil, err
	}
	resp.Request = req
	return resp, nil
}

// CloseIdleConnections closes the connections that carry nothing.
func (d *door) CloseIdleConnections() {
	if l, ok := d.gateway.at(d.at); ok {
		l.CloseIdleConnections()
	}
}

// serve forwards a request that came through a door. It may go where its pass says.
func (g *Gateway) serve(req *http.Request, d *door) (*http.Response, error) {
	refuse := func(err error) (*http.Response, error) {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, &Error{text: "the gateway refuses the pass: " + err.Error(), err: err}
	}
	text, _ := strings.CutPrefix(req.Header.Get("Authorization"), "Bearer ")
	c, err := g.passes.read(text, g.cfg.Now())
	if err != nil {
		return refuse(err)
	}
	at, rest := where(req.URL)
	l, ok := g.at(at)
	if !ok || !c.opens(at, l) {
		return refuse(errOther)
	}
	to, ok := d.target(l, rest)
	if !ok {
		return refuse(errOther)
	}
	out := req.Clone(req.Context())
	out.Header.Del("Authorization")
	out.Header.Del("Cookie")
	out.URL, out.Host, out.Response = to, "", nil
	resp, err := l.follow(out)
	if err != nil {
		g.cfg.Logger.Info("a request of an agent was not answered", "server", l.name, "origin", l.origin, "err", err)
		return nil, veiled(err)
	}
	base := to // of an address for messages: where the stream is in the end
	if resp.Request != nil {
		base = resp.Request.URL
	}
	resp.Header, resp.Trailer, resp.TLS = shown(resp.Header), nil, nil
	resp.Body = &veiledBody{resp.Body}
	if resp.StatusCode >= http.StatusBadRequest {
		resp.Body = newPage(resp.Body, l.target)
		resp.ContentLength = -1
		resp.Header.Del("Content-Length")
	}
	if rest == "" && req.Method == http.MethodGet && isStream(resp) {
		resp.Body = newAnnounced(resp.Body, func(data string) (string, error) { return d.announce(l, base, data) })
		resp.ContentLength = -1
		resp.Header.Del("Content-Length")
	}
	return resp, nil
}

// where takes the address of an entry, or below it, apart.
func where(u *url.URL) (at place, rest string) {
	if u.Scheme != "https" || u.Host != host {
		return place{}, ""
	}
	parts := strings.SplitN(strings.TrimPrefix(u.EscapedPath(), "/"), "/", 3)
	if len(parts) < 2 {
		return place{}, ""
	}
	at.run, _ = url.PathUnescape(parts[0])
	at.server, _ = url.PathUnescape(parts[1])
	if len(parts) == 3 {
		rest = parts[2]
	}
	return at, rest
}

// follow sends a request, and follows redirects within the origin that keep its method,
// each of which is admitted and has a credential looked up for itself.
func (l *line) follow(req *http.Request) (*http.Response, error) {
	for hops := 0; ; hops++ {
		resp, err := l.RoundTrip(req)
		if err != nil {
			return nil, err
		}
		location := resp.Header.Get("Location")
		if resp.StatusCode < 300 || resp.StatusCode > 399 || location == "" {
			return resp, nil
		}
		_ = resp.Body.Close()
		next, err := req.URL.Parse(location)
		if err != nil {
			return nil, errAway
		}
		switch keeps := resp.StatusCode >= 307 || req.Method == http.MethodGet; {
		case l.elsewhere(next):
			l.refuse(req, next)
			return nil, errAway
		case !keeps, req.Body != nil && req.Body != http.NoBody && req.GetBody == nil:
			return nil, errChanged
		case hops == maxRedirects-1:
			return nil, errForEver
		}
		out := req.Clone(req.Context())
		if req.GetBody != nil {
			if out.Body, err = req.GetBody(); err != nil {
				return nil, err
			}
		}
		out.URL, out.Response = next, resp
		req = out
	}
}

// shown are the headers of an answer that agents' sides may see: what the protocol
// needs, and nothing that says where the answer is from.
func shown(header http.Header) http.Header {
	out := make(http.Header)
	for _, name := range []string{"Content-Type", "Content-Length", "Mcp-Session-Id", "Mcp-Protocol-Version", "Retry-After"} {
		if values := header.Values(name); len(values) > 0 {
			out[name] = values
		}
	}
	return out
}

// maxPage is how much of an answer that says no can be read, in bytes; nobody reads more
// of one.
const maxPage = 64 << 10

// A page is the body of an answer that says no, without the names of the server's host:
// proxies and servers of the web sign theirs with it, and it ends in an error that
// everybody reads. The rest is the server's own word, as its results are.
type page struct {
	io.ReadCloser
	names []string
	text  []byte
	err   error // after the text; nil: nothing was read yet
}

func newPage(body io.ReadCloser, target *url.URL) *page {
	return &page{ReadCloser: body, names: []string{target.Host, target.Hostname()}}
}

// Read implements [io.Reader].
func (p *page) Read(b []byte) (int, error) {
	if p.err == nil {
		p.text, p.err = io.ReadAll(io.LimitReader(p.ReadCloser, maxPage))
		if p.err == nil {
			p.err = io.EOF
		}
		for _, name := range p.names {
			if name != "" {
				p.text = regexp.MustCompile(`(?i)`+regexp.QuoteMeta(name)).ReplaceAllLiteral(p.text, []byte(host))
			}
		}
	}
	if len(p.text) == 0 {
		return 0, p.err
	}
	n := copy(b, p.text)
	p.text = p.text[n:]
	return n, nil
}

// maxMessages is how many addresses for messages a door remembers: a server gives one
// for each connection.
const maxMessages = 16

// announce takes an address for messages, as the server gives it in the stream at base,
// and returns the one that the agents' side gets in its place.
func (d *door) announce(l *line, base *url.URL, data string) (string, error) {
	u, err := base.Parse(data)
	if err != nil || originOf(u) != l.origin || u.User != nil {
		return "", veiled(errMessages)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.messages = append(d.messages, u); len(d.messages) > maxMessages {
		d.messages = d.messages[1:]
		d.first++
	}
	return address(d.at.run, d.at.server) + "/" + strconv.Itoa(d.first+len(d.messages)-1), nil
}

// target is the URL of the server that the rest of an address stands for: nothing for
// its own, or else the number of an address for messages.
func (d *door) target(l *line, rest string) (*url.URL, bool) {
	if rest == "" {
		u := *l.target
		return &u, true
	}
	n, err := strconv.Atoi(rest)
	d.mu.Lock()
	defer d.mu.Unlock()
	if n -= d.first; err != nil || n < 0 || n >= len(d.messages) {
		return nil, false
	}
	u := *d.messages[n]
	return &u, true
}

// veiledBody is a body whose errors don't say where it is from.
type veiledBody struct{ io.ReadCloser }

func (b *veiledBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF { //nolint:errorlint // the contract of Read
		err = veiled(err)
	}
	return n, err
}
