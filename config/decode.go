package config

import (
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"crewhost/config/strict"
)

// document is a settings file as it is written.
type document struct {
	LLM         llmDocument         `key:"llm"`
	MCP         mcpDocument         `key:"mcp"`
	Permissions permissionsDocument `key:"permissions"`
	Mounts      []strict.At[word]   `key:"mounts"`
	Memory      memoryDocument      `key:"memory"`
	Knowledge   knowledgeDocument   `key:"knowledge"`
	Audit       auditDocument       `key:"audit"`
	Journal     journalDocument     `key:"journal"`
	Vault       vaultDocument       `key:"vault"`
	Tools       toolsDocument       `key:"tools"`
}

type mcpDocument struct {
	Enabled         bool                           `key:"enabled"`
	ConnectTimeout  time.Duration                  `key:"connect_timeout"`
	ProbeTimeout    time.Duration                  `key:"probe_timeout"`
	ToolTimeout     time.Duration                  `key:"tool_timeout"`
	ShutdownTimeout time.Duration                  `key:"shutdown_timeout"`
	MaxStarting     count                          `key:"max_starting"`
	MaxCalls        count                          `key:"max_calls"`
	Keepalive       time.Duration                  `key:"keepalive"`
	Reconnect       reconnectDocument              `key:"reconnect"`
	ResourceTools   bool                           `key:"resource_tools"`
	Limits          limitsDocument                 `key:"limits"`
	AllowedHosts    *[]strict.At[word]             `key:"allowed_hosts"`
	Locked          bool                           `key:"locked"`
	LockFile        strict.At[word]                `key:"lock_file"`
	Gateway         gatewayDocument                `key:"gateway"`
	TokenStore      strict.At[string]              `key:"token_store"`
	Import          []strict.At[word]              `key:"import"`
	Servers         []strict.Named[serverDocument] `key:"servers"`
	Served          []strict.Named[servedDocument] `key:"served"`
	Serving         servingDocument                `key:"serving"`
}

type reconnectDocument struct {
	MaxAttempts natural       `key:"max_attempts"`
	Initial     time.Duration `key:"initial"`
	Max         time.Duration `key:"max"`
	Pos         strict.Pos    `key:"@"`
}

type limitsDocument struct {
	Tools             count `key:"tools"`
	Pages             count `key:"pages"`
	NameLength        count `key:"name_length"`
	DescriptionLength count `key:"description_length"`
	SchemaBytes       count `key:"schema_bytes"`
	MessageBytes      count `key:"message_bytes"`
	ArgumentsBytes    count `key:"arguments_bytes"`
	ResultBytes       count `key:"result_bytes"`
	TextChars         count `key:"text_chars"`
}

func (l limitsDocument) limits() Limits {
	return Limits{
		Tools:             int(l.Tools),
		Pages:             int(l.Pages),
		NameLength:        int(l.NameLength),
		DescriptionLength: int(l.DescriptionLength),
		SchemaBytes:       int(l.SchemaBytes),
		MessageBytes:      int(l.MessageBytes),
		ArgumentsBytes:    int(l.ArgumentsBytes),
		ResultBytes:       int(l.ResultBytes),
		TextChars:         int(l.TextChars),
	}
}

type permissionsDocument struct {
	Default    strict.At[string] `key:"default"`
	Allow      []strict.At[word] `key:"allow"`
	Ask        []strict.At[word] `key:"ask"`
	Deny       []strict.At[word] `key:"deny"`
	Headless   strict.At[string] `key:"headless"`
	CrewGrants bool              `key:"crew_grants"`
	Approvals  bool              `key:"approvals"`
}

