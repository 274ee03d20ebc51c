package main

import (
	"errors"

	"github.com/urfave/cli/v2"

	"crewhost/crew"
	"crewhost/runner"
)

// overrideFlag names what one run changes of a crew's agents (A5).
const overrideFlag = "override"

func overrideFlagOf() cli.Flag {
	return &cli.StringFlag{Name: overrideFlag, TakesFile: true, Usage: "replace servers and tools of the crew's agents as `FILE` says"}
}

// loadCrew loads a crew, as --override changes it. The error is [crew.Issues]; the
// crew may be beside it, for [runner.Host.Judge] to judge what could be read.
func loadCrew(ctx *cli.Context, target string) (*crew.Crew, error) {
	loaded, err := crew.Load(target)
	path := ctx.String(overrideFlag)
	if path == "" && !ctx.IsSet(overrideFlag) {
		return loaded, err
	}
	override, overrideErr := crew.LoadOverride(path)
	if err == nil && overrideErr == nil {
		return override.Apply(loaded)
	}
	var issues, more crew.Issues
	errors.As(err, &issues)
	errors.As(overrideErr, &more)
	issues = append(issues, more...)
	issues.Sort()
	return loaded, issues
}

// forCrew opens a host for a crew that can be run as far as its files say; for
// another one, nothing that its agents bring along is started.
func forCrew(loaded *crew.Crew, err error) func(*runner.Config) {
	return func(cfg *runner.Config) {
		switch {
		case loaded == nil:
		case err == nil:
			cfg.Crews = []*crew.Crew{loaded}
		default:
			cfg.Faulty = []*crew.Crew{loaded}
		}
	}
}

// crewBeside is the crew of a command that can do without: where target names none, or
// a folder that holds none, there is none.
func crewBeside(ctx *cli.Context, target string) (*crew.Crew, error) {
	if target == "" {
		if ctx.IsSet(overrideFlag) {
			return nil, usagef("--%s changes a crew; name one", overrideFlag)
		}
		return nil, nil
	}
	loaded, err := loadCrew(ctx, target)
	var issues crew.Issues
	if loaded == nil && !ctx.IsSet(overrideFlag) && errors.As(err, &issues) && len(issues) == 1 && issues[0].Code == crew.CodeNotFound {
		return nil, nil
	}
	return loaded, err
}
