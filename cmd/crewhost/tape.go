package main

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"crewhost/crew"
	"crewhost/runner"
	"crewhost/runner/event"
	"crewhost/runner/journal"
	"crewhost/runner/tape"
)

// The flags of a run that is recorded, or held against a tape.
const (
	recordFlag      = "record"
	replayFlag      = "replay"
	replayFromFlag  = "replay-from"
	replayFilesFlag = "replay-files"
)

func tapeFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: recordFlag, Usage: "write all that happens to the tape `FILE`, which must not be there yet"},
		&cli.StringFlag{Name: replayFlag, Usage: "hold the run against the tape `FILE`: no server, no model and no network is used"},
		&cli.StringFlag{Name: replayFromFlag, Usage: "go on live from `STEP` of the tape, a number or \"end\""},
		&cli.BoolFlag{Name: replayFilesFlag, Usage: "on a replay, write the run's files as well"},
	}
}

// taping is a run that is recorded, or held against a tape. A nil one is neither.
type taping struct {
	console *console
	began   time.Time
	rec     *tape.Recorder // nil: it is not recorded
	replay  *tape.Replay   // nil: it is held against nothing
	stream  *event.Stream  // nil: nothing was told yet
	watched bool           // a program watches, and the ends of the run are told already
	host    *runner.Host   // of the run, once it is open
}

// replays reports whether a run is to be one of a tape, with nothing behind it.
func replays(ctx *cli.Context) bool { return ctx.IsSet(replayFlag) && !ctx.IsSet(replayFromFlag) }

// tapingOf opens the tapes that a command line names.
func tapingOf(ctx *cli.Context, c *console) (*taping, error) {
	for _, name := range []string{recordFlag, replayFlag, replayFromFlag} {
		if ctx.IsSet(name) && ctx.String(name) == "" {
			return nil, usagef("run: --%s is empty", name)
		}
	}
	record, play := ctx.IsSet(recordFlag), ctx.IsSet(replayFlag)
	switch {
	case ctx.IsSet(replayFromFlag) && !play, ctx.IsSet(replayFilesFlag) && !play:
		return nil, usagef("run: --%s and --%s belong to --%s", replayFromFlag, replayFilesFlag, replayFlag)
	case !record && !play:
		return nil, nil //nolint:nilnil // a run without a tape, and no error
	case ctx.Bool("validate") || ctx.Bool("list-tools"):
		return nil, usagef("run: --%s and --%s are for runs, not for --validate and --list-tools", recordFlag, replayFlag)
	case record && replays(ctx):
		return nil, usagef("run: a replay is on a tape already; --%s goes with --%s where --%s has it go on live", recordFlag, replayFlag, replayFromFlag)
	case ctx.IsSet(replayFromFlag) && ctx.Bool(replayFilesFlag):
		return nil, usagef("run: --%s is for a replay that does not go on live", replayFilesFlag)
	}
	t := &taping{console: c, began: time.Now()}
	if play {
		if err := t.open(ctx); err != nil {
			return nil, err
		}
	}
	if record {
		var err error
		if t.rec, err = tape.Create(ctx.String(recordFlag), c.redactor.Redact); err != nil {
			return nil, usagef("%v", err)
		}
	}
	return t, nil
}

// open opens the tape that the run is held against.
func (t *taping) open(ctx *cli.Context) error {
	file, err := tape.Open(ctx.String(replayFlag))
	if err != nil {
		return usagef("--%s: %v", replayFlag, err)
	}
	from := 0
	if ctx.IsSet(replayFromFlag) {
		if from, err = fromOf(ctx.String(replayFromFlag), len(file.Steps())); err != nil {
			return err
		}
	}
	var carry func(journal.Step) bool
	if ctx.Bool(replayFilesFlag) {
		carry = func(s journal.Step) bool {
			return s.Kind == journal.File && s.Effect != journal.NoEffect || s.Kind == journal.Tool && t.host.WritesFiles(s.Name)
		}
	}
	t.replay = file.Replay(tape.Options{
		Mask: t.console.redactor.Redact, From: from, Carry: carry,
		Tell:      func() { t.stream.Catch() },
		Interrupt: func() { t.console.interrupt(&signalError{os.Interrupt}) },
	})
	return nil
}

