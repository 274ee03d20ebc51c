package main

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"crewhost/tools/audit"
)

const (
	expectFlag  = "expect"
	sinceFlag   = "since"
	agentFlag   = "agent"
	toolFlag    = "tool"
	serverFlag  = "server"
	runFlag     = "run"
	outcomeFlag = "outcome"
)

// auditCommand is what a person does with the log of calls.
func auditCommand(c *console) *cli.Command {
	return &cli.Command{
		Name:  "audit",
		Usage: "hold the log of calls against its own hashes, and look into it",
		Subcommands: []*cli.Command{
			{
				Name:      "verify",
				Usage:     "find the first place where the log is not what was written, and print its head",
				ArgsUsage: "[FILE]",
				Flags: append(settingsFlags(),
					&cli.StringFlag{Name: expectFlag, Usage: "want the log to have the record `HEAD`, NUMBER:HASH, which was kept elsewhere"},
					formatFlagOf(formatText, formatJSON)),
				Action: func(ctx *cli.Context) error { return withAudit(ctx, c, auditVerify) },
			},
			{
				Name:      "show",
				Usage:     "list what is on record, the oldest first",
				ArgsUsage: "[FILE]",
				Flags: append(settingsFlags(),
					&cli.StringFlag{Name: sinceFlag, Usage: "from `TIME` on: 2026-01-31, 2026-01-31T15:04:05Z, or 2h for the last two hours"},
					&cli.StringFlag{Name: runFlag, Usage: "of the run `ID` only"},
					&cli.StringFlag{Name: agentFlag, Usage: "of the agent `KEY` only"},
					&cli.StringFlag{Name: serverFlag, Usage: "of the MCP server `NAME` only"},
					&cli.StringFlag{Name: toolFlag, Usage: "of tools whose name is `NAME` only; * stands for any characters"},
					&cli.StringFlag{Name: outcomeFlag, Usage: "what came to `OUTCOME` only: succeeded, error, denied, refused, failed; of runs completed, failed, stopped; of requests answered, refused, failed, stopped"},
					formatFlagOf(formatText, formatJSON)),
				Action: func(ctx *cli.Context) error { return withAudit(ctx, c, auditShow) },
			},
		},
		Action: func(ctx *cli.Context) error {
			if word := ctx.Args().First(); word != "" {
				return unknownCommand(ctx, word, "it knows verify and show")
			}
			return cli.ShowSubcommandHelp(ctx)
		},
	}
}

// withAudit finds the log: the file that is named, or that of the settings, whether or
// not they have it written.
func withAudit(ctx *cli.Context, c *console, do func(ctx *cli.Context, file string, out *output) error) error {
	if err := atMost(ctx, 1); err != nil {
		return err
	}
	out, err := outputOf(ctx, c)
	if err != nil {
		return err
	}
	if ctx.NArg() == 1 {
		file, err := filepath.Abs(ctx.Args().First())
		if err != nil {
			return usagef("%s: %v", ctx.Command.HelpName, err)
		}
		return do(ctx, file, out)
	}
	anchor, err := anchorOf("")
	if err != nil {
		return err
	}
	s, err := newSession(ctx, c, anchor)
	if err != nil {
		return err
	}
	if s.settings.Audit.File == "" {
		return usagef("%s: no log of calls is known: name a file, or set audit.file in the settings", ctx.Command.HelpName)
	}
	return do(ctx, s.settings.Audit.File, out)
}

// jsonAudit is the outcome of a verification.
type jsonAudit struct {
	OK      bool     `json:"ok"`
	Log     string   `json:"log"`
	Files   int      `json:"files"`
	Records uint64   `json:"records"`
	First   uint64   `json:"first"`
	Head    string   `json:"head,omitempty"`
	Since   uint64   `json:"sinceExpected"`
	Lost    int      `json:"lost"`
	Torn    int      `json:"torn"`
	TornAt  []string `json:"tornAt"`
	File    string   `json:"file,omitempty"` // of the break
	Line    int      `json:"line,omitempty"`
	Reason  string   `json:"reason,omitempty"`
}

