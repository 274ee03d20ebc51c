package runner

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"time"

	"crewhost/config"
	"crewhost/config/secret"
	"crewhost/runner/approvals"
	"crewhost/tools/permission"
)

// keptApprovals are what a person allowed always under the settings of a host, of one
// crew's calls or of those that are no crew's.
type keptApprovals struct {
	store    approvals.Store
	settings string
	crew     string
	servers  []config.Server
}

// approvals returns those of a crew, or with "" of calls from outside any; nil: none
// are kept, because the settings say so, or there is nothing that they would be under.
func (h *Host) approvals(crew string) permission.Approvals {
	if h.replays() {
		return h.taped.approvals()
	}
	path := h.cfg.Settings.Permissions.Approvals
	if path == "" || h.cfg.Settings.Path == "" && crew == "" {
		return nil
	}
	return keptApprovals{approvals.Store{Path: path}, h.cfg.Settings.Path, crew, h.everyServer()}
}

// everyServer returns the servers of the settings and those of agents.
func (h *Host) everyServer() []config.Server {
	servers := slices.Clip(h.cfg.Settings.MCP.Servers)
	for _, name := range h.brought.names() {
		servers = append(servers, serverOf("", h.brought[name]))
	}
	return servers
}

// entry is an approval with all that it is bound to here.
func (k keptApprovals) entry(a permission.Approval) approvals.Entry {
	e := approvals.Entry{
		Settings: k.settings, Crew: k.crew, Agent: a.Agent, Asked: a.Asked,
		Server: a.Server, Tool: a.Tool, Definition: a.Definition,
	}
	if a.Server != "" {
		e.Identity = "none" // a name that no server has
	}
	for _, s := range k.servers {
		if s.Name == a.Server {
			e.Endpoint, e.Identity = endpoint(s)
		}
	}
	return e
}

// Foresee implements [permission.Approvals].
func (k keptApprovals) Foresee(a permission.Approval) permission.Standing {
	standing, err := k.store.Standing(k.entry(a))
	if err != nil {
		return permission.Unknown
	}
	return standing
}

// Standing implements [permission.Approvals].
func (k keptApprovals) Standing(_ context.Context, a permission.Approval) (permission.Standing, error) {
	return k.store.Standing(k.entry(a))
}

// Keep implements [permission.Approvals].
func (k keptApprovals) Keep(ctx context.Context, a permission.Approval) error {
	e := k.entry(a)
	e.At = time.Now().UTC().Truncate(time.Second)
	return k.store.Keep(ctx, e)
}

// checkApprovals reads what was allowed always, so that a damaged file is known before
// anything starts.
func checkApprovals(s *config.Settings) error {
	if s.Permissions.Approvals == "" {
		return nil
	}
	_, err := approvals.Store{Path: s.Permissions.Approvals}.List()
	return err
}

// endpoint says where a server is: as it was written, without its credentials, and a
// digest of what that means, variables and all. Headers, the environment, and of a URL
// the user and the query are no part of it: they say who calls, and not where.
func endpoint(s config.Server) (written, identity string) {
	parts := []string{string(s.Transport)}
	if s.Transport.Remote() {
		parts = append(parts, siteOf(s.URL.Reveal()))
		written = siteOf(s.URL.String())
	} else {
		parts = append(parts, s.Cwd, s.Command.Reveal())
		words := []string{s.Command.String()}
		for _, arg := range s.Args {
			parts, words = append(parts, arg.Reveal()), append(words, arg.String())
		}
		written = strings.Join(words, " ")
	}
	data, err := json.Marshal(parts)
	if err != nil {
		panic(err) // texts
	}
	sum := sha256.Sum256(data)
	return secret.MaskTokens(written), "sha256:" + hex.EncodeToString(sum[:])
}

// siteOf is a URL without user, query and fragment.
func siteOf(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		raw, _, _ = strings.Cut(raw, "?")
		return raw
	}
	u.User, u.RawQuery, u.Fragment, u.RawFragment, u.ForceQuery = nil, "", "", "", false
	u.Scheme, u.Host = strings.ToLower(u.Scheme), strings.ToLower(u.Host)
	return u.String()
}
