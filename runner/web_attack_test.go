package runner_test

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"crewhost/config/secret"
	"crewhost/config/secret/sealed"
	"crewhost/config/vault"
	"crewhost/mcp/admission"
	"crewhost/mcp/admission/admissiontest"
	"crewhost/mcp/gateway"
	"crewhost/tools"
	"crewhost/tools/builtin/web"
	"crewhost/tools/mount"
	"crewhost/tools/native"
)

// afar is where the tests' servers seem to be.
const afar = "93.184.216.34"

// An outside is a network that the gateway's own client leads into: behind admission,
// each address leads to one server, with a certificate for example.com and the names
// below it. It counts the connections.
type outside struct {
	t       *testing.T
	gateway *gateway.Gateway
	client  *http.Client // of http_api
	tools   map[string]native.Tool
	root    string // of what is mounted as /out

	mu       sync.Mutex
	answers  map[string][]string // addresses of names, one after the other; the last one stays
	dialled  []string
	requests []*http.Request
	told     []gateway.Forward
}

func newOutside(t *testing.T, v *vault.Vault, own gateway.Tool, allow []string, handler http.HandlerFunc) *outside {
	t.Helper()
	o := &outside{t: t, answers: make(map[string][]string), tools: make(map[string]native.Tool), root: t.TempDir()}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		o.mu.Lock()
		o.requests = append(o.requests, r)
		o.mu.Unlock()
		handler(w, r)
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	rules, err := admission.Allow(allow...)
	if err != nil {
		t.Fatal(err)
	}
	keys := gateway.NewKeys(v, new(secret.Redactor), nil)
	o.gateway, err = gateway.New(gateway.Config{
		Network: admission.Config{Rules: rules, Roots: roots, Resolver: o, Dial: func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
			o.mu.Lock()
			o.dialled = append(o.dialled, to.String())
			o.mu.Unlock()
			return new(net.Dialer).DialContext(ctx, "tcp", server.Listener.Addr().String())
		}},
		Keys: keys,
		Audit: func(_ context.Context, f gateway.Forward) {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.told = append(o.told, f)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		o.gateway.Close()
		keys.Close(0)
	})
	m, err := mount.Parse(o.root + ":/out:rw")
	if err != nil {
		t.Fatal(err)
	}
	fsys, err := mount.Open([]mount.Mount{m})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = fsys.Close() })
	o.client = o.gateway.Client(own)
	for _, tool := range web.Tools(web.Config{Client: o.client, FS: fsys, Timeout: 20 * time.Second}) {
		o.tools[tool.Name] = tool
	}
	return o
}

// LookupNetIP implements [admission.Resolver].
func (o *outside) LookupNetIP(_ context.Context, _, name string) ([]netip.Addr, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := []string{afar}
	if next := o.answers[name]; len(next) > 0 {
		now = next[:1]
		if len(next) > 1 {
			o.answers[name] = next[1:]
		}
	}
	return []netip.Addr{netip.MustParseAddr(now[0])}, nil
}

// took returns the connections and the requests since it was last asked.
func (o *outside) took() ([]string, []*http.Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	dialled, requests := o.dialled, o.requests
	o.dialled, o.requests = nil, nil
	return dialled, requests
}

func (o *outside) call(tool string, arguments map[string]any) (string, bool) {
	o.t.Helper()
	data, err := json.Marshal(arguments)
	if err != nil {
		o.t.Fatal(err)
	}
	res, err := o.tools[tool].Call(o.t.Context(), tools.Call{Name: tool, Arguments: data})
	if err != nil {
		o.t.Fatalf("%s %s: %v", tool, data, err)
	}
	return res.Content[0].Text, res.IsError
}

