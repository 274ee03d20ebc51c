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

	"crewhost/config/secret"
	"crewhost/mcp/gateway"
	"crewhost/tools/builtin"
	"crewhost/tools/builtin/database"
	"crewhost/tools/builtin/mind"
	"crewhost/tools/builtin/web"
)

// The host's own tools get what they work with here: the mounts, a person, the way into
// the network, and the credentials that no agent sees.

// registerBuiltins adds the host's own tools to the registry.
func (h *Host) registerBuiltins() error {
	own, err := builtin.Register(h.registry, h.builtinConfig())
	if err != nil {
		return fmt.Errorf("registering the built-in tools: %w", err)
	}
	h.builtins, h.native = h.registry.Names(), own
	h.warnUnconfined()
	return nil
}

// builtinConfig is what the settings say of the host's own tools.
func (h *Host) builtinConfig() builtin.Config {
	settings := h.cfg.Settings.Tools
	cfg := builtin.Config{
		FS: h.fs, Asker: h.cfg.Asker, Mind: mind.Config{Memory: memoryOf, Documents: documentsOf},
		Web: h.webConfig(),
	}
	for _, d := range settings.Disabled {
		cfg.Disabled = append(cfg.Disabled, d.Pattern)
	}
	if settings.Database.Enabled {
		cfg.Database = h.databaseConfig()
	}
	if settings.Shell.Enabled {
		cfg.Shell = h.shellConfig()
	}
	return cfg
}

// webConfig is what the tools that speak HTTP work with. Their clients put in the
// credentials; see [gateway.Tool].
func (h *Host) webConfig() web.Config {
	settings := h.cfg.Settings.Tools.Web
	cfg := web.Config{
		Timeout: settings.Timeout, MaxBytes: settings.Bytes, Mask: h.cfg.Redactor.RedactKnown,
		Search: web.Search{Provider: settings.Search.Provider, URL: settings.Search.URL},
		GitHub: web.GitHub{URL: settings.GitHub.URL},
	}
	own := gateway.Tool{Name: "http_api"}
	for _, c := range settings.Credentials {
		own.Credentials = append(own.Credentials, c.Pattern)
	}
	cfg.Client = h.gate.Client(own)
	if home, err := url.Parse(cfg.Search.Endpoint()); err == nil && settings.Search.Provider != "" {
		cfg.Search.Client = h.gate.Client(gateway.Tool{Name: "web_search", Home: home, Authorize: h.searchKey})
	}
	if home, err := url.Parse(cfg.GitHub.API()); err == nil {
		hub := gateway.Tool{Name: "github", Home: home}
		if settings.GitHub.Credential != "" {
			hub.Credentials = []string{settings.GitHub.Credential}
		}
		cfg.GitHub.Client = h.gate.Client(hub)
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
		for _, password := range database.Secrets(c.Source.Reveal()) { // which a driver may name alone
			h.cfg.Redactor.Add(secret.New(password))
		}
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

// MissingCredentials says in a line each which credentials the settings name for tools
// and the vault does not have. Where none are named, the vault is not read.
func (h *Host) MissingCredentials(ctx context.Context) (notes []string) {
	settings := h.cfg.Settings.Tools.Web
	miss := func(where, name string) {
		switch _, known, err := h.gate.vault.Named(ctx, name); {
		case err != nil:
			notes = append(notes, fmt.Sprintf("%s names %q, and the vault can't be read: %v", where, name, err))
		case !known:
			notes = append(notes, fmt.Sprintf("%s names %q, which the vault does not have; crewhost vault set --name %s URL puts it there", where, name, name))
		}
	}
	for _, c := range settings.Credentials {
		miss("tools.web.credentials", c.Pattern)
	}
	if settings.GitHub.Credential != "" {
		miss("tools.github.credential", settings.GitHub.Credential)
	}
	return notes
}

// Builtins returns the host's own tools, those that are off among them, by name.
func (h *Host) Builtins() []builtin.Offer { return slices.Clone(h.native) }