func auditVerify(ctx *cli.Context, file string, out *output) error {
	var expected audit.Head
	if ctx.IsSet(expectFlag) {
		var err error
		if expected, err = audit.ParseHead(ctx.String(expectFlag)); err != nil {
			return usagef("audit verify: --%s: %v", expectFlag, err)
		}
	}
	r, err := audit.Verify(ctx.Context, file, expected)
	var broken *audit.Break
	if err != nil && !errors.As(err, &broken) {
		return err
	}
	if out.json {
		v := jsonAudit{
			OK: err == nil, Log: file, Files: r.Files, Records: r.Records, First: r.First, Since: r.Since, Lost: r.Lost, Torn: r.TornLines, TornAt: []string{},
		}
		if r.Records > 0 {
			v.Head = r.Head.String()
		}
		for _, at := range r.Torn {
			v.TornAt = append(v.TornAt, at.String())
		}
		if broken != nil {
			v.File, v.Line, v.Reason = broken.File, broken.Line, broken.Reason
		}
		return errors.Join(out.encode(v), err)
	}
	for _, at := range r.Torn {
		fmt.Fprintf(out.console.err, "WARNING: %s: its writer was stopped in the middle of the line, as the record after it says\n", at)
	}
	if n := r.TornLines - len(r.Torn); n > 0 {
		fmt.Fprintf(out.console.err, "WARNING: so it was %s more\n", count(n, "time"))
	}
	if r.Lost > 0 {
		fmt.Fprintf(out.console.err, "WARNING: %s could not be written, as the log says itself\n", count(r.Lost, "record"))
	}
	if err != nil {
		return err
	}
	if err := out.text("AUDIT OK: %s (records=%d, files=%d, first=%d)\n", file, r.Records, r.Files, r.First); err != nil {
		return err
	}
	return out.text("head %s\n", r.Head)
}

// auditFilter says what is to be shown.
type auditFilter struct {
	since                              time.Time
	run, agent, server, tool, outcomes string
}

func auditFilterOf(ctx *cli.Context, now time.Time) (auditFilter, error) {
	f := auditFilter{
		run: ctx.String(runFlag), agent: ctx.String(agentFlag), server: ctx.String(serverFlag), tool: ctx.String(toolFlag), outcomes: ctx.String(outcomeFlag),
	}
	if _, err := path.Match(f.tool, ""); err != nil {
		return f, usagef("audit show: --%s %q: %v", toolFlag, f.tool, err)
	}
	outcomes := []string{"", "succeeded", "error", "denied", "refused", "failed", "completed", "stopped", "answered"}
	if !slices.Contains(outcomes, f.outcomes) {
		return f, usagef("audit show: --%s %q: it takes %s", outcomeFlag, f.outcomes, strings.Join(outcomes[1:], ", "))
	}
	since := ctx.String(sinceFlag)
	if since == "" {
		return f, nil
	}
	if ago, err := time.ParseDuration(since); err == nil && ago >= 0 {
		f.since = now.Add(-ago)
		return f, nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04", time.DateOnly} {
		if t, err := time.ParseInLocation(layout, since, time.Local); err == nil {
			f.since = t
			return f, nil
		}
	}
	return f, usagef("audit show: --%s %q: write 2026-01-31, 2026-01-31T15:04:05Z, or 2h", sinceFlag, since)
}

// wants reports whether a record is to be shown.
func (f auditFilter) wants(r audit.Record) bool {
	is := func(want, got string) bool { return want == "" || want == got }
	tool := f.tool == ""
	if !tool && r.Tool != "" {
		tool, _ = path.Match(f.tool, r.Tool)
	}
	return tool && !r.Time.Before(f.since) && is(f.run, r.Run) && is(f.agent, r.Agent) && is(f.server, r.Server) && is(f.outcomes, r.Outcome)
}

