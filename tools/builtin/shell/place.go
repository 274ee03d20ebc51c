package shell

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"crewhost/tools/mount"
	"crewhost/tools/native"
)

// place is where a program runs, and what of the host is mounted there.
type place struct {
	fs       *mount.FS
	dir      *mount.Dir
	physical string // of dir
	mounts   []mounted
	masks    []mask // of the mounts, the longest first
}

type mounted struct {
	mount.Mount
	physical string
}

// placeOf opens the folder; the caller closes it. The error is for the model.
func placeOf(fsys *mount.FS, name string) (*place, error) {
	if name == "" {
		name = "."
	}
	dir, err := fsys.Dir(name)
	if err != nil {
		return nil, err
	}
	p := &place{fs: fsys, dir: dir, physical: physicalOf(dir)}
	for _, m := range fsys.Mounts() {
		root, err := fsys.Dir(m.Virtual)
		if err != nil {
			continue // it has gone, and nothing of it can be used
		}
		physical := physicalOf(root)
		_ = root.Close()
		p.mounts = append(p.mounts, mounted{m, physical})
		p.masks = append(p.masks, mask{physical, m.Virtual})
	}
	sortMasks(p.masks)
	return p, nil
}

func (p *place) Close() error { return p.dir.Close() }

// physicalOf is the name of a folder on the host, links resolved: what a program that runs
// there is told.
func physicalOf(d *mount.Dir) string {
	name := d.HostPath()
	if target, err := os.Readlink(name); err == nil && strings.HasPrefix(name, "/proc/") {
		return target
	}
	if real, err := filepath.EvalSymlinks(name); err == nil {
		return real
	}
	return name
}

// root is the folder of the mount that the program runs in.
func (p *place) root() string {
	best := p.physical
	for _, m := range p.masks { // the longest first, so that the last is the outermost
		if within(p.physical, m.physical) {
			best = m.physical
		}
	}
	return best
}

// argument is an argument as the program gets it: a path of a mount becomes one of the
// host, alone or behind the "=" of an option.
func (p *place) argument(arg string) string {
	if option, value, ok := strings.Cut(arg, "="); ok && strings.HasPrefix(option, "-") {
		return option + "=" + p.argument(value)
	}
	if !strings.HasPrefix(arg, "/") {
		return arg
	}
	clean := path.Clean(arg)
	var best mounted
	for _, m := range p.mounts {
		if (clean == m.Virtual || strings.HasPrefix(clean, m.Virtual+"/")) && len(m.Virtual) > len(best.Virtual) {
			best = m
		}
	}
	if best.Virtual == "" {
		return arg
	}
	return filepath.Join(best.physical, filepath.FromSlash(clean[len(best.Virtual):]))
}

// strays says what is wrong with an argument that seems to lead out of the mounts; empty:
// nothing is. It is for programs that nothing else holds.
func (p *place) strays(arg string) string {
	value := arg
	if strings.HasPrefix(arg, "-") {
		if _, v, ok := strings.Cut(arg, "="); ok {
			value = v
		} else if i := strings.IndexAny(arg, `/\~`); i >= 0 && !strings.HasPrefix(arg, "--") {
			value = arg[i:] // -f/etc/passwd
		}
	}
	const only = "Programs are kept to the mounts: name a path relative to the working directory, or one that begins with a mount"
	for part := range strings.FieldsFuncSeq(value, func(r rune) bool { return r == ':' || r == ',' || r == '=' || r == '@' }) {
		switch slash := filepath.ToSlash(part); {
		case strings.HasPrefix(slash, "/") && p.argument(slash) == slash, strings.HasPrefix(slash, "~"), filepath.IsAbs(part) && !strings.HasPrefix(slash, "/"):
			return "the argument " + native.Shorten(arg) + " is a path outside. " + only
		case strings.Contains("/"+slash+"/", "/../"):
			return "the argument " + native.Shorten(arg) + " has \"..\" in it. " + only
		}
	}
	at := value
	if !path.IsAbs(at) {
		at = path.Join(p.dir.Info().Path, at)
	}
	if _, err := p.fs.Stat(at); errors.Is(err, fs.ErrPermission) {
		return "the argument " + native.Shorten(arg) + " leads outside by a link. " + only
	}
	return ""
}
