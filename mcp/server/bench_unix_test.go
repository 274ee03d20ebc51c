//go:build unix

package server_test

import (
	"syscall"
	"time"
)

// processorTime is how long this process has kept processors busy.
func processorTime() time.Duration {
	var used syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &used) != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
