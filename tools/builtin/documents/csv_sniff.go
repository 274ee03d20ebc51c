package documents

import (
	"bufio"
	"bytes"
	"strings"
)

// csvDelimiters are looked for in a file, the first of equals wins.
const csvDelimiters = ",;\t|"

// sniffed is what the beginning of a file tells of its form.
type sniffed struct {
	comma, end byte
	skip       int // bytes of a line that is no row
}

// sniff looks at the beginning of a text. A comma that is given stays.
func sniff(head []byte, comma byte) sniffed {
	s := sniffed{comma: comma, end: '\n'}
	if bytes.IndexByte(head, '\n') < 0 && bytes.IndexByte(head, '\r') >= 0 {
		s.end = '\r'
	}
	// Excel takes the delimiter from a first line sep=; and so do its exports.
	if line, _, ok := bytes.Cut(head, []byte{s.end}); ok {
		text := strings.Trim(string(bytes.TrimRight(line, "\r")), `"`)
		if given, ok := strings.CutPrefix(strings.ToLower(text), "sep="); ok && len(given) == 1 {
			s.skip = len(line) + 1
			if s.comma == 0 {
				s.comma = given[0]
			}
		}
	}
	if s.comma == 0 {
		s.comma = guessDelimiter(head[s.skip:], s.end)
	}
	return s
}

// guessDelimiter takes the delimiter with which most of the first rows have the same
// number of fields, and of several such the one that makes most fields: in a text with
// decimal commas a comma makes rows of different lengths.
func guessDelimiter(head []byte, end byte) byte {
	const rows = 30
	best, bestSame, bestFields := csvDelimiters[0], 0.0, 1
	for _, comma := range []byte(csvDelimiters) {
		s := newCSVScanner(bufio.NewReader(bytes.NewReader(head)), comma, end)
		counts, total := map[int]int{}, 0
		for range rows {
			fields, err := s.next()
			if err != nil || s.unclosed > 0 {
				break
			}
			counts[len(fields)]++
			total++
		}
		fields, same := 1, 0
		for n, times := range counts {
			if n > 1 && (times > same || times == same && n > fields) {
				fields, same = n, times
			}
		}
		share := float64(same) / float64(max(total, 1))
		if share > bestSame+0.01 || share > bestSame-0.01 && fields > bestFields {
			best, bestSame, bestFields = comma, share, fields
		}
	}
	return best
}
