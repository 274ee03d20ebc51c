package main

import (
	_ "embed"
	"fmt"

	"github.com/urfave/cli/v2"
)

//go:embed completion/bash.sh
var bashCompletion string

//go:embed completion/zsh.sh
var zshCompletion string

func completionCommand(c *console) *cli.Command {
	return &cli.Command{
		Name:      "completion",
		Usage:     "print a script that completes commands and flags in a shell",
		ArgsUsage: "bash|zsh|fish",
		Action: func(ctx *cli.Context) error {
			if err := atMost(ctx, 1); err != nil {
				return err
			}
			var script string
			var err error
			switch shell := ctx.Args().First(); shell {
			case "bash":
				script = bashCompletion
			case "zsh":
				script = zshCompletion
			case "fish":
				script, err = ctx.App.ToFishCompletion()
			default:
				return usagef("completion %q: it knows bash, zsh and fish", shell)
			}
			if err != nil {
				return fmt.Errorf("writing the completion: %w", err)
			}
			_, err = fmt.Fprint(c.out, script)
			return err
		},
	}
}
