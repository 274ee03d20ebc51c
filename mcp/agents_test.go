package mcp_test

import (
	"encoding/json"
	"slices"
	"testing"

	"crewhost/config"
	"crewhost/mcp"
	"crewhost/mcp/mcptest"
	"crewhost/tools"
)

// of is a server that agents bring along.
func of(server config.Server, agents ...string) config.Server {
	server.Agents = agents
	return server
}

// A9: tools of servers that agents bring along have names of their own kind, which
// nobody else's tool takes, and are called by those that they have there.
func TestServersOfAgents(t *testing.T) {
	t.Parallel()
	cfg := config.MCP{Enabled: true, ResourceTools: true, Servers: []config.Server{
		stdio("a", mcptest.Standard, "-tools", "echo,mcp__b__echo"),
		of(stdio("b", mcptest.Standard, "-tools", "echo", "-contents"), "pilot", "clerk"),
	}}
	r := start(t, cfg)
	if got, want := r.reg.Names(), []string{"echo", "mcp__b__echo", mcp.ListResourcesTool, mcp.ReadResourceTool}; !slices.Equal(got, want) {
		t.Errorf("registered %q, want %q", got, want)
	}
	reports := r.Reports()
	if !slices.Equal(reports[1].Agents, []string{"pilot", "clerk"}) || reports[0].Agents != nil {
		t.Errorf("agents: %v and %v", reports[0].Agents, reports[1].Agents)
	}
	if s := reports[0].Skipped; len(s) != 1 || s[0].Reason != mcp.ReasonCollision || s[0].Holder != `server "b"` {
		t.Errorf("a's skipped tools: %v", s)
	}
	tool, _ := r.reg.Lookup("mcp__b__echo")
	if d := tool.Definition(); d.Server != "b" || d.Original != "echo" || d.ServerName() != "echo" {
		t.Errorf("%+v", d)
	}
	res, err := tool.Call(t.Context(), tools.Call{Name: "mcp__b__echo", Arguments: json.RawMessage(`{"x":1}`)})
	if err != nil || text(res) != `{"x":1}` {
		t.Errorf("%v, %v", res, err)
	}
	for _, name := range []string{mcp.ListResourcesTool, mcp.ReadResourceTool} {
		tool, _ := r.reg.Lookup(name)
		res, err := tool.Call(t.Context(), tools.Call{Name: name, Arguments: json.RawMessage(`{"server":"b"` + map[string]string{mcp.ReadResourceTool: `,"uri":"x://y"`}[name] + `}`)})
		if err != nil || !res.IsError || text(res) != `MCP server "b" lends its tools, and nothing else.` {
			t.Errorf("%s: %v, %v", name, res, err)
		}
	}
}

// The list of such a server is followed, and a definition that is spoilt is noticed by
// the server's own name for it (W7).
func TestListOfAnAgentsServerChanges(t *testing.T) {
	t.Parallel()
	cfg := again(of(stdio("a", mcptest.Scripted, "-modern", "-list", `[{"name":"relist"},{"name":"old"}]`), "pilot"))
	r := start(t, cfg)
	call := func(arguments string) {
		t.Helper()
		tool, ok := r.reg.Lookup("mcp__a__relist")
		if !ok {
			t.Fatal(r.reg.Names())
		}
		if _, err := tool.Call(t.Context(), tools.Call{Name: "mcp__a__relist", Arguments: json.RawMessage(arguments)}); err != nil {
			t.Fatal(err)
		}
	}
	call(`{"list":[{"name":"relist"},{"name":"new"}]}`)
	r.eventually("mcp__a__new", "mcp__a__relist")
	call(`{"list":[{"name":"relist"},{"name":"new"},{"name":"new"},{"name":"more"}]}`)
	r.eventually("mcp__a__more", "mcp__a__new", "mcp__a__relist")
}
