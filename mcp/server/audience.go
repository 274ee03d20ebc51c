package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A kind of event is what clients are told of.
type kind int

const (
	toolsChanged kind = iota
	promptsChanged
	resourcesChanged
	resourceUpdated
)

// An event is one thing that clients are told of. Equal events that wait are one.
type event struct {
	kind kind
	uri  string // of resourceUpdated
}

// settle is how long events are waited for that come together.
const settle = 10 * time.Millisecond

// A listener is a stream or a session that hears of changes. Events wait in it
// until its stream takes them. Where more than the buffer holds would wait, all but
// the first are lost, and overflowed says so (I10).
type listener struct {
	buffer int
	wake   chan struct{}

	mu         sync.Mutex
	wanted     [resourceUpdated + 1]bool
	waiting    []event
	overflowed bool
}

func (l *listener) tell(e event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.wanted[e.kind] || slices.Contains(l.waiting, e) {
		return
	}
	if len(l.waiting) >= l.buffer {
		l.overflowed = true
	} else {
		l.waiting = append(l.waiting, e)
	}
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// take returns what waits, and whether something was lost.
func (l *listener) take() (events []event, overflowed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	events, overflowed = l.waiting, l.overflowed
	l.waiting, l.overflowed = nil, false
	return events, overflowed
}

// pump says what a listener hears, until done. It returns early where say fails,
// or where something was lost and lost says that this is the end.
func (l *listener) pump(done <-chan struct{}, say func(event) error, lost func() error) error {
	timer := time.NewTimer(settle)
	defer timer.Stop()
	for {
		select {
		case <-done:
			return nil
		case <-l.wake:
		}
		timer.Reset(settle)
		select {
		case <-done:
			return nil
		case <-timer.C:
		}
		events, overflowed := l.take()
		for _, e := range events {
			if err := say(e); err != nil {
				return err
			}
		}
		if overflowed {
			if err := lost(); err != nil {
				return err
			}
		}
	}
}

// The audience are the listeners of both eras.
type audience struct {
	mu        sync.Mutex
	listeners map[*listener]struct{}
	members   map[*mcp.ServerSession]*member
}

// A member is a session of the initialize lineage that hears of changes.
type member struct {
	listener *listener
	done     chan struct{}

	mu      sync.Mutex
	ended   bool
	watches map[string]func() // by URI; what stops them
}

// tell tells all who want to hear.
func (a *audience) tell(e event) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for l := range a.listeners {
		l.tell(e)
	}
}

// join returns a new listener, or nil where there are too many. a.mu is held.
func (a *audience) join(b Budgets) *listener {
	if len(a.listeners) >= b.Subscribers {
		return nil
	}
	if a.listeners == nil {
		a.listeners = map[*listener]struct{}{}
	}
	l := &listener{buffer: b.SubscriptionBuffer, wake: make(chan struct{}, 1)}
	a.listeners[l] = struct{}{}
	return l
}

func (a *audience) quit(l *listener) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.listeners, l)
}

// method is what an event is called on the wire, and params what it says. id is
// that of the subscription; nil: there is none.
func (e event) message(id any) (method string, params mcp.Params) {
	var meta mcp.Meta
	if id != nil {
		meta = mcp.Meta{mcp.MetaKeySubscriptionID: id}
	}
	switch e.kind {
	case toolsChanged:
		return "notifications/tools/list_changed", &mcp.ToolListChangedParams{Meta: meta}
	case promptsChanged:
		return "notifications/prompts/list_changed", &mcp.PromptListChangedParams{Meta: meta}
	case resourcesChanged:
		return "notifications/resources/list_changed", &mcp.ResourceListChangedParams{Meta: meta}
	}
	return "notifications/resources/updated", &mcp.ResourceUpdatedNotificationParams{URI: e.uri, Meta: meta}
}

// watch has a listener hear of a resource.
func (s *Server) watch(ctx context.Context, uri string, l *listener) (stop func(), err error) {
	return s.cfg.Resources.(Watcher).Watch(ctx, uri, func() { l.tell(event{kind: resourceUpdated, uri: uri}) })
}

