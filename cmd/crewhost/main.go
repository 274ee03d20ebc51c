// Command crewhost hosts crews of LLM agents: it connects the configured MCP
// servers, registers their tools, and runs, validates or lists.
//
//	crewhost run crew.yaml            run a crew
//	crewhost run --validate crew.yaml judge it, for CI
//	crewhost run --list-tools         the manifest of its tools
//	crewhost mcp start HANDLE         serve what the settings name to MCP clients
//
// This package is wiring: flags, signals, the terminal, output formats and exit
// codes. What a run does is in package runner.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	"golang.org/x/term"

	"crewhost/config/secret"
	"crewhost/mcp/child"
	"crewhost/runner/telemetry"
	"crewhost/tools/builtin/shell"
)

func main() {
	// The guard is this program started by itself: a process that outlives a
	// killed host just long enough to end the host's children.
	if len(os.Args) == 2 && os.Args[1] == guardArgument {
		if child.GuardMain(os.Stdin) != nil {
			os.Exit(exitFailed)
		}
		return
	}
	// And so is what confines a program that an agent runs, and then becomes it.
	if len(os.Args) == 3 && os.Args[1] == confineArgument {
		_, _ = os.Stderr.WriteString(shell.ConfineMain(os.Args[2:]).Error() + "\n")
		os.Exit(exitFailed)
	}
	c, flush := newConsole()
	code := start(c, os.Args[1:])
	flush()
	os.Exit(code)
}

// newConsole is the world of this process, and what writes the rest of what it was
// told for stderr.
func newConsole() (c *console, flush func()) {
	redactor := &secret.Redactor{}
	stderr := redactor.Writer(os.Stderr)
	c = &console{
		in: os.Stdin, out: os.Stdout, err: stderr,
		environ:  os.Environ(),
		redactor: redactor,
		show:     term.IsTerminal(int(os.Stdout.Fd())),
		terminal: term.IsTerminal(int(os.Stdin.Fd())) && term.IsTerminal(int(os.Stderr.Fd())),
		claim:    claimStdout,
	}
	return c, func() { _ = stderr.Close() } // there is nowhere left to report to
}

// guardArgument is what the host starts itself with to be its own guard.
const guardArgument = "__guard"

// confineArgument is what the host starts itself with to confine a program.
const confineArgument = "__confine"

// console is what a command has of the world outside.
type console struct {
	in       io.Reader
	out, err io.Writer
	environ  []string
	redactor *secret.Redactor // of err: what it knows is masked there
	show     bool             // stdout is a terminal: what a model wrote is shown, not obeyed
	terminal bool             // a person can be asked on stdin and stderr

	claim func() (io.WriteCloser, error) // takes stdout away from everybody else

	telemetry *telemetry.Telemetry // nil: off

	writeJournal func(*os.File, []byte) error // see runner.Config; nil but in tests

	interrupt   func(why error) // does what a signal does
	interrupted func() bool     // whether a signal came, or something like it
}

// signalError is why the context of a command ended.
type signalError struct{ signal os.Signal }

func (e *signalError) Error() string { return e.signal.String() }
func (e *signalError) Unwrap() error { return context.Canceled }

// start runs one command line until it is done or a signal ends it, and returns
// the exit code. A second signal ends the program at once; the guard then ends
// the children.
func start(c *console, args []string) int {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)

	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)

	var interrupted atomic.Bool
	c.interrupted = interrupted.Load
	c.interrupt = func(why error) {
		interrupted.Store(true)
		cancel(why)
	}
	done := make(chan struct{})
	watched := make(chan struct{})
	go func() { // joined below
		defer close(watched)
		select {
		case <-done:
			return
		case s := <-signals:
			c.interrupt(&signalError{s})
		}
		select {
		case <-done:
		case <-signals:
			os.Exit(exitInterrupted)
		}
	}()
	err := runApp(ctx, c, args)
	close(done)
	<-watched
	return finish(c.err, err, interrupted.Load())
}
