package strict

import (
	"slices"
	"strconv"
	"strings"

	"github.com/agnivade/levenshtein"
)

// Nearest returns the known word that word was probably meant to be, or "".
// Case, underscores and hyphens count for nothing; else a third of the word's
// letters may differ. A word of more than 64 bytes is near none.
func Nearest(word string, known []string) string {
	if len(word) > 64 {
		return ""
	}
	fold := strings.NewReplacer("_", "", "-", "").Replace
	best, bestDistance := "", max(1, len([]rune(word))/3)+1
	for _, k := range known {
		d := distance(fold(strings.ToLower(word)), fold(strings.ToLower(k)))
		if d >= max(len(word), 1) && d > 0 {
			continue // no letter of it is left
		}
		if d < bestDistance || d == bestDistance && best != "" && k < best {
			best, bestDistance = k, d
		}
	}
	return best
}

// distance is the number of letters to change, with two neighbours swapped, the
// commonest slip of all, as one.
func distance(a, b string) int {
	if i := 0; len(a) == len(b) && a != b {
		for a[i] == b[i] {
			i++
		}
		if i+1 < len(a) && a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:] {
			return 1
		}
	}
	return levenshtein.ComputeDistance(a, b)
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

// short cuts what a parser says about a document, which may hold much of it.
func short(message string) string {
	const longest = 200
	message = strings.Join(strings.Fields(message), " ")
	if r := []rune(message); len(r) > longest {
		return string(r[:longest]) + "…"
	}
	return message
}
