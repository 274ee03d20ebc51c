package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A Server offers what its [Config] says, over any number of transports at once.
// Its budgets are for all of them together.
type Server struct {
	cfg     Config
	budgets Budgets
	log     *slog.Logger

	// sdk holds sessions of both eras. What they ask comes to [Server.receive],
	// which knows by each request which era it is of.
	sdk *mcp.Server

	places   places   // of requests and open streams (I9)
	audience audience // who hears of changes
	finders  finders  // calls of what was searched for
	runs     runs     // calls that wait for an answer of their client
	home     home     // of what no stream is the home of

	mu    sync.RWMutex
	shelf *shelf // the tools that are offered now
}

// New returns a server, which serves nobody yet. The error names everything that
// can't be meant (I13).
func New(cfg Config) (*Server, error) {
	var errs []error
	if cfg.Name == "" {
		errs = append(errs, errors.New("name: it is empty"))
	}
	if cfg.Version == "" {
		errs = append(errs, errors.New("version: it is empty"))
	}
	if cfg.Guard == nil {
		errs = append(errs, errors.New("guard: there is none"))
	}
	if err := errors.Join(append(errs, cfg.Budgets.Check())...); err != nil {
		return nil, fmt.Errorf("MCP server: %w", err)
	}
	s := &Server{cfg: cfg, budgets: cfg.Budgets.withDefaults(), log: slog.New(slog.DiscardHandler)}
	if cfg.Logger != nil {
		s.log = slog.New(requestLog{cfg.Logger.Handler()})
	}
	s.places.limit = int64(s.budgets.ConcurrentRequests)
	s.shelf = s.stock()
	s.sdk = s.newSDK()
	return s, nil
}

// Refresh looks which tools there are now, and tells clients of both eras where
// that has changed. Resources and prompts are asked for with each request; clients
// are told that they may have changed. It returns at once, and many calls in a row
// are one notice.
func (s *Server) Refresh() {
	shelf := s.stock()
	s.mu.Lock()
	changed := !s.shelf.equal(shelf)
	s.shelf = shelf
	s.mu.Unlock()
	if changed {
		s.audience.tell(event{kind: toolsChanged})
	}
	if s.cfg.Resources != nil {
		s.audience.tell(event{kind: resourcesChanged})
	}
	if s.cfg.Prompts != nil {
		s.audience.tell(event{kind: promptsChanged})
	}
}

// newSDK makes the SDK's server, which keeps the sessions. Nothing is registered
// with it: what clients ask for is answered before it gets there.
func (s *Server) newSDK() *mcp.Server {
	caps := &mcp.ServerCapabilities{
		Logging: &mcp.LoggingCapabilities{},
		Tools:   &mcp.ToolCapabilities{ListChanged: true},
	}
	if s.cfg.Resources != nil {
		_, watches := s.cfg.Resources.(Watcher)
		caps.Resources = &mcp.ResourceCapabilities{ListChanged: true, Subscribe: watches}
	}
	if s.cfg.Prompts != nil {
		caps.Prompts = &mcp.PromptCapabilities{ListChanged: true}
	}
	if s.completes() {
		caps.Completions = &mcp.CompletionCapabilities{}
	}
	sdk := mcp.NewServer(
		&mcp.Implementation{Name: s.cfg.Name, Title: s.cfg.Title, Version: s.cfg.Version},
		&mcp.ServerOptions{
			Instructions: s.cfg.Instructions,
			Capabilities: caps,
			SetCacheable: func(_ context.Context, _ mcp.Request, c *mcp.Cacheable) {
				c.TTLMs, c.CacheScope = int(listTTL.Milliseconds()), cacheScope
			},
		})
	sdk.AddSendingMiddleware(s.send)
	sdk.AddReceivingMiddleware(withRequestID, withLife, s.receive)
	return sdk
}
