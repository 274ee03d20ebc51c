package mount

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
)

// Dir is a folder held open, for a program of the host to be started in.
type Dir struct {
	info Info
	file *os.File
	path string
}

// Dir opens a folder for a program to be started in. The caller closes it when
// the program was started.
func (f *FS) Dir(name string) (*Dir, error) {
	var d *Dir
	err := f.at("open", name, true, func(p place) error {
		if p.mount == nil {
			return &reason{"only a folder in a mount will do; " + f.names(), fs.ErrInvalid}
		}
		folder, err := f.openDir(p)
		if err != nil {
			return err
		}
		file, err := folder.Open(".")
		if err = errors.Join(err, folder.Close()); err != nil {
			return err
		}
		host, err := hostPath(file, filepath.Join(p.mount.root.Name(), filepath.FromSlash(p.rel)))
		if err != nil {
			return errors.Join(err, file.Close())
		}
		d = &Dir{p.describe(), file, host}
		return nil
	})
	return d, err
}

// Info describes the folder.
func (d *Dir) Info() Info { return d.info }

// HostPath is where the host finds the folder, as the working directory of a
// program that it starts before Close. On Linux it is the open folder itself by
// its number, whatever happens to its name. It is for the host alone: no text
// that a model sees may hold it.
func (d *Dir) HostPath() string { return d.path }

// Close closes the folder.
func (d *Dir) Close() error { return wrap("close", d.info.Path, d.file.Close()) }

// hostPath is a path of the open folder.
func hostPath(file *os.File, physical string) (string, error) {
	held, err := file.Stat()
	if err != nil {
		return "", err
	}
	candidates := []string{physical}
	if runtime.GOOS == "linux" {
		candidates = []string{"/proc/self/fd/" + strconv.Itoa(int(file.Fd())), physical}
	}
	for _, path := range candidates {
		if info, err := os.Stat(path); err == nil && os.SameFile(info, held) {
			return path, nil
		}
	}
	return "", &reason{"the folder is no longer where it was mounted", fs.ErrNotExist}
}
