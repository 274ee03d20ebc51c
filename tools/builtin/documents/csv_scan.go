package documents

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// Bounds of one row. What is beyond is left out, and counted.
const (
	maxCSVField   = 1 << 20 // bytes
	maxCSVRow     = 4 << 20 // bytes
	maxCSVColumns = 16_384  // what spreadsheets have
)

// csvScanner reads rows of separated values in bounded memory, whatever they hold. It
// takes what programs write, not only what RFC 4180 says: a quote within a field is
// itself, text behind a closing quote belongs to the field, and a quote that is never
// closed ends with the file. It counts all of these.
type csvScanner struct {
	r     *bufio.Reader
	comma byte
	end   byte // ends a line: \n, or \r where a file has no other

	row    []byte // the fields, one behind the other
	ends   []int  // where each ends in row
	fields [][]byte

	line     int // of the row's beginning; lines count from 1
	lines    int // ended so far
	cutting  bool
	cut      int // fields that were too long
	more     int // fields that were too many
	stray    int // texts behind a closing quote
	unclosed int // the line of a quote that is never closed
}

func newCSVScanner(r *bufio.Reader, comma, end byte) *csvScanner {
	return &csvScanner{r: r, comma: comma, end: end}
}

// next returns the fields of the next row that is not empty, until io.EOF. They hold
// until the next call.
func (s *csvScanner) next() ([][]byte, error) {
	for {
		fields, err := s.read()
		if err != nil || len(fields) != 1 || len(fields[0]) > 0 {
			return fields, err
		}
	}
}

// What a field is read as.
type csvState int

const (
	fieldStart csvState = iota
	bare
	quoted
	quoteSeen // in a quoted field: its end, or the first half of a quote
)

func (s *csvScanner) read() ([][]byte, error) {
	s.row, s.ends, s.line = s.row[:0], s.ends[:0], s.lines+1
	state, any := fieldStart, false
	for {
		chunk, err := s.r.ReadSlice(s.end)
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) && !errors.Is(err, io.EOF) {
			return nil, err
		}
		ended := err == nil
		if ended {
			s.lines++
			chunk = chunk[:len(chunk)-1]
		}
		any = any || len(chunk) > 0 || ended
		if !any {
			return nil, io.EOF
		}
		state = s.feed(chunk, state)
		switch {
		case ended && state == quoted:
			s.add('\n')
			continue
		case err != nil && errors.Is(err, io.EOF):
			if state == quoted {
				s.unclosed = s.line
			}
		case !ended:
			continue
		}
		if n := len(s.row); s.end == '\n' && state != quoted && n > s.begin() && s.row[n-1] == '\r' {
			s.row = s.row[:n-1]
		}
		s.endField()
		return s.split(), nil
	}
}

// feed reads a part of a line.
func (s *csvScanner) feed(chunk []byte, state csvState) csvState {
	for len(chunk) > 0 {
		c := chunk[0]
		switch state {
		case quoted:
			at := bytes.IndexByte(chunk, '"')
			if at < 0 {
				s.add(chunk...)
				return quoted
			}
			s.add(chunk[:at]...)
			chunk, state = chunk[at+1:], quoteSeen
			continue
		case quoteSeen:
			switch c {
			case '"':
				s.add('"')
				chunk, state = chunk[1:], quoted
				continue
			case ' ', '\r':
				// Blanks between a quote and the delimiter are nothing.
				if rest := bytes.TrimLeft(chunk, " \r"); len(rest) == 0 || rest[0] == s.comma {
					chunk = rest
					continue
				}
			}
			if c != s.comma {
				s.stray++
			}
		case fieldStart:
			if c == '"' {
				chunk, state = chunk[1:], quoted
				continue
			}
		}
		// The rest is bare, whatever it began as.
		at := bytes.IndexByte(chunk, s.comma)
		if at < 0 {
			s.add(chunk...)
			return bare
		}
		s.add(chunk[:at]...)
		s.endField()
		chunk, state = chunk[at+1:], fieldStart
	}
	return state
}

// begin is where the field that is being read begins in row.
func (s *csvScanner) begin() int {
	if len(s.ends) == 0 {
		return 0
	}
	return s.ends[len(s.ends)-1]
}

func (s *csvScanner) add(text ...byte) {
	room := min(maxCSVField-(len(s.row)-s.begin()), maxCSVRow-len(s.row))
	if len(s.ends) == maxCSVColumns {
		room = 0
	}
	if len(text) > room {
		if !s.cutting && len(s.ends) < maxCSVColumns {
			s.cut, s.cutting = s.cut+1, true
		}
		text = text[:max(room, 0)]
	}
	s.row = append(s.row, text...)
}

func (s *csvScanner) endField() {
	s.cutting = false
	if len(s.ends) == maxCSVColumns {
		s.more++
		return
	}
	s.ends = append(s.ends, len(s.row))
}

func (s *csvScanner) split() [][]byte {
	s.fields = s.fields[:0]
	from := 0
	for _, to := range s.ends {
		s.fields = append(s.fields, s.row[from:to])
		from = to
	}
	return s.fields
}
