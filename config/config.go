// Package config reads the settings: one file in YAML, JSON or TOML, overlaid by
// CREWHOST_* variables and flags, decoded strictly into plain structs.
//
// It opens nothing but the settings files themselves and starts nothing. Every
// problem is reported at once, with its place and, for an unknown key, the
// nearest known one. It reads neither flags nor the environment by itself: the
// [Source] says what they are.
//
//	settings, err := config.Load(config.Source{Explicit: "crewhost.yaml", Environ: os.Environ()})
//	var issues strict.Issues
//	if errors.As(err, &issues) { … one line each … }
//
// # Layers
//
// From low to high: the defaults, the servers of imported files, the settings
// file, the environment, flags. Mappings are merged key by key, lists and values
// are replaced. The layers are merged as trees in which each value knows its
// place, and the result is decoded once, so that a wrong value is reported where
// it was written, be that a line or a variable.
//
// # Secrets
//
// Values that may hold credentials are [secret.Text]: they print as they were
// written, with literal credentials masked, and reveal what they mean. A model's
// key is a [secret.Ref], which nothing resolves before a model is made, so that
// judging a crew needs no key.
package config

import (
	"slices"
	"time"

	"crewhost/config/secret"
	"crewhost/config/strict"
)

// Settings is all that a settings file says, with the defaults filled in.
type Settings struct {
	// Path is the file that was read, absolute, or empty where there was none.
	Path string
	// Warnings are what the reader of the settings should know, a line each,
	// with its place at the front.
	Warnings []string

	LLM         LLM
	MCP         MCP
	Permissions Permissions
	Mounts      []Mount
	Memory      Memory
	Knowledge   Knowledge
	Audit       Audit
	Journal     Journal
	Vault       Vault
	Tools       Tools
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
	// Keepalive is how long a server may be idle before it is asked for a sign
	// of life. Zero: never.
	Keepalive time.Duration
	// Reconnect is what is done about a server that is gone.
	Reconnect Reconnect
	// MaxCalls is how many calls run on one server at a time; others wait (W8).
	MaxCalls int
	// ResourceTools registers the tools by which agents list and read the
	// resources of servers.
	ResourceTools bool
	// Limits bound what one server may hand over.
	Limits Limits
	// AllowedHosts are the only hosts that servers may be reached at over HTTP,
	// each a name or an address, lower-cased, with or without a port. Nil: any;
	// empty: none (W4).
	AllowedHosts []string
	// Locked holds servers to what crewhost.lock has of them, and LockFile is that
	// file, absolute; empty: the one beside the settings, or the crew (R4).
	Locked   bool
	LockFile string
	// Gateway is what stands between the host and its servers over HTTP.
	Gateway Gateway
	// TokenStore is where the tokens of OAuth are kept: auto, keyring, file or
	// memory. Empty is memory.
	TokenStore string
	// TokenDir is the folder of tokens in files, absolute; empty where the user
	// has no configuration folder.
	TokenDir string
	// Servers in the order of the settings, which is the order of precedence
	// for names (O12). Disabled ones are left out.
	Servers []Server
	// Served are the surfaces for MCP clients, in the order of the settings (I1).
	Served  []Served
	Serving Serving
}

// Limits bound what one server may hand over, and what is sent to it (W7, W8,
// W10). Zero means the default.
type Limits struct {
	Tools             int // tools of a server; the rest is left out
	Pages             int // pages of its list; the rest is left out
	NameLength        int // bytes of a tool's name; a longer one is left out
	DescriptionLength int // bytes of a tool's description; a longer one is cut
	SchemaBytes       int // of one schema; a tool with a larger one is left out
	MessageBytes      int // of a line, a body or an event, unpacked; a larger one fails its request
	ArgumentsBytes    int // of a call; a call with more is not sent
	ResultBytes       int // of a result: texts are cut to fit, and one that still doesn't is refused
	TextChars         int // characters of a result's texts together; the rest is cut from their middle
}

// Transport is how a server is reached (W3).
type Transport string

// The transports.
const (
	TransportStdio Transport = "stdio"
	// TransportAuto is Streamable HTTP, or else, where the server's answer says
	// that it has none, the legacy one.
	TransportAuto Transport = "auto"
	TransportHTTP Transport = "http" // Streamable HTTP
	TransportSSE  Transport = "sse"  // HTTP with server-sent events, as of 2024-11-05
)

