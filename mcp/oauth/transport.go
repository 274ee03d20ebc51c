package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"crewhost/config"
	"crewhost/config/secret"
)

// Config is what a [Transport] is made of.
type Config struct {
	// Name is the server's name in the settings, for messages.
	Name string
	// URL is the server's.
	URL string
	// Settings are the server's own, or nil: then it is left to the server
	// whether tokens are needed.
	Settings *config.OAuth
	// Secrets find what the settings refer to.
	Secrets []secret.Source
	// Store keeps what logins gave. Nil: memory, of this Transport alone.
	Store Store
	// Redactor gets to know every token and secret. Nil: none does.
	Redactor *secret.Redactor
	// Base carries the requests.
	Base http.RoundTripper
	// Browse sends a person to a URL, and returns when they are on their way; the
	// answer comes to a listener on loopback. Nil: nobody is sent anywhere.
	Browse func(ctx context.Context, url string) error
	// Warn is told in a line what went wrong and does no harm yet: that tokens
	// were not stored. Nil: nobody is.
	Warn func(line string)
	// ClientName is what a client that registers itself is called.
	ClientName string
}

// Transport is the round trip of one server, with its tokens. It is safe for
// concurrent use. Create it with [New].
type Transport struct {
	cfg    Config
	target *url.URL // of the server
	bound  string   // the same, normalised
	client *http.Client

	turn chan struct{} // holds a token while nobody reads or changes what follows

	current Record
	loaded  bool                // whether the store was asked
	asked   map[string][]string // by issuer, the scopes that a grant was asked for
	refused error               // of a grant that a person was asked for: nobody is asked twice
	unsaved error               // of the store, which did not take the current record
}

// New makes the round trip of a server. Nothing is sent or read yet.
func New(cfg Config) (*Transport, error) {
	bound, err := Normalize(cfg.URL)
	if err != nil {
		return nil, err
	}
	target, err := url.Parse(cfg.URL)
	if err != nil {
		return nil, errors.New("the url is not a URL")
	}
	if cfg.Store == nil {
		cfg.Store = new(Memory)
	}
	t := &Transport{
		cfg: cfg, target: target, bound: bound,
		turn:  make(chan struct{}, 1),
		asked: make(map[string][]string),
	}
	t.client = t.newClient(cfg.Base)
	return t, nil
}

// LoginError says that a server needs somebody to log in.
type LoginError struct {
	Server string
	// Scopes are those that the server wants beside the ones granted, if that is
	// why.
	Scopes []string
	// Err is why what was stored is of no use, or nil.
	Err error
}

// Error is one line that says what to do.
func (e *LoginError) Error() string {
	s := "it needs a login"
	switch {
	case len(e.Scopes) > 0:
		s = "it needs a login for more, scope " + brief(strings.Join(e.Scopes, " "))
	case e.Err != nil:
		s = "it needs a new login (" + e.Err.Error() + ")"
	}
	return s + `: run "crewhost mcp login ` + e.Server + `"`
}

// Unwrap returns Err.
func (e *LoginError) Unwrap() error { return e.Err }

// origins are where the token of a request came from.
type origins int

const (
	known     origins = iota
	refreshed         // for this request
	granted           // for this request
)

// maxSends is how often a request is sent: as it is, after a refresh, after a grant.
const maxSends = 3

