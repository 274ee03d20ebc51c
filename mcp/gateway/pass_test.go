package gateway

import (
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"
)

// A6: which passes open which doors.
func TestPasses(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	w := newWorld(t, hello)
	g := w.gateway(func(c *Config) { c.Now = func() time.Time { return now } })
	another := w.gateway(func(c *Config) { c.Now = func() time.Time { return now } })
	notes := g.Enter("run-1", brought("notes", "https://example.com/notes", "scribe", "editor"))
	mail := g.Enter("run-1", brought("mail", "https://example.com/mail", "clerk"))
	g.Enter("run-2", brought("notes", "https://example.com/other", "scribe"))
	good := pass{Run: "run-1", Agents: []string{"scribe"}, Server: "notes", Expiry: now.Add(passLife).Unix()}

	with := func(change func(*pass)) string {
		c := good
		change(&c)
		return g.passes.issue(c)
	}
	text := g.passes.issue(good)
	body, signature, _ := strings.Cut(text, ".")
	forged := base64.RawURLEncoding.EncodeToString([]byte(`{"run":"run-1","agents":["clerk"],"server":"mail","exp":99999999999}`))
	for name, c := range map[string]struct {
		token, address string
		want           error
	}{
		"good":                        {text, notes.URL.Reveal(), nil},
		"for all its agents":          {with(func(p *pass) { p.Agents = []string{"editor", "scribe"} }), notes.URL.Reveal(), nil},
		"just good":                   {with(func(p *pass) { p.Expiry = now.Unix() + 1 }), notes.URL.Reveal(), nil},
		"expired":                     {with(func(p *pass) { p.Expiry = now.Unix() }), notes.URL.Reveal(), errExpired},
		"of long ago":                 {with(func(p *pass) { p.Expiry = 0 }), notes.URL.Reveal(), errExpired},
		"of another run":              {with(func(p *pass) { p.Run = "run-2" }), notes.URL.Reveal(), errOther},
		"of a run that is not":        {with(func(p *pass) { p.Run = "run-3" }), notes.URL.Reveal(), errOther},
		"of another agent":            {with(func(p *pass) { p.Agents = []string{"clerk"} }), notes.URL.Reveal(), errOther},
		"of an agent among others":    {with(func(p *pass) { p.Agents = []string{"scribe", "clerk"} }), notes.URL.Reveal(), errOther},
		"of nobody":                   {with(func(p *pass) { p.Agents = nil }), notes.URL.Reveal(), errOther},
		"of another server":           {with(func(p *pass) { p.Server = "mail" }), notes.URL.Reveal(), errOther},
		"used for another server":     {text, mail.URL.Reveal(), errOther},
		"used in another run":         {text, address("run-2", "notes"), errOther},
		"used below":                  {text, notes.URL.Reveal() + "/0", errOther},
		"used above":                  {text, "https://" + host + "/run-1", errOther},
		"used elsewhere":              {text, "https://example.com/run-1/notes", errOther},
		"used in the clear":           {text, strings.Replace(notes.URL.Reveal(), "https:", "http:", 1), errOther},
		"none":                        {"", notes.URL.Reveal(), errForged},
		"without a signature":         {body, notes.URL.Reveal(), errForged},
		"with an empty signature":     {body + ".", notes.URL.Reveal(), errForged},
		"with half a signature":       {body + "." + signature[:20], notes.URL.Reveal(), errForged},
		"with a changed signature":    {body + "." + flip(signature), notes.URL.Reveal(), errForged},
		"with a changed body":         {forged + "." + signature, mail.URL.Reveal(), errForged},
		"of another gateway":          {another.passes.issue(good), notes.URL.Reveal(), errForged},
		"with more behind it":         {text + ".x", notes.URL.Reveal(), errForged},
		"no pass at all":              {"Bearer x", notes.URL.Reveal(), errForged},
		"a pass that says too little": {g.passes.issue(pass{Expiry: now.Add(time.Hour).Unix()}), notes.URL.Reveal(), errOther},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.address, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+c.token)
		resp, err := g.serve(req, g.door(notes))
		if err == nil {
			_ = resp.Body.Close()
		}
		if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("a pass that is %s: %v, want %v", name, err, c.want)
		}
		requests, _ := w.took()
		if (len(requests) > 0) != (c.want == nil) {
			t.Errorf("a pass that is %s: %d requests came", name, len(requests))
		}
		for _, r := range requests {
			if r.Header.Get("Authorization") != "" {
				t.Errorf("the server got the pass")
			}
		}
	}
}

// flip changes a character of a signature, and not only bits that don't count.
func flip(s string) string {
	c := byte('A')
	if s[0] == c {
		c = 'B'
	}
	return string(c) + s[1:]
}

// A6: what was a good pass is none any more when the run is over, and when the gateway
// is closed.
func TestReplayedPass(t *testing.T) {
	for name, end := range map[string]func(*Gateway){
		"the run": func(g *Gateway) { g.Leave("run-1") }, "the gateway": (*Gateway).Close,
	} {
		w := newWorld(t, hello)
		g := w.gateway(nil)
		entry := g.Enter("run-1", brought("notes", "https://example.com/notes"))
		other := g.Enter("run-2", brought("notes", "https://example.com/notes"))
		door := g.Route(entry).Server
		token := g.passes.issue(pass{Run: "run-1", Agents: []string{"scribe"}, Server: "notes", Expiry: time.Now().Add(time.Hour).Unix()})
		replay := func() error {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, entry.URL.Reveal(), nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer "+token)
			resp, err := g.serve(req, g.door(entry))
			if err == nil {
				_ = resp.Body.Close()
			}
			return err
		}
		if err := replay(); err != nil {
			t.Fatal(err)
		}
		end(g)
		w.took()
		if err := replay(); !errors.Is(err, errOther) {
			t.Errorf("after the end of %s: %v", name, err)
		}
		if _, err := w.askAt(door, http.MethodPost, entry.URL.Reveal()); !errors.Is(err, errOther) {
			t.Errorf("after the end of %s: %v", name, err)
		}
		if requests, _ := w.took(); len(requests) > 0 {
			t.Errorf("after the end of %s, %d requests came", name, len(requests))
		}
		if _, err := w.ask(g, other); (err == nil) != (name == "the run") {
			t.Errorf("another run after the end of %s: %v", name, err)
		}
		end(g)
	}
}

// FuzzPass: what is not signed here opens nothing.
func FuzzPass(f *testing.F) {
	g, err := New(Config{})
	if err != nil {
		f.Fatal(err)
	}
	other, err := New(Config{})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(other.passes.issue(pass{Run: "r", Agents: []string{"a"}, Server: "s", Expiry: 1 << 40}))
	for _, text := range []string{"", ".", "e30.", "e30.AAAA", "..", "a.b.c"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if c, err := g.passes.read(text, time.Unix(0, 0)); err == nil {
			t.Errorf("%q is read as %+v", text, c)
		}
	})
}
