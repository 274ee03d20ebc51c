package config

import (
	"net"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"crewhost/config/secret"
	"crewhost/config/strict"
)

// Served is one surface that MCP clients may use, under a handle (I1). What it
// does not name is not served.
type Served struct {
	Handle       string
	Title        string // for people; may be empty
	Instructions string // for a client's model; may be empty

	// Tools are exact names or patterns, as in the rules of [Permissions] but
	// without conditions.
	Tools []Rule
	// Crews are served as tools.
	Crews []ServedCrew
	// Resources and Prompts are what servers offer besides tools (R5).
	Resources []Offer
	Prompts   []Offer

	HTTP *ServedHTTP // nil: it is served on stdio alone
	Pos  strict.Pos
}

// ServedCrew is a crew that is served as a tool.
type ServedCrew struct {
	Path string // absolute
	Name string // of the tool; empty: made of the crew's own
	Pos  strict.Pos
}

// Offer names resources or prompts of a server of the settings.
type Offer struct {
	Server string
	// Pattern is a pattern for URIs of resources, or the name of a prompt.
	// Empty: all of them.
	Pattern string
	Pos     strict.Pos
}

// String returns the offer as it is written.
func (o Offer) String() string {
	if o.Pattern == "" {
		return o.Server
	}
	return o.Server + "/" + o.Pattern
}

// ServedHTTP is how a surface is published over HTTP.
type ServedHTTP struct {
	Listen         string   // HOST:PORT
	Path           string   // of the endpoint
	AllowedOrigins []string // each as a browser sends it; none: every Origin is refused (I12)
	AllowedHosts   []string // hosts that requests may name, besides the one listened on
	Tokens         []NamedToken
	OAuth          *ServedOAuth
	Cert, Key      string // files of TLS in PEM, absolute; empty: no TLS
	// AllowUnauthenticated says that nobody needs a token, also beyond loopback.
	AllowUnauthenticated bool

	// Zero is the server's own default.
	Connections  int           // open at a time
	Sessions     int           // of the initialize lineage
	SessionIdle  time.Duration // after which such a session ends
	ReadTimeout  time.Duration // of a request
	WriteTimeout time.Duration // of a piece of an answer
	IdleTimeout  time.Duration // of a connection between requests

	Pos strict.Pos
}

// NamedToken is a bearer token, and the name that logs have for whoever holds it.
type NamedToken struct {
	Name  string
	Token secret.Ref // resolved when the surface is served
}

// ServedOAuth is a surface as OAuth sees it: it takes tokens of issuers.
type ServedOAuth struct {
	Resource string // URL of the surface as clients know it
	Issuers  []Issuer
	Audience string   // that tokens must be for; empty: the resource
	Scopes   []string // that tokens must hold, all of them
}

// Issuer is an authorization server.
type Issuer struct {
	URL  string // as its tokens say
	JWKS string // URL of its keys; empty: where its metadata says
	Pos  strict.Pos
}

type servedDocument struct {
	Pos          strict.Pos          `key:"@"`
	Title        strict.At[word]     `key:"title"`
	Instructions strict.At[word]     `key:"instructions"`
	Tools        []strict.At[word]   `key:"tools"`
	Crews        []crewDocument      `key:"crews"`
	Resources    []strict.At[word]   `key:"resources"`
	Prompts      []strict.At[word]   `key:"prompts"`
	HTTP         *servedHTTPDocument `key:"http"`
}

// crewDocument is the path of a crew, or a mapping that also names its tool.
type crewDocument struct {
	Path, Name strict.At[word]
	mapping    bool
}

// UnmarshalNode implements [strict.Unmarshaler].
func (c *crewDocument) UnmarshalNode(d *strict.Decoder, n *strict.Node) {
	var entry struct {
		Path strict.At[word] `key:"path,required"`
		Name strict.At[word] `key:"name"`
	}
	if n.Kind == strict.Map {
		d.Decode(n, &entry, "")
		*c = crewDocument{Path: entry.Path, Name: entry.Name, mapping: true}
		return
	}
	d.Decode(n, &c.Path, "")
}

