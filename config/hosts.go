package config

import (
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"crewhost/config/strict"
)

// hostName is a name that stands for itself: no pattern, no scheme, no path.
var hostName = regexp.MustCompile(`^[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?$`)

// numeric is the end of a name that makes programs take it for an address, each in
// its way, such as 127.1 or 0x7f000001.
var numeric = regexp.MustCompile(`(^|\.)([0-9]+|0x[0-9a-f]*)$`)

// named reports whether s has the form of a name and no more than max bytes. The
// length is no part of the form: compiling hundreds of repetitions would cost each
// start of the program more than anything else here.
func named(form *regexp.Regexp, s string, max int) bool {
	return len(s) <= max && form.MatchString(s)
}

// hosts reads the list of allowed hosts; nil where there is none (W4).
func hosts(d *strict.Decoder, list *[]strict.At[word]) []string {
	if list == nil {
		return nil
	}
	out := []string{}
	for _, h := range texts(d, *list, "mcp.allowed_hosts") {
		host, ok := allowedHost(string(h.V))
		if !ok {
			d.Fail(h.Pos, strict.CodeBadValue, "mcp.allowed_hosts: "+strict.Quote(string(h.V))+" is not a host", "HOST or HOST:PORT, without a scheme, a path or a pattern")
			continue
		}
		out = append(out, host)
	}
	return out
}

// allowedHost is a host of the list in the form that [MCP.Allows] compares.
func allowedHost(text string) (string, bool) {
	host, port := strings.ToLower(text), ""
	if addr, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return addr.String(), true
	}
	if h, p, err := net.SplitHostPort(host); err == nil {
		n, err := strconv.ParseUint(p, 10, 16)
		if err != nil || n == 0 {
			return "", false
		}
		host, port = h, strconv.FormatUint(n, 10)
	}
	addr, err := netip.ParseAddr(host)
	switch host = strings.TrimSuffix(host, "."); {
	case err == nil:
		host = addr.String()
	case !named(hostName, host, 253) || strings.Contains(host, "..") || numeric.MatchString(host):
		return "", false
	}
	if port != "" {
		host = net.JoinHostPort(host, port)
	}
	return host, true
}

// Allows reports whether a server may be reached at u as far as AllowedHosts
// says (W4).
func (m MCP) Allows(u *url.URL) bool {
	if m.AllowedHosts == nil {
		return true
	}
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if addr, err := netip.ParseAddr(host); err == nil {
		host = addr.String()
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	for _, allowed := range m.AllowedHosts {
		if allowed == host || allowed == net.JoinHostPort(host, port) {
			return true
		}
	}
	return false
}
