package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"crewhost/config"
	"crewhost/config/secret"
	"crewhost/mcp/admission"
)

// Config is what an [Authorizer] is made of.
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
	// Store keeps what logins gave. Nil: memory, of this Authorizer alone.
	Store Store
	// Redactor gets to know every token and secret. Nil: none does.
	Redactor *secret.Redactor
	// Allowed, if set, says whether an endpoint may be asked, beside the rules of
	// this package (W4).
	Allowed func(u *url.URL) bool
	// Rules are what the operator allows beyond what is admitted anyway.
	Rules admission.Rules
	// Base carries the requests to OAuth endpoints, and the question of a login.
	Base http.RoundTripper
	// Browse sends a person to a URL, and returns when they are on their way. It is
	// one of loopback, which leads to the authorization server, and where the
	// answer comes back to. Nil: nobody is sent anywhere.
	Browse func(ctx context.Context, url string) error
	// Warn is told in a line what went wrong and does no harm yet: that tokens
	// were not stored. Nil: nobody is.
	Warn func(line string)
	// ClientName is what a client that registers itself is called.
	ClientName string
	// Remedy is the command that mends tokens which are of no more use, for a
	// [*LoginError]. Empty: a login to the server.
	Remedy string
}

// Authorizer has the tokens of one server. It is safe for concurrent use. Create it
// with [New].
type Authorizer struct {
	cfg    Config
	target *url.URL // of the server
	bound  string   // the same, normalised
	client *http.Client

	refreshing sync.WaitGroup
	stop       chan struct{} // closed by abandon
	abandon    func()        // ends what is being refreshed

	turn chan struct{} // holds a token while somebody reads or changes what follows

	current Record
	loaded  bool                // whether the store was asked
	asked   map[string][]string // by issuer, the scopes that a grant was asked for
	refused error               // of a grant that a person was asked for: nobody is asked twice
	unsaved error               // of the store, which did not take the current record
}

// New makes the authorizer of a server. Nothing is sent or read yet.
func New(cfg Config) (*Authorizer, error) {
	bound, err := secret.Binding(cfg.URL)
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
	a := &Authorizer{
		cfg: cfg, target: target, bound: bound,
		stop:  make(chan struct{}),
		turn:  make(chan struct{}, 1),
		asked: make(map[string][]string),
	}
	a.abandon = sync.OnceFunc(func() { close(a.stop) })
	a.client = a.newClient(cfg.Base)
	return a, nil
}

// LoginError says that a server needs somebody to log in.
type LoginError struct {
	Server string
	// Scopes are those that the server wants beside the ones granted, if that is
	// why.
	Scopes []string
	// Err is why what was stored is of no use, or nil.
	Err error
	// Remedy is the command that helps; empty: a login to the server.
	Remedy string
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
	remedy := e.Remedy
	if remedy == "" {
		remedy = "crewhost mcp login " + e.Server
	}
	s += `: run "` + remedy + `"`
	if e.Remedy == "" && e.Err == nil && len(e.Scopes) == 0 { // nothing was ever there
		s += `, or "crewhost vault set" for a token that you have`
	}
	return s
}

// Unwrap returns Err.
func (e *LoginError) Unwrap() error { return e.Err }

// Denied reports whether an error says that the server, or its authorization
// server, refuses this client as it is: somebody has to log in, or to change the
// settings.
func Denied(err error) bool {
	return errors.As(err, new(*LoginError)) || errors.As(err, new(*refusal))
}

// concerned reports whether a challenge can be met here: one that does not ask
// for a bearer token may ask for anything, unless the settings or a login say
// that tokens are what the server takes.
func (a *Authorizer) concerned(ctx context.Context, c challenge) bool {
	if c.bearer || a.cfg.Settings != nil {
		return true
	}
	h, err := a.hold(ctx)
	if err != nil {
		return false
	}
	defer h.release()
	if !a.loaded && a.load(ctx) != nil {
		return false
	}
	return !a.current.Access.IsZero()
}

