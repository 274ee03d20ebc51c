package journal

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
)

// table is what is known of the steps of a run, by digests. It holds some thousands in
// memory, and once there are more the others in a file, so that a long run takes no
// more memory than a short one. The file is an open-addressed hash table, written page
// by page, and of no use to anybody else: it is removed when the table is closed.
type table struct {
	path  string
	held  map[id]entry // of which the file knows nothing, or less
	limit int          // of held
	file  *os.File     // nil: all is held
	files int          // that were made
	used  int64
	slots int64  // of the file, a power of two
	seen  filter // what may be in the file
	page  []byte
}

// id is what an entry is found by.
type id [16]byte

// entry is of one step, and of all steps of a key or a scope.
type entry struct {
	begin, result int64 // offsets of the records in the journal, plus one; 0: none
	known, taken  int64 // how many there are in the journal, and were asked for since
}

const (
	entrySize  = len(id{}) + 4*8
	firstSlots = 1 << 17
	heldLimit  = 1 << 15
	pageSlots  = 1 << 11 // of a page, which is what the file is read and written by
	probeSlots = 8       // that are read to find one entry
)

func newTable(path string) *table { return &table{path: path, held: map[id]entry{}, limit: heldLimit} }

// get returns the entry of an id, or the zero entry.
func (t *table) get(key id) (entry, error) {
	if e, ok := t.held[key]; ok || t.file == nil || !t.seen.has(key) {
		return e, nil
	}
	var buffer [probeSlots * entrySize]byte
	for at, n := t.home(key), int64(0); n < t.slots; n += probeSlots {
		count := min(probeSlots, t.slots-at)
		b := buffer[:count*int64(entrySize)]
		if _, err := t.file.ReadAt(b, at*int64(entrySize)); err != nil {
			return entry{}, fmt.Errorf("reading the index of the journal: %w", err)
		}
		for ; len(b) > 0; b = b[entrySize:] {
			if found, e := decode(b); found == key || e == (entry{}) {
				return e, nil
			}
		}
		at = (at + count) & (t.slots - 1)
	}
	return entry{}, nil
}

// indexPath is the nth file of a table: it takes the place of the last but one.
func indexPath(path string, nth int) string { return fmt.Sprintf("%s.index-%d", path, nth%2) }

// removeIndex removes what a table left behind whose program was killed.
func removeIndex(path string) {
	for nth := range 2 {
		_ = os.Remove(indexPath(path, nth))
	}
}

// put sets the entry of an id, which is not zero.
func (t *table) put(key id, e entry) error {
	t.held[key] = e
	if len(t.held) <= t.limit {
		return nil
	}
	return t.flush()
}

// flush writes what is held to the file.
func (t *table) flush() error {
	if t.file == nil {
		if err := t.create(firstSlots); err != nil {
			return err
		}
	}
	for 2*(t.used+int64(len(t.held))) > t.slots {
		if err := t.grow(); err != nil {
			return err
		}
	}
	if err := t.store(t.held); err != nil {
		return err
	}
	clear(t.held)
	return nil
}

func (t *table) create(slots int64) error {
	t.files++
	f, err := os.OpenFile(indexPath(t.path, t.files), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("making the index of the journal: %w", err)
	}
	if err := f.Truncate(slots * int64(entrySize)); err != nil {
		return errors.Join(fmt.Errorf("making the index of the journal: %w", err), f.Close())
	}
	t.file, t.slots, t.used = f, slots, 0
	return nil
}

