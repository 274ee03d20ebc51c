package documents

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// mboxReader reads the messages of a mailbox file one after the other: each begins with
// a line "From " that follows an empty one. A file without such a line at its beginning
// is one message.
type mboxReader struct {
	r       *bufio.Reader
	mailbox bool
	line    []byte // what is left of the line that was read
	blank   bool   // the line before was empty
	whole   bool   // the line before was read to its end
	next    bool   // the next message begins
	err     error
}

func newMboxReader(r io.Reader) *mboxReader {
	m := &mboxReader{r: bufio.NewReaderSize(r, 64<<10), whole: true}
	head, _ := m.r.Peek(5)
	if m.mailbox = string(head) == "From "; m.mailbox {
		m.skipLine()
	}
	return m
}

// skipLine passes over a line that begins a message.
func (m *mboxReader) skipLine() {
	for {
		_, err := m.r.ReadSlice('\n')
		if !errors.Is(err, bufio.ErrBufferFull) {
			if err != nil {
				m.err = err
			}
			break
		}
	}
	m.blank, m.whole, m.next = false, true, false
}

// advance goes to the next message, and reports whether there is one.
func (m *mboxReader) advance() (bool, error) {
	if _, err := io.Copy(io.Discard, m); err != nil {
		return false, err
	}
	if !m.next {
		return false, nil
	}
	m.skipLine()
	return m.err == nil, nil
}

// Read reads until the message ends.
func (m *mboxReader) Read(p []byte) (int, error) {
	for len(m.line) == 0 {
		if m.next {
			return 0, io.EOF
		}
		if m.err != nil {
			return 0, m.err
		}
		m.fill()
	}
	n := copy(p, m.line)
	m.line = m.line[n:]
	return n, nil
}

func (m *mboxReader) fill() {
	if m.mailbox && m.blank && m.whole {
		if head, _ := m.r.Peek(5); string(head) == "From " {
			m.next = true
			return
		}
	}
	line, err := m.r.ReadSlice('\n')
	begins := m.whole
	m.whole = err == nil
	if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
		m.err = err
	}
	m.blank = begins && len(bytes.TrimRight(line, "\r\n")) == 0
	if begins && m.mailbox && bytes.HasPrefix(bytes.TrimLeft(line, ">"), []byte("From ")) && line[0] == '>' {
		line = line[1:] // what the mailbox has quoted
	}
	m.line = line
}
