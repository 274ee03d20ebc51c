// Package oauth authorizes requests to MCP servers over HTTP (O20).
//
// An [Authorizer] has the tokens of one server. It adds the access token to each
// request, renews it, and answers the server's challenges: 401 by what is
// stored, by a refresh or by the grant that the settings name, 403 with
// insufficient_scope by a grant with more scopes. A request is sent at most three
// times.
//
//	a, err := oauth.New(oauth.Config{Name: "search", URL: "https://mcp.example.com/mcp", Store: store, Base: base})
//	client := &http.Client{Transport: a.Over(http.DefaultTransport)}
//
// # Who is asked
//
// A grant of authorization needs a person at a browser, and nobody is sent to one
// unless Config.Browse is set: otherwise a server that needs a login is a
// [*LoginError], which says what to do. [Authorizer.Login] is that login: PKCE with
// S256, metadata of the resource (RFC 9728) and of its authorization server (RFC
// 8414, OpenID Connect), a client that registers itself (RFC 7591) where the
// settings name none, and a listener on 127.0.0.1 for the answer, whose issuer is
// checked (RFC 9207). Client credentials need nobody; they are authenticated by a
// secret or a signed assertion (RFC 7523). Nor does a workload that somebody else
// vouches for.
//
// # Where tokens live
//
// A [Record] is bound to the normalised URL of its server (A8) and is kept by a
// [Store]: the keyring of the operating system, encrypted files, or memory. Tokens
// are secret from the moment they are read, and the Redactor knows them.
//
// # What is refused
//
// Endpoints must be https, except on loopback and only for servers that are
// themselves there. Answers are bounded in size and time, and no redirect is
// followed to another origin, so that neither a code nor a secret is sent where
// it was not meant to go.
package oauth
