package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"crewhost/config"
	"crewhost/crew"
	"crewhost/runner"
	"crewhost/runner/approvals"
	"crewhost/tools/permission"
)

const (
	crewFlag    = "crew"
	callerFlag  = "agent"
	argsFlag    = "args"
	offlineFlag = "offline"
	allFlag     = "all"
)

// policyCommand is what an operator reads, proves and takes back of the policy.
func policyCommand(c *console) *cli.Command {
	return &cli.Command{
		Name:  "policy",
		Usage: "say what the policy allows, asks and denies, and what was allowed always",
		Subcommands: []*cli.Command{
			{
				Name:      "explain",
				Usage:     "say what the policy says to a call, by which rule; without a tool, to all",
				ArgsUsage: "[TOOL]",
				Flags: append(append(settingsFlags(), mountFlags()...),
					&cli.StringFlag{Name: crewFlag, Usage: "as called by the agents of `CREW`"},
					&cli.StringFlag{Name: callerFlag, Usage: "as called by the agent `KEY` of the crew"},
					&cli.StringFlag{Name: argsFlag, Usage: "of a call with the arguments `JSON`"},
					&cli.BoolFlag{Name: offlineFlag, Usage: "start no server: their tools are known by their names alone"},
					overrideFlagOf(),
					formatFlagOf(formatText, formatJSON),
				),
				Action: func(ctx *cli.Context) error { return policyExplain(ctx, c) },
			},
			{
				Name:   "approvals",
				Usage:  "list what was allowed always",
				Flags:  []cli.Flag{formatFlagOf(formatText, formatJSON)},
				Action: func(ctx *cli.Context) error { return policyApprovals(ctx, c) },
			},
			{
				Name:      "revoke",
				Usage:     "take back what was allowed always",
				ArgsUsage: "ID…",
				Flags:     []cli.Flag{&cli.BoolFlag{Name: allFlag, Usage: "take back all of it"}},
				Action:    func(ctx *cli.Context) error { return policyRevoke(ctx, c) },
			},
		},
		Action: func(ctx *cli.Context) error {
			if word := ctx.Args().First(); word != "" {
				return unknownCommand(ctx, word, "it knows explain, approvals and revoke")
			}
			return cli.ShowSubcommandHelp(ctx)
		},
	}
}

func policyExplain(ctx *cli.Context, c *console) (err error) {
	if err := atMost(ctx, 1); err != nil {
		return err
	}
	tool, key, args := ctx.Args().First(), ctx.String(callerFlag), json.RawMessage(ctx.String(argsFlag))
	switch {
	case ctx.IsSet(argsFlag) && tool == "":
		return usagef("policy explain: --args are of a call; name its tool")
	case ctx.IsSet(argsFlag) && !json.Valid(args):
		return usagef("policy explain: --args is not JSON: %s", args)
	case ctx.IsSet(callerFlag) && key == "":
		return usagef("policy explain: --agent is empty: name an agent of the crew")
	case ctx.IsSet(crewFlag) && ctx.String(crewFlag) == "":
		return usagef("policy explain: --crew is empty: name a crew")
	case key != "" && !ctx.IsSet(crewFlag):
		return usagef("policy explain: --agent is of a crew; name it: --crew crew.yaml")
	case ctx.IsSet(overrideFlag) && !ctx.IsSet(crewFlag):
		return usagef("--%s changes a crew; name one", overrideFlag)
	}
	var loaded *crew.Crew
	if ctx.IsSet(crewFlag) {
		if loaded, err = loadCrew(ctx, ctx.String(crewFlag)); err != nil {
			return err
		}
	}
	out, err := outputOf(ctx, c)
	if err != nil {
		return err
	}
	anchor, err := anchorOf(ctx.String(crewFlag))
	if err != nil {
		return err
	}
	s, err := newSession(ctx, c, anchor)
	if err != nil {
		return err
	}
	if ctx.Bool(offlineFlag) {
		s.settings.MCP.Enabled = false
	}
	// Nobody is asked about anything here; what stands for a person elsewhere has no
	// say in what the policy is.
	host, err := s.openAs(ctx, "ask", forCrew(loaded, nil), func(cfg *runner.Config) { cfg.Approver = nil })
	if err != nil {
		return err
	}
	defer closeHost(host, &err)
	rows := []runner.Explanation{{}}
	if tool != "" {
		rows[0], err = host.Explain(loaded, key, tool, args)
	} else {
		rows, err = host.Matrix(loaded, key)
	}
	var unexplained *runner.ExplainError
	switch {
	case errors.As(err, &unexplained):
		return usagef("policy explain: %s", unexplained)
	case err != nil:
		return err
	}
	switch {
	case out.json:
		return out.explanations(host, rows)
	case tool != "":
		return out.explanation(host, rows[0])
	}
	return out.matrix(host, rows)
}

