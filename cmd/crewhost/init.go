package main

import (
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"
)

//go:embed init/crew.yaml
var initCrew string

//go:embed init/crewhost.yaml
var initSettings string

// startingPoints are the lines of the llm section for each choice of provider.
var startingPoints = map[string]string{
	"openai":    "  provider: openai\n  model: gpt-5\n  api_key: ${OPENAI_API_KEY}\n",
	"anthropic": "  provider: anthropic\n  model: claude-sonnet-4-5\n  api_key: ${ANTHROPIC_API_KEY}\n",
	"ollama":    "  provider: openai\n  model: llama3.2\n  base_url: http://127.0.0.1:11434/v1\n",
	"echo":      "  provider: echo   # answers with the question; needs no key and no network\n",
}

func initCommand(c *console) *cli.Command {
	return &cli.Command{
		Name:      "init",
		Usage:     "write a settings file and a first crew into a folder",
		ArgsUsage: "[DIR]",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "provider", Usage: "the model to start with: `openai|anthropic|ollama|echo`", Value: "openai"},
			&cli.BoolFlag{Name: "force", Aliases: []string{"f"}, Usage: "overwrite files that are there"},
		},
		Action: func(ctx *cli.Context) error {
			provider, err := oneOf(ctx, "provider", "openai", "anthropic", "ollama", "echo")
			if err != nil {
				return err
			}
			if err := atMost(ctx, 1); err != nil {
				return err
			}
			dir := ctx.Args().First()
			if dir == "" {
				dir = "."
			}
			return writeStart(c, dir, provider, ctx.Bool("force"))
		},
	}
}

// writeStart writes both files or, where one is in the way, neither.
func writeStart(c *console, dir, provider string, force bool) error {
	files := []struct{ name, text string }{
		{"crewhost.yaml", strings.Replace(initSettings, "  # llm\n", startingPoints[provider], 1)},
		{"crew.yaml", initCrew},
	}
	if !force {
		for _, f := range files {
			path := filepath.Join(dir, f.name)
			if _, err := os.Lstat(path); err == nil {
				return usagef("init: %s is there already; --force overwrites it", path)
			} else if !errors.Is(err, fs.ErrNotExist) {
				return usagef("init: %v", err)
			}
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, "out"), 0o755); err != nil {
		return usagef("init: making the folder: %v", err)
	}
	for _, f := range files {
		path := filepath.Join(dir, f.name)
		if err := os.WriteFile(path, []byte(f.text), 0o644); err != nil {
			return usagef("init: %v", err)
		}
		fmt.Fprintf(c.err, "wrote %s\n", path)
	}
	fmt.Fprintf(c.err, "next: crewhost doctor, then crewhost run %s --var topic=tides\n", filepath.Join(dir, "crew.yaml"))
	return nil
}
