package admission

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Rules are what an operator has allowed beyond what is admitted anyway. The zero
// value is nothing. They are not changed once they are in use.
type Rules struct {
	// Loopback admits this machine, under its own names and addresses, and by http,
	// whoever named it.
	Loopback bool

	hosts map[string]bool // in the form of hostOf, with or without a port
	nets  []netip.Prefix
}

// Allow returns rules that allow hosts, each a name or an address, with or without a
// port, or a range of addresses such as 10.1.0.0/16. A host is allowed whatever it
// resolves to, and by http; a range allows the hosts that resolve into it. Of a range,
// only one of a single address allows what is in the realm Never.
func Allow(entries ...string) (Rules, error) {
	r := Rules{hosts: make(map[string]bool)}
	for _, entry := range entries {
		if prefix, err := netip.ParsePrefix(entry); err == nil {
			r.nets = append(r.nets, prefix.Masked())
			continue
		}
		host, port := entry, ""
		if _, err := netip.ParseAddr(strings.Trim(entry, "[]")); err == nil {
			host = strings.Trim(entry, "[]")
		} else if h, p, err := net.SplitHostPort(entry); err == nil {
			n, ok := portOf(p, "")
			if !ok || p == "" {
				return Rules{}, fmt.Errorf("%q is not a host: its port is none", entry)
			}
			host, port = h, strconv.Itoa(int(n))
		}
		name, _, err := hostOf(host)
		if err != nil {
			return Rules{}, fmt.Errorf("%q is not a host", entry)
		}
		if port != "" {
			name = net.JoinHostPort(name, port)
		}
		r.hosts[name] = true
	}
	return r, nil
}

// names reports whether the rules have a host by its name.
func (r Rules) names(name string, port uint16) bool {
	return len(r.hosts) > 0 && (r.hosts[name] || r.hosts[net.JoinHostPort(name, strconv.Itoa(int(port)))])
}

// allows reports whether the rules have a host as it is spelled.
func (r Rules) allows(name string, addr netip.Addr, port uint16) bool {
	switch {
	case r.names(name, port):
		return true
	case addr.IsValid():
		return r.ranges(addr) || r.Loopback && addr.Unmap().IsLoopback()
	default:
		return r.Loopback && localhost(name)
	}
}

// ranges reports whether an address is within a range that is allowed. What an
// address of IPv6 holds is judged for itself: a range of a translator is no way around.
func (r Rules) ranges(addr netip.Addr) bool {
	addr = addr.Unmap()
	realm, _ := RealmOf(addr)
	if !slices.ContainsFunc(r.nets, func(p netip.Prefix) bool {
		return p.Contains(addr) && (realm != Never || p.IsSingleIP())
	}) {
		return false
	}
	inner, ok := held(addr)
	if !ok {
		return true
	}
	realm, _ = RealmOf(inner)
	return realm == Public || r.ranges(inner)
}

// URL says why a URL may not be used by one whom it may lead as far as within, as an
// [*Error], or nil. That is a matter of how it is spelled: nothing is resolved.
func (r Rules) URL(u *url.URL, within Realm) error {
	if e := r.url(u, within); e != nil {
		return e
	}
	return nil
}

func (r Rules) url(u *url.URL, within Realm) *Error {
	if u.Scheme != "http" && u.Scheme != "https" {
		return &Error{Reason: fmt.Sprintf("of the scheme %q, not https", u.Scheme)}
	}
	name, addr, err := hostOf(u.Hostname())
	if err != nil {
		return err
	}
	port, ok := portOf(u.Port(), u.Scheme)
	switch {
	case !ok:
		return &Error{Reason: "of a port that is none"}
	case u.User != nil && within == Public:
		return &Error{Reason: "a URL with a user's name in it"}
	}
	if r.allows(name, addr, port) {
		return nil
	}
	if addr.IsValid() {
		err = r.addr(name, addr, port, within)
	} else if realm, is := realmOfName(name); realm > within {
		err = &Error{Reason: is, Realm: realm}
	}
	here := localhost(name) || addr.IsLoopback()
	if err == nil && u.Scheme == "http" && !here {
		err = &Error{Reason: "plain http: https is required, except on loopback"}
	}
	return err
}

// Addr says why an address to which a host resolved may not be connected to, as an
// [*Error], or nil. The host is that of the URL.
func (r Rules) Addr(host string, to netip.AddrPort, within Realm) error {
	name, _, err := hostOf(host)
	if err == nil {
		err = r.addr(name, to.Addr(), to.Port(), within)
	}
	if err != nil {
		return err
	}
	return nil
}

func (r Rules) addr(name string, addr netip.Addr, port uint16, within Realm) *Error {
	realm, is := RealmOf(addr)
	switch {
	case realm <= within && realm != Never:
	case r.names(name, port):
	case addr.IsValid() && r.ranges(addr):
	case r.Loopback && realm == Loopback && (localhost(name) || name == addr.Unmap().String()):
	default:
		e := &Error{Reason: is, Realm: realm}
		if text := addr.String(); text != name {
			e.Host = text
		}
		return e
	}
	return nil
}

// Admit is the whole of admission: a URL, and the addresses that its host resolved
// to. It says why the URL or the first of the addresses is not admitted.
func (r Rules) Admit(u *url.URL, resolved []netip.Addr, within Realm) error {
	if err := r.URL(u, within); err != nil {
		return err
	}
	port, _ := portOf(u.Port(), u.Scheme)
	for _, addr := range resolved {
		if err := r.Addr(u.Hostname(), netip.AddrPortFrom(addr, port), within); err != nil {
			return err
		}
	}
	return nil
}
