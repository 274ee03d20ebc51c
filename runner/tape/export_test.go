package tape

import "io"

// ReadUpTo is [Read] with other bounds: of a line, and of the whole, in bytes.
func ReadUpTo(r io.Reader, name string, longest, most int64) (*Tape, error) {
	return read(r, name, longest, most)
}
