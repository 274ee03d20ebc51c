package permission_test

import (
	"strings"
	"testing"

	"crewhost/tools/permission"
)

const (
	places = "crew.yaml:4"
	own    = "github"
)

func onGithub(agent string, entry permission.ToolRule, more ...permission.ToolRule) permission.Toolset {
	return permission.Toolset{Agent: agent, Server: own, Default: entry, Tools: more, Place: places}
}

func ofHost(agent string, entry permission.ToolRule, more ...permission.ToolRule) permission.Toolset {
	return permission.Toolset{Agent: agent, Default: entry, Tools: more, Place: places}
}

// The order of the settings' rules and those of toolsets, case by case (A2, A3, A4).
func TestToolsetsAndSettings(t *testing.T) {
	private := func(c permission.Config) permission.Config { c.Private = []string{own}; return c }
	rule := func(pattern string) []permission.Rule {
		return []permission.Rule{{Pattern: pattern, Place: "crewhost.yaml:7"}}
	}
	issue := func(agent string) permission.Request {
		return permission.Request{Tool: "mcp__github__create_issue", Server: own, ServerTool: "create_issue", Agent: agent}
	}
	read := permission.Request{Tool: "file_read", Agent: "writer"}
	unsaid := permission.ToolRule{}
	entry := func(v permission.Verdict) permission.ToolRule {
		return permission.ToolRule{Tool: "create_issue", Verdict: v, Place: "crew.yaml:6"}
	}
	for name, tt := range map[string]struct {
		config permission.Config
		sets   []permission.Toolset
		ask    permission.Request
		want   permission.Verdict
		reason string // a part of it
	}{
		"an MCP toolset asks": {private(permission.Config{}), []permission.Toolset{onGithub("writer", unsaid)}, issue("writer"),
			permission.Ask, "agents bring along are asked about"},
		"whatever the default": {private(permission.Config{Default: permission.Allow}), []permission.Toolset{onGithub("writer", unsaid)}, issue("writer"),
			permission.Ask, "agents bring along are asked about"},
		"but deny": {private(permission.Config{Default: permission.Deny}), []permission.Toolset{onGithub("writer", unsaid)}, issue("writer"),
			permission.Deny, "the default is deny"},
		"always_allow": {private(permission.Config{}), []permission.Toolset{onGithub("writer", unsaid, entry(permission.Allow))}, issue("writer"),
			permission.Allow, `allow rule "mcp__github__create_issue" of agent "writer" (crew.yaml:6)`},
		"always_allow does not lift deny": {private(permission.Config{Default: permission.Deny}), []permission.Toolset{onGithub("writer", unsaid, entry(permission.Allow))}, issue("writer"),
			permission.Deny, "the default is deny"},
		"always_ask does not lift deny": {private(permission.Config{Default: permission.Deny}), []permission.Toolset{onGithub("writer", unsaid, entry(permission.Ask))}, issue("writer"),
			permission.Deny, "the default is deny"},
		"always_allow without grants": {private(permission.Config{Narrow: true}), []permission.Toolset{onGithub("writer", unsaid, entry(permission.Allow))}, issue("writer"),
			permission.Ask, "counts for nothing, since permissions.crew_grants is off"},
		"the settings deny": {private(permission.Config{Deny: rule("mcp__github__*")}), []permission.Toolset{onGithub("writer", unsaid, entry(permission.Allow))}, issue("writer"),
			permission.Deny, `deny rule "mcp__github__*" (crewhost.yaml:7)`},
		"the settings ask": {private(permission.Config{Ask: rule("mcp__github__*")}), []permission.Toolset{onGithub("writer", unsaid, entry(permission.Allow))}, issue("writer"),
			permission.Ask, `ask rule "mcp__github__*" (crewhost.yaml:7)`},
		"the settings allow": {private(permission.Config{Allow: rule("mcp__github__*")}), []permission.Toolset{onGithub("writer", unsaid)}, issue("writer"),
			permission.Allow, `allow rule "mcp__github__*" (crewhost.yaml:7)`},
		"the crew asks all the same": {private(permission.Config{Allow: rule("mcp__github__*")}), []permission.Toolset{onGithub("writer", permission.ToolRule{Verdict: permission.Ask})}, issue("writer"),
			permission.Ask, `ask rule "mcp__github__*" of agent "writer" (crew.yaml:4)`},
		"switched off": {private(permission.Config{Allow: rule("*")}), []permission.Toolset{onGithub("writer", permission.ToolRule{Disabled: true})}, issue("writer"),
			permission.Deny, `deny rule "mcp__github__*" of agent "writer" (crew.yaml:4)`},
		"switched off, but for one": {private(permission.Config{}), []permission.Toolset{onGithub("writer", permission.ToolRule{Disabled: true}, entry(permission.Allow))}, issue("writer"),
			permission.Allow, `"mcp__github__create_issue"`},
		"of two toolsets the stricter": {private(permission.Config{}), []permission.Toolset{onGithub("writer", entryless(permission.Allow)), onGithub("writer", entryless(permission.Ask))}, issue("writer"),
			permission.Ask, "ask rule"},
		"another agent": {private(permission.Config{Allow: rule("*")}), []permission.Toolset{onGithub("writer", entryless(permission.Allow))}, issue("editor"),
			permission.Deny, `agent "editor" has no toolset of it`},
		"no agent": {private(permission.Config{Allow: rule("*")}), []permission.Toolset{onGithub("writer", entryless(permission.Allow))}, issue(""),
			permission.Deny, "who calls is no agent"},
		"a server of the settings is anybody's": {permission.Config{Allow: rule("*")}, nil, issue(""), permission.Allow, ""},
		"a toolset of the host allows": {permission.Config{}, []permission.Toolset{ofHost("writer", unsaid)}, read,
			permission.Allow, `agent "writer" has the tool by a toolset (crew.yaml:4)`},
		"not without grants": {permission.Config{Narrow: true}, []permission.Toolset{ofHost("writer", unsaid)}, read,
			permission.Ask, "the default is ask"},
		"nor where the default is deny": {permission.Config{Default: permission.Deny}, []permission.Toolset{ofHost("writer", unsaid)}, read,
			permission.Deny, "the default is deny"},
		"a tool of the host that is asked about": {permission.Config{Default: permission.Allow}, []permission.Toolset{ofHost("writer", entryless(permission.Ask))}, read,
			permission.Ask, `ask rule "*" of agent "writer"`},
		"what is apart has no default": {permission.Config{Apart: []string{"file_read"}, Allow: rule("file_read")}, []permission.Toolset{ofHost("writer", permission.ToolRule{Disabled: true})}, read,
			permission.Allow, "allow rule"},
		"but an entry of its own": {permission.Config{Apart: []string{"file_read"}, Allow: rule("file_read")},
			[]permission.Toolset{ofHost("writer", unsaid, permission.ToolRule{Tool: "file_read", Disabled: true})}, read,
			permission.Deny, `deny rule "file_read" of agent "writer" (crew.yaml:4)`},
	} {
		t.Run(name, func(t *testing.T) {
			d := with(t, tt.config, tt.sets).Decide(tt.ask)
			if d.Verdict != tt.want || !strings.Contains(d.Reason, tt.reason) {
				t.Errorf("%+v, want %s (%s)", d, tt.want, tt.reason)
			}
		})
	}
}

