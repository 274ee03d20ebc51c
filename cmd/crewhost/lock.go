package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"crewhost/config"
	"crewhost/config/strict"
	"crewhost/runner"
	"crewhost/runner/lock"
)

const (
	lockedFlag   = "locked"
	lockFileFlag = "lock-file"
	checkFlag    = "check"
	partialFlag  = "partial"
)

func lockFileFlagOf() cli.Flag {
	return &cli.StringFlag{Name: lockFileFlag, Usage: "the lock file is `FILE` (mcp.lock_file); by default crewhost.lock beside the settings, or beside the crew"}
}

// lockFileOf puts the flag into the settings.
func lockFileOf(ctx *cli.Context, settings *config.Settings) error {
	if !ctx.IsSet(lockFileFlag) {
		return nil
	}
	file := ctx.String(lockFileFlag)
	if file == "" {
		return usagef("--%s is empty: name a file", lockFileFlag)
	}
	path, err := filepath.Abs(file)
	settings.MCP.LockFile = path
	return err
}

// lockCommand is what a person does with the lock file.
func lockCommand(c *console) *cli.Command {
	return &cli.Command{
		Name:      "lock",
		Usage:     "write down what the MCP servers offer, so that a change of it is noticed, or look whether it has changed (--check)",
		ArgsUsage: "[CREW]",
		Flags: append(hostFlags(),
			&cli.BoolFlag{Name: checkFlag, Usage: "write nothing; fail where a server is not as it is locked, or can't be looked at"},
			&cli.BoolFlag{Name: partialFlag, Usage: "write although servers could not be connected: what was locked of them stays"},
			lockFileFlagOf(), overrideFlagOf(), formatFlagOf(formatText, formatJSON)),
		Action: func(ctx *cli.Context) error {
			if err := atMost(ctx, 1); err != nil {
				return err
			}
			if ctx.Bool(checkFlag) && ctx.Bool(partialFlag) {
				return usagef("lock: --%s writes nothing, and --%s is about writing; give one", checkFlag, partialFlag)
			}
			return lockServers(ctx, c)
		},
	}
}

// lockServers opens a host that is held to nothing, and writes down what it finds, or
// holds that against what is written down.
func lockServers(ctx *cli.Context, c *console) error {
	target := ctx.Args().First()
	loaded, err := crewBeside(ctx, target)
	if err != nil {
		return err
	}
	anchor, err := anchorOf(target)
	if err != nil {
		return err
	}
	var file *lock.File
	unheld := func(settings *config.Settings) error {
		if !settings.MCP.Enabled {
			return usagef("lock: the settings switch MCP off (mcp.enabled)")
		}
		settings.MCP.Locked = false
		file, err = lockToWrite(runner.LockPath(settings, anchor), ctx.Bool(checkFlag))
		return err
	}
	return withHostOf(ctx, c, target, unheld, func(_ *cli.Context, host *runner.Host, out *output) error {
		if ctx.Bool(checkFlag) {
			return checkLock(host, out, file)
		}
		return writeLock(host, out, file, ctx.Bool(partialFlag))
	}, forCrew(loaded, nil))
}

// lockToWrite reads the lock file, which need not be there where it is to be written.
func lockToWrite(path string, checking bool) (*lock.File, error) {
	file, err := lock.Read(path)
	var issues strict.Issues
	if !checking && errors.As(err, &issues) && issues[0].Code == lock.CodeNone {
		return &lock.File{Path: path}, nil
	}
	return file, err
}

// jsonLock is the outcome of the command.
type jsonLock struct {
	OK      bool        `json:"ok"`
	Lock    string      `json:"lock"`
	Servers int         `json:"servers"`
	Tools   int         `json:"tools"`
	Changed bool        `json:"changed"` // the file was written anew
	Issues  []jsonIssue `json:"issues"`
	Down    []string    `json:"down"` // servers that could not be looked at
}

// measure counts what is locked.
func measure(file *lock.File) (servers, tools int) {
	all := file.Servers
	for _, c := range file.Crews {
		all = append(all[:len(all):len(all)], c.Servers...)
	}
	for _, s := range all {
		tools += len(s.Tools)
	}
	return len(all), tools
}

func checkLock(host *runner.Host, out *output, file *lock.File) error {
	drift, down := host.DriftFrom(file)
	issues := append(drift, down...)
	issues.Sort()
	servers, tools := measure(file)
	if out.json {
		report := jsonLock{OK: len(issues) == 0, Lock: file.Path, Servers: servers, Tools: tools, Issues: out.jsonIssues(issues), Down: []string{}}
		for _, r := range host.Servers() {
			if r.Err != nil {
				report.Down = append(report.Down, r.Name)
			}
		}
		if err := out.encode(report); err != nil {
			return err
		}
	}
	if err := issues.Err(); err != nil {
		if out.json {
			return errReported{problems(issues), err}
		}
		return err
	}
	if out.json {
		return nil
	}
	return out.text("LOCK OK: %s (servers=%d, tools=%d)\n", file.Path, servers, tools)
}

// writeLock writes the file anew, unless it says the same already. Nothing of a server
// that is down is given up: it would come back unlocked.
func writeLock(host *runner.Host, out *output, file *lock.File, partial bool) error {
	down := host.Relock(file)
	if len(down) > 0 && !partial {
		for _, r := range host.Servers() {
			if r.Err != nil {
				fmt.Fprintln(out.console.err, oneLine(r.Err.Error()))
			}
		}
		return usagef("lock: %s could not be looked at, and nothing was written: %s; --%s keeps what was locked of them",
			count(len(down), "server"), strings.Join(down, ", "), partialFlag)
	}
	for _, name := range down {
		fmt.Fprintf(out.console.err, "WARNING: the server %q could not be looked at; what was locked of it stays\n", name)
	}
	old, err := os.ReadFile(file.Path)
	changed := err != nil || string(old) != string(file.Encode())
	if changed {
		if err := file.Write(); err != nil {
			return err
		}
	}
	servers, tools := measure(file)
	if out.json {
		return out.encode(jsonLock{OK: true, Lock: file.Path, Servers: servers, Tools: tools, Changed: changed, Issues: []jsonIssue{}, Down: append([]string{}, down...)})
	}
	word := "LOCKED"
	if !changed {
		word = "UNCHANGED"
	}
	return out.text("%s: %s (servers=%d, tools=%d)\n", word, file.Path, servers, tools)
}
