package tools

import "context"

// What a host passes on to a server may come back to it, where hosts are
// servers of each other. A request therefore carries through how many hosts it came, and
// is not passed on for ever.

const (
	// HopsKey is the member of a request's _meta that holds the number of hosts.
	HopsKey = "crewhost/hops"

	// MaxHops is through how many hosts a request may come.
	MaxHops = 8
)

type hopsKey struct{}

// WithHops returns a context for what is done on behalf of a call that came through
// so many hosts.
func WithHops(ctx context.Context, hosts int) context.Context {
	return context.WithValue(ctx, hopsKey{}, hosts)
}

// Hops returns through how many hosts the call came that ctx is for; 0: none.
func Hops(ctx context.Context) int {
	n, _ := ctx.Value(hopsKey{}).(int)
	return n
}
