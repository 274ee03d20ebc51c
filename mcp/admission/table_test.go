package admission_test

import (
	"errors"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"crewhost/mcp/admission"
)

// addresses are what hosts resolve to, each with its realm.
var addresses = map[string]admission.Realm{
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

// A7: each family of addresses, as what any host may have resolved to.
func TestAddresses(t *testing.T) {
	u := must(t, "https://mcp.example.com/mcp")
	for text, want := range addresses {
		addr := netip.MustParseAddr(text)
		got, is := admission.RealmOf(addr)
		if got != want {
			t.Errorf("%s is in realm %d (%s), want %d", text, got, is, want)
		}
		for within := admission.Public; within <= admission.Never; within++ {
			err := admission.Rules{}.Admit(u, []netip.Addr{addr}, within)
			if admitted := err == nil; admitted != (want <= within && want != admission.Never) {
				t.Errorf("%s within %d: %v", text, within, err)
			}
			if err != nil && !errors.As(err, new(*admission.Error)) {
				t.Errorf("%s: %T", text, err)
			}
		}
	}
}

// spellings are URLs that somebody else named. Those without a reason are admitted as
// far as their spelling goes.
var spellings = []struct{ url, reason string }{
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

// A7: each way to spell a host.
func TestSpellings(t *testing.T) {
	if n := len(spellings) + len(addresses); n < 60 {
		t.Fatalf("only %d rows", n)
	}
	for _, s := range spellings {
		u, err := url.Parse(s.url)
		if err != nil {
			t.Errorf("%s is no URL, and the row shows nothing: %v", s.url, err)
			continue
		}
		err = admission.Rules{}.URL(u, admission.Public)
		if s.reason == "" && err != nil || s.reason != "" && (err == nil || !strings.Contains(err.Error(), s.reason)) {
			t.Errorf("%s: %v, want %q", s.url, err, s.reason)
		}
	}
}

// Spellings of which no URL can be made.
func TestNoURL(t *testing.T) {
	for _, text := range []string{
		"https://127%2e0%2e0%2e1/", "https://[::1/", "https://::1/", "https://exam ple.com/", "https://mcp.example.com:-1/",
		"https://mcp.example.com:+443/", "https://mcp.example.com:４４３/", "https://mcp.example.com:0x1bb/", "https://a\x00b/",
		"https://mcp.example.com\\@127.0.0.1/", "https://[127.0.0.1]x/",
	} {
		if u, err := url.Parse(text); err == nil && (admission.Rules{}).URL(u, admission.Public) == nil {
			t.Errorf("%q is admitted as host %q", text, u.Host)
		}
	}
}

// An operator's own URL leads anywhere but to what is nobody's business (W4).
func TestOperator(t *testing.T) {
	for text, reason := range map[string]string{
		"http://localhost:3000/mcp": "", "http://127.0.0.1:1/": "", "http://[::1]:1/": "", "http://a.localhost/": "",
		"https://10.0.0.1/": "", "https://wiki/": "", "https://wiki.corp/": "", "https://u:p@mcp.example.com/": "",
		"https://[64:ff9b::8.8.8.8]/": "", "http://10.0.0.1/": "plain http", "http://wiki/": "plain http",
		"https://169.254.169.254/": "a cloud's metadata", "https://metadata.google.internal/": "a cloud's metadata",
		"https://169.254.7.7/": "the local link", "https://[fe80::1]/": "the local link", "https://0.0.0.0/": "unspecified",
		"https://[64:ff9b::a9fe:a9fe]/": "a cloud's metadata", "https://127.1/": "a number", "https://100.100.100.200/": "a cloud's metadata",
	} {
		err := admission.Rules{}.URL(must(t, text), admission.Loopback)
		if reason == "" && err != nil || reason != "" && (err == nil || !strings.Contains(err.Error(), reason)) {
			t.Errorf("%s: %v, want %q", text, err, reason)
		}
	}
}

// What an operator allows besides, and no more than that.
func TestAllow(t *testing.T) {
	for _, c := range []struct {
		allow    string
		url      string
		resolved string
		want     bool
	}{
		{"wiki.corp", "https://wiki.corp/", "10.0.0.1", true},
		{"wiki.corp", "http://WIKI.corp.:8080/", "10.0.0.1", true},
		{"WIKI.corp.", "https://wiki.corp/", "169.254.169.254", true}, // by name: the operator answers for it
		{"wiki.corp", "https://other.corp/", "10.0.0.1", false},
		{"wiki.corp", "https://sub.wiki.corp/", "10.0.0.1", false},
		{"wiki.corp:8443", "https://wiki.corp:8443/", "10.0.0.1", true},
		{"wiki.corp:8443", "https://wiki.corp/", "10.0.0.1", false},
		{"wiki.corp:443", "https://wiki.corp/", "10.0.0.1", true},
		{"10.0.0.1", "http://10.0.0.1/", "10.0.0.1", true},
		{"10.0.0.1", "https://mcp.example.com/", "10.0.0.1", false}, // it names a host, not what hosts resolve to
		{"10.0.0.0/8", "https://mcp.example.com/", "10.0.0.1", true},
		{"10.0.0.0/8", "http://10.2.3.4/", "10.2.3.4", true},
		{"10.0.0.0/8", "http://mcp.example.com/", "10.0.0.1", false},
		{"10.0.0.0/8", "https://mcp.example.com/", "::ffff:10.0.0.1", true},
		{"10.0.0.0/8", "https://mcp.example.com/", "192.168.0.1", false},
		{"0.0.0.0/0", "https://mcp.example.com/", "10.0.0.1", true},
		{"0.0.0.0/0", "https://mcp.example.com/", "169.254.169.254", false}, // a range does not name it
		{"::/0", "https://mcp.example.com/", "fd00:ec2::254", false},
		{"169.254.169.254/32", "https://mcp.example.com/", "169.254.169.254", true},
		{"169.254.169.254", "https://169.254.169.254/", "169.254.169.254", true},
		{"64:ff9b::/96", "https://mcp.example.com/", "64:ff9b::808:808", true}, // a network of IPv6 alone
		{"64:ff9b::/96", "https://mcp.example.com/", "64:ff9b::a00:1", false},
		{"64:ff9b::/96", "https://mcp.example.com/", "64:ff9b::7f00:1", false},
		{"64:ff9b::/96", "https://mcp.example.com/", "64:ff9b::a9fe:a9fe", false},
		{"[::1]:8080", "http://[::1]:8080/", "::1", true},
		{"[::1]:8080", "https://[::1:8080]/", "::1:8080", false},
		{"::1", "http://[::1]:8080/", "::1", true},
	} {
		rules, err := admission.Allow(c.allow)
		if err != nil {
			t.Fatal(err)
		}
		err = rules.Admit(must(t, c.url), []netip.Addr{netip.MustParseAddr(c.resolved)}, admission.Public)
		if (err == nil) != c.want {
			t.Errorf("%s allowed, %s at %s: %v, want %v", c.allow, c.url, c.resolved, err, c.want)
		}
	}
	for _, wrong := range []string{"", "https://a.example.com", "a/b", "*.corp", "a.corp:0", "a.corp:http", "127.1", "10.0.0.0/33", "a b", "a.corp:"} {
		if _, err := admission.Allow(wrong); err == nil {
			t.Errorf("%q is taken for a host", wrong)
		}
	}
}

// Loopback for development is loopback by its own names, and not what somebody's name
// resolves to.
func TestAllowLoopback(t *testing.T) {
	rules := admission.Rules{Loopback: true}
	for text, want := range map[string]bool{
		"http://localhost:1/": true, "http://127.0.0.1:1/": true, "https://[::1]/": true,
		"https://mcp.example.com/": false, "https://10.0.0.1/": false, "http://localhost.localdomain/": false,
	} {
		u := must(t, text)
		addr, err := netip.ParseAddr(u.Hostname())
		if err != nil {
			addr = netip.MustParseAddr("127.0.0.1")
		}
		if err := rules.Admit(u, []netip.Addr{addr}, admission.Public); (err == nil) != want {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func must(t testing.TB, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// FuzzAdmission: nothing that is read as a URL makes admission panic, and what it
// admits of is, by the words of net/netip, in the public network.
func FuzzAdmission(f *testing.F) {
	for _, s := range spellings {
		f.Add(s.url, uint64(0), uint64(0x7f000001))
	}
	for text := range addresses {
		b := netip.MustParseAddr(text).As16()
		var hi, lo uint64
		for i := range 8 {
			hi, lo = hi<<8|uint64(b[i]), lo<<8|uint64(b[i+8])
		}
		f.Add("https://mcp.example.com/", hi, lo)
	}
	rules, err := admission.Allow("wiki.corp")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string, hi, lo uint64) {
		var b [16]byte
		for i := range 8 {
			b[i], b[i+8] = byte(hi>>(56-8*i)), byte(lo>>(56-8*i))
		}
		addr := netip.AddrFrom16(b)
		u, err := url.Parse(text)
		if err != nil {
			return
		}
		_, _ = admission.Allow(text)
		_ = rules.URL(u, admission.Loopback)
		if (admission.Rules{}).Admit(u, []netip.Addr{addr}, admission.Public) != nil {
			return
		}
		if literal, err := netip.ParseAddr(u.Hostname()); err == nil {
			public(t, literal)
		}
		public(t, addr)
		if u.Scheme != "https" || u.User != nil || u.Hostname() == "" {
			t.Errorf("admitted %q", text)
		}
	})
}

func public(t *testing.T, addr netip.Addr) {
	t.Helper()
	addr = addr.Unmap()
	if !addr.IsGlobalUnicast() || addr.IsPrivate() || addr.IsLoopback() || addr.IsLinkLocalUnicast() || addr.IsMulticast() || addr.IsUnspecified() || addr.Zone() != "" {
		t.Errorf("admitted %s", addr)
	}
}
