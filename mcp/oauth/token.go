package oauth

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"crewhost/config"
	"crewhost/config/secret"
)

// A party is a client at a token endpoint.
type party struct {
	id       string
	auth     string // how it authenticates itself, one of config.Auth…
	secret   secret.Value
	key      secret.Value // PEM
	audience string       // of assertions
}

// assertionLife is how long a signed assertion is good for.
const assertionLife = time.Minute

// sign adds what authenticates the client to a request for a token.
func (p party) sign(values url.Values, header http.Header) error {
	switch p.auth {
	case config.AuthBasic:
		// Encoded first, as RFC 6749 says in 2.3.1.
		pair := http.Request{Header: header}
		pair.SetBasicAuth(url.QueryEscape(p.id), url.QueryEscape(p.secret.Reveal()))
	case config.AuthPost:
		values.Set("client_id", p.id)
		values.Set("client_secret", p.secret.Reveal())
	case config.AuthPrivateKeyJWT:
		assertion, err := p.assertion(time.Now())
		if err != nil {
			return err
		}
		values.Set("client_id", p.id)
		values.Set("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer")
		values.Set("client_assertion", assertion)
	default:
		values.Set("client_id", p.id)
	}
	return nil
}

// assertion is the client's word about itself, signed (RFC 7523).
func (p party) assertion(now time.Time) (string, error) {
	pem := []byte(p.key.Reveal())
	var method jwt.SigningMethod
	var key any
	if ec, err := jwt.ParseECPrivateKeyFromPEM(pem); err == nil {
		key = ec
		switch ec.Curve.Params().BitSize {
		case 256:
			method = jwt.SigningMethodES256
		case 384:
			method = jwt.SigningMethodES384
		default:
			method = jwt.SigningMethodES512
		}
	} else if rsa, err := jwt.ParseRSAPrivateKeyFromPEM(pem); err == nil {
		key, method = rsa, jwt.SigningMethodRS256
	} else if ed, err := jwt.ParseEdPrivateKeyFromPEM(pem); err == nil {
		key, method = ed, jwt.SigningMethodEdDSA
	} else {
		return "", errors.New("the private key is not a PEM of an EC, RSA or Ed25519 key")
	}
	signed, err := jwt.NewWithClaims(method, jwt.RegisteredClaims{
		Issuer: p.id, Subject: p.id, Audience: jwt.ClaimStrings{p.audience}, ID: rand.Text(),
		IssuedAt: jwt.NewNumericDate(now), ExpiresAt: jwt.NewNumericDate(now.Add(assertionLife)),
	}).SignedString(key)
	if err != nil {
		return "", errors.New("the private key can't sign")
	}
	return signed, nil
}

// refusal is an error of a token endpoint: no fault of the network, but an answer.
type refusal struct{ code, description string }

func (r *refusal) Error() string {
	s := "the authorization server refused: " + brief(r.code)
	if r.description != "" {
		s += ", " + brief(r.description)
	}
	return s
}

// answer is what a token endpoint says.
type answer struct {
	AccessToken  string      `json:"access_token"`
	TokenType    string      `json:"token_type"`
	RefreshToken string      `json:"refresh_token"`
	ExpiresIn    json.Number `json:"expires_in"` // some write it as a text
	Scope        *string     `json:"scope"`
	Error        string      `json:"error"`
	Description  string      `json:"error_description"`
}

// ask asks a token endpoint, and returns what it gave, in place of what r has.
func (a *Authorizer) ask(ctx context.Context, r Record, p party, values url.Values) (Record, error) {
	values.Set("resource", r.Resource)
	header := make(http.Header)
	if err := p.sign(values, header); err != nil {
		return Record{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.TokenEndpoint, form(values))
	if err != nil {
		return Record{}, errors.New("the token endpoint is not a URL")
	}
	req.Header = header
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	resp, err := a.client.Do(req)
	if err != nil {
		return Record{}, fmt.Errorf("asking for a token: %w", bare(err))
	}
	defer func() { _ = resp.Body.Close() }() // it was only read
	var got answer
	ok, err := read(resp, &got)
	a.know(secret.New(got.AccessToken), secret.New(got.RefreshToken))
	switch {
	case err == nil && got.Error != "":
		return Record{}, &refusal{got.Error, got.Description}
	case err != nil:
		return Record{}, fmt.Errorf("asking for a token: %w", err)
	case !ok:
		return Record{}, fmt.Errorf("asking for a token: HTTP status %d", resp.StatusCode)
	case got.AccessToken == "" || !printable(got.AccessToken):
		return Record{}, errors.New("asking for a token: its answer has none that can be used")
	case got.TokenType != "" && !strings.EqualFold(got.TokenType, "bearer"):
		return Record{}, fmt.Errorf("asking for a token: its type is %q, not Bearer", brief(got.TokenType))
	}
	r.Access = secret.New(got.AccessToken)
	if got.RefreshToken != "" {
		r.Refresh = secret.New(got.RefreshToken)
	}
	r.Expiry = time.Time{}
	if seconds, err := strconv.ParseFloat(got.ExpiresIn.String(), 64); err == nil && seconds > 0 {
		r.Expiry = time.Now().Add(time.Duration(min(seconds, 1e9)) * time.Second).UTC().Truncate(time.Second)
	}
	if got.Scope != nil {
		r.Scopes = scopeList(*got.Scope)
	}
	return r, nil
}

// printable reports whether a token can stand in a header.
func printable(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// returning is the client that got a record.
func (a *Authorizer) returning(ctx context.Context, r Record) (party, error) {
	p := party{id: r.ClientID, auth: r.Auth, secret: r.ClientSecret, audience: r.Issuer}
	if !r.ClientSecret.IsZero() || a.clientID() != r.ClientID {
		return p, nil
	}
	var err error
	p.secret, p.key, err = a.secrets(ctx)
	return p, err
}

// secrets are the client's own, of the settings.
func (a *Authorizer) secrets(ctx context.Context) (clientSecret, key secret.Value, err error) {
	if a.cfg.Settings == nil {
		return clientSecret, key, nil
	}
	if clientSecret, err = secret.Resolve(ctx, a.cfg.Settings.ClientSecret, a.cfg.Secrets...); err != nil {
		return clientSecret, key, fmt.Errorf("oauth.client_secret: %w", err)
	}
	if key, err = secret.Resolve(ctx, a.cfg.Settings.PrivateKey, a.cfg.Secrets...); err != nil {
		return clientSecret, key, fmt.Errorf("oauth.private_key: %w", err)
	}
	a.know(clientSecret, key)
	return clientSecret, key, nil
}
