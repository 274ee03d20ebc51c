package llm_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"crewhost/runner/llm"
)

// slow answers after a second, and knows how many ask at once.
type slow struct {
	usage llm.Usage

	mu        sync.Mutex
	now, most int
	begun     []time.Time
}

func (s *slow) Generate(ctx context.Context, _ llm.Request) (*llm.Response, error) {
	s.mu.Lock()
	s.begun = append(s.begun, time.Now())
	s.now++
	s.most = max(s.most, s.now)
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.now--
		s.mu.Unlock()
	}()
	select {
	case <-time.After(time.Second):
		return &llm.Response{Usage: s.usage}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func askTimes(t *testing.T, m llm.Model, n int) {
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			if _, err := m.Generate(t.Context(), llm.Request{}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

func TestLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slow{}
		begin := time.Now()
		askTimes(t, llm.Limited(s, llm.Limits{Concurrent: 3}), 10)
		if took := time.Since(begin); s.most != 3 || took != 4*time.Second {
			t.Errorf("%d at once, %v; want 3, 4 s", s.most, took)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		s := &slow{}
		askTimes(t, llm.Limited(s, llm.Limits{Requests: 10}), 30)
		for i := 10; i < 30; i++ {
			if gap := s.begun[i].Sub(s.begun[i-10]); gap < time.Minute-time.Second {
				t.Errorf("requests %d to %d within %v", i-10, i, gap)
			}
		}
	})
	synctest.Test(t, func(t *testing.T) { // what was used is paid off before the next
		s := &slow{usage: llm.Usage{Input: 900, Output: 100}}
		m := llm.Limited(s, llm.Limits{Tokens: 1000})
		begin := time.Now()
		for range 3 {
			askTimes(t, m, 1)
		}
		if took := time.Since(begin); took < time.Minute || took > 4*time.Minute {
			t.Errorf("3,000 tokens at 1,000 a minute took %v", took)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		m := llm.Limited(&slow{}, llm.Limits{Requests: 1, Concurrent: 1})
		askTimes(t, m, 1)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		begin := time.Now()
		if _, err := m.Generate(ctx, llm.Request{}); !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) > 0 {
			t.Errorf("a wait that is too long: %v after %v", err, time.Since(begin))
		}
		ctx, stop := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, stop)
		if _, err := m.Generate(ctx, llm.Request{}); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v", err)
		}
	})
	s := &slow{}
	if m := llm.Limited(s, llm.Limits{}); m != llm.Model(s) {
		t.Error("no limits, and yet a wrapper")
	}
}

// A model that wraps another has its dialect and its capabilities.
func TestWrappersAreTransparent(t *testing.T) {
	caps := llm.Capabilities{TextCalls: true, TopEffort: "high"}
	m := llm.Limited(llm.Fitted(llm.Echo{}, caps, nil), llm.Limits{Concurrent: 1})
	if got := llm.CapabilitiesOf(m); got != caps {
		t.Errorf("%+v", got)
	}
	if got := llm.DialectOf(m); len(got.RootKeywords) != 0 {
		t.Errorf("%+v", got)
	}
	if got := llm.CapabilitiesOf(llm.Echo{}); got != (llm.Capabilities{}) {
		t.Errorf("%+v", got)
	}
}