// grow moves the entries into a file of four times the size, a page at a time.
func (t *table) grow() error {
	old, slots := t.file, t.slots
	defer func() {
		_ = old.Close()
		_ = os.Remove(old.Name())
	}()
	if err := t.create(4 * slots); err != nil {
		return err
	}
	page := make([]byte, pageSlots*entrySize)
	moved := map[id]entry{}
	for at := int64(0); at < slots; at += pageSlots {
		if _, err := old.ReadAt(page, at*int64(entrySize)); err != nil {
			return fmt.Errorf("reading the index of the journal: %w", err)
		}
		for b := page; len(b) > 0; b = b[entrySize:] {
			if key, e := decode(b); e != (entry{}) {
				moved[key] = e
			}
		}
		if len(moved) >= t.limit || at+pageSlots >= slots {
			if err := t.store(moved); err != nil {
				return err
			}
			clear(moved)
		}
	}
	return nil
}

// home is the slot that an entry stands in, unless that is taken: then in the next
// that is free.
func (t *table) home(key id) int64 {
	return int64(binary.LittleEndian.Uint64(key[:8]) & uint64(t.slots-1)) //nolint:gosec // below slots
}

// store writes entries into the file, in the order of their slots, so that each page
// is read and written once.
func (t *table) store(entries map[id]entry) error {
	keys := make([]id, 0, len(entries))
	for key := range entries {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b id) int { return cmp.Compare(t.home(a), t.home(b)) })
	if t.page == nil {
		t.page = make([]byte, pageSlots*entrySize)
	}
	loaded := int64(-1)
	save := func() error {
		if loaded < 0 {
			return nil
		}
		if _, err := t.file.WriteAt(t.page, loaded*int64(len(t.page))); err != nil {
			return fmt.Errorf("writing the index of the journal: %w", err)
		}
		return nil
	}
	for _, key := range keys {
		for at := t.home(key); ; at = (at + 1) & (t.slots - 1) {
			if page := at / pageSlots; page != loaded {
				if err := save(); err != nil {
					return err
				}
				if _, err := t.file.ReadAt(t.page, page*int64(len(t.page))); err != nil {
					return fmt.Errorf("reading the index of the journal: %w", err)
				}
				loaded = page
			}
			b := t.page[at%pageSlots*int64(entrySize):][:entrySize]
			found, e := decode(b)
			if found != key && e != (entry{}) {
				continue
			}
			if e == (entry{}) {
				t.used++
				t.seen.add(key)
			}
			encode(b, key, entries[key])
			break
		}
	}
	return save()
}

func decode(b []byte) (key id, e entry) {
	copy(key[:], b)
	for i, to := range []*int64{&e.begin, &e.result, &e.known, &e.taken} {
		*to = int64(binary.LittleEndian.Uint64(b[len(key)+8*i:])) //nolint:gosec // it was an int64
	}
	return key, e
}

func encode(b []byte, key id, e entry) {
	copy(b, key[:])
	for i, v := range [...]int64{e.begin, e.result, e.known, e.taken} {
		binary.LittleEndian.PutUint64(b[len(key)+8*i:], uint64(v)) //nolint:gosec // read back as it is
	}
}

// close removes the file, if there is one.
func (t *table) close() error {
	if t.file == nil {
		return nil
	}
	err := errors.Join(t.file.Close(), os.Remove(t.file.Name()))
	t.file = nil
	return err
}

// filter is a Bloom filter of a size that does not grow: it says of most steps that are
// new that no file need be read for them.
type filter struct{ bits []uint64 }

const filterBits = 1 << 23

func (f *filter) places(key id) [3]uint32 {
	return [3]uint32{
		binary.LittleEndian.Uint32(key[4:]) % filterBits,
		binary.LittleEndian.Uint32(key[8:]) % filterBits,
		binary.LittleEndian.Uint32(key[12:]) % filterBits,
	}
}

func (f *filter) add(key id) {
	if f.bits == nil {
		f.bits = make([]uint64, filterBits/64)
	}
	for _, p := range f.places(key) {
		f.bits[p/64] |= 1 << (p % 64)
	}
}

func (f *filter) has(key id) bool {
	if f.bits == nil {
		return false
	}
	for _, p := range f.places(key) {
		if f.bits[p/64]&(1<<(p%64)) == 0 {
			return false
		}
	}
	return true
}
