// Package memory keeps what a crew's tasks came to, so that later runs of the crew
// can build on it, and finds what of it matters to a task.
//
// A [Store] is one file. What it keeps are the outputs of completed tasks, and
// notes that agents made; each with when, by whom and in which run. It holds a
// bounded number of entries and bytes: the oldest go.
//
//	s, err := memory.Open(ctx, memory.Config{Path: path})
//	err = s.Keep(ctx, memory.Entry{Run: run, RunAt: began, Task: "collect", Agent: "reader", About: "Collect facts", Text: output})
//	found, err := s.Recall(ctx, memory.Question{Text: "Which facts are there?", Top: 5, NotOf: run})
//
// Entries are found by their words and, with an [index.Embedder], by their meaning
// as well; of those that are about as like the question the newer comes first.
package memory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"crewhost/runner/index"
)

// The bounds of a store that says nothing of them.
const (
	DefaultEntries = 10_000
	DefaultBytes   = 64 << 20
)

// MaxText is the longest text of one entry, in bytes; Keep refuses a longer one.
const MaxText = 1 << 20

// Config is a store to open.
type Config struct {
	// Path is the file; empty: in memory, and gone when the store is closed.
	Path string
	// Entries and Bytes bound what is kept, vectors included; 0 is the default.
	Entries int
	Bytes   int64
	// Embedder, where set, has entries be found by what they mean, too.
	Embedder index.Embedder
	Now      func() time.Time // nil: time.Now
}

// Entry is one thing that is remembered.
type Entry struct {
	ID    int64     // from 1, growing; Keep gives it
	Run   string    // id of the run
	RunAt time.Time // when that began
	At    time.Time // when the entry was kept; Keep gives it
	Task  string    // key; empty where none is known
	Agent string    // key; empty where none is known
	// Key is the name of a note: one of the same name replaces it. It is empty
	// for the output of a task, and for a note without a name.
	Key string
	// About is what the text is an answer to; it counts where entries are looked
	// for. It may be empty.
	About string
	Text  string
	// Score is how like the question an entry is that was found, from 0 to 1; see
	// [index.Hit].
	Score float64
}

// Question says what to remember.
type Question struct {
	Text string
	Top  int // at most; 0 is none
	// MinScore leaves out what is less like the text.
	MinScore float64
	// NotOf is a run whose entries are left out; empty: none.
	NotOf string
	// Before leaves out what was kept later; zero: nothing.
	Before time.Time
}

// Store is an open store. It is safe for concurrent use, also by several processes.
type Store struct {
	file    *index.File
	embed   index.Embedder
	entries int
	bytes   int64
	now     func() time.Time
}

const (
	application = 0x4357484d // "CWHM", in the head of the file
	version     = 1
)

// size has the bytes of an entry's texts and vector. The texts come last, so that
// what is asked of all entries does not read them.
const schema = `
CREATE TABLE entry (
	id     INTEGER PRIMARY KEY AUTOINCREMENT,
	run    TEXT NOT NULL,
	run_at INTEGER NOT NULL,
	at     INTEGER NOT NULL,
	size   INTEGER NOT NULL,
	task   TEXT NOT NULL,
	agent  TEXT NOT NULL,
	key    TEXT NOT NULL,
	about  TEXT NOT NULL,
	text   TEXT NOT NULL
);
CREATE INDEX entry_task ON entry (task);
CREATE INDEX entry_key ON entry (key) WHERE key <> '';
CREATE INDEX entry_size ON entry (id, size);
`

const columns = "id, run, run_at, at, task, agent, key, about, text"

// Open opens a store, and makes its file where there is none. A file that is
// damaged, or not a store's, is an error that names it, and is left as it is.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	file, err := index.Open(ctx, index.Config{Path: cfg.Path, Application: application, Version: version, Schema: schema})
	if err != nil {
		return nil, err
	}
	s := &Store{
		file: file, embed: cfg.Embedder, now: cfg.Now,
		entries: cmp.Or(cfg.Entries, DefaultEntries), bytes: cmp.Or(cfg.Bytes, DefaultBytes),
	}
	if s.now == nil {
		s.now = time.Now
	}
	return s, nil
}

// Close closes the store.
func (s *Store) Close() error { return s.file.Close() }

// Probe makes sure that the store can be written to and, where it embeds, that
// this works. It changes nothing.
func (s *Store) Probe(ctx context.Context) error {
	if err := s.file.Probe(ctx); err != nil {
		return err
	}
	if s.embed == nil {
		return nil
	}
	if _, err := index.EmbedAll(ctx, s.embed, []string{"probe"}); err != nil {
		return fmt.Errorf("embedding a text: %w", err)
	}
	return nil
}

// Keep keeps an entry, and lets the oldest go where there are then too many. A
// blank text is not kept. One that is there already, of the same task, becomes
// the newest, and is not kept twice. Where embedding fails, the entry is kept
// without a vector, and the error says so.
func (s *Store) Keep(ctx context.Context, e Entry) error {
	if strings.TrimSpace(e.Text) == "" {
		return nil
	}
	if most := min(MaxText, s.bytes); int64(len(e.Text)+len(e.About)) > most {
		return fmt.Errorf("remembering the output of task %q: it has %d bytes, and an entry at most %d", e.Task, len(e.Text)+len(e.About), most)
	}
	// No lock is held while a vendor is asked.
	model, vector, unembedded := s.vector(ctx, strings.TrimSpace(e.About+"\n\n"+e.Text))
	err := s.file.Update(ctx, func(tx *index.Tx) error {
		if err := tx.Drop("task = ? AND text = ? AND key = ?", e.Task, e.Text, e.Key); err != nil {
			return err
		}
		if e.Key != "" {
			if err := tx.Drop("key = ? AND key <> ''", e.Key); err != nil {
				return err
			}
		}
		id, err := tx.Insert("INSERT INTO entry (run, run_at, at, task, agent, key, about, text, size) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
			e.Run, e.RunAt.UnixMilli(), s.now().UnixMilli(), e.Task, e.Agent, e.Key, e.About, e.Text, len(e.About)+len(e.Text)+4*len(vector))
		if err != nil {
			return err
		}
		if err := tx.Index(id, strings.Join([]string{e.Key, e.About, e.Text}, "\n")); err != nil {
			return err
		}
		if err := tx.Embed(id, model, vector); err != nil {
			return err
		}
		return s.trim(tx)
	})
	if err != nil {
		return err
	}
	return unembedded
}

