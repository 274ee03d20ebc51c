package admission

import (
	"net/netip"
	"strconv"
	"strings"

	"golang.org/x/net/idna"
)

// hostOf is a host of a URL in its one form: a name in lower case, or an address. A
// spelling that programs read in different ways has none, and is told as an error.
func hostOf(raw string) (name string, addr netip.Addr, err *Error) {
	refuse := func(reason string) (string, netip.Addr, *Error) {
		return "", netip.Addr{}, &Error{Reason: reason}
	}
	switch {
	case raw == "":
		return refuse("without a host")
	case len(raw) > 255:
		return refuse("of a host that is no name")
	case strings.Contains(raw, "%"):
		return refuse("an address of one link alone")
	case strings.Contains(raw, ":"):
		addr, err := netip.ParseAddr(raw)
		switch {
		case err != nil:
			return refuse("of a host that is no name")
		case addr.Is4In6():
			return refuse("of an IPv4 address that is spelled as one of IPv6")
		}
		return addr.String(), addr, nil
	}
	name = strings.ToLower(raw)
	if !ascii(name) {
		mapped, err := idna.Lookup.ToASCII(name)
		if err != nil {
			return refuse("of a host that is no name")
		}
		name = mapped
	}
	name = strings.TrimSuffix(name, ".")
	labels := strings.Split(name, ".")
	for _, label := range labels {
		if label == "" || len(label) > 63 || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return refuse("of a host that is no name")
		}
	}
	if addr, err := netip.ParseAddr(name); err == nil {
		return name, addr, nil
	}
	if number(labels[len(labels)-1]) {
		return refuse("of a host that is a number, which programs read in different ways")
	}
	return name, netip.Addr{}, nil
}

func ascii(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r >= 0x80 }) < 0
}

// number reports whether the last label of a host makes programs take the whole for
// an address: it is one in decimal, octal or hexadecimal.
func number(label string) bool {
	if digits, ok := strings.CutPrefix(label, "0x"); ok {
		return strings.Trim(digits, "0123456789abcdef") == ""
	}
	return strings.Trim(label, "0123456789") == ""
}

// portOf is the port of a URL, or the one of its scheme.
func portOf(port, scheme string) (uint16, bool) {
	switch {
	case port == "" && scheme == "https":
		return 443, true
	case port == "":
		return 80, true
	}
	n, err := strconv.ParseUint(port, 10, 16)
	return uint16(n), err == nil && n > 0
}

// localhost reports whether a name is this machine's by a rule that every resolver
// should know, but not all do.
func localhost(name string) bool { return name == "localhost" || strings.HasSuffix(name, ".localhost") }

// ownNames are further names of this machine, which files of hosts give it.
var ownNames = map[string]bool{
	"localhost.localdomain": true, "localhost4": true, "localhost6": true, "localhost4.localdomain4": true,
	"localhost6.localdomain6": true, "ip6-localhost": true, "ip6-loopback": true, "broadcasthost": true,
}

// metadataNames are those under which clouds hand out credentials.
var metadataNames = map[string]bool{
	"metadata.google.internal": true, "metadata.goog": true, "metadata": true, "instance-data": true,
	"instance-data.ec2.internal": true, "metadata.azure.internal": true, "metadata.azure.com": true,
	"metadata.tencentyun.com": true, "metadata.platformequinix.com": true, "metadata.packet.net": true,
	"metadata.oraclecloud.com": true, "rancher-metadata": true,
}

// inside are the ends of names that a network has for itself.
var inside = []string{
	".internal", ".local", ".localdomain", ".svc", ".cluster.local", ".consul", ".home.arpa", ".lan",
	".home", ".corp", ".intranet", ".private", ".in-addr.arpa", ".ip6.arpa", ".onion", ".test", ".invalid",
}

// realmOfName is the realm of a name as far as it tells by itself.
func realmOfName(name string) (Realm, string) {
	switch {
	case metadataNames[name]:
		return Never, "a name of a cloud's metadata"
	case localhost(name) || ownNames[name]:
		return Loopback, "on loopback"
	case !strings.Contains(name, "."):
		return Private, "a name without a domain, which only a private network knows"
	}
	for _, end := range inside {
		if strings.HasSuffix(name, end) {
			return Private, "a name of a private network"
		}
	}
	return Public, ""
}

// Here reports whether a host of a URL is this machine, by its name or address alone.
func Here(host string) bool {
	name, addr, err := hostOf(host)
	if err != nil {
		return false
	}
	if addr.IsValid() {
		realm, _ := RealmOf(addr)
		return realm == Loopback
	}
	return localhost(name)
}
