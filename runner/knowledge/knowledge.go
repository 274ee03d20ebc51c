// Package knowledge finds in documents what matters to a task.
//
// Documents come in named collections. Each is text of some [Format]; it is cut
// into chunks that overlap, and these are found by their words and, with an
// [index.Embedder], by their meaning as well. An [Excerpt] says where it stands in
// its document, so that whoever uses it can cite it:
//
//	lib, err := knowledge.Open(ctx, knowledge.Config{Path: path})
//	report, err := lib.Sync(ctx, []knowledge.Collection{{Name: "guides", Documents: docs, MaxTokens: 512, Overlap: 64}})
//	found, err := lib.Find(ctx, knowledge.Question{Text: "When is high tide?", Collections: []string{"guides"}, Top: 5})
//	fmt.Println(found[0].Cite()) // guides/tides.md:10-24
//
// A [Library] is one file, and nothing but a memory aid: [Library.Sync] makes it
// agree with the documents. A document that has not changed is not cut up again.
package knowledge

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"strings"

	"crewhost/runner/index"
)

// The bounds of a library that says nothing of them.
const (
	DefaultFiles  = 2_000
	DefaultBytes  = 64 << 20
	DefaultChunks = 20_000
)

// Config is a library to open.
type Config struct {
	// Path is the file; empty: in memory, and gone when the library is closed.
	Path string
	// Files, Bytes and Chunks bound what all collections hold together. What is
	// beyond is no document less but an error of Sync. 0 is the default.
	Files  int
	Bytes  int64
	Chunks int
	// Embedder, where set, has excerpts be found by what they mean, too.
	Embedder index.Embedder
}

// Collection is some documents, and how they are cut up.
type Collection struct {
	Name      string
	Documents []Document
	Chunking
}

// Document is a text to find excerpts in.
type Document struct {
	// Name is what it is cited by, and unique in its collection.
	Name string
	// Read returns the content, and an error that wraps [ErrTooLarge] where that
	// is longer than limit bytes.
	Read func(ctx context.Context, limit int64) ([]byte, error)
}

// ErrTooLarge says that documents are more than the library takes.
var ErrTooLarge = errors.New("too large")

// Library is an open library. It is safe for concurrent use, also by several
// processes.
type Library struct {
	file   *index.File
	embed  index.Embedder
	files  int
	bytes  int64
	chunks int
}

const (
	application = 0x4357484b // "CWHK", in the head of the file
	version     = 1
)

// made tells the chunks of one way of cutting from those of another.
const made = "1"

const schema = `
CREATE TABLE file (
	id         INTEGER PRIMARY KEY,
	collection TEXT NOT NULL,
	name       TEXT NOT NULL,
	state      TEXT NOT NULL,
	UNIQUE (collection, name)
);
CREATE TABLE entry (
	id         INTEGER PRIMARY KEY AUTOINCREMENT,
	file       INTEGER NOT NULL,
	first_line INTEGER NOT NULL,
	last_line  INTEGER NOT NULL,
	text       TEXT NOT NULL
);
CREATE INDEX entry_file ON entry (file);
`

// Open opens a library, and makes its file where there is none. A file that is
// damaged, or not a library's, is an error that names it, and is left as it is.
func Open(ctx context.Context, cfg Config) (*Library, error) {
	file, err := index.Open(ctx, index.Config{Path: cfg.Path, Application: application, Version: version, Schema: schema})
	if err != nil {
		return nil, err
	}
	return &Library{
		file: file, embed: cfg.Embedder,
		files: cmp.Or(cfg.Files, DefaultFiles), bytes: cmp.Or(cfg.Bytes, DefaultBytes), chunks: cmp.Or(cfg.Chunks, DefaultChunks),
	}, nil
}

// Close closes the library.
func (l *Library) Close() error { return l.file.Close() }

// Report is what a Sync came to.
type Report struct {
	Documents int // that there are
	Changed   int // of them, that were cut up anew
	Removed   int // that are no longer there
	Chunks    int // of all documents
	Embedded  int // chunks that got a vector
}

