package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
)

// table is what is known of the steps of a run, by digests. It holds some thousands in
// memory, and once there are more all of them in a file, so that a long run takes no
// more memory than a short one. The file is an open-addressed hash table and of no use
// to anybody else: it is removed when the table is closed.
type table struct {
	path   string
	held   map[id]entry // nil once there is a file
	limit  int          // of held
	file   *os.File
	files  int // that were made
	used   int64
	slots  int64  // of the file, a power of two
	buffer []byte // of one probe
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
	probe      = 16 // slots that are read at once
)

func newTable(path string) *table {
	return &table{path: path, held: map[id]entry{}, limit: heldLimit}
}

// get returns the entry of an id, or the zero entry.
func (t *table) get(key id) (entry, error) {
	if t.held != nil {
		return t.held[key], nil
	}
	_, e, err := t.find(key)
	return e, err
}

// put sets the entry of an id.
func (t *table) put(key id, e entry) error {
	if t.held != nil {
		t.held[key] = e
		if len(t.held) <= t.limit {
			return nil
		}
		return t.spill()
	}
	slot, old, err := t.find(key)
	if err != nil {
		return err
	}
	if old == (entry{}) {
		if t.used++; 4*t.used > 3*t.slots {
			if err := t.grow(); err != nil {
				return err
			}
			if slot, _, err = t.find(key); err != nil {
				return err
			}
		}
	}
	return write(t.file, slot, key, e)
}

// spill moves what is held into a file.
func (t *table) spill() error {
	held := t.held
	if err := t.create(firstSlots); err != nil {
		return err
	}
	t.held = nil
	for key, e := range held {
		if err := t.put(key, e); err != nil {
			return err
		}
	}
	return nil
}

func (t *table) create(slots int64) error {
	t.files++
	f, err := os.OpenFile(fmt.Sprintf("%s-%d", t.path, t.files), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("making the index of the journal: %w", err)
	}
	if err := f.Truncate(slots * int64(entrySize)); err != nil {
		return errors.Join(fmt.Errorf("making the index of the journal: %w", err), f.Close())
	}
	t.file, t.slots, t.used = f, slots, 0
	return nil
}

// grow moves the entries into a file of four times the size.
func (t *table) grow() error {
	old, slots := t.file, t.slots
	defer func() {
		_ = old.Close()
		_ = os.Remove(old.Name())
	}()
	if err := t.create(4 * slots); err != nil {
		return err
	}
	page := make([]byte, 1024*entrySize)
	for at := int64(0); at < slots; at += 1024 {
		if _, err := old.ReadAt(page, at*int64(entrySize)); err != nil {
			return fmt.Errorf("growing the index of the journal: %w", err)
		}
		for b := page; len(b) > 0; b = b[entrySize:] {
			key, e := decode(b)
			if e == (entry{}) {
				continue
			}
			slot, _, err := t.find(key)
			if err == nil {
				err = write(t.file, slot, key, e)
			}
			if err != nil {
				return err
			}
			t.used++
		}
	}
	t.used++ // the one that is put
	return nil
}

// find returns the slot of an id and its entry, or the slot where it is to be put.
func (t *table) find(key id) (int64, entry, error) {
	if t.buffer == nil {
		t.buffer = make([]byte, probe*entrySize)
	}
	at := int64(binary.LittleEndian.Uint64(key[:8]) & uint64(t.slots-1)) //nolint:gosec // below slots
	for range t.slots {
		n := min(probe, t.slots-at)
		b := t.buffer[:n*int64(entrySize)]
		if _, err := t.file.ReadAt(b, at*int64(entrySize)); err != nil {
			return 0, entry{}, fmt.Errorf("reading the index of the journal: %w", err)
		}
		for i := range n {
			found, e := decode(b[i*int64(entrySize):])
			if found == key || e == (entry{}) {
				return at + i, e, nil
			}
		}
		at = (at + n) & (t.slots - 1)
	}
	return 0, entry{}, errors.New("the index of the journal is full")
}

func decode(b []byte) (key id, e entry) {
	copy(key[:], b)
	for i, to := range []*int64{&e.begin, &e.result, &e.known, &e.taken} {
		*to = int64(binary.LittleEndian.Uint64(b[len(key)+8*i:])) //nolint:gosec // it was an int64
	}
	return key, e
}

func write(f *os.File, slot int64, key id, e entry) error {
	b := append(make([]byte, 0, entrySize), key[:]...)
	for _, v := range []int64{e.begin, e.result, e.known, e.taken} {
		b = binary.LittleEndian.AppendUint64(b, uint64(v)) //nolint:gosec // read back as it is
	}
	if _, err := f.WriteAt(b, slot*int64(entrySize)); err != nil {
		return fmt.Errorf("writing the index of the journal: %w", err)
	}
	return nil
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