// ways are the ways in which a model gives a URL to a tool.
func ways() []struct {
	tool string
	more map[string]any
} {
	return []struct {
		tool string
		more map[string]any
	}{
		{"http_api", nil},
		{"http_api", map[string]any{"method": "POST", "body": map[string]any{"a": 1}}},
		{"http_api", map[string]any{"save_to": "/out/got"}},
		{"http_api", map[string]any{"headers": map[string]any{"X-Forwarded-Host": "example.com"}, "follow_redirects": false}},
		{"web_scrape", nil},
		{"web_scrape", map[string]any{"selector": "p", "format": "links"}},
	}
}

// refused holds a call to what a refusal is: a failure, no connection but to where the
// tests' servers seem to be, nothing written, and no address that the model didn't name.
func (o *outside) refused(what, tool string, arguments map[string]any, hidden ...string) string {
	o.t.Helper()
	text, failed := o.call(tool, arguments)
	if !failed {
		o.t.Errorf("%s: %s %v is answered: %.200s", what, tool, arguments, text)
	}
	dialled, _ := o.took()
	for _, to := range dialled {
		if host, _, _ := net.SplitHostPort(to); host != afar {
			o.t.Errorf("%s: %s %v connects to %s", what, tool, arguments, to)
		}
	}
	for _, h := range hidden {
		if h != "" && strings.Contains(text, h) {
			o.t.Errorf("%s: %s tells %q: %s", what, tool, h, text)
		}
	}
	if entries, err := os.ReadDir(o.root); err != nil || len(entries) != 0 {
		o.t.Errorf("%s: %s %v has written %v", what, tool, arguments, entries)
	}
	return text
}

func with1(more map[string]any, name string, value any) map[string]any {
	all := map[string]any{name: value}
	for k, v := range more {
		all[k] = v
	}
	return all
}

// A7: each row of admission, as the URL that a model gives: what a host is spelled like,
// and what its name resolves to. Nothing is connected to.
func TestAttackByURL(t *testing.T) {
	o := newOutside(t, nil, gateway.Tool{Name: "http_api"}, nil, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") })
	rows := 0
	for _, way := range ways() {
		for _, s := range admissiontest.Spellings() {
			if s.Reason == "" {
				continue
			}
			rows++
			o.refused(s.URL, way.tool, with1(way.more, "url", s.URL))
		}
		for address, realm := range admissiontest.Addresses() {
			addr := netip.MustParseAddr(address)
			if realm == admission.Public {
				continue
			}
			rows++
			literal := "https://" + netip.AddrPortFrom(addr, 443).String() + "/"
			if addr.Zone() != "" {
				literal = strings.Replace(literal, "%", "%25", 1)
			} else {
				o.answers["name.example.com"] = []string{address}
				text := o.refused("a name for "+address, way.tool, with1(way.more, "url", "https://name.example.com/"), addr.Unmap().String())
				if !strings.Contains(text, "the gateway does not admit it") || !strings.Contains(text, "mcp.gateway.allow") {
					t.Errorf("a name for %s: %s", address, text)
				}
			}
			o.refused(address, way.tool, with1(way.more, "url", literal))
		}
	}
	if rows < 6*120 {
		t.Errorf("only %d rows", rows)
	}
	// Nor is the way in only shut.
	for address, realm := range admissiontest.Addresses() {
		if realm != admission.Public {
			continue
		}
		o.client.CloseIdleConnections()
		o.answers["name.example.com"] = []string{address}
		if text, failed := o.call("http_api", map[string]any{"url": "https://name.example.com/"}); failed || !strings.HasSuffix(text, "hello") {
			t.Errorf("%s is public: %s", address, text)
		}
		if dialled, _ := o.took(); len(dialled) != 1 {
			t.Errorf("%s: connected to %v", address, dialled)
		}
	}
}

// A7: the same rows as where a page of the public network redirects to.
func TestAttackByRedirect(t *testing.T) {
	var location string
	code := 0
	o := newOutside(t, nil, gateway.Tool{Name: "http_api"}, nil, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/start" {
			fmt.Fprint(w, "hello")
			return
		}
		w.Header()["Location"] = []string{location}
		w.WriteHeader(code)
	})
	targets := []string{"http://example.com/", "ftp://example.com/", "file:///etc/hosts", "https://user:word@example.com/next"}
	for _, s := range admissiontest.Spellings() {
		if u, err := url.Parse(s.URL); err == nil && s.Reason != "" && u.IsAbs() && u.Host != "" {
			targets = append(targets, s.URL)
		}
	}
	for address, realm := range admissiontest.Addresses() {
		if addr := netip.MustParseAddr(address); realm != admission.Public && addr.Zone() == "" {
			name := strings.NewReplacer(":", "-", ".", "-").Replace("a"+address+"a") + ".example.com"
			o.answers[name] = []string{address}
			targets = append(targets, "https://"+name+"/next", "https://"+netip.AddrPortFrom(addr, 8443).String()+"/next")
		}
	}
	slices.Sort(targets)
	for _, way := range ways() {
		if way.more["follow_redirects"] != nil {
			continue
		}
		for i, target := range targets {
			location, code = target, []int{301, 302, 303, 307, 308}[i%5]
			text := o.refused("redirected to "+target, way.tool, with1(way.more, "url", "https://example.com/start"))
			if strings.Contains(text, "hello") {
				t.Errorf("redirected to %s: %s", target, text)
			}
		}
	}
}