// Remote reports whether the server is called at a URL rather than started.
func (t Transport) Remote() bool {
	return t == TransportAuto || t == TransportHTTP || t == TransportSSE
}

// Reconnect says how a server is connected again whose connection has broken. The
// zero value is never.
type Reconnect struct {
	// MaxAttempts is how many attempts in a row may fail.
	MaxAttempts int
	// Initial is the pause before the first attempt. It doubles with each, up
	// to Max.
	Initial, Max time.Duration
}

// Protocol is the era of the protocol that a server is held to.
type Protocol string

// The eras, and the choice between them by asking the server.
const (
	ProtocolAuto   Protocol = "auto"
	ProtocolModern Protocol = "modern" // 2026-07-28 and later
	ProtocolLegacy Protocol = "legacy" // up to 2025-11-25: initialize
)

// Server is one MCP server.
type Server struct {
	Name      string
	Transport Transport
	// Agents are the keys of the agents whose crew file declares the server (A1),
	// and nil where the settings do. Tools of such a server are named
	// mcp__<server>__<tool> (A9).
	Agents []string

	// Of stdio servers. No shell sees the command (W2).
	Command secret.Text
	Args    []secret.Text
	Env     []Variable
	Cwd     string // absolute; empty means the host's

	// Of servers over HTTP, whatever the transport.
	URL     secret.Text
	Headers []Variable
	OAuth   *OAuth // nil: the server decides whether it asks for tokens

	Protocol       Protocol // empty is auto
	Required       bool     // its failure fails the start
	EnabledTools   []string // nil: all; else only these of its own tool names
	DisabledTools  []string
	ConnectTimeout time.Duration
	ToolTimeout    time.Duration
	MaxCalls       int        // 0: as MCP.MaxCalls
	Pos            strict.Pos // where it is declared

	// Answers are what the server gets where it asks for fields of these names
	// (O19), in the order of the settings.
	Answers []Variable
	// Sampling lets the server ask the host's model; nil means that it can't.
	Sampling *Sampling
	// Roots tells the server the physical folders of the mounts, which agents
	// and other servers never see.
	Roots bool
}

// Sampling bounds what a server may ask of the host's model.
type Sampling struct {
	MaxTokens int // of one answer
	MaxCalls  int // while the host is open
}

// Variable is an environment variable, an HTTP header or a declared answer.
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
	// CrewGrants is false where what crew files allow counts for nothing.
	CrewGrants bool
	// Approvals is the file of what was allowed always, absolute; empty where nothing
	// is: the settings say so, or nothing says where a user's state is kept.
	Approvals string
}

// Rule is a pattern of the policy and where it stands.
type Rule struct {
	Pattern string
	Pos     strict.Pos
}

// Mount is a mount specification and where it stands.
type Mount struct {
	Spec string
	// Base is the folder that a relative physical path is taken from, absolute.
	Base string
	Pos  strict.Pos
}

// Secrets returns every secret that the settings hold, for a [secret.Redactor]:
// what came from variables, the values of env and headers, credentials in URLs
// and in arguments. Keys of models, and tokens of clients, are not among them unless
// they are literals: add those when they are resolved.
func (s *Settings) Secrets() []secret.Value {
	var all []secret.Value
	profile := func(p Profile) {
		all = append(all, p.BaseURL.Secrets()...)
		if !p.APIKey.Value.IsZero() {
			all = append(all, p.APIKey.Value)
		}
	}
	profile(s.LLM.Profile)
	for _, p := range s.LLM.Profiles {
		profile(p.Profile)
	}
	if e := s.LLM.Embeddings; e != nil {
		profile(e.Profile)
	}
	all = append(all, s.MCP.Gateway.Proxy.Secrets()...)
	for _, server := range s.MCP.Servers {
		all = append(all, server.Command.Secrets()...)
		for _, arg := range server.Args {
			all = append(all, arg.Secrets()...)
		}
		all = append(all, server.URL.Secrets()...)
		all = append(all, server.OAuth.secrets()...)
		for _, v := range slices.Concat(server.Env, server.Headers, server.Answers) {
			all = append(all, v.Value.Secrets()...)
		}
	}
	for _, surface := range s.MCP.Served {
		if surface.HTTP == nil {
			continue
		}
		for _, t := range surface.HTTP.Tokens {
			if !t.Token.Value.IsZero() {
				all = append(all, t.Token.Value)
			}
		}
	}
	return all
}
