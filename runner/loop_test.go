package runner

import (
	"errors"
	"strings"
	"testing"

	"crewhost/config"
	"crewhost/config/secret"
)

func text(s string) secret.Text { return secret.NewText(s, s) }

// I2: a host that finds itself among those that it runs under does not start;
// different hosts may stand behind each other, and not too deep.
func TestUnderHosts(t *testing.T) {
	settings := func(path, command string) *config.Settings {
		s := &config.Settings{Path: path, MCP: config.MCP{Enabled: true}}
		if command != "" {
			s.MCP.Servers = []config.Server{{Name: "s", Transport: config.TransportStdio, Command: text(command)}}
		}
		return s
	}
	a, b := settings("/a.yaml", "crewhost"), settings("/b.yaml", "crewhost")
	under := func(s *config.Settings, environ []string) []string {
		t.Helper()
		out, err := underHosts(s, environ)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	underA := under(a, []string{"PATH=/bin"})
	underB := under(b, underA)
	if got := underB[len(underB)-1]; strings.Count(got, "/") != 1 {
		t.Errorf("got %s", got)
	}
	var loop *LoopError
	for name, environ := range map[string][]string{"at once": underA, "behind another": underB} {
		if _, err := underHosts(a, environ); !errors.As(err, &loop) || !strings.Contains(err.Error(), "/a.yaml") {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Nothing would be started, or something else.
	none, off, other := settings("/a.yaml", ""), settings("/a.yaml", "crewhost"), settings("/a.yaml", "other")
	off.MCP.Enabled = false
	for _, s := range []*config.Settings{none, off, other} {
		under(s, underA)
	}
	deep := underA
	for i := range maxHosts - 1 {
		deep = under(settings(strings.Repeat("x", i+1), "crewhost"), deep)
	}
	if _, err := underHosts(b, deep); !errors.As(err, &loop) || !strings.Contains(err.Error(), "8") {
		t.Errorf("got %v", err)
	}
}

// The identity of a host gives no secret away, not even to who guesses.
func TestIdentityHoldsNoSecret(t *testing.T) {
	with := func(value string) *config.Settings {
		return &config.Settings{MCP: config.MCP{Enabled: true, Servers: []config.Server{{
			Name: "s", Env: []config.Variable{{Name: "TOKEN", Value: secret.NewText(secret.Mask, value)}},
		}}}}
	}
	if identity(with("one")) != identity(with("two")) {
		t.Error("the identity depends on a secret")
	}
}

// A server of the settings that is this host is found by its address.
func TestApartFrom(t *testing.T) {
	for _, tt := range []struct {
		listen, url string
		loop        bool
	}{
		{"127.0.0.1:8931", "http://127.0.0.1:8931/mcp", true},
		{"127.0.0.1:8931", "http://localhost:8931/other", true},
		{"localhost:8931", "http://[::1]:8931/mcp", true},
		{":8931", "http://127.0.0.1:8931/mcp", true},
		{"0.0.0.0:80", "http://LOCALHOST./mcp", true},
		{"example.com:443", "https://Example.com/mcp", true},
		{"127.0.0.1:8931", "http://127.0.0.1:8932/mcp", false},
		{"127.0.0.1:8931", "http://192.0.2.1:8931/mcp", false},
		{":8931", "http://192.0.2.1:8931/mcp", false},
		{"127.0.0.1:0", "http://127.0.0.1:0/mcp", false},
		{"127.0.0.1:8931", "http://example.com:8931/mcp", false},
	} {
		s := &config.Settings{MCP: config.MCP{Enabled: true, Servers: []config.Server{{Name: "s", Transport: config.TransportAuto, URL: text(tt.url)}}}}
		if err := apartFrom(s, tt.listen); (err != nil) != tt.loop {
			t.Errorf("%s listening, %s: %v", tt.listen, tt.url, err)
		}
		if s.MCP.Enabled = false; apartFrom(s, tt.listen) != nil {
			t.Error("nothing is connected where MCP is off")
		}
	}
}
