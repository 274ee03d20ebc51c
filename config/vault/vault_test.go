package vault

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"crewhost/config/secret"
	"crewhost/config/secret/sealed"
)

var revealed = cmp.Comparer(func(a, b secret.Value) bool { return a.Equal(b) })

var noon = time.Date(2026, 5, 6, 12, 0, 0, 0, time.UTC)

func open(t *testing.T, dir string) (*Vault, *secret.Redactor) {
	t.Helper()
	r := new(secret.Redactor)
	return New(Config{
		File: filepath.Join(dir, "vault.age"), Key: sealed.KeyFile(filepath.Join(dir, "vault.key")),
		Redactor: r, Now: func() time.Time { return noon },
	}), r
}

func bearer(url string) Credential {
	return Credential{Kind: StaticBearer, URL: url, Secret: secret.New("canary-bearer")}
}

func oauth(url string) Credential {
	return Credential{
		Kind: OAuth, URL: url, Secret: secret.New("canary-access"), Expiry: noon.Add(time.Hour),
		Refresh: &Refresh{
			TokenEndpoint: "https://login.example.com/token", ClientID: "c", Token: secret.New("canary-refresh"),
			Auth: AuthPost, ClientSecret: secret.New("canary-client"), Scopes: []string{"a", "b"},
		},
	}
}

// TestVault: what is put in is what comes out, whoever spells the URL how.
func TestVault(t *testing.T) {
	dir := t.TempDir()
	v, _ := open(t, dir)
	header := Credential{Kind: Header, URL: "https://c/x", Name: "see", Header: "X-Api-Key", Secret: secret.New("canary header")}
	for _, c := range []Credential{oauth("HTTPS://B:443/mcp/"), bearer("https://a"), header} {
		if replaced, err := v.Set(t.Context(), c); replaced || err != nil {
			t.Fatal(c, replaced, err)
		}
	}
	want := oauth("https://b/mcp")
	want.Set = noon
	again, redactor := open(t, dir) // as another process
	got, ok, err := again.Lookup(t.Context(), "https://B/mcp?tenant=1")
	if diff := cmp.Diff(want, got, revealed); !ok || err != nil || diff != "" {
		t.Error(ok, err, diff)
	}
	for _, hidden := range []string{"canary-bearer", "canary-access", "canary-refresh", "canary-client", "canary header", "canary%20header"} {
		if redactor.Redact(hidden) != secret.Mask {
			t.Errorf("the redactor does not know %s", hidden)
		}
	}
	for _, elsewhere := range []string{"https://b", "https://b/mcp/more", "https://b/MCP", "http://b/mcp", "https://b:8443/mcp", "https://b.evil/mcp", "https://b@evil/mcp"} {
		if c, ok, err := again.Lookup(t.Context(), elsewhere); ok || err != nil {
			t.Errorf("%s gets %v, %v", elsewhere, c, err)
		}
	}
	if _, _, err := again.Lookup(t.Context(), "nowhere"); err == nil {
		t.Error("a URL without a host")
	}
	if c, ok, err := v.Named(t.Context(), "see"); !ok || err != nil || c.URL != "https://c/x" {
		t.Error(c, ok, err)
	}
	if _, ok, _ := v.Named(t.Context(), ""); ok {
		t.Error("a credential without a name is found by it")
	}
	entries, err := v.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Entry{
		{Kind: StaticBearer, URL: "https://a", Set: noon},
		{Kind: OAuth, URL: "https://b/mcp", Set: noon, Expiry: noon.Add(time.Hour), Renews: true},
		{Kind: Header, URL: "https://c/x", Name: "see", Header: "X-Api-Key", Set: noon},
	}, entries); diff != "" {
		t.Error(diff)
	}
	if shown := fmt.Sprintf("%v %+v %#v", got, want, entries); strings.Contains(shown, "canary") {
		t.Error(shown)
	}
	for _, name := range []string{"see", "https://A/", "https://b/mcp"} {
		for _, want := range []bool{true, false} {
			if ok, err := v.Delete(t.Context(), name); ok != want || err != nil {
				t.Error(name, ok, err)
			}
		}
	}
	if entries, err := v.List(t.Context()); len(entries) > 0 || err != nil {
		t.Error(entries, err)
	}
}