// trim lets the oldest entries go until the rest is within bounds.
func (s *Store) trim(tx *index.Tx) error {
	var entries int
	var bytes, last int64
	if _, err := tx.Row("SELECT count(*), coalesce(sum(size), 0) FROM entry", nil, &entries, &bytes); err != nil {
		return err
	}
	for entries > s.entries || bytes > s.bytes {
		var size int64
		if there, err := tx.Row("SELECT id, size FROM entry WHERE id > ? ORDER BY id LIMIT 1", []any{last}, &last, &size); err != nil || !there {
			return err
		}
		entries, bytes = entries-1, bytes-size
	}
	if last == 0 {
		return nil
	}
	return tx.Drop("id <= ?", last)
}

// vector embeds a text where the store embeds.
func (s *Store) vector(ctx context.Context, text string) (model string, vector []float32, err error) {
	if s.embed == nil {
		return "", nil, nil
	}
	vectors, err := index.EmbedAll(ctx, s.embed, []string{text})
	if err != nil {
		return "", nil, fmt.Errorf("embedding a text: %w", err)
	}
	return s.embed.Model(), vectors[0], nil
}

// Recall finds the entries that are most like a question, the best first. Where
// embedding fails, it finds by words alone, and there is an error beside them; so
// there is, an [*index.LengthError], where vectors can't be compared.
func (s *Store) Recall(ctx context.Context, q Question) ([]Entry, error) {
	if q.Top <= 0 {
		return nil, nil
	}
	model, vector, unembedded := s.vector(ctx, q.Text)
	before := int64(math.MaxInt64)
	if !q.Before.IsZero() {
		before = q.Before.UnixMilli()
	}
	hits, err := s.file.Search(ctx, index.Query{
		Text: q.Text, Vector: vector, Model: model, Top: q.Top, MinScore: q.MinScore,
		Where: "(run <> ? OR ? = '') AND at <= ?", Args: []any{q.NotOf, q.NotOf, before}, Recent: true,
	})
	var lengths *index.LengthError
	switch {
	case errors.As(err, &lengths):
		unembedded = err
	case err != nil:
		return nil, errors.Join(err, unembedded)
	}
	var found []Entry
	for _, hit := range hits {
		e, ok, err := s.Entry(ctx, hit.ID)
		if err != nil {
			return nil, err
		}
		if ok { // nobody let it go meanwhile
			e.Score = hit.Score
			found = append(found, e)
		}
	}
	return found, unembedded
}

// Entry returns the entry of an id, and false where there is none.
func (s *Store) Entry(ctx context.Context, id int64) (Entry, bool, error) {
	found, err := s.rows(ctx, "WHERE id = ?", id)
	if err != nil || len(found) == 0 {
		return Entry{}, false, err
	}
	return found[0], true, nil
}

// List returns the newest entries, the newest first; at most so many.
func (s *Store) List(ctx context.Context, most int) ([]Entry, error) {
	return s.rows(ctx, "ORDER BY id DESC LIMIT ?", most)
}

func (s *Store) rows(ctx context.Context, which string, args ...any) ([]Entry, error) {
	var all []Entry
	err := s.file.Rows(ctx, func(scan func(...any) error) error {
		var e Entry
		var runAt, at int64
		if err := scan(&e.ID, &e.Run, &runAt, &at, &e.Task, &e.Agent, &e.Key, &e.About, &e.Text); err != nil {
			return err
		}
		e.RunAt, e.At = time.UnixMilli(runAt), time.UnixMilli(at)
		all = append(all, e)
		return nil
	}, "SELECT "+columns+" FROM entry "+which, args...)
	return all, err
}

// Count returns how many entries there are.
func (s *Store) Count(ctx context.Context) (n int, err error) {
	err = s.file.Rows(ctx, func(scan func(...any) error) error { return scan(&n) }, "SELECT count(*) FROM entry")
	return n, err
}

// Forget removes the entries of these ids, and returns how many of them there
// were.
func (s *Store) Forget(ctx context.Context, ids ...int64) (n int, err error) {
	err = s.file.Update(ctx, func(tx *index.Tx) error {
		n = 0
		for _, id := range slices.Compact(slices.Sorted(slices.Values(ids))) {
			var one int
			if there, err := tx.Row("SELECT 1 FROM entry WHERE id = ?", []any{id}, &one); err != nil || !there {
				if err != nil {
					return err
				}
				continue
			}
			if err := tx.Drop("id = ?", id); err != nil {
				return err
			}
			n++
		}
		return nil
	})
	return n, err
}

// Clear removes all entries, and returns how many there were. What they said is
// gone from the file, too.
func (s *Store) Clear(ctx context.Context) (n int, err error) {
	err = s.file.Update(ctx, func(tx *index.Tx) error {
		if _, err := tx.Row("SELECT count(*) FROM entry", nil, &n); err != nil {
			return err
		}
		return tx.Drop("1")
	})
	if err != nil {
		return 0, err
	}
	return n, s.file.Compact(ctx)
}
