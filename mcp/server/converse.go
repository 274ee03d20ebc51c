package server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// askFor is how long a call waits for its client to come back with an answer.
	askFor = 5 * time.Minute
	// gather is how long questions that are asked at the same time are waited
	// for, so that one answer carries them all.
	gather = 5 * time.Millisecond
	// maxState is more than what a question's answer has besides the question, in
	// bytes.
	maxState = 200
)

var (
	errExpired = errors.New("the client did not come back with an answer")
	errEnded   = errors.New("the connection has ended")
)

// A turn is what one request adds to a run: the first one, or one that comes back
// with answers.
type turn struct {
	what      string // is done: method and name, the same in all turns
	state     string // that the client gives back; empty in the first turn
	responses mcp.InputResponseMap
	token     any // for progress; nil: it isn't told
}

// A run is a call, a read or a prompt of the modern era. It outlives the request
// that began it where it asks something: that request is answered with the
// question, and the run is parked until another one brings the answer. Its place in
// the budget is its own until it ends.
type run struct {
	what, principal string
	cancel          context.CancelCauseFunc
	done            chan struct{} // closed when res and err are there
	res             *answer
	err             error

	asked chan struct{} // holds a token when there is a question

	mu      sync.Mutex
	brought mcp.InputResponseMap // that came with the call, by the name of what they answer
	open    []*question          // not answered, in the order in which they were asked
	n       int                  // of all questions
	at      *desk                // of the turn that is served; nil while parked
}

// converse does work for a client, and lets it ask the client meanwhile.
func (s *Server) converse(ctx context.Context, x exchange, t turn, work func(context.Context) (*answer, error)) (*answer, error) {
	if x.modern && t.state != "" {
		r, ok := s.runs.claim(t.state, t.what, x.principal)
		if !ok {
			return nil, invalid("the requestState is not one that is waited for: it is another's, was used, or has expired")
		}
		return s.attend(ctx, x, r, t)
	}
	if !s.places.enter() {
		return nil, s.busy()
	}
	if !x.modern {
		defer s.places.leave()
		d := newDesk(ctx, x, t.token)
		defer d.close()
		return work(context.WithValue(ctx, callerKey{}, Caller(&session{d: d, x: x})))
	}
	h := s.homeOf(ctx)
	first := newDesk(ctx, x, t.token)
	r := &run{what: t.what, principal: x.principal, at: first, brought: maps.Clone(t.responses), done: make(chan struct{}), asked: make(chan struct{}, 1)}
	wctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	r.cancel = cancel
	wctx = context.WithValue(wctx, callerKey{}, Caller(&guest{s: s, r: r, caps: x.caps}))
	if !h.open(r) {
		cancel(errEnded)
		s.places.leave()
		return nil, rpcError(jsonrpc.CodeInternalError, errEnded.Error())
	}
	go func() {
		defer h.close(r)
		defer func() {
			if errors.Is(context.Cause(wctx), errEnded) {
				s.runs.drop(r) // nobody comes back for it
			}
			cancel(nil)
		}()
		defer close(r.done)
		defer s.places.leave()
		defer func() {
			if p := recover(); p != nil {
				s.log.ErrorContext(wctx, "a request broke down", "doing", r.what, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
				r.res, r.err = nil, errInternal()
			}
		}()
		r.res, r.err = work(wctx)
	}()
	return s.wait(ctx, r, first)
}

// attend serves a turn that brings answers.
func (s *Server) attend(ctx context.Context, x exchange, r *run, t turn) (*answer, error) {
	d := newDesk(ctx, x, t.token)
	r.mu.Lock()
	r.at = d
	r.open = slices.DeleteFunc(r.open, func(q *question) bool {
		response, ok := t.responses[q.key]
		return ok && q.take(response)
	})
	if len(r.open) > 0 { // they are asked again
		r.remind()
	}
	r.mu.Unlock()
	return s.wait(ctx, r, d)
}

// wait returns what the request is answered with: the end of the run, or a question.
func (s *Server) wait(ctx context.Context, r *run, d *desk) (*answer, error) {
	defer d.close() // after this nothing more is said of the request
	stop := context.AfterFunc(ctx, func() { r.cancel(context.Cause(ctx)) })
	defer stop()
	for {
		select {
		case <-r.done:
			return r.res, r.err
		case <-r.asked:
		}
		together := time.NewTimer(gather)
		select {
		case <-r.done:
			together.Stop()
			return r.res, r.err
		case <-together.C:
		}
		if a := s.park(ctx, r); a != nil {
			return a, nil
		}
	}
}

// park puts the open questions of a run into an answer. It returns nil where there
// are none any more, or where they can't be asked, which the run is told.
func (s *Server) park(ctx context.Context, r *run) *answer {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.open) == 0 || ctx.Err() != nil {
		return nil
	}
	requests := newObject()
	for _, q := range r.open {
		one := newObject()
		one.text("method", q.method)
		one.raw("params", q.params)
		requests.raw(q.key, one.end())
	}
	fail := func(why string) *answer {
		for _, q := range r.open {
			q.fail(fmt.Errorf("%w: %s", ErrNoClient, why))
		}
		r.open = nil
		return nil
	}
	if len(requests.b)+maxState > s.budgets.ResponseBytes {
		return fail("the question is larger than an answer may be")
	}
	// Half of the places may be those of clients that never come back: of one, none.
	limit := s.budgets.ConcurrentRequests / 2
	if limit == 0 {
		return fail("one request is served at a time, and a call that waits for an answer would keep out all others")
	}
	state, ok := s.runs.park(r, limit)
	if !ok {
		return fail("too many calls wait for an answer")
	}
	r.at = nil
	o := newObject()
	o.raw("inputRequests", requests.end())
	o.text("requestState", state)
	return &answer{kind: inputRequired, body: o.end()}
}

// remind says that there is a question. r.mu is held.
func (r *run) remind() {
	select {
	case r.asked <- struct{}{}:
	default:
	}
}

// desk is that of the turn that is served, or nil.
func (r *run) desk() *desk {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.at
}

// runs are the runs that are parked, by what their clients give back.
type runs struct {
	mu     sync.Mutex
	parked map[string]parked
}

type parked struct {
	run   *run
	alarm *time.Timer
}

// park keeps a run until it is claimed or its time is over. The state is random:
// whoever doesn't have it can't make one up, nor change one.
func (rs *runs) park(r *run, limit int) (state string, ok bool) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if len(rs.parked) >= limit {
		return "", false
	}
	state = rand.Text()
	alarm := time.AfterFunc(askFor, func() {
		if _, ok := rs.take(state); ok {
			r.cancel(errExpired)
		}
	})
	if rs.parked == nil {
		rs.parked = map[string]parked{}
	}
	rs.parked[state] = parked{run: r, alarm: alarm}
	return state, true
}

// claim returns the run that a client comes back for. The state of another
// request, or of somebody else, is none.
func (rs *runs) claim(state, what, principal string) (*run, bool) {
	rs.mu.Lock()
	p, ok := rs.parked[state]
	if ok = ok && p.run.what == what && p.run.principal == principal; ok {
		delete(rs.parked, state)
		p.alarm.Stop()
	}
	rs.mu.Unlock()
	return p.run, ok
}

func (rs *runs) take(state string) (*run, bool) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	p, ok := rs.parked[state]
	delete(rs.parked, state)
	return p.run, ok
}

// drop forgets a run that is over.
func (rs *runs) drop(r *run) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	for state, p := range rs.parked {
		if p.run == r {
			p.alarm.Stop()
			delete(rs.parked, state)
		}
	}
}
