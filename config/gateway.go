package config

import (
	"net/netip"
	"net/url"

	"crewhost/config/secret"
	"crewhost/config/strict"
)

// Gateway is what may be reached over HTTP beyond what is admitted anyway, and how
// (A7).
type Gateway struct {
	// Allow are hosts, each a name or an address, lower-cased, with or without a port,
	// and ranges of addresses such as 10.1.0.0/16.
	Allow []string
	// Loopback is whether servers of agents may be on this machine.
	Loopback bool
	// Proxy carries the requests to servers of the settings; zero is none.
	Proxy secret.Text
}

type gatewayDocument struct {
	Allow    []strict.At[word] `key:"allow"`
	Loopback bool              `key:"loopback"`
	Proxy    strict.At[scalar] `key:"proxy"`
}

func (l *loader) gateway(x *expander, doc gatewayDocument) Gateway {
	g := Gateway{Loopback: doc.Loopback}
	for _, entry := range texts(x.d, doc.Allow, "mcp.gateway.allow") {
		host, ok := allowedHost(string(entry.V))
		if prefix, err := netip.ParsePrefix(string(entry.V)); err == nil {
			host, ok = prefix.Masked().String(), true
		}
		if !ok {
			x.d.Fail(entry.Pos, strict.CodeBadValue, "mcp.gateway.allow: "+strict.Quote(string(entry.V))+" is neither a host nor a range of addresses",
				"HOST, HOST:PORT or ADDRESS/BITS, without a scheme, a path or a pattern")
			continue
		}
		g.Allow = append(g.Allow, host)
	}
	if !doc.Proxy.Set || doc.Proxy.V == "" {
		return g
	}
	g.Proxy = x.text(doc.Proxy, "mcp.gateway.proxy", plainText)
	switch u, err := url.Parse(g.Proxy.Reveal()); {
	case g.Proxy.IsZero(): // a variable of it is missing, which is told
	case err != nil || u.Hostname() == "" || u.Path != "" && u.Path != "/" || u.RawQuery != "":
		x.d.Fail(doc.Proxy.Pos, strict.CodeBadValue, "mcp.gateway.proxy is not the URL of a proxy", "http://HOST:PORT, https://… or socks5://…")
	case u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "socks5":
		x.d.Fail(doc.Proxy.Pos, strict.CodeBadValue, "mcp.gateway.proxy is of the scheme "+strict.Quote(u.Scheme)+", not http, https or socks5", "")
	}
	return g
}
