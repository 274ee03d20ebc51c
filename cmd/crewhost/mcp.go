package main

import (
	"fmt"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"crewhost/config"
	"crewhost/config/strict"
	"crewhost/mcp"
	"crewhost/runner"
	"crewhost/tools"
)

func mcpCommand(c *console) *cli.Command {
	return &cli.Command{
		Name:  "mcp",
		Usage: "serve MCP clients, look at the configured MCP servers and call their tools",
		Subcommands: []*cli.Command{
			listCommand(c),
			startCommand(c),
			serveCommand(c),
			{
				Name:      "tools",
				Usage:     "list the tools that the servers brought",
				ArgsUsage: "[SERVER…]",
				Flags:     append(hostFlags(), formatFlagOf("text", "json")),
				Action:    func(ctx *cli.Context) error { return withHostOf(ctx, c, "", known(ctx), mcpTools) },
			},
			{
				Name:      "call",
				Usage:     "call a tool, behind the same policy as an agent's call",
				ArgsUsage: callUsage,
				Flags:     callFlags(),
				Action: func(ctx *cli.Context) error {
					w, err := writtenCall(ctx, c) // before anything is started
					if err != nil {
						return err
					}
					return withHost(ctx, c, "", func(ctx *cli.Context, host *runner.Host, out *output) error {
						return carryOut(ctx, host, out, w)
					})
				},
			},
			{
				Name:      "ping",
				Usage:     "measure how long each server takes to answer a ping",
				ArgsUsage: "[SERVER…]",
				Flags:     append(hostFlags(), formatFlagOf("text", "json")),
				Action:    func(ctx *cli.Context) error { return pingServers(ctx, c) },
			},
			resourcesCommand(c),
			promptsCommand(c),
			loginCommand(c),
			logoutCommand(c),
		},
		Action: func(ctx *cli.Context) error {
			if word := ctx.Args().First(); word != "" {
				return unknownCommand(ctx, word, "it knows list, start, serve, tools, call, ping, resources, prompts, login and logout")
			}
			return cli.ShowSubcommandHelp(ctx)
		},
	}
}

// withHost opens the host on the settings of a crew for as long as f takes; ""
// stands for the working directory.
func withHost(ctx *cli.Context, c *console, crew string, f func(*cli.Context, *runner.Host, *output) error, changes ...func(*runner.Config)) error {
	return withHostOf(ctx, c, crew, func(*config.Settings) error { return nil }, f, changes...)
}

// withHostOf is withHost on settings that narrow may refuse, or reduce to what
// the command needs.
func withHostOf(ctx *cli.Context, c *console, crew string, narrow func(*config.Settings) error, f func(*cli.Context, *runner.Host, *output) error, changes ...func(*runner.Config)) (err error) {
	out, err := outputOf(ctx, c)
	if err != nil {
		return err
	}
	anchor, err := anchorOf(crew)
	if err != nil {
		return err
	}
	s, err := newSession(ctx, c, anchor)
	if err != nil {
		return err
	}
	if err := narrow(s.settings); err != nil {
		return err
	}
	host, err := s.open(ctx, changes...)
	if err != nil {
		return err
	}
	defer closeHost(host, &err)
	return f(ctx, host, out)
}

// mcpTools lists the tools of all servers, or of those that are named, which
// then must be there.
func mcpTools(ctx *cli.Context, host *runner.Host, out *output) error {
	names := ctx.Args().Slice()
	if err := connected(host, names); err != nil {
		return err
	}
	var defs []tools.Definition
	for _, d := range host.Tools() {
		if d.Server != "" && (len(names) == 0 || slices.Contains(names, d.Server)) {
			defs = append(defs, d)
		}
	}
	if out.json {
		return out.tools(defs)
	}
	table := tabwriter.NewWriter(out.out, 0, 4, 2, ' ', 0)
	for _, d := range defs {
		fmt.Fprintf(table, "%s\t%s\t%s\n", oneLine(d.Name), d.Server, summary(d.Description))
	}
	return table.Flush()
}

// known refuses the names of servers that the settings do not have, before any
// server is started.
func known(ctx *cli.Context) func(*config.Settings) error {
	return func(settings *config.Settings) error {
		var names []string
		for _, s := range settings.MCP.Servers {
			names = append(names, s.Name)
		}
		for _, name := range ctx.Args().Slice() {
			if slices.Contains(names, name) {
				continue
			}
			hint := ""
			if near := strict.Nearest(name, names); near != "" {
				hint = fmt.Sprintf(" (did you mean %q?)", near)
			}
			return usagef("the settings have no MCP server %q%s", name, hint)
		}
		return nil
	}
}

// connected refuses the names of servers that are not there.
func connected(host *runner.Host, names []string) error {
	reports := host.Servers()
	for _, name := range names {
		i := slices.IndexFunc(reports, func(r mcp.ServerReport) bool { return r.Name == name })
		switch {
		case i < 0:
			return usagef("the settings have no MCP server %q", name)
		case reports[i].Err != nil:
			return usagef("MCP server %q could not be connected", name)
		}
	}
	return nil
}

// summary is the beginning of a description, for a table.
func summary(s string) string {
	const width = 72
	text := []rune(oneLine(s))
	if len(text) <= width {
		return string(text)
	}
	return string(text[:width-1]) + "…"
}

// pingServers connects the servers that are named, or all, and no others, and
// pings them.
func pingServers(ctx *cli.Context, c *console) error {
	names := ctx.Args().Slice()
	named := func(settings *config.Settings) error {
		servers := &settings.MCP.Servers
		if err := known(ctx)(settings); err != nil {
			return err
		}
		if len(names) > 0 {
			*servers = slices.DeleteFunc(*servers, func(s config.Server) bool { return !slices.Contains(names, s.Name) })
		}
		return nil
	}
	return withHostOf(ctx, c, "", named, ping)
}

func ping(ctx *cli.Context, host *runner.Host, out *output) error {
	type answer struct {
		Server string  `json:"server"`
		Millis float64 `json:"pingMs,omitempty"`
		Error  string  `json:"error,omitempty"`
	}
	answers := []answer{}
	failed := 0
	for _, r := range host.Servers() {
		a := answer{Server: r.Name}
		d, err := host.Ping(ctx.Context, r.Name)
		if err != nil {
			a.Error = out.reason(err)
			failed++
		} else {
			a.Millis = float64(d) / float64(time.Millisecond)
		}
		answers = append(answers, a)
	}
	if out.json {
		if err := out.encode(map[string]any{"servers": answers}); err != nil {
			return err
		}
	} else {
		for _, a := range answers {
			text := a.Error
			if text == "" {
				text = fmt.Sprintf("%.2f ms", a.Millis)
			}
			if err := out.text("%s: %s\n", a.Server, text); err != nil {
				return err
			}
		}
	}
	if failed > 0 {
		return &runner.RunError{Err: fmt.Errorf("%s did not answer", count(failed, "server"))}
	}
	return nil
}
