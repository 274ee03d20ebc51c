package llmtest

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// Serve starts an HTTP server for h in memory and returns a client whose every
// connection leads to it, whatever the address. Nothing touches the network, so
// within a synctest bubble the waits of both sides cost no time. The server ends
// with the test.
func Serve(t testing.TB, h http.Handler) *http.Client {
	l := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
	server := &http.Server{Handler: h}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(l) }) // ends by Close alone
	transport := &http.Transport{DialContext: l.dial}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		_ = server.Close()
		serving.Wait()
	})
	return &http.Client{Transport: transport}
}

// pipes is a listener of in-memory connections.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case l.conns <- theirs:
		return ours, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipes) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *pipes) Addr() net.Addr { return pipeAddr{} }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "pipe" }

// Step is how a [Mock] answers one request, whose body it is given.
type Step func(w http.ResponseWriter, r *http.Request, body string)

// Mock is a vendor's server that answers from a list of steps. It is safe for
// concurrent use.
type Mock struct {
	t     testing.TB
	steps []Step

	mu      sync.Mutex
	bodies  []string
	urls    []string
	headers []http.Header
	times   []time.Time
}

// NewMock returns a server that takes the first step for the first request, and
// so on. A request without a step fails the test.
func NewMock(t testing.TB, steps ...Step) *Mock { return &Mock{t: t, steps: steps} }

// ServeHTTP takes the next step.
func (m *Mock) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has gone
	}
	m.mu.Lock()
	n := len(m.bodies)
	m.bodies = append(m.bodies, string(body))
	m.urls = append(m.urls, r.URL.RequestURI())
	m.headers = append(m.headers, r.Header)
	m.times = append(m.times, time.Now())
	m.mu.Unlock()
	if n >= len(m.steps) {
		m.t.Errorf("mock: request %d, but there are %d steps", n+1, len(m.steps))
		http.Error(w, "no step left", http.StatusTeapot)
		return
	}
	m.steps[n](w, r, string(body))
}

// Bodies returns the body of every request so far.
func (m *Mock) Bodies() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]string(nil), m.bodies...)
}

// URLs returns the path and query of every request so far.
func (m *Mock) URLs() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]string(nil), m.urls...)
}

// Header returns the header of request n, counted from 0.
func (m *Mock) Header(n int) http.Header {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.headers[n]
}

// Waits returns the time between each request and the next.
func (m *Mock) Waits() []time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	var waits []time.Duration
	for i := 1; i < len(m.times); i++ {
		waits = append(waits, m.times[i].Sub(m.times[i-1]))
	}
	return waits
}

// Status answers with a status, a body and header fields in pairs of name and
// value.
func Status(code int, body string, header ...string) Step {
	return func(w http.ResponseWriter, _ *http.Request, _ string) {
		if strings.HasPrefix(body, "{") {
			w.Header().Set("Content-Type", "application/json")
		}
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body) // the client may have gone
	}
}

// Events answers with a stream of events, each a whole one, and ends it.
func Events(events ...string) Step {
	return func(w http.ResponseWriter, _ *http.Request, _ string) { send(w, events) }
}

// Stall answers with events and then says nothing until the client goes.
func Stall(events ...string) Step {
	return func(w http.ResponseWriter, r *http.Request, _ string) {
		send(w, events)
		<-r.Context().Done()
	}
}

// Slow answers with events and waits before each of them.
func Slow(wait time.Duration, events ...string) Step {
	return func(w http.ResponseWriter, r *http.Request, _ string) {
		send(w, nil)
		for _, e := range events {
			select {
			case <-time.After(wait):
			case <-r.Context().Done():
				return
			}
			send(w, []string{e})
		}
	}
}

// Silence answers with nothing at all until the client goes.
func Silence() Step {
	return func(_ http.ResponseWriter, r *http.Request, _ string) { <-r.Context().Done() }
}

// Cut answers with events and then breaks the connection.
func Cut(events ...string) Step {
	return func(w http.ResponseWriter, _ *http.Request, _ string) {
		send(w, events)
		panic(http.ErrAbortHandler)
	}
}

func send(w http.ResponseWriter, events []string) {
	w.Header().Set("Content-Type", "text/event-stream")
	flush := http.NewResponseController(w)
	_ = flush.Flush() // the client may have gone, here and below
	for _, e := range events {
		_, _ = io.WriteString(w, e)
		_ = flush.Flush()
	}
}

// Event writes one server-sent event; an empty name is left out.
func Event(name, data string) string {
	if name == "" {
		return fmt.Sprintf("data: %s\n\n", data)
	}
	return fmt.Sprintf("event: %s\ndata: %s\n\n", name, data)
}
