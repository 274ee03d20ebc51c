package mount

import (
	"errors"
	"io"
	"io/fs"
	"os"
)

// File is a regular file, open for reading. It is an [fs.File], an [io.ReaderAt]
// and an [io.Seeker], so that archives and databases can be read in place. ReadAt
// may be called by several at once.
type File struct {
	info Info
	file *os.File
}

var (
	_ fs.File     = (*File)(nil)
	_ io.ReaderAt = (*File)(nil)
	_ io.Seeker   = (*File)(nil)
)

// Info describes the file as it was when it was opened.
func (f *File) Info() Info { return f.info }

// Stat describes the file as it is now. The name is the last part of its virtual path.
func (f *File) Stat() (fs.FileInfo, error) {
	info, err := f.file.Stat()
	if err != nil {
		return nil, f.wrap("stat", err)
	}
	return info, nil
}

// Read reads as [io.Reader] says.
func (f *File) Read(b []byte) (int, error) {
	n, err := f.file.Read(b)
	return n, f.wrap("read", err)
}

// ReadAt reads as [io.ReaderAt] says.
func (f *File) ReadAt(b []byte, off int64) (int, error) {
	if off < 0 {
		return 0, f.wrap("read", &reason{"the offset is negative", fs.ErrInvalid})
	}
	n, err := f.file.ReadAt(b, off)
	return n, f.wrap("read", err)
}

// Seek moves as [io.Seeker] says.
func (f *File) Seek(offset int64, whence int) (int64, error) {
	n, err := f.file.Seek(offset, whence)
	return n, f.wrap("seek", err)
}

// Close closes the file.
func (f *File) Close() error { return f.wrap("close", f.file.Close()) }

// wrap leaves the end of the file as it is: readers compare with ==.
func (f *File) wrap(op string, err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return err
	}
	return wrap(op, f.info.Path, err)
}
