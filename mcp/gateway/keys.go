package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"crewhost/config"
	"crewhost/config/secret"
	"crewhost/config/vault"
	"crewhost/mcp/admission"
	"crewhost/mcp/oauth"
)

// Keys puts the credentials of a vault into requests (A6, A8): each into those to the
// server that it is bound to, and no other. Tokens that expire are renewed, and what
// that gave is kept in the vault. It is safe for concurrent use. Create it with
// [NewKeys], and close it.
type Keys struct {
	vault    *vault.Vault
	redactor *secret.Redactor
	warn     func(line string)

	mu      sync.Mutex
	holders map[held]*oauth.Authorizer
}

// held is a credential whose tokens somebody holds: of a server, and as it was put into
// the vault. There are as many as were ever sent, whatever a server redirects to.
type held struct {
	server, bound string
	set           time.Time
}

// NewKeys makes the keys of a vault, which may be nil. Nothing is read yet. The
// redactor knows every token before it is sent; warn is told in a line what does no
// harm yet. Both may be nil.
func NewKeys(v *vault.Vault, redactor *secret.Redactor, warn func(line string)) *Keys {
	return &Keys{vault: v, redactor: redactor, warn: warn, holders: make(map[held]*oauth.Authorizer)}
}

// A Lock is the server that keys are for.
type Lock struct {
	Name string // of the server, for messages
	URL  string
	// Endpoints carries requests to the token endpoint.
	Endpoints http.RoundTripper
	// Rules are what the operator allows beyond what is admitted anyway.
	Rules admission.Rules
}

// Over returns base with what the vault has for a server. A header that is there
// already is left alone. The vault is looked into for each request, so that what is
// put there or taken out counts from the next one on; that it can't be read is an
// error of the request, since nobody knows what it holds.
func (k *Keys) Over(l Lock, base http.RoundTripper) http.RoundTripper {
	if k == nil || k.vault == nil {
		return base
	}
	return &keyed{keys: k, lock: l, base: base}
}

// Close waits for renewals that are under way, for the time given and no longer.
func (k *Keys) Close(grace time.Duration) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	var closing sync.WaitGroup
	for _, a := range k.holders {
		closing.Go(func() { a.Close(grace) })
	}
	closing.Wait()
}

// holder is what holds the tokens of a credential; another one for each that somebody
// puts into the vault.
func (k *Keys) holder(l Lock, set time.Time) (*oauth.Authorizer, error) {
	bound, err := vault.Bind(l.URL)
	if err != nil {
		return nil, err
	}
	key := held{l.Name, bound, set}
	k.mu.Lock()
	defer k.mu.Unlock()
	if a := k.holders[key]; a != nil {
		return a, nil
	}
	a, err := oauth.New(oauth.Config{
		Name: l.Name, URL: l.URL, Store: tokens{k.vault, l.URL, set}, Redactor: k.redactor,
		Settings: new(config.OAuth), // a token is sent before it is asked for
		Base:     l.Endpoints, Rules: l.Rules, Warn: k.warn,
		Remedy: "crewhost vault set " + bound,
	})
	if err != nil {
		return nil, err
	}
	k.holders[key] = a
	return a, nil
}

