package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// ServeStdio serves one client, of either era or of both in turn (R1): a JSON-RPC
// message a line on in, and nothing but such lines on out, each written at once
// (I3, I7). It returns nil when in has ended and what was read is answered, or
// Grace has passed (I6); the cause of ctx when that ends, and an error when in or
// out fails, after which calls are cancelled at once. In any case it waits for
// them, no longer than Grace. Where out fails because the client is gone, in ends
// as well, and that is no error.
//
// A Read or Write that is stuck when all is over can only be ended by closing: in
// and out are closed then, if they can be, and are left alone otherwise.
func (s *Server) ServeStdio(ctx context.Context, in io.Reader, out io.Writer) error {
	defer s.session(ctx, false)()
	st := newStream(ctx, s, out)
	read := make(chan error, 1)
	var reading sync.WaitGroup
	reading.Go(func() { read <- st.read(ctx, in) })

	var err error
	var writing bool // whether that is what failed
	select {
	case err = <-read:
	case err = <-st.broken:
		err, writing = fmt.Errorf("writing to the client: %w", err), true
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err == nil { // the end of in
		err = st.drain(ctx)
	}
	st.shut()
	grace := s.budgets.Grace
	if !st.wait(grace) {
		s.log.Warn("a client's calls did not end in time", "grace", grace)
		if c, ok := out.(io.Closer); ok {
			_ = c.Close() // a write may be what they wait for
			st.wait(grace / 10)
		}
	}
	if writing && ended(read, grace/10) {
		err = nil // the client has gone, and out was the first to tell
	}
	if c, ok := in.(io.Closer); ok && err != nil {
		_ = c.Close()
	}
	join(&reading, parting)
	return err
}

// parting is how long a Read is waited for whose input was closed: one of a terminal
// or of some pipes doesn't notice, and ends with the process.
const parting = 50 * time.Millisecond

// ended reports whether in ends within patience.
func ended(read <-chan error, patience time.Duration) bool {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case err := <-read:
		return err == nil
	case <-timer.C:
		return false
	}
}

// join waits for a group, but no longer than patience.
func join(group *sync.WaitGroup, patience time.Duration) bool {
	done := make(chan struct{})
	go func() { // ends with the last of the group
		group.Wait()
		close(done)
	}()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

// read reads messages until in ends, which is no error, or fails.
func (st *stream) read(ctx context.Context, in io.Reader) error {
	lines := newLineReader(in, st.s.budgets.RequestBytes)
	for {
		line, long, err := lines.next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("reading from the client: %w", err)
		case long != nil:
			st.tooLong(long)
		case len(bytes.TrimSpace(line)) > 0:
			err = st.take(ctx, line)
		}
		if err != nil {
			return err
		}
	}
}