// TestSent is the header of each kind.
func TestSent(t *testing.T) {
	for _, c := range []struct {
		credential  Credential
		name, value string
	}{
		{bearer("https://a"), "Authorization", "Bearer canary-bearer"},
		{oauth("https://a"), "Authorization", "Bearer canary-access"},
		{Credential{Kind: Header, Header: "X-Key", Secret: secret.New("v")}, "X-Key", "v"},
	} {
		if name, value := c.credential.Sent(); name != c.name || value.Reveal() != c.value {
			t.Errorf("%s: %s", name, value.Reveal())
		}
	}
}

// TestReplace: there is one credential for a server; a name belongs to one.
func TestReplace(t *testing.T) {
	v, _ := open(t, t.TempDir())
	first := bearer("https://a/x")
	first.Name = "n"
	if _, err := v.Set(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	if replaced, err := v.Set(t.Context(), oauth("https://A/x/")); !replaced || err != nil {
		t.Error(replaced, err)
	}
	if c, ok, err := v.Named(t.Context(), "n"); !ok || c.Kind != OAuth || err != nil {
		t.Error("the name is lost", c, err)
	}
	other := bearer("https://b")
	other.Name = "n"
	if replaced, err := v.Set(t.Context(), other); replaced || err == nil || !strings.Contains(err.Error(), `"n"`) {
		t.Error(replaced, err)
	}
}

// TestRefused: a credential that could not be used, or would go where anybody
// reads it, is refused, and what is wrong with it said without it.
func TestRefused(t *testing.T) {
	v, _ := open(t, t.TempDir())
	long := secret.New(strings.Repeat("canary", maxSecret))
	for name, c := range map[string]struct {
		change func(*Credential)
		want   string
	}{
		"no host":      {func(c *Credential) { c.URL = "canary" }, "names no host"},
		"plain http":   {func(c *Credential) { c.URL = "http://a/mcp" }, "plain http"},
		"other scheme": {func(c *Credential) { c.URL = "ftp://a/mcp" }, "not https"},
		"password":     {func(c *Credential) { c.URL = "https://u:canary@a" }, "a user or password"},
		"kind":         {func(c *Credential) { c.Kind = "magic" }, `"magic" is not known`},
		"no token": {func(c *Credential) {
			c.Kind, c.Refresh, c.Expiry, c.Secret = StaticBearer, nil, time.Time{}, secret.Value{}
		}, "token is empty"},
		"no access":          {func(c *Credential) { c.Refresh, c.Secret = nil, secret.Value{} }, "access token is empty"},
		"line break":         {func(c *Credential) { c.Secret = secret.New("canary\r\nX: y") }, "line break"},
		"long":               {func(c *Credential) { c.Secret = long }, "more than"},
		"renewed bearer":     {func(c *Credential) { c.Kind = StaticBearer }, "is not renewed"},
		"header of a bearer": {func(c *Credential) { c.Header = "X" }, "a header of its own"},
		"bad header":         {func(c *Credential) { *c = Credential{Kind: Header, URL: c.URL, Header: "a b", Secret: c.Secret} }, "not the name of a header"},
		"protocol header": {func(c *Credential) {
			*c = Credential{Kind: Header, URL: c.URL, Header: "Mcp-Session-Id", Secret: c.Secret}
		}, "belongs to the protocol"},
		"host": {func(c *Credential) { *c = Credential{Kind: Header, URL: c.URL, Header: "host", Secret: c.Secret} }, "belongs to the protocol"},
		"bad value": {func(c *Credential) {
			*c = Credential{Kind: Header, URL: c.URL, Header: "X", Secret: secret.New("canary\n")}
		}, "line break"},
		"no value":         {func(c *Credential) { *c = Credential{Kind: Header, URL: c.URL, Header: "X"} }, "is empty"},
		"endpoint":         {func(c *Credential) { c.Refresh.TokenEndpoint = "http://a/canary" }, "token endpoint is plain http"},
		"no client":        {func(c *Credential) { c.Refresh.ClientID = "" }, "client id is missing"},
		"no refresh token": {func(c *Credential) { c.Refresh.Token = secret.Value{} }, "refresh token is missing"},
		"secret of nobody": {func(c *Credential) { c.Refresh.Auth = AuthNone }, "the client has a secret"},
		"no client secret": {func(c *Credential) { c.Refresh.ClientSecret = secret.Value{} }, "and has no secret"},
		"auth":             {func(c *Credential) { c.Refresh.Auth = "mtls" }, `"mtls"`},
		"scope":            {func(c *Credential) { c.Refresh.Scopes = []string{"a b"} }, "not one scope"},
		"name":             {func(c *Credential) { c.Name = "a b" }, "not one word"},
	} {
		t.Run(name, func(t *testing.T) {
			credential := oauth("https://a/mcp")
			c.change(&credential)
			_, err := v.Set(t.Context(), credential)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "canary") {
				t.Error(err)
			}
			if _, err := os.Stat(v.Path()); err == nil {
				t.Fatal("it was written")
			}
		})
	}
	if _, err := v.Set(t.Context(), bearer("http://127.0.0.1:8080/mcp")); err != nil {
		t.Error(err)
	}
}

