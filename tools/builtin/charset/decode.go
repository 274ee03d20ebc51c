package charset

import (
	"bytes"
	"fmt"
	"io"
	"unicode/utf8"

	"golang.org/x/text/transform"
)

// window is how much of a text is looked at to tell its encoding.
const window = 1 << 20

const replacement = "\uFFFD"

// Decode turns the bytes of a file into text, without its byte order mark. An empty
// label has the bytes tell the encoding; a byte order mark does in any case.
func Decode(data []byte, label string) (text string, f Format, err error) {
	if f, err = detect(data, true, label); err != nil {
		return "", f, err
	}
	r := newReader(bytes.NewReader(data), f)
	decoded, err := io.ReadAll(r)
	if err == nil {
		return string(decoded), f, nil
	}
	// Of encodings that have U+FFFD, the decoder doesn't tell whether it stands there
	// or is its own.
	if enc := table(f.Encoding); enc != nil {
		body := data
		if f.Mark {
			body = data[len(markOf(f.Encoding)):]
		}
		text, terr := enc.NewDecoder().Bytes(body)
		if back, berr := enc.NewEncoder().Bytes(text); terr == nil && berr == nil && bytes.Equal(back, body) {
			return string(text), f, nil
		}
	}
	return "", f, err
}

// Reader reads a file as UTF-8 text.
type Reader struct {
	// Lossy has bytes that mean nothing in the encoding read as U+FFFD, and counted. It
	// is set before the first Read; where it isn't, they are an error.
	Lossy bool

	format Format
	src    io.Reader
	own    bool   // src is UTF-8 as the file has it: a U+FFFD in it is the file's own
	buf    []byte // what was read from src
	held   int    // bytes in buf: the beginning of a rune
	ready  []byte // text to give out
	err    error  // after ready
	line   int    // of what was read last
	bad    int
}

// NewReader returns a reader of the text of r, without a byte order mark. It reads the
// beginning of r, to tell the encoding of an empty label as [Decode] does.
func NewReader(r io.Reader, label string) (*Reader, Format, error) {
	head, err := io.ReadAll(io.LimitReader(r, window))
	if err != nil {
		return nil, Format{}, err
	}
	f, err := detect(head, len(head) < window, label)
	if err != nil {
		return nil, f, err
	}
	return newReader(io.MultiReader(bytes.NewReader(head), r), f), f, nil
}

func newReader(r io.Reader, f Format) *Reader {
	if f.Mark {
		r = &skipper{r: r, left: len(markOf(f.Encoding))}
	}
	t := &Reader{format: f, src: r, own: true, line: 1}
	if enc := table(f.Encoding); enc != nil {
		t.src, t.own = transform.NewReader(r, enc.NewDecoder()), false
	}
	return t
}

// Replaced is how many places were read as U+FFFD so far.
func (t *Reader) Replaced() int { return t.bad }

// Read reads as [io.Reader] says.
func (t *Reader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for len(t.ready) == 0 {
		if t.err != nil {
			return 0, t.err
		}
		t.fill()
	}
	n := copy(p, t.ready)
	t.ready = t.ready[n:]
	return n, nil
}

// fill reads a piece of src and checks it.
func (t *Reader) fill() {
	if t.buf == nil {
		t.buf = make([]byte, 32<<10)
	}
	n, err := t.src.Read(t.buf[t.held:])
	chunk := t.buf[:t.held+n]
	t.held = 0
	if err == nil {
		// The rest of a rune may be to come. It waits at the beginning of another
		// buffer, as this one is given out.
		if cut := unfinished(chunk); cut > 0 {
			next := make([]byte, len(t.buf))
			t.held = copy(next, chunk[len(chunk)-cut:])
			chunk, t.buf = chunk[:len(chunk)-cut], next
		}
	}
	t.err = err
	t.check(chunk)
}

// check makes chunk ready, up to the first fault, or with all replaced.
func (t *Reader) check(chunk []byte) {
	if t.own && utf8.Valid(chunk) || !t.own && !bytes.Contains(chunk, []byte(replacement)) {
		t.ready = chunk
		t.line += bytes.Count(chunk, []byte("\n"))
		return
	}
	var out []byte
	for rest := chunk; len(rest) > 0; {
		r, size := utf8.DecodeRune(rest)
		if r == utf8.RuneError && (size == 1 || !t.own) {
			if !t.Lossy {
				t.ready, t.err = out, t.fault(rest[0])
				return
			}
			t.bad++
		}
		if r == '\n' {
			t.line++
		}
		out = utf8.AppendRune(out, r)
		rest = rest[size:]
	}
	t.ready = out
}

func (t *Reader) fault(b byte) error {
	if t.own {
		return fmt.Errorf("it is not valid UTF-8 (byte 0x%02X on line %d); if it is text, name its encoding, such as windows-1252", b, t.line)
	}
	return fmt.Errorf("it is not valid %s on line %d; if it is text, name its encoding", t.format, t.line)
}

// skipper leaves out the first bytes of r.
type skipper struct {
	r    io.Reader
	left int
}

func (s *skipper) Read(p []byte) (int, error) {
	for s.left > 0 {
		n, err := io.CopyN(io.Discard, s.r, int64(s.left))
		s.left -= int(n)
		if err != nil {
			return 0, err
		}
	}
	return s.r.Read(p)
}
