package config

import (
	"slices"
	"strconv"
	"strings"

	"crewhost/config/strict"
)

// Orkeon's appsettings.json is read as far as it says what this host does too.
// Its rules are kept: keys without regard to case, a key with ":" is a path, a
// blank text is an absent one, a text may stand for a number. A key that a
// section which is read does not know is an issue; what Orkeon knows and this
// host does not use is a warning.

// setting is a key of a section and what becomes of it; one that becomes
// nothing is not used here.
type setting struct {
	key string
	use func(e strict.Entry)
}

// orkeon maps an appsettings.json to the shape of crewhost.yaml. Each value
// keeps its place.
func (l *loader) orkeon(n *strict.Node) *strict.Node {
	root := &strict.Node{Pos: n.Pos, Kind: strict.Map}
	n = l.nested(n)
	for _, e := range n.Entries {
		switch strings.ToLower(e.Key) {
		case "llm":
			put(root, "llm", e, l.orkeonLLM(e, "Llm", true))
		case "mcp":
			put(root, "mcp", e, l.orkeonMCP(e))
		case "orkeon":
			l.orkeonOwn(e, root)
		default: // the root is open
			if !strings.HasPrefix(e.Key, "_") && e.Key != "$schema" {
				l.warn(e.KeyPos, "the section %s is not used here", strict.Quote(e.Key))
			}
		}
	}
	var unread []string
	for name := range l.env {
		if strings.HasPrefix(strings.ToUpper(name), "ORKEON_") {
			unread = append(unread, name)
		}
	}
	if len(unread) > 0 {
		slices.Sort(unread)
		l.warn(strict.Pos{File: "environment"}, "not read here: %s; such variables begin with %s", some(unread), variablePrefix)
	}
	return root
}

// nested turns keys with ":" into sections, and reports two keys that differ in
// case only.
func (l *loader) nested(n *strict.Node) *strict.Node {
	if n.Kind != strict.Map {
		out := *n
		out.Items = nil
		for _, item := range n.Items {
			out.Items = append(out.Items, l.nested(item))
		}
		return &out
	}
	out := &strict.Node{Pos: n.Pos, Kind: strict.Map}
	for _, e := range n.Entries {
		l.nest(out, strings.SplitN(e.Key, ":", limits().Depth), strict.Entry{Key: e.Key, KeyPos: e.KeyPos, Value: l.nested(e.Value)})
	}
	return out
}

func (l *loader) nest(into *strict.Node, path []string, e strict.Entry) {
	e.Key = path[0]
	if len(path) > 1 {
		inner := &strict.Node{Pos: e.KeyPos, Kind: strict.Map}
		l.nest(inner, path[1:], strict.Entry{KeyPos: e.KeyPos, Value: e.Value})
		e.Value = inner
	}
	at := slices.IndexFunc(into.Entries, func(have strict.Entry) bool { return strings.EqualFold(have.Key, e.Key) })
	switch {
	case at < 0:
		into.Entries = append(into.Entries, e)
	case into.Entries[at].Value.Kind == strict.Map && e.Value.Kind == strict.Map:
		for _, inner := range e.Value.Entries {
			l.nest(into.Entries[at].Value, []string{inner.Key}, inner)
		}
	default:
		l.fail(e.KeyPos, strict.CodeDuplicateKey, "duplicate key "+strict.Quote(e.Key), "first set in line "+strconv.Itoa(into.Entries[at].KeyPos.Line))
	}
}

