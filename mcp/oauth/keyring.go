package oauth

import (
	"context"
	"errors"
	"fmt"

	"crewhost/config/secret"
	"crewhost/config/secret/sealed"
)

// tokenRing is where records are in the keyring of the operating system.
const tokenRing = "crewhost-mcp"

func ring() sealed.Ring { return sealed.Ring{Service: tokenRing} }

// keyringStore keeps records in the keyring. It has no lock of its own: that is one
// of the files, where there is a folder for them.
type keyringStore struct{ locks *files }

func (keyringStore) String() string { return "the keyring" }

func (keyringStore) Load(ctx context.Context, url string) (Record, bool, error) {
	data, ok, err := ring().Get(ctx, url)
	if err != nil || !ok {
		return Record{}, false, err
	}
	r, err := decode([]byte(data.Reveal()), url)
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
	err = ring().Set(ctx, r.URL, secret.New(string(data)))
	if errors.Is(err, sealed.ErrTooLong) {
		return errors.New("writing to the keyring: it takes no tokens of this length; token_store: file does")
	}
	return err
}

func (keyringStore) Delete(ctx context.Context, url string) (bool, error) {
	return ring().Delete(ctx, url)
}

// Lock implements [Locker].
func (k keyringStore) Lock(ctx context.Context, url string) (unlock func(), err error) {
	if k.locks == nil || k.locks.dir == "" {
		return func() {}, nil
	}
	return k.locks.Lock(ctx, url)
}
