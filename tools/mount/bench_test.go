package mount_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"crewhost/tools/mount"
)

// forest is a mount /t of 20,000 files in 1,000 folders.
func forest(b *testing.B) (*mount.FS, string) {
	b.Helper()
	root := b.TempDir()
	for i := range 1000 {
		dir := filepath.Join(root, "t", fmt.Sprint(i%10), fmt.Sprint(i%100), fmt.Sprint(i))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			b.Fatal(err)
		}
		for k := range 20 {
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("file%d.txt", k)), []byte("some words\n"), 0o644); err != nil {
				b.Fatal(err)
			}
		}
	}
	m, err := mount.Parse("t:/t:rw")
	if err != nil {
		b.Fatal(err)
	}
	fsys, err := mount.Open([]mount.Mount{m.In(root)})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = fsys.Close() })
	return fsys, filepath.Join(root, "t")
}

// BenchmarkTree compares with what the standard library takes for the same tree.
func BenchmarkTree(b *testing.B) {
	fsys, host := forest(b)
	paths := []string{}
	b.Run("walk", func(b *testing.B) {
		for b.Loop() {
			paths = paths[:0]
			err := fsys.Walk("/t", func(p string, e mount.Entry, err error) error {
				if !e.IsDir() {
					paths = append(paths, p)
				}
				return err
			})
			if err != nil || len(paths) != 20_000 {
				b.Fatal(len(paths), err)
			}
		}
	})
	b.Run("walk of the host", func(b *testing.B) {
		for b.Loop() {
			n := 0
			err := filepath.WalkDir(host, func(_ string, e fs.DirEntry, err error) error {
				if !e.IsDir() {
					n++
				}
				return err
			})
			if err != nil || n != 20_000 {
				b.Fatal(n, err)
			}
		}
	})
	b.Run("read", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			if _, err := fsys.ReadFile(paths[i%len(paths)], 100); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("read of the host", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			if _, err := os.ReadFile(filepath.Join(filepath.Dir(host), paths[i%len(paths)])); err != nil {
				b.Fatal(err)
			}
		}
	})
}
