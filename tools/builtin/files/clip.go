package files

import (
	"unicode/utf8"
)

// clip keeps the beginning and the end of a text that is written to it, in bounded
// memory. Its size is in characters.
type clip struct {
	head, tail []byte
	headRoom   int // characters that head can still take
	tailSize   int // characters that tail keeps
	left       int // characters that went neither to head nor to tail
	inTail     int // characters in tail
}

// newClip makes a clip of size characters. With both, a third of them is for the end.
func newClip(size int, both bool) *clip {
	c := &clip{headRoom: size}
	if both {
		c.tailSize = size / 3
		c.headRoom -= c.tailSize
	}
	return c
}

// write adds a part of the text, and reports whether all so far is in the head.
func (c *clip) write(part []byte) bool {
	if len(c.tail) == 0 && c.left == 0 {
		n := runeOffset(part, c.headRoom)
		c.head = append(c.head, part[:n]...)
		c.headRoom -= runes(part[:n])
		part = part[n:]
	}
	if len(part) == 0 {
		return c.whole()
	}
	c.headRoom = 0
	c.inTail += runes(part)
	c.tail = append(c.tail, part...)
	if len(c.tail) > 8*c.tailSize+1024 {
		c.shrink()
	}
	return false
}

// whole reports whether the head holds everything.
func (c *clip) whole() bool { return len(c.tail) == 0 && c.left == 0 }

// shrink lets go of what lies before the last tailSize characters.
func (c *clip) shrink() {
	if over := c.inTail - c.tailSize; over > 0 {
		c.tail = append(c.tail[:0], c.tail[runeOffset(c.tail, over):]...)
		c.left += over
		c.inTail -= over
	}
}

// spare takes n characters from the end of the head, to have room for a notice, unless
// that would be most of it.
func (c *clip) spare(n int) {
	size := runes(c.head)
	if 2*n > size {
		return
	}
	c.head = c.head[:runeOffset(c.head, size-n)]
	c.left += n
}

// runeOffset is where character n of text begins. A text may begin or end within a
// character.
func runeOffset(text []byte, n int) int {
	for i, b := range text {
		if utf8.RuneStart(b) {
			if n == 0 {
				return i
			}
			n--
		}
	}
	return len(text)
}

// runes is how many characters begin in text.
func runes(text []byte) int {
	n := 0
	for _, b := range text {
		if utf8.RuneStart(b) {
			n++
		}
	}
	return n
}
