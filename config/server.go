package config

import (
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"crewhost/config/secret"
	"crewhost/config/strict"
)

// serverDocument is an MCP server as it is written, in the settings or in an
// imported file.
type serverDocument struct {
	serverFields
	wrong bool // it is no mapping, and an issue says so
}

// UnmarshalNode implements [strict.Unmarshaler].
func (s *serverDocument) UnmarshalNode(d *strict.Decoder, n *strict.Node) {
	s.wrong = n.Kind != strict.Map && n.Kind != strict.Null
	d.Decode(n, &s.serverFields, "")
}

type serverFields struct {
	Pos            strict.Pos                        `key:"@"`
	Type           strict.At[string]                 `key:"type|transport"`
	Command        strict.At[word]                   `key:"command"`
	Args           []strict.At[scalar]               `key:"args"`
	Env            []strict.Named[strict.At[scalar]] `key:"env"`
	Cwd            strict.At[scalar]                 `key:"cwd"`
	URL            strict.At[word]                   `key:"url"`
	Headers        []strict.Named[strict.At[scalar]] `key:"headers"`
	OAuth          *oauthDocument                    `key:"oauth"`
	Protocol       strict.At[string]                 `key:"protocol"`
	Required       bool                              `key:"required"`
	Enabled        *bool                             `key:"enabled"`
	Disabled       *bool                             `key:"disabled"`
	EnabledTools   *[]strict.At[word]                `key:"enabled_tools"`
	DisabledTools  []strict.At[word]                 `key:"disabled_tools"`
	ConnectTimeout time.Duration                     `key:"connect_timeout|startup_timeout"`
	ToolTimeout    time.Duration                     `key:"tool_timeout"`
	MaxCalls       count                             `key:"max_calls"`
	Answers        []strict.Named[strict.At[scalar]] `key:"answers"`
	Sampling       samplingDocument                  `key:"sampling"`
	Roots          bool                              `key:"roots"`
}

// samplingDocument is true, false or the bounds of what is allowed.
type samplingDocument struct{ allowed *Sampling }

// The bounds of sampling where the settings say no more than true.
const (
	samplingTokens = 1024
	samplingCalls  = 20
)

// UnmarshalNode implements [strict.Unmarshaler].
func (s *samplingDocument) UnmarshalNode(d *strict.Decoder, n *strict.Node) {
	var on bool
	var bounds struct {
		MaxTokens count `key:"max_tokens"`
		MaxCalls  count `key:"max_calls"`
	}
	switch n.Kind {
	case strict.Null:
		return
	case strict.Map:
		on = true
		d.Decode(n, &bounds, "")
	default:
		d.Decode(n, &on, "")
	}
	if !on {
		return
	}
	s.allowed = &Sampling{MaxTokens: samplingTokens, MaxCalls: samplingCalls}
	if bounds.MaxTokens > 0 {
		s.allowed.MaxTokens = int(bounds.MaxTokens)
	}
	if bounds.MaxCalls > 0 {
		s.allowed.MaxCalls = int(bounds.MaxCalls)
	}
}

