package runner

import (
	"context"
	"errors"
	"fmt"

	"crewhost/config"
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

// CheckHTTP says what is wrong with cfg before anything is started for it: all but
// its tokens and files, which are looked at by [Surface.ListenHTTP].
func CheckHTTP(cfg config.ServedHTTP) error {
	made := listenConfig(cfg)
	made.CertFile, made.KeyFile = "", ""
	made.AllowUnauthenticated = made.AllowUnauthenticated || len(cfg.Tokens) > 0
	return made.Check()
}

func (s *Surface) httpConfig(ctx context.Context, cfg config.ServedHTTP) (server.HTTPConfig, error) {
	made := listenConfig(cfg)
	var errs []error
	for _, t := range cfg.Tokens {
		value, err := s.host.models.creds.Resolve(ctx, t.Token)
		if err != nil {
			errs = append(errs, fmt.Errorf("finding the token %q: %w", t.Name, err))
			continue
		}
		made.Tokens = append(made.Tokens, server.NewToken(t.Name, value.Reveal()))
	}
	return made, errors.Join(errs...)
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
