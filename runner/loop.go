package runner

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"crewhost/config"
	"crewhost/mcp"
)

// A host whose settings start a host on the same settings would start hosts until
// the machine gives up. Whoever starts servers therefore adds itself to a chain in
// the environment of its children, and does not start where it finds itself there.
// Different hosts may stand behind each other, up to maxHosts.

// maxHosts is how many hosts may run under each other.
const maxHosts = 8

// LoopError says that a host would come to be its own server.
type LoopError struct{ text string }

// Error says how, in one line.
func (e *LoopError) Error() string { return e.text }

// underHosts returns environ with this host added to the chain, or a [*LoopError].
// A host that starts no server is in no chain.
func underHosts(settings *config.Settings, environ []string) ([]string, error) {
	if !settings.MCP.Enabled || len(settings.MCP.Servers) == 0 {
		return environ, nil
	}
	var chain []string
	for _, line := range environ {
		if value, ok := strings.CutPrefix(line, mcp.HostsVariable+"="); ok {
			chain = strings.FieldsFunc(value, func(r rune) bool { return r == '/' })
		}
	}
	self := identity(settings)
	path := settings.Path
	if path == "" {
		path = "the environment"
	}
	switch {
	case slices.Contains(chain, self):
		return nil, &LoopError{fmt.Sprintf("this host runs under itself: it was started, as an MCP server or by one, by a host on the same settings (%s), which would start it again; %s says so",
			path, mcp.HostsVariable)}
	case len(chain) >= maxHosts:
		return nil, &LoopError{fmt.Sprintf("this host runs under %d others, which is as deep as hosts may stand; %s counts them", len(chain), mcp.HostsVariable)}
	}
	return append(slices.Clip(environ), mcp.HostsVariable+"="+strings.Join(append(chain, self), "/")), nil
}

// identity tells hosts apart by what they start: the file of the settings, and
// the servers that came of it and the environment. It holds no secret: what is
// one is hashed as it is shown.
func identity(settings *config.Settings) string {
	h := sha256.New()
	put := func(parts ...string) {
		for _, p := range parts {
			fmt.Fprintf(h, "%d:%s", len(p), p)
		}
	}
	put(settings.Path)
	for _, s := range settings.MCP.Servers {
		put(s.Name, string(s.Transport), s.Command.String(), s.URL.String(), s.Cwd)
		for _, a := range s.Args {
			put(a.String())
		}
		for _, v := range s.Env {
			put(v.Name, v.Value.String())
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// apartFrom refuses servers of the settings that are this host itself, by the
// address that it is to listen on.
func apartFrom(settings *config.Settings, listen string) error {
	host, port, err := net.SplitHostPort(listen)
	if err != nil || port == "0" || !settings.MCP.Enabled {
		return nil // what is wrong with it, whoever listens says
	}
	for _, s := range settings.MCP.Servers {
		u, err := url.Parse(s.URL.Reveal())
		if !s.Transport.Remote() || err != nil {
			continue
		}
		there := u.Port()
		if there == "" {
			there = map[string]string{"http": "80", "https": "443"}[u.Scheme]
		}
		if there == port && reaches(u.Hostname(), host) {
			return &LoopError{fmt.Sprintf("MCP server %q is this host itself: %s is reached where it listens, %s", s.Name, s.URL, listen)}
		}
	}
	return nil
}

// reaches reports whether a connection to host ends at who listens on address.
// Names other than localhost are not looked up.
func reaches(host, address string) bool {
	local := func(h string) (loopback, any bool) {
		h = strings.TrimSuffix(strings.ToLower(h), ".")
		if h == "localhost" {
			return true, false
		}
		if h == "" {
			return false, true
		}
		addr, err := netip.ParseAddr(h)
		return err == nil && addr.Unmap().IsLoopback(), err == nil && addr.IsUnspecified()
	}
	loopback, unspecified := local(host)
	ours, everywhere := local(address)
	switch {
	case strings.EqualFold(host, address):
		return true
	case everywhere:
		return loopback || unspecified || isOwn(host)
	default:
		return ours && (loopback || unspecified)
	}
}

// isOwn reports whether an address is one of this machine's.
func isOwn(host string) bool {
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return false
	}
	own, err := net.InterfaceAddrs()
	if err != nil {
		return false
	}
	return slices.ContainsFunc(own, func(a net.Addr) bool {
		prefix, err := netip.ParsePrefix(a.String())
		return err == nil && prefix.Addr().Unmap() == addr.Unmap()
	})
}
