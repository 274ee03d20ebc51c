//go:build unix

package mount_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"crewhost/tools/mount"
)

// TestSpecialFiles would hang on the pipe if one were opened the plain way.
func TestSpecialFiles(t *testing.T) {
	root, err := os.MkdirTemp("", "m") // short: a socket's path is bounded
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	if err := os.Mkdir(filepath.Join(root, "out"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(root, "out/pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(root, "out/sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	link(t, root, "pipe", "out/link")
	fsys := open(t, root, "out:/out:rw", "/dev:/dev:rw")
	for _, name := range []string{"/out/pipe", "/out/sock", "/out/link", "/dev/null", "/dev/zero"} {
		_, err := fsys.Open(name)
		checkError(t, root, err)
		if !errors.Is(err, mount.ErrNotRegular) {
			t.Errorf("open %s: %v", name, err)
		}
		for op, act := range map[string]func(string, []byte) error{"write": fsys.WriteFile, "append": fsys.Append} {
			err := act(name, []byte("x"))
			checkError(t, root, err)
			if !errors.Is(err, mount.ErrNotRegular) {
				t.Errorf("%s %s: %v", op, name, err)
			}
		}
	}
}
