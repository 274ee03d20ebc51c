// Package admissiontest has the tables that whatever goes out over HTTP is held to in
// tests: hosts as they are spelled, and addresses that hosts resolve to.
package admissiontest

import (
	"strings"

	"crewhost/mcp/admission"
)

// Addresses are what hosts resolve to, each with its realm.
func Addresses() map[string]admission.Realm {
	return map[string]admission.Realm{
		// The public network.
		"1.1.1.1": admission.Public, "8.8.8.8": admission.Public, "93.184.216.34": admission.Public,
		"172.15.255.255": admission.Public, "172.32.0.0": admission.Public, "192.167.255.255": admission.Public,
		"100.63.255.255": admission.Public, "100.128.0.0": admission.Public, "169.253.255.255": admission.Public,
		"223.255.255.255": admission.Public, "168.63.129.15": admission.Public, "11.0.0.0": admission.Public,
		"2606:4700::1111": admission.Public, "2001:4860:4860::8888": admission.Public, "2a00:1450::1": admission.Public,
		"::ffff:8.8.8.8": admission.Public, // as a resolver may give it

		// Private networks, and what is set aside.
		"10.0.0.1": admission.Private, "10.255.255.255": admission.Private, "172.16.0.1": admission.Private,
		"172.31.255.255": admission.Private, "192.168.0.1": admission.Private, "192.168.255.255": admission.Private,
		"100.64.0.1": admission.Private, "100.127.255.255": admission.Private, "fc00::1": admission.Private,
		"fdff::1": admission.Private, "fec0::1": admission.Private, "feff::1": admission.Private,
		"::ffff:10.0.0.1": admission.Private, "::ffff:192.168.1.1": admission.Private,
		"192.0.0.1": admission.Private, "192.0.2.1": admission.Private, "198.51.100.1": admission.Private,
		"203.0.113.1": admission.Private, "198.18.0.1": admission.Private, "198.19.255.255": admission.Private,
		"192.88.99.1": admission.Private, "192.31.196.1": admission.Private, "192.52.193.1": admission.Private,
		"192.175.48.1": admission.Private, "2001:db8::1": admission.Private, "3fff::1": admission.Private,
		"100::1": admission.Private, "5f00::1": admission.Private, "2001:2::1": admission.Private,
		"2001:10::1": admission.Private, "2620:4f:8000::1": admission.Private, "4000::1": admission.Private,
		"64:ff9b::8.8.8.8": admission.Private, "64:ff9b::a00:1": admission.Private, "64:ff9b:1::808:808": admission.Private,
		"2002:808:808::1": admission.Private, "2002:a00:1::1": admission.Private, "2001:0:0:0:0:0:f7f7:f7f7": admission.Private,
		"::8.8.8.8": admission.Private, "::ffff:0:8.8.8.8": admission.Private,

		// This machine.
		"127.0.0.1": admission.Loopback, "127.255.255.254": admission.Loopback, "::1": admission.Loopback,
		"::ffff:127.0.0.1": admission.Loopback, "64:ff9b::7f00:1": admission.Loopback, "64:ff9b:1::7f00:1": admission.Loopback,
		"2002:7f00:1::1": admission.Loopback, "2001::80ff:fffe": admission.Loopback, "::127.0.0.1": admission.Loopback,
		"::ffff:0:127.0.0.1": admission.Loopback,

		// Nobody's business.
		"169.254.169.254": admission.Never, "169.254.170.2": admission.Never, "169.254.170.23": admission.Never,
		"fd00:ec2::23": admission.Never, "fd00:ec2::254": admission.Never, "fd20:ce::254": admission.Never,
		"100.100.100.200": admission.Never, "192.0.0.192": admission.Never, "168.63.129.16": admission.Never,
		"::ffff:169.254.169.254": admission.Never, "::ffff:168.63.129.16": admission.Never,
		"64:ff9b::a9fe:a9fe": admission.Never, "64:ff9b:1::a9fe:a9fe": admission.Never, "2002:a9fe:a9fe::1": admission.Never,
		"2001::5601:5601": admission.Never, "::169.254.169.254": admission.Never, "64:ff9b::6464:64c8": admission.Never,
		"169.254.0.1": admission.Never, "fe80::1": admission.Never, "fe80::1%eth0": admission.Never, "febf::1": admission.Never,
		"0.0.0.0": admission.Never, "0.1.2.3": admission.Never, "::": admission.Never, "::ffff:0.0.0.0": admission.Never,
		"224.0.0.1": admission.Never, "239.255.255.250": admission.Never, "ff02::1": admission.Never, "ff0e::1": admission.Never,
		"240.0.0.1": admission.Never, "255.255.255.255": admission.Never, "2606:4700::1%lo": admission.Never,
	}
}

// A Spelling is a URL that somebody else named, and why it is not admitted within the
// public network: words of the error. One without a reason is admitted as far as its
// spelling goes.
type Spelling struct{ URL, Reason string }

