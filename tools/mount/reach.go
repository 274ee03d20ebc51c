package mount

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
)

// Reach returns where a file of the host appears in the mount, and with which
// rights; ok is false where it does not.
func (m Mount) Reach(host string) (virtual string, rights Rights, ok bool) {
	rel, err := filepath.Rel(resolved(m.Physical), resolved(host))
	if err != nil || !filepath.IsLocal(rel) {
		return "", "", false
	}
	rel = filepath.ToSlash(rel)
	rights, _ = (&mounted{Mount: m}).longest(rel)
	return path.Join(m.Virtual, rel), rights, true
}

// resolved is an absolute path without symbolic links, as far as it is there.
func resolved(host string) string {
	abs, err := filepath.Abs(host)
	if err != nil {
		return host
	}
	if clean, err := filepath.EvalSymlinks(abs); err == nil {
		return clean
	}
	if dir := filepath.Dir(abs); dir != abs {
		return filepath.Join(resolved(dir), filepath.Base(abs))
	}
	return abs
}

// Overlaps says, a line each, where one mount protects what another does not: the
// folder of the one lies in the folder of the other, which gives more rights.
func Overlaps(mounts []Mount) []string {
	var lines []string
	for _, m := range mounts {
		for _, part := range append([]Sub{{Path: ".", Rights: m.Rights}}, m.Subs...) {
			for _, other := range mounts {
				at, rights, ok := other.Reach(filepath.Join(m.Physical, filepath.FromSlash(part.Path)))
				if !ok || other.Virtual == m.Virtual || lesser(rights, part.Rights) == rights || covered(at, other, mounts) {
					continue
				}
				lines = append(lines, fmt.Sprintf("what is %s at %s is %s at %s, which shows the same files",
					part.Rights, path.Join(m.Virtual, part.Path), rights, at))
			}
		}
	}
	return lines
}

// covered reports whether virtual, which lies in m, belongs to another mount in it.
func covered(virtual string, m Mount, mounts []Mount) bool {
	return slices.ContainsFunc(mounts, func(other Mount) bool {
		return len(other.Virtual) > len(m.Virtual) && within(virtual, other.Virtual)
	})
}
