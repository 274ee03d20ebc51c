package runner

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
	"unicode"

	"github.com/bmatcuk/doublestar/v4"

	"crewhost/runner/knowledge"
	"crewhost/tools/mount"
)

// crewRoot is the virtual path of a crew's own folder.
const crewRoot = "/crew"

// maxLooked bounds the entries of folders that are looked at for one source.
const maxLooked = 200_000

// sources finds the documents of a crew: in and below its folder, and in the
// mounts. No path and no link leads anywhere else.
type sources struct {
	root *os.Root
	fs   *mount.FS
}

// crewFolder is the folder of the crew of that path, which is a file or a folder.
func crewFolder(crewPath string) string {
	if info, err := os.Stat(crewPath); err == nil && !info.IsDir() {
		return filepath.Dir(crewPath)
	}
	return crewPath
}

// newSources opens the folder of a crew. The caller closes it.
func newSources(crewPath string, mounts *mount.FS) (*sources, error) {
	root, err := os.OpenRoot(crewFolder(crewPath))
	if err != nil {
		return nil, fmt.Errorf("opening the crew's folder: %w", err)
	}
	return &sources{root, mounts}, nil
}

// Close closes the folder.
func (s *sources) Close() error { return s.root.Close() }

// source is a file that documents are found in.
type source struct {
	name string // as it is cited: below the crew's folder, or a virtual path
	open func() (fs.File, error)
}

// matches finds the files that a source of a collection names: one file, all files
// below a folder, or what fits a pattern. Files that can't be read as text, and
// cited, are skipped where a pattern named them, and an error where the source
// itself did. Hidden files and folders are no part of what a pattern finds.
func (s *sources) matches(pattern string, most int) (found []source, skipped []string, err error) {
	within, name, prefix, err := s.place(pattern)
	if err != nil {
		return nil, nil, err
	}
	info, err := fs.Stat(within, name)
	exact := err == nil || !strings.ContainsAny(name, "*?[{") // a file may be called a[1].md
	if exact {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, nil, errors.New("there is no such file")
		case err != nil:
			return nil, nil, plain(err)
		case info.IsDir():
			name, exact = path.Join(literal(name), "**"), false
		case !info.Mode().IsRegular():
			return nil, nil, errors.New("it is no regular file")
		}
	} else if !doublestar.ValidatePattern(name) {
		return nil, nil, errors.New("it is no valid pattern")
	}
	names, err := doublestar.Glob(within, name, doublestar.WithFilesOnly(), doublestar.WithNoFollow(), doublestar.WithNoHidden())
	if exact {
		names, err = []string{name}, nil
	}
	switch {
	case err != nil:
		return nil, nil, plain(err)
	case within.err != nil:
		return nil, nil, within.err
	case len(names) > most:
		return nil, nil, fmt.Errorf("it names %d files, and knowledge.files allows %d", len(names), most)
	}
	for _, n := range names {
		f := source{prefix + n, func() (fs.File, error) { return within.Open(n) }}
		err := f.check()
		if err == nil && strings.ContainsFunc(n, unicode.IsControl) {
			err = errors.New("its name has control characters, and can't be cited")
		}
		if err != nil {
			if exact {
				return nil, nil, err
			}
			skipped = append(skipped, f.name)
			continue
		}
		found = append(found, f)
	}
	if len(found) == 0 {
		err = errors.New("no file fits it")
		if len(skipped) > 0 {
			err = fmt.Errorf("what fits it is no text: %s", several(skipped))
		}
		return nil, nil, err
	}
	return found, skipped, nil
}

// literal is the pattern for a name itself.
func literal(name string) string {
	return strings.NewReplacer("*", `\*`, "?", `\?`, "[", `\[`, "{", `\{`, "}", `\}`).Replace(name)
}

