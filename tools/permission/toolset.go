package permission

// Toolset is what a crew file says of the tools that one agent may call (A2, A3).
// Its entries are rules like those of the settings, for that agent alone: deny
// wins over ask, and ask over allow, wherever a rule stands.
type Toolset struct {
	Agent string // its key
	// Server is the agent's own MCP server that the toolset is about; empty: the
	// tools of the host that are not of any MCP server.
	Server string
	// Default is for the tools that have no entry of their own.
	Default ToolRule
	Tools   []ToolRule
	Place   string // "file:line"
}

// ToolRule is an entry of a [Toolset].
type ToolRule struct {
	Tool     string // the tool's own name, as its server knows it; empty in a Default
	Disabled bool   // the agent may not call it: a deny rule
	// Verdict is Allow or Ask where the crew file says so, and a rule then. Empty is
	// no rule: what decides is the settings' rules, and where none matches, a tool of
	// an MCP server is asked about, and one of the host goes by the default of the
	// settings, or is allowed where that is to ask (A4).
	Verdict Verdict
	Place   string
}
