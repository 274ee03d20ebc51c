package admission_test

import (
	"context"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"sync"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/net/dns/dnsmessage"

	"crewhost/mcp/admission"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// afar and afar6 are addresses of the public network, where the tests' servers seem to be.
var (
	afar  = netip.MustParseAddr("93.184.216.34")
	afar6 = netip.MustParseAddr("2606:2800:21f::1")
)

// A world stands between admission and loopback: a server that seems to be in the
// public network, and a resolver that is asked over real DNS. It sees each connection
// after admission.
type world struct {
	t      *testing.T
	server *httptest.Server
	config admission.Config

	mu      sync.Mutex
	dialled []netip.AddrPort
	answers map[string][][]netip.Addr   // by name, one after the other; the last one stays
	given   map[dnsmessage.Question]int // answers since the name is known, of each family
	asked   int                         // of questions for A
}

// newWorld starts a server, which has a certificate for mcp.example.com.
func newWorld(t *testing.T, handler http.Handler) *world {
	t.Helper()
	w := &world{t: t, answers: make(map[string][][]netip.Addr), given: make(map[dnsmessage.Question]int)}
	w.server = httptest.NewUnstartedServer(handler)
	w.server.Config.ErrorLog = log.New(io.Discard, "", 0) // of connections that lost a race
	w.server.StartTLS()
	t.Cleanup(w.server.Close)
	roots := x509.NewCertPool()
	roots.AddCert(w.server.Certificate())
	w.config = admission.Config{
		Roots:    roots,
		Resolver: w.resolver(),
		Dial: func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
			w.mu.Lock()
			w.dialled = append(w.dialled, to)
			w.mu.Unlock()
			return new(net.Dialer).DialContext(ctx, "tcp", w.server.Listener.Addr().String())
		},
	}
	return w
}

// knows gives a name the answers that are given one after the other.
func (w *world) knows(name string, answers ...[]netip.Addr) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answers[name+"."] = answers
	clear(w.given)
}

// took returns the addresses connected to since it was last asked.
func (w *world) took() []netip.AddrPort {
	w.mu.Lock()
	defer w.mu.Unlock()
	took := w.dialled
	w.dialled = nil
	return took
}

// questions returns how often an address was asked for.
func (w *world) questions() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.asked
}

// client is a client whose URLs may lead so far.
func (w *world) client(within admission.Realm) *http.Client {
	transport := w.config.Transport(within)
	w.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// resolver is Go's own, which asks a server of DNS on loopback.
func (w *world) resolver() *net.Resolver {
	w.t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() { w.serveDNS(conn) })
	w.t.Cleanup(func() {
		_ = conn.Close()
		serving.Wait()
	})
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

func (w *world) serveDNS(conn net.PacketConn) {
	buf := make([]byte, 1500)
	for {
		n, from, err := conn.ReadFrom(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		var m dnsmessage.Message
		if err != nil || m.Unpack(buf[:n]) != nil || len(m.Questions) != 1 {
			continue
		}
		m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
		for _, addr := range w.answer(m.Questions[0]) {
			h := dnsmessage.ResourceHeader{Name: m.Questions[0].Name, Class: dnsmessage.ClassINET}
			var body dnsmessage.ResourceBody = &dnsmessage.AAAAResource{AAAA: addr.As16()}
			if addr.Is4() {
				body = &dnsmessage.AResource{A: addr.As4()}
			}
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: h, Body: body})
		}
		if data, err := m.Pack(); err == nil {
			_, _ = conn.WriteTo(data, from)
		}
	}
}

// answer is the next answer to a question: of the next addresses of a name, those of one
// family.
func (w *world) answer(q dnsmessage.Question) []netip.Addr {
	w.mu.Lock()
	defer w.mu.Unlock()
	if q.Type == dnsmessage.TypeA {
		w.asked++
	}
	answers := w.answers[q.Name.String()]
	if len(answers) == 0 {
		return nil
	}
	next := min(w.given[q], len(answers)-1)
	w.given[q]++
	return slices.DeleteFunc(slices.Clone(answers[next]), func(addr netip.Addr) bool {
		return q.Type == dnsmessage.TypeA != addr.Is4() || q.Type != dnsmessage.TypeA && q.Type != dnsmessage.TypeAAAA
	})
}

func at(texts ...string) []netip.Addr {
	addrs := make([]netip.Addr, len(texts))
	for i, text := range texts {
		addrs[i] = netip.MustParseAddr(text)
	}
	return addrs
}
