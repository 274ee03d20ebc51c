package oauth

import (
	"fmt"
	"net"
	"net/url"
	"strings"

	"crewhost/config/secret"
)

// origin is scheme, host and port of a URL.
func origin(u *url.URL) string {
	n, err := secret.Binding((&url.URL{Scheme: u.Scheme, Host: u.Host}).String())
	if err != nil {
		return ""
	}
	return n
}

// covers reports whether a resource is the one at a URL, or holds it: the same
// origin, and a path that is the other's or above it.
func covers(resource, target string) bool {
	r, err1 := secret.Binding(resource)
	u, err2 := secret.Binding(target)
	return err1 == nil && err2 == nil && (r == u || strings.HasPrefix(u, r+"/") && !strings.Contains(r, "?"))
}

// loopback reports whether a host is this machine, by its name or address alone.
func loopback(host string) bool {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// admissible reports why an endpoint may not be used. Loopback is for servers that
// are there themselves: no other has business with this machine.
func (a *Authorizer) admissible(u *url.URL) error {
	here := loopback(u.Hostname())
	switch {
	case u.Hostname() == "":
		return fmt.Errorf("the OAuth endpoint %q names no host", brief(u.Redacted()))
	case here && !loopback(a.target.Hostname()):
		return fmt.Errorf("the OAuth endpoint %s is on loopback and the server is not", brief(origin(u)))
	case u.Scheme == "http" && !here:
		return fmt.Errorf("the OAuth endpoint %s is plain http: https is required, except on loopback", brief(origin(u)))
	case u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("the OAuth endpoint has the scheme %q, not https", brief(u.Scheme))
	case a.cfg.Allowed != nil && !a.cfg.Allowed(u):
		return fmt.Errorf("the OAuth endpoint %s is not among the hosts that may be called (mcp.allowed_hosts)", brief(origin(u)))
	case linkLocal(u.Hostname()):
		return fmt.Errorf("the OAuth endpoint %s is an address of the local link", brief(origin(u)))
	}
	return nil
}

// linkLocal reports whether a host is an address at which clouds keep the
// credentials of their machines.
func linkLocal(host string) bool {
	ip := net.ParseIP(host)
	return ip != nil && (ip.IsLinkLocalUnicast() || ip.IsUnspecified() || ip.IsMulticast())
}
