// Package config reads the settings: one file in YAML, JSON or TOML, overlaid by
// CREWHOST_* variables and flags, decoded strictly into plain structs.
//
// It opens nothing but the settings files themselves and starts nothing. Every
// problem is reported at once, with its place and, for an unknown key, the
// nearest known one.
//
//	settings, err := config.Load(config.Source{Explicit: "crewhost.yaml"})
//	var issues strict.Issues
//	if errors.As(err, &issues) { … one line each … }
package config

import (
	"time"

	"crewhost/config/secret"
	"crewhost/config/strict"
)

// Settings is all that a settings file says, with the defaults filled in.
type Settings struct {
	// Path is the file that was read, or empty where there was none.
	Path string
	// Warnings are what the reader of the settings should know, a line each.
	Warnings []string

	LLM         LLM
	MCP         MCP
	Permissions Permissions
	Mounts      []Mount
}

// LLM is the model that a run uses, and the profiles that it may use instead.
type LLM struct {
	Profile  // the default profile
	Profiles []NamedProfile
}

// NamedProfile is a profile with its id.
type NamedProfile struct {
	ID string
	Profile
}

// Profile is one way to reach one model. Zero fields are unset.
type Profile struct {
	Provider    string // openai, anthropic, replay, echo
	Model       string
	BaseURL     secret.Text
	APIKey      secret.Ref // resolved when a model is made, not before
	Tape        string     // file of the replay provider, absolute
	Timeout     time.Duration
	MaxRetries  *int
	Temperature *float64
	TopP        *float64
	MaxTokens   int
	Pos         strict.Pos
}

// MCP is the section of the MCP servers.
type MCP struct {
	// Enabled is false where the settings switch MCP off (O10).
	Enabled bool
	// ConnectTimeout is each server's own budget: start, negotiate, ping, list.
	ConnectTimeout time.Duration
	// ProbeTimeout bounds the server/discover probe.
	ProbeTimeout time.Duration
	// ToolTimeout bounds a call where a server says nothing else.
	ToolTimeout time.Duration
	// ShutdownTimeout is the time from asking a server to end to killing it.
	ShutdownTimeout time.Duration
	// MaxStarting is how many processes start at a time.
	MaxStarting int
	// Servers in the order of the settings, which is the order of precedence
	// for names (O12). Disabled ones are left out.
	Servers []Server
}

// Transport is how a server is reached.
type Transport string

// The transports of this release.
const (
	TransportStdio Transport = "stdio"
	TransportHTTP  Transport = "http" // Streamable HTTP
)

// Server is one MCP server.
type Server struct {
	Name      string
	Transport Transport

	// Of stdio servers. No shell sees the command (W2).
	Command secret.Text
	Args    []secret.Text
	Env     []Variable
	Cwd     string // absolute; empty means the host's

	// Of HTTP servers.
	URL     secret.Text
	Headers []Variable

	Required       bool     // its failure fails the start
	EnabledTools   []string // nil: all; else only these of its own tool names
	DisabledTools  []string
	ConnectTimeout time.Duration
	ToolTimeout    time.Duration
	Pos            strict.Pos // where it is declared
}

// Variable is an environment variable or an HTTP header.
type Variable struct {
	Name  string
	Value secret.Text
}

// Permissions are the rules of the policy.
type Permissions struct {
	Default  string // allow, ask or deny, for what no rule decides
	Allow    []Rule
	Ask      []Rule
	Deny     []Rule
	Headless string // allow or deny: the answer to ask where nobody can be asked
}

// Rule is a pattern of the policy and where it stands.
type Rule struct {
	Pattern string
	Pos     strict.Pos
}

// Mount is a mount specification and where it stands.
type Mount struct {
	Spec string
	Pos  strict.Pos
}
