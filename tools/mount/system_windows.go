package mount

import (
	"io/fs"
	"os"
	"syscall"
)

// nonblock has no meaning where opening a file never waits.
const nonblock = 0

// sameDevice is of no use here: no folder of Windows leads to the system's own state.
func sameDevice(_, _ fs.FileInfo) bool { return true }

// linked reports whether the open file has more names than one; without a file it
// can't tell.
func linked(file *os.File, _ fs.FileInfo) bool {
	if file == nil {
		return false
	}
	conn, err := file.SyscallConn()
	if err != nil {
		return false
	}
	var info syscall.ByHandleFileInformation
	if cerr := conn.Control(func(fd uintptr) { err = syscall.GetFileInformationByHandle(syscall.Handle(fd), &info) }); cerr != nil || err != nil {
		return false
	}
	return info.NumberOfLinks > 1
}

// unrooted is the folder itself: here, listing it looks at no entry.
func unrooted(dir *os.File) (*os.File, error) { return dir, nil }
