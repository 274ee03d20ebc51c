package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"crewhost/config/strict"
	"crewhost/runner"
	"crewhost/tools/builtin"
	"crewhost/tools/native"
)

// toolsCommand is what a person does with the host's own tools. No server is started for
// it; crewhost mcp has those that servers bring.
func toolsCommand(c *console) *cli.Command {
	return &cli.Command{
		Name:  "tools",
		Usage: "list the host's own tools, say what they take, and call them; starts no server",
		Subcommands: []*cli.Command{
			{
				Name:   "list",
				Usage:  "list them: which are on, and how to turn the others on",
				Flags:  append(settingsFlags(), formatFlagOf(formatText, formatJSON)),
				Action: func(ctx *cli.Context) error { return toolsList(ctx, c) },
			},
			{
				Name:         "show",
				Usage:        "say what tools do and what they take; as JSON, their schemas",
				ArgsUsage:    "TOOL…",
				Flags:        append(settingsFlags(), formatFlagOf(formatText, formatJSON)),
				BashComplete: completeTools(c),
				Action:       func(ctx *cli.Context) error { return toolsShow(ctx, c) },
			},
			{
				Name:         "call",
				Usage:        "call one, behind the same policy as an agent's call",
				ArgsUsage:    callUsage,
				Flags:        callFlags(),
				BashComplete: completeTools(c),
				Action: func(ctx *cli.Context) error {
					w, err := writtenCall(ctx, c) // before anything is opened
					if err != nil {
						return err
					}
					approve, err := oneOf(ctx, approveFlag, "ask", "allow", "deny")
					if err != nil {
						return err
					}
					return withTools(ctx, c, approve, func(ctx *cli.Context, host *runner.Host, out *output) error {
						if t, err := builtinNamed(host, w.command, w.tool); err != nil {
							return err
						} else if t.Why != "" {
							return usagef("%s: %s %s", w.command, t.Tool.Name, t.Why)
						}
						return carryOut(ctx, host, out, w)
					})
				},
			},
		},
		Action: func(ctx *cli.Context) error {
			if word := ctx.Args().First(); word != "" {
				return unknownCommand(ctx, word, "it knows list, show and call")
			}
			return cli.ShowSubcommandHelp(ctx)
		},
	}
}

// withTools opens a host that has no tools but its own. A rule that fits none of them may
// be of a server's, so nothing is said of it.
func withTools(ctx *cli.Context, c *console, approve string, f func(*cli.Context, *runner.Host, *output) error) (err error) {
	out, err := outputOf(ctx, c)
	if err != nil {
		return err
	}
	anchor, err := anchorOf("")
	if err != nil {
		return err
	}
	s, err := newSession(ctx, c, anchor)
	if err != nil {
		return err
	}
	s.settings.MCP.Enabled, s.alone = false, true
	host, err := s.openAs(ctx, approve)
	if err != nil {
		return err
	}
	defer closeHost(host, &err)
	return f(ctx, host, out)
}

// completeTools completes flags, and the names of tools.
func completeTools(c *console) func(*cli.Context) {
	return func(ctx *cli.Context) {
		cli.DefaultCompleteWithFlags(ctx.Command)(ctx)
		for _, t := range builtin.All(builtin.Config{}) {
			fmt.Fprintln(c.out, t.Tool.Name)
		}
	}
}

// builtinNamed is the host's own tool of that name, on or off.
func builtinNamed(host *runner.Host, command, name string) (builtin.Offer, error) {
	var names []string
	for _, t := range host.Builtins() {
		if t.Tool.Name == name {
			return t, nil
		}
		names = append(names, t.Tool.Name)
	}
	hint := ""
	if near := strict.Nearest(name, names); near != "" {
		hint = fmt.Sprintf(" (did you mean %q?)", near)
	}
	return builtin.Offer{}, usagef("%s: there is no built-in tool %q%s; crewhost tools list lists them, and crewhost mcp tools those of servers", command, name, hint)
}

// effectOf says what calls of a tool do to the world.
func effectOf(t native.Tool) string {
	if t.EffectOf != nil {
		return "varies"
	}
	switch t.Effect {
	case native.ReadOnly:
		return "reads"
	case native.Repeatable:
		return "repeatable"
	}
	return "once"
}

// effectsOf says the same in a sentence.
func effectsOf(t native.Tool) string {
	what := map[string]string{
		"reads":      "changes nothing",
		"repeatable": "a second call like the first changes nothing more",
		"once":       "a second call does more, or something else",
		"varies":     "it depends on the arguments whether a call changes something",
	}[effectOf(t)]
	if t.WritesFiles {
		what += "; what it changes is in the mounts"
	}
	if t.Open {
		what += "; it reaches beyond this machine"
	}
	return what
}

// firstSentence is the beginning of a description.
func firstSentence(s string) string {
	s = oneLine(s)
	if i := strings.Index(s, ". "); i >= 0 {
		return s[:i+1]
	}
	return s
}

