//go:build unix

package main

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// claimStdout takes stdout for the caller alone: whatever else is printed there
// from now on, by this process or one that it starts, goes to stderr (I7).
func claimStdout() (io.WriteCloser, error) {
	fd, err := unix.FcntlInt(1, unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, os.NewSyscallError("fcntl", err)
	}
	if err := unix.Dup2(2, 1); err != nil {
		_ = unix.Close(fd)
		return nil, os.NewSyscallError("dup2", err)
	}
	os.Stdout = os.Stderr
	return os.NewFile(uintptr(fd), "stdout"), nil
}
