package mount

import (
	"os"
	"path"
	"strings"
)

// rightsAt are those of the longest sub-path that holds rel, or those of the
// mount. Where rights might spell the path otherwise, as key, the lesser rights
// hold.
func (m *mounted) rightsAt(rel, key string) Rights {
	rights, _ := m.longest(rel)
	if key != rel {
		other, _ := m.longest(key)
		rights = lesser(rights, other)
	}
	return rights
}

// longest returns the rights at rel and the virtual path that has them.
func (m *mounted) longest(rel string) (Rights, string) {
	rights, at := m.Rights, ""
	for _, s := range m.Subs {
		if len(s.Path) > len(at) && within(rel, s.Path) {
			rights, at = s.Rights, s.Path
		}
	}
	return rights, path.Join(m.Virtual, at)
}

func lesser(a, b Rights) Rights {
	switch {
	case a == ReadOnly || b == ReadOnly:
		return ReadOnly
	case a == NoDelete || b == NoDelete:
		return NoDelete
	}
	return ReadWrite
}

// alias is the name of the entry at p as the rights of its mount, and mounts in
// it, spell it. A file system may know one entry by several names: PRIVATE may be
// private. So what they name is looked up, and compared by identity. Where nothing
// is there yet, a name that looks alike counts.
func (p place) alias() string {
	var names []string
	for _, special := range p.mount.special {
		rest, ok := below(special, p.key)
		if !ok {
			continue
		}
		name, _, _ := strings.Cut(rest, "/")
		if name == p.name {
			return name
		}
		names = append(names, name)
	}
	for _, name := range names {
		if p.info == nil && alike(name, p.name) {
			return name
		}
		if p.info != nil {
			if info, err := p.dir.Lstat(name); err == nil && os.SameFile(info, p.info) {
				return name
			}
		}
	}
	return p.name
}

// below returns what p is relative to the folder that holds it.
func below(p, folder string) (string, bool) {
	if folder == "." {
		return p, true
	}
	rest, ok := strings.CutPrefix(p, folder+"/")
	return rest, ok
}
