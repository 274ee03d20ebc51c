package tools

import (
	"fmt"
	"unicode/utf8"
)

// Truncate returns s where it has at most max characters (code points).
// Otherwise it returns the head and the tail of s with a notice between them
// that says how many characters were left out; the whole, notice included, has
// at most max characters, so that truncating again changes nothing (K35).
// Where max leaves no room for a notice, it returns the first max characters.
// A max of zero or less returns "".
//
// Every cut is on a rune boundary: valid UTF-8 stays valid.
func Truncate(s string, max int) string {
	if max <= 0 {
		return ""
	}
	if len(s) <= max {
		return s
	}
	total := utf8.RuneCountInString(s)
	if total <= max {
		return s
	}
	// The notice is measured with the largest number that it may hold.
	room := max - len(cutNotice(total))
	if room < 2 {
		return s[:runeOffset(s, max)]
	}
	// The head says what the text is; the tail often holds the error or the
	// end of a list. The head gets the larger part.
	tail := room / 3
	head := room - tail
	return s[:runeOffset(s, head)] + cutNotice(total-room) + s[tailOffset(s, tail):]
}

// cutNotice is ASCII: its length in bytes is its length in characters.
func cutNotice(n int) string {
	return fmt.Sprintf("\n\n[... %d characters left out here; ask for less, or for a part ...]\n\n", n)
}

// runeOffset is the offset of the rune with index n, which s holds.
func runeOffset(s string, n int) int {
	off := 0
	for ; n > 0; n-- {
		_, size := utf8.DecodeRuneInString(s[off:])
		off += size
	}
	return off
}

// tailOffset is the offset at which the last n runes of s start.
func tailOffset(s string, n int) int {
	off := len(s)
	for ; n > 0; n-- {
		_, size := utf8.DecodeLastRuneInString(s[:off])
		off -= size
	}
	return off
}
