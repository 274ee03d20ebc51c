package crew

import (
	"fmt"
	"slices"
	"strings"

	"crewhost/config/strict"
)

// The types of entries among an agent's tools that are no names.
const (
	typeServerTools = "mcp_toolset"
	typeHostTools   = "agent_toolset"
	typeDated       = "agent_toolset_20260401" // the same, with names of its own for tools
	typeCustom      = "custom"
)

// The answers of a toolset to a call, where it gives one (A3).
const (
	AlwaysAllow = "always_allow"
	AlwaysAsk   = "always_ask"
)

// datedName is what a tool of the dated toolset is called here; empty where the name is
// none of its own. What is said of bash is said of the tool that runs programs, though
// that has no shell: whoever switches bash off, or has it asked about, means that one.
func datedName(name string) string {
	switch name {
	case "read":
		return "file_read"
	case "write":
		return "file_write"
	case "edit":
		return "file_edit"
	case "bash":
		return "shell_command"
	case "web_fetch":
		return "web_scrape"
	case "glob", "grep", "web_search":
		return name
	}
	return ""
}

// Offer is a tool as its server, or the host, offers it.
type Offer struct {
	Tool string // its own name
	// Apart says that a toolset brings the tool only if it names it, such as the one
	// that asks a person.
	Apart bool
}

// Has reports whether the toolset brings a tool: what it says of the tool by name,
// or else by default, is not that it is switched off.
func (t Toolset) Has(o Offer) bool {
	on := or(t.Default.Enabled, true)
	i := slices.IndexFunc(t.Tools, func(e ToolsetEntry) bool { return e.Tool.V == o.Tool })
	if i < 0 {
		return on && !o.Apart
	}
	return or(t.Tools[i].Enabled, on)
}

// Names reports whether the toolset says something of a tool by name.
func (t Toolset) Names(tool string) bool {
	return slices.ContainsFunc(t.Tools, func(e ToolsetEntry) bool { return e.Tool.V == tool })
}

// Filled is an entry of the toolset with what it leaves open as the default says (A3).
func (t Toolset) Filled(e ToolsetEntry) ToolsetEntry {
	if e.Enabled == nil {
		e.Enabled = t.Default.Enabled
	}
	if !e.Policy.Set {
		e.Policy = t.Default.Policy
	}
	return e
}

// Restricts reports whether the toolset, of the host's tools, switches a tool off or has it
// asked about.
func (t Toolset) Restricts(tool string) bool {
	if !t.ofHost() {
		return false
	}
	e := t.Default
	if i := slices.IndexFunc(t.Tools, func(e ToolsetEntry) bool { return e.Tool.V == tool }); i >= 0 {
		e = t.Filled(t.Tools[i])
	}
	return !or(e.Enabled, true) || e.Policy.V == AlwaysAsk
}

// ofHost reports whether the toolset is of the host's own tools.
func (t Toolset) ofHost() bool { return !t.Server.Set }

// named are the tools that the toolset brings by name.
func (t Toolset) named() []string {
	var names []string
	for _, e := range t.Tools {
		if t.Has(Offer{Tool: e.Tool.V}) {
			names = append(names, e.Tool.V)
		}
	}
	return names
}

// HoldsTools reports whether the agent has any tool, as far as the crew's files say.
func (a *Agent) HoldsTools() bool { return len(a.Tools)+len(a.Toolsets) > 0 }

// toolDoc is a tool of an agent by its name, or a toolset.
type toolDoc struct {
	Pos     Pos         `key:"@"`
	Type    Text        `key:"type,required"`
	Server  Text        `key:"mcpServerName"`
	Default *defaultDoc `key:"defaultConfig"`
	Configs []configDoc `key:"configs"`

	name  Text // of a tool
	wrong bool // what it is can't be told
}

type toolBlock toolDoc

// UnmarshalNode implements [strict.Unmarshaler].
func (t *toolDoc) UnmarshalNode(d *strict.Decoder, n *strict.Node) {
	if n.Kind != strict.Map {
		before := len(d.Issues())
		d.Decode(n, &t.name, "")
		t.wrong = len(d.Issues()) > before
		return
	}
	if kind := n.Get("type"); kind != nil && fold(kind.Text) == typeCustom {
		t.Pos, t.wrong = n.Pos, true
		d.Fail(kind.Pos, CodeUnsupportedKey, d.Path()+": a tool of the type custom is run by whoever calls the agent, and here that is nobody",
			"have an MCP server offer it")
		return
	}
	before := len(d.Issues())
	d.Decode(n, (*toolBlock)(t), "")
	t.wrong = len(d.Issues()) > before
}

type defaultDoc struct {
	Pos     Pos        `key:"@"`
	Enabled *bool      `key:"enabled"`
	Policy  *policyDoc `key:"permissionPolicy"`
}

type configDoc struct {
	Pos     Pos        `key:"@"`
	Name    Text       `key:"name,required"`
	Enabled *bool      `key:"enabled"`
	Policy  *policyDoc `key:"permissionPolicy"`
}

type policyDoc struct {
	Pos  Pos  `key:"@"`
	Type Text `key:"type,required"`
}

type policyBlock policyDoc

