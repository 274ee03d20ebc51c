// Package shell has the tool that runs programs: shell_command, which knows an allow-list
// and no shell.
package shell

import (
	"time"

	"crewhost/tools/mount"
	"crewhost/tools/native"
)

// Config is what the tool works with.
type Config struct {
	// FS is where programs are run: a folder of a mount is the working directory.
	FS *mount.FS
	// Allow are the programs that may be run, each with the first arguments that it
	// needs to have, such as ls, or git log.
	Allow []string
	// Environ is the environment of the programs, a NAME=value each.
	Environ []string
	// Timeout bounds a call, and Bytes what is kept of each of its outputs.
	Timeout time.Duration
	Bytes   int
}

// Tools returns the tool.
func Tools(Config) []native.Tool { return nil }
