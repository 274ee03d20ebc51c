package mcp

import (
	"io"
	"net/http"
	"time"
)

const (
	firstPause = time.Second // before the stream of a server's own messages is opened again
	lastPause  = 30 * time.Second
)

// An ownStream is the stream for a server's own messages. To the SDK it seems to be
// there at once and never to end: the SDK waits for it, without a limit, before
// it is connected, and ends the session when the stream has broken off a few times.
// In truth it is opened when it is first read, and again when it breaks off; where
// the server offers none, nothing comes.
type ownStream struct {
	next http.RoundTripper
	mend func(io.ReadCloser, *exchange) *eventStream
	req  *http.Request

	events *eventStream // nil while there is none
	last   []byte       // the id to go on from
	pause  time.Duration
}

func (s *ownStream) Read(p []byte) (int, error) {
	for {
		if s.events == nil {
			if err := s.open(); err != nil {
				return 0, err
			}
		}
		n, err := s.events.Read(p)
		if n > 0 {
			s.pause = 0
			return n, nil
		}
		if err != nil {
			s.last = s.events.last
			_ = s.events.Close()
			s.events = nil
			s.pause = min(max(2*s.pause, firstPause), lastPause)
		}
	}
}

// open opens the stream, or waits for the end of the session.
func (s *ownStream) open() error {
	ctx := s.req.Context()
	for {
		timer := time.NewTimer(s.pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
		req := s.req.Clone(ctx)
		if s.last != nil {
			req.Header.Set("Last-Event-ID", string(s.last))
		}
		resp, err := s.next.RoundTrip(req)
		switch {
		case err == nil && isStream(resp):
			s.events = s.mend(resp.Body, nil)
			s.events.last = s.last
			return nil
		case err == nil && resp.StatusCode < 500:
			drop(resp) // it offers none
			<-ctx.Done()
			return ctx.Err()
		case err == nil:
			drop(resp)
		}
		s.pause = min(max(2*s.pause, firstPause), lastPause)
	}
}

func (s *ownStream) Close() error {
	if s.events == nil {
		return nil
	}
	return s.events.Close()
}