// UnmarshalNode explains what a lone word is to be.
func (p *policyDoc) UnmarshalNode(d *strict.Decoder, n *strict.Node) {
	if n.Kind == strict.String {
		d.Fail(n.Pos, strict.CodeWrongType, d.Path()+" must be a mapping, not a string", "write {type: "+short(n.Text)+"}")
		return
	}
	d.Decode(n, (*policyBlock)(p), "")
}

// tools parts the tools of an agent into those it names and toolsets. It reports
// whether some could not be read.
func (b *builder) tools(list []toolDoc, at string) (names []Text, sets []Toolset, doubtful bool) {
	for i, doc := range list {
		at := fmt.Sprintf("%s.%d", at, i)
		doubtful = doubtful || doc.wrong
		switch {
		case doc.Type.Set:
			if set, ok := b.toolset(doc, at); ok {
				sets = append(sets, set)
			} else {
				doubtful = true
			}
		case doc.wrong:
		case strings.TrimSpace(doc.name.V) == "":
			b.fail(doc.name.Pos, strict.CodeMissing, at+" is empty", "")
		default:
			names = append(names, doc.name)
		}
	}
	return b.set(names, at), sets, doubtful
}

func (b *builder) toolset(doc toolDoc, at string) (Toolset, bool) {
	t := Toolset{Pos: doc.Pos, Server: doc.Server, Default: ToolsetEntry{Pos: doc.Pos}}
	kind := b.enum(doc.Type, at+".type", "", typeServerTools, typeHostTools, typeDated)
	switch {
	case kind == "":
		return t, false
	case kind == typeServerTools && strings.TrimSpace(doc.Server.V) == "":
		b.fail(doc.Pos, strict.CodeMissing, at+": the toolset names no server", "mcp_server_name: one of the agent's mcp_servers")
		return t, false
	case kind != typeServerTools && doc.Server.Set:
		b.fail(doc.Server.Pos, CodeConflict, at+": "+doc.Type.V+" is of the host's own tools, and names no server", "write type: "+typeServerTools)
		return t, false
	}
	if d := doc.Default; d != nil {
		t.Default = b.entry(ToolsetEntry{Pos: d.Pos, Enabled: d.Enabled}, d.Policy, at+".defaultConfig")
	}
	first := map[string]bool{}
	for i, c := range doc.Configs {
		at := fmt.Sprintf("%s.configs.%d", at, i)
		if b.longest(b.text(c.Name, at+".name"), 128, at+".name"); strings.TrimSpace(c.Name.V) == "" {
			continue
		}
		if here := datedName(c.Name.V); kind == typeDated && here != "" {
			c.Name.V = here
		}
		if first[c.Name.V] {
			b.fail(c.Name.Pos, CodeDuplicateReference, fmt.Sprintf("%s: %s is there twice", at, strict.Quote(c.Name.V)), "keep one")
			continue
		}
		first[c.Name.V] = true
		t.Tools = append(t.Tools, b.entry(ToolsetEntry{Pos: c.Pos, Tool: c.Name, Enabled: c.Enabled}, c.Policy, at))
	}
	if !or(t.Default.Enabled, true) && len(t.named()) == 0 {
		b.warn(doc.Pos, CodeNoEffect, at+": the toolset brings no tool: all are switched off", "enable some: configs: [{name: …, enabled: true}]")
	}
	return t, true
}

func (b *builder) entry(e ToolsetEntry, policy *policyDoc, at string) ToolsetEntry {
	if policy != nil {
		e.Policy = policy.Type
		e.Policy.V = b.enum(policy.Type, at+".permissionPolicy.type", "", AlwaysAsk, AlwaysAllow)
	}
	return e
}

// judgeToolsets finds toolsets of servers that the agent does not have, several of
// one, and more tools than an agent may have. own are the names of its servers.
func (a *Agent) judgeToolsets(own map[string]bool, fail func(pos Pos, code, message, hint string)) {
	at := "agents." + a.Key + ".tools"
	first := map[string]bool{}
	count := len(a.Tools)
	for _, t := range a.Toolsets {
		what := "of the host's tools"
		if !t.ofHost() {
			what = "of " + strict.Quote(t.Server.V)
		}
		if first[t.Server.V] {
			fail(t.Pos, CodeDuplicateReference, fmt.Sprintf("%s: the toolset %s is there twice", at, what), "keep one")
			continue
		}
		first[t.Server.V] = true
		if !t.ofHost() && !own[t.Server.V] {
			var known []string
			for _, s := range a.Servers {
				known = append(known, s.Name.V)
			}
			hint := "declare it: mcp_servers: [{name: " + short(t.Server.V) + ", url: …}]; tools of the settings' servers go by their names"
			if strict.Nearest(t.Server.V, known) != "" {
				hint = strict.DidYouMean(t.Server.V, known)
			}
			fail(t.Server.Pos, CodeDanglingReference, fmt.Sprintf("%s: the agent has no MCP server %s", at, strict.Quote(t.Server.V)), hint)
		}
		count += len(t.named())
	}
	if count > MaxTools {
		pos := a.Pos
		if len(a.Toolsets) > 0 {
			pos = a.Toolsets[0].Pos
		} else if len(a.Tools) > MaxTools {
			pos = a.Tools[MaxTools].Pos
		}
		fail(pos, CodeOutOfRange, fmt.Sprintf("%s names %d tools; the limit is %d", at, count, MaxTools), "")
	}
}
