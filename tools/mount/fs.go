package mount

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// FS is a set of open mounts. It is safe for concurrent use. A nil FS holds no
// mount.
//
// The errors of its methods are of type [*fs.PathError] with a virtual path, and
// errors.Is finds [fs.ErrNotExist], [fs.ErrPermission], [fs.ErrExist] and
// [fs.ErrInvalid] in them.
type FS struct {
	mounts    []*mounted // by virtual path, in byte order
	base      string
	hardLinks bool
	changing  sync.Mutex   // held while the content of a file changes
	trap      func(string) // of tests, which change things meanwhile
}

// mounted is a mount with its folder held open.
type mounted struct {
	Mount
	root    *os.Root
	special []string // the sub-paths, and where other mounts lie in this one
}

// Option changes what an FS lets through.
type Option func(*FS)

// HardLinks lets files through that have several names. Without it they are
// refused: another of their names may lie outside of the mount.
func HardLinks(f *FS) { f.hardLinks = true }

// Open opens the folders of the mounts. The error joins every problem: a folder
// that is missing, a virtual path that is taken twice, a bad mount. Its text is
// for whoever wrote the mounts, and names physical paths.
func Open(mounts []Mount, options ...Option) (*FS, error) {
	f := &FS{}
	for _, option := range options {
		option(f)
	}
	var problems []error
	taken := map[string]bool{}
	for _, m := range mounts {
		err := m.check()
		if err == nil && taken[m.Virtual] {
			err = fmt.Errorf("%s is mounted twice; keep one", m.Virtual)
		}
		taken[m.Virtual] = true
		var root *os.Root
		if err == nil {
			root, err = openRoot(m.Physical)
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("mount %q: %w", m.String(), err))
			continue
		}
		f.mounts = append(f.mounts, &mounted{Mount: m, root: root})
	}
	if len(problems) > 0 {
		return nil, errors.Join(append(problems, f.Close())...)
	}
	slices.SortFunc(f.mounts, func(a, b *mounted) int { return strings.Compare(a.Virtual, b.Virtual) })
	f.base = f.pickBase()
	for _, m := range f.mounts {
		for _, s := range m.Subs {
			m.special = append(m.special, s.Path)
		}
		for _, other := range f.mounts {
			if other != m && within(other.Virtual, m.Virtual) {
				m.special = append(m.special, other.Virtual[len(m.Virtual)+1:])
			}
		}
	}
	return f, nil
}

// pause is where a test does what somebody else might do at this moment.
func (f *FS) pause(step string) {
	if f.trap != nil {
		f.trap(step)
	}
}

func openRoot(dir string) (*os.Root, error) {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("the folder %q does not exist", dir)
	case err != nil:
		return nil, err
	case !info.IsDir():
		return nil, fmt.Errorf("%q is not a folder", dir)
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	if err := checkRoot(root); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return root, nil
}

// Close closes the folders. It may be called more than once.
func (f *FS) Close() error {
	var errs []error
	for _, m := range f.all() {
		errs = append(errs, m.root.Close())
	}
	return errors.Join(errs...)
}

func (f *FS) all() []*mounted {
	if f == nil {
		return nil
	}
	return f.mounts
}

// Mounts returns what is mounted where, by virtual path. Physical is left empty.
func (f *FS) Mounts() []Mount {
	var ms []Mount
	for _, m := range f.all() {
		v := m.Mount
		v.Physical, v.Subs = "", slices.Clone(v.Subs)
		ms = append(ms, v)
	}
	return ms
}

// Base is the virtual path that relative paths are resolved against: the only
// mount that can be written to, or else the only mount there is. It is empty
// where neither is there; a relative path is an error then, since nothing says
// which mount is meant.
func (f *FS) Base() string {
	if f == nil {
		return ""
	}
	return f.base
}

func (f *FS) pickBase() string {
	var writable []string
	for _, m := range f.mounts {
		if m.Rights.CanWrite() {
			writable = append(writable, m.Virtual)
		}
	}
	switch {
	case len(writable) == 1:
		return writable[0]
	case len(writable) == 0 && len(f.mounts) == 1:
		return f.mounts[0].Virtual
	}
	return ""
}

// names lists the mounts for an error text.
func (f *FS) names() string {
	var names []string
	for _, m := range f.all() {
		names = append(names, m.Virtual)
	}
	if len(names) == 0 {
		return "nothing is mounted here"
	}
	return "the mounts are " + strings.Join(names, ", ")
}

// Info describes a file or a folder.
type Info struct {
	Path    string // virtual, absolute, symbolic links resolved
	Size    int64  // bytes
	Mode    fs.FileMode
	ModTime time.Time
	Rights  Rights

	info fs.FileInfo // what Replace compares
}

// IsDir reports whether it is a folder.
func (i Info) IsDir() bool { return i.Mode.IsDir() }