// jsonDecision is a decision and the rule that made it.
type jsonDecision struct {
	Decision string    `json:"decision"`
	Rule     *jsonRule `json:"rule,omitempty"` // absent: the default, or whose server it is
	Reason   string    `json:"reason"`
}

type jsonRule struct {
	Pattern string `json:"pattern"`
	Place   string `json:"place,omitempty"`
	Agent   string `json:"agent,omitempty"` // whose toolset it is an entry of
}

func jsonDecisionOf(d permission.Decision) jsonDecision {
	j := jsonDecision{Decision: string(d.Verdict), Reason: d.Reason}
	if d.Rule != nil {
		j.Rule = &jsonRule{d.Rule.Pattern, d.Rule.Place, d.Rule.Agent}
	}
	return j
}

// explanations prints them in JSON.
func (o *output) explanations(host *runner.Host, rows []runner.Explanation) error {
	type row struct {
		Agent  string `json:"agent,omitempty"`
		Tool   string `json:"tool"`
		Server string `json:"server,omitempty"`
		There  bool   `json:"there"`
		Held   bool   `json:"held"`
		jsonDecision
		// Conditional are the decisions about calls that meet a condition.
		Conditional []jsonDecision `json:"conditional"`
		// Call is the decision about the call with the arguments that were given.
		Call     *jsonDecision `json:"call,omitempty"`
		Approved bool          `json:"allowedAlways"`
	}
	list := []row{}
	for _, e := range rows {
		r := row{
			Agent: e.Agent, Tool: e.Tool, Server: e.Server, There: e.There, Held: e.Held,
			jsonDecision: jsonDecisionOf(e.Decision), Conditional: []jsonDecision{}, Approved: e.Approved,
		}
		for _, d := range e.Conditional {
			r.Conditional = append(r.Conditional, jsonDecisionOf(d))
		}
		if e.Call != nil {
			call := jsonDecisionOf(*e.Call)
			r.Call = &call
		}
		list = append(list, r)
	}
	return o.encode(map[string]any{"headless": string(host.Headless()), "tools": list})
}

// explanation prints one, in lines.
func (o *output) explanation(host *runner.Host, e runner.Explanation) error {
	what := e.Tool
	if e.Server != "" && e.There {
		what += fmt.Sprintf(" of MCP server %q", e.Server)
	}
	if e.Agent != "" {
		what += fmt.Sprintf(", called by agent %q", e.Agent)
	}
	d := e.Decision
	if e.Call != nil {
		d = *e.Call
	}
	lines := []string{fmt.Sprintf("%s: %s", what, d.Verdict), "  " + d.Reason}
	if e.Call == nil {
		for _, c := range e.Conditional {
			lines = append(lines, fmt.Sprintf("  %s where it fits: %s", c.Verdict, c.Reason))
		}
	}
	if !e.There {
		lines = append(lines, "  the tool is not there; the policy knows it by its name")
	}
	if !e.Held {
		lines = append(lines, "  the agent does not have the tool")
	}
	if d.Verdict == permission.Ask {
		lines = append(lines, "  "+asked(host, e))
	}
	for _, line := range lines {
		if err := o.text("%s\n", still(line)); err != nil {
			return err
		}
	}
	return nil
}

