//go:build !unix

package mount

// nonblock has no meaning where opening a file never waits.
const nonblock = 0