// record is what a request is sent with: nothing, before the server has asked
// for a token, unless the settings say that it will.
func (a *Authorizer) record(ctx context.Context) (Record, error) {
	h, err := a.hold(ctx)
	if err != nil {
		return Record{}, err
	}
	defer h.release()
	if a.cfg.Settings != nil && !a.loaded {
		if err := a.load(ctx); err != nil {
			return Record{}, err
		}
	}
	if a.current.fresh(time.Now()) || a.current.Refresh.IsZero() {
		return a.current, nil
	}
	// Another process may have been quicker.
	if err := a.load(ctx); err != nil {
		return Record{}, err
	}
	if a.current.fresh(time.Now()) {
		return a.current, nil
	}
	err = h.refresh(ctx)
	switch {
	case errors.As(err, new(*refusal)): // the server will ask
	case err != nil:
		return Record{}, err
	}
	return a.current, nil
}

// load makes the record that is stored the current one.
func (a *Authorizer) load(ctx context.Context) error {
	if a.unattended() {
		return nil // nothing is stored
	}
	r, ok, err := a.cfg.Store.Load(ctx, a.bound)
	if err != nil {
		return fmt.Errorf("looking for its tokens in %s: %w", a.cfg.Store, err)
	}
	a.loaded = true
	if !ok {
		return nil
	}
	a.know(r.secrets()...)
	if id := a.clientID(); id != "" && id != r.ClientID && !isDocument(id) {
		return nil // it is of a client that the settings have replaced
	}
	a.current = r
	return nil
}

// renew gets a token in place of the one that was refused, and says how it came
// by it.
func (a *Authorizer) renew(ctx context.Context, c challenge, old Record, how origins) (Record, origins, error) {
	h, err := a.hold(ctx)
	if err != nil {
		return Record{}, how, err
	}
	defer h.release()
	newer := func() bool { return !a.current.Access.Equal(old.Access) && a.current.fresh(time.Now()) }
	if newer() { // another request has renewed it
		return a.current, how, nil
	}
	if err := a.load(ctx); err != nil {
		return Record{}, how, err
	}
	if newer() { // another process has, or somebody has logged in
		return a.current, how, nil
	}
	var gone error
	if !c.more && how == known && !a.current.Refresh.IsZero() {
		err := h.refresh(ctx)
		if err == nil {
			return a.current, refreshed, nil
		}
		if !errors.As(err, new(*refusal)) {
			return Record{}, how, err
		}
		gone = err
	}
	switch {
	case a.refused != nil:
		return Record{}, how, a.refused
	case a.unattended():
	case a.cfg.Browse == nil && c.more:
		return Record{}, how, &LoginError{Server: a.cfg.Name, Scopes: c.scopes, Remedy: a.cfg.Remedy}
	case a.cfg.Browse == nil:
		if gone == nil && !old.Access.IsZero() {
			gone = errors.New("the token is no longer taken")
		}
		return Record{}, how, &LoginError{Server: a.cfg.Name, Err: gone, Remedy: a.cfg.Remedy}
	}
	if err := a.grant(ctx, c); err != nil {
		if !a.unattended() && ctx.Err() == nil { // else it is the request that was given up
			a.refused = err
		}
		return Record{}, how, err
	}
	return a.current, granted, nil
}

// spurned notes that the server does not take what a grant gave: a person would
// be asked for ever.
func (a *Authorizer) spurned(ctx context.Context) {
	if a.unattended() {
		return
	}
	h, err := a.hold(ctx)
	if err != nil {
		return
	}
	defer h.release()
	a.refused = errors.New("the server does not take the token that a login gave")
}

// unattended reports whether a grant needs nobody.
func (a *Authorizer) unattended() bool { return a.cfg.Settings.Unattended() }

// clientID is the client that the settings name, or "".
func (a *Authorizer) clientID() string {
	if a.cfg.Settings == nil {
		return ""
	}
	return a.cfg.Settings.ClientID.Reveal()
}

// know makes secrets known to the redactor.
func (a *Authorizer) know(values ...secret.Value) {
	if a.cfg.Redactor != nil {
		a.cfg.Redactor.Add(values...)
	}
}

func (a *Authorizer) warn(line string) {
	if a.cfg.Warn != nil {
		a.cfg.Warn(line)
	}
}

// keep makes a record the current one, and stores it.
func (a *Authorizer) keep(ctx context.Context, r Record) {
	a.current, a.loaded, a.unsaved = r, true, nil
	if a.unattended() {
		return // it costs one request to have another
	}
	if err := a.cfg.Store.Save(ctx, r); err != nil {
		a.unsaved = fmt.Errorf("keeping the tokens in %s: %w", a.cfg.Store, err)
		a.warn(a.unsaved.Error())
	}
}
