package config

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"crewhost/config/secret"
	"crewhost/config/strict"
)

const keyAPIKey = "api_key"

// document is a settings file as it is written.
type document struct {
	LLM         llmDocument         `key:"llm"`
	MCP         mcpDocument         `key:"mcp"`
	Permissions permissionsDocument `key:"permissions"`
	Mounts      []strict.At[word]   `key:"mounts"`
}

// llmDocument is the section llm: the default profile and the others. Those are
// decoded one by one, since a profile has no profiles.
type llmDocument struct {
	ProfileDocument
	Profiles []strict.Named[*strict.Node] `key:"profiles"`
}

// ProfileDocument is a profile as it is written. It is exported for reflection.
type ProfileDocument struct {
	Pos         strict.Pos             `key:"@"`
	Provider    strict.At[string]      `key:"provider"`
	Model       strict.At[string]      `key:"model"`
	BaseURL     strict.At[scalar]      `key:"base_url"`
	APIKey      strict.At[apiKey]      `key:"api_key"`
	Tape        strict.At[string]      `key:"tape"`
	Timeout     time.Duration          `key:"timeout"`
	MaxRetries  strict.At[natural]     `key:"max_retries"`
	Temperature strict.At[temperature] `key:"temperature"`
	TopP        strict.At[share]       `key:"top_p"`
	MaxTokens   count                  `key:"max_tokens"`
	ToolSchemas strict.At[string]      `key:"tool_schemas"`
	ToolCalls   strict.At[string]      `key:"tool_calls"`
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
	Default  strict.At[string] `key:"default"`
	Allow    []strict.At[word] `key:"allow"`
	Ask      []strict.At[word] `key:"ask"`
	Deny     []strict.At[word] `key:"deny"`
	Headless strict.At[string] `key:"headless"`
}

// apiKey is a model's key: a text, or where to find one.
type apiKey struct {
	text  string
	ref   keyDocument
	wrong bool // and an issue says so
}

type keyDocument struct {
	Env     strict.At[string]   `key:"env"`
	File    strict.At[string]   `key:"file"`
	Command []strict.At[scalar] `key:"command"`
}

// UnmarshalNode implements [strict.Unmarshaler].
func (k *apiKey) UnmarshalNode(d *strict.Decoder, n *strict.Node) {
	before := len(d.Issues())
	defer func() { k.wrong = len(d.Issues()) > before }()
	switch n.Kind {
	case strict.String, strict.Untyped:
		k.text = n.Text
	case strict.Map:
		d.Decode(n, &k.ref, "")
	default: // the text is not shown: it may be the key
		d.WrongType(&strict.Node{Pos: n.Pos, Kind: n.Kind}, "a text or a mapping with env, file or command")
	}
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
	}
	if r := doc.MCP.Reconnect; r.Max > 0 && r.Max < r.Initial {
		d.Fail(r.Pos, strict.CodeBadValue, "mcp.reconnect.max is "+r.Max.String()+", and below mcp.reconnect.initial, which is "+r.Initial.String(), "")
	}
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

func (l *loader) llm(x *expander, doc llmDocument) LLM {
	llm := LLM{Profile: l.profile(x, doc.ProfileDocument, "llm")}
	for i, e := range doc.Profiles {
		where := "llm.profiles." + shown(e.Key)
		var p ProfileDocument
		x.d.Decode(e.V, &p, where)
		switch {
		case strings.EqualFold(e.Key, DefaultProfile):
			x.d.Fail(e.KeyPos, CodeName, "the profile id "+strict.Quote(e.Key)+" means the section llm itself", "give it another id")
		case !serverName.MatchString(e.Key):
			x.d.Fail(e.KeyPos, CodeName, "the profile id "+strict.Quote(e.Key)+" is not valid", nameRule)
		case e.V.Kind == strict.Null || e.V.Kind == strict.Map && len(e.V.Entries) == 0:
			x.d.Fail(e.KeyPos, strict.CodeMissing, where+" sets nothing", "a profile stands alone, and takes nothing from llm")
		}
		for _, before := range doc.Profiles[:i] {
			if strings.EqualFold(before.Key, e.Key) {
				x.d.Fail(e.KeyPos, strict.CodeDuplicateKey, "the profiles "+strict.Quote(before.Key)+" and "+strict.Quote(e.Key)+" differ in case only", "")
			}
		}
		llm.Profiles = append(llm.Profiles, NamedProfile{ID: e.Key, Profile: l.profile(x, p, where)})
	}
	return llm
}

