package llm

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// What an [Exchange] does where its fields say nothing.
const (
	DefaultMaxRetries  = 4
	DefaultTimeout     = 10 * time.Minute
	DefaultIdleTimeout = 2 * time.Minute
)

const (
	firstWait   = 500 * time.Millisecond // before the first repetition; it doubles
	longestWait = 30 * time.Second       // unless the vendor asks for more
	worthAWait  = 5 * time.Minute        // who asks for more is asked no more
	maxAnswer   = 64 << 20               // bytes of one answer
	maxFault    = 1 << 20                // bytes read of a refusal
)

// Exchange is what the adapter of every HTTP API does alike: it bounds an
// attempt in time and size, repeats what may be repeated, and makes an
// [*APIError] of what went wrong. The vendor's SDK, told not to retry, sends the
// request with the attempt's middleware:
//
//	return x.Do(ctx, req.OnDelta, func(ctx context.Context, a *llm.Attempt) (*llm.Response, error) {
//		answer, err := client.New(ctx, params, option.WithMiddleware(a.Middleware))
//		…
//	})
//
// An Exchange is not changed by its use and is safe for concurrent use.
type Exchange struct {
	Provider string // begins every error
	Secret   string // never shows in an error, if it has 4 bytes or more

	// Timeout bounds one attempt from its start to the last byte; it does not
	// count the waits between attempts. 0: DefaultTimeout.
	Timeout time.Duration
	// IdleTimeout bounds the silence within a stream, counted from the
	// response's headers. 0: DefaultIdleTimeout.
	IdleTimeout time.Duration
	// MaxRetries is how often a request is repeated. Nil: DefaultMaxRetries.
	MaxRetries *int
	Logger     *slog.Logger // a line for every repetition; nil: discard
}

// Attempt is one try of a request.
type Attempt struct {
	// Deliver hands a piece of a stream to the caller. A stream that has
	// delivered anything is not tried again, because the caller would see
	// its beginning twice.
	Deliver func(Delta)

	exchange  *Exchange
	streamed  bool
	delivered bool
	interrupt context.CancelCauseFunc
}

// Do runs attempts until one succeeds, fails for good or there have been too
// many, and returns what the last one did. An attempt's error that is no
// [*APIError] is taken for a failure of the transport.
//
// Repeated are the statuses 408, 409, 429 and 5xx, unless the vendor says
// otherwise (x-should-retry, an exhausted quota), failures of the transport, and a
// timeout once. The wait is what the vendor asks for (Retry-After in seconds or
// as a date, Retry-After-Ms); otherwise it doubles from half a second to 30 s. A
// wait that would outlast ctx is not begun. Where ctx ends, so does Do, with an
// error that wraps ctx.Err().
func (x *Exchange) Do(ctx context.Context, onDelta func(Delta), try func(context.Context, *Attempt) (*Response, error)) (*Response, error) {
	retries := DefaultMaxRetries
	if x.MaxRetries != nil {
		retries = *x.MaxRetries
	}
	timedOut := false
	for n := 0; ; n++ {
		res, err := x.once(ctx, onDelta, try)
		if err == nil {
			return res, nil
		}
		var api *APIError
		if !errors.As(err, &api) || !api.Temporary || n >= retries {
			return nil, err
		}
		var silence *timeoutError
		if errors.As(err, &silence) {
			if timedOut {
				return nil, err
			}
			timedOut = true
		}
		wait := backoff(n)
		if api.RetryAfter > 0 {
			wait = api.RetryAfter
		}
		if end, ok := ctx.Deadline(); wait > worthAWait || ok && time.Until(end) <= wait {
			return nil, err // it says how long the vendor asked for
		}
		x.logger().WarnContext(ctx, "asking the model again", "provider", x.Provider, "wait", wait, "retry", n+1, "of", retries, "reason", api.Error())
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, fmt.Errorf("%w while waiting after: %w", ctx.Err(), err)
		}
	}
}

// once runs one attempt and gives its error its form.
func (x *Exchange) once(ctx context.Context, onDelta func(Delta), try func(context.Context, *Attempt) (*Response, error)) (*Response, error) {
	limit := x.Timeout
	if limit <= 0 {
		limit = DefaultTimeout
	}
	inner, cancel := context.WithTimeoutCause(ctx, limit, &timeoutError{"no complete answer within", limit})
	defer cancel()
	inner, interrupt := context.WithCancelCause(inner)
	defer interrupt(nil)
	a := &Attempt{exchange: x, streamed: onDelta != nil, interrupt: interrupt}
	a.Deliver = func(d Delta) {
		if onDelta != nil && d != (Delta{}) {
			a.delivered = true
			onDelta(d)
		}
	}
	res, err := try(inner, a)
	if err == nil {
		return res, nil
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("%s: %w", x.Provider, ctx.Err())
	}
	return nil, x.failure(err, context.Cause(inner), a.delivered)
}

