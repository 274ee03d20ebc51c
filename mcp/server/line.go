package server

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"sync"

	"crewhost/mcp/wire"
)

// A lineReader reads lines of at most so many bytes. Of a longer one, which is read
// to its end and not held, only the outline is known (K83).
type lineReader struct {
	r     *bufio.Reader
	limit int
	line  []byte
}

// keptBuffer is the longest buffer that is kept from one line to the next.
const keptBuffer = 64 << 10

func newLineReader(r io.Reader, limit int) *lineReader {
	return &lineReader{r: bufio.NewReaderSize(r, 32<<10), limit: limit}
}

// next returns the next line, without its end and valid until the following call,
// or the outline of one that is too long. The last line needs no end (K77).
func (l *lineReader) next() (line []byte, long *wire.Outline, err error) {
	if cap(l.line) > keptBuffer {
		l.line = nil
	}
	l.line = l.line[:0]
	for {
		chunk, err := l.r.ReadSlice('\n')
		if long != nil {
			long.Add(chunk)
		} else if l.line = append(l.line, chunk...); len(bytes.TrimRight(l.line, "\r\n")) > l.limit {
			long = new(wire.Outline)
			long.Add(l.line)
			l.line = l.line[:0]
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case err == nil, errors.Is(err, io.EOF) && (len(l.line) > 0 || long != nil):
			return bytes.TrimRight(l.line, "\r\n"), long, nil
		default:
			return nil, nil, err
		}
	}
}

// A lineWriter writes whole lines, one at a time (I7).
type lineWriter struct {
	mu  sync.Mutex
	w   io.Writer
	err error // of the first write that failed; nothing is written after it
}

func (l *lineWriter) write(line []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		_, l.err = l.w.Write(append(line, '\n'))
	}
	return l.err
}
