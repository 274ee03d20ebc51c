package main

import (
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/urfave/cli/v2"

	"crewhost/crew"
	"crewhost/runner"
	"crewhost/runner/journal"
)

// The flags of a run that had a life before.
const (
	resumeFlag        = "resume"
	acceptChangesFlag = "accept-changes"
)

// lastRun stands for the newest run, and with --resume for the newest that is not
// completed.
const lastRun = "last"

// resumption is a run that --resume names.
type resumption struct {
	head   journal.Header
	dir    string
	accept bool
	log    *journal.Log
}

// resumptionOf looks up the run that is to be resumed; nil: none is. The settings say
// where journals are: those of the crew, where one is named, else of the working
// directory.
func resumptionOf(ctx *cli.Context, c *console) (*resumption, error) {
	if !ctx.IsSet(resumeFlag) {
		if ctx.Bool(acceptChangesFlag) {
			return nil, usagef("run: --%s is for --%s", acceptChangesFlag, resumeFlag)
		}
		return nil, nil
	}
	for _, other := range []string{"validate", "list-tools", "replay"} {
		if ctx.IsSet(other) {
			return nil, usagef("run: --%s and --%s are two things; give one", other, resumeFlag)
		}
	}
	anchor, err := anchorOf(ctx.Args().First())
	if err != nil {
		return nil, err
	}
	dir, err := journalDir(ctx, c, anchor)
	if err != nil {
		return nil, err
	}
	id := ctx.String(resumeFlag)
	if id == lastRun {
		if id, err = lastUnfinished(dir); err != nil {
			return nil, err
		}
	}
	run := journal.Look(dir, id)
	var none *journal.NoRunError
	switch {
	case errors.As(run.Err, &none):
		return nil, usagef("run: %v", run.Err)
	case run.Err != nil:
		return nil, fmt.Errorf("run %s: %w", id, run.Err)
	case run.State == journal.Completed:
		return nil, usagef("run %s is completed: there is nothing left to do; crewhost runs show %s says what it did", id, id)
	}
	return &resumption{head: run.Header, dir: dir, accept: ctx.Bool(acceptChangesFlag)}, nil
}

// journalDir is the folder of journals, as the settings found from anchor say.
func journalDir(ctx *cli.Context, c *console, anchor string) (string, error) {
	s, err := newSession(ctx, c, anchor)
	switch {
	case err != nil:
		return "", err
	case s.settings.Journal.Dir == "":
		return "", usagef("no folder of journals is known: set journal.dir in the settings")
	}
	return s.settings.Journal.Dir, nil
}

// lastUnfinished finds the newest run that is not completed, and that nobody is at.
func lastUnfinished(dir string) (string, error) {
	runs, err := journal.List(dir)
	if err != nil {
		return "", err
	}
	for _, r := range runs {
		if r.Err == nil && (r.State == journal.Interrupted || r.State == journal.Failed) {
			return r.ID, nil
		}
	}
	return "", usagef("run: every run in %s is completed, or there is none: there is nothing to resume", dir)
}

// target is the crew of the run, unless the command line names another.
func (r *resumption) target(ctx *cli.Context, tapes *taping) (string, error) {
	if r == nil || ctx.NArg() > 0 {
		return tapes.target(ctx)
	}
	return r.head.Path, nil
}

// inputs are the variables that the run began with, and those that are given anew.
func (r *resumption) inputs(ctx *cli.Context, tapes *taping) (crew.Inputs, error) {
	given, err := tapes.inputs(ctx)
	if r == nil || err != nil {
		return given, err
	}
	if missing := runner.Withheld(r.head, given); len(missing) > 0 {
		return nil, usagef("run: journals hold no secrets, and the value of %s is one: give it again, with --var %s=…",
			strings.Join(missing, ", "), missing[0])
	}
	all := crew.Inputs(maps.Clone(r.head.Inputs))
	if all == nil {
		all = crew.Inputs{}
	}
	maps.Copy(all, given)
	return all, nil
}

// open opens the journal, which from then on is this process's.
func (r *resumption) open(c *console) (err error) {
	if r == nil {
		return nil
	}
	r.log, err = journal.Open(journal.Config{Dir: r.dir, Mask: c.redactor.Redact, Write: c.writeJournal}, r.head.Run)
	return err
}

// close gives the journal up, where the run did not come to take it.
func (r *resumption) close() {
	if r != nil && r.log != nil {
		_ = r.log.Close()
	}
}

// stand has the host be as it was, where the command line says nothing else.
func (r *resumption) stand(ctx *cli.Context) func(*runner.Config) {
	return func(cfg *runner.Config) {
		if r == nil {
			return
		}
		if !ctx.IsSet(profileFlag) {
			cfg.Profile = r.head.Profile
		}
		if !ctx.IsSet(mountFlag) && len(r.head.Mounts) > 0 {
			cfg.Mounts, cfg.Dir = r.head.Mounts, r.head.Dir
		}
		if !ctx.IsSet(mountIDFlag) {
			cfg.MountIDs = r.head.MountIDs
		}
	}
}

// run runs the crew, or goes on with it.
func (r *resumption) run(ctx *cli.Context, host *runner.Host, c *crew.Crew, inputs crew.Inputs) (*runner.Output, error) {
	if r == nil {
		return host.Run(ctx.Context, c, inputs)
	}
	log := r.log
	r.log = nil // the host closes it
	return host.Resume(ctx.Context, runner.Life{Log: log, AcceptChanges: r.accept}, c, inputs)
}
