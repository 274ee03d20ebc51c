package crew

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"crewhost/config/strict"
)

// The kinds of a [Server].
const (
	ServerURL   = "url"  // over HTTP, whichever way it speaks
	ServerHTTP  = "http" // Streamable HTTP alone
	ServerSSE   = "sse"  // HTTP with server-sent events alone
	ServerStdio = "stdio"
)

// What agents may bring along and hold (A1, A2).
const (
	MaxServers = 20  // of one agent
	MaxTools   = 128 // of one agent: those it names, and those that its toolsets bring
)

// ToolName is the name under which a tool of an agent's own server is known (A9).
func ToolName(server, tool string) string { return "mcp__" + server + "__" + tool }

// Same reports whether two declarations are of one server: what is started or
// called is the same, whichever agent says so.
func (s Server) Same(as Server) bool {
	args := func(s Server) []string { return values(s.Args) }
	env := func(s Server) []string {
		var lines []string
		for _, v := range s.Env {
			lines = append(lines, v.Name+"="+v.Value.V)
		}
		slices.Sort(lines)
		return lines
	}
	return s.Name.V == as.Name.V && s.Kind == as.Kind && s.URL.V == as.URL.V && s.Command.V == as.Command.V &&
		slices.Equal(args(s), args(as)) && slices.Equal(env(s), env(as))
}

// serversDoc are the servers of an agent: a list, or, as other programs have it, a
// mapping by name.
type serversDoc struct{ list []serverDoc }

// UnmarshalNode implements [strict.Unmarshaler].
func (s *serversDoc) UnmarshalNode(d *strict.Decoder, n *strict.Node) {
	if n.Kind != strict.Map {
		d.Decode(n, &s.list, "")
		return
	}
	for _, e := range n.Entries {
		var doc serverDoc
		d.Decode(e.Value, &doc, e.Key)
		name := Text{Pos: e.KeyPos, V: e.Key, Set: true}
		if doc.Name.Set && doc.Name.V != e.Key {
			d.Fail(doc.Name.Pos, CodeConflict, fmt.Sprintf("%s.%s has another name inside: %s", d.Path(), word(e.Key), strict.Quote(doc.Name.V)), "leave it out: the key is the name")
		}
		if doc.Name = name; e.Value.Kind == strict.Null {
			doc.Pos = e.KeyPos
		}
		s.list = append(s.list, doc)
	}
}

// serverDoc is an MCP server as it is written.
type serverDoc struct {
	Pos     Pos                     `key:"@"`
	Type    Text                    `key:"type|transport"`
	Name    Text                    `key:"name"`
	URL     Text                    `key:"url"`
	Command Text                    `key:"command"`
	Args    []written               `key:"args"`
	Env     []strict.Named[written] `key:"env"`
}

type serverBlock serverDoc

// UnmarshalNode refuses what would be a credential, and decodes the rest.
func (s *serverDoc) UnmarshalNode(d *strict.Decoder, n *strict.Node) {
	if n.Kind == strict.Map {
		kept := &strict.Node{Pos: n.Pos, Kind: n.Kind}
		for _, e := range n.Entries {
			if fold(e.Key) != "headers" && fold(e.Key) != "oauth" && !credentialName.MatchString(e.Key) {
				kept.Entries = append(kept.Entries, e)
				continue
			}
			d.Fail(e.KeyPos, CodeCredential, d.Path()+"."+word(e.Key)+": a crew file holds no credentials", vaultHint)
		}
		n = kept
	}
	d.Decode(n, (*serverBlock)(s), "")
}

const (
	vaultHint    = "the host keeps them, by the URL of the server: crewhost vault set; a server that wants more belongs in the settings"
	settingsHint = "declare the server in the settings, where ${VARIABLES} and secrets have their place"
)

// written is a text, or a number or a boolean that is meant as one.
type written struct{ Text }

// UnmarshalNode implements [strict.Unmarshaler].
func (w *written) UnmarshalNode(d *strict.Decoder, n *strict.Node) {
	switch w.Pos = n.Pos; n.Kind {
	case strict.String, strict.Int, strict.Float, strict.Bool:
		w.V, w.Set = n.Text, true
	case strict.Null:
		d.Fail(n.Pos, strict.CodeMissing, d.Path()+" has no value", `write "" for an empty one`)
	default:
		d.WrongType(n, strict.String.String())
	}
}

// servers makes the servers of an agent.
func (b *builder) servers(doc serversDoc, at string) []Server {
	var all []Server
	for i, s := range doc.list {
		all = append(all, b.server(s, fmt.Sprintf("%s.%d", at, i)))
	}
	return all
}

