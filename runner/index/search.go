package index

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Embedder turns texts into vectors whose nearness is that of what they mean. It
// must be safe for concurrent use.
type Embedder interface {
	// Model names what makes the vectors. Those of two models are never compared.
	Model() string
	// Embed returns a vector for each text, in order. No text is blank.
	Embed(ctx context.Context, texts []string) ([][]float32, error)
}

// Query says what to find.
type Query struct {
	// Text is any text; what it has of operators and quotes means nothing.
	Text string
	// Vector is the text's, made by Model; empty: found by words alone.
	Vector []float32
	Model  string
	// Where is a condition on the table entry, in SQL, with Args for its marks;
	// empty: all entries.
	Where string
	Args  []any
	// Top is how many to find, at most.
	Top int
	// MinScore leaves out what is less like the text.
	MinScore float64
	// Recent has newer entries, which have higher ids, before older ones that
	// are about as like the text.
	Recent bool
}

// Hit is an entry that was found.
type Hit struct {
	ID int64
	// Score is how like the text it is, from 0 to 1: which share of the text's
	// words it has, each counted by how rare it is, or, where both have vectors and
	// that is more, their cosine. Words that no entry has are not counted.
	Score float64
}

// LengthError says that entries could not be compared with a query by meaning: their
// vectors, though of one name of a model, have other lengths, so it is not the same
// model any more.
type LengthError struct {
	Model  string
	Query  int // numbers in the query's vector
	Stored int // and in that of an entry
	Count  int // entries that were passed over
}

// Error names both lengths.
func (e *LengthError) Error() string {
	return fmt.Sprintf("%d entries are not compared by meaning: the model %s gave them vectors of %d numbers, and now gives %d; what was embedded before has to be embedded anew",
		e.Count, e.Model, e.Stored, e.Query)
}

const (
	candidates = 100 // that each way of looking brings
	dampen     = 60  // of the ranks that are added up; the usual figure
	alike      = 0.02
)

// found is a candidate while it is ranked.
type found struct {
	id    int64
	score float64 // 0 to 1
	sum   float64 // over the ways that found it, by rank
}

// Search finds the entries most like a text, the best first. Where there are
// vectors too, an entry's place is by its ranks in both ways of looking. A
// [*LengthError] is beside what was found.
func (f *File) Search(ctx context.Context, q Query) ([]Hit, error) {
	if q.Where == "" {
		q.Where = "1"
	}
	byWords, err := f.byWords(ctx, q)
	if err != nil {
		return nil, err
	}
	byMeaning, err := f.byMeaning(ctx, q)
	var lengths *LengthError
	if err != nil && !errors.As(err, &lengths) {
		return nil, err
	}
	all := fuse(q, byWords, byMeaning)
	var hits []Hit
	for _, c := range all {
		if len(hits) == q.Top {
			break
		}
		if c.score >= q.MinScore {
			hits = append(hits, Hit{c.id, c.score})
		}
	}
	return hits, err
}

// fuse makes one ranking of several.
func fuse(q Query, rankings ...[]found) []*found {
	byID := map[int64]*found{}
	var all []*found
	for _, ranking := range rankings {
		rank := 0
		for place, c := range ranking {
			if ranking[rank].score-c.score > alike { // chance alone parts what is closer
				rank = place
			}
			one := byID[c.id]
			if one == nil {
				one = &found{id: c.id}
				byID[c.id] = one
				all = append(all, one)
			}
			one.score = max(one.score, c.score)
			one.sum += 1 / float64(dampen+rank)
		}
	}
	if q.Recent { // half a way of looking
		newest := slices.SortedFunc(slices.Values(all), newer)
		for rank, c := range newest {
			c.sum += 0.5 / float64(dampen+rank)
		}
	}
	slices.SortStableFunc(all, func(a, b *found) int {
		order := cmp.Or(cmp.Compare(b.sum, a.sum), cmp.Compare(b.score, a.score))
		if order == 0 && q.Recent {
			order = newer(a, b)
		}
		return order // else as BM25 has it
	})
	return all
}

func newer(a, b *found) int { return cmp.Compare(b.id, a.id) }

