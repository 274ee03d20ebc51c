// Package shell has the tool that runs programs: shell_command, which knows an allow-list
// and no shell.
//
// A command is split into words and is one program with its arguments; pipes, patterns,
// variables and the like are refused by name. The program has to be on the list, and is
// looked for on the host's PATH alone: never in the folder that it runs in. Of the host's
// environment it gets the language and the time zone, of its open files none.
//
// # Confinement
//
// An argument may name any path, and a link in a mount may lead anywhere. So where the
// system can (Landlock, Linux 5.13 and later), a program is started by a helper, which is
// the host's own executable: it gives up all rights but those to the mounts, as they are
// mounted, to the programs and libraries of the system, and to an empty folder that is
// the program's home; and then becomes the program. What cannot be read from there is not
// there for it, and neither is the network, unless the settings give it; a socket of the
// host's other programs, their limits and the user's keys never are.
//
// Elsewhere nothing is run, unless the settings want it all the same. Then the arguments
// are looked at, which is a courtesy and no wall.
package shell

import (
	"context"
	"io"
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
	// Interpreters allows those of the list that run whatever they are given.
	Interpreters bool
	// Host is the environment of the host: PATH, language and time zone are taken from
	// it, and nothing else. Environ is what is added, a NAME=value each.
	Host, Environ []string
	// Timeout bounds a call, and Bytes what is kept of each of its outputs.
	Timeout time.Duration
	Bytes   int
	// Run runs a program until it and all that came of it is gone, or ctx ends; nil:
	// nothing is run. An error is of the host: what the program made of itself is the
	// outcome.
	Run func(ctx context.Context, p Program) (Outcome, error)
	// Confine is the command line that runs [ConfineMain]; empty: programs are not
	// confined. Required refuses to run them then.
	Confine  []string
	Required bool
	// Network lets programs that are confined use the network.
	Network bool
}

// Program is what is to be run.
type Program struct {
	Path    string   // absolute
	Args    []string // without the program
	Dir     string
	Environ []string // all of it
	Stdin   string   // and then its end
	// Stdout and Stderr get what is written, each from one goroutine; they never fail.
	Stdout, Stderr io.Writer
}

// Outcome is how a program ended.
type Outcome struct {
	Code   int    // the exit status
	Signal string // the name of the signal that ended it; else empty
}

// Tools returns the tool.
func Tools(cfg Config) []native.Tool { return []native.Tool{shellCommand(cfg)} }
