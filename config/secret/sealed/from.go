package sealed

import (
	"context"
	"errors"

	"filippo.io/age"

	"crewhost/config/secret"
)

// From is the key that a reference names, found by the sources each time that it is
// needed. It is never made.
func From(ref secret.Ref, sources ...secret.Source) Key { return referred{ref, sources} }

type referred struct {
	ref     secret.Ref
	sources []secret.Source
}

func (r referred) String() string { return r.ref.String() }

func (r referred) Identity(ctx context.Context, create bool) (*age.X25519Identity, error) {
	v, err := secret.Resolve(ctx, r.ref, r.sources...)
	if err != nil && !errors.Is(err, secret.ErrNotFound) {
		return nil, err
	}
	return Given(r.String(), v).Identity(ctx, create)
}