// section applies the settings of a section to its entries.
func (l *loader) section(e strict.Entry, path string, settings ...setting) {
	if e.Value.Kind == strict.Null {
		return
	}
	if e.Value.Kind != strict.Map {
		l.fail(e.Value.Pos, strict.CodeWrongType, path+" must be a mapping, not "+e.Value.Kind.String(), "")
		return
	}
	known := make([]string, len(settings))
	for i, s := range settings {
		known[i] = s.key
	}
	for _, entry := range e.Value.Entries {
		at := slices.IndexFunc(settings, func(s setting) bool { return strings.EqualFold(s.key, entry.Key) })
		switch {
		case at < 0 && strings.HasPrefix(entry.Key, "_"): // a comment
		case at < 0:
			l.fail(entry.KeyPos, strict.CodeUnknownKey, "unknown key "+strict.Quote(entry.Key)+" in "+path, strict.DidYouMean(entry.Key, known))
		case settings[at].use == nil:
			l.warn(entry.KeyPos, "%s:%s is not used here", path, settings[at].key)
		default:
			settings[at].use(entry)
		}
	}
}

// blank reports whether an entry counts as absent.
func blank(e strict.Entry) bool {
	return e.Value.Kind == strict.Null || e.Value.Kind == strict.String && strings.TrimSpace(e.Value.Text) == ""
}

// put adds an entry under another key.
func put(into *strict.Node, key string, e strict.Entry, value *strict.Node) {
	into.Entries = append(into.Entries, strict.Entry{Key: key, KeyPos: e.KeyPos, Value: value})
}

// loose lets a text be what its field wants it to be.
func loose(n *strict.Node) *strict.Node {
	if n.Kind != strict.String {
		return n
	}
	out := *n
	out.Kind = strict.Untyped
	return &out
}

// orkeonLLM maps a section Llm or one of its profiles. Where it names no
// provider, a model whose name begins with "claude" and that has no BaseUrl is
// Anthropic's, and all else speaks as OpenAI does: nothing is guessed from a
// URL.
func (l *loader) orkeonLLM(e strict.Entry, path string, isRoot bool) *strict.Node {
	out := &strict.Node{Pos: e.Value.Pos, Kind: strict.Map}
	var model, url, provider, key *strict.Entry
	as := func(name string, into **strict.Entry) func(strict.Entry) {
		return func(v strict.Entry) {
			if !blank(v) {
				if into != nil {
					*into = &v
				}
				put(out, name, v, loose(v.Value))
			}
		}
	}
	var keyVariable *strict.Entry
	settings := []setting{
		{"Provider", as("provider", &provider)},
		{"Model", as("model", &model)},
		{"BaseUrl", as("base_url", &url)},
		{"ApiKey", as(keyAPIKey, &key)},
		{"ApiKeyEnvVar", func(v strict.Entry) {
			if !blank(v) {
				keyVariable = &v
			}
		}},
		{"Temperature", as("temperature", nil)},
		{"TopP", as("top_p", nil)},
		{"MaxTokens", as("max_tokens", nil)},
		{"MaxRetries", as("max_retries", nil)},
		{"TimeoutSeconds", l.seconds(out, "timeout", path)},
		{"StreamIdleSeconds", l.seconds(out, "stream_idle", path)},
		{"Thinking", func(v strict.Entry) {
			thinking := &strict.Node{Pos: v.Value.Pos, Kind: strict.Map}
			in := func(name string) func(strict.Entry) {
				return func(e strict.Entry) {
					if !blank(e) {
						put(thinking, name, e, loose(e.Value))
					}
				}
			}
			l.section(v, path+":Thinking", setting{"Enabled", in("enabled")}, setting{"Effort", in("effort")}, setting{"BudgetTokens", in("budget_tokens")})
			put(out, "thinking", v, thinking)
		}},
		{"AvailableModels", func(v strict.Entry) {
			if !blank(v) {
				put(out, "available_models", v, v.Value)
			}
		}},
		{"Grammar", nil},
	}
	if isRoot {
		settings = append(settings, setting{"Profiles", func(v strict.Entry) {
			profiles := &strict.Node{Pos: v.Value.Pos, Kind: strict.Map}
			for _, p := range v.Value.Entries {
				put(profiles, p.Key, p, l.orkeonLLM(p, path+":Profiles:"+p.Key, false))
			}
			if v.Value.Kind == strict.Map || blank(v) {
				put(out, "profiles", v, profiles)
			} else {
				l.fail(v.Value.Pos, strict.CodeWrongType, path+":Profiles must be a mapping, not "+v.Value.Kind.String(), "")
			}
		}})
	}
	l.section(e, path, settings...)
	if key == nil && keyVariable != nil {
		name := &strict.Node{Pos: keyVariable.Value.Pos, Kind: strict.Map}
		put(name, "env", *keyVariable, keyVariable.Value)
		put(out, keyAPIKey, *keyVariable, name)
	}
	if provider == nil && model != nil {
		claude := strings.HasPrefix(strings.ToLower(model.Value.Text), "claude")
		name := ProviderOpenAI
		if claude && url == nil {
			name = ProviderAnthropic
		}
		if claude && url != nil {
			l.warn(model.KeyPos, "%s names no provider and is spoken to as %s; to speak to Anthropic, add \"Provider\": %q", path, name, ProviderAnthropic)
		}
		put(out, "provider", *model, &strict.Node{Pos: model.Value.Pos, Kind: strict.String, Text: name})
	}
	return out
}

