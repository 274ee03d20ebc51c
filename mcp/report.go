package mcp

import (
	"fmt"
	"time"

	"crewhost/config"
	"crewhost/tools"
)

// State is where a server's session stands.
type State string

// The states.
const (
	StateConnecting State = "connecting" // between the start and the list of tools, each time
	StateConnected  State = "connected"
	StateFailed     State = "failed"  // it was never connected
	StateFaulted    State = "faulted" // it was connected, and its transport closed (W6)
	StateClosed     State = "closed"  // it was closed by this host
)

// Era is the lineage of the protocol that was negotiated.
type Era string

// The eras.
const (
	Modern Era = "modern" // 2026-07-28 and later: no handshake (O3)
	Legacy Era = "legacy" // up to 2025-11-25: initialize (O4)
)

// ServerReport is what became of one server.
type ServerReport struct {
	Name      string
	State     State
	Required  bool
	Transport config.Transport
	Agents    []string // that bring the server along, by their keys; nil: the settings do (A1)

	Era           Era
	Protocol      string // the negotiated version, such as "2025-11-25"
	ServerName    string // what the server calls itself
	ServerVersion string
	Instructions  string // untrusted text, at most 16 KiB
	// InstructionsDigest is of all that the server gave as instructions, what nobody
	// sees and what was cut off included; empty: it gave none.
	InstructionsDigest string

	// Tools are the names that are registered, sorted. While Startup runs, and
	// so in a report given to OnReport, they are those that the server offers.
	Tools []string
	// Skipped are the tools that are not registered though the settings don't
	// exclude them.
	Skipped []Skip
	// Warnings are what else there is to know, a line each.
	Warnings []string
	// DefinitionBytes is the size of the definitions of Tools: names,
	// descriptions and schemas.
	DefinitionBytes int

	// Reconnects is how often it was connected again after a fault.
	Reconnects int

	// Err is why the server failed or faulted, a *tools.Error. It stays while
	// the server is being connected again.
	Err error
	// Took is the time from its start to its being connected or failed. A wait
	// for other processes to start is not in it.
	Took time.Duration
}

// offer notes the tools that there are.
func (r *ServerReport) offer(defs []tools.Definition) {
	r.Tools, r.DefinitionBytes = nil, 0
	for _, d := range defs {
		r.Tools = append(r.Tools, d.Name)
		r.DefinitionBytes += size(d)
	}
}

// Reason is why a tool was not registered.
type Reason string

// The reasons.
const (
	ReasonCollision Reason = "collision" // another tool holds the name (O12)
	ReasonDuplicate Reason = "duplicate" // the server lists the name twice (W7)
	ReasonNameless  Reason = "nameless"  // the name is empty (K23)
	ReasonMalformed Reason = "malformed" // the name or the definition can't be used
	ReasonTooLarge  Reason = "too_large" // the name or the schemas are over the limits (W7)
)

// Skip is a tool that was not registered.
type Skip struct {
	Server string
	Tool   string
	Reason Reason
	// Holder is who holds the name in a collision: `server "a"`, or "a built-in tool".
	Holder string
}

// String is the line of the startup report, a full sentence.
func (s Skip) String() string {
	switch s.Reason {
	case ReasonCollision:
		return fmt.Sprintf("The tool %q of MCP server %q collides with %s and was not registered.", s.Tool, s.Server, s.Holder)
	case ReasonDuplicate:
		return fmt.Sprintf("The tool %q of MCP server %q is listed twice: the first was taken.", s.Tool, s.Server)
	case ReasonNameless:
		return fmt.Sprintf("A tool of MCP server %q has an empty name and was not registered.", s.Server)
	case ReasonTooLarge:
		return fmt.Sprintf("The tool %q of MCP server %q is larger than allowed and was not registered.", s.Tool, s.Server)
	default:
		return fmt.Sprintf("The tool %q of MCP server %q has a definition that can't be used and was not registered.", s.Tool, s.Server)
	}
}
