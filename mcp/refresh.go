package mcp

import (
	"context"
	"fmt"
	"reflect"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// hear takes notice of what the server says by itself.
func (p *probing) hear(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		switch method {
		case methodChanged:
			// The SDK would forget the tools that it knows, and with them which
			// headers their calls need, before there are new ones.
			outdate(p.stale)
			return nil, nil
		case methodNewPrompts, methodNewSources:
			p.session.offersChanged()
		case methodListening:
			if conn := p.conn.Load(); conn != nil {
				conn.acknowledge()
				if conn.listed.Load() { // it may have changed before
					outdate(p.stale)
					p.session.offersChanged()
				}
			}
		}
		return next(ctx, method, req)
	}
}

func (s *session) offersChanged() {
	if s.opts.OnOffers != nil {
		s.opts.OnOffers()
	}
}

// outdate says that the list of tools may have changed. It doesn't wait.
func outdate(stale chan<- struct{}) {
	select {
	case stale <- struct{}{}:
	default: // it is known
	}
}

// used has the list of tools read again, soon, if its time to live is over: nobody
// waits for that, and a list that nobody uses is not read (O17).
func (s *session) used(conn *connection) {
	s.mu.Lock()
	until := s.catalog.until
	s.mu.Unlock()
	if !until.IsZero() && time.Now().After(until) {
		outdate(conn.stale)
	}
}

// publish registers the tools of the catalog, in place of those that the session
// had. Names that others hold are skipped (O12).
func (s *session) publish() {
	s.mu.Lock()
	defs, there := s.catalog.defs, s.report.State == StateConnected || s.recovering
	s.mu.Unlock()
	if !there {
		return
	}
	held, skipped := s.names.publish(s, defs)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.report.offer(held)
	s.report.Skipped = skipped
}

// refresh reads the list of tools again. It takes the place of the one before
// when all of it can be used; otherwise that one stays (W7). It reports whether
// nothing had changed.
func (s *session) refresh(ctx context.Context, conn *connection) (same bool) {
	limited, cancel := context.WithTimeout(ctx, s.server.ConnectTimeout)
	defer cancel()
	s.stage(stageRefresh)
	catalog, err := s.list(limited, conn)
	if ctx.Err() != nil || s.lost(conn) != nil {
		return false // the next connection, if there is one, has a list of its own
	}
	s.mu.Lock()
	old := s.catalog
	s.mu.Unlock()
	if err == nil {
		err = spoilt(old, catalog)
	}
	if err != nil {
		s.mu.Lock()
		if !old.until.IsZero() {
			s.catalog.until = time.Now().Add(lastPause)
		}
		s.mu.Unlock()
		s.warn("its list of tools could not be read again, and the one before stays: " + err.Error())
		return false
	}
	s.mu.Lock()
	s.catalog = catalog
	s.mu.Unlock()
	if reflect.DeepEqual(old.defs, catalog.defs) {
		return true
	}
	s.publish()
	s.log.Debug("MCP server changed its tools", "tools", len(catalog.defs))
	return false
}

// spoilt is why a new list must not take the place of the old one: a tool that
// could be used is still there and can't be used any more. Tools that are new are
// lost one by one, as at the start.
func spoilt(old, new catalog) error {
	kept := make(map[string]bool, len(new.defs))
	for _, d := range new.defs {
		kept[d.ServerName()] = true
	}
	bad := make(map[string]Skip)
	for _, skip := range new.skipped {
		bad[skip.Tool] = skip
	}
	for _, d := range old.defs {
		if skip, ok := bad[d.ServerName()]; ok && !kept[d.ServerName()] {
			return fmt.Errorf("the definition of the tool %q can't be used (%s)", d.ServerName(), skip.Reason)
		}
	}
	return nil
}

// acknowledgeLimit is how long the list waits for the subscription to its changes.
// Where that comes later, the list is read once more.
const acknowledgeLimit = 500 * time.Millisecond

// wanted is what of a server's changes somebody wants to know that it tells of.
func (s *session) wanted(conn *connection) sdk.NotificationSubscriptions {
	var w sdk.NotificationSubscriptions
	if caps := conn.client.InitializeResult().Capabilities; caps != nil {
		w.ToolsListChanged = caps.Tools != nil && caps.Tools.ListChanged
		if s.opts.OnOffers != nil {
			w.ResourcesListChanged = caps.Resources != nil && caps.Resources.ListChanged
			w.PromptsListChanged = caps.Prompts != nil && caps.Prompts.ListChanged
		}
	}
	return w
}

// heed subscribes to changes of the list of tools, before it is read, so that
// none is missed (O17), and of what is offered besides. In the legacy era there is
// nothing to do: those servers tell everybody.
func (s *session) heed(ctx context.Context, conn *connection) {
	defer conn.listed.Store(true)
	wanted := s.wanted(conn)
	if conn.era() != Modern || !wanted.ToolsListChanged && !wanted.ResourcesListChanged && !wanted.PromptsListChanged {
		return
	}
	listening, silence := context.WithCancel(context.WithoutCancel(ctx))
	conn.silence = silence
	refused := make(chan struct{})
	conn.watching.Go(func() {
		defer close(refused)
		s.listen(listening, conn)
	})
	timer := time.NewTimer(acknowledgeLimit)
	defer timer.Stop()
	select {
	case <-conn.acknowledged:
	case <-refused:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// listen keeps a subscription until ctx ends or the server refuses it. Where it
// breaks off, a change may have been missed.
func (s *session) listen(ctx context.Context, conn *connection) {
	pause := firstPause
	for {
		began := time.Now()
		if !s.subscribe(ctx, conn) {
			return
		}
		if time.Since(began) > lastPause {
			pause = firstPause
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-conn.over:
			timer.Stop()
			return
		case <-ctx.Done():
			timer.Stop()
			return
		}
		pause = min(2*pause, lastPause)
	}
}

// subscribe listens once, and returns when that has ended; again says whether it
// makes sense to do it again.
func (s *session) subscribe(ctx context.Context, conn *connection) (again bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ctx, ex := withExchange(ctx)
	ex.done = make(chan struct{})
	wanted := s.wanted(conn)
	_, err := sdk.CallCustomMethod[*sdk.SubscriptionsListenParams, *sdk.SubscriptionsListenResult](ctx, conn.client, methodListen, &sdk.SubscriptionsListenParams{
		Notifications: &wanted,
	})
	if err != nil {
		return false
	}
	select {
	case <-ex.done:
	case <-conn.over:
		return false
	case <-ctx.Done():
		return false
	}
	_, refusal, _ := ex.get()
	if refusal != nil {
		s.warn("refuses to tell of changes to its tools: " + s.refusalText(refusal))
	}
	return refusal == nil
}
