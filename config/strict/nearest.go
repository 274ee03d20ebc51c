package strict

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/agnivade/levenshtein"
)

// Nearest returns the known word that word was probably meant to be, or "".
// Case, underscores and hyphens count for nothing; else a third of the word's
// letters may differ.
func Nearest(word string, known []string) string {
	fold := strings.NewReplacer("_", "", "-", "").Replace
	best, bestDistance := "", max(1, len([]rune(word))/3)+1
	for _, k := range known {
		d := levenshtein.ComputeDistance(fold(strings.ToLower(word)), fold(strings.ToLower(k)))
		if d < bestDistance || d == bestDistance && best != "" && k < best {
			best, bestDistance = k, d
		}
	}
	return best
}

// DidYouMean returns a hint that names the nearest known word or, where none
// is near and the known words are few, all of them.
func DidYouMean(word string, known []string) string {
	if near := Nearest(word, known); near != "" {
		return "did you mean " + strconv.Quote(near) + "?"
	}
	if len(known) == 0 || len(known) > 16 {
		return ""
	}
	sorted := slices.Sorted(slices.Values(known))
	return "known: " + strings.Join(slices.Compact(sorted), ", ")
}

func sortEntries(entries []Entry) {
	slices.SortFunc(entries, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(a.KeyPos.Line, b.KeyPos.Line), cmp.Compare(a.KeyPos.Column, b.KeyPos.Column), cmp.Compare(a.Key, b.Key))
	})
}

func atoi(s string) int {
	n, err := strconv.Atoi(strings.TrimSpace(s))
	if err != nil {
		return 0
	}
	return n
}
