package mount_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"crewhost/tools/mount"
)

// Replace writes only where nobody has come before it.
func TestReplace(t *testing.T) {
	for name, tt := range map[string]struct {
		path string
		came func(at string) error // just before the file would be replaced
		want error
	}{
		"as it was":           {path: "old.txt"},
		"still not there":     {path: "new.txt"},
		"changed":             {path: "old.txt", came: func(at string) error { return os.WriteFile(at, []byte("theirs"), 0o644) }, want: mount.ErrChanged},
		"removed":             {path: "old.txt", came: os.Remove, want: mount.ErrChanged},
		"there now":           {path: "new.txt", came: func(at string) error { return os.WriteFile(at, []byte("theirs"), 0o644) }, want: fs.ErrExist},
		"a folder there now":  {path: "new.txt", came: func(at string) error { return os.Mkdir(at, 0o755) }, want: fs.ErrExist},
		"another of its kind": {path: "old.txt", came: func(at string) error { return sameButOther(at) }, want: mount.ErrChanged},
	} {
		t.Run(name, func(t *testing.T) {
			fsys, root := world(t)
			was, err := fsys.Stat("/out/" + tt.path)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Fatal(err)
			}
			at := filepath.Join(root, "out", tt.path)
			fsys.Trap(func(step string) {
				if tt.came != nil && strings.HasPrefix(step, "replace ") {
					if err := tt.came(at); err != nil {
						t.Error(err)
					}
				}
			})
			err = fsys.Replace("/out/"+tt.path, was, []byte("mine"))
			checkError(t, root, err)
			data, _ := os.ReadFile(at)
			if !errors.Is(err, tt.want) || tt.want == nil && err != nil || (err == nil) != (string(data) == "mine") {
				t.Errorf("got %v, want %v; it holds %q", err, tt.want, data)
			}
			if left, err := filepath.Glob(filepath.Join(root, "out", ".crewhost-*")); err != nil || left != nil {
				t.Errorf("left %v, %v", left, err)
			}
		})
	}
}

// sameButOther puts another file of the same size and time in a file's place.
func sameButOther(at string) error {
	info, err := os.Stat(at)
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(at+"2", []byte("OLD"), 0o644), os.Chtimes(at+"2", info.ModTime(), info.ModTime()), os.Rename(at+"2", at))
}
