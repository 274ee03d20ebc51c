package admission

import (
	"net/netip"

	"code.dny.dev/ssrf"
)

// A Realm is where an address leads, and a bound of where one may: a realm and
// those before it.
type Realm int

// The realms, from far to near.
const (
	Public   Realm = iota
	Private        // a private network, or one that is set aside for some purpose
	Loopback       // this machine
	Never          // nothing that a server could be at
)

// metadata are the addresses at which clouds tell machines their credentials, and
// others that answer to whoever runs on a machine. Some are within ranges of
// private networks, and Azure's first is a public one.
var metadata = map[netip.Addr]bool{
	netip.MustParseAddr("169.254.169.254"): true, // AWS, Google, Azure, Oracle, DigitalOcean
	netip.MustParseAddr("169.254.170.2"):   true, // ECS
	netip.MustParseAddr("169.254.170.23"):  true, // EKS
	netip.MustParseAddr("168.63.129.16"):   true, // Azure's wire server
	netip.MustParseAddr("100.100.100.200"): true, // Alibaba
	netip.MustParseAddr("192.0.0.192"):     true, // Oracle, of old
	netip.MustParseAddr("fd00:ec2::23"):    true, // EKS
	netip.MustParseAddr("fd00:ec2::254"):   true, // AWS
	netip.MustParseAddr("fd20:ce::254"):    true, // Google
}

// Forms of IPv6 addresses that hold one of IPv4, to which some router or this
// machine's own stack takes what is sent to them.
var (
	nat64      = netip.MustParsePrefix("64:ff9b::/96")
	nat64Local = netip.MustParsePrefix("64:ff9b:1::/48")
	translated = netip.MustParsePrefix("::ffff:0:0:0/96")
	compatible = netip.MustParsePrefix("::/96")
	sixToFour  = netip.MustParsePrefix("2002::/16")
	teredo     = netip.MustParsePrefix("2001::/32")
)

var (
	thisNetwork = netip.MustParsePrefix("0.0.0.0/8") // which connects to this machine
	reserved    = netip.MustParsePrefix("240.0.0.0/4")
	sharedSpace = netip.MustParsePrefix("100.64.0.0/10")
	siteLocal   = netip.MustParsePrefix("fec0::/10")
)

// special knows the registries of addresses for special purposes.
var special = ssrf.New(ssrf.WithAnyPort(), ssrf.WithAnyNetwork())

// RealmOf returns the realm of an address, and what it is, in words that follow "it is".
// An address of IPv6 that holds one of IPv4 is at least as near as that one.
func RealmOf(addr netip.Addr) (realm Realm, is string) {
	if !addr.IsValid() {
		return Never, "no address"
	}
	if addr.Zone() != "" {
		return Never, "an address of one link alone"
	}
	addr = addr.Unmap()
	switch {
	case metadata[addr]:
		return Never, "an address of a cloud's metadata"
	case addr.IsUnspecified() || thisNetwork.Contains(addr):
		return Never, "an unspecified address"
	case addr.IsLoopback():
		return Loopback, "on loopback"
	case addr.IsLinkLocalUnicast():
		return Never, "an address of the local link"
	case addr.IsMulticast():
		return Never, "a multicast address"
	case reserved.Contains(addr):
		return Never, "a reserved address"
	}
	if inner, ok := held(addr); ok {
		realm, is := RealmOf(inner)
		if realm == Public {
			return Private, "an address of IPv6 that holds one of IPv4"
		}
		return realm, "an address of IPv6 that holds one of IPv4, and that is " + is
	}
	switch {
	case addr.IsPrivate() || sharedSpace.Contains(addr) || siteLocal.Contains(addr):
		return Private, "on a private network"
	case special.SafeAddr(addr) != nil || !addr.IsGlobalUnicast():
		return Private, "an address for a special purpose"
	}
	return Public, "a public address"
}

// held is the address of IPv4 that one of IPv6 holds.
func held(addr netip.Addr) (netip.Addr, bool) {
	if !addr.Is6() {
		return netip.Addr{}, false
	}
	b := addr.As16()
	switch {
	case sixToFour.Contains(addr):
		return netip.AddrFrom4([4]byte(b[2:6])), true
	case teredo.Contains(addr):
		return netip.AddrFrom4([4]byte{^b[12], ^b[13], ^b[14], ^b[15]}), true
	case nat64.Contains(addr), nat64Local.Contains(addr), translated.Contains(addr), compatible.Contains(addr):
		return netip.AddrFrom4([4]byte(b[12:])), true
	}
	return netip.Addr{}, false
}
