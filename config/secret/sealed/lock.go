package sealed

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

const (
	// lockLimit is how long a lock is waited for: whoever holds it reads and writes a
	// file, or renews a token.
	lockLimit = 30 * time.Second
	// lockEvery is how often it is tried meanwhile.
	lockEvery = 10 * time.Millisecond
)

// Lock waits until no other process, and nobody in this one, holds the lock of the
// file. A process that dies gives it up. [File.Read] and [File.Write] do not look
// at it.
func (f File) Lock(ctx context.Context) (unlock func(), err error) { return Lock(ctx, f.Path) }

// Lock is the lock that goes with a path, which need not be one of a file. It is
// kept by an empty file beside it, ".lock" at its end, which stays.
func Lock(ctx context.Context, path string) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, lockLimit)
	defer cancel()
	lock := flock.New(path+".lock", flock.SetPermissions(0o600))
	if _, err := lock.TryLockContext(ctx, lockEvery); err != nil {
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	return func() { _ = lock.Unlock() }, nil // the end of the process does the same
}
