package config_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"crewhost/config"
	"crewhost/config/strict"
)

func Example() {
	dir, err := os.MkdirTemp("", "settings")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "crewhost.yaml")
	text := "llm: {model: m, api_key: \"${KEY}\"}\nmcp: {servers: {a: {command: run, args: [--token, \"${TOKEN}\"]}}}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		fmt.Println(err)
		return
	}

	settings, err := config.Load(config.Source{Explicit: path, Environ: []string{"TOKEN=hunter2"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	server := settings.MCP.Servers[0]
	fmt.Println(settings.LLM.Provider, settings.LLM.APIKey, server.Name, server.Args, server.Args[1].Reveal())

	_, err = config.Load(config.Source{Explicit: path, Environ: []string{"CREWHOST_LLM__MODLE=x"}})
	var issues strict.Issues
	if errors.As(err, &issues) {
		fmt.Println(len(issues), issues[0].Message)
	}
	// Output:
	// openai env:KEY a [--token ${TOKEN}] hunter2
	// 2 the server "a": args.1: the variable TOKEN is not set
}
