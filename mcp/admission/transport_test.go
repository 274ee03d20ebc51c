package admission_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"crewhost/mcp/admission"
)

func get(t *testing.T, c *http.Client, address string) (string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		return "", err
	}
	resp, err := c.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}

func hello(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") }

// A7: what is admitted is what is connected to. A name that means a private address
// the second time is refused the second time, and never between check and connection:
// there is one question for each connection.
func TestRebinding(t *testing.T) {
	for name, near := range map[string]string{
		"loopback": "127.0.0.1", "a private network": "10.0.0.7", "a cloud's metadata": "169.254.169.254", "Azure": "168.63.129.16",
		"loopback of IPv6": "::1", "a private network of IPv6": "fd00::7", "a cloud's metadata of IPv6": "fd00:ec2::254",
		"loopback within IPv6": "64:ff9b::7f00:1", "metadata within IPv6": "2002:a9fe:a9fe::1", "a mapped one": "::ffff:10.0.0.7",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, http.HandlerFunc(hello))
			afar := afar
			if strings.Contains(near, ":") {
				afar = afar6
			}
			w.knows("example.com", []netip.Addr{afar}, at(near))
			transport := w.config.Transport(admission.Public)
			defer transport.CloseIdleConnections()
			c := &http.Client{Transport: transport}

			if got, err := get(t, c, "https://example.com/"); got != "hello" {
				t.Fatal(err)
			}
			if got := w.took(); len(got) != 1 || got[0] != netip.AddrPortFrom(afar, 443) {
				t.Errorf("connected to %v", got)
			}
			if n := w.questions(); n != 1 {
				t.Errorf("the name was resolved %d times for one connection", n)
			}
			// What stands, stands where it was admitted.
			if got, err := get(t, c, "https://example.com/"); got != "hello" || w.questions() != 1 {
				t.Fatal(err)
			}
			transport.CloseIdleConnections()
			_, err := get(t, c, "https://example.com/")
			if !errors.As(err, new(*admission.Error)) || !strings.Contains(err.Error(), netip.MustParseAddr(near).Unmap().String()) {
				t.Errorf("the second time: %v", err)
			}
			var op *net.OpError
			if !errors.As(err, &op) || op.Op != "dial" {
				t.Errorf("%T is not an error of connecting", err)
			}
			if got := w.took(); len(got) != 0 {
				t.Errorf("connected to %v", got)
			}
		})
	}
}

// Of several addresses, those that are not admitted are not tried, even where the
// others don't answer.
func TestMixedAnswers(t *testing.T) {
	w := newWorld(t, http.HandlerFunc(hello))
	dial := w.config.Dial
	w.config.Dial = func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
		conn, err := dial(ctx, to)
		if err == nil && to.Addr() == afar {
			_ = conn.Close()
			return nil, errors.New("refused")
		}
		return conn, err
	}
	w.knows("example.com", at("10.0.0.1", afar.String(), "::1", "127.0.0.1", "fd00::1", "8.8.8.8", "64:ff9b::a00:1"))
	if got, err := get(t, w.client(admission.Public), "https://example.com/"); got != "hello" {
		t.Error(err)
	}
	got := w.took()
	slices.SortFunc(got, netip.AddrPort.Compare)
	if fmt.Sprint(got) != "[8.8.8.8:443 93.184.216.34:443]" {
		t.Errorf("connected to %v", got)
	}
	w.knows("example.com", at(afar.String(), "10.0.0.1"))
	if _, err := get(t, w.client(admission.Public), "https://example.com/"); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Error(err)
	}
	if got := w.took(); len(got) != 1 {
		t.Errorf("connected to %v", got)
	}
}