// jsonBuiltin is one of the host's own tools.
type jsonBuiltin struct {
	Name        string          `json:"name"`
	Title       string          `json:"title"`
	Description string          `json:"description"`
	On          bool            `json:"on"`
	Why         string          `json:"why,omitempty"` // of one that is off
	Effect      string          `json:"effect"`
	Files       bool            `json:"filesOnly"` // it changes nothing but files of mounts
	Network     bool            `json:"network"`
	InputSchema json.RawMessage `json:"inputSchema,omitempty"`
	Policy      *jsonDecision   `json:"policy,omitempty"`
}

func jsonBuiltinOf(t builtin.Offer) jsonBuiltin {
	return jsonBuiltin{
		Name: t.Tool.Name, Title: t.Tool.Title, Description: t.Tool.Description, On: t.Why == "", Why: t.Why,
		Effect: effectOf(t.Tool), Files: t.Tool.WritesFiles, Network: t.Tool.Open,
	}
}

func toolsList(ctx *cli.Context, c *console) error {
	if err := atMost(ctx, 0); err != nil {
		return err
	}
	return withTools(ctx, c, "ask", func(_ *cli.Context, host *runner.Host, out *output) error {
		if out.json {
			list := []jsonBuiltin{}
			for _, t := range host.Builtins() {
				list = append(list, jsonBuiltinOf(t))
			}
			return out.encode(map[string]any{"tools": list})
		}
		table := tabwriter.NewWriter(out.out, 0, 4, 2, ' ', 0)
		fmt.Fprintln(table, "TOOL\tIS\tEFFECT\tNETWORK\tWHAT IT DOES")
		for _, t := range host.Builtins() {
			is, network, what := "on", "-", summary(firstSentence(t.Tool.Description))
			if t.Tool.Open {
				network = "yes"
			}
			if t.Why != "" {
				is, what = "off", t.Tool.Name+" "+t.Why
			}
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", t.Tool.Name, is, effectOf(t.Tool), network, what)
		}
		if err := table.Flush(); err != nil {
			return fmt.Errorf("writing the result: %w", err)
		}
		return nil
	})
}

func toolsShow(ctx *cli.Context, c *console) error {
	if ctx.NArg() == 0 {
		return usagef("tools show: name a tool; crewhost tools list lists them")
	}
	return withTools(ctx, c, "ask", func(ctx *cli.Context, host *runner.Host, out *output) error {
		var found []builtin.Offer
		for _, name := range ctx.Args().Slice() {
			t, err := builtinNamed(host, "tools show", name)
			if err != nil {
				return err
			}
			found = append(found, t)
		}
		list := []jsonBuiltin{}
		for i, t := range found {
			j := jsonBuiltinOf(t)
			j.InputSchema = json.RawMessage(t.Tool.Schema)
			var policy *runner.Explanation
			if j.On {
				e, err := host.Explain(nil, "", j.Name, nil)
				if err != nil {
					return err
				}
				decision := jsonDecisionOf(e.Decision)
				j.Policy, policy = &decision, &e
			}
			if list = append(list, j); out.json {
				continue
			}
			if i > 0 {
				if err := out.text("\n"); err != nil {
					return err
				}
			}
			if err := out.builtin(host, t, policy); err != nil {
				return err
			}
		}
		if out.json {
			return out.encode(map[string]any{"tools": list})
		}
		return nil
	})
}

// builtin prints what a tool does and takes. policy is nil of one that is off.
func (o *output) builtin(host *runner.Host, t builtin.Offer, policy *runner.Explanation) error {
	if err := o.text("%s: %s\n\n%s\n\n", t.Tool.Name, t.Tool.Title, strings.TrimSpace(t.Tool.Description)); err != nil {
		return err
	}
	params := parametersOf(json.RawMessage(t.Tool.Schema))
	for _, p := range params {
		about := []string{cmp.Or(p.Type, "any value")}
		if p.Required {
			about = append(about, "required")
		}
		if p.Bounds != "" {
			about = append(about, p.Bounds)
		}
		if p.Default != "" {
			about = append(about, "default "+p.Default)
		}
		if err := o.text("  %s (%s)\n      %s\n", p.Name, strings.Join(about, "; "), oneLine(p.Text)); err != nil {
			return err
		}
	}
	if len(params) == 0 {
		if err := o.text("  it takes no arguments\n"); err != nil {
			return err
		}
	}
	if err := o.text("\neffect: %s\n", effectsOf(t.Tool)); err != nil {
		return err
	}
	if policy == nil {
		return o.text("off:    %s %s\n", t.Tool.Name, t.Why)
	}
	lines := "policy: " + string(policy.Decision.Verdict) + ", " + policy.Decision.Reason
	for _, d := range policy.Conditional {
		lines += "\n        " + fmt.Sprintf("%s where it fits: %s", d.Verdict, d.Reason)
	}
	return o.text("%s\n", o.mask(lines))
}
