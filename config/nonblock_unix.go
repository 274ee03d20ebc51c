//go:build unix

package config

import "syscall"

// nonblock opens a pipe at once, whether somebody writes to it or not.
const nonblock = syscall.O_NONBLOCK
