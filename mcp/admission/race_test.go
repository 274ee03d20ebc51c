package admission

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// tried is a connection of a race, which says whether it was closed.
type tried struct {
	net.Conn
	closed bool
}

func (c *tried) Close() error { c.closed = true; return nil }

// RFC 8305: an address that does not answer costs a quarter of a second, one that
// refuses nothing at all, and who loses is ended.
func TestRace(t *testing.T) {
	const never = time.Duration(-1)
	refuses := errors.New("refused")
	for name, c := range map[string]struct {
		after []time.Duration // that an address takes; of a refusal, the time is over at once
		errs  []error
		won   int
		took  time.Duration
	}{
		"one":                          {after: []time.Duration{time.Second}, took: time.Second},
		"the first one":                {after: []time.Duration{headStart - 1, 0}, took: headStart - 1},
		"the first one hangs":          {after: []time.Duration{never, time.Millisecond}, won: 1, took: headStart + time.Millisecond},
		"the first two hang":           {after: []time.Duration{never, never, 0}, won: 2, took: 2 * headStart},
		"the first one refuses":        {after: []time.Duration{0, time.Millisecond}, errs: []error{refuses, nil}, won: 1, took: time.Millisecond},
		"the first one is late":        {after: []time.Duration{headStart + 2*time.Millisecond, time.Second}, took: headStart + 2*time.Millisecond},
		"the second one refuses":       {after: []time.Duration{time.Second, 0}, errs: []error{nil, refuses}, took: time.Second},
		"two, and the last one hangs":  {after: []time.Duration{headStart + 1, time.Second, never}, took: headStart + 1},
		"all of them":                  {after: []time.Duration{0, time.Second}, errs: []error{refuses, errors.New("too far")}, won: -1, took: time.Second},
		"one refuses, the others hang": {after: []time.Duration{0, never, never}, errs: []error{refuses, nil, nil}, won: -1, took: dialLimit},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), dialLimit)
				defer cancel()
				addrs := make([]netip.AddrPort, len(c.after))
				conns := make([]*tried, len(c.after))
				for i := range addrs {
					addrs[i] = netip.AddrPortFrom(netip.AddrFrom4([4]byte{8, 8, 8, byte(i)}), 443)
				}
				dial := func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
					i := int(to.Addr().As4()[3])
					if c.after[i] == never {
						<-ctx.Done()
						return nil, ctx.Err()
					}
					time.Sleep(c.after[i]) // and answers though the race is over
					if c.errs != nil && c.errs[i] != nil {
						return nil, c.errs[i]
					}
					conns[i] = new(tried)
					return conns[i], nil
				}
				began := time.Now()
				conn, to, err := race(ctx, addrs, dial)
				if c.won < 0 {
					if conn != nil || err == nil || to.IsValid() || !strings.Contains(err.Error(), "refused") {
						t.Errorf("%v, %v, %v", conn, to, err)
					}
				} else if err != nil || to != addrs[c.won] || conn != net.Conn(conns[c.won]) {
					t.Errorf("connected to %v, %v", to, err)
				}
				if took := time.Since(began); took < c.took || took > c.took+time.Second {
					t.Errorf("it took %v, want %v", took, c.took)
				}
				for i, other := range conns {
					if other != nil && other.closed == (i == c.won) {
						t.Errorf("the connection to %v: closed is %v", addrs[i], other.closed)
					}
				}
			})
		})
	}
}

// A request that is given up ends the race at once, and leaves nobody behind.
func TestRaceGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		began := time.Now()
		time.AfterFunc(headStart+headStart/2, cancel)
		addrs := []netip.AddrPort{netip.MustParseAddrPort("8.8.8.8:1"), netip.MustParseAddrPort("8.8.8.8:2"), netip.MustParseAddrPort("8.8.8.8:3")}
		_, _, err := race(ctx, addrs, func(ctx context.Context, _ netip.AddrPort) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		if !errors.Is(err, context.Canceled) || time.Since(began) != headStart+headStart/2 {
			t.Errorf("%v, after %v", err, time.Since(began))
		}
	})
}