// Spellings are the ways to spell a host.
func Spellings() []Spelling {
	return []Spelling{
		{"https://mcp.example.com/mcp", ""},
		{"https://MCP.Example.COM./mcp?a=b", ""},
		{"https://mcp.example.com:8443/mcp", ""},
		{"https://1.1.1.1/", ""},
		{"https://[2606:4700::1111]:443/", ""},
		{"https://xn--bcher-kva.example/", ""},
		{"https://bücher.example/", ""},
		{"https://under_score.example.com/", ""},
		{"https://127.0.0.1.nip.io/", ""}, // the address decides

		{"http://mcp.example.com/mcp", "plain http"},
		{"http://1.1.1.1/", "plain http"},
		{"ftp://mcp.example.com/", `of the scheme "ftp"`},
		{"file:///etc/hosts", `of the scheme "file"`},
		{"gopher://mcp.example.com:70/_x", `of the scheme "gopher"`},
		{"javascript:alert(1)", `of the scheme "javascript"`},
		{"mcp.example.com/mcp", `of the scheme ""`},
		{"//mcp.example.com/mcp", `of the scheme ""`},
		{"https:///mcp", "without a host"},
		{"https://:443/mcp", "without a host"},
		{"https:mcp.example.com", "without a host"},

		{"https://user@mcp.example.com/", "a user's name"},
		{"https://user:word@mcp.example.com/", "a user's name"},
		{"https://mcp.example.com@127.0.0.1/", "a user's name"},
		{"https://@mcp.example.com/", "a user's name"},

		{"https://mcp.example.com:0/", "of a port"},
		{"https://mcp.example.com:65536/", "of a port"},
		{"https://mcp.example.com:99999999999/", "of a port"},

		{"https://127.0.0.1/", "on loopback"},
		{"https://127.0.0.1./", "on loopback"},
		{"https://127.0.0.1:8443/", "on loopback"},
		{"https://[::1]/", "on loopback"},
		{"https://[0:0:0:0:0:0:0:1]/", "on loopback"},
		{"https://localhost/", "on loopback"},
		{"https://LOCALHOST./", "on loopback"},
		{"https://a.localhost/", "on loopback"},
		{"https://localhost.localdomain/", "on loopback"},
		{"https://ip6-localhost/", "on loopback"},
		{"https://127.1/", "a number"},
		{"https://127.0.1/", "a number"},
		{"https://2130706433/", "a number"},
		{"https://017700000001/", "a number"},
		{"https://0177.0.0.1/", "a number"},
		{"https://0x7f000001/", "a number"},
		{"https://0x7F.0.0.0x1/", "a number"},
		{"https://0x/", "a number"},
		{"https://127.0.0.01/", "a number"},
		{"https://256.256.256.256/", "a number"},
		{"https://1.2.3.4.5/", "a number"},
		{"https://evil.example.1/", "a number"},
		{"https://１２７.０.０.１/", "on loopback"},
		{"https://127。0。0。1/", "on loopback"},
		{"https://①②⑦.0.0.1/", "on loopback"},
		{"https://ｌｏｃａｌｈｏｓｔ/", "on loopback"},
		{"https://１６９.２５４.１６９.２５４/", "a cloud's metadata"},
		{"https://[::ffff:127.0.0.1]/", "spelled as one of IPv6"},
		{"https://[::ffff:8.8.8.8]/", "spelled as one of IPv6"},
		{"https://[::ffff:a9fe:a9fe]/", "spelled as one of IPv6"},
		{"https://[64:ff9b::7f00:1]/", "on loopback"},
		{"https://[64:ff9b::8.8.8.8]/", "holds one of IPv4"},
		{"https://[2002:7f00:1::]/", "on loopback"},
		{"https://[fe80::1%25eth0]/", "of one link"},
		{"https://[::1%25lo]/", "of one link"},
		{"https://[fd12::1]/", "on a private network"},
		{"https://[fec0::1]/", "on a private network"},
		{"https://10.0.0.1/", "on a private network"},
		{"https://100.64.0.1/", "on a private network"},
		{"https://192.0.2.1/", "a special purpose"},
		{"https://0/", "a number"},
		{"https://0.0.0.0/", "unspecified"},
		{"https://[::]/", "unspecified"},
		{"https://255.255.255.255/", "reserved"},
		{"https://224.0.0.1/", "multicast"},

		{"https://169.254.169.254/latest/meta-data/", "a cloud's metadata"},
		{"https://2852039166/", "a number"}, // the same
		{"https://168.63.129.16/", "a cloud's metadata"},
		{"https://[fd00:ec2::254]/", "a cloud's metadata"},
		{"https://metadata.google.internal/", "a cloud's metadata"},
		{"https://METADATA.google.internal./", "a cloud's metadata"},
		{"https://metadata/", "a cloud's metadata"},
		{"https://instance-data/", "a cloud's metadata"},

		{"https://redis/", "without a domain"},
		{"https://vault.internal/", "a private network"},
		{"https://printer.local/", "a private network"},
		{"https://api.default.svc/", "a private network"},
		{"https://kubernetes.default.svc.cluster.local/", "a private network"},
		{"https://wiki.corp./", "a private network"},
		{"https://nas.home.arpa/", "a private network"},
		{"https://x.invalid/", "a private network"},

		{"https://a..example.com/", "no name"},
		{"https://.example.com/", "no name"},
		{"https://example.com../", "no name"},
		{"https://./", "no name"},
		{"https://exa%C2%ADmple.com/", ""}, // a soft hyphen is nothing, as it is to who connects
		{"https://a,b.example.com/", "no name"},
		{"https://a$b.example.com/", "no name"},
		{"https://" + strings.Repeat("a", 64) + ".com/", "no name"},
		{"https://" + strings.Repeat("a.", 130) + "com/", "no name"},
		{"https://xn--a.example.com/", ""}, // ASCII, and the resolver's to know
	}
}