// serverName is what a server may be called: its name stands in permission
// rules and in names of tools.
var serverName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]*$`)

const nameRule = "letters, digits, _ . and -, at most 64, the first a letter or digit"

// transportNamed returns the transport of a word. Not every host has a word for
// each, and some have several.
func transportNamed(word string) (t Transport, known bool) {
	switch word {
	case "stdio":
		return TransportStdio, true
	case "auto":
		return TransportAuto, true
	case "http", "streamable-http", "streamable_http", "streamableHttp":
		return TransportHTTP, true
	case "sse", "legacy-sse", "legacy_sse", "legacySse":
		return TransportSSE, true
	}
	return "", false
}

// server makes a server of what is written; ok is false where it is disabled,
// in which case its variables and transport are nobody's concern, or wrong.
func (l *loader) server(x *expander, e strict.Named[serverDocument], section MCP) (Server, bool) {
	d, doc := x.d, e.V
	fail := func(pos strict.Pos, code, message, hint string) {
		d.Fail(pos, code, "the server "+strict.Quote(e.Key)+": "+message, hint)
	}
	if !named(serverName, e.Key, 64) {
		d.Fail(e.KeyPos, CodeName, "the server name "+strict.Quote(e.Key)+" is not valid", nameRule)
	}
	if doc.Enabled != nil && doc.Disabled != nil && *doc.Enabled == *doc.Disabled {
		fail(e.KeyPos, CodeServer, "enabled and disabled contradict each other", "keep one")
	}
	if doc.wrong || doc.Disabled != nil && *doc.Disabled || doc.Enabled != nil && !*doc.Enabled {
		return Server{}, false
	}
	s := Server{
		Name: e.Key, Required: doc.Required, Pos: e.KeyPos,
		ConnectTimeout: doc.ConnectTimeout, ToolTimeout: doc.ToolTimeout, MaxCalls: int(doc.MaxCalls),
		Protocol: Protocol(doc.Protocol.V),
		Sampling: doc.Sampling.allowed, Roots: doc.Roots,
	}
	oneOf(d, doc.Protocol, "mcp.servers."+shown(e.Key)+".protocol", string(ProtocolAuto), string(ProtocolModern), string(ProtocolLegacy))
	if s.ConnectTimeout == 0 {
		s.ConnectTimeout = section.ConnectTimeout
	}
	if s.ToolTimeout == 0 {
		s.ToolTimeout = section.ToolTimeout
	}
	where := "mcp.servers." + shown(e.Key) + "."
	for _, a := range doc.Answers {
		s.Answers = append(s.Answers, l.variable(x, a, "the server "+strict.Quote(e.Key)+": answers."+shown(a.Key)))
	}
	if doc.EnabledTools != nil {
		s.EnabledTools = values(texts(d, *doc.EnabledTools, where+"enabled_tools"))
		if s.EnabledTools == nil {
			s.EnabledTools = []string{}
		}
	}
	s.DisabledTools = values(texts(d, doc.DisabledTools, where+"disabled_tools"))

	transport, ok := transportOf(doc, e.KeyPos, fail)
	if !ok {
		return Server{}, false
	}
	s.Transport = transport
	if transport == TransportSSE && s.Protocol == ProtocolModern {
		fail(doc.Protocol.Pos, CodeServer, "it is sse, which belongs to the legacy era", "leave out protocol, or use type: http")
	}
	if transport == TransportStdio {
		l.stdio(x, doc, &s)
	} else {
		l.http(x, doc, &s)
	}
	return s, true
}

// transportOf tells the transport by the type given or else by the keys, and
// refuses the keys of the other ones.
func transportOf(doc serverDocument, at strict.Pos, fail func(pos strict.Pos, code, message, hint string)) (Transport, bool) {
	t, known := transportNamed(doc.Type.V)
	switch {
	case doc.Type.V != "" && !known:
		fail(doc.Type.Pos, strict.CodeBadValue, "the transport "+strict.Quote(doc.Type.V)+" is not known",
			strict.DidYouMean(doc.Type.V, []string{"stdio", "auto", "http", "sse"}))
		return "", false
	case doc.Command.Set && doc.URL.Set:
		fail(at, CodeServer, "it has both a command and a url", "a server is started or is called, keep one")
		return "", false
	case !doc.Command.Set && !doc.URL.Set:
		fail(at, CodeServer, "it has neither a command nor a url", "")
		return "", false
	case known && t == TransportStdio && !doc.Command.Set:
		fail(doc.Type.Pos, CodeServer, "it is "+doc.Type.V+" and has no command", "")
		return "", false
	case known && t.Remote() && !doc.URL.Set:
		fail(doc.Type.Pos, CodeServer, "it is "+doc.Type.V+" and has no url", "")
		return "", false
	}
	type key struct {
		name string
		pos  strict.Pos
		set  bool
	}
	if !known {
		t = TransportAuto
	}
	kind, has := "a stdio", "a url"
	foreign := []key{{"args", first(doc.Args), len(doc.Args) > 0}, {"env", firstNamed(doc.Env), len(doc.Env) > 0}, {"cwd", doc.Cwd.Pos, doc.Cwd.Set}}
	if doc.Command.Set {
		t, kind, has = TransportStdio, "an HTTP", "a command"
		foreign = []key{{"headers", firstNamed(doc.Headers), len(doc.Headers) > 0}}
		if doc.OAuth != nil {
			foreign = append(foreign, key{"oauth", doc.OAuth.Pos, true})
		}
	}
	for _, k := range foreign {
		if k.set {
			fail(k.pos, CodeServer, k.name+" belongs to "+kind+" server, and this one has "+has, "")
		}
	}
	return t, true
}

func first(list []strict.At[scalar]) strict.Pos {
	if len(list) == 0 {
		return strict.Pos{}
	}
	return list[0].Pos
}

func firstNamed(list []strict.Named[strict.At[scalar]]) strict.Pos {
	if len(list) == 0 {
		return strict.Pos{}
	}
	return list[0].KeyPos
}

func (l *loader) stdio(x *expander, doc serverDocument, s *Server) {
	where := "the server " + strict.Quote(s.Name) + ": "
	if doc.Command.V != "" {
		s.Command = x.text(strict.At[scalar]{Pos: doc.Command.Pos, V: scalar(doc.Command.V)}, where+"command", plainText)
		if s.Command.Reveal() == "" && !s.Command.IsZero() {
			x.d.Fail(doc.Command.Pos, strict.CodeMissing, where+"command is empty", "its variables are")
		}
	}
	for i, a := range doc.Args {
		name := where + "args." + strconv.Itoa(i)
		if !a.Set {
			x.d.Fail(a.Pos, strict.CodeMissing, name+" has no value", `write "" for an empty one`)
		}
		s.Args = append(s.Args, x.text(a, name, plainText))
	}
	argSecrets(s.Args)
	for _, v := range doc.Env {
		name := where + "env." + shown(v.Key)
		if v.Key == "" || strings.Contains(v.Key, "=") {
			x.d.Fail(v.KeyPos, CodeName, where+"env: "+strict.Quote(v.Key)+" is not the name of a variable", "")
		}
		s.Env = append(s.Env, l.variable(x, v, name))
	}
	if doc.Cwd.Set && doc.Cwd.V != "" {
		if cwd := x.text(doc.Cwd, where+"cwd", plainText).Reveal(); cwd != "" {
			s.Cwd = l.absolute(cwd, doc.Cwd.Pos)
		}
	}
}

// headerName is a token of HTTP.
var headerName = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")

func (l *loader) http(x *expander, doc serverDocument, s *Server) {
	where := "the server " + strict.Quote(s.Name) + ": "
	if doc.URL.V != "" {
		s.URL = x.text(strict.At[scalar]{Pos: doc.URL.Pos, V: scalar(doc.URL.V)}, where+"url", plainText)
		if !s.URL.IsZero() {
			checkURL(x.d, doc.URL.Pos, where+"url", s.URL)
		}
	}
	for i, h := range doc.Headers {
		if !headerName.MatchString(h.Key) {
			x.d.Fail(h.KeyPos, CodeName, where+"headers: "+strict.Quote(h.Key)+" is not the name of a header", "")
		}
		for _, before := range doc.Headers[:i] {
			if strings.EqualFold(before.Key, h.Key) {
				x.d.Fail(h.KeyPos, strict.CodeDuplicateKey, where+"headers: "+strict.Quote(before.Key)+" and "+strict.Quote(h.Key)+" are the same header", "keep one")
			}
		}
		v := l.variable(x, h, where+"headers."+shown(h.Key))
		if strings.ContainsAny(v.Value.Reveal(), "\r\n") {
			x.d.Fail(h.V.Pos, strict.CodeBadValue, where+"headers."+shown(h.Key)+" holds a line break", "")
		}
		s.Headers = append(s.Headers, v)
	}
	l.oauth(x, doc, s)
}

func (l *loader) variable(x *expander, v strict.Named[strict.At[scalar]], where string) Variable {
	if !v.V.Set {
		x.d.Fail(v.V.Pos, strict.CodeMissing, where+" has no value", `write "" for an empty one`)
	}
	return Variable{Name: v.Key, Value: whole(v.Key, x.text(v.V, where, hiddenText))}
}

// checkURL reports a text that is not the URL of an HTTP server. It does not show
// the text, which may hold credentials.
func checkURL(d *strict.Decoder, pos strict.Pos, where string, t secret.Text) {
	u, err := url.Parse(t.Reveal())
	switch {
	case err != nil:
		d.Fail(pos, strict.CodeBadValue, where+" is not a URL", "http://HOST/… or https://HOST/…")
	case u.Scheme != "http" && u.Scheme != "https":
		d.Fail(pos, strict.CodeBadValue, where+" is not an http or https URL", "http://HOST/… or https://HOST/…")
	case u.Host == "":
		d.Fail(pos, strict.CodeBadValue, where+" names no host", "http://HOST/… or https://HOST/…")
	}
}

func values(list []strict.At[word]) []string {
	var out []string
	for _, t := range list {
		out = append(out, string(t.V))
	}
	return slices.Clip(out)
}