// decode makes settings of the merged tree, reporting every problem.
func (l *loader) decode(tree *strict.Node) *Settings {
	d := &strict.Decoder{}
	var doc document
	d.Decode(tree, &doc, "")
	x := &expander{env: l.env, d: d}
	s := &Settings{
		MCP: MCP{
			Enabled:         doc.MCP.Enabled,
			ConnectTimeout:  doc.MCP.ConnectTimeout,
			ProbeTimeout:    doc.MCP.ProbeTimeout,
			ToolTimeout:     doc.MCP.ToolTimeout,
			ShutdownTimeout: doc.MCP.ShutdownTimeout,
			MaxStarting:     int(doc.MCP.MaxStarting),
			Locked:          doc.MCP.Locked,
			TokenStore:      doc.MCP.TokenStore.V,
			MaxCalls:        int(doc.MCP.MaxCalls),
			Keepalive:       doc.MCP.Keepalive,
			Reconnect: Reconnect{
				MaxAttempts: int(doc.MCP.Reconnect.MaxAttempts), Initial: doc.MCP.Reconnect.Initial, Max: doc.MCP.Reconnect.Max,
			},
			ResourceTools: doc.MCP.ResourceTools,
			Limits:        doc.MCP.Limits.limits(),
			AllowedHosts:  hosts(d, doc.MCP.AllowedHosts),
			Serving:       doc.MCP.Serving.serving(),
		},
		Permissions: l.permissions(d, doc.Permissions),
		Memory:      l.memory(doc.Memory),
		Knowledge:   doc.Knowledge.knowledge(),
		Audit:       l.audit(d, doc.Audit),
		Journal:     l.journal(d, doc.Journal),
		Vault:       l.vault(x, doc.Vault),
		Tools:       l.tools(x, doc.Tools),
	}
	if r := doc.MCP.Reconnect; r.Max > 0 && r.Max < r.Initial {
		d.Fail(r.Pos, strict.CodeBadValue, "mcp.reconnect.max is "+r.Max.String()+", and below mcp.reconnect.initial, which is "+r.Initial.String(), "")
	}
	if f := doc.MCP.LockFile; f.V != "" {
		s.MCP.LockFile = l.absolute(string(f.V), f.Pos)
	}
	s.MCP.Gateway = l.gateway(x, doc.MCP.Gateway)
	texts(d, doc.MCP.Import, "mcp.import")
	oneOf(d, doc.MCP.TokenStore, "mcp.token_store", "auto", "keyring", "file", "memory")
	if dir := l.source.UserConfigDir; dir != "" {
		s.MCP.TokenDir = filepath.Join(dir, "crewhost")
	}
	s.LLM = l.llm(x, doc.LLM)
	for _, e := range doc.MCP.Servers {
		if server, ok := l.server(x, e, s.MCP); ok {
			s.MCP.Servers = append(s.MCP.Servers, server)
		}
	}
	s.MCP.Served = l.served(x, doc.MCP.Served, doc.MCP.Servers)
	for _, m := range texts(d, doc.Mounts, "mounts") {
		s.Mounts = append(s.Mounts, Mount{Spec: string(m.V), Base: l.base(m.Pos), Pos: m.Pos})
	}
	l.issues = append(l.issues, d.Issues()...)
	return s
}

func (l *loader) permissions(d *strict.Decoder, doc permissionsDocument) Permissions {
	oneOf(d, doc.Default, "permissions.default", "allow", "ask", "deny")
	oneOf(d, doc.Headless, "permissions.headless", "allow", "deny")
	rules := func(list []strict.At[word], where string) []Rule { return rulesOf(d, list, where) }
	p := Permissions{
		Default:    doc.Default.V,
		Allow:      rules(doc.Allow, "permissions.allow"),
		Ask:        rules(doc.Ask, "permissions.ask"),
		Deny:       rules(doc.Deny, "permissions.deny"),
		Headless:   doc.Headless.V,
		CrewGrants: doc.CrewGrants,
	}
	if dir := l.source.UserStateDir; doc.Approvals && dir != "" {
		p.Approvals = ApprovalsFile(dir)
	}
	return p
}

// rulesOf are the patterns of a list.
func rulesOf(d *strict.Decoder, list []strict.At[word], where string) []Rule {
	var out []Rule
	for _, r := range texts(d, list, where) {
		out = append(out, Rule{Pattern: string(r.V), Pos: r.Pos})
	}
	return out
}

// ApprovalsFile is the file of what was allowed always, in the folder of the user's
// state.
func ApprovalsFile(userStateDir string) string {
	return filepath.Join(userStateDir, "crewhost", "approvals.json")
}

// oneOf reports a word that is not one of the known.
func oneOf(d *strict.Decoder, word strict.At[string], where string, known ...string) {
	if word.V != "" && !slices.Contains(known, word.V) {
		d.Fail(word.Pos, strict.CodeBadValue, where+": "+strict.Quote(word.V)+" is not known", strict.DidYouMean(word.V, known))
	}
}

// texts reports the entries of a list that hold nothing, and returns the others.
func texts(d *strict.Decoder, list []strict.At[word], where string) []strict.At[word] {
	var out []strict.At[word]
	for i, t := range list {
		if !t.Set {
			d.Fail(t.Pos, strict.CodeMissing, where+"."+strconv.Itoa(i)+" is empty", "")
		} else if t.V != "" {
			out = append(out, t)
		}
	}
	return out
}

// shown returns a key as part of a path: quoted where it is no plain word.
func shown(key string) string {
	if quoted := strict.Quote(key); quoted != `"`+key+`"` {
		return quoted
	}
	return key
}
