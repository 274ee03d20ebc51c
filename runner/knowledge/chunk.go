package knowledge

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// The strategies of cutting.
const (
	Recursive = "recursive" // at headings, else paragraphs, lines, sentences, words
	Fixed     = "fixed"     // at words, whatever stands there
)

// Strategies returns the names of all strategies.
func Strategies() []string { return []string{Recursive, Fixed} }

// Chunking is how a text is cut up.
type Chunking struct {
	Strategy  string // empty: [Recursive]
	MaxTokens int    // of a chunk; 0: 512
	Overlap   int    // tokens of a chunk that the next begins with; below MaxTokens
}

// Chunk is a piece of a text.
type Chunk struct {
	First, Last int // lines, from 1
	Text        string
}

// Tokens estimates how many tokens a text is: one for four letters, digits and
// signs, as it is about in English prose, and one for each letter of a script that
// puts no spaces between words.
func Tokens(text string) int { return (quarters(text) + 3) / 4 }

func quarters(text string) (n int) {
	for _, r := range text {
		n += weight(r)
	}
	return n
}

// weight is the quarters of a token that a letter is.
func weight(r rune) int {
	if r >= 0x0e00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar) {
		return 4
	}
	return 1
}

// fitting returns how many bytes of a text's beginning are at most so many tokens.
func fitting(text string, tokens int) int {
	left := 4 * tokens
	for i, r := range text {
		if left -= weight(r); left < 0 {
			return i
		}
	}
	return len(text)
}

// span is a piece of a text, by the places of its first byte and the one after it.
type span struct{ from, to int }

// Cut cuts a text into chunks, in order. Every letter is in at least one of them;
// chunks of nothing but space are left out.
func (c Chunking) Cut(text string) []Chunk {
	if c.MaxTokens <= 0 {
		c.MaxTokens = 512
	}
	c.Overlap = min(max(c.Overlap, 0), c.MaxTokens-1)
	cut := &cutter{text: text, most: 4 * c.MaxTokens}
	if c.Strategy == Fixed {
		cut.split(span{0, len(text)}, afterWord)
	} else {
		cut.split(span{0, len(text)}, beforeHeading)
	}
	var chunks []Chunk
	line, at := 1, 0 // of the last chunk's beginning
	for _, s := range cut.merge(4 * c.Overlap) {
		piece := strings.TrimRightFunc(text[s.from:s.to], unicode.IsSpace)
		for piece != "" { // blank lines before the first word are none of the chunk
			end := strings.IndexByte(piece, '\n')
			if end < 0 || strings.TrimSpace(piece[:end]) != "" {
				break
			}
			piece, s.from = piece[end+1:], s.from+end+1
		}
		if piece == "" {
			continue
		}
		line += strings.Count(text[at:s.from], "\n")
		at = s.from
		chunks = append(chunks, Chunk{First: line, Last: line + strings.Count(piece, "\n"), Text: piece})
	}
	return chunks
}

// The levels at which a text may be cut, the best places first.
const (
	beforeHeading = iota
	afterParagraph
	afterLine
	afterSentence
	afterWord
	anywhere
)

// next returns the place after the next one in a text where it may be cut, 0 where
// there is none.
func next(level int, text string) int {
	switch level {
	case beforeHeading:
		return strings.Index(text, "\n#") + 1
	case afterParagraph:
		if i := strings.Index(text, "\n\n"); i >= 0 {
			return i + 2
		}
	case afterLine:
		return strings.IndexByte(text, '\n') + 1
	case afterSentence:
		return sentence(text)
	case afterWord:
		return strings.IndexAny(text, " \t\n") + 1
	}
	return 0
}

// sentence returns the place after the first sentence of a text that is not its
// last, or 0.
func sentence(text string) int {
	for i, r := range text {
		end := i + utf8.RuneLen(r)
		switch r {
		case '。', '！', '？':
			return end
		case '.', '!', '?':
			if end < len(text) && text[end] == ' ' {
				return end + 1
			}
		}
	}
	return 0
}

// cutter cuts one text.
type cutter struct {
	text   string
	most   int    // quarters of tokens that a piece has at most
	pieces []span // that no chunk needs to be cut within
}

// split cuts a span into pieces that are small enough, at the places of a level,
// and what is too large still at those of the next.
func (c *cutter) split(s span, level int) {
	if quarters(c.text[s.from:s.to]) <= c.most && level < afterWord {
		c.piece(s)
		return
	}
	if level == anywhere { // within a word
		for s.from < s.to {
			n := fitting(c.text[s.from:s.to], c.most/4) // at least one letter, of one token
			c.piece(span{s.from, s.from + n})
			s.from += n
		}
		return
	}
	for s.from < s.to {
		n := next(level, c.text[s.from:s.to])
		if n == 0 {
			n = s.to - s.from
		}
		part := span{s.from, s.from + n}
		if quarters(c.text[part.from:part.to]) <= c.most {
			c.piece(part)
		} else {
			c.split(part, level+1)
		}
		s.from += n
	}
}

func (c *cutter) piece(s span) {
	if s.from < s.to {
		c.pieces = append(c.pieces, s)
	}
}

// merge joins pieces that stand together to chunks, as large as may be. A chunk
// begins with the last pieces of the one before that are within overlap.
func (c *cutter) merge(overlap int) []span {
	sizes := make([]int, len(c.pieces))
	for i, p := range c.pieces {
		sizes[i] = quarters(c.text[p.from:p.to])
	}
	var chunks []span
	for first := 0; first < len(c.pieces); {
		end, size := first, 0
		for end < len(c.pieces) && (end == first || size+sizes[end] <= c.most) {
			size += sizes[end]
			end++
		}
		chunks = append(chunks, span{c.pieces[first].from, c.pieces[end-1].to})
		if end == len(c.pieces) {
			break
		}
		next, shared := end, 0
		// What is shared must leave room for the piece that comes next.
		for next-1 > first && shared+sizes[next-1] <= overlap && shared+sizes[next-1]+sizes[end] <= c.most {
			next--
			shared += sizes[next]
		}
		first = next
	}
	return chunks
}

// withHead puts the first line of a table before each chunk that is without it.
func withHead(text string, chunks []Chunk) []Chunk {
	const longest = 2_000 // bytes; what is longer is no head
	head, _, _ := strings.Cut(text, "\n")
	head = strings.TrimRight(head, "\r")
	if len(head) > longest || strings.TrimSpace(head) == "" {
		return chunks
	}
	for i := range chunks {
		if chunks[i].First > 1 {
			chunks[i].Text = head + "\n" + chunks[i].Text
		}
	}
	return chunks
}