func fromOf(word string, steps int) (int, error) {
	if word == "end" {
		return steps + 1, nil
	}
	n, err := strconv.Atoi(word)
	if err != nil || n < 1 || n > steps+1 {
		return 0, usagef("--%s %q: the tape has steps 1 to %d, and end", replayFromFlag, word, steps)
	}
	return n, nil
}

// target is the crew to be run: of a tape, where the command line names none. One that
// is not where it was, as on another machine, is looked for by the words of the recorded
// command line.
func (t *taping) target(ctx *cli.Context) (string, error) {
	if t != nil && t.replay != nil && ctx.NArg() == 0 {
		start := t.replay.Tape().Start
		if _, err := os.Stat(start.Crew); err != nil && start.Target != "" && filepath.IsLocal(start.Target) {
			if _, err := os.Stat(start.Target); err == nil {
				return start.Target, nil
			}
		}
		return start.Crew, nil
	}
	return targetOf(ctx)
}

// inputs are those of the command line, or of the tape where it has none.
func (t *taping) inputs(ctx *cli.Context) (crew.Inputs, error) {
	inputs, err := inputsOf(ctx)
	if err == nil && len(inputs) == 0 && t != nil && t.replay != nil {
		return t.replay.Tape().Run.Inputs, nil
	}
	return inputs, err
}

// newStream returns the stream of the run's events.
func (t *taping) newStream(ctx *cli.Context, sinks ...event.Sink) *event.Stream {
	run := rand.Text()
	if t == nil {
		return event.NewStream(run, time.Now, sinks...)
	}
	if t.rec != nil {
		target, _ := t.target(ctx) // which was asked for before
		path, err := filepath.Abs(target)
		if err != nil {
			path = target
		}
		t.rec.Start(tape.Start{
			Run: run, Host: "crewhost " + version().Version, Target: target, Crew: path,
			Stream: ctx.Bool(streamFlag), Events: ctx.IsSet(eventsFlag),
		})
		sinks = append(sinks, t.rec.Event)
	}
	t.stream, t.watched = event.NewStream(run, time.Now, sinks...), ctx.IsSet(eventsFlag)
	if t.replay != nil && t.replay.From() == 0 {
		t.stream.Follow(t.replay)
	}
	return t.stream
}

// join has a session that nobody watches tell its events to the tape as well.
func (t *taping) join(ctx *cli.Context, s *session) {
	if t == nil || t.watched {
		return
	}
	s.events = t.newStream(ctx, s.progress.event)
	s.events.Emit(started(ctx))
}

// configure has the host record, or replay.
func (t *taping) configure(cfg *runner.Config) {
	if t != nil {
		cfg.Record, cfg.Replay = t.rec, t.replay
	}
}

// opened is told the host of the run, before it begins.
func (t *taping) opened(host *runner.Host) {
	if t != nil {
		t.host = host
	}
}

// output tells the result of a run that went well, where no program watches who is
// told.
func (t *taping) output(result *runner.Output, err error) {
	if t != nil && !t.watched && err == nil && result != nil {
		t.stream.Emit(event.Event{Kind: event.RunOutput, Text: result.Final})
	}
}

// finish ends the tape of a run that nobody watches.
func (t *taping) finish(err error) error {
	if t == nil {
		return err
	}
	settled := settle(err, t.console.interrupted())
	if t.stream != nil {
		t.leave()
		settled.tell(t.stream, t.began)
	}
	if end := t.end(settled); end.code != settled.code {
		return end.cause
	}
	return err
}

// leave says that the run is over, if it ever began.
func (t *taping) leave() {
	if t != nil && t.replay != nil {
		t.replay.Leave()
	}
}

// end ends the tapes. A run whose tape is not what it should be has failed.
func (t *taping) end(settled settledError) settledError {
	if t == nil {
		return settled
	}
	if t.rec != nil {
		why := ""
		if settled.code != exitOK {
			why = oneLine(settled.text())
		}
		t.rec.End(tape.End{Exit: settled.code, Error: why})
		if err := t.rec.Close(); err != nil && settled.code == exitOK {
			settled = settle(&runner.RunError{Err: err}, false)
		}
	}
	if t.replay != nil && settled.code == exitOK {
		if err := t.replay.Err(); err != nil {
			settled = settle(&runner.RunError{Err: err}, false)
		}
	}
	return settled
}

