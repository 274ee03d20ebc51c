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

// oneLine folds a text into one line without control characters, so that what
// a server or a file says can't draw on the terminal.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
	return strings.Join(strings.Fields(s), " ")
}
