package oauth

import (
	"fmt"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// origins are where the token of a request came from.
type origins int

const (
	known     origins = iota
	refreshed         // for this request
	granted           // for this request
)

// maxSends is how often a request is sent: as it is, after a refresh, after a grant.
const maxSends = 3

// Over returns the round trip of the server: base, with tokens. A request that the
// server does not take for want of a token is sent again with one. All that
// passes is for this server; the caller sees to that.
func (a *Authorizer) Over(base http.RoundTripper) http.RoundTripper { return trip{a, base} }

type trip struct {
	*Authorizer
	base http.RoundTripper
}

func (a trip) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	r, err := a.record(ctx)
	if err != nil {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, fmt.Errorf("authorizing: %w", err)
	}
	var how origins
	for sends := 1; ; sends++ {
		out := req
		if !r.Access.IsZero() || sends > 1 {
			out = req.Clone(ctx)
			if sends > 1 && req.GetBody != nil {
				if out.Body, err = req.GetBody(); err != nil {
					return nil, err
				}
			}
			out.Header.Del("Authorization")
			if !r.Access.IsZero() {
				out.Header.Set("Authorization", "Bearer "+r.Access.Reveal())
			}
		}
		resp, err := a.base.RoundTrip(out)
		if err != nil {
			return nil, err
		}
		c, wanted := challengeOf(resp)
		again := sends < maxSends && (req.Body == nil || req.Body == http.NoBody || req.GetBody != nil)
		if how == granted && wanted && !c.more {
			again = false
			a.spurned(ctx)
		}
		if !wanted || !again || !a.concerned(ctx, c) {
			return resp, nil
		}
		_ = resp.Body.Close()
		if r, how, err = a.renew(ctx, c, r, how); err != nil {
			return nil, fmt.Errorf("authorizing: %w", err)
		}
	}
}

// A challenge is a server's refusal for want of a token, or of more scopes.
type challenge struct {
	more     bool // insufficient_scope
	bearer   bool // it says that it wants a token
	scopes   []string
	metadata string // where the metadata of the resource is
}

// challengeOf reads the challenge of an answer.
func challengeOf(resp *http.Response) (c challenge, wanted bool) {
	if resp.StatusCode != http.StatusUnauthorized && resp.StatusCode != http.StatusForbidden {
		return c, false
	}
	// What can't be read says nothing.
	list, _ := oauthex.ParseWWWAuthenticate(resp.Header.Values("WWW-Authenticate"))
	for _, one := range list {
		if one.Scheme != "bearer" {
			continue
		}
		c.bearer = true
		c.more = c.more || one.Params["error"] == "insufficient_scope"
		c.scopes = scopeList(append(c.scopes, one.Params["scope"])...)
		if c.metadata == "" {
			c.metadata = one.Params["resource_metadata"]
		}
	}
	if resp.StatusCode == http.StatusUnauthorized {
		c.more = false
		return c, true
	}
	return c, c.more
}