func entryless(v permission.Verdict) permission.ToolRule { return permission.ToolRule{Verdict: v} }

// Every problem of a crew's toolsets is told at once; a verdict that is not known is
// one, and not a grant.
func TestWithRefuses(t *testing.T) {
	_, err := mustPolicy(t, permission.Config{}).With([]permission.Toolset{
		{Place: "c:1"},
		{Agent: "a", Place: "c:2", Default: permission.ToolRule{Tool: "x", Place: "c:3"}},
		{Agent: "b", Tools: []permission.ToolRule{{Verdict: "sometimes", Place: "c:4"}, {Tool: "t", Verdict: permission.Deny}}},
	})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		`c:1: toolset of agent "": it is of no agent`, `c:2: toolset of agent "a": its default names the tool "x"`,
		`c:4: toolset of agent "b": the verdict "sometimes" is neither allow nor ask`, `an entry names no tool`,
		`toolset of agent "b": the verdict "deny" is neither`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in: %v", want, err)
		}
	}
}

// A policy with toolsets is another one: it takes the place of earlier toolsets, and
// what it was made of stays as it was.
func TestWithLeavesThePolicyAlone(t *testing.T) {
	read := permission.Request{Tool: "file_read", Agent: "writer"}
	p := mustPolicy(t, permission.Config{})
	sets := []permission.Toolset{ofHost("writer", permission.ToolRule{}, permission.ToolRule{Tool: "file_read", Disabled: true})}
	crew, err := p.With(sets)
	if err != nil {
		t.Fatal(err)
	}
	sets[0].Tools[0].Disabled = false
	other, err := crew.With(nil)
	if err != nil {
		t.Fatal(err)
	}
	for what, tt := range map[string]struct {
		policy *permission.Policy
		want   permission.Verdict
	}{"alone": {p, permission.Ask}, "of the crew": {crew, permission.Deny}, "of another": {other, permission.Ask}} {
		if got := tt.policy.Decide(read).Verdict; got != tt.want {
			t.Errorf("%s: %s", what, got)
		}
	}
	var none *permission.Policy
	if zero, err := none.With(nil); err != nil || zero.Decide(read).Verdict != permission.Ask {
		t.Error("no policy")
	}
}

func TestIdleToolsetEntries(t *testing.T) {
	p := with(t, permission.Config{Allow: []permission.Rule{{Pattern: "file_reed"}}}, []permission.Toolset{
		onGithub("b", permission.ToolRule{}, permission.ToolRule{Tool: "create_isue"}, permission.ToolRule{Tool: "create_issue"}),
		ofHost("a", permission.ToolRule{}, permission.ToolRule{Tool: "create_issue"}, permission.ToolRule{Tool: "file_read"}),
	})
	var idle []string
	for _, r := range p.Idle([]permission.Request{{Tool: "file_read"}, {Tool: "mcp__github__create_issue", Server: own, ServerTool: "create_issue"}}) {
		idle = append(idle, r.String())
	}
	want := `"file_reed", "create_issue" of agent "a" (crew.yaml:4), "mcp__github__create_isue" of agent "b" (crew.yaml:4)`
	if got := strings.Join(idle, ", "); got != want {
		t.Errorf("idle are %s", got)
	}
}
