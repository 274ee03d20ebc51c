package sealed

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zalando/go-keyring"

	"crewhost/config/secret"
)

// ringLimit is how long the keyring may take: it may wait for somebody to
// unlock it, and offers no way to call that off.
const ringLimit = 5 * time.Second

// A Ring is the keyring of the operating system, as far as it belongs to one
// service. Every question has five seconds.
type Ring struct{ Service string }

// RingError says that the keyring is of no use: there is none, it is locked, or it
// does not take this.
type RingError struct {
	Doing string // "reading"
	Err   error
}

// Error is one line.
func (e *RingError) Error() string { return e.Doing + " the keyring: " + e.Err.Error() }

// Unwrap returns Err.
func (e *RingError) Unwrap() error { return e.Err }

// ErrTooLong says that the keyring takes no value of this length.
var ErrTooLong = keyring.ErrSetDataTooBig

// Get returns the value of a name; ok is false where there is none. Its errors, as
// those of all methods, are a [*RingError].
func (r Ring) Get(ctx context.Context, name string) (v secret.Value, ok bool, err error) {
	text, err := inTime(ctx, func() (string, error) { return keyring.Get(r.Service, name) })
	switch {
	case errors.Is(err, keyring.ErrNotFound):
		return secret.Value{}, false, nil
	case err != nil:
		return secret.Value{}, false, &RingError{"reading", err}
	}
	return secret.New(text), true, nil
}

// Set keeps the value of a name, in place of the one before.
func (r Ring) Set(ctx context.Context, name string, v secret.Value) error {
	_, err := inTime(ctx, func() (struct{}, error) { return struct{}{}, keyring.Set(r.Service, name, v.Reveal()) })
	if err != nil {
		return &RingError{"writing to", err}
	}
	return nil
}

// Delete forgets a name; ok is false where there was none.
func (r Ring) Delete(ctx context.Context, name string) (ok bool, err error) {
	_, err = inTime(ctx, func() (struct{}, error) { return struct{}{}, keyring.Delete(r.Service, name) })
	switch {
	case errors.Is(err, keyring.ErrNotFound):
		return false, nil
	case err != nil:
		return false, &RingError{"deleting from", err}
	}
	return true, nil
}

// inTime gives up on the keyring after its limit, or when ctx ends. What it was
// asked then ends when it answers: there is no other end to it.
func inTime[T any](ctx context.Context, ask func() (T, error)) (T, error) {
	type answer struct {
		v   T
		err error
	}
	ctx, cancel := context.WithTimeout(ctx, ringLimit)
	defer cancel()
	done := make(chan answer, 1)
	go func() {
		v, err := ask()
		done <- answer{v, err}
	}()
	select {
	case a := <-done:
		return a.v, a.err
	case <-ctx.Done():
		var none T
		return none, fmt.Errorf("it did not answer: %w", ctx.Err())
	}
}