// byWords finds entries by BM25, and says how much of the question's words each
// has. BM25 itself is no measure of that: what it gives grows with the question,
// and counts a word as nothing that half of the entries have.
func (f *File) byWords(ctx context.Context, q Query) ([]found, error) {
	terms := queryTerms(q.Text)
	if len(terms) == 0 {
		return nil, nil
	}
	var ranking []found
	places := map[int64]int{}
	var ids []string
	// The plus has SQLite look for the words once, and not in each entry by itself.
	err := f.Rows(ctx, func(scan func(...any) error) error {
		var id int64
		if err := scan(&id); err != nil {
			return err
		}
		places[id] = len(ranking)
		ranking, ids = append(ranking, found{id: id}), append(ids, strconv.FormatInt(id, 10))
		return nil
	}, "SELECT rowid FROM words WHERE words MATCH ? AND +rowid IN (SELECT id FROM entry WHERE "+q.Where+
		") ORDER BY bm25(words), rowid LIMIT ?", slices.Concat([]any{match(terms)}, q.Args, []any{candidates})...)
	if err != nil || len(ranking) == 0 {
		return nil, err
	}
	var entries float64
	if err := f.db.QueryRowContext(ctx, "SELECT count(*) FROM entry").Scan(&entries); err != nil {
		return nil, f.explain(err)
	}
	holders, err := f.db.PrepareContext(ctx, "SELECT count(*), group_concat(iif(rowid IN (SELECT value FROM json_each(?)), rowid, NULL), ' ') FROM words WHERE words MATCH ?")
	if err != nil {
		return nil, f.explain(err)
	}
	defer func() { _ = holders.Close() }()
	all, wanted := 0.0, "["+strings.Join(ids, ",")+"]"
	for _, t := range terms {
		var have float64
		var among sql.NullString
		if err := holders.QueryRowContext(ctx, wanted, match([]string{t})).Scan(&have, &among); err != nil {
			return nil, f.explain(err)
		}
		if have == 0 {
			continue
		}
		rarity := math.Log(1 + max(entries-have+0.5, 0.5)/(have+0.5))
		all += rarity
		for word := range strings.FieldsSeq(among.String) {
			if id, err := strconv.ParseInt(word, 10, 64); err == nil {
				ranking[places[id]].score += rarity
			}
		}
	}
	for i := range ranking {
		ranking[i].score = min(1, ranking[i].score/max(all, math.SmallestNonzeroFloat64))
	}
	return ranking, nil
}

// byMeaning finds entries by the cosine of their vectors with the query's. It
// passes over vectors of another length, which a [*LengthError] beside the others
// tells.
func (f *File) byMeaning(ctx context.Context, q Query) ([]found, error) {
	want := decode(encode(q.Vector)) // of length 1
	if want == nil {
		return nil, nil
	}
	var ranking []found
	var other *LengthError
	tidy := func() {
		slices.SortFunc(ranking, func(a, b found) int { return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.id, b.id)) })
		ranking = ranking[:min(len(ranking), candidates)]
	}
	err := f.Rows(ctx, func(scan func(...any) error) error {
		var id int64
		var vec []byte
		if err := scan(&id, &vec); err != nil {
			return err
		}
		if have := len(vec) / 4; have != len(want) {
			if other == nil {
				other = &LengthError{Model: q.Model, Query: len(want), Stored: have}
			}
			other.Count++
			return nil
		}
		if cosine := dot(want, vec); cosine > 0 {
			if ranking = append(ranking, found{id: id, score: min(1, cosine)}); len(ranking) == 4*candidates {
				tidy()
			}
		}
		return nil
	}, "SELECT id, vec FROM vector WHERE model = ? AND id IN (SELECT id FROM entry WHERE "+q.Where+")", slices.Concat([]any{q.Model}, q.Args)...)
	tidy()
	if err == nil && other != nil {
		err = f.explain(other)
	}
	return ranking, err
}

// encode returns the direction of a vector as bytes, or nil where it has none.
func encode(vector []float32) []byte {
	var square float64
	for _, x := range vector {
		square += float64(x) * float64(x)
	}
	length := math.Sqrt(square)
	if length == 0 || math.IsNaN(length) || math.IsInf(length, 0) {
		return nil
	}
	vec := make([]byte, 0, 4*len(vector))
	for _, x := range vector {
		vec = binary.LittleEndian.AppendUint32(vec, math.Float32bits(float32(float64(x)/length)))
	}
	return vec
}

func decode(vec []byte) []float32 {
	var vector []float32
	for ; len(vec) >= 4; vec = vec[4:] {
		vector = append(vector, math.Float32frombits(binary.LittleEndian.Uint32(vec)))
	}
	return vector
}

// dot multiplies vectors of one length.
func dot(a []float32, vec []byte) float64 {
	var sum float32
	for i, x := range a {
		sum += x * math.Float32frombits(binary.LittleEndian.Uint32(vec[4*i:]))
	}
	return float64(sum)
}

// EmbedAll embeds texts a few at a time; blank ones, which vendors refuse, get no
// vector. Of a long text the beginning is embedded.
func EmbedAll(ctx context.Context, e Embedder, texts []string) ([][]float32, error) {
	const batch, longest = 64, 8_000 // texts, bytes
	all := make([][]float32, len(texts))
	var places []int
	var wanted []string
	flush := func() error {
		if len(wanted) == 0 {
			return nil
		}
		vectors, err := e.Embed(ctx, wanted)
		if err != nil {
			return err
		}
		for i, place := range places[:min(len(places), len(vectors))] {
			all[place] = vectors[i]
		}
		places, wanted = nil, nil
		return nil
	}
	for i, t := range texts {
		if strings.TrimSpace(t) == "" {
			continue
		}
		places, wanted = append(places, i), append(wanted, clip(t, longest))
		if len(wanted) == batch {
			if err := flush(); err != nil {
				return nil, err
			}
		}
	}
	return all, flush()
}
