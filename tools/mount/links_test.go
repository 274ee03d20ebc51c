package mount_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

func TestSymbolicLinks(t *testing.T) {
	fsys, root := world(t)
	for name, target := range map[string]string{
		"in/good":        "sub/b.txt",
		"in/dir":         "sub",
		"in/chain":       "good",
		"in/up":          "../outside.txt",
		"in/deep":        "sub/../../outside.txt",
		"in/abs":         filepath.Join(root, "outside.txt"),
		"in/abs-inside":  filepath.Join(root, "in", "a.txt"),
		"in/loop":        "loop",
		"in/parent":      "..",
		"in/passwd":      "/etc/passwd",
		"in/dangling":    "none.txt",
		"out/to-private": "private",
		"out/to-p":       "private/p.txt",
		"out/to-logs":    "logs",
		"out/to-new":     "fresh.txt",
		"out/evil":       "../outside.txt",
		"out/evil-new":   "../created.txt",
	} {
		link(t, root, target, filepath.FromSlash(name))
	}
	for name, want := range map[string]string{
		"/in/good": "beta", "/in/dir/b.txt": "beta", "/in/chain": "beta",
		"/out/to-p": "private", "/out/to-logs/l.txt": "log", // through the mount that covers it
	} {
		if got, err := read(t, fsys, root, name); err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %q", name, got, err, want)
		}
	}
	for _, name := range []string{"/in/up", "/in/deep", "/in/abs", "/in/abs-inside", "/in/parent/outside.txt", "/in/passwd"} {
		if got, err := read(t, fsys, root, name); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("%s: got %q, %v, want it refused", name, got, err)
		}
	}
	if _, err := read(t, fsys, root, "/in/loop"); err == nil {
		t.Error("a loop of links has an end")
	}
	if _, err := read(t, fsys, root, "/in/dangling"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a dangling link: %v", err)
	}
	if _, err := read(t, fsys, root, "/out/to-logs/hidden.txt"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a link shows what a mount covers: %v", err)
	}

	// Rights are those of the place that a link leads to.
	for _, name := range []string{"/out/to-private/new.txt", "/out/to-p", "/out/to-logs/new.txt", "/out/evil", "/out/evil-new"} {
		for op, act := range map[string]func(string, []byte) error{"write": fsys.WriteFile, "append": fsys.Append} {
			err := act(name, []byte("x"))
			checkError(t, root, err)
			if !errors.Is(err, fs.ErrPermission) {
				t.Errorf("%s %s: %v, want it refused", op, name, err)
			}
		}
	}
	if err := fsys.MkdirAll("/out/to-private/d"); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("making a folder behind a link: %v", err)
	}
	if err := fsys.WriteFile("/out/to-new", []byte("through")); err != nil {
		t.Error(err)
	}
	if got, _ := read(t, fsys, root, "/out/fresh.txt"); got != "through" {
		t.Errorf("writing through a link gave %q", got)
	}

	// Removing a link leaves what it leads to.
	if err := fsys.Remove("/out/to-p"); err != nil {
		t.Error(err)
	}
	if err := fsys.Remove("/out/to-private/p.txt"); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("removing behind a link: %v", err)
	}
	if err := fsys.Remove("/out/evil"); err != nil {
		t.Error(err)
	}
	for name, want := range map[string]string{"outside.txt": "secret", "out/private/p.txt": "private"} {
		if got, err := os.ReadFile(filepath.Join(root, name)); err != nil || string(got) != want {
			t.Errorf("%s now holds %q, %v", name, got, err)
		}
	}
	if _, err := os.Lstat(filepath.Join(root, "created.txt")); !errors.Is(err, fs.ErrNotExist) {
		t.Error("a file was created outside")
	}
}

// TestFolderSwappedForALink is the race that no look before the act can win: the
// root must hold by itself.
func TestFolderSwappedForALink(t *testing.T) {
	fsys, root := world(t)
	victim, spare := filepath.Join(root, "out/swap"), filepath.Join(root, "out/spare")
	outside := filepath.Join(root, "target")
	for _, d := range []string{victim, outside} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	link(t, root, outside, "out/trap")
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			default:
			}
			_ = os.Rename(victim, spare)
			_ = os.Rename(filepath.Join(root, "out/trap"), victim)
			_ = os.Rename(victim, filepath.Join(root, "out/trap"))
			_ = os.Rename(spare, victim)
		}
	})
	for i := range 200 {
		if i%4 == 0 { // each waits for the disk
			_ = fsys.WriteFile(fmt.Sprintf("/out/swap/f%d", i), []byte("x"))
		}
		_ = fsys.MkdirAll(fmt.Sprintf("/out/swap/d%d", i))
	}
	close(done)
	wg.Wait()
	left, err := os.ReadDir(outside)
	if err != nil || len(left) != 0 {
		t.Errorf("%d files came to lie outside (%v)", len(left), err)
	}
}
