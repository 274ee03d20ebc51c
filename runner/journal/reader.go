package journal

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// maxLine bounds a line, in bytes: an image in a result may be of some megabytes, and
// a conversation may hold several.
const maxLine = 256 << 20

// DamagedError says that a journal holds what nobody wrote. What stands before is
// sound; what comes after cannot be told.
type DamagedError struct {
	Line int64 // the first one that is wrong, counted from 1
	Err  error
}

// Error names the line and what is wrong with it.
func (e *DamagedError) Error() string {
	return fmt.Sprintf("the journal is damaged at line %d: %v", e.Line, e.Err)
}

// Unwrap returns what is wrong.
func (e *DamagedError) Unwrap() error { return e.Err }

// Reader reads the records of a journal, one after another, and takes none whose sum
// is wrong.
//
// The last line of a journal whose writer was killed may be torn: a beginning with no
// line feed at its end. It counts as not written, since nothing was done in reliance
// on it. Anything else that is not as it was written is a [*DamagedError], also in the
// last line.
type Reader struct {
	in     *bufio.Reader
	seq    int64 // of the last record
	sum    sum
	offset int64 // of the end of the last record
	begin  int64 // of its beginning
	torn   int   // bytes after it that are no record
	line   []byte
}

// NewReader returns a reader from the beginning of a journal.
func NewReader(r io.Reader) *Reader { return &Reader{in: bufio.NewReaderSize(r, 64<<10)} }

// Next returns the next record, and [io.EOF] after the last one.
func (r *Reader) Next() (Record, error) {
	var record Record
	raw, err := r.raw()
	if err != nil {
		return record, err
	}
	return record, r.decode(raw, &record)
}

// raw returns the JSON of the next record; it is the reader's until the next call.
func (r *Reader) raw() ([]byte, error) {
	if err := r.read(); err != nil {
		return nil, err
	}
	if len(r.line) == 0 {
		return nil, io.EOF
	}
	if r.line[len(r.line)-1] != '\n' {
		if err := r.tear(); err != nil {
			return nil, err
		}
		return nil, io.EOF
	}
	raw, own, err := body(r.line, r.seq+1, r.sum)
	if err != nil {
		return nil, r.damaged(err)
	}
	r.seq, r.sum = r.seq+1, own
	r.begin, r.offset = r.offset, r.offset+int64(len(r.line))
	return raw, nil
}

// read reads one line, or what there is of it.
func (r *Reader) read() error {
	r.line = r.line[:0]
	for {
		piece, err := r.in.ReadSlice('\n')
		r.line = append(r.line, piece...)
		switch {
		case len(r.line) > maxLine:
			return r.damaged(fmt.Errorf("it is longer than %d MiB", maxLine>>20))
		case errors.Is(err, bufio.ErrBufferFull):
		case err == nil || errors.Is(err, io.EOF):
			return nil
		default:
			return err
		}
	}
}

// tear judges a last line without an end: the beginning of a line, or what a file
// system leaves where nothing was written before the power went.
func (r *Reader) tear() error {
	rest := bytes.TrimRight(r.line, "\x00")
	start := lineStart(nil, r.seq+1)
	n := min(len(start), len(rest))
	whole, _, _ := body(append(bytes.Clone(rest), '\n'), r.seq+1, r.sum)
	switch {
	case !bytes.Equal(rest[:n], start[:n]):
		return r.damaged(errors.New("it is not the beginning of a line"))
	case balanced(rest) && whole == nil:
		return r.damaged(errors.New("it does not hold what its sum says"))
	}
	r.torn = len(r.line)
	return nil
}

// balanced reports whether text is one JSON value, or one and more: no beginning of
// a line is.
func balanced(text []byte) bool {
	var v json.RawMessage
	return json.NewDecoder(bytes.NewReader(text)).Decode(&v) == nil
}

func (r *Reader) decode(raw []byte, into *Record) error {
	err := json.Unmarshal(raw, into)
	switch {
	case err != nil:
	case into.parts() != 1:
		err = errors.New("it is no record, or several")
	case (into.Header != nil) != (r.seq == 1):
		err = errors.New("a journal has one header, and begins with it")
	case into.Header != nil && into.Header.Version != Version:
		return fmt.Errorf("the journal is of version %d, and this program reads version %d", into.Header.Version, Version)
	default:
		return nil
	}
	r.seq--
	r.offset = r.begin
	return r.damaged(err)
}

func (r *Reader) damaged(err error) error { return &DamagedError{Line: r.seq + 1, Err: err} }
