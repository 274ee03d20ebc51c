//go:build !unix

package main

import (
	"io"
	"os"
)

// claimStdout takes stdout for the caller alone: what else is printed there from
// now on goes to stderr (I7).
func claimStdout() (io.WriteCloser, error) {
	out := os.Stdout
	os.Stdout = os.Stderr
	return out, nil
}
