package gateway

import (
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"crewhost/config"
	"crewhost/config/secret"
	"crewhost/config/vault"
	"crewhost/mcp/admission"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// farAway is where the tests' servers seem to be.
const farAway = "93.184.216.34"

// A world is a public network on loopback: after admission, each address leads to one
// server, which has a certificate for example.com and the names below it.
type world struct {
	t       *testing.T
	server  *httptest.Server
	network admission.Config
	vault   *vault.Vault
	log     lines

	mu       sync.Mutex
	hosts    map[string]string // names that resolve elsewhere than far away
	dialled  []string
	requests []*http.Request // that the server got, with what follows of the bodies
	bodies   []string
	told     []Forward
}

func newWorld(t *testing.T, handler http.HandlerFunc) *world {
	t.Helper()
	w := &world{t: t, hosts: make(map[string]string), vault: vaultIn(filepath.Join(t.TempDir(), "vault"))}
	w.server = httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.mu.Lock()
		w.requests, w.bodies = append(w.requests, r), append(w.bodies, string(body))
		w.mu.Unlock()
		handler(rw, r)
	}))
	w.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	w.server.StartTLS()
	t.Cleanup(func() {
		w.server.CloseClientConnections()
		w.server.Close()
	})
	roots := x509.NewCertPool()
	roots.AddCert(w.server.Certificate())
	w.network = admission.Config{Roots: roots, Resolver: w, Dial: w.dial}
	return w
}

// LookupNetIP implements [admission.Resolver].
func (w *world) LookupNetIP(_ context.Context, _, name string) ([]netip.Addr, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch at := w.hosts[name]; at {
	case "nowhere":
		return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
	case "":
		return []netip.Addr{netip.MustParseAddr(farAway)}, nil
	default:
		return []netip.Addr{netip.MustParseAddr(at)}, nil
	}
}

func (w *world) dial(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	w.mu.Lock()
	w.dialled = append(w.dialled, to.String())
	w.mu.Unlock()
	return new(net.Dialer).DialContext(ctx, "tcp", w.server.Listener.Addr().String())
}

// gateway makes a gateway in this world.
func (w *world) gateway(change func(*Config)) *Gateway {
	w.t.Helper()
	keys := NewKeys(w.vault, new(secret.Redactor), nil)
	cfg := Config{Network: w.network, Keys: keys, Logger: slog.New(slog.NewTextHandler(&w.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Audit: func(_ context.Context, f Forward) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.told = append(w.told, f)
		}}
	if change != nil {
		change(&cfg)
	}
	g, err := New(cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		g.Close()
		keys.Close(0)
	})
	return g
}

// took returns the requests that came since it was last asked.
func (w *world) took() (requests []*http.Request, bodies []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	requests, bodies = w.requests, w.bodies
	w.requests, w.bodies = nil, nil
	return requests, bodies
}

func (w *world) forwards() []Forward {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.told
}

// reached are the addresses that were connected to.
func (w *world) reached() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dialled
}

// brought is a server that an agent brings along.
func brought(name, url string, agents ...string) config.Server {
	if agents == nil {
		agents = []string{"scribe"}
	}
	return config.Server{Name: name, Transport: config.TransportHTTP, URL: secret.Literal(url), Agents: agents}
}

// declared is a server of the settings.
func declared(name, url string) config.Server {
	return config.Server{Name: name, Transport: config.TransportHTTP, URL: secret.Literal(url)}
}

// ask posts a message to a server by its route, as the package mcp does.
func (w *world) ask(g *Gateway, s config.Server, header ...string) (string, error) {
	w.t.Helper()
	return w.askAt(g.Route(s).Server, http.MethodPost, s.URL.Reveal(), header...)
}

func (w *world) askAt(trip http.RoundTripper, method, address string, header ...string) (string, error) {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), method, address, strings.NewReader(`{"secret":"of the body"}`))
	if err != nil {
		w.t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	client := &http.Client{Transport: trip}
	resp, err := client.Do(req)
	if c, ok := trip.(interface{ CloseIdleConnections() }); ok {
		w.t.Cleanup(c.CloseIdleConnections)
	}
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return fmt.Sprintf("%d %s", resp.StatusCode, body), err
}

// lines collects what is logged.
type lines struct {
	mu  sync.Mutex
	buf strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func hello(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }
