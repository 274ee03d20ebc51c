package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"crewhost/config"
	"crewhost/config/strict"
	"crewhost/crew"
	"crewhost/mcp"
	"crewhost/runner"
)

func doctorCommand(c *console) *cli.Command {
	return &cli.Command{
		Name:  "doctor",
		Usage: "check settings, model, mounts and servers, without running a crew",
		Flags: append(hostFlags(), formatFlagOf(formatText, formatJSON, formatJUnit),
			&cli.StringFlag{Name: profileFlag, Usage: "check the model profile `ID` in place of the default one"}),
		Action: func(ctx *cli.Context) error {
			out, err := outputOf(ctx, c, formatJUnit)
			if err != nil {
				return err
			}
			if err := atMost(ctx, 0); err != nil {
				return err
			}
			anchor, err := anchorOf("")
			if err != nil {
				return err
			}
			var d diagnosis
			if err := d.examine(ctx, c, anchor); err != nil {
				return err
			}
			if err := ctx.Context.Err(); err != nil {
				return err
			}
			return d.print(out)
		},
	}
}

// The states of a finding.
const (
	fine   = "ok"
	doubt  = "warn"
	broken = "fail"
)

// finding is one thing that was checked.
type finding struct {
	Check  string `json:"check"`
	Status string `json:"status"`
	Detail string `json:"detail"`
}

// diagnosis is all findings, in the order of the checks.
type diagnosis struct{ findings []finding }

func (d *diagnosis) add(check, status, format string, args ...any) {
	d.findings = append(d.findings, finding{check, status, oneLine(fmt.Sprintf(format, args...))})
}

// examine checks one thing after another for as long as the next can be judged
// without the last. The error is a command line that can't be meant, which is no finding.
func (d *diagnosis) examine(ctx *cli.Context, c *console, anchor string) error {
	s, err := newSession(ctx, c, anchor)
	if errors.As(err, new(usageError)) {
		return err
	}
	if err != nil {
		d.problems("settings", err)
		return nil
	}
	if s.settings.Path == "" {
		d.add("settings", doubt, "no settings file; defaults and CREWHOST_* variables alone. crewhost init writes one")
	} else {
		d.add("settings", fine, "%s", s.settings.Path)
	}
	for _, w := range s.settings.Warnings {
		d.add("settings", doubt, "%s", w)
	}
	d.policy(s.settings.Permissions, c.terminal, ctx.String(approveFlag))

	for _, served := range s.settings.MCP.Served {
		for _, c := range served.Crews {
			if _, err := crew.Load(c.Path); err != nil {
				d.problems("crew "+c.Path, err)
			}
		}
	}

	s.progress.w = io.Discard // each line is a finding below
	host, err := s.open(ctx, func(cfg *runner.Config) { cfg.Crews = runner.ServedCrews(s.settings.MCP.Served...) })
	if errors.As(err, new(usageError)) {
		return err
	}
	if err != nil {
		d.servers(inOrder(s.progress.reports(), s.settings.MCP.Servers))
		d.problems("host", err)
		return nil
	}
	defer func() {
		if err := host.Close(); err != nil {
			d.add("shutdown", broken, "%v", err)
		}
	}()
	if name, err := host.CheckModel(ctx.Context); err != nil {
		d.add("model", broken, "%v", err)
	} else {
		d.add("model", fine, "%s (not called)", name)
	}
	if e := s.settings.LLM.Embeddings; e != nil {
		if _, err := host.Embedder(ctx.Context); err != nil {
			d.add("embeddings", broken, "%v", err)
		} else {
			d.add("embeddings", fine, "%s/%s (not called)", e.Provider, e.Model)
		}
	}
	for _, w := range host.IdleRules() {
		d.add("policy", doubt, "%s", w)
	}
	for _, w := range host.MountNotes() {
		d.add("mounts", doubt, "%s", strings.TrimPrefix(w, "mounts: "))
	}
	for _, w := range host.MissingCredentials(ctx.Context) {
		d.add("vault", doubt, "%s", w)
	}
	for _, m := range host.Mounts() {
		d.add("mount "+m.Virtual, fine, "%s", m.Rights)
	}
	d.servers(host.Servers())
	d.tools(host)
	d.tokens(host.Weigh(ctx.Context, nil, nil))
	return nil
}

