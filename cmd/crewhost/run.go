package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"crewhost/crew"
	"crewhost/runner"
)

func runCommand(c *console) *cli.Command {
	return &cli.Command{
		Name:      "run",
		Usage:     "run a crew, judge it (--validate), or list the tools (--list-tools)",
		ArgsUsage: "[CREW]",
		Flags: append(append(hostFlags(), tapeFlags()...),
			&cli.BoolFlag{Name: "validate", Usage: "judge the crew against the tools that are there; call no model"},
			&cli.BoolFlag{Name: "list-tools", Usage: "print the names of all tools, and of those that the agents of CREW bring along; needs no crew"},
			&cli.StringSliceFlag{Name: "var", Aliases: []string{"V"}, Usage: "set the variable `KEY=VALUE` of the crew; may repeat"},
			&cli.StringFlag{Name: "initial-context", Usage: "set the variable initial_context to `TEXT`"},
			overrideFlagOf(),
			&cli.BoolFlag{Name: lockedFlag, Usage: "want MCP servers to be as crewhost.lock says (mcp.locked)"},
			lockFileFlagOf(),
			&cli.StringFlag{Name: profileFlag, Usage: "use the model profile `ID`"},
			formatFlagOf(formatText, formatJSON, formatJUnit, formatSARIF),
			&cli.StringFlag{Name: eventsFlag, Usage: "write events to stdout as `jsonl`, and take commands on stdin"},
			&cli.BoolFlag{Name: streamFlag, Usage: "tell answers of models piece by piece"},
			&cli.StringFlag{Name: resumeFlag, Usage: "go on with the run `ID` (last: the newest that is not completed); CREW and variables are its own"},
			&cli.BoolFlag{Name: acceptChangesFlag, Usage: "with --resume: go on although the crew, its variables or tools have changed"},
		),
		Action: func(ctx *cli.Context) error {
			if ctx.Bool("list-tools") && ctx.Bool("validate") {
				return usagef("run: --validate and --list-tools are two things; give one")
			}
			if ctx.IsSet(eventsFlag) {
				if _, err := oneOf(ctx, eventsFlag, "jsonl"); err != nil {
					return err
				}
			}
			tapes, err := tapingOf(ctx, c)
			if err != nil {
				return err
			}
			switch {
			case ctx.Bool("list-tools"):
				return listTools(ctx, c)
			case ctx.IsSet(eventsFlag) && !ctx.Bool("validate"):
				return watchRun(ctx, c, tapes)
			case ctx.IsSet(eventsFlag):
				fmt.Fprintln(c.err, "WARNING: --events is for a run; the verdict of --validate is printed as ever")
			}
			return tapes.finish(runCrew(ctx, c, nil, tapes))
		},
	}
}

// listTools prints the manifest. The settings are those of the crew, where one
// is named, else of the working directory; what the crew's agents bring along is in it.
func listTools(ctx *cli.Context, c *console) error {
	if err := atMost(ctx, 1); err != nil {
		return err
	}
	loaded, err := crewBeside(ctx, ctx.Args().First())
	if err != nil {
		return err
	}
	return withHost(ctx, c, ctx.Args().First(), func(_ *cli.Context, host *runner.Host, out *output) error {
		return out.tools(host.Tools())
	}, forCrew(loaded, nil))
}

