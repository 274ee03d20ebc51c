// Package mount is the file system that tools see: folders of the host, mounted
// at virtual paths with rights.
//
// A [Mount] says which folder appears where, and what may be done below it. An
// [FS] holds several of them open. A tool speaks virtual paths alone, and so does
// every error of an FS: where a folder really is, no model learns.
//
//	m, err := mount.Parse("./out:/output:rw;drafts:ro")
//	fsys, err := mount.Open([]mount.Mount{m.In(dir)})
//	defer fsys.Close()
//	err = fsys.WriteFile("/output/report.md", data)
//
// # Paths
//
// A path is cleaned first, so that "." and ".." mean what they say before any
// right is looked at. The mount with the longest matching root holds it; within
// the mount, the longest matching sub-path gives the rights. Symbolic links are
// followed, step by step, as long as they stay inside their mount, and the rights
// are those of the place that they lead to. A relative path is resolved against
// [FS.Base].
//
// Folders are held by [os.Root], which no path leaves even where somebody swaps
// folders for links meanwhile. Devices, pipes and sockets are refused, without
// being opened.
package mount

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Rights say what may be done with files and folders.
type Rights string

// The rights. Everything can be read.
const (
	ReadOnly Rights = "ro"
	// ReadWrite allows to create, change and remove.
	ReadWrite Rights = "rw"
	// NoDelete allows to create and change, and not to remove.
	NoDelete Rights = "rwnd"
)

// CanWrite reports whether files may be created and changed.
func (r Rights) CanWrite() bool { return r == ReadWrite || r == NoDelete }

// CanRemove reports whether files may be removed.
func (r Rights) CanRemove() bool { return r == ReadWrite }

// Mount is a folder of the host at a virtual path.
type Mount struct {
	// ID tells mounts of one root apart, of which one is chosen. It is a ULID in
	// capitals, or empty.
	ID string
	// Physical is the folder. Open resolves a relative one against the
	// working directory; see [Mount.In].
	Physical string
	// Virtual is where it appears: a clean absolute path other than "/".
	Virtual string
	Rights  Rights
	// Subs are the folders and files below that have other rights.
	Subs []Sub
}

// Sub is the rights of a part of a mount.
type Sub struct {
	Path   string // relative to the mount, clean
	Rights Rights
}

// In returns m with a relative physical path resolved against dir.
func (m Mount) In(dir string) Mount {
	if !filepath.IsAbs(m.Physical) {
		m.Physical = filepath.Join(dir, m.Physical)
	}
	return m
}

// String returns the specification that Parse reads.
func (m Mount) String() string {
	physical := m.Physical
	if strings.ContainsAny(physical, ":;|") || strings.IndexAny(physical, `"'`) == 0 {
		quote := `"`
		if strings.Contains(physical, quote) {
			quote = "'"
		}
		physical = quote + physical + quote
	}
	spec := physical + ":" + m.Virtual + ":" + string(m.Rights)
	if m.ID != "" {
		spec = m.ID + "|" + spec
	}
	for _, s := range m.Subs {
		spec += ";" + s.Path + ":" + string(s.Rights)
	}
	return spec
}

// The virtual roots that a host mounts for itself.
var reserved = []string{"/crew", "/credentials", "/llm-logs", "/sandbox", "/script"}

const maxSpec = 16 << 10 // bytes of a specification

// Parse reads a specification of the form
//
//	[id|]physical:virtual:rights[;sub:rights…]
//
// where id is a ULID, rights are ro, rw or rwnd, and sub is relative to the
// virtual path. A physical path that holds a colon, a semicolon or a bar stands in
// single or double quotes; a drive letter needs none.
func Parse(spec string) (Mount, error) {
	m, err := parse(spec)
	if err != nil {
		return Mount{}, fmt.Errorf("mount %q: %w", spec, err)
	}
	return m, nil
}

