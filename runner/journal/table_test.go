package journal

import (
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"testing"
)

// A table that has outgrown the memory says the same as a map, also of what was never
// in it and of what was changed since.
func TestATableOnDisk(t *testing.T) {
	table := newTable(filepath.Join(t.TempDir(), "x"))
	table.limit = 1000
	want := map[id]entry{}
	key := func(i int) id {
		whole := sha256.Sum256(fmt.Append(nil, i))
		k := id(whole[:16])
		if i < 3000 && i%7 == 0 { // many have the same place
			copy(k[:8], make([]byte, 8))
		}
		return k
	}
	const n = 100_000 // the file has to grow
	for i := range n {
		for _, put := range []struct {
			key id
			e   entry
		}{{key(i), entry{begin: int64(i) + 1}}, {key(i / 2), entry{begin: 1, result: int64(i), known: 2, taken: 3}}} {
			want[put.key] = put.e
			if err := table.put(put.key, put.e); err != nil {
				t.Fatal(err)
			}
		}
	}
	if table.files < 2 {
		t.Error("the file did not grow")
	}
	for k, e := range want {
		if got, err := table.get(k); err != nil || got != e {
			t.Fatalf("%x: %+v, %v, want %+v", k, got, err, e)
		}
	}
	for i := range 1000 {
		if got, err := table.get(key(n + 1 + i)); err != nil || got != (entry{}) {
			t.Fatalf("what is not there: %+v, %v", got, err)
		}
	}
	if err := table.close(); err != nil {
		t.Fatal(err)
	}
}
