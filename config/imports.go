package config

import (
	"slices"
	"strings"

	"crewhost/config/strict"
)

// imported is a file of the ecosystem's shape, as a layer.
type imported struct {
	path string
	root *strict.Node
}

// imports reads the files that mcp.import names: .mcp.json,
// claude_desktop_config.json, an editor's mcp.json. Of a server named twice the
// settings' own is used, else that of the file named first, with a warning.
func (l *loader) imports(list, own *strict.Node) []imported {
	if list == nil || list.Kind != strict.List {
		return nil // the decoder says that it is no list
	}
	taken := map[string]string{}
	if own != nil {
		for _, e := range own.Entries {
			taken[e.Key] = l.path
		}
	}
	seen := map[string]bool{}
	var all []imported
	for _, item := range list.Items {
		if item.Kind != strict.String && item.Kind != strict.Untyped || item.Text == "" {
			continue // the decoder says so
		}
		path := l.absolute(item.Text, item.Pos)
		if seen[path] {
			l.warn(item.Pos, "%s is imported twice", strict.Quote(item.Text))
			continue
		}
		seen[path] = true
		if n := l.read(path, item.Pos, "the imported file "+strict.Quote(item.Text)); n != nil {
			withoutDelim(n, l.fail)
			all = append(all, imported{path, l.servers(n, taken)})
		}
	}
	return all
}

// servers returns the servers of an imported file as a layer of settings. What
// other hosts keep in such a file is no fault of it: unknown keys are warnings.
func (l *loader) servers(n *strict.Node, taken map[string]string) *strict.Node {
	servers := &strict.Node{Pos: n.Pos, Kind: strict.Map}
	var ignored []string
	found := false
	for _, e := range n.Entries {
		switch e.Key {
		case "mcpServers", "servers":
			if e.Value.Kind != strict.Map && e.Value.Kind != strict.Null {
				l.fail(e.Value.Pos, strict.CodeWrongType, e.Key+" must be a mapping, not "+e.Value.Kind.String(), "")
			}
			found = true
			for _, s := range e.Value.Entries {
				if where, twice := taken[s.Key]; twice {
					l.warn(s.KeyPos, "the server %s is left out: %s has one of that name", strict.Quote(s.Key), where)
					continue
				}
				taken[s.Key] = s.KeyPos.File
				servers.Entries = append(servers.Entries, strict.Entry{Key: s.Key, KeyPos: s.KeyPos, Value: l.knownKeys(s)})
			}
		case "inputs":
			if len(e.Value.Items) > 0 || len(e.Value.Entries) > 0 {
				l.fail(e.KeyPos, CodeVariable, "inputs are asked for by an editor, which this host is not", "put the values into variables: ${env:NAME}")
			}
		default:
			ignored = append(ignored, strict.Quote(e.Key))
		}
	}
	if !found {
		l.fail(n.Pos, strict.CodeMissing, "the file has neither mcpServers nor servers", "")
	}
	if len(ignored) > 0 {
		l.warn(n.Pos, "not used here: %s", some(ignored))
	}
	section := &strict.Node{Pos: n.Pos, Kind: strict.Map, Entries: []strict.Entry{{Key: "servers", KeyPos: n.Pos, Value: servers}}}
	return &strict.Node{Pos: n.Pos, Kind: strict.Map, Entries: []strict.Entry{{Key: "mcp", KeyPos: n.Pos, Value: section}}}
}

// knownKeys returns an imported server without the keys of other hosts.
func (l *loader) knownKeys(s strict.Entry) *strict.Node {
	if s.Value.Kind != strict.Map {
		return s.Value
	}
	known := *s.Value
	known.Entries = nil
	keys := strict.Keys[serverFields]()
	for _, e := range s.Value.Entries {
		switch {
		case slices.Contains(keys, e.Key) && e.Key != "oauth": // another host's client is not this one
			known.Entries = append(known.Entries, e)
		case e.Key == "envFile":
			l.warn(e.KeyPos, "the server %s: envFile is not read here; name its variables in env", strict.Quote(s.Key))
		default:
			l.warn(e.KeyPos, "the server %s: %s is not used here", strict.Quote(s.Key), strict.Quote(e.Key))
		}
	}
	return &known
}

// some joins words, the first ten of them.
func some(words []string) string {
	if len(words) > 10 {
		words = append(words[:10:10], "…")
	}
	return strings.Join(words, ", ")
}