// seconds reads a number of seconds as the duration of that name.
func (l *loader) seconds(out *strict.Node, name, path string) func(strict.Entry) {
	return func(v strict.Entry) {
		if seconds, err := strconv.ParseInt(strings.TrimSpace(v.Value.Text), 10, 32); err == nil && seconds > 0 {
			put(out, name, v, &strict.Node{Pos: v.Value.Pos, Kind: strict.Untyped, Text: strconv.FormatInt(seconds, 10) + "s"})
		} else if !blank(v) {
			l.fail(v.Value.Pos, strict.CodeBadValue, path+":"+v.Key+" must be a number of seconds above zero", "")
		}
	}
}

// orkeonMCP maps the section MCP.
func (l *loader) orkeonMCP(e strict.Entry) *strict.Node {
	out := &strict.Node{Pos: e.Value.Pos, Kind: strict.Map}
	l.section(e, "MCP",
		setting{"Enabled", func(v strict.Entry) { put(out, "enabled", v, loose(v.Value)) }},
		setting{"EnableServer", func(v strict.Entry) {
			l.fail(v.KeyPos, strict.CodeUnknownKey, "MCP:EnableServer does not start a server", "run crewhost mcp serve instead, and take the key out")
		}},
		setting{"Server", func(v strict.Entry) {
			serving := &strict.Node{Pos: v.Value.Pos, Kind: strict.Map}
			as := func(name string) func(strict.Entry) {
				return func(v strict.Entry) {
					if !blank(v) {
						put(serving, name, v, v.Value)
					}
				}
			}
			l.section(v, "MCP:Server", setting{"Name", as("name")}, setting{"Version", as("version")})
			put(out, "serving", v, serving)
		}},
		setting{"Servers", func(v strict.Entry) {
			servers := &strict.Node{Pos: v.Value.Pos, Kind: strict.Map}
			for _, s := range v.Value.Entries {
				if server := l.orkeonServer(s); s.Value.Kind == strict.Map {
					put(servers, s.Key, s, server)
				}
			}
			if v.Value.Kind != strict.Map && v.Value.Kind != strict.Null {
				servers = v.Value // the decoder says that it is no mapping
			}
			put(out, "servers", v, servers)
		}})
	return out
}

