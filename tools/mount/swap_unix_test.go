//go:build unix

package mount

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestFileSwappedForAPipe puts a pipe in a file's place after it was looked at
// and before it is opened. An open that waits for the other end would hang.
func TestFileSwappedForAPipe(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "f")
	if err := os.WriteFile(file, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	fsys, err := Open([]Mount{{Physical: dir, Virtual: "/d", Rights: ReadWrite}})
	if err != nil {
		t.Fatal(err)
	}
	defer fsys.Close()
	p, err := fsys.writable("/d/f")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Remove(file), syscall.Mkfifo(file, 0o644)); err != nil {
		t.Fatal(err)
	}
	if _, err := openRegular(p, os.O_RDONLY); !errors.Is(err, ErrNotRegular) {
		t.Errorf("reading: %v, want ErrNotRegular", err)
	}
	if _, err := openRegular(p, os.O_WRONLY|os.O_APPEND); err == nil {
		t.Error("a pipe without a reader was opened for writing")
	}
}