// A7: a name that means something near the second time is refused the second time, also
// as where it redirects to itself.
func TestAttackByRebinding(t *testing.T) {
	o := newOutside(t, nil, gateway.Tool{Name: "http_api"}, nil, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close")
		if r.URL.Path == "/again" {
			http.Redirect(w, r, "/here", http.StatusFound)
			return
		}
		fmt.Fprint(w, "hello")
	})
	for _, near := range []string{"127.0.0.1", "10.0.0.7", "169.254.169.254", "::1", "fd00::7", "64:ff9b::7f00:1", "::ffff:10.0.0.7"} {
		for _, way := range ways()[:5] {
			if way.more["save_to"] != nil {
				continue
			}
			o.answers["example.com"] = []string{afar, near}
			if text, failed := o.call(way.tool, with1(way.more, "url", "https://example.com/")); failed {
				t.Errorf("the first time: %s", text)
			}
			o.took()
			o.refused("rebound to "+near, way.tool, with1(way.more, "url", "https://example.com/"), near)
		}
		o.answers["example.com"] = []string{afar, near}
		o.refused("rebound to "+near, "http_api", map[string]any{"url": "https://example.com/again"}, near)
	}
}

// What an operator allows is let in, that and no more.
func TestAllowedHosts(t *testing.T) {
	o := newOutside(t, nil, gateway.Tool{Name: "http_api"}, []string{"wiki.example.com", "10.1.0.0/16"}, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<p>hello") })
	for name, c := range map[string]struct {
		url, at string
		want    bool
	}{
		"by name":        {"https://wiki.example.com/", "10.9.9.9", true},
		"by range":       {"https://other.example.com/", "10.1.2.3", true},
		"another name":   {"https://third.example.com/", "10.9.9.9", false},
		"another range":  {"https://fourth.example.com/", "10.2.0.1", false},
		"the name below": {"https://a.wiki.example.com/", "10.9.9.9", false},
	} {
		u, err := url.Parse(c.url)
		if err != nil {
			t.Fatal(err)
		}
		o.answers[u.Hostname()] = []string{c.at}
		for _, tool := range []string{"http_api", "web_scrape"} {
			if text, failed := o.call(tool, map[string]any{"url": c.url}); failed == c.want {
				t.Errorf("%s: %s", name, text)
			}
		}
	}
}

// A8: a credential of the vault goes to the URL that it is bound to, and below it, in
// place of what a model says of itself; nowhere else, whoever redirects there.
func TestWebCredentials(t *testing.T) {
	dir := t.TempDir()
	v := vault.New(vault.Config{File: filepath.Join(dir, "vault.age"), Key: sealed.KeyFile(filepath.Join(dir, "vault.key"))})
	for _, c := range []vault.Credential{
		{Name: "api", Kind: vault.StaticBearer, URL: "https://api.example.com/v1", Secret: secret.New("canary-api")},
		{Name: "deep", Kind: vault.Header, Header: "X-Deep-Key", URL: "https://api.example.com/v1/deep", Secret: secret.New("canary-deep")},
		{Name: "unnamed", Kind: vault.StaticBearer, URL: "https://other.example.com", Secret: secret.New("canary-other")},
	} {
		if _, err := v.Set(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	o := newOutside(t, v, gateway.Tool{Name: "http_api", Credentials: []string{"missing", "deep", "api"}}, nil, func(w http.ResponseWriter, r *http.Request) {
		if to := r.URL.Query().Get("to"); to != "" {
			http.Redirect(w, r, to, http.StatusFound)
			return
		}
		fmt.Fprint(w, "<p>hello")
	})
	const own = "Bearer agents-own"
	for address, want := range map[string][]string{ // Authorization and X-Deep-Key of each request
		"https://api.example.com/v1":                                         {"Bearer canary-api|agents-key"},
		"https://API.example.com:443/v1/items?x=1":                           {"Bearer canary-api|agents-key"},
		"https://api.example.com/v1/deep/x":                                  {"|canary-deep"},
		"https://api.example.com/v1x":                                        {own + "|agents-key"},
		"https://api.example.com/v2":                                         {own + "|agents-key"},
		"https://api.example.com/v1/../v2":                                   {own + "|agents-key"},
		"https://api.example.com/v1/%2e%2e/v2":                               {own + "|agents-key"},
		"https://api.example.com/v1/..%2fv2":                                 {own + "|agents-key"},
		"https://api.example.com/v1/..%5cv2":                                 {own + "|agents-key"},
		"https://api.example.com/v1/a%2fb":                                   {own + "|agents-key"},
		"https://api.example.com/v1/%252e%252e/v2":                           {own + "|agents-key"},
		"https://api.example.com/v1/..;/v2":                                  {own + "|agents-key"},
		"https://api.example.com:8443/v1":                                    {own + "|agents-key"},
		"https://example.com/v1":                                             {own + "|agents-key"},
		"https://other.example.com/":                                         {own + "|agents-key"}, // the settings don't name it
		"https://api.example.com/v1?to=https%3A%2F%2Fother.example.com%2Fv1": {"Bearer canary-api|agents-key", "|"},
		"https://api.example.com/v1?to=%2Fv2":                                {"Bearer canary-api|agents-key", own + "|agents-key"},
		"https://api.example.com/v2?to=%2Fv1%2Fdeep":                         {own + "|agents-key", "|canary-deep"},
		"https://other.example.com/?to=https%3A%2F%2Fapi.example.com%2Fv1":   {own + "|agents-key", "|"}, // no page sends it anywhere
		"https://api.example.com/v1?to=https%3A%2F%2Fx.example.com%2F%3Fto%3Dhttps%3A%2F%2Fapi.example.com%2Fv1": {"Bearer canary-api|agents-key", "|", "|"},
	} {
		o.took()
		text, failed := o.call("http_api", map[string]any{"url": address, "headers": map[string]any{"Authorization": own, "X-Deep-Key": "agents-key"}})
		if failed || strings.Contains(text, "canary") {
			t.Errorf("%s: %s", address, text)
		}
		_, requests := o.took()
		var got []string
		for _, r := range requests {
			got = append(got, r.Header.Get("Authorization")+"|"+r.Header.Get("X-Deep-Key"))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s\nsent %q\nwant %q", address, got, want)
		}
	}
	// Who is told of it.
	o.mu.Lock()
	defer o.mu.Unlock()
	used := make(map[string]bool)
	for _, f := range o.told {
		used[f.Tool+" "+f.Origin+" "+f.Credential] = true
	}
	for _, want := range []string{"http_api https://api.example.com api", "http_api https://api.example.com deep", "http_api https://other.example.com "} {
		if !used[want] {
			t.Errorf("%q is not told: %v", want, used)
		}
	}
}
