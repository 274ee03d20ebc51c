package llm

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/time/rate"
)

// Limits bound how fast one vendor is asked. Zero fields are no bound.
type Limits struct {
	Requests   int // begun in any minute
	Tokens     int // of input and output, a minute
	Concurrent int // requests under way at a time
}

// Limited returns m behind limits, which all who ask it share. A request waits
// its turn until ctx ends, or would end first; those that wait are as many as
// the run has agents, so there is no bound on them. What a request uses is known
// when its answer is there, and then counted: the next waits until the minute's
// tokens have room again. Repetitions of a request that failed are not counted.
func Limited(m Model, l Limits) Model {
	if l == (Limits{}) {
		return m
	}
	limited := &limited{model: m}
	if l.Requests > 0 {
		limited.requests = PerMinute(l.Requests)
	}
	if l.Tokens > 0 {
		limited.tokens = PerMinute(l.Tokens)
	}
	if l.Concurrent > 0 {
		limited.slots = make(chan struct{}, l.Concurrent)
	}
	return limited
}

type limited struct {
	model            Model
	requests, tokens *rate.Limiter // nil: no bound
	slots            chan struct{} // nil: no bound
}

// SchemaDialect implements [Dialectal].
func (l *limited) SchemaDialect() SchemaDialect { return DialectOf(l.model) }

// Capabilities implements [Capable].
func (l *limited) Capabilities() Capabilities { return CapabilitiesOf(l.model) }

// Generate implements [Model].
func (l *limited) Generate(ctx context.Context, req Request) (*Response, error) {
	if l.slots != nil {
		select {
		case l.slots <- struct{}{}:
			defer func() { <-l.slots }()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	for _, limit := range []*rate.Limiter{l.tokens, l.requests} {
		if limit == nil {
			continue
		}
		if err := limit.Wait(ctx); err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			return nil, fmt.Errorf("waiting within the rate of the settings would take too long: %w", context.DeadlineExceeded)
		}
	}
	res, err := l.model.Generate(ctx, req)
	if res != nil && l.tokens != nil {
		l.owe(res.Usage.Input + res.Usage.Output)
	}
	return res, err
}

// owe takes n tokens that were used already.
func (l *limited) owe(n int) {
	for n > 0 {
		piece := min(n, l.tokens.Burst())
		l.tokens.ReserveN(time.Now(), piece)
		n -= piece
	}
}

// PerMinute returns a limiter that allows at most n events in any minute: half of
// them may come at once, the others are spread over the minute.
func PerMinute(n int) *rate.Limiter {
	if n == 1 {
		return rate.NewLimiter(rate.Every(time.Minute), 1)
	}
	burst := n / 2
	return rate.NewLimiter(rate.Limit(float64(n-burst)/time.Minute.Seconds()), burst)
}