// orkeonServer maps a server. Orkeon's "Sse" is one POST for each message, which
// is what Streamable HTTP is without its streams.
func (l *loader) orkeonServer(e strict.Entry) *strict.Node {
	out := &strict.Node{Pos: e.Value.Pos, Kind: strict.Map}
	as := func(name string) func(strict.Entry) {
		return func(v strict.Entry) {
			if !blank(v) {
				put(out, name, v, v.Value)
			}
		}
	}
	l.section(e, "MCP:Servers:"+shown(e.Key),
		setting{"Transport", func(v strict.Entry) {
			if blank(v) {
				return
			}
			kind := *v.Value
			switch strings.ToLower(kind.Text) {
			case "stdio":
				kind.Text = string(TransportStdio)
			case "sse", "http":
				kind.Text = string(TransportHTTP)
			default:
				l.fail(kind.Pos, strict.CodeBadValue, "MCP:Servers:"+shown(e.Key)+":Transport: "+strict.Quote(kind.Text)+" is not known", strict.DidYouMean(kind.Text, []string{"Stdio", "Sse"}))
				return
			}
			put(out, "type", v, &kind)
		}},
		setting{"Command", as("command")}, setting{"Args", as("args")}, setting{"Env", as("env")}, setting{"Url", as("url")})
	return out
}

// orkeonOwn maps the section Orkeon, of which the mounts and the programs that agents may
// run are used.
func (l *loader) orkeonOwn(e strict.Entry, root *strict.Node) {
	l.section(e, "Orkeon",
		setting{"FileSystem", func(v strict.Entry) {
			l.section(v, "Orkeon:FileSystem",
				setting{"Mounts", func(m strict.Entry) {
					if !blank(m) {
						put(root, "mounts", m, m.Value)
					}
				}},
				setting{"InternalMounts", nil})
		}},
		setting{"Tools", func(v strict.Entry) { l.orkeonTools(v, root) }},
		setting{"Cli", nil}, setting{"Scripting", nil}, setting{"Security", nil},
		setting{"Dlp", nil}, setting{"Checkpointing", nil})
}

// orkeonTools maps the section Orkeon:Tools, of which the programs are used. A list of
// them, or interpreters, turn shell_command on, which Orkeon has on for those that only
// look.
func (l *loader) orkeonTools(e strict.Entry, root *strict.Node) {
	out := &strict.Node{Pos: e.Value.Pos, Kind: strict.Map}
	var only, extra *strict.Entry
	on := false
	list := func(into **strict.Entry) func(strict.Entry) {
		return func(v strict.Entry) {
			switch {
			case blank(v):
			case v.Value.Kind != strict.List:
				l.fail(v.Value.Pos, strict.CodeWrongType, "Orkeon:Tools:Shell:"+v.Key+" must be a list, not "+v.Value.Kind.String(), "")
			default:
				*into, on = &v, true
			}
		}
	}
	settings := []setting{{"Shell", func(v strict.Entry) {
		l.section(v, "Orkeon:Tools:Shell",
			setting{"AllowedCommands", list(&only)}, setting{"ExtraAllowedCommands", list(&extra)},
			setting{"AllowInterpreters", func(v strict.Entry) {
				if !blank(v) {
					put(out, "interpreters", v, loose(v.Value))
					on = on || strings.EqualFold(strings.TrimSpace(v.Value.Text), "true")
				}
			}})
	}}}
	for _, v := range e.Value.Entries { // the sections of other tools are not read
		if !strings.EqualFold(v.Key, "Shell") {
			settings = append(settings, setting{v.Key, nil})
		}
	}
	l.section(e, "Orkeon:Tools", settings...)
	if only != nil || extra != nil {
		allow := &strict.Node{Pos: e.Value.Pos, Kind: strict.List}
		if only != nil {
			allow.Items = append(allow.Items, only.Value.Items...)
		} else {
			for name := range strings.SplitSeq(shellAllowed, ", ") {
				allow.Items = append(allow.Items, &strict.Node{Pos: e.Value.Pos, Kind: strict.String, Text: name})
			}
		}
		if extra != nil {
			allow.Items = append(allow.Items, extra.Value.Items...)
		}
		put(out, "allow", e, allow)
	}
	if on {
		put(out, "enabled", e, &strict.Node{Pos: e.Value.Pos, Kind: strict.Untyped, Text: "true"})
	}
	if len(out.Entries) > 0 {
		tools := &strict.Node{Pos: e.Value.Pos, Kind: strict.Map}
		put(tools, "shell", e, out)
		put(root, "tools", e, tools)
	}
}
