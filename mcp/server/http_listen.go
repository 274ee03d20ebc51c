package server

import (
	"container/list"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
)

// HTTP is a server that listens. Whoever made it calls Serve, or Close.
type HTTP struct {
	handler  *Handler
	listener net.Listener
	server   *http.Server
	log      *slog.Logger
	secure   bool
}

// ListenHTTP opens the port, so that nobody is turned away who comes after it
// returns, and serves nobody before [HTTP.Serve]. The errors of [HTTPConfig.Check]
// come first, joined; another names what could not be opened.
func (s *Server) ListenHTTP(ctx context.Context, cfg HTTPConfig) (*HTTP, error) {
	handler, err := s.Handler(cfg)
	if err != nil {
		return nil, err
	}
	cfg = handler.cfg
	var certificates *tls.Config
	if cfg.CertFile != "" {
		if certificates, err = loadTLS(cfg.CertFile, cfg.KeyFile); err != nil {
			return nil, err
		}
	}
	inner, err := new(net.ListenConfig).Listen(ctx, "tcp", cfg.Listen)
	if err != nil {
		return nil, fmt.Errorf("listening on %s: %w", cfg.Listen, err)
	}
	h := &HTTP{handler: handler, log: handler.log, secure: certificates != nil}
	if err := h.checkReach(inner.Addr()); err != nil {
		return nil, errors.Join(fmt.Errorf("listening on %s: %w", cfg.Listen, err), inner.Close())
	}
	crowd := newCrowd(inner, cfg.Connections)
	h.listener = crowd
	if h.secure {
		h.listener = tls.NewListener(crowd, certificates)
	}
	protocols := new(http.Protocols)
	// One request at a time on a connection: a bound on connections is one on all
	// that comes by them.
	protocols.SetHTTP1(true)
	h.server = &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: cfg.ReadTimeout,
		IdleTimeout:       cfg.IdleTimeout,
		MaxHeaderBytes:    handler.budgets.MetadataBytes,
		Protocols:         protocols,
		ErrorLog:          slog.NewLogLogger(h.log.Handler(), slog.LevelDebug),
		ConnContext:       withVisitor,
		ConnState: func(conn net.Conn, state http.ConnState) {
			if v := visitorOf(conn); v != nil && state == http.StateIdle {
				v.release()
			}
		},
	}
	h.server.RegisterOnShutdown(crowd.disperse)
	return h, nil
}

// checkReach judges the address that a name led to, and says what may not be meant.
func (h *HTTP) checkReach(addr net.Addr) error {
	if tcp, ok := addr.(*net.TCPAddr); ok && tcp.IP.IsLoopback() {
		return nil
	}
	switch cfg := h.handler.cfg; {
	case h.handler.auth.open() && !cfg.AllowUnauthenticated:
		return fmt.Errorf("%s is not loopback, and nobody is asked who they are", addr)
	case h.handler.auth.open():
		h.log.Warn("whoever reaches the server may call it", "address", addr)
	case !h.secure:
		h.log.Warn("tokens are sent in the clear, unless something in front of the server sees to TLS", "address", addr)
	}
	return nil
}

// Addr is the address that it listens on, with the port that it was given.
func (h *HTTP) Addr() net.Addr { return h.listener.Addr() }

// URL is where clients on this machine reach it, or others if it listens for them.
func (h *HTTP) URL() string {
	scheme := "http"
	if h.secure {
		scheme = "https"
	}
	return scheme + "://" + h.Addr().String() + h.handler.cfg.Path
}

// Serve serves until ctx ends, and returns nil then. The end is orderly: nobody
// new comes in, streams end, requests are answered for [Budgets.Grace], those
// that weren't are cancelled, and their cleanup is awaited for as long again (I6).
func (h *HTTP) Serve(ctx context.Context) error {
	// Requests outlive ctx by the grace.
	base, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	h.server.BaseContext = func(net.Listener) context.Context { return base }

	var serving sync.WaitGroup
	ended := make(chan error, 1)
	serving.Go(func() { ended <- h.server.Serve(h.listener) })
	defer serving.Wait()

	var broken error
	select {
	case err := <-ended:
		broken = fmt.Errorf("serving on %s: %w", h.Addr(), err)
	case <-ctx.Done():
	}
	h.handler.drain()
	grace, done := context.WithTimeout(base, h.handler.budgets.Grace)
	if h.server.Shutdown(grace) != nil {
		h.log.Info("requests were not answered in time and are cancelled")
	}
	done()
	cancel()
	grace, done = context.WithTimeout(context.WithoutCancel(ctx), h.handler.budgets.Grace)
	defer done()
	if err := errors.Join(h.handler.Shutdown(grace), h.server.Shutdown(grace)); err != nil {
		h.log.Warn("calls did not end though they were cancelled")
	}
	_ = h.server.Close()
	return broken
}

