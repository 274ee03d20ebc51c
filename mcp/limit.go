package mcp

import (
	"context"
	"sync"
	"time"
)

// A limit is the time that an operation may take. It stands still while the server
// waits for this host: for a person, or for the model.
type limit struct {
	cancel context.CancelCauseFunc

	mu     sync.Mutex
	timer  *time.Timer
	left   time.Duration // when the timer was last started
	since  time.Time     // when that was
	pauses int           // that are not over
}

// withLimit returns a context that ends with errToolTimeout after d, pauses not
// counted. Stop releases it.
func withLimit(ctx context.Context, d time.Duration) (_ context.Context, l *limit, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	l = &limit{cancel: cancel, left: d, since: time.Now()}
	l.timer = time.AfterFunc(d, func() { cancel(errToolTimeout) })
	return ctx, l, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.pauses++ // nothing starts it again
		l.timer.Stop()
		cancel(nil)
	}
}

// pause stops the clock until resume is called, once.
func (l *limit) pause() (resume func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pauses == 0 && l.timer.Stop() {
		l.left -= time.Since(l.since)
	}
	l.pauses++
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.pauses--; l.pauses == 0 {
			l.since = time.Now()
			l.timer.Reset(max(l.left, 0))
		}
	}
}
