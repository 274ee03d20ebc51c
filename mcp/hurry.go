package mcp

import (
	"context"
	"sync"
)

// A hurry is when there is no time any more for what nobody waits for, such as a
// farewell. Only the SDK waits for that, when it closes a session.
type hurry struct {
	once sync.Once
	now  chan struct{}
}

func newHurry() hurry { return hurry{now: make(chan struct{})} }

func (h *hurry) begin() { h.once.Do(func() { close(h.now) }) }

// within returns a context that also ends with the hurry, and how to let go of it.
func (h *hurry) within(ctx context.Context) (_ context.Context, done func()) {
	ctx, cancel := context.WithCancel(ctx)
	told := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		select {
		case <-h.now:
			cancel()
		case <-told:
		}
	})
	return ctx, func() {
		close(told)
		watching.Wait()
		cancel()
	}
}
