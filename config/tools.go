package config

import (
	"net/url"
	"slices"
	"strings"
	"time"

	"crewhost/config/secret"
	"crewhost/config/strict"
)

// Tools is what the host's own tools may do, and with what.
type Tools struct {
	// Disabled are the names of tools that are not there at all.
	Disabled []Rule
	Files    FileTools
	Web      WebTools
	Database Databases
	Shell    Shell
}

// WebTools are those that speak HTTP. Where they may go, [Gateway] says.
type WebTools struct {
	Timeout time.Duration // of a call
	Bytes   int64         // that are read of one answer
	// Credentials are the names of those in the vault that go with the requests of
	// http_api and web_scrape to the URL that each is for, and below it.
	Credentials []Rule
	Search      WebSearch
	GitHub      GitHub
}

// WebSearch is the provider of web_search; the zero value is none.
type WebSearch struct {
	Provider string // tavily or brave
	Key      secret.Ref
	URL      string // of its API; empty is its own
	Pos      strict.Pos
}

// GitHub is where the tool github looks, and with which credential of the vault.
type GitHub struct {
	URL        string // empty is https://api.github.com
	Credential string // its name; empty is none
	Pos        strict.Pos
}

// Databases are the databases that agents may ask.
type Databases struct {
	Enabled bool
	// Connections in the order of the settings.
	Connections []Connection
	// Hosts are those that a connection string of an agent may name, as in [Gateway].
	Hosts   []string
	Timeout time.Duration // of a call
	Rows    int           // that one returns
}

// Connection is a database by a name that agents know.
type Connection struct {
	Name     string
	Provider string      // sqlite, postgresql or mysql
	Source   secret.Text // a connection string, or the path of a file of SQLite, absolute
	Write    bool
	Pos      strict.Pos
}

// Shell is the programs that agents may run.
type Shell struct {
	Enabled bool
	// Allow are programs, each with the first arguments that it must have.
	Allow []Rule
	// Interpreters lets those of Allow run that run whatever they are given.
	Interpreters bool
	Environ      []secret.Text // a NAME=value each
	Confine      Confine
	Network      bool          // of programs that are confined
	Timeout      time.Duration // of a call
	Bytes        int           // that are kept of each output
}

// Confine says whether programs are kept to the mounts.
type Confine string

// How programs are confined.
const (
	ConfineRequire Confine = "require" // or not run
	ConfineAuto    Confine = "auto"    // where the system can, and run elsewhere, too
	ConfineOff     Confine = "off"
)

// shellAllowed are the programs of a list that the settings don't give: they look, and
// change nothing.
const shellAllowed = "ls, cat, pwd, which, grep, wc, echo, git status, git log, git diff, git show"

// toolsDefaults are those of [Tools], as a part of the lowest layer.
const toolsDefaults = `
tools:
  web: {timeout: 30s, bytes: 8388608}
  database: {timeout: 30s, rows: 200}
  shell: {timeout: 60s, bytes: 1048576, confine: require, allow: [` + shellAllowed + `]}
`

type toolsDocument struct {
	Disabled []strict.At[word] `key:"disabled"`
	Files    filesDocument     `key:"files"`
	Web      webDocument       `key:"web"`
	Search   searchDocument    `key:"web_search"`
	GitHub   gitHubDocument    `key:"github"`
	Database databaseDocument  `key:"database"`
	Shell    shellDocument     `key:"shell"`
}

type webDocument struct {
	Timeout     time.Duration     `key:"timeout"`
	Bytes       count             `key:"bytes"`
	Credentials []strict.At[word] `key:"credentials"`
}

type searchDocument struct {
	Pos      strict.Pos        `key:"@"`
	Provider strict.At[string] `key:"provider"`
	Key      strict.At[apiKey] `key:"api_key"`
	URL      strict.At[string] `key:"url"`
}

type gitHubDocument struct {
	Pos        strict.Pos        `key:"@"`
	URL        strict.At[string] `key:"url"`
	Credential strict.At[word]   `key:"credential"`
}

type databaseDocument struct {
	Enabled     bool                               `key:"enabled"`
	Connections []strict.Named[connectionDocument] `key:"connections"`
	Hosts       []strict.At[word]                  `key:"hosts"`
	Timeout     time.Duration                      `key:"timeout"`
	Rows        count                              `key:"rows"`
}

type connectionDocument struct {
	Pos      strict.Pos        `key:"@"`
	Provider strict.At[string] `key:"provider"`
	URL      strict.At[scalar] `key:"url"`
	File     strict.At[word]   `key:"file"`
	Write    bool              `key:"write"`
}

type shellDocument struct {
	Enabled      bool                              `key:"enabled"`
	Allow        []strict.At[word]                 `key:"allow"`
	Interpreters bool                              `key:"interpreters"`
	Env          []strict.Named[strict.At[scalar]] `key:"env"`
	Confine      strict.At[string]                 `key:"confine"`
	Network      bool                              `key:"network"`
	Timeout      time.Duration                     `key:"timeout"`
	Bytes        count                             `key:"bytes"`
}

func (l *loader) tools(x *expander, doc toolsDocument) Tools {
	return Tools{
		Disabled: rulesOf(x.d, doc.Disabled, "tools.disabled"),
		Files:    FileTools(doc.Files),
		Web:      l.web(x, doc),
		Database: l.database(x, doc.Database),
		Shell:    shellOf(x, doc.Shell),
	}
}

