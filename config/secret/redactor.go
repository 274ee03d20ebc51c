package secret

import (
	"cmp"
	"slices"
	"strings"
	"sync"
)

// minLength is the shortest secret that a [Redactor] looks for: masking every
// "1" in a log would hide the log and no secret.
const minLength = 4

// Redactor masks known secrets in text that somebody else wrote: a server's
// stderr, an error body. The zero value knows no secret. It is safe for
// concurrent use.
type Redactor struct {
	mu     sync.RWMutex
	values []string // longest first, so that a secret inside another is masked whole
}

// Add makes the redactor know further secrets. Secrets under four bytes are
// left alone.
func (r *Redactor) Add(values ...Value) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, v := range values {
		if len(v.text) < minLength || slices.Contains(r.values, v.text) {
			continue
		}
		r.values = append(r.values, v.text)
	}
	slices.SortFunc(r.values, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b))
	})
}

// Redact returns s with every known secret replaced by [Mask]. A nil Redactor
// returns s.
func (r *Redactor) Redact(s string) string {
	if r == nil {
		return s
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, v := range r.values {
		s = strings.ReplaceAll(s, v, Mask)
	}
	return s
}
