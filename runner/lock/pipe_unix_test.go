//go:build unix

package lock_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"crewhost/runner/lock"
)

// A pipe that nobody writes to is refused, and waited for by nobody.
func TestReadRefusesAPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "crewhost.lock")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := lock.Read(path); err == nil || !strings.Contains(err.Error(), "is no regular file") {
		t.Errorf("%v", err)
	}
}
