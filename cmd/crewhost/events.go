package main

import (
	"strings"

	"github.com/urfave/cli/v2"

	"crewhost/runner/event"
)

// eventsCommand prints what is known of events.
func eventsCommand(c *console) *cli.Command {
	return &cli.Command{
		Name:  "events",
		Usage: "about the events of a run that a program watches",
		Subcommands: []*cli.Command{{
			Name:  "schema",
			Usage: "print the JSON Schema of the events",
			Action: func(ctx *cli.Context) error {
				if err := atMost(ctx, 0); err != nil {
					return err
				}
				out := &output{out: c.out}
				return out.text("%s\n", strings.TrimSpace(string(event.Schema())))
			},
		}},
		Action: func(ctx *cli.Context) error {
			if word := ctx.Args().First(); word != "" {
				return unknownCommand(ctx, word, "it knows schema")
			}
			return cli.ShowSubcommandHelp(ctx)
		},
	}
}
