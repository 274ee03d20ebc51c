package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"crewhost/tools"
)

const (
	firstPause = time.Second // before a stream is opened again
	lastPause  = 30 * time.Second

	// maxResumes is how often the stream of an answer is opened again without
	// anything new having come.
	maxResumes = 5
)

// resume opens a stream of events by GET, from the last one that came.
func (m *mender) resume(ctx context.Context, req *http.Request, last []byte) (*http.Response, error) {
	out := req.Clone(ctx)
	out.Method, out.Body, out.GetBody, out.ContentLength = http.MethodGet, nil, nil, 0
	out.Header = make(http.Header)
	for _, name := range []string{sessionHeader, versionHeader} {
		if value := req.Header.Get(name); value != "" {
			out.Header.Set(name, value)
		}
	}
	out.Header.Set("Accept", "text/event-stream")
	if len(last) > 0 {
		out.Header.Set(lastSeenHeader, string(last))
	}
	m.lease.stamp(out)
	return m.direct.Do(out)
}

// reopenAfter is the time before a stream is opened again: what the server said,
// or else longer each time.
func reopenAfter(tries int, said time.Duration) time.Duration {
	if said > 0 {
		return said
	}
	return min(firstPause<<min(tries, 10), lastPause)
}

// wait waits for the time to pass, or for the end of ctx, which is its error.
func wait(ctx context.Context, pause time.Duration) error {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return ctx.Err()
}

// An answerStream is the body of an answer that comes as events. Where it breaks
// off before the answer is whole, it goes on from the last event that had an
// id; where none had, the answer is lost and its call fails at once (K45).
type answerStream struct {
	mender *mender
	req    *http.Request // the message that is answered
	events *eventStream
	from   string // the id that it last went on from
	tries  int    // since something came
}

func (s *answerStream) Read(p []byte) (int, error) {
	for {
		n, err := s.events.Read(p)
		switch {
		case s.events.older:
			f := faultf(tools.CodeProtocolError, "it answers with the stream of the legacy transport, sse")
			f.unsupported = true
			return 0, s.fail(f)
		case n > 0 || err == nil:
			return n, nil
		case s.events.done:
			return 0, err
		}
		if f := s.again(); f != nil {
			return 0, s.fail(f)
		}
	}
}

// fail makes the call fail: the SDK takes the end of the stream for that.
func (s *answerStream) fail(f *fault) error {
	s.events.ex.failed(f)
	return io.EOF
}

// again opens the stream again.
func (s *answerStream) again() *fault {
	const early = "the stream of its answer ended early"
	ctx, last := s.req.Context(), s.events.last
	if len(last) == 0 || s.req.Header.Get(versionHeader) >= firstModern { // which resumes no streams
		return faultf(tools.CodeTransportFailed, early)
	}
	if string(last) != s.from {
		s.from, s.tries = string(last), 0
	}
	_ = s.events.Close()
	for {
		if s.tries == maxResumes {
			return faultf(tools.CodeTransportFailed, "%s, and went on %d times without it", early, s.tries)
		}
		if err := wait(ctx, reopenAfter(s.tries, s.events.retry)); err != nil {
			return unreachable(err)
		}
		s.tries++
		resp, err := s.mender.resume(ctx, s.req, last)
		var f *fault
		switch {
		case errors.As(err, &f):
			return f
		case err != nil:
			continue
		case isStream(resp):
			s.events.over(resp.Body)
			return nil
		}
		drop(resp)
		if resp.StatusCode < 500 {
			f := refused(resp, "")
			f.detail = early + " and can't be resumed: " + f.detail
			f.unsupported = false
			return f
		}
	}
}

func (s *answerStream) Close() error { return s.events.Close() }

// An ownStream is the stream for a server's own messages (O18). To the SDK it seems
// to be there at once and never to end: the SDK waits for it, without a limit,
// before it is connected, and ends the session when the stream has broken off a few
// times. In truth it is opened when it is first read, and again when it breaks off or
// the lease is renewed; where the server offers none, nothing comes.
type ownStream struct {
	mender *mender
	req    *http.Request

	events *eventStream // nil while there is none
	cancel context.CancelFunc
	term   int    // of the lease
	opened bool   // whether it was there in this term
	last   []byte // the id to go on from
	tries  int    // since something came
	retry  time.Duration
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
			s.tries = 0
			return n, nil
		}
		if err != nil {
			s.last, s.retry = s.events.last, s.events.retry
			_ = s.Close()
			s.events = nil
			s.tries++
		}
	}
}

// open opens the stream, or waits for the end of the session.
func (s *ownStream) open() error {
	session := s.req.Context()
	for first := !s.opened && s.tries == 0; session.Err() == nil; first = false {
		ctx, cancel := context.WithCancel(session)
		s.cancel = cancel
		if term := s.mender.lease.attach(cancel); term != s.term {
			s.term, s.opened, s.last, s.tries, first = term, false, nil, 0, true
		}
		pause := time.Duration(0)
		if !first {
			pause = reopenAfter(s.tries-1, min(s.retry, lastPause))
		}
		if wait(ctx, pause) == nil && s.try(ctx) {
			return nil
		}
		cancel()
		s.tries++
	}
	return session.Err()
}

// try asks for the stream once. Where there is none to be had, it returns only at
// the end of ctx.
func (s *ownStream) try(ctx context.Context) bool {
	resp, err := s.mender.resume(ctx, s.req, s.last)
	var f *fault
	switch {
	case errors.As(err, &f): // a redirect that is not followed
		s.none(ctx, f)
		return false
	case err != nil:
		return false
	case isStream(resp):
		s.events = s.mender.mendStream(resp.Body, nil)
		s.events.last, s.opened = s.last, true
		return true
	}
	drop(resp)
	switch status := resp.StatusCode; {
	case status >= 500:
	case status == http.StatusNotFound && s.opened && resp.Request.Header.Get(sessionHeader) != "":
		// There was one: the session is forgotten (K41).
		if f := s.mender.renew(resp.Request, s.term); f != nil && ctx.Err() == nil {
			s.none(ctx, f)
		}
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		s.none(ctx, refused(resp, ""))
	default:
		<-ctx.Done()
	}
	return false
}

// none says why there is no stream, and waits for the end of ctx.
func (s *ownStream) none(ctx context.Context, f *fault) {
	s.mender.warn(fmt.Sprintf("what it sends of its own accord is not heard: %s", f.detail))
	<-ctx.Done()
}

func (s *ownStream) Close() error {
	if s.cancel != nil {
		s.cancel()
	}
	if s.events == nil {
		return nil
	}
	return s.events.Close()
}