// agree is what of a subscription is served.
func (s *Server) agree(wanted *mcp.NotificationSubscriptions) (mcp.NotificationSubscriptions, error) {
	agreed := mcp.NotificationSubscriptions{
		ToolsListChanged:     wanted.ToolsListChanged,
		PromptsListChanged:   wanted.PromptsListChanged && s.cfg.Prompts != nil,
		ResourcesListChanged: wanted.ResourcesListChanged && s.cfg.Resources != nil,
	}
	if _, ok := s.cfg.Resources.(Watcher); !ok {
		return agreed, nil
	}
	for _, uri := range wanted.ResourceSubscriptions {
		switch {
		case slices.Contains(agreed.ResourceSubscriptions, uri):
		case len(agreed.ResourceSubscriptions) == s.budgets.SubscribedURIs:
			return agreed, s.tooManyURIs()
		default:
			agreed.ResourceSubscriptions = append(agreed.ResourceSubscriptions, uri)
		}
	}
	return agreed, nil
}

// listen serves subscriptions/listen, which is open until the client ends it. A
// stream on which more would wait than SubscriptionBuffer ends with its result, so
// that the client knows that it missed something and reads again.
func (s *Server) listen(ctx context.Context, r *mcp.SubscriptionsListenRequest, next mcp.MethodHandler) (mcp.Result, error) {
	if r.Params.Notifications == nil {
		return nil, invalid("what to notify of is missing")
	}
	agreed, err := s.agree(r.Params.Notifications)
	if err != nil {
		return nil, err
	}
	s.audience.mu.Lock()
	l := s.audience.join(s.budgets)
	s.audience.mu.Unlock()
	if l == nil {
		return nil, s.tooManyListeners()
	}
	defer s.audience.quit(l)
	l.mu.Lock()
	l.wanted = [...]bool{
		toolsChanged: agreed.ToolsListChanged, promptsChanged: agreed.PromptsListChanged,
		resourcesChanged: agreed.ResourcesListChanged, resourceUpdated: true,
	}
	l.mu.Unlock()
	// What happens from here on waits until the subscription is acknowledged.
	uris := agreed.ResourceSubscriptions
	agreed.ResourceSubscriptions = nil
	for _, uri := range uris {
		stop, err := s.watch(ctx, uri, l)
		if err != nil {
			s.log.WarnContext(ctx, "a resource can't be watched", "uri", uri, "error", err)
			continue
		}
		defer stop()
		agreed.ResourceSubscriptions = append(agreed.ResourceSubscriptions, uri)
	}
	// The SDK acknowledges, and knows the request's id, but keeps one subscription
	// a session; so it is given an empty one, and ends at once.
	ack := &acknowledgement{agreed: agreed}
	empty := *r
	empty.Params = &mcp.SubscriptionsListenParams{Meta: r.Params.Meta, Notifications: &mcp.NotificationSubscriptions{}}
	res, err := next(context.WithValue(ctx, acknowledgementKey{}, ack), listenMethod, &empty)
	if err != nil {
		return nil, s.failed(ctx, "acknowledging a subscription", err)
	}
	end := res.(*mcp.SubscriptionsListenResult)
	end.Meta = mcp.Meta{mcp.MetaKeySubscriptionID: ack.id}
	if !agreed.ToolsListChanged && !agreed.PromptsListChanged && !agreed.ResourcesListChanged && len(agreed.ResourceSubscriptions) == 0 {
		return end, nil
	}
	err = l.pump(ctx.Done(), func(e event) error {
		method, params := e.message(ack.id)
		return notify(ctx, r.Session, method, params)
	}, func() error { return errOverflow })
	if err != nil {
		s.log.WarnContext(ctx, "a subscription ended", "error", err)
	}
	return end, nil
}

var errOverflow = errors.New("more events than its buffer holds")

// apart is the context of what is said to a session and to no request of it, so that
// it goes to the session's own stream. It ends when the session does.
type apart struct{ done <-chan struct{} }

