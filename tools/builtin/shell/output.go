package shell

import (
	"bytes"
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// output keeps the beginning and the end of what a program writes.
type output struct {
	limit int

	mu         sync.Mutex
	head, tail []byte
	dropped    int64
}

// Write implements [io.Writer].
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := len(p)
	room := o.limit - o.limit/3 - len(o.head)
	o.head = append(o.head, p[:min(room, n)]...)
	p = p[min(room, n):]
	o.tail = append(o.tail, p...)
	// The end is cut down when it has grown to twice its size, so that a byte at a time
	// costs no copy of it each.
	if most := o.limit / 3; len(o.tail) > 2*most {
		o.cut(most)
	}
	return n, nil
}

func (o *output) cut(most int) {
	if over := len(o.tail) - most; over > 0 {
		o.dropped += int64(over)
		o.tail = append(o.tail[:0], o.tail[over:]...)
	}
}

// text is what was written, as a model may read it. Of what was cut, whole lines are
// left out where there are any.
func (o *output) text(masks []mask) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.cut(o.limit / 3)
	if binary(o.head) {
		return fmt.Sprintf("[%d bytes that are no text]", int64(len(o.head)+len(o.tail))+o.dropped)
	}
	if o.dropped == 0 {
		return hide(readable(slices.Concat(o.head, o.tail)), masks)
	}
	head, tail := o.head, o.tail
	lines := [2]bool{}
	if i := bytes.LastIndexByte(head, '\n'); i >= 0 {
		head, lines[0] = head[:i+1], true
	}
	if i := bytes.IndexByte(tail, '\n'); i >= 0 && i+1 < len(tail) {
		tail, lines[1] = tail[i+1:], true
	}
	left := o.dropped + int64(len(o.head)-len(head)) + int64(len(o.tail)-len(tail))
	before, after := hide(readable(head), masks), hide(readable(tail), masks)
	for _, m := range masks { // half of a folder's name is no name, and tells of it
		if !lines[0] {
			before = withoutEnd(before, m.physical)
		}
		if !lines[1] {
			after = withoutStart(after, m.physical)
		}
	}
	return strings.TrimSuffix(before, "\n") + fmt.Sprintf("\n\n[... %d bytes left out here; ask the program for less, or for a part ...]\n\n", left) + after
}

// withoutEnd is s without a beginning of name at its end.
func withoutEnd(s, name string) string {
	for n := len(name); n > 1; n-- {
		if rest, ok := strings.CutSuffix(s, name[:n]); ok {
			return rest
		}
	}
	return s
}

// withoutStart is s without an end of name at its beginning.
func withoutStart(s, name string) string {
	for n := len(name); n > 1; n-- {
		if rest, ok := strings.CutPrefix(s, name[len(name)-n:]); ok {
			return rest
		}
	}
	return s
}

// binary reports whether bytes are no text.
func binary(b []byte) bool {
	b = b[:min(len(b), 8000)]
	if bytes.IndexByte(b, 0) >= 0 {
		return true
	}
	bad := 0
	for rest := b; len(rest) > 0; {
		r, size := utf8.DecodeRune(rest)
		if r == utf8.RuneError && size == 1 {
			bad++
		}
		rest = rest[size:]
	}
	return bad > 16 && bad > len(b)/10
}

// readable is text without what only a terminal understands.
func readable(b []byte) string {
	s := strings.ToValidUTF8(string(b), "\uFFFD")
	if strings.ContainsAny(s, "\x1b\u009b\u009d") {
		s = escapes().ReplaceAllString(s, "")
	}
	s = strings.ReplaceAll(s, "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r == '\r': // a line that was drawn over
			return '\n'
		case unicode.IsControl(r):
			return -1
		}
		return r
	}, s)
}

// escapes are the sequences of ECMA-48: CSI, OSC and the other strings, and the short ones.
func escapes() *regexp.Regexp {
	return regexp.MustCompile("(?:\x1b\\[|\u009b)[0-?]*[ -/]*[@-~]|(?:\x1b[\\]PX^_]|\u009d)[^\x07\x1b\u009c]*(?:\x07|\x1b\\\\|\u009c)?|\x1b[ -/]*[0-~]")
}

// mask is a folder of the host, and what stands in its place in texts.
type mask struct{ physical, virtual string }

// hide replaces the folders of the host by what agents know them by.
func hide(s string, masks []mask) string {
	for _, m := range masks {
		if len(m.physical) < 2 { // all of the host is mounted: there is nothing to hide
			continue
		}
		var b strings.Builder
		for {
			i := strings.Index(s, m.physical)
			if i < 0 {
				break
			}
			end := i + len(m.physical)
			b.WriteString(s[:i])
			if next, _ := utf8.DecodeRuneInString(s[end:]); end < len(s) && (next == '_' || next == '-' || unicode.IsLetter(next) || unicode.IsDigit(next)) {
				b.WriteString(s[i:end]) // another folder, whose name is longer
			} else {
				b.WriteString(m.virtual)
			}
			s = s[end:]
		}
		s = b.String() + s
	}
	return s
}

// sortMasks puts the longest first: what lies in another is replaced before it.
func sortMasks(masks []mask) []mask {
	slices.SortStableFunc(masks, func(a, b mask) int { return cmp.Compare(len(b.physical), len(a.physical)) })
	return masks
}
