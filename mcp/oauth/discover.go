package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// A place is where a server's tokens come from.
type place struct {
	resource string // the resource indicator
	scopes   []string
	server   *oauthex.AuthServerMeta
}

// discover finds the authorization server. Only where there is no metadata of
// the resource at all is the server taken for its own, as up to 2025-03-26.
func (a *Authorizer) discover(ctx context.Context, c challenge) (place, error) {
	p := place{resource: a.target.String()}
	var issuer string
	meta, err := a.resource(ctx, c)
	switch {
	case err != nil:
		return p, err
	case meta == nil:
		issuer = (&url.URL{Scheme: a.target.Scheme, Host: a.target.Host}).String()
	case len(meta.AuthorizationServers) == 0:
		return p, errors.New("the metadata of the resource names no authorization server")
	default:
		p.resource, p.scopes = meta.Resource, meta.ScopesSupported
		issuer = a.choose(meta.AuthorizationServers)
	}
	u, err := url.Parse(issuer)
	if err != nil {
		return p, errors.New("the issuer is not a URL")
	}
	if err := a.admissible(u); err != nil {
		return p, err
	}
	if want := a.issuer(); want != "" && !same(want, issuer) {
		return p, fmt.Errorf("the server names the issuer %s, and the settings say %s", brief(issuer), brief(want))
	}
	p.server, err = auth.GetAuthServerMetadata(ctx, issuer, a.client)
	if err != nil {
		return p, fmt.Errorf("reading the metadata of the authorization server: %w", bare(err))
	}
	if p.server == nil {
		if meta != nil {
			return p, fmt.Errorf("the authorization server %s has no metadata", brief(issuer))
		}
		p.server = &oauthex.AuthServerMeta{
			Issuer:                issuer,
			AuthorizationEndpoint: issuer + "/authorize",
			TokenEndpoint:         issuer + "/token",
			RegistrationEndpoint:  issuer + "/register",
		}
	}
	return p, nil
}

// choose is the issuer of the settings, where the server offers it, or the first.
func (a *Authorizer) choose(issuers []string) string {
	for _, i := range issuers {
		if same(i, a.issuer()) {
			return i
		}
	}
	return issuers[0]
}

func (a *Authorizer) issuer() string {
	if a.cfg.Settings == nil {
		return ""
	}
	return a.cfg.Settings.Issuer
}

// same compares issuers, which differ by a slash now and then.
func same(a, b string) bool { return strings.TrimSuffix(a, "/") == strings.TrimSuffix(b, "/") }

// resource reads the metadata of the resource (RFC 9728): where the challenge
// says, else where they are by convention. Nil where there are none.
func (a *Authorizer) resource(ctx context.Context, c challenge) (*oauthex.ProtectedResourceMetadata, error) {
	root := url.URL{Scheme: a.target.Scheme, Host: a.target.Host, Path: "/.well-known/oauth-protected-resource"}
	below := root
	below.Path += "/" + strings.Trim(a.target.Path, "/")
	below.RawQuery = a.target.RawQuery
	places := []string{below.String(), root.String()}
	if c.metadata != "" {
		places = []string{c.metadata}
	}
	for _, place := range places {
		meta, err := a.resourceAt(ctx, place)
		if meta != nil || err != nil {
			return meta, err
		}
	}
	if c.metadata != "" {
		return nil, errors.New("there is no metadata of the resource where the server says")
	}
	return nil, nil
}

func (a *Authorizer) resourceAt(ctx context.Context, place string) (*oauthex.ProtectedResourceMetadata, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, place, nil)
	if err != nil {
		return nil, errors.New("the address of the resource's metadata is not a URL")
	}
	req.Header.Set("Accept", "application/json")
	resp, err := a.client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("reading the metadata of the resource: %w", bare(err))
	}
	defer func() { _ = resp.Body.Close() }() // it was only read
	if resp.StatusCode >= 400 && resp.StatusCode < 500 {
		return nil, nil
	}
	var meta oauthex.ProtectedResourceMetadata
	if _, err := read(resp, &meta); err != nil {
		return nil, fmt.Errorf("reading the metadata of the resource: %w", err)
	}
	// Tokens asked for another resource would be that one's.
	if !covers(meta.Resource, a.target.String()) {
		return nil, fmt.Errorf("the metadata is of another resource, %s", brief(meta.Resource))
	}
	return &meta, nil
}

// bare is err without the URL that net/http puts in front.
func bare(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}
