package config

import (
	"slices"
	"strings"

	"crewhost/config/secret"
	"crewhost/config/strict"
)

// The grants of [OAuth].
const (
	GrantAuthorizationCode = "authorization_code" // somebody logs in
	GrantClientCredentials = "client_credentials" // nobody has to
	GrantJWTBearer         = "jwt_bearer"         // likewise: somebody else vouches for this workload
)

// How a client authenticates itself at a token endpoint.
const (
	AuthNone          = "none" // it has no secret
	AuthBasic         = "basic"
	AuthPost          = "post"
	AuthPrivateKeyJWT = "private_key_jwt"
)

// OAuth is how tokens for one server are had (O20). The zero value is a client
// that registers itself, for somebody who logs in.
type OAuth struct {
	Grant string // empty is authorization_code
	// ClientID is the client, where one is registered: an id, or the https URL of
	// a document about it. Empty: the client registers itself.
	ClientID     secret.Text
	ClientSecret secret.Ref // resolved when a token is asked for
	PrivateKey   secret.Ref // PEM; likewise
	Assertion    secret.Ref // the token that vouches; likewise, each time anew
	// Auth is one of the constants; empty: by what the client has and the
	// authorization server knows.
	Auth string
	// Scopes are all that is asked for. Empty: what the server says.
	Scopes []string
	// RedirectPort is where the browser comes back to on loopback; 0 is any.
	RedirectPort int
	// Issuer is the authorization server that the client is registered with, and
	// the only one that gets to see it. Empty: the one that the server names.
	Issuer string
	Pos    strict.Pos
}

// Unattended reports whether the grant needs nobody to log in.
func (o *OAuth) Unattended() bool {
	return o != nil && (o.Grant == GrantClientCredentials || o.Grant == GrantJWTBearer)
}

// secrets are those that the settings hold.
func (o *OAuth) secrets() []secret.Value {
	if o == nil {
		return nil
	}
	all := slices.Clone(o.ClientID.Secrets())
	for _, ref := range []secret.Ref{o.ClientSecret, o.PrivateKey, o.Assertion} {
		if !ref.Value.IsZero() {
			all = append(all, ref.Value)
		}
	}
	return all
}

// oauthDocument is the OAuth of a server as it is written.
type oauthDocument struct {
	Pos          strict.Pos        `key:"@"`
	Grant        strict.At[string] `key:"grant"`
	ClientID     strict.At[scalar] `key:"client_id"`
	ClientSecret strict.At[apiKey] `key:"client_secret"`
	PrivateKey   strict.At[apiKey] `key:"private_key"`
	Assertion    strict.At[apiKey] `key:"assertion"`
	Auth         strict.At[string] `key:"token_endpoint_auth"`
	Scopes       []strict.At[word] `key:"scopes"`
	RedirectPort strict.At[port]   `key:"redirect_port"`
	Issuer       strict.At[scalar] `key:"issuer"`
}

// port is a TCP port.
type port int

// UnmarshalNode implements [strict.Unmarshaler].
func (p *port) UnmarshalNode(d *strict.Decoder, n *strict.Node) {
	*p = port(number(d, n, 1, 65535))
}

// oauth reads the OAuth of a server, and reports what contradicts itself.
func (l *loader) oauth(x *expander, doc serverDocument, s *Server) {
	if doc.OAuth == nil {
		return
	}
	o := *doc.OAuth
	where := "mcp.servers." + shown(s.Name) + ".oauth"
	for i, h := range doc.Headers {
		if strings.EqualFold(h.Key, "Authorization") {
			x.d.Fail(doc.Headers[i].KeyPos, CodeServer, "the server "+strict.Quote(s.Name)+": the header Authorization and oauth both say who is calling", "keep one")
		}
	}
	s.OAuth = &OAuth{
		Grant:        o.Grant.V,
		ClientID:     x.text(o.ClientID, where+".client_id", plainText),
		ClientSecret: l.key(x, o.ClientSecret, where+".client_secret"),
		PrivateKey:   l.key(x, o.PrivateKey, where+".private_key"),
		Assertion:    l.key(x, o.Assertion, where+".assertion"),
		Auth:         o.Auth.V,
		Scopes:       values(texts(x.d, o.Scopes, where+".scopes")),
		RedirectPort: int(o.RedirectPort.V),
		Pos:          o.Pos,
	}
	oneOf(x.d, o.Grant, where+".grant", GrantAuthorizationCode, GrantClientCredentials, GrantJWTBearer)
	oneOf(x.d, o.Auth, where+".token_endpoint_auth", AuthNone, AuthBasic, AuthPost, AuthPrivateKeyJWT)
	if issuer := x.text(o.Issuer, where+".issuer", plainText); !issuer.IsZero() {
		checkURL(x.d, o.Issuer.Pos, where+".issuer", issuer)
		s.OAuth.Issuer = issuer.Reveal()
	}
	l.oauthClient(x.d, o, s.OAuth, where)
}

// oauthClient reports a client that lacks what its grant or its authentication needs.
func (l *loader) oauthClient(d *strict.Decoder, o oauthDocument, got *OAuth, where string) {
	missing := func(key, why string) { d.Fail(o.Pos, strict.CodeMissing, where+"."+key+" is missing: "+why, "") }
	hasSecret, hasKey := o.ClientSecret.Set, o.PrivateKey.Set
	switch {
	case got.Unattended() && !o.ClientID.Set:
		missing("client_id", "the grant "+got.Grant+" needs a registered client")
	case !o.ClientID.Set && (hasSecret || hasKey):
		missing("client_id", "it says whose secret that is")
	}
	switch {
	case hasSecret && hasKey:
		d.Fail(o.PrivateKey.Pos, CodeServer, where+" has both a client_secret and a private_key", "keep one")
	case got.Auth == AuthPrivateKeyJWT && !hasKey:
		missing("private_key", "token_endpoint_auth is "+got.Auth)
	case (got.Auth == AuthBasic || got.Auth == AuthPost) && !hasSecret:
		missing("client_secret", "token_endpoint_auth is "+got.Auth)
	case got.Grant == GrantClientCredentials && !hasSecret && !hasKey:
		missing("client_secret", "the grant "+got.Grant+" needs it, or a private_key")
	case hasKey && got.Auth != "" && got.Auth != AuthPrivateKeyJWT, hasSecret && got.Auth == AuthNone:
		d.Fail(o.Auth.Pos, CodeServer, where+": the token_endpoint_auth "+got.Auth+" does not use what the client has", "")
	}
	switch {
	case got.Grant == GrantJWTBearer && !o.Assertion.Set:
		missing("assertion", "the grant "+got.Grant+" needs it")
	case got.Grant != GrantJWTBearer && o.Assertion.Set:
		d.Fail(o.Assertion.Pos, CodeServer, where+".assertion is of use to the grant "+GrantJWTBearer+" alone", "")
	}
	if got.Unattended() && o.RedirectPort.Set {
		d.Fail(o.RedirectPort.Pos, CodeServer, where+".redirect_port is of no use to the grant "+got.Grant, "")
	}
	if i := slices.IndexFunc(got.Scopes, func(s string) bool { return strings.ContainsAny(s, " \t\r\n\"\\") }); i >= 0 {
		d.Fail(o.Scopes[i].Pos, strict.CodeBadValue, where+".scopes: "+strict.Quote(got.Scopes[i])+" is not one scope", "an entry for each")
	}
}
