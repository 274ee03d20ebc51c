package admission

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"sync/atomic"
	"time"
)

const (
	dialLimit = 10 * time.Second // to resolve and connect, and for the handshake of TLS
	maxAddrs  = 16               // of a host that are tried
	maxHeader = 64 << 10         // of an answer, in bytes
)

// A Resolver finds the addresses of a name, as [net.Resolver] does.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Config is what transports have in common. The zero value is the network as it is,
// under no rules but those of this package.
type Config struct {
	Rules Rules
	// Proxy carries what leads further than loopback, except where only the public
	// network is admitted: the proxy resolves names by itself, and so their addresses
	// are judged by nobody here. Nil: none, whatever the environment says.
	Proxy *url.URL
	// Resolver finds addresses; nil is the system's.
	Resolver Resolver
	// Roots are who may sign the certificates of servers; nil is who the system says.
	Roots *x509.CertPool
	// Dial connects to an address that was admitted; nil is TCP. It gets no other, so
	// it can't widen what is admitted.
	Dial func(ctx context.Context, to netip.AddrPort) (net.Conn, error)
}

// A Transport carries HTTP to what is admitted: it is an [http.RoundTripper] that
// judges each request, and each connection that it opens for one. It follows no
// redirect, and asks about each that its client follows.
type Transport struct {
	cfg     Config
	within  func(ctx context.Context, host string) Realm
	proxied bool // whether it may go through the proxy
	http    *http.Transport

	nearest atomic.Int32 // of the connections there were, the least near realm, plus one; zero: none
}

// Transport returns a transport for URLs that may lead as far as within. Who has it
// calls [Transport.CloseIdleConnections] in the end.
func (c Config) Transport(within Realm) *Transport {
	return c.transport(within != Public, func(context.Context, string) Realm { return within })
}

// For returns the transports of one server: that of the server itself, whose URL may
// lead as far as within, and that of the hosts which it sends its client to, as to
// those of OAuth. Such a host is admitted where the server's own is, or else no nearer
// than the server itself was found to be: one of the public network leads nobody into
// a private one.
func (c Config) For(target *url.URL, within Realm) (own, led *Transport) {
	own = c.Transport(within)
	name, _, _ := hostOf(target.Hostname())
	led = c.transport(within != Public, func(ctx context.Context, host string) Realm {
		if host == name {
			return within
		}
		return min(within, own.realm(ctx, target))
	})
	led.http.DisableKeepAlives = true // they are asked once in a while
	return own, led
}

func (c Config) transport(proxied bool, within func(ctx context.Context, host string) Realm) *Transport {
	if c.Resolver == nil {
		c.Resolver = net.DefaultResolver
	}
	if c.Dial == nil {
		dialer := new(net.Dialer)
		c.Dial = func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
			return dialer.DialContext(ctx, "tcp", to.String())
		}
	}
	t := &Transport{cfg: c, within: within, proxied: proxied && c.Proxy != nil}
	t.http = &http.Transport{
		Proxy: t.proxy, DialContext: t.dial,
		TLSClientConfig:        &tls.Config{RootCAs: c.Roots},
		ForceAttemptHTTP2:      true,
		TLSHandshakeTimeout:    dialLimit,
		MaxIdleConnsPerHost:    8,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: maxHeader,
	}
	return t
}

// RoundTrip implements [http.RoundTripper].
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := t.Admits(req); err != nil {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, err
	}
	return t.http.RoundTrip(req)
}

// Admits says why a request is not admitted as its URL is spelled, as an [*Error], or
// nil. Nothing is resolved.
func (t *Transport) Admits(req *http.Request) error {
	name, _, err := hostOf(req.URL.Hostname())
	if err != nil {
		return err
	}
	return t.cfg.Rules.URL(req.URL, t.within(req.Context(), name))
}

// CloseIdleConnections closes the connections that carry nothing.
func (t *Transport) CloseIdleConnections() { t.http.CloseIdleConnections() }

