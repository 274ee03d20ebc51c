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

	"crewhost/config"
	"crewhost/runner/llm/provider"
)

//go:embed init/crew.yaml
var initCrew string

//go:embed init/crewhost.yaml
var initSettings string

// firstModel is the model that a new settings file names for a provider: one of
// the vendor's that is known to call tools. The others' are for the user to name.
func firstModel(provider string) string {
	return map[string]string{
		"openai": "gpt-5", "anthropic": "claude-sonnet-4-5", "gemini": "gemini-flash-latest", "azure": "gpt-5", "ollama": "llama3.2",
		"openrouter": "openai/gpt-5", "mistral": "mistral-large-latest", "deepseek": "deepseek-chat", "groq": "openai/gpt-oss-120b",
		"together": "openai/gpt-oss-120b", "xai": "grok-4", "cerebras": "gpt-oss-120b", "qwen": "qwen-plus", "zai": "glm-4.6",
		"minimax": "MiniMax-M2", "huggingface": "openai/gpt-oss-120b", "docker-model-runner": "ai/gpt-oss",
	}[provider]
}

// firstURL is the base URL of a provider that has none of its own.
func firstURL(provider string) string {
	switch provider {
	case "azure":
		return "https://RESOURCE.openai.azure.com"
	case config.ProviderCompatible:
		return "http://127.0.0.1:8000/v1"
	}
	return ""
}

// startingPoints returns the names of the providers that a settings file can begin
// with.
func startingPoints() []string {
	var names []string
	for _, row := range provider.All() {
		names = append(names, row.Name)
	}
	return append(names, config.ProviderEcho)
}

// startingPoint is the llm section of a new settings file.
func startingPoint(name string) string {
	row, ok := provider.Find(name)
	if !ok {
		return "  provider: echo   # answers with the question; needs no key and no network\n"
	}
	text := "  provider: " + row.Name + "\n"
	if model := firstModel(row.Name); model != "" {
		text += "  model: " + model + "\n"
	} else {
		text += "  model: MODEL   # the name of yours\n"
	}
	if url := firstURL(row.Name); url != "" {
		text += "  base_url: " + url + "\n"
	}
	if row.KeyVariable != "" {
		text += "  api_key: ${" + row.KeyVariable + "}\n"
	}
	return text
}

func initCommand(c *console) *cli.Command {
	return &cli.Command{
		Name:      "init",
		Usage:     "write a settings file and a first crew into a folder",
		ArgsUsage: "[DIR]",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "provider", Usage: "the `NAME` of the model's provider: " + strings.Join(startingPoints(), ", "), Value: config.ProviderOpenAI},
			&cli.BoolFlag{Name: "force", Aliases: []string{"f"}, Usage: "overwrite files that are there"},
		},
		Action: func(ctx *cli.Context) error {
			name, err := oneOf(ctx, "provider", startingPoints()...)
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
			return writeStart(c, dir, name, ctx.Bool("force"))
		},
	}
}

// writeStart writes both files or, where one is in the way, neither.
func writeStart(c *console, dir, name string, force bool) error {
	files := []struct{ name, text string }{
		{"crewhost.yaml", strings.Replace(initSettings, "  # llm\n", startingPoint(name), 1)},
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
