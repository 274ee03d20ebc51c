package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"crewhost/runner/process"
	"crewhost/tools/mount"
)

// deliverer leaves deliverables in the mounts.
type deliverer struct{ fs *mount.FS }

// Deliver implements [process.Deliverer]. Folders that are missing are made.
func (d deliverer) Deliver(ctx context.Context, name string, content []byte) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	if err := d.fs.MkdirAll(path.Dir(path.Clean(name))); err != nil {
		return err
	}
	return d.fs.WriteFile(name, content)
}

// Stamp implements [process.Deliverer].
func (d deliverer) Stamp(_ context.Context, path string) (process.Stamp, error) {
	info, err := d.fs.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return process.Stamp{}, nil
	case err != nil:
		return process.Stamp{}, err
	case info.IsDir():
		return process.Stamp{}, nil
	default:
		return process.Stamp{Modified: info.ModTime, Size: info.Size}, nil
	}
}

// maxSchema bounds a schema file, in bytes.
const maxSchema = 1 << 20

// schemaReader reads the schema files of a crew.
func schemaReader(crewPath string) func(context.Context, string) ([]byte, error) {
	return func(_ context.Context, path string) ([]byte, error) { return readSchema(crewPath, path) }
}

// readSchema reads a schema file that stands beside or below the crew; it reads
// no others.
func readSchema(crewPath, path string) ([]byte, error) {
	dir := crewPath
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		dir = filepath.Dir(dir)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("opening the crew's folder: %w", err)
	}
	defer root.Close()
	name := filepath.FromSlash(strings.TrimPrefix(path, "/crew/"))
	info, err := root.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // a pipe would hold the run up for ever
		return nil, fmt.Errorf("%s is no regular file", path)
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxSchema+1))
	if err == nil && len(data) > maxSchema {
		err = fmt.Errorf("%s is larger than %d bytes", path, maxSchema)
	}
	return data, err
}
