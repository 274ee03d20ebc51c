package main

import (
	"context"
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
func watchRun(ctx *cli.Context, c *console, t *taping) error {
	if ctx.IsSet(formatFlag) {
		return usagef("run: with --%s the result is among the events; leave --%s out", eventsFlag, formatFlag)
	}
	if _, err := t.target(ctx); err != nil {
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
	w := newWatch(ctx, out, t, stop)
	w.stream.Mask(c.redactor)
	w.stream.Emit(started(ctx))
	// A read of stdin can't be interrupted, so its only reader ends with the
	// program. What it says after the end of the run is heard by nobody.
	go w.remote.listen(c.in, func() { c.interrupt(errCancelCommand) })
	err = runCrew(ctx, &aside, w, t)
	t.leave()
	return t.end(w.finish(err, c.interrupted))
}

// started is the event that a run begins with.
func started(ctx *cli.Context) event.Event {
	return event.Event{Kind: event.RunStarted, Begin: &event.Begin{
		Target: ctx.Args().First(), Stream: ctx.Bool(streamFlag), Host: "crewhost " + version().Version,
	}}
}

// errCancelCommand is why a run ended that the watching program cancelled.
var errCancelCommand = fmt.Errorf("cancelled by a command: %w", context.Canceled)

// newWatch makes the stream of a run's events. Where nobody reads them, the run is
// stopped: what it does would be seen by nobody.
func newWatch(ctx *cli.Context, out io.Writer, t *taping, stop context.CancelCauseFunc) *watch {
	w := &watch{began: time.Now()}
	w.pipe = event.NewPipe(out, event.PipeConfig{Hurry: ctx.Context.Done(), Lost: func(err error) { stop(err) }})
	w.stream = t.newStream(ctx, w.pipe.Send, w.show)
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
		cfg.Approver, cfg.Asker, cfg.ConcurrentApprovals = w.remote.approver(approve), w.remote, true
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
func (w *watch) finish(err error, interrupted func() bool) settledError {
	w.shown.Store(nil) // what follows is said on stderr at the end of the program
	if lost := w.pipe.Err(); lost != nil {
		err = &runner.RunError{Err: lost}
	}
	settled := settle(err, interrupted())
	settled.tell(w.stream, w.began)
	if lost := w.pipe.Close(); lost != nil && settled.code == exitOK {
		settled = settle(&runner.RunError{Err: lost}, false)
	}
	return settled
}

// settle settles the exit code of a command.
func settle(err error, interrupted bool) settledError {
	return settledError{code: exitCode(err, interrupted), cause: err}
}

// tell tells why a run failed, and that it is over.
func (e settledError) tell(stream *event.Stream, began time.Time) {
	if e.code != exitOK {
		var issues strict.Issues
		errors.As(e.cause, &issues)
		for _, issue := range issues {
			stream.Emit(event.Event{Kind: event.Notice, Text: oneLine(issue.Error()), Code: issue.Code})
		}
		stream.Emit(event.Event{Kind: event.Failure, Code: e.word(), Error: oneLine(e.text())})
	}
	stream.Emit(event.Event{
		Kind: event.RunFinished, Success: new(e.code == exitOK), ExitCode: e.code,
		DurationMS: time.Since(began).Milliseconds(),
	})
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