// A7: the whole table through a server in the public network that redirects there.
func TestRedirects(t *testing.T) {
	var location atomic.Value
	w := newWorld(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/start" {
			rw.Header()["Location"] = []string{location.Load().(string)}
			rw.WriteHeader(http.StatusTemporaryRedirect)
			return
		}
		hello(rw, r)
	}))
	w.knows("example.com", []netip.Addr{afar})
	c := w.client(admission.Public)
	for _, s := range spellings {
		u := must(t, s.URL)
		if s.Reason == "" || !u.IsAbs() || u.Host == "" { // relative to where it is from
			continue
		}
		location.Store(s.URL)
		_, err := get(t, c, "https://example.com/start")
		var refused *admission.Error
		if !errors.As(err, &refused) {
			t.Errorf("redirected to %s: %v", s.URL, err)
		}
		for _, to := range w.took() {
			if to.Addr() != afar {
				t.Errorf("redirected to %s, and connected to %v", s.URL, to)
			}
		}
	}
	for text, realm := range addresses {
		addr := netip.MustParseAddr(text)
		if addr.Zone() != "" {
			continue // which no answer of DNS has
		}
		c.CloseIdleConnections() // one that stands, stands where it was admitted
		w.knows("next.example.com", []netip.Addr{addr})
		location.Store("https://next.example.com:8443/")
		_, err := get(t, c, "https://example.com/start")
		if refused := errors.As(err, new(*admission.Error)); refused != (realm != admission.Public) {
			t.Errorf("redirected to a name for %s: %v", text, err)
		}
		for _, to := range w.took() {
			if to.Addr() != afar && realm != admission.Public {
				t.Errorf("connected to %v", to)
			}
		}
	}
}

// The same addresses with nothing between admission and the network: a server on
// loopback is not found by a name that leads to it, and its own process sees nobody.
func TestNobodyComes(t *testing.T) {
	var came atomic.Int32
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { came.Add(1) }))
	s.Config.ConnState = func(net.Conn, http.ConnState) { came.Add(1) }
	s.Start()
	defer s.Close()
	w := newWorld(t, http.NotFoundHandler())
	w.config.Dial = nil
	_, port, err := net.SplitHostPort(s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	w.knows("example.com", at("127.0.0.1"))
	for _, address := range []string{"https://example.com:" + port, "https://127.0.0.1:" + port, "http://localhost:" + port, "https://[::ffff:127.0.0.1]:" + port, "https://127.1:" + port} {
		if _, err := get(t, w.client(admission.Public), address); !errors.As(err, new(*admission.Error)) {
			t.Errorf("%s: %v", address, err)
		}
	}
	if n := came.Load(); n != 0 {
		t.Errorf("%d connections came", n)
	}
	rules := w.config
	rules.Rules.Loopback = true
	c := &http.Client{Transport: rules.Transport(admission.Public)}
	defer c.CloseIdleConnections()
	if _, err := get(t, c, "http://localhost:"+port); err != nil || came.Load() == 0 {
		t.Errorf("nor does an allowed one: %v", err)
	}
}

// K47: the environment's proxies are nobody's business, and a proxy of the settings is
// for what the operator named, except on this machine.
func TestProxy(t *testing.T) {
	var carried atomic.Int32
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		carried.Add(1)
		fmt.Fprint(w, "by proxy ", r.URL.Host)
	}))
	defer proxy.Close()
	t.Setenv("HTTP_PROXY", proxy.URL)
	t.Setenv("HTTPS_PROXY", proxy.URL)
	t.Setenv("ALL_PROXY", proxy.URL)
	w := newWorld(t, http.HandlerFunc(hello))
	w.knows("example.com", []netip.Addr{afar})
	for _, within := range []admission.Realm{admission.Public, admission.Loopback} {
		if got, err := get(t, w.client(within), "https://example.com/"); got != "hello" || carried.Load() != 0 {
			t.Error(got, err)
		}
	}
	rules, err := admission.Allow("plain.example.com")
	if err != nil {
		t.Fatal(err)
	}
	w.config.Rules = rules
	w.config.Proxy = must(t, proxy.URL)
	direct := w.config.Dial
	w.config.Dial = func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
		if to.String() == proxy.Listener.Addr().String() {
			return new(net.Dialer).DialContext(ctx, "tcp", to.String())
		}
		return direct(ctx, to)
	}
	if got, err := get(t, w.client(admission.Loopback), "http://plain.example.com/"); got != "by proxy plain.example.com" {
		t.Error(got, err)
	}
	if got, err := get(t, w.client(admission.Public), "https://example.com/"); got != "hello" {
		t.Error(got, err)
	}
	if _, err := get(t, w.client(admission.Loopback), "https://169.254.169.254/"); !errors.As(err, new(*admission.Error)) {
		t.Errorf("a proxy carries what is never admitted: %v", err)
	}
	if n := carried.Load(); n != 1 {
		t.Errorf("the proxy carried %d requests", n)
	}
}

