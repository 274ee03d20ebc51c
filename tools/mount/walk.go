package mount

import (
	"errors"
	"io/fs"
	"path"
)

// Walk calls visit for what name leads to and for everything below it: a folder
// before what it holds, and that in the order of names. Mounts below it are
// included, symbolic links are visited and not followed. As with [fs.WalkDir],
// visit may return [fs.SkipDir] and [fs.SkipAll]; other errors end the walk. A
// folder that can't be listed is visited a second time, with the error; where
// visit returns nil then, the walk goes on behind it.
//
// How much is visited is for visit to bound.
func (f *FS) Walk(name string, visit func(path string, e Entry, err error) error) error {
	info, err := f.Stat(name)
	if err != nil {
		return err
	}
	err = f.tour(info.Path, Entry{path.Base(info.Path), info.Mode.Type()}, visit)
	if errors.Is(err, fs.SkipAll) || errors.Is(err, fs.SkipDir) {
		return nil
	}
	return err
}

func (f *FS) tour(at string, e Entry, visit func(string, Entry, error) error) error {
	if err := visit(at, e, nil); err != nil || !e.IsDir() {
		return err
	}
	entries, err := f.ReadDir(at)
	if err != nil {
		return visit(at, e, err)
	}
	for _, child := range entries {
		err := f.tour(path.Join(at, child.Name), child, visit)
		switch {
		case errors.Is(err, fs.SkipDir) && child.IsDir():
		case err != nil:
			return err // SkipDir of a file skips the rest of its folder
		}
	}
	return nil
}
