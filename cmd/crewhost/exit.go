package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"crewhost/config/strict"
	"crewhost/mcp"
	"crewhost/runner"
	"crewhost/runner/journal"
	"crewhost/runner/llm/replay"
	"crewhost/runner/tape"
)

// The exit codes.
const (
	exitOK          = 0
	exitUsage       = 1 // usage, settings, crew, a required server
	exitFailed      = 2 // the run failed
	exitInterrupted = 130
)

// usageError is a command line that can't be carried out as written.
type usageError struct{ text string }

func (e usageError) Error() string { return e.text }

func usagef(format string, args ...any) error { return usageError{fmt.Sprintf(format, args...)} }

// errReported stands for problems that have been printed in full already, so
// that only the closing line is left to print.
type errReported struct {
	summary string
	cause   error
}

func (e errReported) Error() string { return e.summary }
func (e errReported) Unwrap() error { return e.cause }

// exitCode is the one table from errors to exit codes.
func exitCode(err error, interrupted bool) int {
	var (
		usage    usageError
		issues   strict.Issues
		required *mcp.RequiredError
		failed   *runner.RunError
		settled  settledError
	)
	switch {
	case errors.As(err, &settled):
		return settled.code
	case errors.Is(err, errStopped):
		return exitOK
	case interrupted:
		return exitInterrupted
	case err == nil:
		return exitOK
	case errors.As(err, &failed):
		return exitFailed
	case errors.As(err, &usage), errors.As(err, &issues), errors.As(err, &required):
		return exitUsage
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	default:
		return exitUsage
	}
}

// finish prints why a command failed, the last line always "ERROR: reason", and
// returns the exit code.
func finish(w io.Writer, err error, interrupted bool) int {
	code := exitCode(err, interrupted)
	switch code {
	case exitOK:
	case exitInterrupted:
		fmt.Fprintln(w, "ERROR: interrupted")
	default:
		var issues strict.Issues
		var reported errReported
		if errors.As(err, &issues) && !errors.As(err, &reported) {
			for _, issue := range issues {
				fmt.Fprintln(w, oneLine(issue.Error()))
			}
			err = errReported{problems(issues), err}
		}
		if diff := differenceIn(err); diff != "" {
			if records, ok := w.(*jsonLines); ok {
				records.record(diff)
			} else {
				for line := range strings.SplitSeq(diff, "\n") {
					fmt.Fprintln(w, still(line))
				}
			}
		}
		fmt.Fprintf(w, "ERROR: %s\n", oneLine(err.Error()))
	}
	return code
}

// differenceIn is how a run differs from the tape of its model, or of all of it; empty
// where that is not why it failed.
func differenceIn(err error) string {
	var (
		model *replay.DivergenceError
		run   *tape.DivergenceError
		life  *journal.DivergenceError
	)
	switch {
	case errors.As(err, &life):
		return life.Difference()
	case errors.As(err, &run):
		return run.Diff
	case errors.As(err, &model):
		return model.Diff
	}
	return ""
}

// problems sums up what is wrong, with the files that it is in.
func problems(issues strict.Issues) string {
	var files []string
	for _, i := range issues {
		if i.File != "" && !slices.Contains(files, i.File) {
			files = append(files, i.File)
		}
	}
	sum := count(len(issues), "problem")
	if len(files) == 0 {
		return sum
	}
	return strings.Join(files, ", ") + ": " + sum
}
