package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"crewhost/config/strict"
)

// FuzzLoad: whatever the bytes of a settings file or an import are, loading them
// gives settings or issues with a code, and does not panic.
func FuzzLoad(f *testing.F) {
	names := []string{"crewhost.yaml", "crewhost.json", "crewhost.toml", "appsettings.json", ".mcp.json"}
	for i, seed := range map[byte]string{0: wholeYAML, 1: wholeJSON, 2: wholeTOML, 3: appsettings, 4: claudeJSON} {
		f.Add(i, []byte(seed), "LLM__MODEL", "x")
	}
	for _, seed := range []string{"", "null", "mcp: {servers: {a: {command: [}}}", "a: &a [*a]", "mcp: {import: [.mcp.json]}", "mcp: {servers: }\nllm: 5\nmounts: [~]"} {
		f.Add(byte(0), []byte(seed), "MCP__SERVERS__A__ENV__B", "[x, {y: z}]")
	}
	f.Add(byte(4), []byte(editorJSON), "MCP__IMPORT", "[a, {}, [.mcp.json]]")
	f.Add(byte(3), []byte(`{"Llm:Profiles:a:b": 1, "MCP:Servers": [], ":": {}, "Llm": {"Profiles": {"": null}}}`), "LLM", "{profiles: {a: }}")
	f.Add(byte(0), []byte("mcp: {served: {a: {tools: [x], crews: [y, {path: z}, 1], prompts: [a/], http: {listen: x, oauth: {issuers: [{}, 1]}}}}, serving: {page_size: 101}}"), "MCP_PAGE_SIZE", "0")
	f.Fuzz(func(t *testing.T, kind byte, data []byte, variable, value string) {
		dir := t.TempDir()
		name := names[int(kind)%len(names)]
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
		if name == ".mcp.json" {
			if err := os.WriteFile(filepath.Join(dir, "crewhost.yaml"), []byte("mcp: {import: [.mcp.json]}"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		s, err := Load(Source{CrewDir: dir, Environ: []string{"A=b", "CREWHOST_" + strings.ToUpper(variable) + "=" + value}})
		var issues strict.Issues
		switch {
		case err == nil && s == nil, err != nil && !errors.As(err, &issues):
			t.Fatalf("%v %v", s, err)
		case err == nil:
			s.Secrets()
		}
		for _, i := range issues {
			if i.Code == "" || i.Message == "" || strings.Contains(i.Message, "\n") {
				t.Errorf("a poor issue: %+v", i)
			}
		}
	})
}