// failure makes an APIError of err; cause is why the attempt's context ended.
func (x *Exchange) failure(err, cause error, delivered bool) *APIError {
	var own *APIError
	var silence *timeoutError
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.As(cause, &silence):
		own = &APIError{Message: silence.Error(), Err: silence, Temporary: true}
	case errors.As(err, &own):
		known := *own
		own = &known
	default:
		own = &APIError{Message: err.Error(), Err: err, Temporary: !errors.As(err, &certificate)}
	}
	if delivered {
		own.Temporary = false
	}
	if own.Provider == "" {
		own.Provider = x.Provider
	}
	own.Message = oneLine(x.hide(own.Message))
	own.Code = oneLine(x.hide(own.Code))
	own.Param = oneLine(x.hide(own.Param))
	if own.Err != nil && x.hide(own.Err.Error()) != own.Err.Error() {
		own.Err = nil
	}
	return own
}

func (x *Exchange) hide(s string) string {
	if len(x.Secret) < 4 { // such as the "x" that a keyless server is given
		return s
	}
	return strings.ReplaceAll(s, x.Secret, "•••")
}

func (x *Exchange) logger() *slog.Logger {
	if x.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return x.Logger
}

// Middleware sends r by next. Every answer but a 2xx becomes an [*APIError], also
// a redirect, which would carry the key elsewhere; the body of a 2xx is bounded
// in size and, streamed, in its silence.
func (a *Attempt) Middleware(r *http.Request, next func(*http.Request) (*http.Response, error)) (*http.Response, error) {
	res, err := next(r)
	if err != nil {
		return nil, err
	}
	if res.StatusCode < 200 || res.StatusCode > 299 {
		defer res.Body.Close()
		body, err := io.ReadAll(io.LimitReader(res.Body, maxFault))
		if err != nil && len(body) == 0 {
			body = []byte(http.StatusText(res.StatusCode))
		}
		return nil, refusal(res.StatusCode, res.Header, body)
	}
	watched := &watchedBody{rc: res.Body, left: maxAnswer}
	if a.streamed {
		idle := a.exchange.IdleTimeout
		if idle <= 0 {
			idle = DefaultIdleTimeout
		}
		watched.idle = idle
		watched.timer = time.AfterFunc(idle, func() {
			a.interrupt(&timeoutError{"the stream was silent for", idle})
		})
	}
	res.Body = watched
	return res, nil
}

// HTTPClient returns a copy of c, or of the default client for nil, that follows
// no redirect: a key in a header of the vendor's own would go with it.
func HTTPClient(c *http.Client) *http.Client {
	if c == nil {
		c = http.DefaultClient
	}
	own := *c
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &own
}

// ParseBaseURL reads the URL of an API. Its errors do not repeat the URL, which
// may hold a secret; for the same reason credentials in it are refused.
func ParseBaseURL(s string) (*url.URL, error) {
	base, err := url.Parse(s)
	switch {
	case err != nil:
		return nil, errors.New("the base URL cannot be read")
	case base.Scheme != "http" && base.Scheme != "https", base.Host == "":
		return nil, errors.New("the base URL must begin with http:// or https:// and name a host")
	case base.User != nil:
		return nil, errors.New("the base URL must not hold credentials; use the API key")
	}
	return base, nil
}

// watchedBody is a response's body with a bound on its length and, where it has
// a timer, on its silence.
type watchedBody struct {
	rc    io.ReadCloser
	left  int64
	idle  time.Duration
	timer *time.Timer // nil: silence is not judged
}

func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.rc.Read(p)
	if b.timer != nil {
		if err != nil {
			b.timer.Stop()
		} else if n > 0 {
			b.timer.Reset(b.idle)
		}
	}
	if b.left -= int64(n); b.left < 0 {
		return 0, &APIError{Message: fmt.Sprintf("the answer is longer than %d MiB", maxAnswer>>20)}
	}
	return n, err
}

func (b *watchedBody) Close() error {
	if b.timer != nil {
		b.timer.Stop()
	}
	return b.rc.Close()
}

// timeoutError is a bound of an attempt that was reached.
type timeoutError struct {
	what  string
	limit time.Duration
}

func (e *timeoutError) Error() string { return e.what + " " + e.limit.String() }
func (e *timeoutError) Timeout() bool { return true }

// Unwrap lets a caller ask for the field's own sign of a timeout.
func (e *timeoutError) Unwrap() error { return context.DeadlineExceeded }

// backoff is the wait before repetition n, counted from 0, less up to a quarter
// by chance so that clients do not return together.
func backoff(n int) time.Duration {
	wait := longestWait
	if n < 10 {
		wait = min(firstWait<<n, longestWait)
	}
	return wait - rand.N(wait/4)
}
