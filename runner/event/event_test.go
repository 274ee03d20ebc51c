package event_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"crewhost/runner/event"
)

func clock() time.Time {
	return time.Date(2026, 3, 4, 5, 6, 7, 0, time.FixedZone("east", 3600))
}

func TestJSONLWritesALineAnEvent(t *testing.T) {
	var out bytes.Buffer
	sink, failed := event.JSONL(&out)
	s := event.NewStream("r1", clock, sink)
	no := false
	s.Emit(event.Event{Kind: event.TaskStarted, Task: "write", Agent: "writer", Attempt: 1})
	s.Emit(event.Event{Kind: event.ToolReturned, Tool: "a<b>&c", Success: &no, Error: "one\ntwo", DurationMS: 12})
	want := `{"v":2,"seq":1,"ts":"2026-03-04T04:06:07Z","kind":"task.started","crewId":"r1","taskId":"write","agentId":"writer","attempt":1}
{"v":2,"seq":2,"ts":"2026-03-04T04:06:07Z","kind":"tool.returned","crewId":"r1","toolName":"a<b>&c","success":false,"durationMs":12,"error":"one\ntwo"}
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
	if err := failed(); err != nil {
		t.Error(err)
	}
}

// brittle takes so many writes, then fails.
type brittle struct {
	bytes.Buffer
	left  int
	calls int
	short bool
}

var errFull = errors.New("disk full")

func (b *brittle) Write(p []byte) (int, error) {
	b.calls++
	if b.left == 0 {
		if b.short {
			return len(p) / 2, nil
		}
		return 0, errFull
	}
	b.left--
	return b.Buffer.Write(p)
}

func TestJSONLRemembersTheFirstErrorAndStops(t *testing.T) {
	for _, tt := range []struct {
		name string
		w    *brittle
		want error
	}{
		{"error", &brittle{left: 1}, errFull},
		{"short write", &brittle{left: 1, short: true}, io.ErrShortWrite},
	} {
		sink, failed := event.JSONL(tt.w)
		s := event.NewStream("r", clock, sink)
		for range 4 {
			s.Emit(event.Event{Kind: event.Notice})
		}
		err := failed()
		if !errors.Is(err, tt.want) || !strings.Contains(err.Error(), "event 2") {
			t.Errorf("%s: %v", tt.name, err)
		}
		if tt.w.calls != 2 {
			t.Errorf("%s: %d writes, want 2: none after the failure", tt.name, tt.w.calls)
		}
	}
}

func TestStreamNumbersWithoutGaps(t *testing.T) {
	var nilStream *event.Stream
	nilStream.Emit(event.Event{Kind: event.Notice}) // drops it

	var out bytes.Buffer
	var seen []int64
	sink, failed := event.JSONL(&out)
	s := event.NewStream("r", clock, sink, func(e event.Event) { seen = append(seen, e.Seq) })
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 25 {
				s.Emit(event.Event{Kind: event.ModelDelta, Text: "x"})
			}
		})
	}
	wg.Wait()
	if err := failed(); err != nil {
		t.Fatal(err)
	}
	dec := json.NewDecoder(&out)
	for i := range seen {
		var e struct{ Seq int64 }
		if err := dec.Decode(&e); err != nil {
			t.Fatal(err)
		}
		if want := int64(i + 1); seen[i] != want || e.Seq != want {
			t.Fatalf("event %d has numbers %d and %d", want, seen[i], e.Seq)
		}
	}
	if len(seen) != 200 {
		t.Errorf("%d events, want 200", len(seen))
	}
}