// proxy is the proxy of a request. This machine is reached past it (K47).
func (t *Transport) proxy(req *http.Request) (*url.URL, error) {
	if !t.proxied || Here(req.URL.Hostname()) {
		return nil, nil
	}
	return t.cfg.Proxy, nil
}

// isProxy reports whether an address is that of the proxy, which the operator has
// named.
func (t *Transport) isProxy(name string, port uint16) bool {
	if !t.proxied {
		return false
	}
	p := t.cfg.Proxy
	own, _, err := hostOf(p.Hostname())
	ownPort, ok := portOf(p.Port(), p.Scheme)
	if p.Port() == "" && (p.Scheme == "socks5" || p.Scheme == "socks5h") {
		ownPort = 1080
	}
	return err == nil && ok && own == name && ownPort == port
}

// dial connects to a host: it resolves the name, once, and tries what is admitted of
// that.
func (t *Transport) dial(ctx context.Context, _, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialLimit)
	defer cancel()
	host, service, err := net.SplitHostPort(address)
	if err != nil {
		return nil, undialled(err)
	}
	name, addr, refusal := hostOf(host)
	port, ok := portOf(service, "")
	switch {
	case refusal != nil:
		return nil, undialled(refusal)
	case !ok:
		return nil, undialled(&Error{Reason: "of a port that is none"})
	}
	within := Loopback
	proxy := t.isProxy(name, port)
	if !proxy {
		within = t.within(ctx, name)
	}
	addrs := []netip.Addr{addr}
	if !addr.IsValid() {
		if addrs, err = t.resolve(ctx, name); err != nil {
			return nil, undialled(err)
		}
	}
	var admitted []netip.AddrPort
	var refused *Error
	for _, addr := range addrs {
		to := netip.AddrPortFrom(addr.Unmap(), port)
		if err := t.cfg.Rules.addr(name, to.Addr(), port, within); err == nil {
			admitted = append(admitted, to)
		} else if refused == nil {
			refused = err
		}
	}
	if len(admitted) == 0 {
		if refused == nil {
			refused = &Error{Reason: "a host without an address"}
		}
		return nil, undialled(refused)
	}
	conn, to, err := race(ctx, admitted[:min(len(admitted), maxAddrs)], t.cfg.Dial)
	if err == nil && !proxy {
		t.note(to.Addr())
	}
	return conn, err
}

// resolve finds the addresses of a name. Those of localhost are known, whatever a
// resolver thinks that they are (K47).
func (t *Transport) resolve(ctx context.Context, name string) ([]netip.Addr, error) {
	if localhost(name) {
		return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}, nil
	}
	return t.cfg.Resolver.LookupNetIP(ctx, "ip", name)
}

// undialled is the error of a connection that was not tried.
func undialled(err error) error { return &net.OpError{Op: "dial", Net: "tcp", Err: err} }

// note keeps the least near realm that was connected to: a server that is found in
// the public network once can't become one of a private network.
func (t *Transport) note(addr netip.Addr) {
	realm, _ := RealmOf(addr)
	for {
		before := t.nearest.Load()
		if before != 0 && before <= int32(realm)+1 || t.nearest.CompareAndSwap(before, int32(realm)+1) {
			return
		}
	}
}

// realm is the least near realm that the server at target was found in: by the
// connections there were, or else by what its host resolves to. What can't be told is
// public.
func (t *Transport) realm(ctx context.Context, target *url.URL) Realm {
	if n := t.nearest.Load(); n != 0 {
		return Realm(n - 1)
	}
	name, addr, err := hostOf(target.Hostname())
	if err != nil {
		return Public
	}
	addrs := []netip.Addr{addr}
	if !addr.IsValid() {
		var err error
		if addrs, err = t.resolve(ctx, name); err != nil {
			return Public
		}
	}
	least := Never
	for _, addr := range addrs {
		realm, _ := RealmOf(addr)
		least = min(least, realm)
	}
	if least == Never {
		return Public
	}
	return least
}