type servedHTTPDocument struct {
	Pos                  strict.Pos                        `key:"@"`
	Listen               strict.At[string]                 `key:"listen,required"`
	Path                 strict.At[string]                 `key:"path"`
	AllowedOrigins       []strict.At[word]                 `key:"allowed_origins"`
	AllowedHosts         []strict.At[word]                 `key:"allowed_hosts"`
	Tokens               []strict.Named[strict.At[apiKey]] `key:"tokens"`
	OAuth                *servedOAuthDocument              `key:"oauth"`
	TLS                  *tlsDocument                      `key:"tls"`
	AllowUnauthenticated bool                              `key:"allow_unauthenticated"`
	Connections          count                             `key:"connections"`
	Sessions             count                             `key:"sessions"`
	SessionIdle          time.Duration                     `key:"session_idle"`
	ReadTimeout          time.Duration                     `key:"read_timeout"`
	WriteTimeout         time.Duration                     `key:"write_timeout"`
	IdleTimeout          time.Duration                     `key:"idle_timeout"`
}

type tlsDocument struct {
	Cert strict.At[word] `key:"cert,required"`
	Key  strict.At[word] `key:"key,required"`
}

type servedOAuthDocument struct {
	Resource strict.At[word]   `key:"resource,required"`
	Issuers  []issuerDocument  `key:"issuers,required"`
	Audience strict.At[word]   `key:"audience"`
	Scopes   []strict.At[word] `key:"scopes"`
}

// issuerDocument is the URL of an issuer, or a mapping that also says where its
// keys are.
type issuerDocument struct {
	URL, JWKS strict.At[word]
	mapping   bool
}

// UnmarshalNode implements [strict.Unmarshaler].
func (i *issuerDocument) UnmarshalNode(d *strict.Decoder, n *strict.Node) {
	var entry struct {
		URL  strict.At[word] `key:"url,required"`
		JWKS strict.At[word] `key:"jwks"`
	}
	if n.Kind == strict.Map {
		d.Decode(n, &entry, "")
		*i = issuerDocument{URL: entry.URL, JWKS: entry.JWKS, mapping: true}
		return
	}
	d.Decode(n, &i.URL, "")
}