// inOrder sorts reports, which came as servers were done, as the settings have
// the servers; those that agents bring along follow by name.
func inOrder(reports []mcp.ServerReport, servers []config.Server) []mcp.ServerReport {
	place := func(r mcp.ServerReport) int {
		if i := slices.IndexFunc(servers, func(s config.Server) bool { return s.Name == r.Name }); i >= 0 {
			return i
		}
		return len(servers)
	}
	slices.SortFunc(reports, func(a, b mcp.ServerReport) int {
		return cmp.Or(place(a)-place(b), strings.Compare(a.Name, b.Name))
	})
	return reports
}

func (d *diagnosis) problems(check string, err error) {
	var issues strict.Issues
	if !errors.As(err, &issues) {
		d.add(check, broken, "%v", err)
		return
	}
	for _, issue := range issues {
		d.add(check, broken, "%s", issue.Error())
	}
}

func (d *diagnosis) policy(p config.Permissions, terminal bool, approve string) {
	answer := "a person at this terminal is asked"
	switch {
	case approve != "ask":
		answer = "--approve " + approve + " answers"
	case !terminal:
		answer = "nobody can be asked here, so the answer is " + p.Headless
	}
	d.add("policy", fine, "default %s; %d allow, %d ask, %d deny; %s", p.Default, len(p.Allow), len(p.Ask), len(p.Deny), answer)
}

func (d *diagnosis) servers(reports []mcp.ServerReport) {
	for _, r := range reports {
		check := "server " + r.Name
		if len(r.Agents) > 0 {
			check += ", of " + whose(r.Agents)
		}
		switch {
		case r.Err != nil && r.Required:
			d.add(check, broken, "required: %s", reason(r.Err))
		case r.Err != nil:
			d.add(check, doubt, "%s", reason(r.Err))
		case len(r.Skipped) > 0:
			d.add(check, doubt, "%s; %s not registered", count(len(r.Tools), "tool"), count(len(r.Skipped), "tool"))
		default:
			d.add(check, fine, "%s, protocol %s, %s", count(len(r.Tools), "tool"), r.Protocol, took(r.Took))
		}
	}
}

// tools says how many tools there are, and which of the host's own are off.
func (d *diagnosis) tools(host *runner.Host) {
	var off []string
	for _, t := range host.Builtins() {
		if t.Why != "" {
			off = append(off, t.Tool.Name)
		}
	}
	detail := count(len(host.Tools()), "tool")
	if len(off) > 0 {
		detail += "; off: " + strings.Join(off, ", ") + " (crewhost tools list says how to turn them on)"
	}
	d.add("tools", fine, "%s", detail)
}

// tokens says what the tools take of a model's context where all were offered.
func (d *diagnosis) tokens(w runner.Weights) {
	for _, p := range w.Providers {
		var parts []string
		for _, s := range p.Servers {
			parts = append(parts, fmt.Sprintf("%s %d", hostOr(s.Server), s.Tokens))
		}
		d.add("tokens "+p.Provider, fine, "about %d of %s: %s", p.Tokens, count(p.Tools, "definition"), strings.Join(parts, ", "))
	}
}

func (d *diagnosis) print(out *output) error {
	for i, f := range d.findings {
		d.findings[i].Detail = out.mask(f.Detail)
	}
	switch {
	case out.json:
		if err := out.encode(d.findings); err != nil {
			return err
		}
	case out.format == formatJUnit:
		if err := junitOfFindings(d.findings).write(out.out); err != nil {
			return err
		}
	default:
		table := tabwriter.NewWriter(out.out, 0, 4, 2, ' ', 0)
		for _, f := range d.findings {
			fmt.Fprintf(table, "%s\t%s\t%s\n", f.Status, f.Check, f.Detail)
		}
		if err := table.Flush(); err != nil {
			return fmt.Errorf("writing the findings: %w", err)
		}
	}
	bad := slices.DeleteFunc(slices.Clone(d.findings), func(f finding) bool { return f.Status != broken })
	if len(bad) > 0 {
		return usagef("%s of %d failed", count(len(bad), "check"), len(d.findings))
	}
	return nil
}
