//go:build !linux

package shell

import (
	"errors"
	"runtime"
)

func canConfine() error {
	return errors.New("programs can be confined on Linux alone, and this is " + runtime.GOOS)
}

func become(plan) error { return canConfine() }
