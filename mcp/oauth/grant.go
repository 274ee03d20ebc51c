package oauth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"crewhost/config"
	"crewhost/config/secret"
)

// grant gets new tokens by the grant of the settings.
func (a *Authorizer) grant(ctx context.Context, c challenge) error {
	p, err := a.discover(ctx, c)
	if err != nil {
		return err
	}
	scopes, err := a.scopes(c, p)
	if err != nil {
		return err
	}
	r := Record{
		URL: a.bound, Resource: p.resource,
		Issuer: p.server.Issuer, TokenEndpoint: p.server.TokenEndpoint, Scopes: scopes,
	}
	if a.unattended() {
		r, err = a.alone(ctx, p, r)
	} else {
		r, err = a.authorizationCode(ctx, p, r)
	}
	if err != nil {
		return err
	}
	a.asked[p.server.Issuer] = scopes
	a.keep(ctx, r)
	return nil
}

// scopes are what a grant is asked for: those of the settings and no other; or
// those of the challenge, beside the ones that were granted before; or all that
// the resource has.
func (a *Authorizer) scopes(c challenge, p place) ([]string, error) {
	if a.cfg.Settings != nil && len(a.cfg.Settings.Scopes) > 0 {
		fixed := a.cfg.Settings.Scopes
		for _, s := range c.scopes {
			if c.more && !slices.Contains(fixed, s) {
				return nil, fmt.Errorf("the server wants the scope %q, which oauth.scopes of the settings do not have", brief(s))
			}
		}
		if c.more && a.asked[p.server.Issuer] != nil {
			return nil, errors.New("the server wants more than the scopes of the settings give")
		}
		return fixed, nil
	}
	wanted := c.scopes
	if len(wanted) == 0 {
		wanted = p.scopes
	}
	if !a.unattended() && slices.Contains(p.server.ScopesSupported, "offline_access") {
		wanted = scopeList(append(slices.Clone(wanted), "offline_access")...)
	}
	before := a.asked[p.server.Issuer]
	if a.current.Issuer == p.server.Issuer {
		before = append(slices.Clone(before), a.current.Scopes...)
	}
	all := scopeList(append(slices.Clone(before), wanted...)...)
	if c.more && a.asked[p.server.Issuer] != nil && len(all) == len(scopeList(before...)) {
		return nil, fmt.Errorf("the server wants the scope %q, which was asked for already", brief(strings.Join(c.scopes, " ")))
	}
	return all, nil
}

// isDocument reports whether a client is named by the URL of a document about
// it.
func isDocument(id string) bool {
	u, err := url.Parse(id)
	return err == nil && u.Scheme == "https" && u.Host != "" && strings.Trim(u.Path, "/") != ""
}

// alone asks for a token where nobody has to be asked: in the client's own name, or
// by the word of whoever vouches for this workload (RFC 7523).
func (a *Authorizer) alone(ctx context.Context, p place, r Record) (Record, error) {
	client, err := a.configured(ctx, p.server)
	if err != nil {
		return Record{}, err
	}
	r.ClientID, r.Auth = client.id, client.auth
	values := url.Values{"grant_type": {"client_credentials"}}
	if a.cfg.Settings.Grant == config.GrantJWTBearer {
		assertion, err := secret.Resolve(ctx, a.cfg.Settings.Assertion, a.cfg.Secrets...)
		if err != nil {
			return Record{}, fmt.Errorf("oauth.assertion: %w", err)
		}
		a.know(assertion)
		values = url.Values{"grant_type": {"urn:ietf:params:oauth:grant-type:jwt-bearer"}, "assertion": {assertion.Reveal()}}
	}
	if len(r.Scopes) > 0 {
		values.Set("scope", strings.Join(r.Scopes, " "))
	}
	return a.ask(ctx, r, client, values)
}

