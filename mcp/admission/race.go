package admission

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"
)

// headStart is how long an address is tried alone before the next one is tried
// beside it (RFC 8305).
const headStart = 250 * time.Millisecond

// race connects to the first of the addresses that answers, and returns which that
// was. Who loses is ended before it returns. The error has that of each address
// (K47).
func race(ctx context.Context, addrs []netip.AddrPort, dial func(context.Context, netip.AddrPort) (net.Conn, error)) (net.Conn, netip.AddrPort, error) {
	if len(addrs) == 1 {
		conn, err := dial(ctx, addrs[0])
		return conn, addrs[0], err
	}
	type result struct {
		at   int
		conn net.Conn
		err  error
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	results := make(chan result, len(addrs))
	defer func() { // of the losers, some may have come through
		cancel()
		running.Wait()
		close(results)
		for r := range results {
			if r.conn != nil {
				_ = r.conn.Close()
			}
		}
	}()
	errs := make([]error, len(addrs))
	timer := time.NewTimer(headStart)
	defer timer.Stop()
	begun, failed := 0, 0
	begin := func() {
		if begun == len(addrs) {
			return
		}
		at := begun
		begun++
		running.Go(func() {
			conn, err := dial(ctx, addrs[at])
			results <- result{at, conn, err}
		})
		timer.Reset(headStart)
	}
	begin()
	for {
		select {
		case r := <-results:
			if r.err == nil {
				return r.conn, addrs[r.at], nil
			}
			errs[r.at] = r.err
			if failed++; failed == len(addrs) {
				return nil, netip.AddrPort{}, errors.Join(errs...)
			}
			begin()
		case <-timer.C:
			begin()
		}
	}
}