// maxOpen is how many calls without an end are remembered while a log is shown.
const maxOpen = 10_000

// auditShow lists records. The start of a call is not shown where its end is on record;
// calls without one come last: they were under way when their host ended.
func auditShow(ctx *cli.Context, file string, out *output) error {
	f, err := auditFilterOf(ctx, time.Now())
	if err != nil {
		return err
	}
	type opened struct {
		record audit.Record
		text   string
	}
	var (
		open   []opened
		at     = map[string]int{} // places in open, by the call's id
		spoilt int
	)
	show := func(r audit.Record, text string) error {
		if !f.wants(r) {
			return nil
		}
		if out.json {
			return out.text("%s\n", text)
		}
		return out.text("%s\n", auditLine(r))
	}
	err = audit.Read(ctx.Context, file, func(l audit.Line) error {
		r := l.Record
		switch {
		case l.Err != nil:
			spoilt++
			return nil
		case r.Kind == audit.CallStarted && len(at) < maxOpen:
			at[r.ID] = len(open)
			open = append(open, opened{r, string(l.Text)})
			return nil
		case r.Kind == audit.Call:
			if i, known := at[r.ID]; known {
				delete(at, r.ID)
				open[i] = opened{}
			}
			if len(at) == 0 {
				open = open[:0]
			}
		}
		return show(r, string(l.Text))
	})
	if err != nil {
		return err
	}
	for _, o := range open {
		if o.text == "" {
			continue
		}
		if err := show(o.record, o.text); err != nil {
			return err
		}
	}
	if spoilt > 0 {
		fmt.Fprintf(out.console.err, "WARNING: %s not shown, without a record; crewhost audit verify says where\n", count(spoilt, "line"))
	}
	return nil
}

// auditLine is a record on one line.
func auditLine(r audit.Record) string {
	parts := []string{r.Time.Format("2006-01-02T15:04:05.000Z"), string(r.Kind)}
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	if r.Kind == audit.CallStarted {
		parts[1] = "call without an end"
	}
	if r.Outcome != "" {
		add("%s", r.Outcome)
	}
	if r.Code != "" {
		add("(%s)", r.Code)
	}
	if r.Tool != "" {
		add("%s", r.Tool)
	}
	if r.Request != nil {
		add("%s %s", r.Request.Method, r.Request.Origin)
		if r.Request.Status != 0 {
			add("%d", r.Request.Status)
		}
		if r.Request.Credential != "" {
			add("credential=%s", r.Request.Credential)
		}
	}
	for _, of := range []struct{ name, value string }{
		{"server", r.Server}, {"agent", r.Agent}, {"task", r.Task}, {"client", r.Client}, {"crew", r.Crew}, {"run", r.Run},
	} {
		if of.value != "" && (of.name != "crew" || r.Kind == audit.RunStarted) {
			add("%s=%s", of.name, of.value)
		}
	}
	if d := r.Decision; d != nil {
		rule := "default"
		if d.Rule != "" {
			rule = d.Rule
		}
		add("%s by %s", d.Verdict, strings.TrimSpace(rule+" "+d.Place))
	}
	if a := r.Answer; a != nil {
		word := "denied"
		if a.Allow {
			word = "allowed"
		}
		add("%s by %s", strings.TrimSpace(word+" "+a.Scope), a.Who)
	}
	if a := r.Arguments; a != nil {
		add("%s", a.Shape)
	}
	switch r.Kind {
	case audit.Call, audit.Forward:
		add("%d B, %d ms", r.Bytes, r.Millis)
	case audit.RunFinished:
		add("%d ms", r.Millis)
	}
	if r.Torn != nil {
		add("a torn line of %s stands before it", count(r.Torn.Bytes, "byte"))
	}
	if r.Lost > 0 {
		add("%s", count(r.Lost, "record"))
	}
	return oneLine(strings.Join(parts, " "))
}
