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
func (f *FS) Stat(name string) (info Info, err error) {
	err = f.at("stat", name, true, func(p place) error {
		if p.mount != nil && p.info == nil {
			return missing(p)
		}
		info = p.describe()
		return nil
	})
	return info, err
}

// Open opens a regular file for reading. The caller closes it.
func (f *FS) Open(name string) (file *File, err error) {
	err = f.at("open", name, true, func(p place) error {
		if err := f.regular(p); err != nil {
			return err
		}
		if p.info == nil {
			return missing(p)
		}
		held, info, err := f.openRegular(p, os.O_RDONLY)
		if err != nil {
			return err
		}
		p.info = info
		file = &File{p.describe(), held}
		return nil
	})
	return file, err
}

// ReadFile returns the content of a regular file of at most limit bytes. A larger
// one is an error that wraps [ErrTooLarge].
func (f *FS) ReadFile(name string, limit int64) ([]byte, error) {
	file, err := f.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	f.pause("read " + name)
	var data []byte
	if file.info.Size <= limit { // it may grow meanwhile
		if data, err = io.ReadAll(io.LimitReader(file, limit+1)); err != nil {
			return nil, err
		}
	}
	if file.info.Size > limit || int64(len(data)) > limit {
		return nil, wrap("read", name, &reason{fmt.Sprintf("the file is larger than %d bytes", limit), ErrTooLarge})
	}
	return data, nil
}

// Append adds data to the end of a regular file, which it creates where there is
// none, in one write.
func (f *FS) Append(name string, data []byte) error {
	return f.at("append", name, true, func(p place) error {
		if err := f.writable(p); err != nil {
			return err
		}
		file, err := f.appendTo(p, data)
		if err != nil {
			return err
		}
		return errors.Join(file.Sync(), file.Close())
	})
}

