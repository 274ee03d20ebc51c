package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"crewhost/config"
	"crewhost/config/secret"
	"crewhost/mcp/server"
)

// Listening is a surface that listens. Whoever made it calls Serve, or Close.
type Listening struct {
	surface *Surface
	http    *server.HTTP
}

// ListenHTTP opens the port, and serves nobody before [Listening.Serve]. The tokens
// that the settings name are looked up now. The error joins all that is wrong.
func (s *Surface) ListenHTTP(ctx context.Context, cfg config.ServedHTTP) (*Listening, error) {
	made, err := s.httpConfig(ctx, cfg)
	if err != nil {
		return nil, err
	}
	h, err := s.server.ListenHTTP(ctx, made)
	if err != nil {
		return nil, err
	}
	return &Listening{s, h}, nil
}

// URL is where clients reach it.
func (l *Listening) URL() string { return l.http.URL() }

// Serve serves until ctx ends and what is under way is answered or cancelled, and
// returns nil then.
func (l *Listening) Serve(ctx context.Context) error { return l.surface.follow(ctx, l.http.Serve) }

// Close gives the port back, where Serve was never called.
func (l *Listening) Close() error { return l.http.Close() }

// CheckHTTP says what is wrong with cfg before anything is started for it, joined.
// Tokens are looked up, but those of a command, which is run once: by
// [Surface.ListenHTTP].
func CheckHTTP(ctx context.Context, cfg config.ServedHTTP, environ []string) error {
	made := listenConfig(cfg)
	made.AllowUnauthenticated = made.AllowUnauthenticated || len(cfg.Tokens) > 0
	known := slices.DeleteFunc(slices.Clone(cfg.Tokens), func(t config.NamedToken) bool { return t.Token.Source == secret.FromCommand })
	tokens, err := resolve(ctx, credentials{environ: environ, redactor: &secret.Redactor{}}, known)
	made.Tokens = tokens
	return errors.Join(err, made.Check(), made.CheckTLS())
}

func (s *Surface) httpConfig(ctx context.Context, cfg config.ServedHTTP) (server.HTTPConfig, error) {
	made := listenConfig(cfg)
	var err error
	made.Tokens, err = resolve(ctx, s.host.models.creds, cfg.Tokens)
	return made, err
}

// resolve looks tokens up. The error joins those that were not found.
func resolve(ctx context.Context, credentials Credentials, list []config.NamedToken) (tokens []server.Token, err error) {
	var errs []error
	for _, t := range list {
		value, err := credentials.Resolve(ctx, t.Token)
		if err != nil {
			errs = append(errs, fmt.Errorf("finding the token %q: %w", t.Name, err))
			continue
		}
		tokens = append(tokens, server.NewToken(t.Name, value.Reveal()))
	}
	return tokens, errors.Join(errs...)
}

// listenConfig is the server's form of cfg, without the tokens.
func listenConfig(cfg config.ServedHTTP) server.HTTPConfig {
	made := server.HTTPConfig{
		Listen: cfg.Listen, Path: cfg.Path,
		AllowedOrigins: cfg.AllowedOrigins, AllowedHosts: cfg.AllowedHosts,
		AllowUnauthenticated: cfg.AllowUnauthenticated,
		CertFile:             cfg.Cert, KeyFile: cfg.Key,
		Connections: cfg.Connections, Sessions: cfg.Sessions, SessionIdle: cfg.SessionIdle,
		ReadTimeout: cfg.ReadTimeout, WriteTimeout: cfg.WriteTimeout, IdleTimeout: cfg.IdleTimeout,
	}
	if o := cfg.OAuth; o != nil {
		made.OAuth = &server.ProtectedResource{Resource: o.Resource, Scopes: o.Scopes, Audience: o.Audience}
		for _, i := range o.Issuers {
			made.OAuth.Issuers = append(made.OAuth.Issuers, server.Issuer{URL: i.URL, JWKS: i.JWKS})
		}
	}
	return made
}
