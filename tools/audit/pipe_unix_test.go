//go:build unix

package audit_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"crewhost/tools/audit"
)

// A pipe that nobody writes to is refused, and waited for by nobody.
func TestVerifyRefusesAPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := audit.Verify(t.Context(), path, audit.Head{}); err == nil || !strings.Contains(err.Error(), "is no regular file") {
		t.Errorf("%v", err)
	}
}
