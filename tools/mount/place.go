package mount

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"runtime"
	"strings"
	"syscall"
)

// Between a look and an act, somebody may put a link, a pipe or another folder in
// the place of what was looked at. [os.Root] keeps the act within the mount then.
// Within it, where rights differ from folder to folder, this package does: a path
// is walked folder by folder, each is held open, and what was opened is compared
// with what bears the name. An act names nothing but an entry of the folder that
// is held.

const (
	// maxLinks bounds the symbolic links that one path may go through.
	maxLinks = 40
	// maxTries bounds how often a path is walked that changes meanwhile.
	maxTries = 20
)

// errChanged says that what was opened is not what was looked at.
var errChanged = &reason{"something keeps changing the path while it is used; try again", fs.ErrPermission}

// place is where a path leads.
type place struct {
	virtual string   // no link in it
	mount   *mounted // nil for a virtual folder above the mounts
	rel     string   // in the mount, "." for its root
	key     string   // rel as rights spell it

	dir  *os.Root    // the folder that holds it
	name string      // of the entry in dir; "." for the root of the mount
	rest string      // where dir has no folder of that name: the path below it
	info fs.FileInfo // nil where nothing is there
}

func (p place) close() {
	if p.dir != nil && p.dir != p.mount.root {
		_ = p.dir.Close()
	}
}

func (p place) rights() Rights {
	if p.mount == nil {
		return ReadOnly
	}
	return p.mount.rightsAt(p.rel, p.key)
}

func (p place) describe() Info {
	if p.mount == nil {
		return Info{Path: p.virtual, Mode: fs.ModeDir | 0o555, Rights: ReadOnly}
	}
	return Info{Path: p.virtual, Size: p.info.Size(), Mode: p.info.Mode(), ModTime: p.info.ModTime(), Rights: p.rights(), info: p.info}
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
	for _, m := range f.all() {
		if within(m.Virtual, virtual) {
			return true
		}
	}
	return false
}

// at does act at the place of name, and again where the path has changed before
// it was done. Symbolic links are walked, the last one only where follow is set.
// What is missing is no error: the place has no info then.
func (f *FS) at(op, name string, follow bool, act func(place) error) error {
	var err error
	for range maxTries {
		if err = f.once(name, follow, act); !errors.Is(err, errChanged) {
			break
		}
	}
	return wrap(op, name, err)
}

func (f *FS) once(name string, follow bool, act func(place) error) error {
	p, err := f.resolve(name, follow)
	if err != nil {
		return err
	}
	defer p.close()
	return act(p)
}

// resolve finds the place of name, which the caller closes.
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
		if err := checkName(next); err != nil { // what a link holds is foreign
			return place{}, err
		}
		virtual = next
	}
	return place{}, syscall.ELOOP
}

// walk goes to virtual until the end, or until a name that stands for another
// path: then next is that path, which may lie in another mount.
func (f *FS) walk(virtual string, follow bool) (_ place, next string, err error) {
	m := f.holder(virtual)
	if m == nil {
		if f.above(virtual) {
			return place{virtual: virtual}, "", nil
		}
		return place{}, "", &reason{"no mount holds this path; " + f.names(), fs.ErrNotExist}
	}
	p := place{virtual: virtual, mount: m, rel: ".", key: ".", dir: m.root, name: "."}
	if p.info, err = m.root.Lstat("."); err != nil {
		return place{}, "", err
	}
	rest := strings.TrimPrefix(virtual[len(m.Virtual):], "/")
	for rest != "" {
		var folder *os.Root
		if folder, err = f.enter(p); err != nil {
			break
		}
		p.close()
		p.dir = folder
		p.name, rest, _ = strings.Cut(rest, "/")
		if next, err = f.step(&p, rest, follow || rest != ""); err != nil || next != "" {
			break
		}
		if p.info == nil {
			p.rest, p.rel = rest, path.Join(p.rel, rest)
			for name := range strings.SplitSeq(rest, "/") {
				p.key = path.Join(p.key, m.lookalike(p.key, name))
			}
			break
		}
	}
	if err != nil || next != "" {
		p.close()
		return place{}, next, err
	}
	p.virtual = path.Join(m.Virtual, p.rel)
	return p, "", nil
}