// RoundTrip implements [http.RoundTripper]. A request that the server does not
// take for want of a token is sent again with one.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	r, err := t.record(ctx)
	if err != nil {
		return nil, err
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
		resp, err := t.cfg.Base.RoundTrip(out)
		if err != nil {
			return nil, err
		}
		c, wanted := challengeOf(resp)
		again := sends < maxSends && (req.Body == nil || req.Body == http.NoBody || req.GetBody != nil)
		if how == granted && wanted && !c.more {
			again = false
			t.spurned(ctx)
		}
		if !wanted || !again || !t.concerned(ctx, c) {
			return resp, nil
		}
		_ = resp.Body.Close()
		if r, how, err = t.renew(ctx, c, r, how); err != nil {
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

// concerned reports whether a challenge can be met here: one that does not ask
// for a bearer token may ask for anything, unless the settings or a login say
// that tokens are what the server takes.
func (t *Transport) concerned(ctx context.Context, c challenge) bool {
	if c.bearer || t.cfg.Settings != nil {
		return true
	}
	if t.lock(ctx) != nil {
		return false
	}
	defer t.unlock()
	if !t.loaded && t.load(ctx) != nil {
		return false
	}
	return !t.current.Access.IsZero()
}

func (t *Transport) lock(ctx context.Context) error {
	select {
	case t.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (t *Transport) unlock() { <-t.turn }

// record is what a request is sent with: nothing, before the server has asked
// for a token, unless the settings say that it will.
func (t *Transport) record(ctx context.Context) (Record, error) {
	if err := t.lock(ctx); err != nil {
		return Record{}, err
	}
	defer t.unlock()
	if t.cfg.Settings != nil && !t.loaded {
		if err := t.load(ctx); err != nil {
			return Record{}, err
		}
	}
	if t.current.Access.IsZero() || t.current.fresh(time.Now()) || t.current.Refresh.IsZero() {
		return t.current, nil
	}
	err := t.refresh(ctx)
	if errors.As(err, new(*refusal)) {
		err = nil // the server will ask
	}
	return t.current, err
}

// load makes the record that is stored the current one.
func (t *Transport) load(ctx context.Context) error {
	if t.unattended() {
		return nil // nothing is stored
	}
	r, ok, err := t.cfg.Store.Load(ctx, t.bound)
	if err != nil {
		return fmt.Errorf("looking for its tokens in %s: %w", t.cfg.Store, err)
	}
	t.loaded = true
	if !ok {
		return nil
	}
	t.know(r.secrets()...)
	if id := t.clientID(); id != "" && id != r.ClientID && !isDocument(id) {
		return nil // it is of a client that the settings have replaced
	}
	t.current = r
	return nil
}

// renew gets a token in place of the one that was refused, and says how it came
// by it.
func (t *Transport) renew(ctx context.Context, c challenge, old Record, how origins) (Record, origins, error) {
	if err := t.lock(ctx); err != nil {
		return Record{}, how, err
	}
	defer t.unlock()
	newer := func() bool { return !t.current.Access.Equal(old.Access) && t.current.fresh(time.Now()) }
	if newer() { // another request has renewed it
		return t.current, how, nil
	}
	if err := t.load(ctx); err != nil {
		return Record{}, how, err
	}
	if newer() { // another process has, or somebody has logged in
		return t.current, how, nil
	}
	var gone error
	if !c.more && how == known && !t.current.Refresh.IsZero() {
		err := t.refresh(ctx)
		if err == nil {
			return t.current, refreshed, nil
		}
		if !errors.As(err, new(*refusal)) {
			return Record{}, how, err
		}
		gone = err
	}
	switch {
	case t.refused != nil:
		return Record{}, how, t.refused
	case t.unattended():
	case t.cfg.Browse == nil && c.more:
		return Record{}, how, &LoginError{Server: t.cfg.Name, Scopes: c.scopes}
	case t.cfg.Browse == nil:
		if gone == nil && !old.Access.IsZero() {
			gone = errors.New("the token is no longer taken")
		}
		return Record{}, how, &LoginError{Server: t.cfg.Name, Err: gone}
	}
	if err := t.grant(ctx, c); err != nil {
		if !t.unattended() {
			t.refused = err
		}
		return Record{}, how, err
	}
	return t.current, granted, nil
}

// spurned notes that the server does not take what a grant gave: a person would
// be asked for ever.
func (t *Transport) spurned(ctx context.Context) {
	if t.unattended() || t.lock(ctx) != nil {
		return
	}
	defer t.unlock()
	t.refused = errors.New("the server does not take the token that a login gave")
}

// unattended reports whether a grant needs nobody.
func (t *Transport) unattended() bool {
	return t.cfg.Settings != nil && t.cfg.Settings.Grant == config.GrantClientCredentials
}

// clientID is the client that the settings name, or "".
func (t *Transport) clientID() string {
	if t.cfg.Settings == nil {
		return ""
	}
	return t.cfg.Settings.ClientID.Reveal()
}

// know makes secrets known to the redactor.
func (t *Transport) know(values ...secret.Value) {
	if t.cfg.Redactor != nil {
		t.cfg.Redactor.Add(values...)
	}
}

// keep makes a record the current one, and stores it.
func (t *Transport) keep(ctx context.Context, r Record) {
	t.current, t.loaded, t.unsaved = r, true, nil
	if t.unattended() {
		return // it costs one request to have another
	}
	if err := t.cfg.Store.Save(ctx, r); err != nil {
		t.unsaved = fmt.Errorf("keeping the tokens in %s: %w", t.cfg.Store, err)
		if t.cfg.Warn != nil {
			t.cfg.Warn(t.unsaved.Error())
		}
	}
}
