package mcp

import (
	"testing"
	"time"

	"crewhost/config"
)

func TestPauseBefore(t *testing.T) {
	r := config.Reconnect{MaxAttempts: 5, Initial: 500 * time.Millisecond, Max: 30 * time.Second}
	for _, tt := range []struct {
		failures    int
		least, most time.Duration
	}{
		{0, 250 * time.Millisecond, 500 * time.Millisecond},
		{1, 500 * time.Millisecond, time.Second},
		{5, 8 * time.Second, 16 * time.Second},
		{6, 15 * time.Second, 30 * time.Second},
		{1000, 15 * time.Second, 30 * time.Second},
	} {
		if got := pauseBefore(r, tt.failures, 0); got != tt.least {
			t.Errorf("after %d failures: at least %v, want %v", tt.failures, got, tt.least)
		}
		if got := pauseBefore(r, tt.failures, 1); got != tt.most {
			t.Errorf("after %d failures: at most %v, want %v", tt.failures, got, tt.most)
		}
	}
	if got := pauseBefore(config.Reconnect{}, 3, 1); got != 0 {
		t.Errorf("without a pause: %v", got)
	}
}

// Changes are told in order, one at a time, also those that come from a telling.
func TestChanges(t *testing.T) {
	var c *changes
	var told []State
	busy := false
	c = &changes{tell: func(change StateChange) {
		if busy {
			t.Error("two at a time")
		}
		busy = true
		defer func() { busy = false }()
		told = append(told, change.To)
		if change.To == StateConnected {
			c.add(StateChange{To: StateClosed})
			c.flush()
		}
	}}
	c.add(StateChange{To: StateConnected})
	c.add(StateChange{To: StateFaulted})
	c.flush()
	if len(told) != 3 || told[0] != StateConnected || told[1] != StateFaulted || told[2] != StateClosed {
		t.Errorf("told %v", told)
	}
}

// A server that says for nothing that its tools changed is asked ever more seldom.
func TestPace(t *testing.T) {
	var p pace
	now := time.Now()
	for i, tt := range []struct {
		after time.Duration // the reading before
		same  bool
		wait  time.Duration // for the next
	}{
		{0, false, time.Second},
		{time.Second, true, 2 * time.Second},
		{2 * time.Second, true, 4 * time.Second},
		{5 * time.Second, true, 8 * time.Second},
		{8 * time.Second, false, time.Second},
		{time.Second, true, 2 * time.Second},
		{time.Minute, true, time.Second}, // it was quiet for long
	} {
		now = now.Add(tt.after)
		p.refreshed(now, tt.same)
		if got := p.wait(now); got != tt.wait {
			t.Errorf("%d: wait %v, want %v", i, got, tt.wait)
		}
	}
	if got := p.wait(now.Add(time.Hour)); got != settleTime {
		t.Errorf("after an hour: %v", got)
	}
	for range 20 {
		now = now.Add(p.wait(now))
		p.refreshed(now, true)
	}
	if p.pause != lastPause {
		t.Errorf("the pause is %v", p.pause)
	}
}
