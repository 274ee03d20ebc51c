// Package mcptest runs real MCP servers for tests: good ones, made with the
// SDK, and bad ones, which do on the wire what servers in the field were seen to
// do. A server runs as a child process, by executing the test binary again, or
// behind an HTTP handler.
//
// A test package that wants children calls Main from its TestMain:
//
//	func TestMain(m *testing.M) {
//		if mcptest.IsServer() {
//			os.Exit(mcptest.Main())
//		}
//		os.Exit(m.Run())
//	}
//
// and gets a command line for a server's settings with [Command]:
//
//	command, args := mcptest.Command(mcptest.Standard, "-tools", "echo,count")
//
// No type of the SDK shows here, so that packages which must not know it can
// use the servers all the same.
package mcptest

import (
	"fmt"
	"os"
	"slices"
)

// marker is the first argument of a child that is to be a server.
const marker = "mcptest-server"

// Kind is a kind of server.
type Kind string

// The kinds. Each takes flags, which [Command] passes on; what they are is said
// at the function that runs the kind.
const (
	// Standard is a good server made with the SDK: both eras, the tools of
	// [StandardTools].
	Standard Kind = "standard"
	// Scripted is a server written out by hand, of the legacy era, whose flags
	// make it misbehave.
	Scripted Kind = "scripted"
	// Exit writes its arguments and its environment to stderr and exits with
	// status 3 at once.
	Exit Kind = "exit"
	// Hang reads nothing, writes nothing and ends only when it is killed.
	Hang Kind = "hang"
	// Orphan starts a process that hangs and has its stdin, stdout and stderr,
	// and exits with status 4.
	Orphan Kind = "orphan"
	// Wrapper starts the Standard server as a grandchild which inherits its
	// stdin and stdout, and waits for it, as npx does.
	Wrapper Kind = "wrapper"
)

// IsServer reports whether this process was started to be a server.
func IsServer() bool { return len(os.Args) > 2 && os.Args[1] == marker }

// Command returns the command and arguments that run a server of that kind,
// with these flags, in a child process of a test binary that calls [Main].
func Command(kind Kind, flags ...string) (command string, args []string) {
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
	}
	return self, slices.Concat([]string{marker, string(kind)}, flags)
}

// Environ is what the environment of a child has besides, as "name=value": a
// program under the race detector otherwise sleeps for a second as it ends.
func Environ() []string { return []string{"GORACE=atexit_sleep_ms=0"} }

// Main is the server that the process was started to be. It returns the exit
// status when the client closes stdin.
func Main() int {
	kind, flags := Kind(os.Args[2]), os.Args[3:]
	var err error
	switch kind {
	case Standard:
		err = runStandard(flags)
	case Scripted:
		err = runScripted(flags, os.Stdin, os.Stdout)
	case Exit:
		fmt.Fprintf(os.Stderr, "giving up: argv %q, environment %q\n", flags, environ())
		return 3
	case Hang:
		hang()
	case Orphan:
		return runOrphan()
	case Wrapper:
		return runWrapper(flags)
	default:
		err = fmt.Errorf("unknown kind of server %q", kind)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
