package oauth

import (
	"context"
	"errors"
	"net/url"
	"sync/atomic"
	"time"

	"crewhost/config/secret"
)

// A hold is the right to read and change the current record. One holds it at a
// time, and the others wait as long as their contexts let them.
type hold struct {
	a     *Authorizer
	given bool // to a refresh that goes on without the holder
}

func (a *Authorizer) hold(ctx context.Context) (*hold, error) {
	select {
	case a.turn <- struct{}{}:
		return &hold{a: a}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (h *hold) release() {
	if !h.given {
		<-h.a.turn
	}
}

// refresh renews the current token. A refusal means that the refresh token is of
// no more use; it is forgotten then. A refresh that was begun is brought to its end
// though ctx ends before: the old refresh token may be used up, and the new one is
// in the answer. It keeps the hold until then.
func (h *hold) refresh(ctx context.Context) error {
	const running, left, done = 0, 1, 2
	var state atomic.Int32
	result := make(chan error, 1)
	h.a.refreshing.Go(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeLimit)
		defer cancel()
		ended := make(chan struct{})
		defer close(ended)
		h.a.refreshing.Go(func() {
			select {
			case <-h.a.stop:
				cancel()
			case <-ended:
			}
		})
		result <- h.a.refresh(ctx)
		if !state.CompareAndSwap(running, done) {
			<-h.a.turn
		}
	})
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
		if state.CompareAndSwap(running, left) {
			h.given = true
			return ctx.Err()
		}
		return <-result
	}
}

// Close waits for a refresh that is under way, for the time given and no longer.
// Nothing may be sent after it.
func (a *Authorizer) Close(grace time.Duration) {
	timer := time.AfterFunc(grace, a.abandon)
	defer timer.Stop()
	a.refreshing.Wait()
}

func (a *Authorizer) refresh(ctx context.Context) error {
	old := a.current
	p, err := a.returning(ctx, old)
	if err != nil {
		return err
	}
	r, err := a.ask(ctx, old, p, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {old.Refresh.Reveal()}})
	if err == nil {
		a.keep(ctx, r)
		return nil
	}
	var no *refusal
	if errors.As(err, &no) && no.code == "invalid_grant" {
		// Another process may have used it up, and stored what it got.
		if stored, ok, lookup := a.cfg.Store.Load(ctx, a.bound); lookup == nil && ok && !stored.Refresh.Equal(old.Refresh) {
			a.know(stored.secrets()...)
			a.current = stored
			return nil
		}
		a.current.Access, a.current.Refresh = secret.Value{}, secret.Value{}
	}
	return err
}