// Sync makes the library agree with the collections: new and changed documents
// are cut up, and those that are gone are dropped. An error leaves it with a part
// of that done, which the next Sync goes on from.
func (l *Library) Sync(ctx context.Context, collections []Collection) (Report, error) {
	var r Report
	left := l.bytes
	known, err := l.known(ctx)
	if err != nil {
		return r, err
	}
	if r.Removed, err = l.remove(ctx, known, collections); err != nil {
		return r, err
	}
	for _, c := range collections {
		for _, d := range c.Documents {
			if r.Documents++; r.Documents > l.files {
				return r, fmt.Errorf("the collections hold more than %d documents: %w", l.files, ErrTooLarge)
			}
			data, err := d.Read(ctx, left)
			if errors.Is(err, ErrTooLarge) {
				return r, fmt.Errorf("the collections hold more than %d bytes, reached by %s: %w", l.bytes, d.Name, err)
			}
			if err != nil {
				return r, fmt.Errorf("reading %s for collection %q: %w", d.Name, c.Name, err)
			}
			left -= int64(len(data))
			p, state := place{c.Name, d.Name}, c.state(d.Name, data)
			if known[p] == state {
				continue
			}
			if err := l.put(ctx, p, state, data, c.Chunking); err != nil {
				return r, fmt.Errorf("indexing %s for collection %q: %w", d.Name, c.Name, err)
			}
			r.Changed++
		}
	}
	if r.Embedded, err = l.embedMissing(ctx); err != nil {
		return r, err
	}
	r.Chunks, err = l.count(ctx)
	return r, err
}

// place is which document a file of the library is of.
type place struct{ collection, name string }

// remove drops the documents that are gone.
func (l *Library) remove(ctx context.Context, known map[place]string, collections []Collection) (n int, err error) {
	gone := maps.Clone(known)
	for _, c := range collections {
		for _, d := range c.Documents {
			delete(gone, place{c.Name, d.Name})
		}
	}
	if len(gone) == 0 {
		return 0, nil
	}
	return len(gone), l.file.Update(ctx, func(tx *index.Tx) error {
		for p := range gone { // in any order: each is dropped
			if err := drop(tx, p); err != nil {
				return err
			}
		}
		return nil
	})
}

// known returns the state of each document as it was last seen.
func (l *Library) known(ctx context.Context) (map[place]string, error) {
	known := map[place]string{}
	err := l.file.Rows(ctx, func(scan func(...any) error) error {
		var p place
		var state string
		if err := scan(&p.collection, &p.name, &state); err != nil {
			return err
		}
		known[p] = state
		return nil
	}, "SELECT collection, name, state FROM file")
	return known, err
}

// state is the same as long as the same chunks come of a document.
func (c Chunking) state(name string, data []byte) string {
	sum := sha256.Sum256(data)
	return fmt.Sprintf("%s %s %s %d %d %s", made, FormatOf(name), c.Strategy, c.MaxTokens, c.Overlap, hex.EncodeToString(sum[:]))
}

// put cuts a document up in place of what was there of it.
func (l *Library) put(ctx context.Context, p place, state string, data []byte, how Chunking) error {
	format := FormatOf(p.name)
	text, err := format.Text(data)
	if err != nil {
		return err
	}
	chunks := how.Cut(text)
	if format == CSV || format == TSV {
		chunks = withHead(text, chunks)
	}
	return l.file.Update(ctx, func(tx *index.Tx) error {
		if err := drop(tx, p); err != nil {
			return err
		}
		var have int
		if _, err := tx.Row("SELECT count(*) FROM entry", nil, &have); err != nil {
			return err
		}
		if have+len(chunks) > l.chunks {
			return fmt.Errorf("the collections are more than %d chunks: %w", l.chunks, ErrTooLarge)
		}
		file, err := tx.Insert("INSERT INTO file (collection, name, state) VALUES (?, ?, ?)", p.collection, p.name, state)
		if err != nil {
			return err
		}
		for _, c := range chunks {
			id, err := tx.Insert("INSERT INTO entry (file, first_line, last_line, text) VALUES (?, ?, ?, ?)", file, c.First, c.Last, c.Text)
			if err != nil {
				return err
			}
			// The name says what a document is about, often better than itself.
			if err := tx.Index(id, p.name+"\n"+c.Text); err != nil {
				return err
			}
		}
		return nil
	})
}

func drop(tx *index.Tx, p place) error {
	if err := tx.Drop("file = (SELECT id FROM file WHERE collection = ? AND name = ?)", p.collection, p.name); err != nil {
		return err
	}
	return tx.Exec("DELETE FROM file WHERE collection = ? AND name = ?", p.collection, p.name)
}

