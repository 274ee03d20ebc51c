package mcptest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"crewhost/mcp/mcptest/notebook"
)

// notes is the name by which a test binary that calls [Main] is the server of package
// notebook, as crews start it.
const notes = "notes"

// IsNotes reports whether this process was started as the server of package notebook.
func IsNotes() bool { return filepath.Base(os.Args[0]) == notes }

// RunNotes is that server, and returns the exit code of its process.
func RunNotes() int {
	if err := notebook.Run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// WithNotes puts the server on the PATH of a test under its name. TestMain has to know
// it by [IsNotes].
func WithNotes(t *testing.T) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(self, filepath.Join(dir, notes)); err != nil {
		t.Skip(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
}