// handleName is what a surface may be called (I1), and toolName a tool.
var (
	handleName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]*$`)
	toolName   = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
)

const (
	handleRule = "letters, digits, _ . and -, at most 128, the first a letter or digit"
	toolRule   = "letters, digits, _ and -, at most 64"
)

// DefaultServedPath is the path of the endpoint where the settings give none.
const DefaultServedPath = "/mcp"

// served reads the surfaces. A handle is also unique without regard to case:
// variables of the environment know no other.
func (l *loader) served(x *expander, list []strict.Named[servedDocument], servers []strict.Named[serverDocument]) []Served {
	var all []Served
	for i, e := range list {
		if !named(handleName, e.Key, 128) {
			x.d.Fail(e.KeyPos, CodeName, "the handle "+strict.Quote(e.Key)+" is not valid", handleRule)
		}
		for _, before := range list[:i] {
			if strings.EqualFold(before.Key, e.Key) {
				x.d.Fail(e.KeyPos, strict.CodeDuplicateKey, "the handles "+strict.Quote(before.Key)+" and "+strict.Quote(e.Key)+" differ in case only", "")
			}
		}
		all = append(all, l.surface(x, e, servers))
	}
	return all
}

func (l *loader) surface(x *expander, e strict.Named[servedDocument], servers []strict.Named[serverDocument]) Served {
	doc, where := e.V, "mcp.served."+shown(e.Key)
	s := Served{Handle: e.Key, Title: string(doc.Title.V), Instructions: string(doc.Instructions.V), Pos: e.KeyPos}
	for _, t := range texts(x.d, doc.Tools, where+".tools") {
		s.Tools = append(s.Tools, Rule{Pattern: string(t.V), Pos: t.Pos})
	}
	for i, c := range doc.Crews {
		if !c.Path.Set && !c.mapping {
			x.d.Fail(c.Path.Pos, strict.CodeMissing, where+".crews."+strconv.Itoa(i)+" is empty", "")
		}
		if c.Path.V == "" {
			continue
		}
		if c.Name.V != "" && !named(toolName, string(c.Name.V), 64) {
			x.d.Fail(c.Name.Pos, CodeName, where+".crews."+strconv.Itoa(i)+".name: "+strict.Quote(string(c.Name.V))+" is not the name of a tool", toolRule)
		}
		s.Crews = append(s.Crews, ServedCrew{Path: l.absolute(string(c.Path.V), c.Path.Pos), Name: string(c.Name.V), Pos: c.Path.Pos})
	}
	s.Resources = offers(x.d, doc.Resources, where+".resources", servers)
	s.Prompts = offers(x.d, doc.Prompts, where+".prompts", servers)
	if len(doc.Tools)+len(doc.Crews)+len(doc.Resources)+len(doc.Prompts) == 0 {
		x.d.Fail(e.KeyPos, strict.CodeMissing, where+" serves nothing", "name tools, crews, resources or prompts")
	}
	if doc.HTTP != nil {
		s.HTTP = l.servedHTTP(x, doc.HTTP, where+".http")
	}
	return s
}

// offers reads SERVER and SERVER/PATTERN. No name of a server has a slash.
func offers(d *strict.Decoder, list []strict.At[word], where string, servers []strict.Named[serverDocument]) []Offer {
	var all []Offer
	known := make([]string, len(servers))
	for i, s := range servers {
		known[i] = s.Key
	}
	for _, t := range texts(d, list, where) {
		server, pattern, parted := strings.Cut(string(t.V), "/")
		found := false
		for _, name := range known {
			found = found || name == server
		}
		switch {
		case !found:
			d.Fail(t.Pos, strict.CodeBadValue, where+": the settings have no server "+strict.Quote(server), strict.DidYouMean(server, known))
		case parted && pattern == "":
			d.Fail(t.Pos, strict.CodeBadValue, where+": nothing is named after the slash of "+strict.Quote(string(t.V)), "the name of the server alone means all")
		default:
			all = append(all, Offer{Server: server, Pattern: pattern, Pos: t.Pos})
		}
	}
	return all
}

func (l *loader) servedHTTP(x *expander, doc *servedHTTPDocument, where string) *ServedHTTP {
	d := x.d
	h := &ServedHTTP{
		Listen: doc.Listen.V, Path: doc.Path.V, AllowUnauthenticated: doc.AllowUnauthenticated, Pos: doc.Pos,
		Connections: int(doc.Connections), Sessions: int(doc.Sessions), SessionIdle: doc.SessionIdle,
		ReadTimeout: doc.ReadTimeout, WriteTimeout: doc.WriteTimeout, IdleTimeout: doc.IdleTimeout,
	}
	if doc.Listen.V != "" && CheckListen(doc.Listen.V) != nil {
		d.Fail(doc.Listen.Pos, strict.CodeBadValue, where+".listen: "+strict.Quote(doc.Listen.V)+" is not HOST:PORT", "127.0.0.1:8931")
	}
	if h.Path == "" {
		h.Path = DefaultServedPath
	}
	if u, err := url.Parse(h.Path); err != nil || u.Path != h.Path || !strings.HasPrefix(h.Path, "/") || strings.ContainsAny(h.Path, "{} ") {
		d.Fail(doc.Path.Pos, strict.CodeBadValue, where+".path: "+strict.Quote(h.Path)+" is not the path of a URL", DefaultServedPath)
	}
	for _, o := range texts(d, doc.AllowedOrigins, where+".allowed_origins") {
		if hint := CheckOrigin(string(o.V)); hint != "" {
			d.Fail(o.Pos, strict.CodeBadValue, where+".allowed_origins: "+strict.Quote(string(o.V))+" is not an origin", hint)
		}
		h.AllowedOrigins = append(h.AllowedOrigins, string(o.V))
	}
	for _, t := range texts(d, doc.AllowedHosts, where+".allowed_hosts") {
		host, ok := allowedHost(string(t.V))
		if !ok {
			d.Fail(t.Pos, strict.CodeBadValue, where+".allowed_hosts: "+strict.Quote(string(t.V))+" is not a host", "HOST or HOST:PORT, without a scheme, a path or a pattern")
		}
		h.AllowedHosts = append(h.AllowedHosts, host)
	}
	for _, t := range doc.Tokens {
		at := where + ".tokens." + shown(t.Key)
		if !named(serverName, t.Key, 64) {
			d.Fail(t.KeyPos, CodeName, where+".tokens: the name "+strict.Quote(t.Key)+" is not valid", nameRule)
		}
		if !t.V.Set {
			d.Fail(t.V.Pos, strict.CodeMissing, at+" is empty", "${NAME}, or a mapping with env, file or command")
		}
		h.Tokens = append(h.Tokens, NamedToken{Name: t.Key, Token: l.key(x, t.V, at)})
	}
	if doc.TLS != nil {
		h.Cert, h.Key = l.pem(doc.TLS.Cert), l.pem(doc.TLS.Key)
	}
	if doc.OAuth != nil {
		h.OAuth = servedOAuth(d, doc.OAuth, where+".oauth")
	}
	return h
}

func (l *loader) pem(file strict.At[word]) string {
	if file.V == "" {
		return ""
	}
	return l.absolute(string(file.V), file.Pos)
}

func servedOAuth(d *strict.Decoder, doc *servedOAuthDocument, where string) *ServedOAuth {
	o := &ServedOAuth{Resource: string(doc.Resource.V), Audience: string(doc.Audience.V)}
	address := func(t strict.At[word], key string) {
		if t.V != "" {
			checkURL(d, t.Pos, where+"."+key, secret.NewText(string(t.V), string(t.V)))
		}
	}
	address(doc.Resource, "resource")
	for n, i := range doc.Issuers {
		at := "issuers." + strconv.Itoa(n)
		if !i.URL.Set && !i.mapping {
			d.Fail(i.URL.Pos, strict.CodeMissing, where+"."+at+" is empty", "")
		}
		address(i.URL, at)
		address(i.JWKS, at+".jwks")
		o.Issuers = append(o.Issuers, Issuer{URL: string(i.URL.V), JWKS: string(i.JWKS.V), Pos: i.URL.Pos})
	}
	o.Scopes = values(texts(d, doc.Scopes, where+".scopes"))
	return o
}

// CheckListen says what is wrong with an address to listen on.
func CheckListen(address string) error {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	_, err = strconv.ParseUint(port, 10, 16)
	return err
}

// CheckOrigin returns what an origin looks like where the text is none as a
// browser would send it: a scheme, a host and a port that is not the scheme's
// own. It is compared as a whole, so there are no patterns and no paths (I12).
func CheckOrigin(text string) (hint string) {
	const form = "SCHEME://HOST or SCHEME://HOST:PORT, without a path or a pattern"
	u, err := url.Parse(text)
	if err != nil || u.Scheme == "" || u.Host == "" || strings.Contains(text, "*") || u.Opaque != "" {
		return form
	}
	host := strings.ToLower(u.Host)
	if port := u.Port(); u.Scheme == "http" && port == "80" || u.Scheme == "https" && port == "443" {
		host = strings.TrimSuffix(host, ":"+port)
	}
	switch origin := u.Scheme + "://" + host; {
	case u.User != nil || strings.TrimSuffix(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "":
		return form
	case origin != text:
		return "write " + origin
	}
	return ""
}