// asked says what becomes of a question.
func asked(host *runner.Host, e runner.Explanation) string {
	if e.Approved && e.Call == nil {
		return "it was allowed always, and is not asked about (crewhost policy approvals)"
	}
	return fmt.Sprintf("where nobody can be asked: %s (--approve, permissions.headless)", host.Headless())
}

// matrix prints them as a table.
func (o *output) matrix(host *runner.Host, rows []runner.Explanation) error {
	table := tabwriter.NewWriter(o.out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(table, "AGENT\tTOOL\tDECISION\tBECAUSE")
	for _, e := range rows {
		verdict, agent := string(e.Decision.Verdict), e.Agent
		if e.Approved {
			verdict += " (allowed always)"
		}
		if agent == "" {
			agent = "-"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", still(agent), still(e.Tool), verdict, still(e.Decision.Reason))
		for _, d := range e.Conditional {
			fmt.Fprintf(table, "\t\tor %s\t%s\n", d.Verdict, still(d.Reason))
		}
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("writing the result: %w", err)
	}
	return o.text("Where nobody can be asked, ask means %s.\n", host.Headless())
}

// approvalsOf is the file of what was allowed always.
func approvalsOf(c *console) (approvals.Store, error) {
	dir := userStateDir(c.environ)
	if dir == "" {
		return approvals.Store{}, usagef("nothing says where a user's state is kept: set HOME or XDG_STATE_HOME")
	}
	return approvals.Store{Path: config.ApprovalsFile(dir)}, nil
}

func policyApprovals(ctx *cli.Context, c *console) error {
	if err := atMost(ctx, 0); err != nil {
		return err
	}
	out, err := outputOf(ctx, c)
	if err != nil {
		return err
	}
	store, err := approvalsOf(c)
	if err != nil {
		return err
	}
	list, err := store.List()
	if err != nil {
		return err
	}
	if out.json {
		type row struct {
			ID string `json:"id"`
			approvals.Entry
		}
		rows := []row{}
		for _, e := range list {
			rows = append(rows, row{e.ID(), e})
		}
		return out.encode(map[string]any{"approvals": rows})
	}
	table := tabwriter.NewWriter(out.out, 0, 4, 2, ' ', 0)
	if len(list) > 0 {
		fmt.Fprintln(table, "ID\tTOOL\tSERVER\tASKED BY\tUNDER\tSINCE")
	}
	for _, e := range list {
		by := "the default"
		if e.Asked != "" {
			by = fmt.Sprintf("%q", e.Asked)
		}
		if e.Agent != "" {
			by += fmt.Sprintf(" of agent %q", e.Agent)
		}
		server, under := e.Server, e.Crew
		if e.Endpoint != "" {
			server += " (" + e.Endpoint + ")"
		}
		if under == "" {
			under = e.Settings
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", e.ID(), still(e.Tool), still(server), still(by), still(under), e.At.UTC().Format(time.DateOnly))
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("writing the result: %w", err)
	}
	return nil
}

func policyRevoke(ctx *cli.Context, c *console) error {
	ids := ctx.Args().Slice()
	switch all := ctx.Bool(allFlag); {
	case all && len(ids) > 0:
		return usagef("policy revoke: --all, or ids; not both")
	case !all && len(ids) == 0:
		return usagef("policy revoke: name what to take back; crewhost policy approvals lists it")
	}
	store, err := approvalsOf(c)
	if err != nil {
		return err
	}
	list, err := store.List()
	if err != nil {
		return err
	}
	known := map[string]bool{}
	for _, e := range list {
		known[e.ID()] = true
		if ctx.Bool(allFlag) {
			ids = append(ids, e.ID())
		}
	}
	for _, id := range ids {
		if !known[id] {
			return usagef("policy revoke: there is no approval %q; crewhost policy approvals lists them", id)
		}
	}
	revoked, err := store.Revoke(ctx.Context, ids...)
	if err != nil {
		return err
	}
	for _, e := range revoked {
		if _, err := fmt.Fprintf(c.out, "%s is no longer allowed always: %s\n", e.ID(), still(e.Tool)); err != nil {
			return fmt.Errorf("writing the result: %w", err)
		}
	}
	return nil
}
