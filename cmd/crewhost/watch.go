package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/urfave/cli/v2"

	"crewhost/config/strict"
	"crewhost/crew"
	"crewhost/mcp"
	"crewhost/runner"
	"crewhost/runner/event"
)

// The flags of a run that a program watches.
const (
	eventsFlag = "events"
	streamFlag = "stream"
)

// watch is a run that a program watches: stdout has its events and nothing else,
// from run.started, before the settings are read, to run.finished with the exit
// code; stdin has commands.
type watch struct {
	began  time.Time
	stream *event.Stream
	pipe   *event.Pipe
	remote *remote
	shown  atomic.Pointer[progress] // where steps are shown on stderr too; nil: nowhere
}

// watchRun is runCrew with a program that watches.
func watchRun(ctx *cli.Context, c *console) error {
	if ctx.IsSet(formatFlag) {
		return usagef("run: with --%s the result is among the events; leave --%s out", eventsFlag, formatFlag)
	}
	if _, err := targetOf(ctx); err != nil {
		return err
	}
	out, err := c.claim()
	if err != nil {
		return fmt.Errorf("taking stdout for the events: %w", err)
	}
	defer out.Close()
	aside := *c
	aside.out, aside.terminal = c.err, false // stdin is the watching program's
	defer func() { c.err = aside.err }()

	var stop context.CancelCauseFunc
	ctx.Context, stop = context.WithCancelCause(ctx.Context)
	defer stop(nil)
	w := newWatch(ctx.Context, out, stop)
	w.stream.Mask(c.redactor)
	w.stream.Emit(event.Event{Kind: event.RunStarted, Begin: &event.Begin{
		Target: ctx.Args().First(), Stream: ctx.Bool(streamFlag), Host: "crewhost " + version().Version,
	}})
	// A read of stdin can't be interrupted, so its only reader ends with the
	// program. What it says after the end of the run is heard by nobody.
	go w.remote.listen(c.in, func() { c.interrupt(errCancelCommand) })
	return w.finish(runCrew(ctx, &aside, w), c.interrupted)
}

// errCancelCommand is why a run ended that the watching program cancelled.
var errCancelCommand = fmt.Errorf("cancelled by a command: %w", context.Canceled)

// newWatch makes the stream of a run's events. Where nobody reads them, the run is
// stopped: what it does would be seen by nobody.
func newWatch(ctx context.Context, out io.Writer, stop context.CancelCauseFunc) *watch {
	w := &watch{began: time.Now()}
	w.pipe = event.NewPipe(out, event.PipeConfig{Hurry: ctx.Done(), Lost: func(err error) { stop(err) }})
	w.stream = event.NewStream(rand.Text(), time.Now, w.pipe.Send, w.show)
	w.remote = newRemote(w.stream)
	return w
}

// show shows an event on stderr, once there is a progress to show it.
func (w *watch) show(e event.Event) {
	if p := w.shown.Load(); p != nil {
		p.event(e)
	}
}

// join has a session tell its events here, and show them on stderr as well.
func (w *watch) join(s *session, c *crew.Crew) {
	s.events = w.stream
	w.shown.Store(s.progress)
	w.remote.describe(func(task string) string {
		if c == nil {
			return ""
		}
		for _, t := range c.Tasks {
			if t.Key == task {
				return t.Description.V
			}
		}
		return ""
	})
}

// stand has the watching program asked in place of a person at a terminal.
func (w *watch) stand(s *session, approve string) func(*runner.Config) {
	w.remote.begin(approve, s.settings.Permissions.Headless == "allow")
	return func(cfg *runner.Config) {
		cfg.Approver, cfg.Asker, cfg.ConcurrentApprovals = w.remote, w.remote, true
		cfg.Respondent = nil
		if approve != "deny" {
			cfg.Respondent = w.remote
		}
	}
}

// output tells the result of a run that went well. What other runs had got to is
// in the events of their tasks.
func (w *watch) output(result *runner.Output, err error) {
	if err == nil && result != nil {
		w.stream.Emit(event.Event{Kind: event.RunOutput, Text: result.Final})
	}
}

// finish tells why a run failed and that it is over, in events that are the last.
// The exit code is settled here: an interrupt that comes later is too late.
func (w *watch) finish(err error, interrupted func() bool) error {
	w.shown.Store(nil) // what follows is said on stderr at the end of the program
	if lost := w.pipe.Err(); lost != nil {
		err = &runner.RunError{Err: lost}
	}
	settled := settledError{code: exitCode(err, interrupted()), cause: err}
	if settled.code != exitOK {
		var issues strict.Issues
		errors.As(err, &issues)
		for _, issue := range issues {
			w.stream.Emit(event.Event{Kind: event.Notice, Text: oneLine(issue.Error()), Code: issue.Code})
		}
		w.stream.Emit(event.Event{Kind: event.Failure, Code: settled.word(), Error: oneLine(settled.text())})
	}
	w.stream.Emit(event.Event{
		Kind: event.RunFinished, Success: new(settled.code == exitOK), ExitCode: settled.code,
		DurationMS: time.Since(w.began).Milliseconds(),
	})
	if lost := w.pipe.Close(); lost != nil && settled.code == exitOK {
		settled = settledError{code: exitFailed, cause: &runner.RunError{Err: lost}}
	}
	return settled
}

// settledError is the end of a command whose exit code has been told already.
type settledError struct {
	code  int
	cause error // nil where it went well
}

func (e settledError) Error() string { return e.text() }
func (e settledError) Unwrap() error { return e.cause }

func (e settledError) text() string {
	switch {
	case e.code == exitInterrupted:
		return "interrupted"
	case e.cause == nil:
		return "no error"
	}
	var issues strict.Issues
	var reported errReported
	if errors.As(e.cause, &issues) && !errors.As(e.cause, &reported) {
		return problems(issues)
	}
	return e.cause.Error()
}

// word is the code of the failure, for programs.
func (e settledError) word() string {
	var (
		failed   *runner.RunError
		required *mcp.RequiredError
		reported errReported
		usage    usageError
		issues   strict.Issues
	)
	switch {
	case e.code == exitInterrupted:
		return "crew_cancelled"
	case errors.As(e.cause, &failed):
		return "crew_failed"
	case errors.As(e.cause, &required):
		return "server_required"
	case errors.As(e.cause, &reported):
		return "crew_refused"
	case errors.As(e.cause, &usage):
		return "usage"
	case errors.As(e.cause, &issues):
		return "settings_refused"
	default:
		return "host_failed"
	}
}