// appendTo adds data to the file at p, so that no replacing of this FS comes between
// and loses it.
func (f *FS) appendTo(p place, data []byte) (*os.File, error) {
	f.changing.Lock()
	defer f.changing.Unlock()
	file, err := f.openEnd(p)
	if err != nil {
		return nil, err
	}
	if _, err := file.Write(data); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// openEnd opens a file for appending, or creates it where p has none. A link that
// came there meanwhile is not followed: creating says that something is there, and
// opening creates nothing.
func (f *FS) openEnd(p place) (*os.File, error) {
	switch {
	case p.rest != "":
		return nil, missing(p)
	case p.info != nil:
		file, _, err := f.openRegular(p, os.O_WRONLY|os.O_APPEND)
		return file, err
	}
	f.pause("create " + p.name)
	file, err := p.dir.OpenFile(p.name, os.O_WRONLY|os.O_APPEND|os.O_CREATE|os.O_EXCL, 0o666)
	if errors.Is(err, fs.ErrExist) {
		return nil, errChanged
	}
	return file, err
}

// MkdirAll creates the folder, and those above it in its mount, where missing.
func (f *FS) MkdirAll(name string) error {
	return f.at("mkdir", name, true, func(p place) error {
		switch {
		case p.mount == nil:
			return nil // a folder above the mounts is there
		case p.info != nil && !p.info.IsDir():
			return syscall.ENOTDIR
		case p.info != nil:
			return nil
		}
		names := strings.Split(path.Join(p.name, p.rest), "/")
		rel, key := p.rel, p.key
		for range names {
			if !p.mount.rightsAt(rel, key).CanWrite() {
				return readOnly(p.mount, rel, key)
			}
			rel, key = path.Dir(rel), path.Dir(key)
		}
		return f.mkdirs(p.dir, names)
	})
}

// mkdirs creates the folders, each in the one before it.
func (f *FS) mkdirs(dir *os.Root, names []string) (err error) {
	held := dir
	defer func() {
		if held != dir {
			err = errors.Join(err, held.Close())
		}
	}()
	for i, name := range names {
		f.pause("mkdir " + name)
		err := held.Mkdir(name, 0o777)
		switch {
		case errors.Is(err, fs.ErrExist):
			return errChanged
		case err != nil || i == len(names)-1:
			return err
		}
		f.pause("enter " + name)
		folder, err := f.openFolder(held, name)
		if err != nil {
			return err
		}
		if held != dir {
			_ = held.Close()
		}
		held = folder
	}
	return nil
}

// Remove removes a file, an empty folder, or a symbolic link itself.
func (f *FS) Remove(name string) error {
	return f.at("remove", name, false, func(p place) error {
		switch {
		case p.mount == nil || p.rel == ".":
			return &reason{"a mount can't be removed", fs.ErrPermission}
		case p.info == nil:
			return missing(p)
		case !p.rights().CanRemove():
			return &reason{"nothing may be removed here (" + string(p.rights()) + ")", fs.ErrPermission}
		}
		f.pause("remove " + p.name)
		return p.dir.Remove(p.name)
	})
}

// Entry is an entry of a folder.
type Entry struct {
	Name string
	Type fs.FileMode // the type bits
}

// IsDir reports whether it is a folder.
func (e Entry) IsDir() bool { return e.Type.IsDir() }

// ReadDir returns the entries of a folder, sorted by name, mounts below it
// included. More than 100,000 are an error that wraps [ErrTooLarge]. Of a name
// that no path may hold, the parts that can't be seen are shown as U+FFFD.
func (f *FS) ReadDir(name string) (entries []Entry, err error) {
	err = f.at("readdir", name, true, func(p place) error {
		entries = nil
		if p.mount != nil {
			folder, err := f.openDir(p)
			if err != nil {
				return err
			}
			entries, err = list(folder)
			if err = errors.Join(err, folder.Close()); err != nil {
				return err
			}
		}
		entries = f.withMounts(p.virtual, entries)
		return nil
	})
	return entries, err
}

// withMounts adds the mounts, or the folders that lead to them, in place of what
// they cover, and sorts.
func (f *FS) withMounts(virtual string, entries []Entry) []Entry {
	for _, m := range f.mounts {
		rest := strings.TrimPrefix(m.Virtual[min(len(virtual), len(m.Virtual)):], "/")
		if rest == "" || !within(m.Virtual, virtual) {
			continue
		}
		child, _, _ := strings.Cut(rest, "/")
		entries = slices.DeleteFunc(entries, func(e Entry) bool { return e.Name == child })
		entries = append(entries, Entry{child, fs.ModeDir})
	}
	slices.SortFunc(entries, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	return entries
}

// list returns the entries of an open folder.
func list(folder *os.Root) ([]Entry, error) {
	held, err := folder.Open(".")
	if err != nil {
		return nil, err
	}
	defer held.Close()
	dir, err := unrooted(held)
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
		entries[i] = Entry{seen(e.Name()), e.Type()}
	}
	return entries, nil
}

// openDir opens the folder at p, which its caller closes.
func (f *FS) openDir(p place) (*os.Root, error) {
	switch {
	case p.info == nil:
		return nil, missing(p)
	case !p.info.IsDir():
		return nil, &reason{"it is a file, not a folder", fs.ErrInvalid}
	}
	folder, err := f.enter(p)
	if folder == p.mount.root && err == nil {
		return folder.OpenRoot(".")
	}
	return folder, err
}

// CanWrite reports, as an error, why the file of that name could not be written:
// no mount holds it, its mount is read-only, something else is there. It changes
// nothing, and a disk may still be full afterwards.
func (f *FS) CanWrite(name string) error { return f.at("write", name, true, f.writable) }

// writable reports why the content of the file at p may not be changed.
func (f *FS) writable(p place) error {
	switch {
	case p.mount == nil:
		return &reason{"only a file in a mount can be written; " + f.names(), fs.ErrPermission}
	case !p.rights().CanWrite():
		return readOnly(p.mount, p.rel, p.key)
	}
	if err := f.regular(p); err != nil {
		return err
	}
	if p.info != nil && p.info.Mode().Perm()&0o222 == 0 {
		// Replacing would go round the mode that somebody gave the file.
		return &reason{"the file is write-protected", fs.ErrPermission}
	}
	return nil
}

func readOnly(m *mounted, rel, key string) error {
	rights, at := m.longest(rel)
	if rights.CanWrite() {
		_, at = m.longest(key)
	}
	return &reason{at + " is mounted read-only", fs.ErrPermission}
}

// missing says that nothing is there, and of a file in no folder, which one it is.
func missing(p place) error {
	if p.rest == "" {
		return fs.ErrNotExist
	}
	folder := path.Join(p.mount.Virtual, strings.TrimSuffix(p.rel, p.rest))
	return &reason{"there is no folder " + shown(folder), fs.ErrNotExist}
}

// regular refuses what is there and is no regular file, or one with other names.
func (f *FS) regular(p place) error {
	switch {
	case p.mount == nil:
		return &reason{"it is a folder", ErrNotRegular}
	case p.info == nil:
		return nil
	}
	return f.checkFile(nil, p.info)
}

func (f *FS) checkFile(file *os.File, info fs.FileInfo) error {
	switch mode := info.Mode(); {
	case mode.IsRegular() && !f.hardLinks && linked(file, info):
		return &reason{"the file has other names (hard links), which may lie outside of the mount; the setting tools.files.hard_links lets such files through", fs.ErrPermission}
	case mode.IsRegular():
		return nil
	case mode.IsDir():
		return &reason{"it is a folder", ErrNotRegular}
	default:
		return &reason{"it is a device, a pipe or a socket", ErrNotRegular}
	}
}

// openRegular opens the file at p, which is there, and looks again: what was there
// may have been swapped.
func (f *FS) openRegular(p place, flag int) (*os.File, fs.FileInfo, error) {
	f.pause("open " + p.name)
	file, err := p.dir.OpenFile(p.name, flag|nonblock, 0)
	if err != nil {
		if now, lerr := p.dir.Lstat(p.name); lerr != nil || !os.SameFile(now, p.info) {
			err = errChanged
		}
		return nil, nil, err
	}
	f.pause("opened " + p.name)
	info, err := f.checkOpened(file, p)
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	return file, info, nil
}

func (f *FS) checkOpened(file *os.File, p place) (fs.FileInfo, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	// As in openFolder: what bears the name is what is held.
	if now, err := p.dir.Lstat(p.name); err != nil || !os.SameFile(now, info) {
		return nil, errChanged
	}
	if err := f.checkFile(file, info); err != nil {
		return nil, err
	}
	above, err := p.dir.Stat(".")
	if err == nil && !sameDevice(above, info) {
		err = checkSystem(file)
	}
	return info, err
}
