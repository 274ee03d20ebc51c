package config

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const appsettings = `{
  // keys without regard to case, comments, trailing commas
  "_comment": "x",
  "LLM": {
    "Model": "m", "BaseUrl": "http://127.0.0.1:9/v1", "ApiKey": " ", "ApiKeyEnvVar": "KEY", "Temperature": "0.5", "MaxTokens": 100,
    "TimeoutSeconds": "30", "MaxRetries": 2, "Grammar": false, "Thinking": {"enabled": "true", "Effort": "high"}, "StreamIdleSeconds": 40, "AvailableModels": ["m", "n*"],
    "Profiles": {"cheap": {"Model": "claude-x", "ApiKey": "${K2}"}, "far": {"Model": "claude-x", "BaseUrl": "https://h/"}, "own": {"Provider": "anthropic", "Model": "z"}},
  },
  "MCP": {
    "Enabled": "True",
    "Server": {"Name": "n"},
    "Servers": {
      "zfs": {"Transport": "Stdio", "Command": "npx", "Args": ["-y"], "Env": {"A": "b"}},
      "plain": {"Command": "y", "Url": ""},
      "web": {"Transport": "Sse", "Url": "http://localhost/mcp"},
    },
  },
  "MCP:Servers:colon": {"Command": "c"},
  "Orkeon:FileSystem:Mounts": ["./out:/out:rw"],
  "Orkeon": {"Cli": {}, "FileSystem": {"InternalMounts": []}},
  "Logging": {"LogLevel": {"Default": "Warning"}},
  "TokenBudget": {},
}`

// TestAppsettings maps Orkeon's file to the same structs.
func TestAppsettings(t *testing.T) {
	dir := files(t, map[string]string{"appsettings.json": appsettings})
	s, err := Load(Source{CrewDir: dir, Environ: []string{"K2=key-two", "CREWHOST_LLM__MAX_TOKENS=7", "Orkeon_Llm__Model=x", "ORKEON_A=b"}})
	if err != nil {
		t.Fatal(err)
	}
	l := s.LLM
	if l.Provider != "openai" || l.Model != "m" || l.BaseURL.Reveal() != "http://127.0.0.1:9/v1" || l.APIKey.String() != "env:KEY" ||
		*l.Temperature != 0.5 || l.MaxTokens != 7 || l.Timeout != 30*time.Second || *l.MaxRetries != 2 {
		t.Errorf("%+v", l)
	}
	if !*l.Thinking.Enabled || l.Thinking.Effort != "high" || l.StreamIdle != 40*time.Second || !slices.Equal(l.AvailableModels, []string{"m", "n*"}) {
		t.Errorf("%+v", l)
	}
	var got []string
	for _, p := range l.Profiles {
		got = append(got, p.ID+" "+p.Provider+" "+p.APIKey.String())
	}
	for _, server := range s.MCP.Servers {
		got = append(got, server.Name+" "+string(server.Transport)+" "+server.Command.Reveal()+server.URL.Reveal())
	}
	if diff := cmp.Diff([]string{
		"cheap anthropic env:K2", "far openai (none)", "own anthropic (none)",
		"zfs stdio npx", "plain stdio y", "web http http://localhost/mcp", "colon stdio c",
	}, got); diff != "" {
		t.Error(diff)
	}
	if s.MCP.Serving.Name != "n" || s.MCP.Serving.Version != "" || s.MCP.Serving.PageSize != 50 {
		t.Errorf("serving: %+v", s.MCP.Serving)
	}
	if !s.MCP.Enabled || s.Path != filepath.Join(dir, "appsettings.json") || s.Mounts[0].Spec != "./out:/out:rw" || s.Mounts[0].Base != dir {
		t.Errorf("%+v", s)
	}
	if diff := cmp.Diff([]string{
		`appsettings.json:6:46: Llm:Grammar is not used here`,
		`appsettings.json:7:77: Llm:Profiles:far names no provider and is spoken to as openai; to speak to Anthropic, add "Provider": "anthropic"`,
		`appsettings.json:20:40: Orkeon:FileSystem:InternalMounts is not used here`,
		`appsettings.json:20:14: Orkeon:Cli is not used here`,
		`appsettings.json:21:3: the section "Logging" is not used here`,
		`appsettings.json:22:3: the section "TokenBudget" is not used here`,
		`environment: not read here: ORKEON_A, Orkeon_Llm__Model; such variables begin with CREWHOST_`,
	}, strings.Split(strings.ReplaceAll(strings.Join(s.Warnings, "\n"), dir+string(filepath.Separator), ""), "\n")); diff != "" {
		t.Error(diff)
	}
}