func parse(spec string) (Mount, error) {
	if len(spec) > maxSpec {
		return Mount{}, fmt.Errorf("longer than %d bytes", maxSpec)
	}
	if !utf8.ValidString(spec) || strings.ContainsFunc(spec, unicode.IsControl) {
		return Mount{}, errors.New("holds control characters or is no UTF-8")
	}
	var m Mount
	if id, rest, ok := cutID(spec); ok {
		var err error
		if m.ID, err = ParseID(id); err != nil {
			return Mount{}, fmt.Errorf(`%w; quote a physical path that holds "|"`, err)
		}
		spec = rest
	}
	rest := spec
	if spec != "" && (spec[0] == '"' || spec[0] == '\'') {
		end := strings.IndexByte(spec[1:], spec[0])
		if end < 0 {
			return Mount{}, errors.New("the quote is not closed")
		}
		m.Physical, rest = spec[1:1+end], spec[end+2:]
		if !strings.HasPrefix(rest, ":") {
			return Mount{}, errors.New("a colon must follow the closing quote")
		}
		rest = rest[1:]
	}
	parts := strings.Split(rest, ";")
	fields := strings.Split(parts[0], ":")
	if m.Physical == "" && len(fields) == 4 && len(fields[0]) == 1 && asciiLetter(fields[0][0]) &&
		(strings.HasPrefix(fields[1], `\`) || strings.HasPrefix(fields[1], "/")) {
		fields = append([]string{fields[0] + ":" + fields[1]}, fields[2:]...)
	}
	if spec != rest {
		fields = append([]string{m.Physical}, fields...)
	}
	if len(fields) != 3 {
		return Mount{}, errors.New(`not of the form physical:virtual:rights, as in ./out:/output:rw (quote a physical path that holds ":" or ";")`)
	}
	m.Physical, m.Virtual, m.Rights = fields[0], fields[1], Rights(fields[2])
	for _, part := range parts[1:] {
		at := strings.LastIndexByte(part, ':')
		if at < 0 {
			return Mount{}, fmt.Errorf("%q is not of the form sub:rights", part)
		}
		m.Subs = append(m.Subs, Sub{Path: part[:at], Rights: Rights(part[at+1:])})
	}
	if err := m.check(); err != nil {
		return Mount{}, err
	}
	return m, nil
}

// cutID splits off what stands before a bar that is in no quotes and before any
// other part.
func cutID(spec string) (id, rest string, ok bool) {
	at := strings.IndexAny(spec, "|:;\"'")
	if at < 0 || spec[at] != '|' {
		return "", spec, false
	}
	return spec[:at], spec[at+1:], true
}

// ParseID reads the id of a mount, in letters of either case.
func ParseID(id string) (string, error) {
	upper := strings.ToUpper(id)
	ok := len(id) == 26 && upper[0] <= '7'
	for _, r := range upper {
		ok = ok && strings.ContainsRune("0123456789ABCDEFGHJKMNPQRSTVWXYZ", r)
	}
	if !ok {
		return "", fmt.Errorf("%q is no id of a mount, which is a ULID such as 01ARZ3NDEKTSV4RRFFQ69G5FAV", shown(id))
	}
	return upper, nil
}

func asciiLetter(b byte) bool { return 'a' <= b|0x20 && b|0x20 <= 'z' }

// check reports the first fault of m.
func (m Mount) check() error {
	if m.ID != "" {
		if _, err := ParseID(m.ID); err != nil {
			return err
		}
	}
	switch {
	case m.Physical == "":
		return errors.New("no folder is named")
	case !strings.HasPrefix(m.Virtual, "/"):
		return fmt.Errorf(`the virtual path %q does not start with "/"`, m.Virtual)
	case m.Virtual == "/":
		return errors.New(`"/" can't be mounted; give the folder a name, such as /data`)
	case path.Clean(m.Virtual) != m.Virtual:
		return fmt.Errorf("the virtual path %q is not clean; write %s", m.Virtual, path.Clean(m.Virtual))
	}
	if err := checkName(m.Virtual); err != nil {
		return fmt.Errorf("the virtual path %q: %w", m.Virtual, err)
	}
	for _, r := range reserved {
		if within(m.Virtual, r) {
			return fmt.Errorf("%s is reserved for the host itself (reserved are %s); take another name", r, strings.Join(reserved, ", "))
		}
	}
	if err := checkRights(m.Rights); err != nil {
		return err
	}
	var seen []string
	for _, s := range m.Subs {
		if s.Path == "" || path.IsAbs(s.Path) || path.Clean(s.Path) != s.Path || !filepath.IsLocal(s.Path) || s.Path == "." {
			return fmt.Errorf("the sub-path %q is not a clean path below the mount, such as drafts or a/b", s.Path)
		}
		if err := checkName(s.Path); err != nil {
			return fmt.Errorf("the sub-path %q: %w", s.Path, err)
		}
		if slices.Contains(seen, s.Path) {
			return fmt.Errorf("the sub-path %q has rights twice", s.Path)
		}
		seen = append(seen, s.Path)
		if err := checkRights(s.Rights); err != nil {
			return err
		}
	}
	return nil
}

func checkRights(r Rights) error {
	switch r {
	case ReadOnly, ReadWrite, NoDelete:
		return nil
	}
	return fmt.Errorf("the rights %q are none of ro, rw and rwnd", string(r))
}
