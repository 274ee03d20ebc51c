package server_test

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"crewhost/mcp/server"
)

// descriptors is how many files the process has open, or 0 where that can't be told.
func descriptors() int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(entries)
}

// heap is what is in use after garbage is gone.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// allocated is all that ever was set aside.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// raw is a connection to the server that speaks as it likes.
func (w *web) raw(text string) net.Conn {
	w.t.Helper()
	conn, err := net.Dial("tcp", w.http.Addr().String())
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(60 * time.Second))
	_, _ = io.WriteString(conn, text) // the server may have closed it already
	return conn
}

// answer reads the answer on a connection.
func answer(conn net.Conn) (int, error) {
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}

const postHead = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: */*\r\n"

// Two thousand connections that send nothing, garbage, or half of something hold
// neither memory nor files, and keep nobody out.
func TestHostileConnections(t *testing.T) {
	const limit = 64
	w := serveHTTP(t, server.HTTPConfig{Connections: limit}, server.Budgets{ConcurrentRequests: 8})
	filesBefore, heapBefore := descriptors(), heap()
	const connections = 2000
	openings := []string{
		"",
		"GET /mcp HTTP/1.1\r\nHost: localhost\r\nX-Half: ",
		postHead + "Content-Length: 1000000\r\n\r\n{\"jsonrpc\":",
		postHead + "Transfer-Encoding: chunked\r\n\r\n5\r\n{\"a\":\r\n",
		"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\x00\xff\xfe garbage \x00",
		strings.Repeat("\xff", 3000),
		"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
	}
	for i := range connections {
		w.raw(openings[i%len(openings)])
		if i%200 == 199 {
			if g := w.ask("tools/call", `"name":"echo"`); g.status != http.StatusOK {
				t.Errorf("after %d connections a call is answered with %d: %s", i+1, g.status, g.body)
			}
			w.begin()
		}
	}
	if files := descriptors() - filesBefore; files > connections+2*limit+32 { // the clients' own are among them
		t.Errorf("%d more files are open for %d connections", files, connections)
	}
	if used := int64(heap()) - int64(heapBefore); used > 32<<20 {
		t.Errorf("%d connections hold %d bytes", connections, used)
	}
}

// K83: a body without end, and one that is not as long as it says.
func TestHostileBodies(t *testing.T) {
	w := serveHTTP(t, server.HTTPConfig{ReadTimeout: 500 * time.Millisecond}, server.Budgets{})
	before := allocated()
	conn := w.raw(postHead + "Transfer-Encoding: chunked\r\n\r\n")
	chunk := "10000\r\n" + strings.Repeat("[", 0x10000) + "\r\n"
	sent := 0
	for sent < 2<<30 {
		n, err := io.WriteString(conn, chunk)
		sent += n
		if err != nil {
			break
		}
		if sent > 2<<20 { // it has had more than it takes
			break
		}
	}
	if status, err := answer(conn); status != http.StatusRequestEntityTooLarge {
		t.Errorf("a body without end: %d, %v", status, err)
	}
	for sent < 2<<30 { // and it is not read on
		n, err := io.WriteString(conn, chunk)
		sent += n
		if err != nil {
			break
		}
	}
	if sent > 256<<20 {
		t.Errorf("%d bytes of a body without end were taken", sent)
	}
	if used := allocated() - before; used > 16<<20 {
		t.Errorf("a body without end took %d bytes of memory", used)
	}
	for _, tt := range []struct {
		name, request string
		status        int
	}{
		{"claims 2 GiB", postHead + "Content-Length: 2147483648\r\n\r\n{", 413},
		{"claims a little more", postHead + "Content-Length: 100\r\n\r\n{}", 408},
		{"claims less", postHead + "Content-Length: 2\r\n\r\n{}garbage\r\n\r\n", 400},
		{"claims less than nothing", postHead + "Content-Length: -1\r\n\r\n{}", 400},
		{"claims two lengths", postHead + "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", 400},
		{"claims both", postHead + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 400},
		{"is cut into bad chunks", postHead + "Transfer-Encoding: chunked\r\n\r\nzz\r\n{}", 400},
		{"never comes", postHead + "Content-Length: 10\r\n\r\n", 408},
		{"is not wanted, and does not come", "POST /elsewhere HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n{", 404},
		{"names no host", "POST /mcp HTTP/1.1\r\n\r\n", 400},
		{"is for a proxy", "CONNECT evil.example:443 HTTP/1.1\r\nHost: localhost\r\n\r\n", 403},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if status, err := answer(w.raw(tt.request)); status != tt.status {
				t.Errorf("got %d, %v, want %d", status, err, tt.status)
			}
		})
	}
	// Half a head, and nothing at all: such a connection is closed.
	for _, opening := range []string{"", "POST /mcp HTTP/1.1\r\nHost:"} {
		if _, err := io.Copy(io.Discard, w.raw(opening)); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("after %q the connection stays", opening)
		}
	}
	if g := w.ask("tools/list", ""); g.status != http.StatusOK {
		t.Errorf("after all that: %d", g.status)
	}
}

// Bodies that never end share the room that there is for bodies; what is small has
// its own.
func TestHostileLargeBodies(t *testing.T) {
	w := serveHTTP(t, server.HTTPConfig{}, server.Budgets{ConcurrentRequests: 2, RequestBytes: 1 << 20})
	before := heap()
	var sending sync.WaitGroup
	for range 16 {
		conn := w.raw(postHead + "Content-Length: 1000000\r\n\r\n")
		sending.Go(func() { _, _ = io.WriteString(conn, strings.Repeat(" ", 900_000)) })
	}
	sending.Wait()
	for range 20 {
		if g := w.ask("tools/call", `"name":"echo"`); g.status != http.StatusOK {
			t.Fatalf("a small call: %d %s", g.status, g.body)
		}
	}
	if used := int64(heap()) - int64(before); used > 8<<20 {
		t.Errorf("bodies that don't end hold %d bytes", used)
	}
}

// Whoever calls and doesn't read the answer loses it, and the place is free again.
func TestHostileReader(t *testing.T) {
	w := serveHTTP(t, server.HTTPConfig{WriteTimeout: 300 * time.Millisecond}, server.Budgets{ConcurrentRequests: 1, ResponseBytes: 16 << 20})
	body := modernRequest("tools/call", `"name":"large"`)
	conn := w.raw("")
	_ = conn.(*net.TCPConn).SetReadBuffer(4 << 10)
	_, err := fmt.Fprintf(conn, postHead+"Mcp-Protocol-Version: %s\r\nMcp-Method: tools/call\r\nMcp-Name: large\r\nContent-Length: %d\r\n\r\n%s", modern, len(body), body)
	if err != nil {
		t.Fatal(err)
	}
	w.log.has(t, "name=large")
	if g := w.ask("tools/call", `"name":"echo"`); g.status != http.StatusOK {
		t.Errorf("another call: %d %s", g.status, g.body)
	}
}

// What is refused is not said again in full.
func TestHostileNames(t *testing.T) {
	w := serveHTTP(t, server.HTTPConfig{}, server.Budgets{})
	name := strings.Repeat(`\u0001`, 100_000)
	id := w.begin()
	g := w.send(http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+name+`"}}`, "Mcp-Session-Id", id)
	if g.code() != -32602 || len(g.body) > 4<<10 {
		t.Errorf("%d, %d bytes: %.200s", g.status, len(g.body), g.body)
	}
}

// Answers that nobody reads hold no more memory than was allowed for: the ones that
// wait longest are given up. Whoever reads gets his all the same.
func TestHostileReadersShareTheRoom(t *testing.T) {
	w := serveHTTP(t, server.HTTPConfig{}, server.Budgets{ConcurrentRequests: 1, ResponseBytes: 9 << 20})
	body := modernRequest("tools/call", `"name":"large"`)
	before := heap()
	for range 5 {
		conn := w.raw("")
		_ = conn.(*net.TCPConn).SetReadBuffer(4 << 10)
		_, err := fmt.Fprintf(conn, postHead+"Mcp-Protocol-Version: %s\r\nMcp-Method: tools/call\r\nMcp-Name: large\r\nContent-Length: %d\r\n\r\n%s", modern, len(body), body)
		if err != nil {
			t.Fatal(err)
		}
		status := make([]byte, len("HTTP/1.1 200"))
		if _, err := io.ReadFull(conn, status); err != nil || string(status) != "HTTP/1.1 200" {
			t.Fatalf("%q, %v", status, err)
		}
	}
	if used := int64(heap()) - int64(before); used > 24<<20 {
		t.Errorf("answers that nobody reads hold %d bytes", used)
	}
	if g := w.ask("tools/call", `"name":"large"`); g.status != http.StatusOK || len(g.body) < 8<<20 {
		t.Errorf("whoever reads: %d, %d bytes", g.status, len(g.body))
	}
}

// certificate writes a certificate for loopback and its key, and returns both files.
func certificate(t *testing.T) (cert, key string, pool *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	pool = x509.NewCertPool()
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool.AddCert(parsed)
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "EC PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key, pool
}

func TestTLS(t *testing.T) {
	cert, key, pool := certificate(t)
	w := serveHTTP(t, server.HTTPConfig{CertFile: cert, KeyFile: key}, server.Budgets{})
	if !strings.HasPrefix(w.url, "https://") {
		t.Fatal(w.url)
	}
	do := func(cfg *tls.Config) (*http.Response, error) {
		transport := &http.Transport{TLSClientConfig: cfg, DisableKeepAlives: true}
		defer transport.CloseIdleConnections()
		return (&http.Client{Transport: transport, Timeout: 30 * time.Second}).Get(strings.TrimSuffix(w.url, "/mcp") + "/healthz")
	}
	w.raw("no handshake at all")
	resp, err := do(&tls.Config{RootCAs: pool})
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatal(resp, err)
	}
	_ = resp.Body.Close()
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}
	defer transport.CloseIdleConnections()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, nil).Connect(t.Context(),
		&mcp.StreamableClientTransport{Endpoint: w.url, HTTPClient: &http.Client{Transport: transport}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "echo"}); err != nil {
		t.Error(err)
	}
	_ = session.Close()
	if resp, err := do(&tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}); err == nil { //nolint:gosec // an old client
		_ = resp.Body.Close()
		t.Error("TLS 1.1 is spoken")
	}

	s := bare(t)
	empty := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, files := range [][2]string{{"missing.pem", key}, {cert, "missing.pem"}, {empty, key}, {cert, empty}, {key, cert}} {
		_, err := s.ListenHTTP(t.Context(), server.HTTPConfig{CertFile: files[0], KeyFile: files[1]})
		if err == nil || !strings.Contains(err.Error(), "pem") {
			t.Errorf("with %v: %v", files, err)
		}
	}
}

// bare is a server without tools.
func bare(t *testing.T) *server.Server {
	t.Helper()
	_, guard := guardOf(t)
	s, err := server.New(server.Config{Name: "t", Version: "1", Guard: guard})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Beyond loopback, what may not be meant is said, and loopback stays guarded.
func TestListenBeyondLoopback(t *testing.T) {
	for _, tt := range []struct {
		cfg  server.HTTPConfig
		said string
	}{
		{server.HTTPConfig{AllowUnauthenticated: true}, "whoever reaches"},
		{server.HTTPConfig{Tokens: []server.Token{server.NewToken("ci", goodToken)}}, "in the clear"},
	} {
		tt.cfg.Listen = "0.0.0.0:0"
		w := serveHTTP(t, tt.cfg, server.Budgets{})
		w.log.has(t, tt.said)
		_, port, err := net.SplitHostPort(w.http.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		w.url = "http://127.0.0.1:" + port + "/mcp"
		if g := w.ask("tools/list", "", "Authorization", "Bearer "+goodToken); g.status != http.StatusOK {
			t.Errorf("by loopback's name: %d %s", g.status, g.body)
		}
		if g := w.ask("tools/list", "", "Authorization", "Bearer "+goodToken, "Host", "evil.example"); g.status != http.StatusForbidden {
			t.Errorf("rebound: %d %s", g.status, g.body)
		}
	}
}

// Who opens a port closes it, be it served or not.
func TestListenHTTP(t *testing.T) {
	s := bare(t)
	before := descriptors()
	first, err := s.ListenHTTP(t.Context(), server.HTTPConfig{})
	if err != nil {
		t.Fatal(err)
	}
	taken := first.Addr().String()
	if _, err := s.ListenHTTP(t.Context(), server.HTTPConfig{Listen: taken}); err == nil || !strings.Contains(err.Error(), taken) {
		t.Errorf("a port that is taken: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	again, err := s.ListenHTTP(t.Context(), server.HTTPConfig{Listen: taken})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := again.Serve(ctx); err != nil {
		t.Error(err)
	}
	if after := descriptors(); after > before+1 { // the poller's
		t.Errorf("%d files are open, %d before", after, before)
	}
}
