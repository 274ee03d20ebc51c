package openai

import "strings"

const (
	thinkOpen  = "<think>"
	thinkClose = "</think>"
)

// thinkSplitter parts a text that may begin with <think>…</think> into reasoning
// and answer while it arrives. A tag elsewhere is text; one that is never closed
// makes the rest reasoning. The zero value is ready for use.
type thinkSplitter struct {
	state int
	held  string // what could still become a tag, or space that may be dropped
}

const (
	thinkMaybe  = iota // only space or part of a tag so far
	thinkInside        // within the tags
	thinkAfter         // behind the tags, only space so far
	thinkText          // the answer
)

// split takes the next piece and returns what of it is known by now.
func (s *thinkSplitter) split(piece string) (text, reasoning string) {
	piece = s.held + piece
	s.held = ""
	if s.state == thinkMaybe {
		trimmed := strings.TrimLeft(piece, " \t\r\n")
		switch {
		case strings.HasPrefix(trimmed, thinkOpen):
			s.state, piece = thinkInside, trimmed[len(thinkOpen):]
		case strings.HasPrefix(thinkOpen, trimmed):
			s.held = piece
			return "", ""
		default:
			s.state = thinkText
		}
	}
	if s.state == thinkInside {
		before, after, closed := strings.Cut(piece, thinkClose)
		if !closed {
			keep := overlap(piece, thinkClose)
			s.held = piece[len(piece)-keep:]
			return "", piece[:len(piece)-keep]
		}
		s.state, reasoning, piece = thinkAfter, before, after
	}
	if s.state == thinkAfter {
		if piece = strings.TrimLeft(piece, " \t\r\n"); piece != "" {
			s.state = thinkText
		}
	}
	return piece, reasoning
}

// end returns what was held back when the text has ended.
func (s *thinkSplitter) end() (text, reasoning string) {
	held := s.held
	s.held = ""
	if s.state == thinkInside {
		return "", held
	}
	return held, ""
}

// overlap is the length of the longest end of s that begins tag.
func overlap(s, tag string) int {
	for n := min(len(s), len(tag)-1); n > 0; n-- {
		if strings.HasSuffix(s, tag[:n]) {
			return n
		}
	}
	return 0
}
