package server

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A Handler serves one endpoint, to clients of both eras, with what guards it.
// Whoever made it shuts it down.
//
// A request goes no further than its first fault: the name that it calls the
// server by and its origin are looked at before anything else, then who sent it,
// then its headers, and its body last.
type Handler struct {
	server  *Server
	cfg     HTTPConfig
	budgets Budgets
	log     *slog.Logger
	auth    *authenticator

	versions       []string // that are spoken, the newest first
	modern, legacy http.Handler
	metadata       []string // the paths of what OAuth asks for

	room     room
	outbox   outbox
	streams  streams
	sessions *sessions
	home     home // of runs that outlive their requests
	draining atomic.Bool
}

// Handler returns a handler for a listener of the caller's. The error is that of
// [HTTPConfig.Check]. What a listener sees to — how many connections there are, and
// how long and large the head of a request is — is the caller's then;
// [Server.ListenHTTP] sees to all of it.
func (s *Server) Handler(cfg HTTPConfig) (*Handler, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	h := &Handler{
		server: s, cfg: cfg, budgets: s.budgets, log: s.log,
		auth:     newAuthenticator(cfg),
		versions: supported(),
		room:     room{left: s.budgets.RequestBytes * s.budgets.ConcurrentRequests},
		outbox:   outbox{left: s.budgets.ResponseBytes * s.budgets.ConcurrentRequests},
		sessions: newSessions(cfg.Sessions, cfg.SessionIdle, s.log.Info),
	}
	if cfg.OAuth != nil {
		h.metadata = h.auth.metadataPaths(cfg.Path)
	}
	served := func(*http.Request) *mcp.Server { return s.sdk }
	// What these would look at has been looked at before a request comes to them.
	options := mcp.StreamableHTTPOptions{DisableLocalhostProtection: true, MaxRequestBodyBytes: -1}
	h.legacy = mcp.NewStreamableHTTPHandler(served, &options)
	options.Stateless, options.PropagateRequestCancellation = true, true
	h.modern = mcp.NewStreamableHTTPHandler(served, &options)
	return h, nil
}

// drain turns away whoever comes now, and ends the streams: nothing on them is an
// answer that somebody waits for.
func (h *Handler) drain() {
	h.draining.Store(true)
	h.streams.close()
}

// Shutdown ends all streams and sessions, cancels what is called in the latter, and
// waits for it until ctx ends. The calls of clients without a session end with their
// requests.
func (h *Handler) Shutdown(ctx context.Context) error {
	h.drain()
	err := h.sessions.close(ctx)
	patience := h.budgets.Grace
	if deadline, ok := ctx.Deadline(); ok {
		patience = max(0, time.Until(deadline))
	}
	if !h.home.end(patience) {
		err = errors.Join(err, errors.New("calls that were cancelled did not end"))
	}
	return err
}

// streams are those that are open.
type streams struct {
	mu     sync.Mutex
	ends   map[*http.Request]context.CancelCauseFunc
	closed bool
}

// errEnding is why streams end when the server does.
var errEnding = errors.New("the server ends")

// add has end called when the streams end, until the stream is removed.
func (s *streams) add(r *http.Request, end context.CancelCauseFunc) (remove func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		end(errEnding)
	}
	if s.ends == nil {
		s.ends = map[*http.Request]context.CancelCauseFunc{}
	}
	s.ends[r] = end
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.ends, r)
	}
}

func (s *streams) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, end := range s.ends {
		end(errEnding)
	}
}
