package secret

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// minLength is the shortest secret that a [Redactor] looks for: masking every
// "1" in a log would hide the log and no secret.
const minLength = 4

// minLine is the shortest line of a secret of several lines that is looked for
// on its own, since logs are written line by line.
const minLine = 8

// Redactor masks known secrets, and tokens of well-known shape, in text that
// somebody else wrote: a server's stderr, an error body. It also knows a secret
// as it looks in JSON, in a URL, in base64 and in hexadecimal. The zero value knows no secret. It is safe
// for concurrent use.
type Redactor struct {
	mu    sync.Mutex // held to change known
	known atomic.Pointer[known]
}

// known is what a Redactor looks for; it is replaced, never changed.
type known struct {
	values   []string // longest first, so that a secret inside another is masked whole
	replacer *strings.Replacer
}

// Add makes the redactor know further secrets. Secrets under four bytes are
// left alone.
func (r *Redactor) Add(values ...Value) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []string
	if k := r.known.Load(); k != nil {
		all = slices.Clone(k.values)
	}
	add := func(s string, least int) {
		if len(s) >= least {
			all = append(all, s)
		}
	}
	for _, v := range values {
		for _, s := range spellings(v.Reveal()) {
			add(s, minLength)
		}
		if lines := strings.FieldsFunc(v.Reveal(), func(c rune) bool { return c == '\n' || c == '\r' }); len(lines) > 1 {
			for _, line := range lines {
				add(line, minLine)
			}
		}
	}
	slices.SortFunc(all, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b))
	})
	all = slices.Compact(all)
	pairs := make([]string, 0, 2*len(all))
	for _, s := range all {
		pairs = append(pairs, s, Mask)
	}
	r.known.Store(&known{all, strings.NewReplacer(pairs...)})
}

// minEncoded is the shortest secret that is looked for in encodings that hide where
// it begins and ends.
const minEncoded = 8

// spellings returns a secret as it may turn up: as it is, in JSON and as Go quotes
// it, in a URL, and in base64 and hexadecimal.
func spellings(s string) []string {
	query := url.QueryEscape(s)
	all := []string{s, query, strings.ReplaceAll(query, "+", "%20"), url.PathEscape(s), inner(strconv.Quote(s)), inner(strconv.QuoteToASCII(s))}
	for _, html := range []bool{true, false} {
		var quoted strings.Builder
		enc := json.NewEncoder(&quoted)
		enc.SetEscapeHTML(html)
		if enc.Encode(s) == nil {
			all = append(all, inner(strings.TrimSuffix(quoted.String(), "\n")))
		}
	}
	if len(s) < minEncoded {
		return all
	}
	all = append(all, hex.EncodeToString([]byte(s)), strings.ToUpper(hex.EncodeToString([]byte(s))))
	for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
		all = append(all, enc.EncodeToString([]byte(s)))
		// Within something longer, as in Basic authentication, it begins at any of
		// three places, and its first and last letter are its neighbours' too.
		for before := range 3 {
			text := enc.WithPadding(base64.NoPadding).EncodeToString([]byte(strings.Repeat("x", before) + s))
			from, to := (before*8+5)/6, (before+len(s))*8/6
			all = append(all, text[from:to])
		}
	}
	return all
}

// inner is a quoted text without its quotes, which may be its own, too.
func inner(quoted string) string {
	if len(quoted) < 2 {
		return quoted
	}
	return quoted[1 : len(quoted)-1]
}

// Redact returns s with every known secret replaced by [Mask]. A nil Redactor
// returns s.
func (r *Redactor) Redact(s string) string {
	if r == nil {
		return s
	}
	return MaskTokens(r.RedactKnown(s))
}

// RedactKnown is Redact that leaves tokens alone which are nobody's here: what agents
// work with may be somebody else's key, or an example of one.
func (r *Redactor) RedactKnown(s string) string {
	if r == nil {
		return s
	}
	if k := r.known.Load(); k != nil {
		s = k.replacer.Replace(s)
	}
	return s
}

// longest is the length of the longest secret that is known.
func (r *Redactor) longest() int {
	if r == nil {
		return 0
	}
	if k := r.known.Load(); k != nil && len(k.values) > 0 {
		return len(k.values[0])
	}
	return 0
}

// maxLine is how much of a line a writer keeps before it writes the beginning.
const maxLine = 64 << 10

// Writer returns a writer that masks secrets in what is written to w. It writes
// whole lines, so that a secret that comes in two writes is seen; of a line of
// more than 64 KiB, which it does not keep, the beginning goes ahead once no
// secret can reach past it. Close writes what is left; it does not close w. The
// writer is safe for concurrent use.
func (r *Redactor) Writer(w io.Writer) io.WriteCloser { return &writer{redactor: r, out: w} }

type writer struct {
	redactor *Redactor
	mu       sync.Mutex // held while writing
	out      io.Writer
	line     []byte // not yet written
}

func (w *writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ready := 0
	if i := bytes.LastIndexByte(p, '\n'); i >= 0 {
		ready = len(w.line) + i + 1
	}
	w.line = append(w.line, p...)
	if longest := w.redactor.longest(); len(w.line)-ready > maxLine+longest {
		ready = w.redactor.boundary(w.line, len(w.line)-longest)
	}
	if err := w.flush(ready); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Close writes what is left.
func (w *writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.flush(len(w.line))
}

func (w *writer) flush(n int) error {
	if n == 0 {
		return nil
	}
	text := w.redactor.Redact(string(w.line[:n]))
	w.line = append(w.line[:0], w.line[n:]...)
	_, err := io.WriteString(w.out, text)
	return err
}

// boundary moves a cut in s back to where it splits no known secret.
func (r *Redactor) boundary(s []byte, cut int) int {
	if r == nil {
		return cut
	}
	k := r.known.Load()
	if k == nil {
		return cut
	}
	for moved := true; moved; {
		moved = false
		for _, v := range k.values {
			from := max(0, cut-len(v)+1)
			if i := bytes.Index(s[from:min(len(s), cut+len(v)-1)], []byte(v)); i >= 0 && from+i < cut {
				cut, moved = from+i, true
			}
		}
	}
	return cut
}
