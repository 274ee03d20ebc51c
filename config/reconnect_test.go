package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The era that a server is held to (O5).
func TestProtocol(t *testing.T) {
	s := load(t, `mcp:
  servers:
    a: {command: x, protocol: modern}
    b: {url: "https://x/", protocol: legacy}
    c: {command: x, protocol: auto}
    d: {command: x}
`)
	var got []Protocol
	for _, server := range s.MCP.Servers {
		got = append(got, server.Protocol)
	}
	if diff := cmp.Diff([]Protocol{ProtocolModern, ProtocolLegacy, ProtocolAuto, ""}, got); diff != "" {
		t.Error(diff)
	}
}

func TestReconnectFaults(t *testing.T) {
	got := faults(t, `mcp:
  keepalive: 0s
  reconnect: {max_attempts: -1, initial: 5s, max: 1s, retries: 2}
  servers:
    a: {command: x, protocol: modrn}
`)
	want := `crewhost.yaml:2:14: mcp.keepalive: "0s" is not a duration above zero (write a number with a unit: 500ms, 30s, 2m) [bad-value]
crewhost.yaml:3:14: mcp.reconnect.max is 1s, and below mcp.reconnect.initial, which is 5s [bad-value]
crewhost.yaml:3:29: mcp.reconnect.max_attempts must be at least 0, not -1 [bad-value]
crewhost.yaml:3:55: unknown key "retries" in mcp.reconnect (known: initial, max, max_attempts) [unknown-key]
crewhost.yaml:5:31: mcp.servers.a.protocol: "modrn" is not known (did you mean "modern"?) [bad-value]
`
	if diff := cmp.Diff(strings.TrimSpace(want), strings.TrimSpace(got)); diff != "" {
		t.Error(diff)
	}
}