func (b *builder) server(doc serverDoc, at string) Server {
	s := Server{Name: doc.Name, Pos: doc.Pos, URL: doc.URL, Command: doc.Command}
	if doc.Name.Set {
		at = at[:strings.LastIndexByte(at, '.')+1] + word(doc.Name.V)
		if b.serverName(doc.Name, at); s.Pos.Line == 0 {
			s.Pos = doc.Name.Pos
		}
	} else {
		b.fail(doc.Pos, strict.CodeMissing, `"name" is missing in `+at, "")
	}
	s.Kind = b.serverKind(doc, at)
	s.Command = b.plain(s.Command, at+".command")
	s.URL = b.plain(s.URL, at+".url")
	b.text(s.Command, at+".command")
	for i, a := range doc.Args {
		s.Args = append(s.Args, b.plain(a.Text, fmt.Sprintf("%s.args.%d", at, i)))
	}
	b.credentialArgs(s.Args, at+".args")
	for _, v := range doc.Env {
		name := at + ".env." + word(v.Key)
		switch {
		case v.Key == "" || strings.ContainsAny(v.Key, "=\x00"):
			b.fail(v.KeyPos, strict.CodeBadValue, at+".env: "+strict.Quote(v.Key)+" is not the name of a variable", "")
		case strings.HasPrefix(v.Key, "CREWHOST_"):
			b.fail(v.KeyPos, strict.CodeBadValue, name+": the variables CREWHOST_* are the host's own", "")
		case credentialName.MatchString(v.Key) && !harmlessValue.MatchString(v.V.V):
			b.fail(v.V.Pos, CodeCredential, name+" looks like a credential, and a crew file holds none", settingsHint)
		}
		s.Env = append(s.Env, Named{Name: v.Key, Value: b.plain(v.V.Text, name)})
	}
	if s.URL.Set {
		b.serverURL(s.URL, at+".url")
	}
	return s
}

// serverName is what a server may be called: its name stands in the names of its
// tools, and ends in them at the first "__".
var serverName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]|_[A-Za-z0-9.-])*$`)

// longServer is the length of a name beyond which models, whose names of tools have
// at most 64 characters, may be told a tool's name in part (K23).
const longServer = 40

func (b *builder) serverName(name Text, at string) {
	switch {
	case !serverName.MatchString(name.V) || len(name.V) > 255:
		b.fail(name.Pos, strict.CodeBadValue, at+": the name is not valid",
			"letters, digits, _ . and -, at most 255, the first a letter or digit, with no __ and no _ at the end")
	case len(name.V) > longServer:
		b.warn(name.Pos, CodeLongName, fmt.Sprintf("%s: the name has %d characters, and models are told names of tools with at most 64", at, len(name.V)),
			fmt.Sprintf("at most %d leave room for the tool's own", longServer))
	}
}

// serverKind tells the kind by the type given or else by the keys, and refuses the
// keys of the other one.
func (b *builder) serverKind(doc serverDoc, at string) string {
	kind := b.enum(doc.Type, at+".type", "", ServerURL, ServerStdio, ServerHTTP, "streamable-http", ServerSSE)
	if kind == "streamable-http" {
		kind = ServerHTTP
	}
	switch {
	case doc.Command.Set && doc.URL.Set:
		b.fail(doc.URL.Pos, CodeConflict, at+" has both a command and a url", "a server is started or is called; keep one")
		return kind
	case !doc.Command.Set && !doc.URL.Set:
		b.fail(doc.Pos, strict.CodeMissing, at+" has neither a url nor a command", "")
		return kind
	case kind == ServerStdio && doc.URL.Set:
		b.fail(doc.Type.Pos, CodeConflict, at+" is stdio and has a url in place of a command", "")
	case kind != "" && kind != ServerStdio && doc.Command.Set:
		b.fail(doc.Type.Pos, CodeConflict, at+" is "+doc.Type.V+" and has a command in place of a url", "")
	case kind == "" && doc.URL.Set:
		kind = ServerURL
	case kind == "":
		kind = ServerStdio
	}
	if doc.URL.Set && len(doc.Args) > 0 {
		b.fail(doc.Args[0].Pos, CodeConflict, at+".args belongs to a server with a command, and this one has a url", "")
	}
	if doc.URL.Set && len(doc.Env) > 0 {
		b.fail(doc.Env[0].KeyPos, CodeConflict, at+".env belongs to a server with a command, and this one has a url", "")
	}
	return kind
}

// variable matches what is a variable in the settings, with the sign that makes it
// none.
var variable = regexp.MustCompile(`\$?\$\{(?:env:)?[A-Za-z_][A-Za-z0-9_]*[^}]*\}`)

// plain refuses variables: what a crew file names is somebody else's, who could
// have any variable of this environment sent to it. $${NAME} is the text ${NAME},
// as in the settings.
func (b *builder) plain(t Text, at string) Text {
	if strings.ContainsRune(t.V, 0) {
		b.fail(t.Pos, strict.CodeBadValue, at+" holds a NUL character", "")
	}
	if bareToken.MatchString(t.V) {
		b.fail(t.Pos, CodeCredential, at+" looks like a credential, and a crew file holds none", settingsHint)
	}
	found := false
	t.V = variable.ReplaceAllStringFunc(t.V, func(m string) string {
		rest, escaped := strings.CutPrefix(m, "$$")
		if found = found || !escaped; escaped {
			return "$" + rest
		}
		return m
	})
	if found {
		b.fail(t.Pos, CodeVariable, at+" has a variable, and a crew file has none: it could send any of yours to whoever it names", settingsHint)
	}
	return t
}

// serverURL judges a URL. It does not show it, which may hold a credential.
func (b *builder) serverURL(t Text, at string) {
	u, err := url.Parse(t.V)
	switch {
	case err != nil, u.Hostname() == "", u.Scheme != "http" && u.Scheme != "https":
		b.fail(t.Pos, strict.CodeBadValue, at+" is not the URL of a server", "https://host/path")
		return
	case u.User != nil:
		b.fail(t.Pos, CodeCredential, at+" names a user, and a crew file holds no credentials", vaultHint)
	case u.Fragment != "":
		b.fail(t.Pos, strict.CodeBadValue, at+" has a fragment, which no server gets to see", "leave out what follows the #")
	}
	query := u.Query()
	for name, given := range query {
		if name == "key" || credentialName.MatchString(name) || slices.ContainsFunc(given, bareToken.MatchString) {
			b.fail(t.Pos, CodeCredential, at+" holds a credential in its query, and a crew file holds none", vaultHint)
			return
		}
	}
}

// credentialArgs finds arguments that are, or follow, a flag with a credential's
// name: --token X, --api-key=X, and headers with one.
func (b *builder) credentialArgs(args []Text, at string) {
	refuse := func(i int) {
		b.fail(args[i].Pos, CodeCredential, fmt.Sprintf("%s.%d looks like a credential, and a crew file holds none", at, i), settingsHint)
	}
	for i, a := range args {
		flag, value, joined := strings.Cut(a.V, "=")
		header, content, isHeader := strings.Cut(a.V, ":")
		switch isFlag := strings.HasPrefix(flag, "-") && !strings.ContainsAny(flag, " \t:/") && credentialName.MatchString(flag); {
		case isFlag && joined && !harmlessValue.MatchString(value):
			refuse(i)
		case isFlag && !joined && i+1 < len(args) && !strings.HasPrefix(args[i+1].V, "-") && !harmlessValue.MatchString(args[i+1].V):
			refuse(i + 1)
		case isHeader && !strings.ContainsAny(header, "/\\") && !strings.HasPrefix(content, "//") && credentialName.MatchString(header[strings.LastIndexAny(header, "= ")+1:]) && !harmlessValue.MatchString(strings.TrimSpace(content)):
			refuse(i)
		}
	}
}

var (
	// credentialName matches names of keys, variables, flags and parameters whose
	// value is a credential.
	credentialName = regexp.MustCompile(`(?i)token|secret|passw|pwd|api[-_.]?key|access[-_]?key|private[-_]?key|credential|bearer|cookie|authorization|(^|[-_])auth$`)
	// harmlessValue matches values that are none, whatever they are for: nothing, a
	// number, a short word, a path, the URL of something else.
	harmlessValue = regexp.MustCompile(`^(?:[0-9]{0,6}|[a-z]{1,8}|\.{0,2}/[^\s:@=?]*|https?://[^\s@?]*)$`)
	// bareToken matches a text that is a token, by how it begins.
	bareToken = regexp.MustCompile(`^(?:sk-|gh[pousr]_|github_pat_|glpat-|xox[a-z]-|hf_|npm_|AKIA|AIza)[A-Za-z0-9_.-]{8,}$`)
)

