package files

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"crewhost/tools/builtin/charset"
	"crewhost/tools/mount"
	"crewhost/tools/native"
)

// readAll reads a file of at most maxFile bytes and stops when ctx ends.
func readAll(ctx context.Context, fsys *mount.FS, path string) ([]byte, error) {
	f, err := fsys.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(native.Reader(ctx, f), maxFile+1))
	switch {
	case err != nil:
		return nil, err
	case len(data) > maxFile:
		return nil, fmt.Errorf("read %s: the file has %d bytes, and at most %d can be read at once", path, f.Info().Size, maxFile)
	}
	return data, nil
}

// text is the text of a file, read as it comes.
type text struct {
	*charset.Reader
	format charset.Format
	file   *mount.File
}

// openText opens a file as text: where bytes mean nothing, they read as U+FFFD and are
// counted. The caller closes it.
func openText(ctx context.Context, fsys *mount.FS, path, encoding string) (*text, error) {
	f, err := fsys.Open(path)
	if err != nil {
		return nil, err
	}
	r, format, err := charset.NewReader(native.Reader(ctx, f), encoding)
	if err != nil {
		_ = f.Close()
		return nil, &noTextError{path, err}
	}
	r.Lossy = true
	return &text{r, format, f}, nil
}

// noTextError is the error of a file that can be opened, and not be decoded.
type noTextError struct {
	path string
	why  error
}

func (e *noTextError) Error() string { return e.path + " can't be read: " + e.why.Error() + "." }
func (e *noTextError) Unwrap() error { return e.why }

// close closes the file, of which nothing more is wanted.
func (t *text) close() { _ = t.file.Close() }

// piece is a line of a text, or a part of one that is long.
type piece struct {
	data  []byte // without its line end; valid until the next piece
	first bool   // of its line
	last  bool
	ended bool // with a line end, and crlf says that it is that of Windows
	crlf  bool
}

// pieces calls visit with one piece after the other until it returns false, or the
// text or ctx ends.
func pieces(ctx context.Context, r io.Reader, visit func(piece) bool) error {
	in := bufio.NewReaderSize(r, 64<<10)
	first, held := true, false
	for n := 0; ; n++ {
		if n%64 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		data, err := in.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) && !errors.Is(err, io.EOF) {
			return err
		}
		if errors.Is(err, io.EOF) && len(data) == 0 && !held {
			return nil
		}
		p := piece{data: data, first: first, last: err == nil || errors.Is(err, io.EOF)}
		if held {
			// The carriage return that the piece before ended with.
			p.data = append([]byte{'\r'}, data...)
			held = false
		}
		if cut, ok := bytes.CutSuffix(p.data, []byte("\n")); ok {
			p.ended = true
			p.data, p.crlf = bytes.CutSuffix(cut, []byte("\r"))
		} else if !p.last {
			p.data, held = bytes.CutSuffix(p.data, []byte("\r"))
		}
		if !visit(p) || errors.Is(err, io.EOF) {
			return nil
		}
		first = p.last
	}
}