// replayCommand is what a person does with tapes.
func replayCommand(c *console) *cli.Command {
	command := func(name, usage, args string, do func(*cli.Context, *output) error) *cli.Command {
		return &cli.Command{
			Name: name, Usage: usage, ArgsUsage: args, Flags: []cli.Flag{formatFlagOf(formatText, formatJSON)},
			Action: func(ctx *cli.Context) error {
				out, err := outputOf(ctx, c)
				if err != nil {
					return err
				}
				return do(ctx, out)
			},
		}
	}
	return &cli.Command{
		Name:  "replay",
		Usage: "look into tapes of runs (crewhost run --record), and compare them",
		Subcommands: []*cli.Command{
			command("show", "list the steps of a tape", "TAPE", replayShow),
			command("diff", "compare two tapes; the exit code is 1 where they differ", "TAPE TAPE", replayDiff),
		},
		Action: func(ctx *cli.Context) error {
			if word := ctx.Args().First(); word != "" {
				return unknownCommand(ctx, word, "it knows show and diff")
			}
			return cli.ShowSubcommandHelp(ctx)
		},
	}
}

// tapesOf opens the tapes that the words of a command name.
func tapesOf(ctx *cli.Context, n int) ([]*tape.Tape, error) {
	if ctx.NArg() != n {
		return nil, usagef("%s: it takes %s", ctx.Command.HelpName, count(n, "tape"))
	}
	var all []*tape.Tape
	for _, path := range ctx.Args().Slice() {
		t, err := tape.Open(path)
		if err != nil {
			return nil, usagef("%v", err)
		}
		all = append(all, t)
	}
	return all, nil
}

// jsonStep is a step of a tape.
type jsonStep struct {
	Step      int       `json:"step"`
	Line      int       `json:"line"`
	At        time.Time `json:"at"`
	Kind      string    `json:"kind"`
	Name      string    `json:"name,omitempty"`
	Task      string    `json:"task,omitempty"`
	Agent     string    `json:"agent,omitempty"`
	Attempt   int       `json:"attempt,omitempty"`
	Operation string    `json:"operation,omitempty"`
	Call      string    `json:"call,omitempty"`
	Within    int       `json:"within,omitempty"`
	Millis    int64     `json:"tookMs"`
	Open      string    `json:"open,omitempty"`
	Known     bool      `json:"known"` // what came of it is on the tape
}