// TestFormat: what this version does not know, in whole or in part, is refused,
// shown nothing of, and left as it is.
func TestFormat(t *testing.T) {
	v, _ := open(t, t.TempDir())
	one := `{"kind":"static_bearer","url":"https://a","set":"2026-01-02T03:04:05Z","token":"canary"}`
	for name, c := range map[string]struct{ text, want string }{
		"no JSON":     {"canary", "is no vault"},
		"no version":  {`{"credentials":[]}`, "is no vault"},
		"later":       {`{"version":2,"credentials":{"canary":1}}`, "version 2"},
		"unknown key": {`{"version":1,"credentials":[],"canary":1}`, "no vault of version 1"},
		"more":        {`{"version":1,"credentials":[]} canary`, "is no vault"},
		"twice":       {`{"version":1,"credentials":[` + one + `,` + one + `]}`, "credential 2"},
		"kind":        {`{"version":1,"credentials":[` + strings.Replace(one, "static_bearer", "header", 1) + `]}`, "another kind"},
		"spelling":    {`{"version":1,"credentials":[` + strings.Replace(one, "https://a", "HTTPS://A/", 1) + `]}`, "would have been written"},
		"http":        {`{"version":1,"credentials":[` + strings.Replace(one, "https://a", "http://a", 1) + `]}`, "plain http"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := v.file.Write(t.Context(), []byte(c.text)); err != nil {
				t.Fatal(err)
			}
			_, err := v.List(t.Context())
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), v.Path()) || strings.Contains(err.Error(), "canary") {
				t.Error(err)
			}
			if _, err := v.Set(t.Context(), bearer("https://b")); err == nil {
				t.Error("it was written over")
			}
			if _, err := v.Delete(t.Context(), "https://a"); err == nil {
				t.Error("it was written over")
			}
			if left, err := v.file.Read(t.Context()); string(left) != c.text || err != nil {
				t.Error(string(left), err)
			}
		})
	}
}

