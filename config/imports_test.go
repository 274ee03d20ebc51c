package config

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The shapes of files that other hosts keep.
const (
	claudeJSON = `{
  "mcpServers": {
    "files": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/srv"], "env": {"A": "${A:-x}"}, "autoApprove": ["read"], "timeout": 60},
    "remote": {"type": "streamable-http", "url": "https://example.com/mcp", "headers": {"Authorization": "Bearer ${env:TOKEN}"}, "oauth": {"clientId": "c"}},
    "off": {"command": "gone", "env": {"X": "${NOT_SET}"}, "disabled": true},
    "own": {"command": "imported"}
  },
  "globalShortcut": "", "preferences": {"theme": "dark"}
}`
	editorJSON = `{
  // an editor's file
  "inputs": [],
  "servers": {
    "files": {"command": "second"},
    "api": {"type": "http", "url": "http://localhost:3000/mcp", "envFile": ".env", "dev": {}},
    "rel": {"command": "x", "cwd": "sub"},
  },
}`
)

// TestImports: the files of other hosts are read unchanged, in the order named,
// after the settings' own servers (O12).
func TestImports(t *testing.T) {
	dir := files(t, map[string]string{
		"crewhost.yaml":   "mcp:\n  import: [.mcp.json, editor/mcp.json, .mcp.json]\n  servers:\n    own: {url: \"http://localhost/\"}\n",
		".mcp.json":       claudeJSON,
		"editor/mcp.json": editorJSON,
	})
	s, err := Load(Source{CrewDir: dir, Environ: []string{"TOKEN=t0ken", "CREWHOST_MCP__SERVERS__API__TOOL_TIMEOUT=3s", "CREWHOST_MCP__SERVERS__AAA__COMMAND=a"}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, server := range s.MCP.Servers {
		got = append(got, server.Name+" "+string(server.Transport)+" "+server.Command.Reveal()+server.URL.Reveal()+" "+server.ToolTimeout.String())
	}
	if diff := cmp.Diff([]string{
		"own auto http://localhost/ 1m0s",
		"files stdio npx 1m0s",
		"remote http https://example.com/mcp 1m0s",
		"api http http://localhost:3000/mcp 3s",
		"rel stdio x 1m0s",
		"aaa stdio a 1m0s",
	}, got); diff != "" {
		t.Error(diff)
	}
	if h := s.MCP.Servers[2].Headers[0]; h.Value.Reveal() != "Bearer t0ken" || h.Value.String() != "Bearer ${env:TOKEN}" {
		t.Errorf("%v", h)
	}
	if cwd := s.MCP.Servers[4].Cwd; cwd != filepath.Join(dir, "editor", "sub") {
		t.Errorf("cwd %s", cwd)
	}
	if diff := cmp.Diff([]string{
		`.mcp.json:3:125: the server "files": "autoApprove" is not used here`,
		`.mcp.json:3:150: the server "files": "timeout" is not used here`,
		`.mcp.json:4:130: the server "remote": "oauth" is not used here`,
		`.mcp.json:6:5: the server "own" is left out: crewhost.yaml has one of that name`,
		`.mcp.json:1:1: not used here: "globalShortcut", "preferences"`,
		`editor/mcp.json:5:5: the server "files" is left out: .mcp.json has one of that name`,
		`editor/mcp.json:6:65: the server "api": envFile is not read here; name its variables in env`,
		`editor/mcp.json:6:84: the server "api": "dev" is not used here`,
		`crewhost.yaml:2:40: ".mcp.json" is imported twice`,
	}, strings.Split(strings.ReplaceAll(strings.Join(s.Warnings, "\n"), dir+"/", ""), "\n")); diff != "" {
		t.Error(diff)
	}
}

func TestImportFaults(t *testing.T) {
	dir := files(t, map[string]string{
		"crewhost.yaml": "mcp:\n  import: [a.json, b.json, c.json, d.json, e.json, .]\n",
		"a.json":        `{"inputs": [{"id": "k", "type": "promptString"}], "servers": {"x": {"command": "y", "env": {"K": "${input:k}"}}}}`,
		"b.json":        `{"mcpServers": {"x y": {"command": "z"}, "twice": {"command": "a"}, "twice": {"command": "b"}, "sse": {"type": "SSE", "url": "http://x/"}}}`,
		"c.json":        `{"other": 1}`,
		"d.json":        `{"mcpServers": [`,
		"e.json":        ``,
	})
	_, err := Load(Source{CrewDir: dir})
	if diff := cmp.Diff(`a.json:1:2: inputs are asked for by an editor, which this host is not (put the values into variables: ${env:NAME}) [variable]
a.json:1:98: the server "x": env.K: ${input:…} is asked for by an editor (known are ${NAME}, ${NAME:-default} and ${env:NAME}; $${…} is the text ${…}) [variable]
b.json:1:17: the server name "x y" is not valid (letters, digits, _ . and -, at most 64, the first a letter or digit) [bad-name]
b.json:1:69: duplicate key "twice" (first set in line 1) [duplicate-key]
b.json:1:112: the server "sse": the transport "SSE" is not known (did you mean "sse"?) [bad-value]
c.json:1:1: the file has neither mcpServers nor servers [missing]
crewhost.yaml:2:44: the imported file "e.json" is empty [settings-file]
crewhost.yaml:2:52: the imported file "." is a directory, not a file [settings-file]
d.json:1:17: parsing value: unexpected EOF [syntax]`, problems(t, err, dir)); diff != "" {
		t.Error(diff)
	}
}

// TestImportFromTheEnvironment: without a settings file, paths are taken from
// the crew's folder.
func TestImportFromTheEnvironment(t *testing.T) {
	dir := files(t, map[string]string{".mcp.json": `{"mcpServers": {"a": {"command": "x"}}}`})
	s, err := Load(Source{CrewDir: dir, Environ: []string{"CREWHOST_MCP__IMPORT=[.mcp.json]"}})
	if err != nil || len(s.MCP.Servers) != 1 || len(s.Warnings) > 0 || s.Path != "" {
		t.Errorf("%+v %v", s, err)
	}
}
