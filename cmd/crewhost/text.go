package main

import (
	"fmt"
	"strings"
	"unicode"
)

// count writes a number of things: "1 problem", "3 problems".
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// oneLine folds a text into one line without control characters.
func oneLine(s string) string { return strings.Join(strings.Fields(still(s)), " ") }

// still takes out control characters, line breaks included, and those that turn
// the direction of writing, so that what a server or a file says can't draw on
// the terminal or show a call as another.
func still(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return ' '
		}
		return r
	}, s)
}
