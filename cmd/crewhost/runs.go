package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"crewhost/runner/journal"
)

// runsCommand is what a person does with the journals of runs.
func runsCommand(c *console) *cli.Command {
	// command is one that gets the folder of journals and so many words.
	command := func(name, usage, args string, words int, flags []cli.Flag, do func(*cli.Context, string, *output) error) *cli.Command {
		return &cli.Command{
			Name: name, Usage: usage, ArgsUsage: args, Flags: append(settingsFlags(), flags...),
			Action: func(ctx *cli.Context) error {
				if ctx.NArg() != words {
					return usagef("%s takes %s", ctx.Command.HelpName, orNothing(args))
				}
				anchor, err := anchorOf("")
				if err != nil {
					return err
				}
				dir, err := journalDir(ctx, c, anchor)
				if err != nil {
					return err
				}
				out := &output{out: c.out, console: c, mask: c.redactor.Redact, show: c.show}
				if name == "list" || name == "show" || name == "prune" {
					if out, err = outputOf(ctx, c); err != nil {
						return err
					}
				}
				return do(ctx, dir, out)
			},
		}
	}
	format := []cli.Flag{formatFlagOf(formatText, formatJSON)}
	return &cli.Command{
		Name:  "runs",
		Usage: "look into the journals of runs, which crewhost run --resume goes on with",
		Subcommands: []*cli.Command{
			command("list", "list the runs, the newest first", "", 0, format, runsList),
			command("show", "say what a run did, and how far it came", "RUN", 1, format, runsShow),
			command("export", "print the journal of a run, a record a line", "RUN", 1, nil, runsExport),
			command("prune", "remove the journals of old runs", "", 0, append([]cli.Flag{
				&cli.IntFlag{Name: "keep", Usage: "keep the newest `N` runs"},
				&cli.DurationFlag{Name: "older", Usage: "remove runs that nothing was written of for `TIME`: 48h"},
			}, format...), runsPrune),
		},
		Action: func(ctx *cli.Context) error {
			if word := ctx.Args().First(); word != "" {
				return unknownCommand(ctx, word, "it knows list, show, export and prune")
			}
			return cli.ShowSubcommandHelp(ctx)
		},
	}
}

func orNothing(args string) string {
	if args == "" {
		return "no words"
	}
	return args
}

// jsonJournal is a run as it is listed.
type jsonJournal struct {
	Run    string     `json:"run"`
	State  string     `json:"state,omitempty"`
	Crew   string     `json:"crew,omitempty"`
	Path   string     `json:"path,omitempty"`
	Began  *time.Time `json:"began,omitempty"`
	Last   *time.Time `json:"last,omitempty"` // record
	Code   *int       `json:"exitCode,omitempty"`
	Reason string     `json:"reason,omitempty"` // why it failed
	File   string     `json:"file"`
	Bytes  int64      `json:"bytes"`
	Error  string     `json:"error,omitempty"` // why its journal can't be read
}

func (o *output) jsonJournal(r journal.Run) jsonJournal {
	j := jsonJournal{Run: r.ID, State: string(r.State), Crew: o.mask(r.Header.Crew), Path: r.Header.Path, File: r.Path, Bytes: r.Bytes}
	if !r.Header.At.IsZero() {
		j.Began, j.Last = &r.Header.At, &r.Last
	}
	if r.End != nil {
		j.Code, j.Reason = &r.End.Code, o.mask(r.End.Error)
	}
	if r.Err != nil {
		j.Error = o.reason(r.Err)
	}
	return j
}

