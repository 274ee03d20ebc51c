package mcptest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// InstallNotes builds the server of package notes into dir, as a crew that starts it
// by its name wants it on the PATH.
func InstallNotes(ctx context.Context, dir string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-o", filepath.Join(dir, "notes"), "crewhost/mcp/mcptest/notes")
	cmd.Env = os.Environ()
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building the notes server: %w: %s", err, out)
	}
	return nil
}
