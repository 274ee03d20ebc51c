package sealed

import (
	"os"
	"path/filepath"
)

// Replace writes a file that needs no seal whole, or not at all: of mode 0600, in a
// folder that is made with mode 0700 where it is missing.
func Replace(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return replace(path, data)
}
