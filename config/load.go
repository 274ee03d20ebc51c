package config

import (
	"fmt"
	"path/filepath"
	"strings"

	"crewhost/config/strict"
)

// defaults are the lowest layer, written as a settings file.
const defaults = `
mcp:
  enabled: true
  connect_timeout: 30s
  probe_timeout: 2s
  tool_timeout: 60s
  shutdown_timeout: 5s
  max_starting: 8
  token_store: auto
  max_calls: 16
  reconnect: {max_attempts: 5, initial: 500ms, max: 30s}
  limits:
    tools: 10000
    pages: 1000
    name_length: 256
    description_length: 32768
    schema_bytes: 1048576
    message_bytes: 16777216
    arguments_bytes: 4194304
    result_bytes: 16777216
    text_chars: 16777216` + servingDefaults + `
permissions:
  default: ask
  headless: deny
  crew_grants: true
  approvals: true
` + memoryDefaults + journalDefaults + toolsDefaults

// Load finds the settings, reads them and overlays them. Its error is
// [strict.Issues] with every problem at once, sorted by place. Where no file is
// found, the settings are the defaults and the environment.
//
// The look-up, first match wins: Explicit and no other; crewhost.yaml, .yml,
// .json or .toml, or Orkeon's appsettings.json, in CrewDir; crewhost.* or
// appsettings/appsettings.json in each folder above it; crewhost/crewhost.* in
// the user's configuration folder.
func Load(source Source) (*Settings, error) {
	l := &loader{source: source, env: newEnviron(source.Environ)}
	if source.Unset != "" {
		l.env[unsetKey] = source.Unset
	}
	dir, err := filepath.Abs(source.CrewDir)
	if err != nil {
		return nil, fmt.Errorf("finding the folder of the crew: %w", err)
	}
	l.crewDir = dir
	settings, err := l.load()
	if err != nil {
		return nil, err
	}
	l.issues.Sort()
	if err := l.issues.Err(); err != nil {
		return nil, err
	}
	settings.Warnings = l.warnings
	return settings, nil
}

// loader holds what one call of Load gathers.
type loader struct {
	source   Source
	env      environ
	crewDir  string
	path     string // of the settings file; empty where there is none
	issues   strict.Issues
	warnings []string
}

func (l *loader) fail(pos strict.Pos, code, message, hint string) {
	l.issues = append(l.issues, strict.Issue{Pos: pos, Code: code, Message: message, Hint: hint})
}

func (l *loader) warn(pos strict.Pos, format string, args ...any) {
	l.warnings = append(l.warnings, pos.String()+": "+fmt.Sprintf(format, args...))
}

// base is the folder that a relative path written at pos is taken from: that of
// its file; the folder of the crew for variables and flags.
func (l *loader) base(pos strict.Pos) string {
	if pos.Line > 0 {
		return filepath.Dir(pos.File)
	}
	return l.crewDir
}

// absolute resolves a path written at pos.
func (l *loader) absolute(path string, pos strict.Pos) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(l.base(pos), path)
}

func (l *loader) load() (*Settings, error) {
	l.path = l.find()
	if len(l.issues) > 0 {
		return nil, l.issues
	}
	file := l.file()
	if len(l.issues) > 0 && file == nil {
		return nil, l.issues
	}
	base, _ := strict.Parse("defaults", []byte(defaults), limits())

	tree, err := merge([]string{l.path}, base, file, l.variables(file), l.overrides())
	if err != nil {
		return nil, err
	}
	// What is to be imported may be said by a variable, so it is known only now.
	imports := l.imports(tree.Get("mcp").Get("import"), file.Get("mcp").Get("servers"))
	if len(imports) > 0 {
		if tree, err = l.over(imports, base, file); err != nil {
			return nil, err
		}
	}
	l.offer(imports)
	settings := l.decode(tree)
	settings.Path = l.path
	return settings, nil
}

// over merges all layers anew with the imported files below the settings file.
// Variables may then speak of imported servers; what is wrong with them has been
// said already.
func (l *loader) over(imports []imported, base, file *strict.Node) (*strict.Node, error) {
	order := []string{l.path}
	layers := []*strict.Node{base}
	for _, i := range imports {
		order = append(order, i.path)
		layers = append(layers, i.root)
	}
	layers = append(layers, file)
	known, err := merge(order, layers...)
	if err != nil {
		return nil, err
	}
	quiet := &loader{source: l.source, env: l.env}
	return merge(order, append(layers, quiet.variables(known), quiet.overrides())...)
}

// file returns the tree of the settings file in the shape of crewhost.yaml, or
// nil where there is none.
func (l *loader) file() *strict.Node {
	if l.path == "" {
		return nil
	}
	n := l.read(l.path, strict.Pos{File: l.path}, "the settings file")
	if n == nil {
		return nil
	}
	withoutDelim(n, l.fail)
	if isOrkeon(l.path, n) {
		return l.orkeon(n)
	}
	if s := n.Get("mcpServers"); s != nil {
		name := filepath.Base(l.path)
		hint := "name it in a crewhost.yaml: mcp: {import: [" + name + "]}"
		if strings.HasPrefix(name, "crewhost.") {
			hint = "write mcp: {servers: …}"
		}
		l.fail(s.Pos, strict.CodeUnknownKey, "mcpServers is the key of a file of MCP servers, which this is not", hint)
		return nil
	}
	return n
}

// offer warns of a .mcp.json that stands beside the settings and is not used: a
// file that came with a repository does not start processes unasked.
func (l *loader) offer(imports []imported) {
	dir := l.crewDir
	if l.path != "" {
		dir = filepath.Dir(l.path)
	}
	path := filepath.Join(dir, ".mcp.json")
	if !exists(path) {
		return
	}
	for _, i := range imports {
		if i.path == path {
			return
		}
	}
	l.warn(strict.Pos{File: path}, "not read; to use its servers, write mcp: {import: [.mcp.json]} in the settings")
}

func isOrkeon(path string, n *strict.Node) bool {
	name := strings.ToLower(filepath.Base(path))
	if filepath.Ext(name) != ".json" {
		return false
	}
	if strings.HasPrefix(name, "appsettings") {
		return true
	}
	// By shape, for --settings: crewhost's own keys are lower-case.
	for _, e := range n.Entries {
		switch section, _, _ := strings.Cut(e.Key, ":"); section {
		case "Llm", "MCP", "Orkeon":
			return true
		}
	}
	return false
}
