package mount_test

import (
	"os"
	"testing"
)

// TestMain has the worlds of the tests in memory where the system keeps a folder
// there: there are thousands, and each file that is replaced waits for the disk.
func TestMain(m *testing.M) {
	if dir, err := os.MkdirTemp("/dev/shm", "mount"); err == nil {
		defer os.RemoveAll(dir)
		if err := os.Setenv("TMPDIR", dir); err != nil {
			panic(err)
		}
	}
	m.Run()
}