// place says where a pattern is to be looked for, and what stands before the names
// that are found there.
func (s *sources) place(pattern string) (within *tree, name, prefix string, err error) {
	switch {
	case strings.Contains(pattern, "://"):
		return nil, "", "", errors.New("documents are read from files, not from the network")
	case strings.Contains(pattern, `\`):
		return nil, "", "", errors.New(`it holds a backslash; folders are separated by "/"`)
	case strings.HasPrefix(pattern, "~"):
		return nil, "", "", errors.New("it is outside of the crew's folder and of the mounts")
	}
	name = path.Clean(pattern)
	if rest, own := strings.CutPrefix(name, crewRoot); own && (rest == "" || rest[0] == '/') {
		name = path.Clean(strings.TrimPrefix(rest, "/"))
	}
	if !path.IsAbs(name) {
		if name == ".." || strings.HasPrefix(name, "../") {
			return nil, "", "", errors.New("it is outside of the crew's folder; mount the folder that it is in, and name the virtual path")
		}
		below := s.root.FS()
		return &tree{stat: s.root.Stat, list: func(n string) ([]fs.DirEntry, error) { return fs.ReadDir(below, n) }, open: below.Open}, name, "", nil
	}
	if s.holds(name) {
		return mountTree(s.fs), strings.TrimPrefix(name, "/"), "/", nil
	}
	return nil, "", "", errors.New("no mount holds it; what is in the crew's folder is named by a relative path")
}

// holds reports whether a virtual path, which may end in a pattern, is in a mount.
func (s *sources) holds(name string) bool {
	for _, m := range s.fs.Mounts() {
		if name == m.Virtual || strings.HasPrefix(name, m.Virtual+"/") {
			return true
		}
	}
	return false
}

// check says why a file can't be read as text.
func (f source) check() error {
	if err := knowledge.NotText(f.name, nil); err != nil {
		return err
	}
	file, err := f.open()
	if err != nil {
		return plain(err)
	}
	defer func() { _ = file.Close() }()
	head := make([]byte, 8<<10)
	n, err := io.ReadFull(file, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return plain(err)
	}
	return knowledge.NotText(f.name, head[:n])
}

// read returns the content, of at most limit bytes.
func (f source) read(limit int64) ([]byte, error) {
	file, err := f.open()
	if err != nil {
		return nil, plain(err)
	}
	defer func() { _ = file.Close() }()
	data, err := io.ReadAll(io.LimitReader(file, limit+1))
	switch {
	case err != nil:
		return nil, plain(err)
	case int64(len(data)) > limit:
		return nil, knowledge.ErrTooLarge
	}
	return data, nil
}

// plain is an error without the path in it, which whoever reports it has said.
func plain(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// tree is a file system to look for files in, with an end to the looking.
type tree struct {
	stat   func(string) (fs.FileInfo, error)
	list   func(string) ([]fs.DirEntry, error)
	open   func(string) (fs.File, error)
	looked int
	err    error // why the looking was ended
}

// Stat implements [fs.StatFS].
func (t *tree) Stat(name string) (fs.FileInfo, error) { return t.stat(name) }

// ReadDir implements [fs.ReadDirFS].
func (t *tree) ReadDir(name string) ([]fs.DirEntry, error) {
	if t.err != nil {
		return nil, nil
	}
	entries, err := t.list(name)
	if t.looked += len(entries); t.looked > maxLooked {
		t.err = fmt.Errorf("more than %d files and folders would have to be looked at; name a folder below", maxLooked)
		return nil, nil
	}
	return entries, err
}

// Open implements [fs.FS].
func (t *tree) Open(name string) (fs.File, error) {
	info, err := t.stat(name)
	if err == nil && !info.IsDir() && !info.Mode().IsRegular() { // a pipe would hold up for ever
		err = &fs.PathError{Op: "open", Path: name, Err: errors.New("it is no regular file")}
	}
	if err != nil {
		return nil, err
	}
	return t.open(name)
}

// mountTree is the mounts as one tree.
func mountTree(m *mount.FS) *tree {
	stat := func(name string) (fs.FileInfo, error) {
		info, err := m.Stat("/" + name)
		if err != nil {
			return nil, err
		}
		return mountedInfo{info}, nil
	}
	return &tree{
		stat: stat,
		list: func(name string) ([]fs.DirEntry, error) {
			entries, err := m.ReadDir("/" + name)
			if err != nil {
				return nil, err
			}
			list := make([]fs.DirEntry, len(entries))
			for i, e := range entries {
				list[i] = mountedEntry{e, func() (fs.FileInfo, error) { return stat(path.Join(name, e.Name)) }}
			}
			return list, nil
		},
		open: func(name string) (fs.File, error) {
			file, err := m.Open("/" + name)
			if err != nil {
				return nil, err
			}
			return mountedFile{file}, nil
		},
	}
}

// mountedInfo, mountedEntry and mountedFile are what the mounts hold, as package
// [fs] knows it.
type mountedInfo struct{ mount.Info }

func (i mountedInfo) Name() string       { return path.Base(i.Path) }
func (i mountedInfo) Size() int64        { return i.Info.Size }
func (i mountedInfo) Mode() fs.FileMode  { return i.Info.Mode }
func (i mountedInfo) ModTime() time.Time { return i.Info.ModTime }
func (i mountedInfo) Sys() any           { return nil }

type mountedEntry struct {
	mount.Entry
	info func() (fs.FileInfo, error)
}

func (e mountedEntry) Name() string               { return e.Entry.Name }
func (e mountedEntry) Type() fs.FileMode          { return e.Entry.Type }
func (e mountedEntry) Info() (fs.FileInfo, error) { return e.info() }

type mountedFile struct{ *mount.File }

func (f mountedFile) Stat() (fs.FileInfo, error) { return mountedInfo{f.Info()}, nil }
