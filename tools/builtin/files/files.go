// Package files has the tools that work on files and folders of the mounts.
//
// What is read is decoded by package charset, so that a model sees text whatever a
// program wrote; what is changed keeps its encoding, its byte order mark and its line
// ends. Big files are read as they come, and nothing of them is kept but what is shown.
package files

import (
	"time"

	"crewhost/tools/mount"
	"crewhost/tools/native"
)

// Bounds, in characters (code points) or bytes.
const (
	maxFileText = 32_000   // characters that file_read gives by default
	maxList     = 16_000   // characters of a list of files or matches
	maxFile     = 16 << 20 // bytes of a file that is changed or copied
	maxWrite    = 4 << 20  // bytes that are written

	maxTime = 30 * time.Second // that a search takes
)

// Tools returns the tools over the mounts of fsys; nil holds no mount.
func Tools(fsys *mount.FS) []native.Tool {
	return []native.Tool{
		directoryRead(fsys), fileEdit(fsys), fileRead(fsys), fileWrite(fsys), glob(fsys), grep(fsys), listMounts(fsys),
	}
}
