// Package search finds tools by what they do, where there are too many of them to
// show a model all at once (I11).
//
//	index := search.New(registry.Definitions())
//	for _, hit := range index.Search("turn the lamp off", 5) {
//		fmt.Println(hit.Definition.Name, hit.Score)
//	}
//
// A tool is ranked by the words that its definition shares with the query, each
// weighed by how rare it is and by where it stands: in the name, the title, the
// description, or the names and descriptions of its parameters (BM25 over fields).
// Words are compared by their stems; "remove" also finds what says "delete", and
// "isue" what says "issue". The same index and query give the same answer, always.
package search

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"crewhost/tools"
)

// The fields of a definition, and how much a word in each of them says of the tool.
const (
	inName = iota
	inTitle
	inDescription
	inParameters   // their names
	inExplanations // their descriptions, and the values that they may have
	fields
)

func weights() [fields]float64 {
	return [fields]float64{inName: 2.5, inTitle: 2.5, inDescription: 2, inParameters: 0.8, inExplanations: 0.5}
}

// The constants of BM25: how soon a word that is repeated says nothing new, and how
// much a long text dilutes its words.
const (
	saturation = 1.5
	dilution   = 0.6
)

// What a word counts for that is not the one of the query.
const (
	asSynonym = 0.7
	asTypo    = 0.6
	asPrefix  = 0.5
	ifVague   = 0.3
)

// Index is a catalog that can be searched. It is safe for concurrent use.
type Index struct {
	language *language
	defs     []tools.Definition   // by name
	postings map[string][]posting // by stem
	words    []string             // the stems, sorted
}

// A posting says how much a word says of a tool.
type posting struct {
	tool   int32
	weight float32 // of all fields, each by its length
}

// Hit is a tool that was found.
type Hit struct {
	Definition tools.Definition
	Score      float64 // above zero, and to be compared within one search only
}

// New returns an index of some tools. What is longer than any sensible definition
// is read in part.
func New(defs []tools.Definition) *Index {
	x := &Index{language: newLanguage(), defs: slices.Clone(defs), postings: map[string][]posting{}}
	slices.SortFunc(x.defs, func(a, b tools.Definition) int { return cmp.Compare(a.Name, b.Name) })
	counts := make([][fields]map[string]int, len(x.defs))
	var total [fields]float64
	known, weights := map[string]string{}, weights()
	for i, def := range x.defs {
		for field, text := range texts(def) {
			counts[i][field] = map[string]int{}
			for _, word := range x.language.words(text, known) {
				counts[i][field][word]++
				total[field]++
			}
		}
	}
	for i := range counts {
		weight := map[string]float64{}
		for field, words := range counts[i] {
			length := 0
			for _, n := range words {
				length += n
			}
			average := max(total[field]/float64(len(counts)), 1)
			for word, n := range words {
				weight[word] += weights[field] * float64(n) / (1 - dilution + dilution*float64(length)/average)
			}
		}
		for word, w := range weight { // one a tool, so that each list is by tool
			x.postings[word] = append(x.postings[word], posting{int32(i), float32(w)}) //nolint:gosec // there are fewer tools
		}
	}
	for word := range x.postings {
		x.words = append(x.words, word)
	}
	slices.Sort(x.words)
	return x
}

// Len is how many tools there are.
func (x *Index) Len() int { return len(x.defs) }

// Search returns the tools that fit a query best, the best first and those that
// fit as well by name; at most limit. Nothing fits a query of which no word is
// known. A tool whose name is the query comes first.
func (x *Index) Search(query string, limit int) []Hit {
	scores, best := make([]float64, len(x.defs)), make([]float64, len(x.defs))
	for _, term := range x.terms(query) {
		x.score(term, best)
		for tool, s := range best {
			scores[tool] += s
		}
		clear(best)
	}
	if i, found := slices.BinarySearchFunc(x.defs, strings.TrimSpace(query), func(d tools.Definition, name string) int { return cmp.Compare(d.Name, name) }); found {
		scores[i] += 1e6
	}
	var found []int
	for tool, s := range scores {
		if s > 0 {
			found = append(found, tool)
		}
	}
	slices.SortFunc(found, func(a, b int) int { return cmp.Or(cmp.Compare(scores[b], scores[a]), cmp.Compare(a, b)) })
	found = found[:min(max(limit, 0), len(found))]
	hits := make([]Hit, 0, len(found))
	for _, tool := range found {
		hits = append(hits, Hit{x.defs[tool], scores[tool]})
	}
	return hits
}

// A term is one word of a query, by all the words that may stand for it, each with
// what it counts for.
type term []alternative

type alternative struct {
	word  string
	count float64
}

// maxTerms is how many different words of a query are looked for.
const maxTerms = 32

// terms are those of a query, in its order.
func (x *Index) terms(query string) []term {
	var out []term
	seen := map[string]bool{}
	for _, word := range x.language.words(cut(query, maxQuery), map[string]string{}) {
		if seen[word] || len(out) == maxTerms {
			continue
		}
		seen[word] = true
		worth := 1.0
		if x.language.vague[word] {
			worth = ifVague
		}
		t := term{{word, worth}}
		for _, other := range x.language.synonyms[word] {
			t = append(t, alternative{other, worth * asSynonym})
		}
		if _, known := x.postings[word]; !known && len(t) == 1 {
			t = append(t, x.like(word)...)
		}
		out = append(out, t)
	}
	return out
}

// score puts into best what one term says of each tool: as much as the best of the
// words that may stand for it.
func (x *Index) score(t term, best []float64) {
	for _, a := range t {
		list := x.postings[a.word]
		rarity := math.Log1p((float64(len(x.defs)-len(list)) + 0.5) / (float64(len(list)) + 0.5))
		for _, p := range list {
			w := float64(p.weight)
			best[p.tool] = max(best[p.tool], a.count*rarity*w*(saturation+1)/(w+saturation))
		}
	}
}

// like are words of the index for one that is not in it: those that it begins, and
// those that are one slip of the keyboard away.
func (x *Index) like(word string) term {
	const most = 8
	var out term
	if len(word) >= 4 {
		from, _ := slices.BinarySearch(x.words, word)
		for _, w := range x.words[from:] {
			if !strings.HasPrefix(w, word) || len(out) == most {
				break
			}
			out = append(out, alternative{w, asPrefix})
		}
	}
	if len(word) < 4 || len(out) > 0 {
		return out
	}
	for _, w := range x.words {
		if oneSlip(word, w) {
			out = append(out, alternative{w, asTypo})
		}
		if len(out) == most {
			break
		}
	}
	return out
}

// oneSlip reports whether two words differ by one letter, or by two that are swapped.
func oneSlip(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	if len(b)-len(a) > 1 || a == b {
		return false
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	if len(a) < len(b) {
		return a[i:] == b[i+1:]
	}
	return a[i+1:] == b[i+1:] || i+1 < len(a) && a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]
}

// Near are the names that somebody may have meant by one that is not there, the
// likeliest first; at most three.
func (x *Index) Near(name string) []string {
	const most = 3
	var out []string
	plain := strings.Join(split(cut(name, maxQuery)), "")
	for _, d := range x.defs { // the same but for its case or its dashes, or for a slip
		if other := strings.Join(split(d.Name), ""); other == plain || len(plain) >= 4 && oneSlip(other, plain) {
			out = append(out, d.Name)
		}
		if len(out) == most {
			return out
		}
	}
	for _, hit := range x.Search(name, most) {
		if !slices.Contains(out, hit.Definition.Name) && len(out) < most {
			out = append(out, hit.Definition.Name)
		}
	}
	return out
}