// TestRenew keeps tokens and nothing else, for a credential that is still there.
func TestRenew(t *testing.T) {
	v, redactor := open(t, t.TempDir())
	c := oauth("https://a")
	c.Name = "n"
	if _, err := v.Set(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	renewed := oauth("https://a/")
	renewed.Secret, renewed.Refresh.Token, renewed.Expiry = secret.New("canary-access-2"), secret.New("canary-refresh-2"), noon.Add(2*time.Hour)
	renewed.Refresh.ClientID, renewed.Set = "another", noon
	if err := v.Renew(t.Context(), renewed); err != nil {
		t.Fatal(err)
	}
	got, _, err := v.Lookup(t.Context(), "https://a")
	want := c
	want.Set, want.Secret, want.Expiry = noon, renewed.Secret, renewed.Expiry
	want.Refresh.Token = renewed.Refresh.Token
	if diff := cmp.Diff(want, got, revealed); err != nil || diff != "" {
		t.Error(err, diff)
	}
	if redactor.Redact("canary-refresh-2") != secret.Mask {
		t.Error("the redactor does not know what came")
	}
	// Somebody puts another one in, of the same kind, while a token is being renewed.
	v.now = func() time.Time { return noon.Add(time.Second) }
	other := oauth("https://a")
	other.Secret, other.Refresh.Token = secret.New("canary-access-of-another"), secret.New("canary-refresh-of-another")
	if _, err := v.Set(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	if err := v.Renew(t.Context(), renewed); !errors.Is(err, ErrGone) {
		t.Error("a token was put in the place of another credential's", err)
	}
	if got, _, err := v.Lookup(t.Context(), "https://a"); err != nil || !got.Refresh.Token.Equal(other.Refresh.Token) {
		t.Error(err, got.Refresh.Token.Reveal())
	}
	if _, err := v.Set(t.Context(), bearer("https://a")); err != nil {
		t.Fatal(err)
	}
	if err := v.Renew(t.Context(), renewed); !errors.Is(err, ErrGone) {
		t.Error("a token was put in the place of another kind of credential", err)
	}
}

// TestNobodysVault: a nil vault, and one without a file, are empty and take nothing.
func TestNobodysVault(t *testing.T) {
	for _, v := range []*Vault{nil, New(Config{})} {
		if _, ok, err := v.Lookup(t.Context(), "https://a"); ok || err != nil {
			t.Error(ok, err)
		}
		if entries, err := v.List(t.Context()); len(entries) > 0 || err != nil {
			t.Error(entries, err)
		}
		if _, err := v.Delete(t.Context(), "https://a"); !errors.Is(err, ErrNowhere) {
			t.Error(err)
		}
		if _, err := v.Lock(t.Context(), "https://a"); !errors.Is(err, ErrNowhere) {
			t.Error(err)
		}
	}
	if _, err := New(Config{}).Set(t.Context(), bearer("https://a")); !errors.Is(err, ErrNowhere) {
		t.Error(err)
	}
}

// TestAtOnce: of many who write at once, none loses what another wrote.
func TestAtOnce(t *testing.T) {
	dir := t.TempDir()
	var all sync.WaitGroup
	for i := range 8 {
		v, _ := open(t, dir)
		all.Go(func() {
			if _, err := v.Set(context.WithoutCancel(t.Context()), bearer(fmt.Sprintf("https://host-%d", i))); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	v, _ := open(t, dir)
	if entries, err := v.List(t.Context()); len(entries) != 8 || err != nil {
		t.Error(entries, err)
	}
}

// FuzzFormat: no content of a vault is more than an error.
func FuzzFormat(f *testing.F) {
	whole, err := encode([]Credential{bearer("https://a"), oauth("https://b")})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add([]byte(`{"version":1,"credentials":[{}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		v := New(Config{File: "x"})
		all, err := v.decode(data)
		if err != nil {
			return
		}
		written, err := encode(all)
		if err != nil {
			t.Fatal(err)
		}
		again, err := v.decode(written)
		if diff := cmp.Diff(all, again, revealed); err != nil || diff != "" {
			t.Error(err, diff)
		}
	})
}
