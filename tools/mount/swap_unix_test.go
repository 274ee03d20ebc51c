//go:build unix

package mount_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crewhost/tools/mount"
)

// acts are all that an FS does, on /out/d and on /out/d/f.txt in it. Each returns
// what it read, if it reads.
var acts = map[string]func(fsys *mount.FS) (string, error){
	"read": func(fsys *mount.FS) (string, error) {
		data, err := fsys.ReadFile("/out/d/f.txt", 1000)
		return string(data), err
	},
	"write": func(fsys *mount.FS) (string, error) {
		return "", fsys.WriteFile("/out/d/f.txt", []byte("evil"))
	},
	"write a new file": func(fsys *mount.FS) (string, error) {
		return "", fsys.WriteFile("/out/d/new.txt", []byte("evil"))
	},
	"append": func(fsys *mount.FS) (string, error) {
		return "", fsys.Append("/out/d/f.txt", []byte("evil"))
	},
	"append to a new file": func(fsys *mount.FS) (string, error) {
		return "", fsys.Append("/out/d/new.txt", []byte("evil"))
	},
	"mkdir": func(fsys *mount.FS) (string, error) {
		return "", fsys.MkdirAll("/out/d/x/y/z")
	},
	"remove": func(fsys *mount.FS) (string, error) {
		return "", fsys.Remove("/out/d/f.txt")
	},
	"remove a folder": func(fsys *mount.FS) (string, error) {
		return "", fsys.Remove("/out/d/empty")
	},
	"readdir": func(fsys *mount.FS) (string, error) {
		entries, err := fsys.ReadDir("/out/d")
		return fmt.Sprint(entries), err
	},
	"walk": func(fsys *mount.FS) (string, error) {
		var found []string
		err := fsys.Walk("/out/d", func(path string, _ mount.Entry, _ error) error {
			found = append(found, path)
			return nil
		})
		return fmt.Sprint(found), err
	},
	"dir": func(fsys *mount.FS) (string, error) {
		dir, err := fsys.Dir("/out/d")
		if err != nil {
			return "", err
		}
		entries, err := os.ReadDir(dir.HostPath())
		return fmt.Sprint(entries), errors.Join(err, dir.Close())
	},
}

// touched are the acts that meet with more than the folder /out/d.
var touched = map[string]string{
	"read": "file", "write": "file", "append": "file", "remove": "file",
	"write a new file": "new file", "append to a new file": "new file", "mkdir": "new folder",
}

// swaps are what somebody with a hand in the mounted folder puts in place of a
// folder or a file meanwhile. Each returns how it is undone.
var swaps = map[string]func(root string) (undo func() error, err error){
	"folder for a link out":        instead("out/d", func(at, root string) error { return os.Symlink(filepath.Join(root, "target"), at) }),
	"folder for a link up and out": instead("out/d", func(at, _ string) error { return os.Symlink("../target", at) }),
	"folder for a link to what is read-only": instead("out/d", func(at, _ string) error {
		return os.Symlink("private", at)
	}),
	"folder for a link to what is covered": instead("out/d", func(at, _ string) error {
		return os.Symlink("logs", at)
	}),
	"folder for a pipe": instead("out/d", func(at, _ string) error { return syscall.Mkfifo(at, 0o644) }),
	"folder for a file": instead("out/d", func(at, _ string) error { return os.WriteFile(at, nil, 0o644) }),
	"mount for a link":  instead("out", func(at, root string) error { return os.Symlink(filepath.Join(root, "target"), at) }),
	"file for a link out": instead("out/d/f.txt", func(at, root string) error {
		return os.Symlink(filepath.Join(root, "target/f.txt"), at)
	}),
	"file for a link to what is read-only": instead("out/d/f.txt", func(at, _ string) error {
		return os.Symlink("../private/f.txt", at)
	}),
	"file for a hard link": instead("out/d/f.txt", func(at, root string) error {
		return os.Link(filepath.Join(root, "target/f.txt"), at)
	}),
	"file for a pipe":   instead("out/d/f.txt", func(at, _ string) error { return syscall.Mkfifo(at, 0o644) }),
	"file for a folder": instead("out/d/f.txt", func(at, _ string) error { return os.Mkdir(at, 0o755) }),
	"new file for a link to what is read-only": instead("out/d/new.txt", func(at, _ string) error {
		return os.Symlink("../private/new.txt", at)
	}),
	"new file for a link out": instead("out/d/new.txt", func(at, root string) error {
		return os.Symlink(filepath.Join(root, "target/new.txt"), at)
	}),
	"new folder for a link to what is read-only": instead("out/d/x", func(at, _ string) error {
		return os.Symlink("../private", at)
	}),
}

// instead moves the entry of that name away, where there is one, and puts another
// in its place.
func instead(name string, put func(at, root string) error) func(string) (func() error, error) {
	return func(root string) (func() error, error) {
		at, away := filepath.Join(root, name), filepath.Join(root, "away")
		err := os.Rename(at, away)
		if errors.Is(err, fs.ErrNotExist) {
			return func() error { return os.RemoveAll(at) }, put(at, root)
		}
		undo := func() error { return errors.Join(os.RemoveAll(at), os.Rename(away, at)) }
		return undo, errors.Join(err, put(at, root))
	}
}

