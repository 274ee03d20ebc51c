package secret

import (
	"errors"
	"net"
	"net/url"
	"strings"
)

// Binding returns the URL of a server as credentials are bound to it (A8): scheme
// and host in lower case, without default port, trailing slash, user or fragment.
// All else must be equal, so that a credential of one path is none of another.
// Errors do not repeat the URL, which may hold a secret.
func Binding(raw string) (string, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return "", errors.New("the url is not a URL")
	}
	if u.Hostname() == "" {
		return "", errors.New("the url names no host")
	}
	n := *u
	n.User, n.Fragment, n.RawFragment = nil, "", ""
	n.Scheme = strings.ToLower(u.Scheme)
	n.Host = strings.ToLower(u.Hostname())
	port := u.Port()
	if port == "443" && n.Scheme == "https" || port == "80" && n.Scheme == "http" {
		port = ""
	}
	switch {
	case port != "":
		n.Host = net.JoinHostPort(n.Host, port)
	case strings.Contains(n.Host, ":"):
		n.Host = "[" + n.Host + "]"
	}
	n.Path = strings.TrimRight(u.Path, "/")
	n.RawPath = strings.TrimRight(u.RawPath, "/")
	n.ForceQuery = false
	return n.String(), nil
}