// embedMissing gives vectors to the chunks that have none of the present model.
func (l *Library) embedMissing(ctx context.Context) (n int, err error) {
	if l.embed == nil {
		return 0, nil
	}
	const batch = 64
	for last := int64(0); ; {
		var ids []int64
		var texts []string
		err := l.file.Rows(ctx, func(scan func(...any) error) error {
			var id int64
			var text string
			if err := scan(&id, &text); err != nil {
				return err
			}
			ids, texts = append(ids, id), append(texts, text)
			return nil
		}, "SELECT id, text FROM entry WHERE id > ? AND NOT EXISTS (SELECT 1 FROM vector WHERE vector.id = entry.id AND model = ?) ORDER BY id LIMIT ?",
			last, l.embed.Model(), batch)
		if err != nil || len(ids) == 0 {
			return n, err
		}
		last = ids[len(ids)-1]
		vectors, err := index.EmbedAll(ctx, l.embed, texts)
		if err != nil {
			return n, fmt.Errorf("embedding documents: %w", err)
		}
		if err := l.file.Update(ctx, func(tx *index.Tx) error {
			for i, id := range ids {
				var one int // the chunk may be gone, where another process has been at it
				there, err := tx.Row("SELECT 1 FROM entry WHERE id = ?", []any{id}, &one)
				if err == nil && there {
					err = tx.Embed(id, l.embed.Model(), vectors[i])
				}
				if err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			return n, err
		}
		n += len(ids)
	}
}

func (l *Library) count(ctx context.Context) (n int, err error) {
	err = l.file.Rows(ctx, func(scan func(...any) error) error { return scan(&n) }, "SELECT count(*) FROM entry")
	return n, err
}

// Question says what to find.
type Question struct {
	Text        string
	Collections []string // to look in; none: all
	Top         int      // at most; 0 is none
	MinScore    float64  // what is less like the text is left out; see [index.Hit]
	// MaxTokens bounds the texts that are found, together; 0 is no bound. The
	// first excerpt that does not fit ends them, and is cut if it is the only one.
	MaxTokens int
}

// Excerpt is a piece of a document.
type Excerpt struct {
	Collection  string
	Name        string // of the document
	First, Last int    // lines, from 1
	Text        string
	Score       float64 // how like the question it is, from 0 to 1
}

// Cite says where the excerpt stands: "tides.md:3-7".
func (e Excerpt) Cite() string {
	if e.First == e.Last {
		return fmt.Sprintf("%s:%d", e.Name, e.First)
	}
	return fmt.Sprintf("%s:%d-%d", e.Name, e.First, e.Last)
}

// Find finds the excerpts that are most like a question, the best first. Where
// embedding fails, it finds by words alone, and there is an error beside them; so
// there is, an [*index.LengthError], where vectors can't be compared.
func (l *Library) Find(ctx context.Context, q Question) ([]Excerpt, error) {
	if q.Top <= 0 || strings.TrimSpace(q.Text) == "" {
		return nil, nil
	}
	query := index.Query{Text: q.Text, Top: q.Top, MinScore: q.MinScore}
	var unembedded error
	if l.embed != nil {
		vectors, err := index.EmbedAll(ctx, l.embed, []string{q.Text})
		if err == nil {
			query.Vector, query.Model = vectors[0], l.embed.Model()
		} else {
			unembedded = fmt.Errorf("embedding a question: %w", err)
		}
	}
	if len(q.Collections) > 0 {
		query.Where = "file IN (SELECT id FROM file WHERE collection IN (?" + strings.Repeat(", ?", len(q.Collections)-1) + "))"
		for _, name := range q.Collections {
			query.Args = append(query.Args, name)
		}
	}
	hits, err := l.file.Search(ctx, query)
	var lengths *index.LengthError
	switch {
	case errors.As(err, &lengths):
		unembedded = err
	case err != nil:
		return nil, errors.Join(err, unembedded)
	}
	var found []Excerpt
	left := q.MaxTokens
	for _, hit := range hits {
		e := Excerpt{Score: hit.Score}
		err := l.file.Rows(ctx, func(scan func(...any) error) error {
			return scan(&e.Collection, &e.Name, &e.First, &e.Last, &e.Text)
		}, "SELECT collection, name, first_line, last_line, text FROM entry JOIN file ON file.id = entry.file WHERE entry.id = ?", hit.ID)
		if err != nil {
			return nil, err
		}
		if e.Name == "" {
			continue // it went meanwhile
		}
		if q.MaxTokens > 0 {
			if n := Tokens(e.Text); n > left {
				if len(found) > 0 {
					break
				}
				e = e.upTo(left)
			}
			left -= Tokens(e.Text)
		}
		found = append(found, e)
	}
	return found, unembedded
}

// upTo is the beginning of an excerpt.
func (e Excerpt) upTo(tokens int) Excerpt {
	e.Text = e.Text[:fitting(e.Text, tokens)]
	e.Last = e.First + strings.Count(e.Text, "\n")
	return e
}
