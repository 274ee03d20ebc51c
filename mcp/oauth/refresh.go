package oauth

import (
	"context"
	"errors"
	"fmt"
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

// Fresh returns what is stored for the server, renewed if its access token has
// expired or there is none, and if it can be. It sends nothing else, and asks
// nobody. A refusal of the authorization server is a [*LoginError]; the zero Record
// means that nothing is stored.
func (a *Authorizer) Fresh(ctx context.Context) (Record, error) {
	h, err := a.hold(ctx)
	if err != nil {
		return Record{}, err
	}
	defer h.release()
	if err := a.load(ctx); err != nil {
		return Record{}, err
	}
	if a.current.Refresh.IsZero() || a.current.fresh(time.Now()) {
		return a.current, nil
	}
	err = h.refresh(ctx)
	if errors.As(err, new(*refusal)) {
		err = &LoginError{Server: a.cfg.Name, Err: err, Remedy: a.cfg.Remedy}
	}
	if err == nil {
		err = a.unsaved // what is renewed and not kept may be used up
	}
	return a.current, err
}

// Close waits for a refresh that is under way, for the time given and no longer.
// Nothing may be sent after it.
func (a *Authorizer) Close(grace time.Duration) {
	timer := time.AfterFunc(grace, a.abandon)
	defer timer.Stop()
	a.refreshing.Wait()
}

// refresh renews the current token while no other process does. Another that was
// quicker has stored what it got, which is then taken.
func (a *Authorizer) refresh(ctx context.Context) error {
	if l, ok := a.cfg.Store.(Locker); ok && !a.unattended() {
		unlock, err := l.Lock(ctx, a.bound)
		if err != nil {
			// Better a refresh that may cross another than none.
			unlock = func() {}
			a.warn(fmt.Sprintf("renewing the token without a lock against other processes: %v", err))
		}
		defer unlock()
	}
	old := a.current
	if a.adopt(ctx, func(r Record) bool { return !r.Access.Equal(old.Access) && r.fresh(time.Now()) }) {
		return nil
	}
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
		// Another process may have used it up though there is a lock: one of another
		// machine, or of another program.
		if a.adopt(ctx, func(r Record) bool { return !r.Refresh.Equal(old.Refresh) }) {
			return nil
		}
		a.current.Access, a.current.Refresh = secret.Value{}, secret.Value{}
	}
	return err
}

// adopt makes the record that is stored the current one, if it is newer.
func (a *Authorizer) adopt(ctx context.Context, newer func(Record) bool) bool {
	if a.unattended() {
		return false
	}
	stored, ok, err := a.cfg.Store.Load(ctx, a.bound)
	if err != nil || !ok || !newer(stored) {
		return false
	}
	a.know(stored.secrets()...)
	a.current = stored
	return true
}
