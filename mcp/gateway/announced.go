package gateway

import (
	"bufio"
	"bytes"
	"io"
	"mime"
	"net/http"
	"strings"
)

// isStream reports whether an answer is a stream of events.
func isStream(resp *http.Response) bool {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	return resp.StatusCode == http.StatusOK && kind == "text/event-stream"
}

// maxAnnounced is how long the event may be that a stream begins with, in bytes, if it
// is to be looked at.
const maxAnnounced = 8 << 10

// announced is a stream of events whose first one, where it announces an address for
// messages (the transport of 2024-11-05), has another address in its place. The rest
// goes through as it comes.
type announced struct {
	io.Closer
	rest    *bufio.Reader
	replace func(data string) (string, error)
	head    []byte // that is ready
	begun   bool
	cr      bool // whether the line before ended in a bare carriage return
	err     error
}

func newAnnounced(body io.ReadCloser, replace func(string) (string, error)) *announced {
	return &announced{Closer: body, rest: bufio.NewReaderSize(body, 4<<10), replace: replace}
}

// Read implements [io.Reader].
func (a *announced) Read(p []byte) (int, error) {
	for len(a.head) == 0 && !a.begun {
		a.begun = true
		a.head, a.err = a.begin()
	}
	if len(a.head) > 0 {
		n := copy(p, a.head)
		a.head = a.head[n:]
		return n, nil
	}
	if a.err != nil {
		return 0, a.err
	}
	if a.cr { // of what ended the first event, the other half may still come
		a.cr = false
		if next, _ := a.rest.Peek(1); len(next) == 1 && next[0] == '\n' {
			_, _ = a.rest.Discard(1)
		}
	}
	return a.rest.Read(p)
}

// begin reads the first event. An event that is no announcement is returned as it is,
// and so is the beginning of one that is too long.
func (a *announced) begin() ([]byte, error) {
	var head []byte
	for len(head) < maxAnnounced {
		line, end, err := a.line(maxAnnounced - len(head))
		head = append(append(head, line...), end...)
		if err != nil {
			return head, err
		}
		if len(end) > 0 && len(line) == 0 {
			name, data, said := eventOf(head)
			switch {
			case !said: // a comment, which waits for nothing
				a.begun = false
				return head, nil
			case name != "endpoint":
				return head, nil
			}
			to, err := a.replace(data)
			if err != nil {
				return nil, err
			}
			return []byte("event: endpoint\ndata: " + to + "\n\n"), nil
		}
	}
	return head, nil
}

// line reads a line, or as much as fits, and its end, which comes out as a line feed
// whichever of the three that events know it was.
func (a *announced) line(limit int) (line, end []byte, err error) {
	for len(line) < limit {
		c, err := a.rest.ReadByte()
		after := a.cr
		a.cr = false
		switch {
		case err != nil:
			return line, nil, err
		case c == '\n' && after && len(line) == 0:
			continue // the other half of what ended the line before
		case c == '\n' || c == '\r':
			a.cr = c == '\r'
			return line, []byte{'\n'}, nil
		}
		line = append(line, c)
	}
	return line, nil, nil
}

// eventOf is the name and the data of the event in head; said is false where there is
// none.
func eventOf(head []byte) (name, data string, said bool) {
	head = bytes.TrimPrefix(head, []byte("\ufeff"))
	var lines []string
	for _, line := range strings.Split(string(head), "\n") {
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "" || field == "":
			continue
		case field == "event":
			name = value
		case field == "data":
			lines = append(lines, value)
		}
		said = true
	}
	return name, strings.TrimSpace(strings.Join(lines, "\n")), said
}