// step looks at the entry p.name of the open folder p.dir. next is the path that
// it stands for, if any, with what follows in it.
func (f *FS) step(p *place, rest string, follow bool) (next string, err error) {
	p.info, err = p.dir.Lstat(p.name)
	f.pause("looked at " + p.name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		p.info = nil
	case err != nil:
		return "", err
	case p.info.Mode()&fs.ModeSymlink != 0 && follow:
		target, err := p.target()
		if err != nil {
			return "", err
		}
		return path.Join(p.mount.Virtual, target, rest), nil
	}
	alias := p.alias()
	p.key = path.Join(p.key, alias)
	if p.info != nil { // then the alias is a name of the same thing
		p.name = alias
	}
	p.rel = path.Join(p.rel, p.name)
	// Another spelling of a folder that a mount covers is that mount.
	if virtual := path.Join(p.mount.Virtual, p.rel); f.holder(virtual) != p.mount {
		return path.Join(virtual, rest), nil
	}
	return "", nil
}

// enter opens the folder at p. Its caller closes it, unless it is the mount's own.
func (f *FS) enter(p place) (*os.Root, error) {
	if p.name == "." {
		return p.mount.root, nil
	}
	if !p.info.IsDir() {
		return nil, syscall.ENOTDIR
	}
	f.pause("enter " + p.name)
	return f.openFolder(p.dir, p.name)
}

// openFolder opens the folder of that name in dir, and nothing else: no link, and
// no pipe that one would wait for.
func (f *FS) openFolder(dir *os.Root, name string) (*os.Root, error) {
	folder, err := dir.OpenRoot(name + "/.") // the dot has name opened as a folder
	if err != nil {
		if now, lerr := dir.Lstat(name); lerr != nil || !now.IsDir() {
			return nil, errChanged
		}
		return nil, err
	}
	f.pause("opened " + name)
	// What is held open can't give its number away to another file. So what bears
	// the name now, no link, is what is held, or something has changed.
	held, err := folder.Stat(".")
	if err == nil {
		var now fs.FileInfo
		if now, err = dir.Lstat(name); err != nil || !now.IsDir() || !os.SameFile(now, held) {
			err = errChanged
		}
	}
	if err == nil {
		err = checkFolder(dir, folder, held)
	}
	if err != nil {
		return nil, errors.Join(err, folder.Close())
	}
	return folder, nil
}

// checkFolder looks at the file system where one begins.
func checkFolder(dir, folder *os.Root, held fs.FileInfo) error {
	above, err := dir.Stat(".")
	if err != nil || sameDevice(above, held) {
		return err
	}
	return checkRoot(folder)
}

func checkRoot(folder *os.Root) error {
	file, err := folder.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(checkSystem(file), file.Close())
}

// target is where the symbolic link at p leads, relative to the mount. p.rel is
// still the folder that holds it.
func (p place) target() (string, error) {
	text, err := p.dir.Readlink(p.name)
	if err != nil {
		if now, lerr := p.dir.Lstat(p.name); lerr != nil || now.Mode()&fs.ModeSymlink == 0 {
			err = errChanged
		}
		return "", err
	}
	if runtime.GOOS == "windows" {
		text = strings.ReplaceAll(text, `\`, "/")
	}
	target := path.Join(p.rel, text)
	if path.IsAbs(text) || strings.Contains(text, ":") && runtime.GOOS == "windows" || target == ".." || strings.HasPrefix(target, "../") {
		return "", &reason{"a symbolic link in the path leads out of its mount", fs.ErrPermission}
	}
	return target, nil
}