// company judges what agents bring along against their toolsets, and against each
// other's. doubtful are the agents whose tools could not be read.
func company(agents []*Agent, doubtful map[string]bool, fail func(pos Pos, code, message, hint string)) {
	first := map[string]*Agent{}
	for _, a := range agents {
		at := "agents." + a.Key + ".mcpServers"
		if len(a.Servers) > MaxServers {
			fail(a.Servers[MaxServers].Pos, CodeOutOfRange, fmt.Sprintf("%s has %d servers; the limit is %d", at, len(a.Servers), MaxServers), "")
		}
		own := map[string]bool{}
		for _, s := range a.Servers {
			name := s.Name.V
			switch before := first[name]; {
			case name == "":
				continue
			case own[name]:
				fail(s.Name.Pos, CodeDuplicateReference, fmt.Sprintf("%s: %s is there twice", at, strict.Quote(name)), "keep one")
				continue
			case before == nil:
				first[name] = a
			case !s.Same(*before.Server(name)):
				fail(s.Name.Pos, CodeConflict, fmt.Sprintf("%s: %s is another server in agents.%s (%s)", at, strict.Quote(name), before.Key, before.Server(name).Pos),
					"for all agents of a run one name is one server: give it another name")
			}
			own[name] = true
			if !doubtful[a.Key] && !slices.ContainsFunc(a.Toolsets, func(t Toolset) bool { return t.Server.V == name }) {
				fail(s.Name.Pos, CodeUnused, fmt.Sprintf("%s: no toolset of the agent uses %s", at, strict.Quote(name)),
					"add it to its tools: {type: mcp_toolset, mcp_server_name: "+short(name)+"}")
			}
		}
		a.judgeToolsets(own, fail)
	}
}

// Server returns the agent's own server of that name, or nil.
func (a *Agent) Server(name string) *Server {
	for i := range a.Servers {
		if a.Servers[i].Name.V == name {
			return &a.Servers[i]
		}
	}
	return nil
}