// What a server leads to is no nearer than the server itself, wherever its name may
// lead later.
func TestLed(t *testing.T) {
	for _, c := range []struct {
		server, endpoint string // what their names resolve to
		want             bool
	}{
		{"93.184.216.34", "8.8.8.8", true},
		{"93.184.216.34", "10.0.0.1", false},
		{"93.184.216.34", "127.0.0.1", false},
		{"10.0.0.1", "10.0.0.2", true},
		{"10.0.0.1", "8.8.8.8", true},
		{"10.0.0.1", "127.0.0.1", false},
		{"127.0.0.1", "127.0.0.1", true},
		{"127.0.0.1", "169.254.169.254", false},
	} {
		for _, met := range []bool{false, true} {
			w := newWorld(t, http.HandlerFunc(hello))
			w.knows("example.com", at(c.server))
			w.knows("login.example.com", at(c.endpoint))
			own, led := w.config.For(must(t, "https://example.com/mcp"), admission.Loopback)
			if met {
				if _, err := get(t, &http.Client{Transport: own}, "https://example.com/mcp"); err != nil {
					t.Fatal(err)
				}
				w.knows("example.com", at("127.0.0.1")) // too late
			}
			w.took()
			_, err := get(t, &http.Client{Transport: led}, "https://login.example.com/token")
			if refused := errors.As(err, new(*admission.Error)); refused == c.want || refused && len(w.took()) > 0 {
				t.Errorf("a server at %s leads to %s: %v", c.server, c.endpoint, err)
			}
			own.CloseIdleConnections()
		}
	}
}

// A name that resolves to nothing, and one that hangs until the request is given up.
func TestUnresolved(t *testing.T) {
	w := newWorld(t, http.HandlerFunc(hello))
	_, err := get(t, w.client(admission.Public), "https://nowhere.example.com/")
	var dns *net.DNSError
	if !errors.As(err, &dns) {
		t.Errorf("%v", err)
	}
	w.config.Resolver = hanging{}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://example.com/", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.client(admission.Public).Do(req); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	w.config.Resolver = nowhere{}
	if _, err := get(t, w.client(admission.Public), "https://example.com/"); err == nil || !strings.Contains(err.Error(), "without an address") {
		t.Error(err)
	}
}

type hanging struct{}

func (hanging) LookupNetIP(ctx context.Context, _, _ string) ([]netip.Addr, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

type nowhere struct{}

func (nowhere) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) { return nil, nil }

// A body that is not sent is closed, as the contract of RoundTripper says.
func TestRefusedBody(t *testing.T) {
	body := &closer{Reader: strings.NewReader("x")}
	req := &http.Request{Method: http.MethodPost, URL: &url.URL{Scheme: "http", Host: "10.0.0.1"}, Body: body}
	if _, err := (admission.Config{}).Transport(admission.Public).RoundTrip(req); err == nil || !body.closed {
		t.Error(err, body.closed)
	}
}

type closer struct {
	io.Reader
	closed bool
}

func (c *closer) Close() error { c.closed = true; return nil }
