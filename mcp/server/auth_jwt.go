package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/golang-jwt/jwt/v5"
)

// algorithms are those that a token may be signed with. None is symmetric, for
// else a public key could be taken for a shared secret.
func algorithms() []string { return []string{"RS256", "PS256", "ES256", "EdDSA"} }

// maxSubject bounds a caller's name, in bytes.
const maxSubject = 256

// claims are what is read of a token.
type claims struct {
	jwt.RegisteredClaims
	ClientID string `json:"client_id"`
	Party    string `json:"azp"`
	Scope    words  `json:"scope"`
	Scp      words  `json:"scp"` // as some issuers call it
}

// words are a list, or a text with blanks between them: issuers differ.
type words []string

func (w *words) UnmarshalJSON(data []byte) error {
	var list []string
	if json.Unmarshal(data, &list) == nil {
		*w = list
		return nil
	}
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return errors.New("a scope is neither text nor a list")
	}
	*w = strings.Fields(text)
	return nil
}

// errKeys says that there are no keys to judge a token by, which is not the
// fault of whoever sent it.
var errKeys = errors.New("reading the issuer's keys")

// verify judges a token of an issuer. The error is a *denial, or [errKeys].
func (a *authenticator) verify(ctx context.Context, token string) (who identity, until time.Time, err error) {
	var c claims
	_, err = jwt.NewParser(
		jwt.WithValidMethods(algorithms()),
		jwt.WithAudience(a.resource.Audience),
		jwt.WithLeeway(a.resource.Leeway),
		jwt.WithExpirationRequired(),
		jwt.WithStrictDecoding(),
	).ParseWithClaims(token, &c, func(t *jwt.Token) (any, error) {
		if _, critical := t.Header["crit"]; critical {
			return nil, errors.New("the token has critical headers that are not understood")
		}
		keys, known := a.keys[c.Issuer]
		if !known {
			return nil, errors.New("the issuer is not trusted")
		}
		kid, _ := t.Header["kid"].(string)
		return keys.key(ctx, kid, t.Method.Alg())
	})
	switch {
	case errors.Is(err, errKeys):
		return identity{}, until, err
	case errors.Is(err, jwt.ErrTokenExpired):
		return identity{}, until, invalidToken("the token has expired")
	case errors.Is(err, jwt.ErrTokenInvalidAudience):
		return identity{}, until, invalidToken("the token is for another resource")
	case err != nil:
		return identity{}, until, invalidToken("the token is not valid")
	}
	id := identity{issuer: c.Issuer}
	switch { // a subject may be called as a client is
	case c.Subject != "":
		id.name, id.kind = c.Subject, "subject"
	case c.ClientID != "":
		id.name, id.kind = c.ClientID, "client"
	default:
		id.name, id.kind = c.Party, "client"
	}
	if id.name == "" || len(id.name) > maxSubject || strings.ContainsFunc(id.name, unicode.IsControl) {
		return identity{}, until, invalidToken("the token does not say whose it is")
	}
	for _, want := range a.resource.Scopes {
		if !slices.Contains(c.Scope, want) && !slices.Contains(c.Scp, want) {
			return identity{}, until, &denial{http.StatusForbidden, "insufficient_scope", fmt.Sprintf("the token has no scope %s", want)}
		}
	}
	return id, c.ExpiresAt.Add(a.resource.Leeway), nil
}