func (l *loader) web(x *expander, doc toolsDocument) WebTools {
	w := WebTools{
		Timeout: doc.Web.Timeout, Bytes: int64(doc.Web.Bytes), Credentials: rulesOf(x.d, doc.Web.Credentials, "tools.web.credentials"),
		Search: WebSearch{Provider: doc.Search.Provider.V, URL: webURL(x.d, doc.Search.URL, "tools.web_search.url"), Pos: doc.Search.Pos},
		GitHub: GitHub{URL: webURL(x.d, doc.GitHub.URL, "tools.github.url"), Credential: string(doc.GitHub.Credential.V), Pos: doc.GitHub.Pos},
	}
	w.Search.Key = l.key(x, doc.Search.Key, "tools.web_search.api_key")
	oneOf(x.d, doc.Search.Provider, "tools.web_search.provider", "tavily", "brave")
	switch given := doc.Search.Provider.Set; {
	case given && !doc.Search.Key.Set:
		x.d.Fail(doc.Search.Provider.Pos, strict.CodeMissing, "tools.web_search has no api_key", "api_key: ${NAME}, or a mapping with env, file or command")
	case !given && (doc.Search.Key.Set || doc.Search.URL.Set):
		x.d.Fail(doc.Search.Pos, strict.CodeMissing, "tools.web_search has no provider", "provider: tavily or brave")
	}
	return w
}

// webURL is a URL of the settings that holds no credential.
func webURL(d *strict.Decoder, at strict.At[string], where string) string {
	if !at.Set {
		return ""
	}
	u, err := url.Parse(at.V)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		// Not shown: it may hold a credential.
		d.Fail(at.Pos, strict.CodeBadValue, where+" is not the URL of a place on the web", "https://HOST/PATH, without a user, a query or a fragment")
		return ""
	}
	return at.V
}

func (l *loader) database(x *expander, doc databaseDocument) Databases {
	b := Databases{Enabled: doc.Enabled, Timeout: doc.Timeout, Rows: int(doc.Rows)}
	for _, entry := range texts(x.d, doc.Hosts, "tools.database.hosts") {
		host, ok := allowedHost(string(entry.V))
		if !ok {
			x.d.Fail(entry.Pos, strict.CodeBadValue, "tools.database.hosts: "+strict.Quote(string(entry.V))+" is no host", "HOST or HOST:PORT")
			continue
		}
		b.Hosts = append(b.Hosts, host)
	}
	for _, e := range doc.Connections {
		where := "tools.database.connections." + e.Key
		c := Connection{Name: e.Key, Provider: e.V.Provider.V, Write: e.V.Write, Pos: e.KeyPos}
		oneOf(x.d, e.V.Provider, where+".provider", "sqlite", "postgresql", "mysql")
		switch {
		case e.V.URL.Set == e.V.File.Set:
			x.d.Fail(e.V.Pos, strict.CodeMissing, where+" has neither url nor file, or both", "url: ${NAME} of a server, or file: of SQLite")
		case e.V.File.Set:
			c.Source = secret.Literal(l.absolute(string(e.V.File.V), e.V.File.Pos))
			if c.Provider == "" {
				c.Provider = "sqlite"
			}
			if c.Provider != "sqlite" {
				x.d.Fail(e.V.Provider.Pos, strict.CodeBadValue, where+" is a file, and its provider is not sqlite", "url: ${NAME} of a server")
			}
		default:
			c.Source = x.text(e.V.URL, where+".url", hiddenText)
		}
		if c.Provider == "" {
			c.Provider = providerOf(c.Source.Reveal())
			if c.Provider == "" && !c.Source.IsZero() {
				x.d.Fail(e.V.Pos, strict.CodeMissing, where+" has no provider, and its url tells of none", "provider: sqlite, postgresql or mysql")
			}
		}
		b.Connections = append(b.Connections, c)
	}
	return b
}

// providerOf is the provider that a connection string tells of by its scheme.
func providerOf(source string) string {
	scheme, _, _ := strings.Cut(source, ":")
	switch scheme {
	case "postgres", "postgresql":
		return "postgresql"
	case "mysql", "mariadb":
		return "mysql"
	case "sqlite", "file":
		return "sqlite"
	}
	return ""
}

func shellOf(x *expander, doc shellDocument) Shell {
	s := Shell{
		Enabled: doc.Enabled, Interpreters: doc.Interpreters, Confine: Confine(doc.Confine.V), Network: doc.Network,
		Timeout: doc.Timeout, Bytes: int(doc.Bytes),
	}
	oneOf(x.d, doc.Confine, "tools.shell.confine", string(ConfineAuto), string(ConfineRequire), string(ConfineOff))
	for _, r := range rulesOf(x.d, doc.Allow, "tools.shell.allow") {
		if strings.ContainsAny(r.Pattern, "/\\|&;<>()$`'\"*?") {
			x.d.Fail(r.Pos, strict.CodeBadValue, "tools.shell.allow: "+strict.Quote(r.Pattern)+" is more than the name of a program", "a name to be found on the PATH, and the first arguments that it must have: git log")
		}
		s.Allow = append(s.Allow, r)
	}
	for _, e := range doc.Env {
		value := whole(e.Key, x.text(e.V, "tools.shell.env."+e.Key, hiddenText)) // as that of a server
		s.Environ = append(s.Environ, secret.NewText(e.Key+"="+value.String(), e.Key+"="+value.Reveal(), value.Secrets()...))
	}
	slices.SortFunc(s.Environ, func(a, b secret.Text) int { return strings.Compare(a.String(), b.String()) })
	return s
}
