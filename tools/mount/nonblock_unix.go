//go:build unix

package mount

import "syscall"

// nonblock keeps an open from waiting for the other end of a pipe that was put
// in a file's place after it was looked at.
const nonblock = syscall.O_NONBLOCK
