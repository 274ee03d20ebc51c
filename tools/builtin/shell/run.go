package shell

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"crewhost/tools"
	"crewhost/tools/native"
)

// job is a command that may be run.
type job struct {
	argv       []string
	dir, stdin string
	timeout    time.Duration

	place   *place
	program string // absolute
	environ []string
	home    string
}

// run carries a job out. An error is the host's, or that of a context that ended.
func (c Config) run(ctx context.Context, j job) (tools.Result, error) {
	switch {
	case c.Run == nil:
		return tools.Failure("Nothing was run: this host runs no programs."), nil
	case len(c.Confine) == 0 && c.Required:
		return tools.Failure("Nothing was run: programs are kept to the mounts, and this system can't do that. Work with the other tools. The host's owner can let programs run that nothing holds: tools.shell.confine: auto in the settings."), nil
	}
	var err error
	if j.place, err = placeOf(c.FS, j.dir); err != nil {
		return native.Failuref("Nothing was run: the working directory: %v.", err), nil
	}
	defer func() { _ = j.place.Close() }()
	if why := c.judge(&j); why != "" {
		return tools.Failure("Nothing was run: " + why + "."), nil
	}
	if j.home, err = os.MkdirTemp("", "crewhost-program-"); err != nil {
		return tools.Result{}, fmt.Errorf("making the home of a program: %w", err)
	}
	defer func() { _ = os.RemoveAll(j.home) }()
	if real, err := filepath.EvalSymlinks(j.home); err == nil {
		j.home = real
	}
	within, cancel := context.WithTimeout(ctx, j.timeout)
	defer cancel()
	j.environ = c.environ(c.path(j.place.masks), j.home, nil)
	if baseOf(j.argv[0]) == "git" {
		why, err := c.tame(within, &j)
		switch {
		case err != nil && within.Err() != nil && ctx.Err() == nil:
			return j.result(Outcome{}, true, "", "", false), nil
		case err != nil:
			return tools.Result{}, err
		case why != "":
			return tools.Failure("Nothing was run: " + why), nil
		}
	}
	out, errOut := &output{limit: c.Bytes}, &output{limit: c.Bytes}
	outcome, err := c.start(within, j, out, errOut)
	late := within.Err() != nil && ctx.Err() == nil
	if err != nil && !late {
		return tools.Result{}, err
	}
	return j.result(outcome, late, out.text(j.masks()), errOut.text(j.masks()), len(c.Confine) > 0), nil
}

// judge finds the program and looks at where it is to run, and with what. It says what is
// wrong, without the point at the end.
func (c Config) judge(j *job) string {
	confined := len(c.Confine) > 0
	entry, _ := allowed(c.runnable(), j.argv)
	if info := j.place.dir.Info(); !confined && !info.Rights.CanWrite() && !looks(entry) {
		return fmt.Sprintf("%s could change files, and %s is read-only. Run it in a folder that can be written to", j.argv[0], info.Path)
	}
	var err error
	if j.program, err = find(j.argv[0], c.path(j.place.masks)); err != nil {
		return fmt.Sprintf("there is no program %s: %v", j.argv[0], err)
	}
	// A name of its own may be a link to what the name does not tell.
	if real, err := filepath.EvalSymlinks(j.program); err == nil && !c.Interpreters && interprets(filepath.Base(real)) && !manyInOne(real) {
		return fmt.Sprintf("%s is %s, which runs whatever it is given; the settings do not allow that (tools.shell.interpreters)", j.argv[0], baseOf(real))
	}
	if !confined || marks(j.argv[0]) {
		for _, arg := range j.argv[1:] {
			if why := j.place.strays(arg); why != "" {
				return why
			}
		}
	}
	// sed's own language has commands that run programs and write files; GNU's can do
	// without.
	if name := baseOf(j.argv[0]); (name == "sed" || name == "gsed") && !c.Interpreters {
		j.argv = append([]string{j.argv[0], "--sandbox"}, j.argv[1:]...)
	}
	return ""
}

// manyInOne reports whether a program is many, of which its name chooses one.
func manyInOne(path string) bool {
	return slices.Contains([]string{"busybox", "toybox", "coreutils"}, baseOf(path))
}

func (j job) masks() []mask {
	return sortMasks(append(slices.Clone(j.place.masks), mask{j.home, "~"}))
}

// start runs the program, through the helper where it is confined.
func (c Config) start(ctx context.Context, j job, out, errOut *output) (Outcome, error) {
	p := Program{Path: j.program, Dir: j.place.dir.HostPath(), Environ: j.environ, Stdin: j.stdin, Stdout: out, Stderr: errOut}
	for _, arg := range j.argv[1:] {
		p.Args = append(p.Args, j.place.argument(arg))
	}
	if len(c.Confine) > 0 {
		plan := plan{Path: j.program, Args: append([]string{j.argv[0]}, p.Args...), Network: c.Network, Rules: system(j.program, c.Network)}
		for _, m := range j.place.mounts {
			plan.Rules = append(plan.Rules, rulesOf(m.Mount, m.physical, c.Interpreters)...)
		}
		home := mayRead | mayWrite | mayRemove
		if c.Interpreters {
			home |= mayExecute
		}
		plan.Rules = append(plan.Rules, rule{Path: j.home, May: home})
		data, err := json.Marshal(plan)
		if err != nil {
			return Outcome{}, fmt.Errorf("writing what a program may use: %w", err)
		}
		p.Path, p.Args = c.Confine[0], append(slices.Clone(c.Confine[1:]), string(data))
	}
	o, err := c.Run(ctx, p)
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("running a program: %w", err)
	}
	return o, errors.Join(err, ctx.Err())
}

// result is what a model is told.
func (j job) result(o Outcome, late bool, out, errOut string, confined bool) tools.Result {
	var b strings.Builder
	if late {
		fmt.Fprintf(&b, "[%s was stopped after %v. What it wrote until then follows.]\n", j.argv[0], j.timeout)
	} else if o.Signal != "" {
		fmt.Fprintf(&b, "[%s was ended by the signal %s]\n", j.argv[0], o.Signal)
	} else if o.Code != 0 {
		fmt.Fprintf(&b, "[%s ended with exit code %d]\n", j.argv[0], o.Code)
	}
	failed := b.Len() > 0
	out, errOut = strings.TrimRight(out, "\n"), strings.TrimRight(errOut, "\n")
	b.WriteString(out)
	if errOut != "" {
		if out != "" {
			b.WriteString("\n")
		}
		b.WriteString("[stderr]\n" + errOut)
	}
	switch {
	case out == "" && errOut == "":
		b.WriteString("[no output]")
	case failed && confined && strings.Contains(errOut, "ermission denied"):
		fmt.Fprintf(&b, "\n[Programs see the mounts here, with their rights, and of the rest of the host only what is installed. %s]", j.place.named())
	}
	text := tools.Truncate(b.String(), native.MaxResult)
	if failed {
		return tools.Failure(text)
	}
	return tools.Text(text)
}

// named names the mounts.
func (p *place) named() string {
	var names []string
	for _, m := range p.mounts {
		names = append(names, m.Virtual+" ("+string(m.Rights)+")")
	}
	return "The mounts are " + strings.Join(names, ", ") + "."
}
