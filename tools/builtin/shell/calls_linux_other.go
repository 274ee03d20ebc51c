//go:build linux && !amd64

package shell

const sysOpen = 0 // open is openat there