// keyed is the round trip of one server.
type keyed struct {
	keys *Keys
	lock Lock
	base http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (t *keyed) RoundTrip(req *http.Request) (*http.Response, error) {
	refuse := func(err error) (*http.Response, error) {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, fmt.Errorf("looking for its credential: %w", err)
	}
	c, ok, err := t.keys.vault.Lookup(req.Context(), t.lock.URL)
	if err != nil {
		return refuse(err)
	}
	name, value := c.Sent()
	if !ok || req.Header.Get(name) != "" {
		return t.base.RoundTrip(req)
	}
	if f, ok := req.Context().Value(usedKey{}).(*Forward); ok {
		f.Credential, f.Kind = c.Name, c.Kind
	}
	if c.Kind == vault.OAuth && c.Refresh != nil {
		a, err := t.keys.holder(t.lock, c.Set)
		if err != nil {
			return refuse(err)
		}
		return a.Over(t.base).RoundTrip(req)
	}
	out := req.Clone(req.Context())
	out.Header.Set(name, value.Reveal())
	return t.base.RoundTrip(out)
}

// tokens is the vault as the store of one credential's tokens. What it calls the server
// is not by how its URL is bound here, but by how the vault binds it. What somebody has
// put there since is none of its business, neither to be read nor to be written over.
type tokens struct {
	vault *vault.Vault
	url   string
	set   time.Time
}

func (t tokens) String() string { return t.vault.Path() }

func (t tokens) Load(ctx context.Context, url string) (oauth.Record, bool, error) {
	c, ok, err := t.vault.Lookup(ctx, t.url)
	if err != nil || !ok || c.Kind != vault.OAuth || !c.Set.Equal(t.set) {
		return oauth.Record{}, false, err
	}
	r := oauth.Record{URL: url, Resource: c.URL, Access: c.Secret, Expiry: c.Expiry}
	if f := c.Refresh; f != nil {
		r.TokenEndpoint, r.ClientID, r.ClientSecret = f.TokenEndpoint, f.ClientID, f.ClientSecret
		r.Refresh, r.Scopes = f.Token, f.Scopes
		r.Auth = map[string]string{vault.AuthBasic: config.AuthBasic, vault.AuthPost: config.AuthPost}[f.Auth]
	}
	return r, true, nil
}

func (t tokens) Save(ctx context.Context, r oauth.Record) error {
	return t.vault.Renew(ctx, vault.Credential{
		URL: t.url, Set: t.set, Secret: r.Access, Expiry: r.Expiry,
		Refresh: &vault.Refresh{Token: r.Refresh, Scopes: r.Scopes},
	})
}

// Delete implements [oauth.Store]. Only a person deletes from the vault.
func (t tokens) Delete(context.Context, string) (bool, error) { return false, nil }

// Lock implements [oauth.Locker].
func (t tokens) Lock(ctx context.Context, _ string) (unlock func(), err error) {
	return t.vault.Lock(ctx, t.url)
}

// A Verdict is what a check of a credential came to.
type Verdict struct {
	// Valid is when the access token expires; zero where nobody knows.
	Valid time.Time
	// Renewed says that it was renewed for the check.
	Renewed bool
	// Status is the server's answer, an HTTP status.
	Status int
}

// ErrRefused says that a server does not take the credential that the vault has for it.
var ErrRefused = errors.New("the server does not take it")

// Question is what [Keys.Check] asks a server: a ping, of which it keeps nothing.
const Question = "ping"

const (
	checkLimit = 20 * time.Second
	question   = `{"jsonrpc":"2.0","id":1,"method":"` + Question + `"}`
)

// Check tries the credential that the vault has for a server: an access token that
// has expired is renewed first, and then the server is sent a ping with what there
// is. It may answer what it likes but 401 or 403, which is [ErrRefused].
func (k *Keys) Check(ctx context.Context, l Lock, base http.RoundTripper) (v Verdict, err error) {
	ctx, cancel := context.WithTimeout(ctx, checkLimit)
	defer cancel()
	c, ok, err := k.vault.Lookup(ctx, l.URL)
	switch {
	case err != nil:
		return v, err
	case !ok:
		return v, errors.New("the vault has no credential for it")
	}
	if c.Kind == vault.OAuth && c.Refresh != nil {
		a, err := k.holder(l, c.Set)
		if err != nil {
			return v, err
		}
		r, err := a.Fresh(ctx)
		if err != nil {
			return v, err
		}
		v.Renewed, v.Valid = !r.Access.Equal(c.Secret), r.Expiry
	} else if v.Valid = c.Expiry; !v.Valid.IsZero() && v.Valid.Before(time.Now()) {
		return v, fmt.Errorf("the access token expired at %s, and nothing renews it", v.Valid.UTC().Format(time.RFC3339))
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, l.URL, strings.NewReader(question))
	if err != nil {
		return v, errors.New("its url is not a URL")
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	client := &http.Client{
		Transport:     k.Over(l, base),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Do(req)
	if err != nil {
		return v, fmt.Errorf("asking the server: %w", bare(err))
	}
	_, _ = io.CopyN(io.Discard, resp.Body, 4<<10)
	_ = resp.Body.Close()
	v.Status = resp.StatusCode
	if v.Status == http.StatusUnauthorized || v.Status == http.StatusForbidden {
		return v, fmt.Errorf("%w: HTTP status %d", ErrRefused, v.Status)
	}
	// The server may have refused the first token, and taken one that is new.
	now, ok, err := k.vault.Lookup(ctx, l.URL)
	if err == nil && ok {
		v.Renewed, v.Valid = !now.Secret.Equal(c.Secret), now.Expiry
	}
	return v, err
}

// bare is an error of an HTTP client without the URL, which may hold a secret.
func bare(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}
