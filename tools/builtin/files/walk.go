package files

import (
	"context"
	"fmt"
	"io/fs"
	"strings"

	"crewhost/tools/mount"
	"crewhost/tools/native"
)

const (
	maxDepth   = 64
	maxVisited = 200_000 // entries looked at for one call
)

// errEnough ends a walk that has found what it may give.
var errEnough = fs.SkipAll

// walker visits what is in a folder, depth first and in the order of names. Symbolic
// links are visited and not followed.
type walker struct {
	fsys      *mount.FS
	root      string
	recursive bool
	hidden    bool     // visit what begins with a dot, too
	exclude   []string // patterns of what is not visited, with all below it
	visit     func(full string, e mount.Entry) error

	visited int
	deep    bool     // folders below maxDepth were left out
	many    bool     // it ended after maxVisited entries
	skipped []string // folders that could not be listed
}

// walk visits what is in the root. It is an error that the root can't be listed.
func (w *walker) walk(ctx context.Context) error {
	return w.fsys.Walk(w.root, func(full string, e mount.Entry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		switch {
		case err != nil && full == w.root:
			return err
		case err != nil:
			w.skipped = append(w.skipped, full)
			return nil
		case full == w.root && e.IsDir():
			return nil
		case full == w.root:
			_, err := w.fsys.ReadDir(full) // for its error
			return err
		}
		if w.visited++; w.visited > maxVisited {
			w.many = true
			return errEnough
		}
		if !w.hidden && strings.HasPrefix(e.Name, ".") || matchesAny(w.exclude, w.root, full) {
			return past(e)
		}
		if err := w.visit(full, e); err != nil {
			return err
		}
		if !w.recursive {
			return past(e)
		}
		if e.IsDir() && strings.Count(full[len(w.root):], "/") > maxDepth {
			w.deep = true
			return fs.SkipDir
		}
		return nil
	})
}

// past goes past an entry: of a folder, past all that it holds.
func past(e mount.Entry) error {
	if e.IsDir() {
		return fs.SkipDir
	}
	return nil
}

// notes say what was left out.
func (w *walker) notes() []string {
	var notes []string
	if w.many {
		notes = append(notes, fmt.Sprintf("stopped after %d files and folders; name a folder below %s", maxVisited, w.root))
	}
	if len(w.skipped) > 0 {
		notes = append(notes, fmt.Sprintf("%s could not be listed, the first is %s", native.Plural(len(w.skipped), "folder", "folders"), w.skipped[0]))
	}
	if w.deep {
		notes = append(notes, fmt.Sprintf("folders more than %d levels down were left out", maxDepth))
	}
	return notes
}

// bracketed are notes, a line each.
func bracketed(notes []string) string {
	if len(notes) == 0 {
		return ""
	}
	return "[" + strings.Join(notes, "]\n[") + "]"
}
