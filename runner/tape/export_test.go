package tape

import "io"

// Spoil has no more be written to the tape, as where the disk is full.
func (r *Recorder) Spoil() error { return r.file.Close() }

// ReadUpTo is [Read] with other bounds: of a line, and of the whole, in bytes.
func ReadUpTo(r io.Reader, name string, longest, most int64) (*Tape, error) {
	return read(r, name, longest, most)
}
