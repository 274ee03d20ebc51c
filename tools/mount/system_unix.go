//go:build unix

package mount

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// nonblock keeps an open from waiting for the other end of a pipe that was put
// in a file's place after it was looked at.
const nonblock = syscall.O_NONBLOCK

// sameDevice reports whether two files lie in one file system, as far as can be told.
func sameDevice(a, b fs.FileInfo) bool {
	x, ok := a.Sys().(*syscall.Stat_t)
	y, also := b.Sys().(*syscall.Stat_t)
	return ok && also && x.Dev == y.Dev
}

// linked reports whether the file has more names than one. info describes it, and
// the file may be nil.
func linked(_ *os.File, info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && st.Nlink > 1
}

// unrooted is the same open folder, of no root, which the caller closes, too. One that
// a root has opened looks at each entry when it lists them; this one takes the types
// that the file system lists, and looks by the folder's number where there are none.
func unrooted(dir *os.File) (*os.File, error) {
	conn, err := dir.SyscallConn()
	if err != nil {
		return nil, err
	}
	var same int
	if cerr := conn.Control(func(fd uintptr) {
		syscall.ForkLock.RLock()
		defer syscall.ForkLock.RUnlock()
		if same, err = syscall.Dup(int(fd)); err == nil {
			syscall.CloseOnExec(same)
		}
	}); cerr != nil || err != nil {
		return nil, errors.Join(cerr, err)
	}
	return os.NewFile(uintptr(same), dir.Name()), nil
}
