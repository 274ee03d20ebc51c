package mount

import (
	"os"
	"path"
	"slices"
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
// private. So what they name is looked up, and compared by identity.
func (p place) alias() string {
	if p.info == nil {
		return p.mount.lookalike(p.key, p.name)
	}
	names := p.mount.specials(p.key)
	if slices.Contains(names, p.name) {
		return p.name
	}
	for _, name := range names {
		if info, err := p.dir.Lstat(name); err == nil && os.SameFile(info, p.info) {
			return name
		}
	}
	return p.name
}

// lookalike is the alias where nothing is there yet: what looks alike might be one
// name as soon as it is.
func (m *mounted) lookalike(key, name string) string {
	names := m.specials(key)
	if slices.Contains(names, name) {
		return name
	}
	for _, other := range names {
		if alike(other, name) {
			return other
		}
	}
	return name
}

// specials are the names in the folder that rights spell as key, by which one
// comes to sub-paths and to other mounts.
func (m *mounted) specials(key string) []string {
	var names []string
	for _, special := range m.special {
		if rest, ok := below(special, key); ok {
			name, _, _ := strings.Cut(rest, "/")
			names = append(names, name)
		}
	}
	return names
}

// below returns what p is relative to the folder that holds it.
func below(p, folder string) (string, bool) {
	if folder == "." {
		return p, true
	}
	rest, ok := strings.CutPrefix(p, folder+"/")
	return rest, ok
}