func (apart) Deadline() (deadline time.Time, ok bool) { return time.Time{}, false }
func (a apart) Done() <-chan struct{}                 { return a.done }
func (apart) Value(any) any                           { return nil }
func (a apart) Err() error {
	select {
	case <-a.done:
		return context.Canceled
	default:
		return nil
	}
}

// member returns what a session of the initialize lineage hears with, which is
// made where it is missing. It is nil where too many listen.
func (s *Server) member(ctx context.Context, session *mcp.ServerSession) *member {
	h := s.homeOf(ctx)
	s.audience.mu.Lock()
	defer s.audience.mu.Unlock()
	if m, ok := s.audience.members[session]; ok {
		return m
	}
	if !h.enter() {
		return nil
	}
	l := s.audience.join(s.budgets)
	if l == nil {
		h.leave()
		s.log.WarnContext(ctx, "a session hears of no changes: too many listen already", "subscribers", s.budgets.Subscribers)
		return nil
	}
	l.wanted = [...]bool{toolsChanged: true, promptsChanged: true, resourcesChanged: true, resourceUpdated: true}
	m := &member{listener: l, done: make(chan struct{}), watches: map[string]func(){}}
	if s.audience.members == nil {
		s.audience.members = map[*mcp.ServerSession]*member{}
	}
	s.audience.members[session] = m
	go func() { //nolint:contextcheck // it outlives the request that began it
		defer h.leave()
		var telling sync.WaitGroup
		telling.Go(func() { s.tellMember(session, m) })
		_ = session.Wait() // how it ended is the transport's to say
		s.audience.mu.Lock()
		delete(s.audience.members, session)
		s.audience.mu.Unlock()
		s.audience.quit(l)
		m.end()
		telling.Wait()
	}()
	return m
}

// tellMember tells a session of changes. What is lost is told as a change of the
// list, after which a client reads again.
func (s *Server) tellMember(session *mcp.ServerSession, m *member) {
	say := func(e event) error {
		method, params := e.message(nil)
		if err := notify(apart{m.done}, session, method, params); err != nil {
			s.log.Debug("a session could not be told of a change", "method", method, "error", err)
		}
		return nil
	}
	_ = m.listener.pump(m.done, say, func() error { return say(event{kind: resourcesChanged}) })
}

func (m *member) end() {
	close(m.done)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ended = true
	for _, stop := range m.watches {
		stop()
	}
	m.watches = nil
}

// subscribe has a session of the initialize lineage hear of a resource.
func (s *Server) subscribe(ctx context.Context, x exchange, uri string) (*answer, error) {
	if _, ok := s.cfg.Resources.(Watcher); !ok {
		return nil, notServed("subscriptions to resources")
	}
	m := s.member(ctx, x.session)
	if m == nil {
		return nil, s.tooManyListeners()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch _, already := m.watches[uri]; {
	case m.ended, already:
		return s.answer(x, []byte("{}"))
	case len(m.watches) >= s.budgets.SubscribedURIs:
		return nil, s.tooManyURIs()
	}
	stop, err := s.watch(ctx, uri, m.listener)
	if err != nil {
		if isNotFound(err) {
			return nil, noResource(x, uri)
		}
		return nil, s.failed(ctx, "watching a resource", err)
	}
	m.watches[uri] = stop
	return s.answer(x, []byte("{}"))
}

func (s *Server) unsubscribe(x exchange, uri string) (*answer, error) {
	if _, ok := s.cfg.Resources.(Watcher); !ok {
		return nil, notServed("subscriptions to resources")
	}
	s.audience.mu.Lock()
	m := s.audience.members[x.session]
	s.audience.mu.Unlock()
	if m != nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		if stop, ok := m.watches[uri]; ok {
			delete(m.watches, uri)
			stop()
		}
	}
	return s.answer(x, []byte("{}"))
}

func (s *Server) tooManyListeners() error {
	return rpcError(CodeTooManyListeners, fmt.Sprintf("%d streams and sessions listen, and no more are served at a time", s.budgets.Subscribers))
}

func (s *Server) tooManyURIs() error {
	return rpcError(CodeTooManyListeners, fmt.Sprintf("at most %d resources can be watched by one listener", s.budgets.SubscribedURIs))
}
