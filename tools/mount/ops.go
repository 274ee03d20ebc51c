package mount

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
)

// maxEntries bounds the entries of one folder that ReadDir returns.
const maxEntries = 100_000

// Stat describes what name leads to.
func (f *FS) Stat(name string) (Info, error) {
	p, err := f.resolve(name, true)
	if err == nil && p.mount != nil && p.info == nil {
		err = fs.ErrNotExist
	}
	if err != nil {
		return Info{}, wrap("stat", name, err)
	}
	return p.describe(), nil
}

// Open opens a regular file for reading. The caller closes it.
func (f *FS) Open(name string) (*File, error) {
	p, err := f.resolve(name, true)
	if err != nil {
		return nil, wrap("open", name, err)
	}
	if err := regular(p); err != nil {
		return nil, wrap("open", name, err)
	}
	if p.info == nil {
		return nil, wrap("open", name, fs.ErrNotExist)
	}
	file, err := openRegular(p, os.O_RDONLY)
	if err != nil {
		return nil, wrap("open", name, err)
	}
	return &File{p.describe(), file}, nil
}

// ReadFile returns the content of a regular file of at most limit bytes. A larger
// one is an error that wraps [ErrTooLarge].
func (f *FS) ReadFile(name string, limit int64) ([]byte, error) {
	file, err := f.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, wrap("read", name, &reason{fmt.Sprintf("the file is larger than %d bytes", limit), ErrTooLarge})
	}
	return data, nil
}

// Append adds data to the end of a regular file, which it creates where there is
// none, in one write.
func (f *FS) Append(name string, data []byte) error {
	p, err := f.writable(name)
	if err != nil {
		return wrap("append", name, err)
	}
	file, err := openRegular(p, os.O_WRONLY|os.O_APPEND|os.O_CREATE)
	if err != nil {
		return wrap("append", name, err)
	}
	_, err = file.Write(data)
	if err == nil {
		err = file.Sync()
	}
	return wrap("append", name, errors.Join(err, file.Close()))
}

// MkdirAll creates the folder, and those above it in its mount, where missing.
func (f *FS) MkdirAll(name string) error {
	p, err := f.resolve(name, true)
	if err == nil {
		err = mkdirAll(p)
	}
	return wrap("mkdir", name, err)
}

func mkdirAll(p place) error {
	switch {
	case p.mount == nil:
		return nil // a folder above the mounts is there
	case p.info != nil && !p.info.IsDir():
		return syscall.ENOTDIR
	case p.info != nil:
		return nil
	}
	for rel := p.rel; rel != p.present; rel = path.Dir(rel) {
		if !p.mount.rightsAt(rel).CanWrite() {
			return readOnly(p.mount, rel)
		}
	}
	return p.mount.root.MkdirAll(p.rel, 0o777)
}

// Remove removes a file, an empty folder, or a symbolic link itself.
func (f *FS) Remove(name string) error {
	p, err := f.resolve(name, false)
	if err == nil {
		err = remove(p)
	}
	return wrap("remove", name, err)
}

func remove(p place) error {
	switch {
	case p.mount == nil || p.rel == ".":
		return &reason{"a mount can't be removed", fs.ErrPermission}
	case p.info == nil:
		return fs.ErrNotExist
	case !p.rights().CanRemove():
		return &reason{"nothing may be removed here (" + string(p.rights()) + ")", fs.ErrPermission}
	}
	return p.mount.root.Remove(p.rel)
}

// Entry is an entry of a folder.
type Entry struct {
	Name string
	Type fs.FileMode // the type bits
}

// IsDir reports whether it is a folder.
func (e Entry) IsDir() bool { return e.Type.IsDir() }

// ReadDir returns the entries of a folder, sorted by name, mounts below it
// included. More than 100,000 are an error that wraps [ErrTooLarge].
func (f *FS) ReadDir(name string) ([]Entry, error) {
	p, err := f.resolve(name, true)
	if err != nil {
		return nil, wrap("readdir", name, err)
	}
	var entries []Entry
	if p.mount != nil {
		if entries, err = list(p); err != nil {
			return nil, wrap("readdir", name, err)
		}
	}
	for _, m := range f.mounts {
		rest := strings.TrimPrefix(m.Virtual[min(len(p.virtual), len(m.Virtual)):], "/")
		if rest == "" || !within(m.Virtual, p.virtual) {
			continue
		}
		child, _, _ := strings.Cut(rest, "/")
		entries = slices.DeleteFunc(entries, func(e Entry) bool { return e.Name == child })
		entries = append(entries, Entry{child, fs.ModeDir})
	}
	slices.SortFunc(entries, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	return entries, nil
}

func list(p place) ([]Entry, error) {
	switch {
	case p.info == nil:
		return nil, fs.ErrNotExist
	case !p.info.IsDir():
		return nil, &reason{"it is a file, not a folder", fs.ErrInvalid}
	}
	dir, err := p.mount.root.OpenFile(p.rel, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	found, err := dir.ReadDir(maxEntries + 1)
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return nil, err
	case len(found) > maxEntries:
		return nil, &reason{fmt.Sprintf("the folder has more than %d entries", maxEntries), ErrTooLarge}
	}
	entries := make([]Entry, len(found))
	for i, e := range found {
		entries[i] = Entry{strings.ToValidUTF8(e.Name(), "�"), e.Type()}
	}
	return entries, nil
}

// CanWrite reports, as an error, why the file of that name could not be written:
// no mount holds it, its mount is read-only, something else is there. It changes
// nothing, and a disk may still be full afterwards.
func (f *FS) CanWrite(name string) error {
	_, err := f.writable(name)
	return wrap("write", name, err)
}

// writable resolves name for a change of its content.
func (f *FS) writable(name string) (place, error) {
	p, err := f.resolve(name, true)
	switch {
	case err != nil:
		return place{}, err
	case p.mount == nil:
		return place{}, &reason{"only a file in a mount can be written; " + f.names(), fs.ErrPermission}
	case !p.rights().CanWrite():
		return place{}, readOnly(p.mount, p.rel)
	}
	if err := regular(p); err != nil {
		return place{}, err
	}
	if p.info != nil && p.info.Mode().Perm()&0o222 == 0 {
		// Replacing would go round the mode that somebody gave the file.
		return place{}, &reason{"the file is write-protected", fs.ErrPermission}
	}
	return p, nil
}

func readOnly(m *mounted, rel string) error {
	at := m.Virtual
	for _, s := range m.Subs {
		if within(rel, s.Path) && !s.Rights.CanWrite() {
			at = path.Join(m.Virtual, s.Path)
		}
	}
	return &reason{at + " is mounted read-only", fs.ErrPermission}
}

// regular refuses what is there and is no regular file.
func regular(p place) error {
	switch {
	case p.mount == nil:
		return &reason{"it is a folder", ErrNotRegular}
	case p.info == nil:
		return nil
	}
	return regularMode(p.info.Mode())
}

func regularMode(mode fs.FileMode) error {
	switch {
	case mode.IsRegular():
		return nil
	case mode.IsDir():
		return &reason{"it is a folder", ErrNotRegular}
	default:
		return &reason{"it is a device, a pipe or a socket", ErrNotRegular}
	}
}

// openRegular opens a file and looks again: what was there may have been swapped.
func openRegular(p place, flag int) (*os.File, error) {
	file, err := p.mount.root.OpenFile(p.rel, flag|nonblock, 0o666)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil {
		err = regularMode(info.Mode())
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}