// swapWorld is a mount /out (rw, out/private ro) with other folders beside it.
func swapWorld(t *testing.T, root string) (fsys *mount.FS) {
	t.Helper()
	for name, content := range map[string]string{
		"out/d/f.txt": "mine", "out/private/f.txt": "private", "out/logs/f.txt": "covered",
		"target/f.txt": "secret", "log/f.txt": "log", "target/secret": "", "out/logs/covered": "",
	} {
		p := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(p), 0o755), os.WriteFile(p, []byte(content), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Mkdir(filepath.Join(root, "out/d/empty"), 0o755), os.Mkdir(filepath.Join(root, "target/empty"), 0o755),
		os.Mkdir(filepath.Join(root, "out/private/empty"), 0o755)); err != nil {
		t.Fatal(err)
	}
	return open(t, root, "out:/out:rw;private:ro", "log:/out/logs:ro")
}

// guarded is what must stay as it is, whatever happens.
func guarded(t *testing.T, root string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, top := range []string{"target", "log", "out/private", "out/logs", "away/private", "away/logs"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(p string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			content := "/"
			if !d.IsDir() {
				data, err := os.ReadFile(p)
				if err != nil {
					return err
				}
				content = string(data)
			}
			rel, err := filepath.Rel(root, p)
			found[strings.Replace(filepath.ToSlash(rel), "away/", "out/", 1)] = content
			return err
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
			t.Fatal(err)
		}
	}
	return found
}

// TestSwaps does everything that an FS does, while somebody swaps what lies on the
// way: at each step of the act, and so that it is undone at the next step or not.
// Nothing outside of the mount and nothing that is read-only may change, no secret
// may be read, nobody may wait, and no error tells where the mount is.
func TestSwaps(t *testing.T) {
	for act, do := range acts {
		t.Run(act, func(t *testing.T) {
			t.Parallel()
			steps := 0
			fsys := swapWorld(t, t.TempDir())
			fsys.Trap(func(string) { steps++ })
			if _, err := do(fsys); err != nil || steps == 0 {
				t.Fatalf("undisturbed, in %d steps: %v", steps, err)
			}
			for name, swap := range swaps {
				if on, _, _ := strings.Cut(name, " for "); on != "folder" && on != "mount" && touched[act] != on {
					continue
				}
				for at := 1; at <= steps; at++ {
					for _, back := range []bool{false, true} {
						if back && !strings.Contains(name, "link") {
							continue // links are what leads somewhere meanwhile
						}
						t.Run(fmt.Sprintf("%s at %d, and back %t", name, at, back), func(t *testing.T) {
							swapDuring(t, do, swap, at, back)
						})
					}
				}
			}
		})
	}
}

// Whatever comes between, each folder and file that was opened is closed.
func TestNothingStaysOpen(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("what is open is counted on Linux alone")
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // which closes what is forgotten
	before := len(must(os.ReadDir("/proc/self/fd")))
	t.Run("walk further down", func(t *testing.T) {
		fsys := swapWorld(t, t.TempDir())
		for name, want := range map[string]error{"/out/d/empty": nil, "/out/d/none": fs.ErrNotExist} {
			if err := fsys.Walk(name, func(string, mount.Entry, error) error { return nil }); !errors.Is(err, want) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
	if after := len(must(os.ReadDir("/proc/self/fd"))); after > before {
		t.Errorf("a walk leaves %d open", after-before)
	}
	for act, do := range acts {
		for _, name := range []string{"folder for a link out", "folder for a file", "folder for a pipe", "file for a hard link", "file for a pipe", "new folder for a link to what is read-only"} {
			for at := 1; at <= 9; at++ {
				t.Run(fmt.Sprintf("%s, %s at %d", act, name, at), func(t *testing.T) { swapDuring(t, do, swaps[name], at, at%2 == 0) })
			}
		}
		if after := len(must(os.ReadDir("/proc/self/fd"))); after > before {
			t.Errorf("%s leaves %d open", act, after-before)
			before = after
		}
	}
}

func swapDuring(t *testing.T, do func(*mount.FS) (string, error), swap func(string) (func() error, error), at int, back bool) {
	root, err := os.MkdirTemp("", "swapped")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(root)
	fsys := swapWorld(t, root)
	before := guarded(t, root)
	step := 0
	var undo func() error
	fsys.Trap(func(string) {
		var err error
		switch step++; step {
		case at:
			undo, err = swap(root)
		case at + 1:
			if back {
				err = undo()
			}
		}
		if err != nil {
			t.Error(err)
		}
	})
	read, err := do(fsys)
	checkError(t, root, err)
	if strings.Contains(read, "secret") || strings.Contains(read, "covered") {
		t.Errorf("read %q", read)
	}
	if diff := cmp.Diff(before, guarded(t, root)); diff != "" {
		t.Errorf("changed what it must not: %s", diff)
	}
}
