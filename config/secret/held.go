package secret

import "strings"

// maxHeld bounds what [Redactor.Held] holds back of what looks like the beginning
// of a token.
const maxHeld = 8 << 10

// Held returns how many bytes at the end of a text that is not complete may be
// part of a secret that is: of a known one, or of a token of well-known shape.
// What stands before them can be masked on its own.
func (r *Redactor) Held(s string) int {
	rest := strings.TrimRightFunc(s, func(c rune) bool {
		return c == '-' || c == '_' || c == '.' || '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z'
	})
	return r.held(s, min(len(s)-len(rest), maxHeld))
}

// HeldKnown is Held for known secrets alone, as [Redactor.RedactKnown] masks them.
func (r *Redactor) HeldKnown(s string) int { return r.held(s, 0) }

// held is how much of s is held back, at least so much.
func (r *Redactor) held(s string, held int) int {
	if r == nil {
		return held
	}
	k := r.known.Load()
	if k == nil {
		return held
	}
	for _, v := range k.values {
		for n := min(len(v)-1, len(s)); n > held; n-- {
			if strings.HasSuffix(s, v[:n]) {
				held = n
				break
			}
		}
	}
	return len(s) - r.boundary([]byte(s), len(s)-held)
}
