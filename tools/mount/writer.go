package mount

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// Writer writes the new content of a file beside the old one. Readers see the old
// content until Commit, and the new one after it.
//
//	w, err := fsys.Create("/output/report.xlsx", 64<<20)
//	defer w.Close()
//	…                        // write to w
//	err = w.Commit()
//
// It is for one goroutine.
type Writer struct {
	fs      *FS
	name    string // virtual
	place   place  // its folder is w's own
	temp    string // in that folder
	file    *os.File
	written int64
	limit   int64
	err     error // the first; what was written is of no use then
	was     *Info // what must still be there, if that matters
}

// Create begins to write a regular file of at most limit bytes, in place of one
// that is there or as a new one. The folder must be there. The caller calls
// Close, and before that Commit where the content is whole.
func (f *FS) Create(name string, limit int64) (*Writer, error) {
	w := &Writer{fs: f, name: name, limit: limit}
	err := f.at("write", name, true, w.begin)
	if err != nil {
		return nil, err
	}
	return w, nil
}

// begin creates the new file beside the one at p, in a folder that w holds from
// now on.
func (w *Writer) begin(p place) error {
	if err := w.fs.writable(p); err != nil {
		return err
	}
	if p.rest != "" {
		return missing(p)
	}
	dir, err := p.dir.OpenRoot(".")
	if err != nil {
		return err
	}
	temp := ".crewhost-" + rand.Text() + ".tmp"
	file, err := dir.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return errors.Join(err, dir.Close())
	}
	p.dir = dir
	w.place, w.temp, w.file = p, temp, file
	return nil
}

// Path is the virtual path of the file, symbolic links resolved.
func (w *Writer) Path() string { return w.place.virtual }

// Write adds to the content. Beyond the limit it is an error that wraps
// [ErrTooLarge], and nothing of b is written.
func (w *Writer) Write(b []byte) (int, error) {
	switch {
	case w.file == nil:
		return 0, wrap("write", w.name, fs.ErrClosed)
	case w.err != nil:
		return 0, w.err
	case int64(len(b)) > w.limit-w.written:
		w.err = wrap("write", w.name, &reason{fmt.Sprintf("the file would become larger than %d bytes", w.limit), ErrTooLarge})
		return 0, w.err
	}
	n, err := w.file.Write(b)
	w.written += int64(n)
	w.err = wrap("write", w.name, err)
	return n, w.err
}

// Commit puts the content in the file's place, on the disk and at once, and ends
// the writing. The mode of an existing file is kept. After an error of Write or
// of Commit, the file is as it was.
func (w *Writer) Commit() error {
	if w.file == nil {
		return wrap("write", w.name, fs.ErrClosed)
	}
	err := w.err
	if err == nil && w.place.info != nil {
		err = w.file.Chmod(w.place.info.Mode().Perm())
	}
	if err == nil {
		err = w.file.Sync()
	}
	err = errors.Join(err, w.file.Close())
	w.file = nil
	dir := w.place.dir
	defer dir.Close()
	if err == nil {
		w.fs.pause("replace " + w.place.name)
		err = w.replace()
	}
	if err != nil {
		return wrap("write", w.name, errors.Join(err, dir.Remove(w.temp)))
	}
	// The new name lasts when the folder is on disk, too. Some systems can't
	// sync a folder; the content is safe in any case.
	if d, err := dir.Open("."); err == nil {
		_ = d.Sync()
		_ = d.Close()
	}
	return nil
}

// replace gives the new file its name. No other change by this FS comes between the
// look at what is there and that.
func (w *Writer) replace() error {
	w.fs.changing.Lock()
	defer w.fs.changing.Unlock()
	dir, name := w.place.dir, w.place.name
	if w.was != nil {
		now, err := dir.Lstat(name)
		switch there := err == nil; {
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return err
		case there && w.was.info == nil:
			return fs.ErrExist
		case w.was.info != nil && (!there || !unchanged(w.was.info, now)):
			return ErrChanged
		}
	}
	return dir.Rename(w.temp, name)
}

// unchanged reports whether a file is another one's later self, and nobody has
// written to it.
func unchanged(was, now fs.FileInfo) bool {
	return os.SameFile(was, now) && was.Size() == now.Size() && was.ModTime().Equal(now.ModTime())
}

// Close throws away what was not committed. After Commit it does nothing.
func (w *Writer) Close() error {
	if w.file == nil {
		return nil
	}
	err := w.file.Close()
	w.file = nil
	dir := w.place.dir
	return wrap("write", w.name, errors.Join(err, dir.Remove(w.temp), dir.Close()))
}

// WriteFile replaces the content of a regular file, or creates it, so that a
// reader sees the old content or the new, whatever happens in between. The mode
// of an existing file is kept; the folder must be there.
func (f *FS) WriteFile(name string, data []byte) error { return f.write(name, nil, data) }

// Replace is WriteFile where the file is still as was describes it, and else an
// error that is [ErrChanged]. The zero Info describes a file that is not there:
// where one is, the error is [fs.ErrExist].
func (f *FS) Replace(name string, was Info, data []byte) error { return f.write(name, &was, data) }

func (f *FS) write(name string, was *Info, data []byte) error {
	w, err := f.Create(name, int64(len(data)))
	if err != nil {
		return err
	}
	w.was = was
	if _, err := w.Write(data); err != nil {
		return errors.Join(err, w.Close())
	}
	return w.Commit()
}
