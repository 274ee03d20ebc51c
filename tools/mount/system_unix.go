//go:build unix

package mount

import (
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