// Close gives the port back, where Serve was never called.
func (h *HTTP) Close() error { return h.listener.Close() }

// CheckTLS reports what keeps the certificate and its key from being used, if any
// are given.
func (c HTTPConfig) CheckTLS() error {
	if c.CertFile == "" || c.KeyFile == "" {
		return nil
	}
	_, err := loadTLS(c.CertFile, c.KeyFile)
	return err
}

// loadTLS reads a certificate and its key. Its errors name the file at fault.
func loadTLS(certFile, keyFile string) (*tls.Config, error) {
	cert, err := os.ReadFile(certFile)
	if err != nil {
		return nil, fmt.Errorf("reading the TLS certificate: %w", err)
	}
	key, err := os.ReadFile(keyFile)
	if err != nil {
		return nil, fmt.Errorf("reading the TLS key: %w", err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("using the TLS certificate %s with the key %s: %w", certFile, keyFile, err)
	}
	return &tls.Config{
		Certificates: []tls.Certificate{pair},
		MinVersion:   tls.VersionTLS12,
		NextProtos:   []string{"http/1.1"},
	}, nil
}

// A crowd is the connections that are open at a time, up to a limit. When one
// more comes, the one that has gone longest without a request that is being
// answered makes room: whoever holds connections without using them can't keep
// others out.
type crowd struct {
	net.Listener
	limit int

	mu    sync.Mutex
	open  int
	loose *list.List // of *visitor without a request, the longest first
}

func newCrowd(inner net.Listener, limit int) *crowd {
	return &crowd{Listener: inner, limit: limit, loose: list.New()}
}

// A visitor is a connection of a crowd.
type visitor struct {
	net.Conn
	crowd *crowd

	// The crowd's mutex is theirs.
	place *list.Element // in loose; nil while a request is being answered
	gone  bool
}

// Accept returns the next connection. The one that makes room for it is closed.
func (c *crowd) Accept() (net.Conn, error) {
	for {
		conn, err := c.Listener.Accept()
		if err != nil {
			return nil, err
		}
		v := &visitor{Conn: conn, crowd: c}
		leaves, stays := c.admit(v)
		if leaves != nil {
			_ = leaves.Conn.Close()
		}
		if stays {
			return v, nil
		}
		_ = conn.Close() // all the others are being answered
	}
}

// admit takes v in, in the place of another if need be.
func (c *crowd) admit(v *visitor) (leaves *visitor, stays bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open >= c.limit {
		front := c.loose.Front()
		if front == nil {
			return nil, false
		}
		leaves = front.Value.(*visitor)
		leaves.goneLocked()
	}
	c.open++
	v.place = c.loose.PushBack(v)
	return leaves, true
}

func (v *visitor) goneLocked() {
	if v.gone {
		return
	}
	v.gone = true
	v.crowd.open--
	if v.place != nil {
		v.crowd.loose.Remove(v.place)
		v.place = nil
	}
}

// Close closes the connection and makes room.
func (v *visitor) Close() error {
	v.crowd.mu.Lock()
	v.goneLocked()
	v.crowd.mu.Unlock()
	return v.Conn.Close()
}

// CloseWrite ends what is sent, so that a client can read the answer to a request
// that was not read to its end.
func (v *visitor) CloseWrite() error {
	if c, ok := v.Conn.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return nil
}

// hold keeps the connection from making room for another, until release.
func (v *visitor) hold() {
	v.crowd.mu.Lock()
	defer v.crowd.mu.Unlock()
	if v.place != nil {
		v.crowd.loose.Remove(v.place)
		v.place = nil
	}
}

func (v *visitor) release() {
	v.crowd.mu.Lock()
	defer v.crowd.mu.Unlock()
	if !v.gone && v.place == nil {
		v.place = v.crowd.loose.PushBack(v)
	}
}

// disperse closes the connections without a request: nobody waits for an answer.
func (c *crowd) disperse() {
	c.mu.Lock()
	var leave []*visitor
	for e := c.loose.Front(); e != nil; e = e.Next() {
		leave = append(leave, e.Value.(*visitor))
	}
	c.mu.Unlock()
	for _, v := range leave {
		_ = v.Close()
	}
}

type visitorKey struct{}

func visitorOf(conn net.Conn) *visitor {
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	v, _ := conn.(*visitor)
	return v
}

// withVisitor lets a request find its connection.
func withVisitor(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, visitorKey{}, visitorOf(conn))
}

// holdConnection keeps the connection of a request open until it is answered.
func holdConnection(ctx context.Context) {
	if v, _ := ctx.Value(visitorKey{}).(*visitor); v != nil { // else it is somebody else's listener
		v.hold()
	}
}
