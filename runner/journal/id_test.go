package journal_test

import (
	"testing"
	"time"

	"crewhost/runner/journal"
)

// The newest run is told by its id, so ids of one second have an order, too.
func TestIDsSortByTime(t *testing.T) {
	at := time.Date(2026, 11, 30, 16, 2, 34, 0, time.UTC)
	before := journal.NewID(at)
	for range 1500 {
		at = at.Add(time.Millisecond)
		next := journal.NewID(at)
		if next <= before {
			t.Fatalf("%s comes after %s", next, before)
		}
		before = next
	}
}
