package journal_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"crewhost/runner/journal"
)

// stepOf is the ith step of a long run of a thousand tasks.
func stepOf(i int) journal.Step { return turn(fmt.Sprintf("t%d", i%1000), i) }

// live is what the heap holds.
func live() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc) //nolint:gosec // far below
}

// heldAtMost is what a run takes at most to be resumed, however long it is: the
// thousands of steps that its index holds before they go to the disk, the filter before
// that file and a page of it, in bytes.
const heldAtMost = 8 << 20

// A run of a million records is listed and resumed in the memory that one of a hundred
// thousand takes.
func TestALongRun(t *testing.T) {
	var held []int64
	for _, records := range []int{few, many} {
		cfg := journal.Config{Dir: t.TempDir()}
		f, err := os.Create(filepath.Join(cfg.Dir, "run-1.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		if err := journal.Synthesize(f, journal.Header{Run: "run-1", At: began}, records/2, stepOf, []byte(`{"value":{"text":"an answer"}}`)); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		before := live()
		listed := allocated(func() {
			if runs, err := journal.List(cfg.Dir); err != nil || len(runs) != 1 || runs[0].Err != nil || runs[0].State != journal.Interrupted {
				t.Fatalf("%+v, %v", runs, err)
			}
		})
		if listed > 1<<20 {
			t.Errorf("listing a journal of %d records took %d bytes", records, listed)
		}
		l := resume(t, cfg)
		held = append(held, live()-before)
		for _, i := range []int{0, records / 4, records/2 - 1} {
			if _, live := do(t, l, stepOf(i), "1"); live {
				t.Errorf("step %d of %d was done again", i, records/2)
			}
		}
		if _, live := do(t, l, turn("new", 1), "1"); !live {
			t.Error("a new step was not done")
		}
		if n, _ := l.Done(); n != int64(records/2)+1 {
			t.Errorf("%d steps", n)
		}
		closed(t, l)
		if left, _ := filepath.Glob(filepath.Join(cfg.Dir, "*.index*")); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	}
	t.Logf("held: %d bytes, and %d", held[0], held[1])
	if held[1] > heldAtMost || held[1] > held[0]+1<<20 {
		t.Errorf("the long run takes %d bytes, the short one %d", held[1], held[0])
	}
}

// allocated is what f allocates, in bytes.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
