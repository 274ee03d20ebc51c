package admission_test

import (
	"errors"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"crewhost/mcp/admission"
	"crewhost/mcp/admission/admissiontest"
)

// The tables of this package are those that others are held to, too.
var (
	addresses = admissiontest.Addresses()
	spellings = admissiontest.Spellings()
)

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

// A7: each way to spell a host.
func TestSpellings(t *testing.T) {
	if n := len(spellings) + len(addresses); n < 60 {
		t.Fatalf("only %d rows", n)
	}
	for _, s := range spellings {
		u, err := url.Parse(s.URL)
		if err != nil {
			t.Errorf("%s is no URL, and the row shows nothing: %v", s.URL, err)
			continue
		}
		err = admission.Rules{}.URL(u, admission.Public)
		if s.Reason == "" && err != nil || s.Reason != "" && (err == nil || !strings.Contains(err.Error(), s.Reason)) {
			t.Errorf("%s: %v, want %q", s.URL, err, s.Reason)
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
		f.Add(s.URL, uint64(0), uint64(0x7f000001))
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
