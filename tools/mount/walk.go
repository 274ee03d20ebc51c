package mount

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
)

// maxDepth bounds the folders in one another that Walk holds open.
const maxDepth = 128

// Visit is what [FS.Walk] calls with the virtual path of what it finds. err says
// why a folder, which was visited before, can't be listed.
type Visit func(path string, e Entry, err error) error

// Walk calls visit for what name leads to and for everything below it: a folder
// before what it holds, and that in the order of names. Mounts below it are
// included, symbolic links are visited and not followed. As with [fs.WalkDir],
// visit may return [fs.SkipDir] and [fs.SkipAll]; other errors end the walk. A
// folder that can't be listed is visited a second time, with the error; where
// visit returns nil then, the walk goes on behind it. So are folders that lie more
// than 128 deep.
//
// How much is visited is for visit to bound.
func (f *FS) Walk(name string, visit Visit) error {
	p, err := f.resolve(name, true)
	if err == nil && p.mount != nil && p.info == nil {
		p.close()
		err = missing(p)
	}
	if err != nil {
		return wrap("walk", name, err)
	}
	defer p.close()
	info := p.describe()
	err = f.tour(p, Entry{path.Base(info.Path), info.Mode.Type()}, 0, visit)
	if errors.Is(err, fs.SkipAll) || errors.Is(err, fs.SkipDir) {
		return nil
	}
	return err
}

// tour visits what is at p, which its caller closes, and below it.
func (f *FS) tour(p place, e Entry, depth int, visit Visit) error {
	if err := visit(p.virtual, e, nil); err != nil || !e.IsDir() {
		return err
	}
	failed := func(err error) error { return visit(p.virtual, e, wrap("readdir", p.virtual, err)) }
	if depth == maxDepth {
		return failed(&reason{fmt.Sprintf("the folder lies more than %d deep", maxDepth), ErrTooLarge})
	}
	var folder *os.Root
	var entries []Entry
	if p.mount != nil {
		var err error
		if folder, err = f.enter(p); err != nil {
			return failed(err)
		}
		if folder != p.mount.root {
			defer folder.Close()
		}
		if entries, err = list(folder); err != nil {
			return failed(err)
		}
	}
	for _, child := range f.withMounts(p.virtual, entries) {
		err := f.tourChild(p, folder, child, depth, visit)
		switch {
		case errors.Is(err, fs.SkipDir) && child.IsDir():
		case err != nil:
			return err // SkipDir of a file skips the rest of its folder
		}
	}
	return nil
}

// tourChild visits an entry of the open folder at p.
func (f *FS) tourChild(p place, folder *os.Root, e Entry, depth int, visit Visit) error {
	virtual := path.Join(p.virtual, e.Name)
	if !e.IsDir() {
		return visit(virtual, e, nil)
	}
	child := p
	child.dir, child.name = folder, e.Name
	err := checkName(virtual)
	switch {
	case err != nil:
	case f.holder(virtual) != p.mount || p.mount == nil:
		if child, err = f.resolve(virtual, false); err == nil {
			defer child.close()
		}
	default:
		_, err = f.step(&child, "", false)
		child.virtual = virtual
		if err == nil && (child.info == nil || !child.info.IsDir()) {
			err = errChanged
		}
	}
	if err != nil {
		if err := visit(virtual, e, nil); err != nil {
			return err
		}
		return visit(virtual, e, wrap("readdir", virtual, err))
	}
	return f.tour(child, e, depth+1, visit)
}