func TestAppsettingsFaults(t *testing.T) {
	dir := files(t, map[string]string{"appsettings.json": `{
  "Llm": {"Modell": "m", "TimeoutSeconds": 0, "MaxTokens": "many", "Profiles": [], "model": "a", "Model": "b"},
  "MCP": {"EnableServer": true, "Servers": {"a": {"Transport": "Pipe", "Command": "x", "Cwd": "/"}, "b": {"Transport": "Stdio"}, "c": 5}},
  "Orkeon": {"FileSystm": {}, "FileSystem": {"Mounts": "x"}, "Tools": {}},
  "MCP:EnableServer": false
}`})
	_, err := Load(Source{CrewDir: dir})
	if diff := cmp.Diff(strings.Split(`appsettings.json:2:11: unknown key "Modell" in Llm (did you mean "Model"?) [unknown-key]
appsettings.json:2:44: Llm:TimeoutSeconds must be a number of seconds above zero [bad-value]
appsettings.json:2:60: llm.max_tokens: "many" is not an integer [bad-value]
appsettings.json:2:80: Llm:Profiles must be a mapping, not a list [wrong-type]
appsettings.json:2:98: duplicate key "Model" (first set in line 2) [duplicate-key]
appsettings.json:3:11: MCP:EnableServer does not start a server (run crewhost mcp serve instead, and take the key out) [unknown-key]
appsettings.json:3:64: MCP:Servers:a:Transport: "Pipe" is not known (known: Sse, Stdio) [bad-value]
appsettings.json:3:88: unknown key "Cwd" in MCP:Servers:a (known: Args, Command, Env, Transport, Url) [unknown-key]
appsettings.json:3:101: the server "b": it has neither a command nor a url [bad-server]
appsettings.json:3:135: MCP:Servers:c must be a mapping, not an integer [wrong-type]
appsettings.json:4:14: unknown key "FileSystm" in Orkeon (did you mean "FileSystem"?) [unknown-key]
appsettings.json:4:56: mounts must be a list, not a string (write a list: [x]) [wrong-type]
appsettings.json:5:3: duplicate key "EnableServer" (first set in line 3) [duplicate-key]`, "\n"), strings.Split(problems(t, err, dir), "\n")); diff != "" {
		t.Error(diff)
	}
}

// TestWhichShape: appsettings*.json is Orkeon's by its name, another file by
// Orkeon's spelling of its sections.
func TestWhichShape(t *testing.T) {
	dir := files(t, map[string]string{
		"appsettings.Production.json": `{"llm": {"model": "m"}}`,
		"mine.json":                   `{"Llm": {"Model": "m"}}`,
		"paths.json":                  `{"Llm:Model": "m"}`,
		"own.json":                    `{"llm": {"model": "m"}}`,
	})
	for _, name := range []string{"appsettings.Production.json", "mine.json", "paths.json", "own.json"} {
		s, err := Load(Source{Explicit: filepath.Join(dir, name)})
		if err != nil || s.LLM.Model != "m" || s.LLM.Provider != "openai" {
			t.Errorf("%s: %+v %v", name, s, err)
		}
	}
}