func replayShow(ctx *cli.Context, out *output) error {
	tapes, err := tapesOf(ctx, 1)
	if err != nil {
		return err
	}
	t := tapes[0]
	list := []jsonStep{}
	for _, s := range t.Steps() {
		one := jsonStep{
			Step: s.N, Line: s.Line, At: s.At, Kind: string(s.Kind), Name: s.Name, Task: s.Scope.Task, Agent: s.Scope.Agent,
			Attempt: s.Scope.Attempt, Operation: s.Scope.Operation, Call: s.Scope.Call, Within: s.Within,
		}
		if s.Done != nil {
			one.Millis, one.Open, one.Known = s.Done.At.Sub(s.At).Milliseconds(), s.Done.Open, s.Done.Open == ""
		}
		list = append(list, one)
	}
	if out.format == formatJSON {
		return out.encode(map[string]any{
			"tape": t.Name, "complete": t.Complete(), "start": t.Start, "run": t.Run, "steps": list, "end": t.End,
		})
	}
	if err := out.text("%s\n", oneLine(aboutTape(t))); err != nil {
		return err
	}
	w := tabwriter.NewWriter(out.out, 0, 0, 2, ' ', 0)
	for _, s := range list {
		what := strings.TrimSpace(s.Kind + " " + s.Name)
		if s.Within > 0 {
			what += fmt.Sprintf(" (in step %d)", s.Within)
		}
		came := fmt.Sprintf("%d ms", s.Millis)
		switch {
		case s.Open != "":
			came = "not known: " + s.Open
		case !s.Known:
			came = "not known: the tape ends"
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\n", s.Step, still(orDash(s.Task)), still(orDash(s.Agent)), still(what), still(oneLine(came)))
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("writing the result: %w", err)
	}
	return nil
}

func orDash(s string) string { return cmp.Or(s, "-") }

// aboutTape says in a line what is on a tape.
func aboutTape(t *tape.Tape) string {
	end := "not complete"
	if t.End != nil {
		end = fmt.Sprintf("exit %d", t.End.Exit)
	}
	return fmt.Sprintf("%s: crew %s, %s, by %s: %s, %s", t.Name, still(cmp.Or(t.Run.Name, t.Run.Crew)), t.Run.At.UTC().Format(time.RFC3339),
		still(t.Start.Host), count(len(t.Steps()), "step"), end)
}

// jsonDifference is something in which two tapes differ.
type jsonDifference struct {
	About     string     `json:"about"`
	Task      string     `json:"task,omitempty"`
	Agent     string     `json:"agent,omitempty"`
	Attempt   int        `json:"attempt,omitempty"`
	Operation string     `json:"operation,omitempty"`
	Call      string     `json:"call,omitempty"`
	Kind      string     `json:"kind,omitempty"`
	Name      string     `json:"name,omitempty"`
	A         *jsonPlace `json:"a,omitempty"`
	B         *jsonPlace `json:"b,omitempty"`
	Diff      string     `json:"diff"`
}

type jsonPlace struct {
	Step int `json:"step,omitempty"`
	Line int `json:"line"`
}

func replayDiff(ctx *cli.Context, out *output) error {
	tapes, err := tapesOf(ctx, 2)
	if err != nil {
		return err
	}
	a, b := tapes[0], tapes[1]
	found := tape.Compare(a, b)
	if out.format == formatJSON {
		list := []jsonDifference{}
		for _, d := range found {
			list = append(list, jsonDifference{
				About: d.About, Task: d.Scope.Task, Agent: d.Scope.Agent, Attempt: d.Scope.Attempt, Operation: d.Scope.Operation, Call: d.Scope.Call,
				Kind: string(d.Kind), Name: d.Name, A: placeOf(d.A, d.LineA), B: placeOf(d.B, d.LineB), Diff: d.Diff,
			})
		}
		if err := out.encode(map[string]any{"same": len(found) == 0, "a": a.Name, "b": b.Name, "differences": list}); err != nil {
			return err
		}
	} else {
		for _, d := range found {
			if err := out.text("%s\n", still(difference(d))); err != nil {
				return err
			}
			if d.Kind == journal.Model && (d.About == tape.AboutMissing || d.About == tape.AboutAdded) {
				continue // a whole request, which hides the differences beside it
			}
			for line := range strings.SplitSeq(d.Diff, "\n") {
				if err := out.text("  %s\n", still(line)); err != nil {
					return err
				}
			}
		}
	}
	if len(found) > 0 {
		return errReported{fmt.Sprintf("the tapes differ: %s", count(len(found), "difference")), errDiffer}
	}
	if out.format == formatJSON {
		return nil
	}
	return out.text("the tapes are the same, but for times: %s\n", count(len(a.Steps()), "step"))
}

var errDiffer = errors.New("the tapes differ")

func placeOf(step, line int) *jsonPlace {
	if line == 0 {
		return nil
	}
	return &jsonPlace{step, line}
}

// difference says in a line what differs.
func difference(d tape.Difference) string {
	var b strings.Builder
	b.WriteString(d.About)
	if d.Kind != "" {
		fmt.Fprintf(&b, ": %s", strings.TrimSpace(string(d.Kind)+" "+d.Name))
	}
	for _, part := range []struct{ name, value string }{{"task", d.Scope.Task}, {"agent", d.Scope.Agent}} {
		if part.value != "" {
			fmt.Fprintf(&b, ", %s %s", part.name, part.value)
		}
	}
	switch {
	case d.A > 0 && d.B > 0:
		fmt.Fprintf(&b, " (steps %d and %d)", d.A, d.B)
	case d.A > 0:
		fmt.Fprintf(&b, " (step %d of the first)", d.A)
	case d.B > 0:
		fmt.Fprintf(&b, " (step %d of the second)", d.B)
	}
	return b.String()
}
