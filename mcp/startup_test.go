package mcp_test

import (
	"testing"

	"crewhost/mcp"
	"crewhost/mcp/mcptest"
)

func TestSmoke(t *testing.T) {
	r := start(t, settings(stdio("a", mcptest.Standard), stdio("b", mcptest.Scripted), remote("c", mcptest.HTTP(t, "-tools", "x,y")))).connected()
	for _, rep := range r.Reports() {
		t.Logf("%+v", rep)
	}
	t.Logf("%+v", r.call("echo", `{"a":1e400,"b":0.1000000000000000055}`))
	_ = mcp.Modern
}