// runCrew judges a crew and, unless that was all that was asked, runs it. One
// path leads up to the verdict, so both see one surface (O10). What happens is
// told to w, where a program watches, and to tapes.
func runCrew(ctx *cli.Context, c *console, w *watch, tapes *taping) (err error) {
	judging := ctx.Bool("validate")
	out, err := outputOf(ctx, c, formatJUnit, formatSARIF)
	if err != nil {
		return err
	}
	if out.format == formatSARIF && !judging {
		return usagef("run: --format sarif is for --validate: a run has no places in files to tell of")
	}
	past, err := resumptionOf(ctx, c)
	if err != nil {
		return err
	}
	target, err := past.target(ctx, tapes)
	if err != nil {
		return err
	}
	inputs, err := past.inputs(ctx, tapes)
	if err != nil {
		return err
	}
	anchor, err := anchorOf(target)
	if err != nil {
		return err
	}
	s, err := newSession(ctx, c, anchor)
	if err != nil {
		return out.refused(nil, target, err, judging)
	}
	tapes.join(ctx, s)
	if err := past.open(c); err != nil {
		return err
	}
	defer past.close()
	loaded, loadIssues := loadCrew(ctx, target)
	changes := []func(*runner.Config){forCrew(loaded, loadIssues), tapes.configure, func(cfg *runner.Config) { cfg.Stream = ctx.Bool(streamFlag) }, past.stand(ctx)}
	s.progress.deltas = w == nil && ctx.Bool(streamFlag)
	if w != nil {
		w.join(s, loaded)
		changes = append(changes, w.stand(s, ctx.String(approveFlag)))
	}
	host, err := s.open(ctx, changes...)
	if err != nil {
		return out.refused(s, target, err, judging)
	}
	defer closeHost(host, &err)
	tapes.opened(host)

	verdict := host.Judge(loaded, loadIssues, inputs)
	if err := ctx.Context.Err(); err != nil {
		return err
	}
	if judging || len(verdict.Issues) > 0 {
		weights := host.Weigh(ctx.Context, loaded, inputs)
		return out.verdict(newReport(s, target, ctx.String(approveFlag), host, loaded, verdict, weights), judging)
	}
	for _, w := range verdict.Warnings {
		s.warn(w.Error())
	}
	result, err := past.run(ctx, host, loaded, inputs)
	s.progress.finished(result, err)
	if w != nil {
		w.output(result, err)
		return err
	}
	tapes.output(result, err)
	if printErr := out.run(cmp.Or(loaded.Name.V, filepath.Base(loaded.Path)), result, err); err == nil && printErr != nil {
		err = &runner.RunError{Err: printErr} // nobody has got what it came to
	}
	return err
}

// closeHost ends the host; its trouble is reported where nothing worse is.
func closeHost(host *runner.Host, err *error) {
	if closeErr := host.Close(); *err == nil {
		*err = closeErr
	}
}

func targetOf(ctx *cli.Context) (string, error) {
	switch ctx.NArg() {
	case 0:
		return "", usagef("run: name a crew: crewhost run crew.yaml")
	case 1:
		return ctx.Args().First(), nil
	default:
		return "", usagef("run: one crew at a time, not %s", strings.Join(ctx.Args().Slice(), " "))
	}
}

// anchorOf is the folder that settings are looked for from: the crew's own.
func anchorOf(target string) (string, error) {
	if target == "" {
		target = "."
	}
	path, err := filepath.Abs(target)
	if err != nil {
		return "", usagef("crew %q: %v", target, err)
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", usagef("crew not found: %s", path)
	case err != nil:
		return "", usagef("crew %q: %v", target, err)
	case info.IsDir():
		return path, nil
	default:
		return filepath.Dir(path), nil
	}
}

func inputsOf(ctx *cli.Context) (crew.Inputs, error) {
	inputs := crew.Inputs{}
	for _, pair := range ctx.StringSlice("var") {
		key, value, ok := strings.Cut(pair, "=")
		if !ok || strings.TrimSpace(key) == "" {
			return nil, usagef("--var %q: write KEY=VALUE", pair)
		}
		if _, twice := inputs[key]; twice {
			return nil, usagef("--var %s is given twice", key)
		}
		inputs[key] = value
	}
	if ctx.IsSet("initial-context") {
		if _, twice := inputs["initial_context"]; twice {
			return nil, usagef("--initial-context and --var initial_context are the same variable; give one")
		}
		inputs["initial_context"] = ctx.String("initial-context")
	}
	return inputs, nil
}
