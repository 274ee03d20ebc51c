package server

import (
	"context"
	"sync"
	"time"
)

// A home is what goroutines belong to that no request waits for: runs that are
// parked, and what tells sessions of changes. A stream on stdio is one; all that
// comes over HTTP shares the server's.
type home struct {
	// id, where set, is a request's id as the client wrote it, for one as the SDK
	// has it.
	id func(sdk any) any

	mu    sync.Mutex
	ended bool
	runs  map[*run]struct{}
	group sync.WaitGroup
}

type homeKey struct{}

func (s *Server) homeOf(ctx context.Context) *home {
	if h, ok := ctx.Value(homeKey{}).(*home); ok {
		return h
	}
	return &s.home
}

// enter makes room for a goroutine, which says by leave that it has ended.
func (h *home) enter() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended {
		return false
	}
	h.group.Add(1)
	return true
}

func (h *home) leave() { h.group.Done() }

func (h *home) open(r *run) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended {
		return false
	}
	h.group.Add(1)
	if h.runs == nil {
		h.runs = map[*run]struct{}{}
	}
	h.runs[r] = struct{}{}
	return true
}

func (h *home) close(r *run) {
	h.mu.Lock()
	delete(h.runs, r)
	h.mu.Unlock()
	h.leave()
}

// finish cancels all that is left, and takes nothing new.
func (h *home) finish() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended = true
	for r := range h.runs {
		r.cancel(errEnded)
	}
}

// end finishes, and waits for what is left, but no longer than patience. It
// reports whether nothing is.
func (h *home) end(patience time.Duration) bool {
	h.finish()
	return join(&h.group, patience)
}
