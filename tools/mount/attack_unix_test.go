//go:build unix

package mount_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"crewhost/tools/mount"
)

// A file with other names may be one from outside.
func TestHardLinks(t *testing.T) {
	_, root := world(t)
	if err := os.Link(filepath.Join(root, "outside.txt"), filepath.Join(root, "out/hard")); err != nil {
		t.Fatal(err)
	}
	link(t, root, "hard", "out/soft")
	fsys := open(t, root, "out:/out:rw")
	for _, name := range []string{"/out/hard", "/out/soft"} {
		for act, do := range map[string]func() error{
			"read":      func() error { _, err := fsys.ReadFile(name, 100); return err },
			"open":      func() error { _, err := fsys.Open(name); return err },
			"write":     func() error { return fsys.WriteFile(name, []byte("mine")) },
			"create":    func() error { _, err := fsys.Create(name, 10); return err },
			"append":    func() error { return fsys.Append(name, []byte("mine")) },
			"can write": func() error { return fsys.CanWrite(name) },
		} {
			err := do()
			checkError(t, root, err)
			if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "tools.files.hard_links") {
				t.Errorf("%s %s: %v, want it refused", act, name, err)
			}
		}
	}
	untouched(t, root)

	var ms []mount.Mount
	m, err := mount.Parse("out:/out:rw")
	if err != nil {
		t.Fatal(err)
	}
	allowing, err := mount.Open(append(ms, m.In(root)), mount.HardLinks)
	if err != nil {
		t.Fatal(err)
	}
	defer allowing.Close()
	if got, err := read(t, allowing, root, "/out/hard"); err != nil || got != "secret" {
		t.Errorf("where hard links are let through: %q, %v", got, err)
	}
	// Replaced, the name is a file of its own.
	if err := allowing.WriteFile("/out/hard", []byte("mine")); err != nil {
		t.Error(err)
	}
	untouched(t, root)
	// A name that goes is one name less.
	if err := os.Link(filepath.Join(root, "outside.txt"), filepath.Join(root, "out/again")); err != nil {
		t.Fatal(err)
	}
	if err := fsys.Remove("/out/again"); err != nil {
		t.Error(err)
	}
	untouched(t, root)
}

// A file system that knows a file by another spelling is told by identity, not by
// the name of the system. Two names of one file are what it looks like.
func TestRightsGoByIdentity(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"d/private.txt", "d/open.txt", "e/open.txt"} {
		p := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(p), 0o755), os.WriteFile(p, []byte("old"), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	for name, other := range map[string]string{"d/private.txt": "d/PRIVATE.TXT", "e/open.txt": "e/OPEN.TXT"} {
		if err := os.Link(filepath.Join(root, name), filepath.Join(root, other)); err != nil {
			t.Fatal(err)
		}
	}
	var ms []mount.Mount
	for _, spec := range []string{"d:/d:rw;private.txt:ro", "e:/e:ro;open.txt:rw"} {
		m, err := mount.Parse(spec)
		if err != nil {
			t.Fatal(err)
		}
		ms = append(ms, m.In(root))
	}
	fsys, err := mount.Open(ms, mount.HardLinks)
	if err != nil {
		t.Fatal(err)
	}
	defer fsys.Close()
	for name, ok := range map[string]bool{"/d/PRIVATE.TXT": false, "/d/OPEN.TXT": true, "/e/OPEN.TXT": true} {
		for act, do := range map[string]func() error{
			"append":    func() error { return fsys.Append(name, []byte("new")) },
			"can write": func() error { return fsys.CanWrite(name) },
		} {
			if err := do(); (err == nil) != ok {
				t.Errorf("%s %s: %v, want it to work: %t", act, name, err, ok)
			}
		}
	}
	if err := fsys.Remove("/d/PRIVATE.TXT"); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("removing what is read-only by another spelling: %v", err)
	}
	if info, err := fsys.Stat("/d/PRIVATE.TXT"); err != nil || info.Path != "/d/private.txt" || info.Rights != mount.ReadOnly {
		t.Errorf("got %+v, %v", info, err)
	}
}

// The system's own files are nobody's, even where all of a machine is mounted.
func TestSystemFiles(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("a Linux matter")
	}
	fsys, err := mount.Open([]mount.Mount{{Physical: "/", Virtual: "/all", Rights: mount.ReadWrite}})
	if err != nil {
		t.Fatal(err)
	}
	defer fsys.Close()
	for _, name := range []string{
		"/proc/self/environ", "/proc/self/mem", "/proc/self/fd/0", "/proc/1/root/etc/passwd", "/proc/self/cwd/go.mod", "/proc/sys/kernel/core_pattern",
		"/sys/kernel/uevent_helper", "/sys/power/state", "/proc/self/task",
	} {
		for act, do := range map[string]func() error{
			"read":    func() error { _, err := fsys.ReadFile("/all"+name, 100); return err },
			"stat":    func() error { _, err := fsys.Stat("/all" + name); return err },
			"write":   func() error { return fsys.WriteFile("/all"+name, []byte("x")) },
			"append":  func() error { return fsys.Append("/all"+name, []byte("x")) },
			"mkdir":   func() error { return fsys.MkdirAll("/all" + name + "/x") },
			"remove":  func() error { return fsys.Remove("/all" + name) },
			"readdir": func() error { _, err := fsys.ReadDir("/all" + name); return err },
			"dir":     func() error { _, err := fsys.Dir("/all" + name); return err },
		} {
			if err := do(); !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "it lies in the system's") {
				t.Errorf("%s %s: %v, want it refused", act, name, err)
			}
		}
	}
	for _, name := range []string{"/all/proc", "/all/sys"} {
		if _, err := fsys.ReadDir(name); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("listing %s: %v", name, err)
		}
	}
	for _, name := range []string{"/all/dev/null", "/all/dev/zero", "/all/dev/tty", "/all/dev/fd/0", "/all/dev/stdin"} {
		if f, err := fsys.Open(name); err == nil {
			t.Errorf("%s was opened: %+v", name, f.Info())
		}
	}
	for _, dir := range []string{"/proc", "/proc/self", "/sys"} {
		_, err := mount.Open([]mount.Mount{{Physical: dir, Virtual: "/d", Rights: mount.ReadOnly}})
		if err == nil || !strings.Contains(err.Error(), "it lies in the system's") {
			t.Errorf("%s was mounted: %v", dir, err)
		}
	}
}
