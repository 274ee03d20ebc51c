package documents

import (
	"context"
	"fmt"
	"io"
)

// guarded does what a library does with a foreign file. A panic of the library is an
// error: a file must not end the process.
func guarded[T any](do func() (T, error)) (result T, err error) {
	defer func() {
		if p := recover(); p != nil {
			var none T
			result, err = none, fmt.Errorf("the file is damaged (%.100v)", p)
		}
	}()
	return do()
}

// seekReader is a file as libraries that go back and forth in it want it.
type seekReader interface {
	io.ReadSeeker
	io.ReaderAt
}

// untilEnd reads from a file until ctx ends.
type untilEnd struct {
	ctx  context.Context //nolint:containedctx // Read has no other way to it
	file seekReader
}

func (u untilEnd) Read(b []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.file.Read(b)
}

func (u untilEnd) ReadAt(b []byte, off int64) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.file.ReadAt(b, off)
}

func (u untilEnd) Seek(offset int64, whence int) (int64, error) {
	return u.file.Seek(offset, whence)
}
