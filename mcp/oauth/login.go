package oauth

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// ErrOpen says that a server takes requests without a token.
var ErrOpen = errors.New("the server asks for no login")

// question is what a login asks the server, to be refused. It is made so that the
// server keeps nothing of it.
const question = `{"jsonrpc":"2.0","id":1,"method":"ping"}`

// Login has a person log in, by Config.Browse, and stores what that gave, in
// place of what was stored. The error is [ErrOpen] where the server takes requests
// as they are and the settings do not ask for OAuth.
func (a *Authorizer) Login(ctx context.Context) (Record, error) {
	switch {
	case a.unattended():
		return Record{}, fmt.Errorf("its grant is %s, which needs no login", a.cfg.Settings.Grant)
	case a.cfg.Browse == nil:
		return Record{}, errors.New("there is nobody to log in")
	}
	c, wanted, err := a.provoke(ctx)
	if err != nil {
		return Record{}, err
	}
	if !wanted && a.cfg.Settings == nil {
		return Record{}, ErrOpen
	}
	h, err := a.hold(ctx)
	if err != nil {
		return Record{}, err
	}
	defer h.release()
	a.current, a.loaded = Record{}, true
	if err := a.grant(ctx, c); err != nil {
		return Record{}, err
	}
	return a.current, a.unsaved
}

// provoke has the server say where its tokens come from.
func (a *Authorizer) provoke(ctx context.Context) (challenge, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, timeLimit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.target.String(), strings.NewReader(question))
	if err != nil {
		return challenge{}, false, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	resp, err := a.cfg.Base.RoundTrip(req)
	if err != nil {
		return challenge{}, false, fmt.Errorf("asking the server: %w", bare(err))
	}
	_, _ = io.CopyN(io.Discard, resp.Body, 4<<10)
	_ = resp.Body.Close()
	c, wanted := challengeOf(resp)
	// What is neither yes nor "who are you?" may be a server of another
	// transport, whose metadata are where they are.
	return c, wanted || resp.StatusCode >= 300, nil
}

// Logout forgets what is stored; ok is false where nothing was. Tokens that the
// server gave stay valid there until they expire.
func (a *Authorizer) Logout(ctx context.Context) (ok bool, err error) {
	h, err := a.hold(ctx)
	if err != nil {
		return false, err
	}
	defer h.release()
	a.current, a.loaded = Record{}, false
	return a.cfg.Store.Delete(ctx, a.bound)
}