// authorizationCode asks a person, and trades the answer for a token.
func (a *Authorizer) authorizationCode(ctx context.Context, p place, r Record) (Record, error) {
	if list := p.server.CodeChallengeMethodsSupported; len(list) > 0 && !slices.Contains(list, "S256") {
		return Record{}, errors.New("the authorization server does not know PKCE with S256")
	}
	port := 0
	if a.cfg.Settings != nil {
		port = a.cfg.Settings.RedirectPort
	}
	state := rand.Text()
	door, err := listen(ctx, port, state)
	if err != nil {
		return Record{}, err
	}
	defer door.close(ctx)

	client, own, err := a.register(ctx, p.server, door.url())
	if err != nil {
		return Record{}, err
	}
	if r.ClientID, r.Auth = client.id, client.auth; own {
		r.ClientSecret = client.secret
	}
	verifier := rand.Text() + rand.Text() // 52 characters, 43 to 128 are allowed
	a.know(secret.New(verifier), client.secret)
	sum := sha256.Sum256([]byte(verifier))
	u, err := url.Parse(p.server.AuthorizationEndpoint)
	if err != nil || p.server.AuthorizationEndpoint == "" {
		return Record{}, errors.New("the authorization endpoint is not a URL")
	}
	if err := a.admissible(u); err != nil {
		return Record{}, err
	}
	q := u.Query()
	q.Set("response_type", "code")
	q.Set("client_id", client.id)
	q.Set("redirect_uri", door.url())
	q.Set("state", state)
	q.Set("code_challenge", base64.RawURLEncoding.EncodeToString(sum[:]))
	q.Set("code_challenge_method", "S256")
	q.Set("resource", r.Resource)
	if len(r.Scopes) > 0 {
		q.Set("scope", strings.Join(r.Scopes, " "))
	}
	u.RawQuery = q.Encode()
	if err := a.cfg.Browse(ctx, door.leadTo(u.String())); err != nil {
		return Record{}, fmt.Errorf("sending somebody to the browser: %w", err)
	}
	got, err := door.wait(ctx)
	if err != nil {
		return Record{}, err
	}
	if err := checkIssuer(got.issuer, p.server); err != nil {
		return Record{}, err
	}
	if got.failure != nil {
		return Record{}, got.failure
	}
	a.know(secret.New(got.code))
	return a.ask(ctx, r, client, url.Values{
		"grant_type":    {"authorization_code"},
		"code":          {got.code},
		"redirect_uri":  {door.url()},
		"code_verifier": {verifier},
	})
}

// checkIssuer checks who answered (RFC 9207): it keeps a code of one
// authorization server from being taken to another.
func checkIssuer(got string, server *oauthex.AuthServerMeta) error {
	promised := server.AuthorizationResponseIssParameterSupported
	switch {
	case got == "" && promised:
		return errors.New("the answer names no issuer, though the authorization server says that it does")
	case got != "" && got != server.Issuer:
		return fmt.Errorf("the answer is of the issuer %s, not of %s", brief(got), brief(server.Issuer))
	case got != "" && !promised:
		return errors.New("the answer names an issuer, though the authorization server does not say that it does")
	}
	return nil
}

// configured is the client of the settings.
func (a *Authorizer) configured(ctx context.Context, server *oauthex.AuthServerMeta) (party, error) {
	p := party{id: a.clientID(), auth: a.cfg.Settings.Auth, audience: server.Issuer}
	var err error
	if p.secret, p.key, err = a.secrets(ctx); err != nil {
		return p, err
	}
	switch {
	case p.auth != "":
	case !p.key.IsZero():
		p.auth = config.AuthPrivateKeyJWT
	case p.secret.IsZero():
		p.auth = config.AuthNone
	default:
		p.auth = methodOf(server)
	}
	return p, nil
}

// methodOf is how a client sends its secret to a token endpoint.
func methodOf(server *oauthex.AuthServerMeta) string {
	if slices.Contains(server.TokenEndpointAuthMethodsSupported, "client_secret_post") {
		return config.AuthPost
	}
	return config.AuthBasic // the default (RFC 8414)
}

// register is the client of a grant: the one of the settings, or one that
// registers itself, which is the record's own.
func (a *Authorizer) register(ctx context.Context, server *oauthex.AuthServerMeta, redirect string) (client party, own bool, err error) {
	if id := a.clientID(); id != "" && (!isDocument(id) || server.ClientIDMetadataDocumentSupported || server.RegistrationEndpoint == "") {
		client, err = a.configured(ctx, server)
		return client, false, err
	}
	if server.RegistrationEndpoint == "" {
		return client, false, errors.New("the authorization server lets no client register itself: set oauth.client_id")
	}
	wanted := "none"
	if list := server.TokenEndpointAuthMethodsSupported; len(list) > 0 && !slices.Contains(list, wanted) {
		wanted = map[string]string{config.AuthPost: "client_secret_post", config.AuthBasic: "client_secret_basic"}[methodOf(server)]
	}
	resp, err := oauthex.RegisterClient(ctx, server.RegistrationEndpoint, &oauthex.ClientRegistrationMetadata{
		RedirectURIs:            []string{redirect},
		TokenEndpointAuthMethod: wanted,
		GrantTypes:              []string{"authorization_code", "refresh_token"},
		ResponseTypes:           []string{"code"},
		ClientName:              a.cfg.ClientName,
		ApplicationType:         "native",
	}, a.client)
	if err != nil {
		return client, false, errors.New(brief("registering: " + bare(err).Error()))
	}
	method := resp.TokenEndpointAuthMethod
	if method == "" {
		method = wanted
	}
	client = party{id: resp.ClientID, secret: secret.New(resp.ClientSecret), audience: server.Issuer}
	switch {
	case client.secret.IsZero():
		client.auth = config.AuthNone
	case method == "client_secret_post":
		client.auth = config.AuthPost
	case method == "none":
		client.auth = config.AuthNone
	default:
		client.auth = config.AuthBasic
	}
	return client, true, nil
}
