// Package files has the tools that work on files and folders of the mounts.
package files

import (
	"crewhost/tools/mount"
	"crewhost/tools/native"
)

// Bounds, in characters (code points) or bytes.
const (
	maxFileText = 32_000   // characters that file_read gives by default
	maxFile     = 16 << 20 // bytes of a file that is read whole
	maxWrite    = 4 << 20  // bytes that file_write writes
)

// Tools returns the tools over the mounts of fsys; nil holds no mount.
func Tools(fsys *mount.FS) []native.Tool {
	return []native.Tool{directoryRead(fsys), fileRead(fsys), fileWrite(fsys)}
}