func (l *loader) profile(x *expander, doc ProfileDocument, where string) Profile {
	d := x.d
	p := Profile{
		Provider:  doc.Provider.V,
		Model:     doc.Model.V,
		BaseURL:   x.text(doc.BaseURL, where+".base_url", plainText),
		APIKey:    l.key(x, doc.APIKey, where+"."+keyAPIKey),
		Timeout:   doc.Timeout,
		MaxTokens: int(doc.MaxTokens),
		Pos:       doc.Pos,

		ToolSchemas: doc.ToolSchemas.V,
		ToolCalls:   doc.ToolCalls.V,
	}
	if !p.BaseURL.IsZero() {
		checkURL(d, doc.BaseURL.Pos, where+".base_url", p.BaseURL)
	}
	if doc.Tape.V != "" {
		p.Tape = l.absolute(doc.Tape.V, doc.Tape.Pos)
	}
	if doc.MaxRetries.Set {
		p.MaxRetries = (*int)(&doc.MaxRetries.V)
	}
	if doc.Temperature.Set {
		p.Temperature = (*float64)(&doc.Temperature.V)
	}
	if doc.TopP.Set {
		p.TopP = (*float64)(&doc.TopP.V)
	}
	oneOf(d, doc.ToolSchemas, where+".tool_schemas", SchemasFull, SchemasPlain)
	oneOf(d, doc.ToolCalls, where+".tool_calls", CallsNative, CallsText)
	oneOf(d, doc.Provider, where+".provider", ProviderOpenAI, ProviderAnthropic, ProviderReplay, ProviderEcho)
	switch {
	case p.Provider == "" && (p.Model != "" || !p.BaseURL.IsZero()):
		p.Provider = ProviderOpenAI
	case p.Provider == "" && p.Tape != "":
		d.Fail(doc.Tape.Pos, strict.CodeMissing, where+".tape is of no use without a provider", "provider: "+ProviderReplay)
	case p.Provider == ProviderReplay && p.Tape == "":
		d.Fail(doc.Provider.Pos, strict.CodeMissing, where+": the provider "+ProviderReplay+" needs a tape", "tape: FILE")
	case (p.Provider == ProviderOpenAI || p.Provider == ProviderAnthropic) && p.Model == "":
		d.Fail(doc.Provider.Pos, strict.CodeMissing, where+": the provider "+p.Provider+" needs a model", "model: NAME")
	}
	return p
}

// key makes the reference of a model's key. Nothing is looked up.
func (l *loader) key(x *expander, k strict.At[apiKey], where string) secret.Ref {
	if !k.Set || k.V.wrong {
		return secret.Ref{}
	}
	ref := k.V.ref
	given := 0
	for _, set := range []bool{ref.Env.Set, ref.File.Set, len(ref.Command) > 0} {
		if set {
			given++
		}
	}
	switch {
	case given > 1:
		x.d.Fail(k.Pos, strict.CodeBadValue, where+" has more than one of env, file and command", "keep one")
	case ref.Env.Set:
		if ref.Env.V == "" || nameLength(ref.Env.V) != len(ref.Env.V) {
			// Not shown: it may be the key itself.
			x.d.Fail(ref.Env.Pos, strict.CodeBadValue, where+".env is not the name of a variable", "env: OPENAI_API_KEY")
			break
		}
		return secret.Ref{Source: secret.FromEnv, Name: ref.Env.V}
	case ref.File.Set && ref.File.V != "":
		return secret.Ref{Source: secret.FromFile, Name: l.absolute(ref.File.V, ref.File.Pos)}
	case len(ref.Command) > 0:
		return l.keyCommand(ref.Command)
	case k.V.text != "":
		return l.keyText(x, k, where)
	default:
		x.d.Fail(k.Pos, strict.CodeMissing, where+" is empty", "${NAME}, or a mapping with env, file or command")
	}
	return secret.Ref{}
}

func (l *loader) keyCommand(argv []strict.At[scalar]) secret.Ref {
	r := secret.Ref{Source: secret.FromCommand, Name: string(argv[0].V)}
	if strings.ContainsAny(r.Name, `/\`) {
		r.Name = l.absolute(r.Name, argv[0].Pos)
	}
	for _, a := range argv[1:] {
		r.Args = append(r.Args, string(a.V))
	}
	return r
}

// keyText reads a key that is written as a text: one variable, or the key.
func (l *loader) keyText(x *expander, k strict.At[apiKey], where string) secret.Ref {
	parts, problem := parse(k.V.text)
	switch {
	case problem != "":
		x.d.Fail(k.Pos, CodeVariable, where+": "+problem, "known are ${NAME}, ${NAME:-default} and ${env:NAME}")
		return secret.Ref{}
	case len(parts) == 1 && parts[0].name != "":
		return secret.Ref{Source: secret.FromEnv, Name: parts[0].name, Value: secret.New(parts[0].fallback)}
	case len(parts) == 1:
		if k.Line > 0 {
			l.warn(k.Pos, "%s is written out; name a variable that holds it: ${NAME}", where)
		}
		return secret.Ref{Source: secret.FromLiteral, Value: secret.New(parts[0].text)}
	}
	x.d.Fail(k.Pos, CodeVariable, where+" must be one variable and nothing else", "${NAME}")
	return secret.Ref{}
}

func (l *loader) permissions(d *strict.Decoder, doc permissionsDocument) Permissions {
	oneOf(d, doc.Default, "permissions.default", "allow", "ask", "deny")
	oneOf(d, doc.Headless, "permissions.headless", "allow", "deny")
	rules := func(list []strict.At[word], where string) []Rule {
		var out []Rule
		for _, r := range texts(d, list, where) {
			out = append(out, Rule{Pattern: string(r.V), Pos: r.Pos})
		}
		return out
	}
	return Permissions{
		Default:  doc.Default.V,
		Allow:    rules(doc.Allow, "permissions.allow"),
		Ask:      rules(doc.Ask, "permissions.ask"),
		Deny:     rules(doc.Deny, "permissions.deny"),
		Headless: doc.Headless.V,
	}
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
