package oauth

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zalando/go-keyring"
)

const (
	keyringService = "crewhost-mcp"

	// keyringLimit is how long the keyring may take: it may wait for somebody to
	// unlock it, and offers no way to call that off.
	keyringLimit = 5 * time.Second
)

// keyringStore keeps records in the keyring of the operating system.
type keyringStore struct{}

func (keyringStore) String() string { return "the keyring" }

func (keyringStore) Load(ctx context.Context, url string) (Record, bool, error) {
	data, err := inTime(ctx, func() (string, error) { return keyring.Get(keyringService, url) })
	switch {
	case errors.Is(err, keyring.ErrNotFound):
		return Record{}, false, nil
	case err != nil:
		return Record{}, false, fmt.Errorf("reading the keyring: %w", err)
	}
	r, err := decode([]byte(data), url)
	if err != nil {
		return Record{}, false, fmt.Errorf("reading the keyring: %w", err)
	}
	return r, true, nil
}

func (keyringStore) Save(ctx context.Context, r Record) error {
	data, err := encode(r)
	if err != nil {
		return err
	}
	_, err = inTime(ctx, func() (struct{}, error) { return struct{}{}, keyring.Set(keyringService, r.URL, string(data)) })
	switch {
	case errors.Is(err, keyring.ErrSetDataTooBig):
		return errors.New("writing to the keyring: it takes no tokens of this length; token_store: file does")
	case err != nil:
		return fmt.Errorf("writing to the keyring: %w", err)
	}
	return nil
}

func (keyringStore) Delete(ctx context.Context, url string) (bool, error) {
	_, err := inTime(ctx, func() (struct{}, error) { return struct{}{}, keyring.Delete(keyringService, url) })
	switch {
	case errors.Is(err, keyring.ErrNotFound):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("deleting from the keyring: %w", err)
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
	ctx, cancel := context.WithTimeout(ctx, keyringLimit)
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
