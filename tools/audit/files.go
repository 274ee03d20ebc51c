package audit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// full is a file of a log that is not written to any more.
type full struct {
	path  string
	first uint64 // the number of its first record, as its name has it
}

// naming is how the files of a log are called.
type naming struct{ dir, stem, ext string }

func namingOf(path string) naming {
	ext := filepath.Ext(path)
	return naming{filepath.Dir(path), strings.TrimSuffix(filepath.Base(path), ext), ext}
}

// full is the path of a full file.
func (n naming) full(first uint64) string {
	return filepath.Join(n.dir, fmt.Sprintf("%s.%012d%s", n.stem, first, n.ext))
}

// files returns the full files of a log, the oldest first.
func (n naming) files() ([]full, error) {
	entries, err := os.ReadDir(n.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var files []full
	for _, e := range entries {
		number, ours := strings.CutPrefix(e.Name(), n.stem+".")
		number, has := strings.CutSuffix(number, n.ext)
		first, err := strconv.ParseUint(number, 10, 64)
		if ours && has && err == nil && filepath.Base(n.full(first)) == e.Name() {
			files = append(files, full{filepath.Join(n.dir, e.Name()), first})
		}
	}
	slices.SortFunc(files, func(a, b full) int {
		if a.first < b.first {
			return -1
		}
		return 1
	})
	return files, nil
}
