package database

import (
	"errors"
	"io"
	"io/fs"
	"strings"
	"time"

	"modernc.org/sqlite/vfs"

	"crewhost/tools/mount"
)

// A file of SQLite that an agent names is read through package mount: SQLite gets a file
// system that has nothing but this one file and its write-ahead log, read-only, page by
// page from files that the mounts hold open. So no link or renamed folder leads it out,
// at no time; and it can't write, create or lock anything.
//
// What has been written and stands in the log is seen. Another program that writes to the
// file at the same time is not waited for: then a page may be newer than another, which
// SQLite mostly notices ("malformed"). Since no other file can be created, what needs more
// memory than its cache for sorting and grouping fails.

// mountedName is the name of the database in its file system.
const mountedName = "database"

// mounted is a file system of one database: an [fs.StatFS].
type mounted struct {
	fs   *mount.FS
	path string // virtual, links resolved
}

// Open implements [fs.FS]. A log that isn't there is an empty file: a database in WAL
// mode whose log is all in the file has none, and SQLite would make one.
func (m mounted) Open(name string) (fs.File, error) {
	file, err := m.open(name)
	if err != nil && name == mountedName+"-wal" && errors.Is(err, fs.ErrNotExist) {
		return nothing{}, nil
	}
	return file, err
}

// Stat implements [fs.StatFS]: it says what is there.
func (m mounted) Stat(name string) (fs.FileInfo, error) {
	file, err := m.open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	return file.Stat()
}

func (m mounted) open(name string) (fs.File, error) {
	suffix, ours := strings.CutPrefix(name, mountedName)
	if !ours || suffix != "" && suffix != "-wal" && suffix != "-journal" {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	file, err := m.fs.Open(m.path + suffix)
	if err != nil {
		return nil, err
	}
	return file, nil
}

// nothing is an empty file.
type nothing struct{}

func (nothing) Read([]byte) (int, error)                { return 0, io.EOF }
func (nothing) Seek(offset int64, _ int) (int64, error) { return offset, nil }
func (nothing) Close() error                            { return nil }
func (nothing) Stat() (fs.FileInfo, error)              { return nothing{}, nil }
func (nothing) Name() string                            { return mountedName + "-wal" }
func (nothing) Size() int64                             { return 0 }
func (nothing) Mode() fs.FileMode                       { return 0o444 }
func (nothing) ModTime() time.Time                      { return time.Time{} }
func (nothing) IsDir() bool                             { return false }
func (nothing) Sys() any                                { return nil }

// openMounted opens the file of SQLite at a virtual path.
func openMounted(fsys *mount.FS, path string) (*sqliteSession, error) {
	info, err := fsys.Stat(path)
	switch {
	case err != nil:
		return nil, refusal(mountText(path, err))
	case info.IsDir():
		return nil, refusal(path + " is a folder, and no file of SQLite")
	}
	name, files, err := vfs.New(mounted{fsys, info.Path})
	if err != nil {
		return nil, err
	}
	l, err := openLibrary("file:"+mountedName+"?mode=ro", name)
	if err != nil {
		_ = files.Close()
		return nil, refusal((*sqliteSession)(nil).explain(err, query{}))
	}
	// The index of a write-ahead log is in memory with this, where nobody else sees it.
	s, err := newSQLite(l, files, "PRAGMA locking_mode = EXCLUSIVE", "PRAGMA cache_size = -65536", "PRAGMA cell_size_check = ON")
	if err != nil {
		return nil, refusal((&sqliteSession{files: files}).explain(err, query{}))
	}
	return s, nil
}

// mountText says why a path can't be opened.
func mountText(path string, err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	if errors.Is(err, fs.ErrNotExist) {
		return "there is no file " + path + " (" + err.Error() + ")"
	}
	return path + " can't be opened: " + err.Error()
}
