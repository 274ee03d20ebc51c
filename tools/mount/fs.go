package mount

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// maxLinks bounds the symbolic links that one path may go through.
const maxLinks = 40

// FS is a set of open mounts. It is safe for concurrent use. A nil FS holds no
// mount.
//
// The errors of its methods are of type [*fs.PathError] with a virtual path, and
// errors.Is finds [fs.ErrNotExist], [fs.ErrPermission], [fs.ErrExist] and
// [fs.ErrInvalid] in them.
type FS struct {
	mounts []*mounted // by virtual path, in byte order
	base   string
}

// mounted is a mount with its folder held open.
type mounted struct {
	Mount
	root *os.Root
}

// Open opens the folders of the mounts. The error joins every problem: a folder
// that is missing, a virtual path that is taken twice, a bad mount. Its text is
// for whoever wrote the mounts, and names physical paths.
func Open(mounts []Mount) (*FS, error) {
	f := &FS{}
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
		f.mounts = append(f.mounts, &mounted{m, root})
	}
	if len(problems) > 0 {
		return nil, errors.Join(append(problems, f.Close())...)
	}
	slices.SortFunc(f.mounts, func(a, b *mounted) int { return strings.Compare(a.Virtual, b.Virtual) })
	f.base = f.pickBase()
	return f, nil
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
	return os.OpenRoot(dir)
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
}

// IsDir reports whether it is a folder.
func (i Info) IsDir() bool { return i.Mode.IsDir() }

// place is where a path leads.
type place struct {
	virtual string
	mount   *mounted    // nil for a virtual folder above the mounts
	rel     string      // in the mount, "." for its root; no link in it
	info    fs.FileInfo // nil where nothing is there
	present string      // the part of rel that is there
}

func (p place) rights() Rights {
	if p.mount == nil {
		return ReadOnly
	}
	return p.mount.rightsAt(p.rel)
}

func (p place) describe() Info {
	if p.mount == nil {
		return Info{Path: p.virtual, Mode: fs.ModeDir | 0o555, Rights: ReadOnly}
	}
	return Info{Path: p.virtual, Size: p.info.Size(), Mode: p.info.Mode(), ModTime: p.info.ModTime(), Rights: p.rights()}
}

// foldCase says that file systems here usually take names that differ in letter
// case for one, so that rights must, too.
const foldCase = runtime.GOOS == "windows" || runtime.GOOS == "darwin"

func (m *mounted) rightsAt(rel string) Rights {
	rights, longest := m.Rights, 0
	for _, s := range m.Subs {
		if len(s.Path) <= longest {
			continue
		}
		if within(rel, s.Path) || foldCase && within(strings.ToLower(rel), strings.ToLower(s.Path)) {
			rights, longest = s.Rights, len(s.Path)
		}
	}
	return rights
}

// absolute returns the clean absolute form of name.
func (f *FS) absolute(name string) (string, error) {
	if err := checkName(name); err != nil {
		return "", err
	}
	if path.IsAbs(name) {
		return path.Clean(name), nil
	}
	if f.Base() == "" {
		return "", &reason{"the path is relative and no single mount is meant; " + f.names(), fs.ErrInvalid}
	}
	return path.Join(f.base, name), nil
}

// holder returns the mount with the longest root that holds virtual, or nil.
func (f *FS) holder(virtual string) *mounted {
	var found *mounted
	for _, m := range f.all() {
		if within(virtual, m.Virtual) && (found == nil || len(m.Virtual) > len(found.Virtual)) {
			found = m
		}
	}
	return found
}

// above reports whether mounts lie below virtual.
func (f *FS) above(virtual string) bool {
	return slices.ContainsFunc(f.all(), func(m *mounted) bool { return within(m.Virtual, virtual) })
}

// resolve finds the place of name and walks its symbolic links; the last one only
// where follow is set. What is missing is no error: the place has no info then.
func (f *FS) resolve(name string, follow bool) (place, error) {
	virtual, err := f.absolute(name)
	if err != nil {
		return place{}, err
	}
	for range maxLinks {
		p, next, err := f.walk(virtual, follow)
		if err != nil || next == "" {
			return p, err
		}
		virtual = next
	}
	return place{}, syscall.ELOOP
}

// walk goes to virtual until the end, or until a symbolic link: then next is the
// virtual path with that link replaced, which may lie in another mount.
func (f *FS) walk(virtual string, follow bool) (p place, next string, err error) {
	m := f.holder(virtual)
	if m == nil {
		if f.above(virtual) {
			return place{virtual: virtual}, "", nil
		}
		return place{}, "", &reason{"no mount holds this path; " + f.names(), fs.ErrNotExist}
	}
	p = place{virtual: virtual, mount: m, rel: ".", present: "."}
	if p.info, err = m.root.Lstat("."); err != nil {
		return place{}, "", err
	}
	rest := strings.TrimPrefix(virtual[len(m.Virtual):], "/")
	for rest != "" {
		var part string
		part, rest, _ = strings.Cut(rest, "/")
		if !p.info.IsDir() {
			return place{}, "", syscall.ENOTDIR
		}
		here := path.Join(p.rel, part)
		info, err := m.root.Lstat(here)
		if errors.Is(err, fs.ErrNotExist) {
			p.rel, p.info = path.Join(here, rest), nil
			return p, "", nil
		}
		if err != nil {
			return place{}, "", err
		}
		if info.Mode()&fs.ModeSymlink != 0 && (follow || rest != "") {
			target, err := m.target(p.rel, here)
			if err != nil {
				return place{}, "", err
			}
			return place{}, path.Join(m.Virtual, target, rest), nil
		}
		p.rel, p.present, p.info = here, here, info
	}
	return p, "", nil
}

// target is where the symbolic link leads, relative to the mount.
func (m *mounted) target(dir, link string) (string, error) {
	text, err := m.root.Readlink(link)
	if err != nil {
		return "", err
	}
	text = strings.ReplaceAll(text, `\`, "/")
	target := path.Join(dir, text)
	if path.IsAbs(text) || strings.Contains(text, ":") && runtime.GOOS == "windows" || target == ".." || strings.HasPrefix(target, "../") {
		return "", &reason{"a symbolic link in the path leads out of its mount", fs.ErrPermission}
	}
	return target, nil
}
