package mcp

import (
	"context"
	"fmt"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// hear takes notice of what the server says by itself.
func (p *probing) hear(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		if method == methodChanged {
			// The SDK would forget the tools that it knows, and with them which
			// headers their calls need, before there are new ones.
			outdate(p.stale)
			return nil, nil
		}
		return next(ctx, method, req)
	}
}

// outdate says that the list of tools may have changed. It doesn't wait.
func outdate(stale chan<- struct{}) {
	select {
	case stale <- struct{}{}:
	default: // it is known
	}
}

// publish registers the tools of the catalog, in place of those that the session
// had. Names that others hold are skipped (O12).
func (s *session) publish() {
	s.mu.Lock()
	defs, connected := s.catalog.defs, s.conn != nil
	s.mu.Unlock()
	if !connected {
		return
	}
	held, skipped := s.names.publish(s, defs)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.report.offer(held)
	s.report.Skipped = skipped
}

// refresh reads the list of tools again. It takes the place of the one before
// when all of it can be used; otherwise that one stays (W7).
func (s *session) refresh(ctx context.Context, conn *connection) {
	limited, cancel := context.WithTimeout(ctx, s.server.ConnectTimeout)
	defer cancel()
	s.stage(stageRefresh)
	catalog, err := s.list(limited, conn)
	if ctx.Err() != nil || s.lost(conn) != nil {
		return // the next connection, if there is one, has a list of its own
	}
	s.mu.Lock()
	old := s.catalog
	s.mu.Unlock()
	if err == nil {
		err = spoilt(old, catalog)
	}
	if err != nil {
		s.warn("its list of tools changed and could not be read, so that the one before stays: " + err.Error())
		return
	}
	s.mu.Lock()
	s.catalog = catalog
	s.mu.Unlock()
	s.publish()
	s.log.Debug("MCP server changed its tools", "tools", len(catalog.defs))
}

// spoilt is why a new list must not take the place of the old one: a tool that
// could be used is still there and can't be used any more. Tools that are new are
// lost one by one, as at the start.
func spoilt(old, new catalog) error {
	kept := make(map[string]bool, len(new.defs))
	for _, d := range new.defs {
		kept[d.Name] = true
	}
	bad := make(map[string]Skip)
	for _, skip := range new.skipped {
		bad[skip.Tool] = skip
	}
	for _, d := range old.defs {
		if skip, ok := bad[d.Name]; ok && !kept[d.Name] {
			return fmt.Errorf("the definition of the tool %q can't be used (%s)", d.Name, skip.Reason)
		}
	}
	return nil
}

// announces reports whether the server sends its notifications only to who
// listens for them.
func (c *connection) announces() bool {
	caps := c.client.InitializeResult().Capabilities
	return c.era() == Modern && caps != nil && caps.Tools != nil && caps.Tools.ListChanged
}

// listen keeps a subscription to changes of the list of tools, of the modern era,
// until ctx ends (O17). Where it breaks off, a change may have been missed.
func (s *session) listen(ctx context.Context, conn *connection) {
	pause := firstPause
	for {
		began := time.Now()
		ended := s.subscribe(ctx, conn)
		if ctx.Err() != nil || !ended {
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
		outdate(conn.stale)
	}
}

// subscribe listens once, and returns when that has ended; again says whether it
// makes sense to do it again.
func (s *session) subscribe(ctx context.Context, conn *connection) (again bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ctx, ex := withExchange(ctx)
	ex.done = make(chan struct{})
	_, err := sdk.CallCustomMethod[*sdk.SubscriptionsListenParams, *sdk.SubscriptionsListenResult](ctx, conn.client, methodListen, &sdk.SubscriptionsListenParams{
		Notifications: &sdk.NotificationSubscriptions{ToolsListChanged: true},
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
