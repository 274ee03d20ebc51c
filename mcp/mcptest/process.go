package mcptest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"syscall"
	"time"
)

// hang outlives every polite request to end.
func hang() {
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	// A test that forgets the process must not keep it for ever.
	<-time.After(grace)
}

// runWrapper starts the standard server as its own child and waits for it. With
// "-pidfile F" first, it writes both process ids to F, a line each, so that a
// test can see whether they are gone.
func runWrapper(flags []string) int {
	pidfile := ""
	if len(flags) >= 2 && flags[0] == "-pidfile" {
		pidfile, flags = flags[1], flags[2:]
	}
	command, args := Command(Standard, flags...)
	cmd := exec.Command(command, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if pidfile != "" {
		f, err := os.OpenFile(pidfile, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		fmt.Fprintf(f, "%d\n%d\n", os.Getpid(), cmd.Process.Pid)
		if err := f.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	if err := cmd.Wait(); err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			return exit.ExitCode()
		}
		return 1
	}
	return 0
}

// runOrphan leaves a process behind that holds what this one inherited.
func runOrphan() int {
	command, args := Command(Hang)
	cmd := exec.Command(command, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 4
}

// environ is the environment of the process, sorted.
func environ() []string { return slices.Sorted(slices.Values(os.Environ())) }