func runsList(_ *cli.Context, dir string, out *output) error {
	runs, err := journal.List(dir)
	if err != nil {
		return err
	}
	if out.json {
		list := []jsonJournal{}
		for _, r := range runs {
			list = append(list, out.jsonJournal(r))
		}
		return out.encode(map[string]any{"runs": list})
	}
	table := tabwriter.NewWriter(out.out, 0, 4, 2, ' ', 0)
	for _, r := range runs {
		if r.Err != nil {
			fmt.Fprintf(table, "%s\tunreadable\t%s\n", oneLine(r.ID), summary(out.reason(r.Err)))
			continue
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", r.ID, r.State, oneLine(out.mask(r.Header.Crew)), r.Header.At.UTC().Format("2006-01-02 15:04 UTC"))
	}
	return table.Flush()
}

// jsonDetail is a run as it is shown.
type jsonDetail struct {
	jsonJournal
	Host   string            `json:"crewhost"`
	Inputs map[string]string `json:"inputs,omitempty"`
	Lives  []time.Time       `json:"lives"` // when each began
	Steps  map[string]int    `json:"steps"` // with a result, by kind
	Tasks  []journal.TaskEnd `json:"tasks"`
	Open   []jsonOpen        `json:"open"` // begun, without a result
	Torn   int               `json:"tornBytes,omitempty"`
}

type jsonOpen struct {
	Kind  string `json:"kind"`
	Name  string `json:"name"`
	Task  string `json:"task,omitempty"`
	Agent string `json:"agent,omitempty"`
	Again bool   `json:"again"` // it is done again when the run is resumed
}

// runOf is the run that is named, or the newest.
func runOf(ctx *cli.Context, dir string) (string, error) {
	id := ctx.Args().First()
	if id != lastRun {
		return id, nil
	}
	newest, err := journal.Newest(dir)
	if err == nil && newest == "" {
		err = usagef("there is no run in %s", dir)
	}
	return newest, err
}

func runsShow(ctx *cli.Context, dir string, out *output) error {
	id, err := runOf(ctx, dir)
	if err != nil {
		return err
	}
	d, err := journal.Show(dir, id)
	var none *journal.NoRunError
	switch {
	case errors.As(err, &none):
		return usagef("%v", err)
	case err != nil:
		return err
	}
	j := jsonDetail{
		jsonJournal: out.jsonJournal(d.Run), Host: d.Header.Host, Inputs: d.Header.Inputs, Lives: d.Lives, Torn: d.Torn,
		Steps: map[string]int{}, Tasks: []journal.TaskEnd{}, Open: []jsonOpen{},
	}
	for kind, n := range d.Steps {
		j.Steps[string(kind)] = n
	}
	for _, t := range d.Tasks {
		t.Error = out.mask(t.Error)
		j.Tasks = append(j.Tasks, t)
	}
	for _, s := range d.Open {
		j.Open = append(j.Open, jsonOpen{string(s.Kind), s.Name, s.Scope.Task, s.Scope.Agent, s.Effect != journal.Once})
	}
	if out.json {
		return out.encode(j)
	}
	return out.detail(j)
}

func (o *output) detail(d jsonDetail) error {
	table := tabwriter.NewWriter(o.out, 0, 4, 2, ' ', 0)
	row := func(name, format string, args ...any) {
		fmt.Fprintf(table, "%s\t%s\n", name, oneLine(fmt.Sprintf(format, args...)))
	}
	row("run", "%s", d.Run)
	if d.Error != "" {
		row("journal", "%s", d.Error)
	}
	if d.State != "" {
		row("state", "%s", d.State)
	}
	if d.Reason != "" {
		row("reason", "%s", d.Reason)
	}
	row("crew", "%s (%s)", d.Crew, d.Path)
	for _, name := range slices.Sorted(maps.Keys(d.Inputs)) {
		row("variable", "%s=%s", name, o.foreign(d.Inputs[name]))
	}
	for _, at := range d.Lives {
		row("began", "%s", at.UTC().Format("2006-01-02 15:04:05 UTC"))
	}
	var steps []string
	for _, kind := range slices.Sorted(maps.Keys(d.Steps)) {
		steps = append(steps, fmt.Sprintf("%d %s", d.Steps[kind], kind))
	}
	row("steps", "%s", strings.Join(steps, ", "))
	for _, t := range d.Tasks {
		why := ""
		if t.Error != "" {
			why = ": " + summary(t.Error)
		}
		row("task", "%s %s%s", t.Task, t.State, why)
	}
	for _, s := range d.Open {
		what := "it is done again"
		if !s.Again {
			what = "whether it was done is not known"
		}
		row("open", "%s %s, task %s: %s", s.Kind, s.Name, s.Task, what)
	}
	return table.Flush()
}

func runsExport(ctx *cli.Context, dir string, out *output) error {
	id, err := runOf(ctx, dir)
	if err != nil {
		return err
	}
	err = journal.Export(out.out, dir, id)
	var none *journal.NoRunError
	if errors.As(err, &none) {
		return usagef("%v", err)
	}
	return err
}

func runsPrune(ctx *cli.Context, dir string, out *output) error {
	keep := journal.Keep{Runs: ctx.Int("keep"), Age: ctx.Duration("older")}
	switch {
	case keep == journal.Keep{}:
		return usagef("runs prune: say what goes: --keep N, --older TIME, or both")
	case keep.Runs < 0 || keep.Age < 0:
		return usagef("runs prune: --keep and --older take what is above 0")
	}
	removed, err := journal.Prune(dir, keep, time.Now())
	if out.json {
		return errors.Join(err, out.encode(map[string]any{"removed": append([]string{}, removed...)}))
	}
	for _, id := range removed {
		if printErr := out.text("%s\n", id); printErr != nil {
			return errors.Join(err, printErr)
		}
	}
	return err
}
