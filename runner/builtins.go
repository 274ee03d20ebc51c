package runner

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"crewhost/config/vault"
	"crewhost/tools/builtin"
	"crewhost/tools/builtin/database"
	"crewhost/tools/builtin/mind"
	"crewhost/tools/builtin/shell"
	"crewhost/tools/builtin/web"
)

// The host's own tools get what they work with here: the mounts, a person, the way into
// the network, and the credentials that no agent sees.

// registerBuiltins adds the host's own tools to the registry.
func (h *Host) registerBuiltins() error {
	off, err := builtin.Register(h.registry, h.builtinConfig())
	if err != nil {
		return fmt.Errorf("registering the built-in tools: %w", err)
	}
	h.builtins, h.off = h.registry.Names(), off
	return nil
}

// builtinConfig is what the settings say of the host's own tools.
func (h *Host) builtinConfig() builtin.Config {
	settings := h.cfg.Settings.Tools
	cfg := builtin.Config{
		FS: h.fs, Asker: h.cfg.Asker, Mind: mind.Config{Memory: memoryOf, Documents: documentsOf},
		Web: web.Config{
			Client: h.gate.Client(), Timeout: settings.Web.Timeout, MaxBytes: settings.Web.Bytes,
			Authorize: h.webCredential,
			Search:    web.Search{Provider: settings.Web.Search.Provider, URL: settings.Web.Search.URL},
			GitHub:    web.GitHub{URL: settings.Web.GitHub.URL},
		},
	}
	for _, d := range settings.Disabled {
		cfg.Disabled = append(cfg.Disabled, d.Pattern)
	}
	if settings.Web.Search.Provider != "" {
		cfg.Web.Search.Authorize = h.searchKey
	}
	if settings.Web.GitHub.Credential != "" {
		cfg.Web.GitHub.Authorize = func(req *http.Request) error {
			c, err := h.gate.named(req.Context(), settings.Web.GitHub.Credential)
			if err == nil {
				put(req, c)
			}
			return err
		}
	}
	if settings.Database.Enabled {
		cfg.Database = h.databaseConfig()
	}
	if settings.Shell.Enabled {
		cfg.Shell = &shell.Config{Timeout: settings.Shell.Timeout, Bytes: settings.Shell.Bytes}
		for _, p := range settings.Shell.Allow {
			cfg.Shell.Allow = append(cfg.Shell.Allow, p.Pattern)
		}
		for _, e := range settings.Shell.Environ {
			h.cfg.Redactor.Add(e.Secrets()...)
			cfg.Shell.Environ = append(cfg.Shell.Environ, e.Reveal())
		}
	}
	return cfg
}

func (h *Host) databaseConfig() *database.Config {
	settings := h.cfg.Settings.Tools.Database
	cfg := &database.Config{Timeout: settings.Timeout, Rows: settings.Rows}
	if len(settings.Hosts) > 0 {
		cfg.Dial = dialsOnly(settings.Hosts)
	}
	for _, c := range settings.Connections {
		h.cfg.Redactor.Add(c.Source.Secrets()...)
		cfg.Connections = append(cfg.Connections, database.Connection{
			Name: c.Name, Provider: c.Provider, Write: c.Write,
			Source: func() (string, error) { return c.Source.Reveal(), nil },
		})
	}
	return cfg
}

// dialsOnly connects to hosts of the list, each a name or an address with or without a
// port, and to nothing else.
func dialsOnly(hosts []string) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		if host, address := strings.ToLower(host), strings.ToLower(address); !slices.Contains(hosts, host) && !slices.Contains(hosts, address) {
			return nil, errors.New("the host is not one of tools.database.hosts in the settings")
		}
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
}

// searchKey puts the key of the search engine into a request: in a header of its
// provider's choice.
func (h *Host) searchKey(req *http.Request) error {
	search := h.cfg.Settings.Tools.Web.Search
	key, err := (credentials{h.cfg.Environ, h.cfg.Redactor, h.cfg.Logger}).Resolve(req.Context(), search.Key)
	if err != nil {
		return fmt.Errorf("finding tools.web_search.api_key: %w", err)
	}
	if search.Provider == "brave" {
		req.Header.Set("X-Subscription-Token", key.Reveal())
		return nil
	}
	req.Header.Set("Authorization", "Bearer "+key.Reveal())
	return nil
}

// webCredential puts the credential of tools.web.credentials into a request that covers
// its URL, if there is one: of several, that of the longest path.
func (h *Host) webCredential(req *http.Request) error {
	var found vault.Credential
	for _, name := range h.cfg.Settings.Tools.Web.Credentials {
		c, err := h.gate.named(req.Context(), name.Pattern)
		if err != nil {
			return err
		}
		if covers(c.URL, req.URL) && len(c.URL) > len(found.URL) {
			found = c
		}
	}
	if found.Name != "" {
		put(req, found)
	}
	return nil
}

// covers reports whether a URL is of the same origin as base, and below it.
func covers(base string, u *url.URL) bool {
	b, err := url.Parse(base)
	if err != nil || b.Scheme != u.Scheme || !strings.EqualFold(b.Host, u.Host) {
		return false
	}
	path := strings.TrimSuffix(b.Path, "/")
	return u.Path == path || strings.HasPrefix(u.Path, path+"/")
}

// put puts a credential into a request.
func put(req *http.Request, c vault.Credential) {
	if c.Header != "" {
		req.Header.Set(c.Header, c.Secret.Reveal())
		return
	}
	req.Header.Set("Authorization", "Bearer "+c.Secret.Reveal())
}

// named is a credential of the vault, by its name.
func (g *gate) named(ctx context.Context, name string) (vault.Credential, error) {
	c, ok, err := g.vault.Named(ctx, name)
	if err == nil && !ok {
		err = fmt.Errorf("the vault has no credential %q; crewhost vault set puts one there", name)
	}
	return c, err
}

// Builtins returns the host's own tools, those that are off among them, by name.
func (h *Host) Builtins() []builtin.Off { return builtin.All(h.builtinConfig()) }

// missingBuiltin says of a tool of the host's own that is off how to turn it on; empty:
// there is none of the name.
func (h *Host) missingBuiltin(name string) string {
	for _, o := range h.off {
		if o.Tool.Name == name {
			return name + " " + o.Why
		}
	}
	return ""
}
