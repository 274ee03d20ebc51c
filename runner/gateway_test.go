package runner_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"crewhost/config"
	"crewhost/config/secret"
	"crewhost/config/secret/sealed"
	"crewhost/config/vault"
	"crewhost/crew"
	"crewhost/mcp"
	"crewhost/mcp/mcptest"
	"crewhost/runner"
	"crewhost/runner/llm"
	"crewhost/tools/audit"
)

// wants serves MCP to who has the token.
func wants(t *testing.T, token string) string {
	t.Helper()
	h, err := mcptest.Handler("-tools", "echo")
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+token {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s.URL + "/mcp"
}

// A6, A7, A8: a server that an agent brings along is on this machine only where the
// settings say so, has the vault's credential, and nobody hears where it is.
func TestAgentsServersAreBehindTheGateway(t *testing.T) {
	const token = "canary-token-4711"
	url := wants(t, token)
	c := loadCrew(t, crewOf("mcp_servers: [{name: notes, type: url, url: '"+url+"'}], tools: ["+uses("notes")+"]"))
	keys := t.TempDir()
	v := vault.New(vault.Config{File: filepath.Join(keys, "vault.age"), Key: sealed.KeyFile(filepath.Join(keys, "vault.key"))})
	if _, err := v.Set(t.Context(), vault.Credential{Kind: vault.StaticBearer, URL: strings.ToUpper(url[:4]) + url[4:] + "/", Secret: secret.New(token)}); err != nil {
		t.Fatal(err)
	}
	host := func(settings string) *rig {
		text := fmt.Sprintf("llm: {provider: echo}\nvault: {file: %q, key: {file: %q}}\n%s\n", filepath.Join(keys, "vault.age"), filepath.Join(keys, "vault.key"), settings)
		return open(t, map[string]string{"crewhost.yaml": text}, func(cfg *runner.Config) { cfg.Crews = []*crew.Crew{c} })
	}
	told := func(r *rig) string {
		text := fmt.Sprintf("%+v", r.host.Servers())
		for _, e := range r.events {
			data, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			text += string(data)
		}
		return text
	}
	for settings, says := range map[string]string{
		"": "the gateway does not admit it: its address is on loopback",
		"mcp: {gateway: {allow: [mcp.example.com, 127.0.0.2, '127.0.0.1:1']}}": "on loopback",
		"mcp: {allowed_hosts: [mcp.example.com], gateway: {loopback: true}}":   "not one of mcp.allowed_hosts",
	} {
		r := host(settings)
		report := r.host.Servers()[0]
		if report.Err == nil || !strings.Contains(report.Err.Error(), says) {
			t.Errorf("%q: %v", settings, report.Err)
		}
		if text := told(r); strings.Contains(text, "127.0.0.1:") || strings.Contains(text, token) {
			t.Errorf("%q tells %s", settings, text)
		}
	}
	for _, settings := range []string{"mcp: {gateway: {loopback: true}}", "mcp: {gateway: {allow: [127.0.0.0/8]}}", "mcp: {gateway: {allow: [127.0.0.1]}}"} {
		r := host(settings)
		report := r.host.Servers()[0]
		if report.State != mcp.StateConnected || !slices.Contains(report.Tools, "mcp__notes__echo") {
			t.Errorf("%q: %v", settings, report.Err)
		}
		if text := told(r); strings.Contains(text, "127.0.0.1:") || strings.Contains(text, token) {
			t.Errorf("%q tells %s", settings, text)
		}
	}
	// A server of the settings has the credential, too; one with a header of its own does
	// without.
	for header, want := range map[string]bool{"": true, ", headers: {Authorization: Bearer mine}": false} {
		r := host("mcp: {servers: {notes2: {url: '" + url + "'" + header + "}}}")
		if report := r.host.Servers()[0]; (report.State == mcp.StateConnected) != want {
			t.Errorf("%q: %v", header, report.Err)
		}
	}
}

// The settings' network is that of logins and of checks of credentials.
func TestGatewayOfLoginsAndChecks(t *testing.T) {
	const token = "canary-token-4712"
	url := wants(t, token)
	dir := t.TempDir()
	v := vault.New(vault.Config{File: filepath.Join(dir, "vault.age"), Key: sealed.KeyFile(filepath.Join(dir, "vault.key"))})
	if _, err := v.Set(t.Context(), vault.Credential{Kind: vault.StaticBearer, URL: url, Secret: secret.New(token)}); err != nil {
		t.Fatal(err)
	}
	settings := &config.Settings{}
	if _, err := runner.CheckCredential(t.Context(), settings, v, url, new(secret.Redactor)); err != nil {
		t.Error(err)
	}
	settings.MCP.AllowedHosts = []string{"mcp.example.com"}
	if _, err := runner.CheckCredential(t.Context(), settings, v, url, new(secret.Redactor)); err == nil || !strings.Contains(err.Error(), "mcp.allowed_hosts") {
		t.Error(err)
	}
	settings.MCP.Gateway.Allow = []string{"no host"}
	if _, err := runner.LoginRoute(settings); err == nil || !strings.Contains(err.Error(), "mcp.gateway.allow") {
		t.Error(err)
	}
}

// A6: what the gateway forwards of a run, and what it refuses, is on record: by whom,
// where to as far as the origin, with which credential, and without anything secret.
func TestForwardsAreOnRecord(t *testing.T) {
	const token = "canary-token-4713"
	there := wants(t, token) + "/canary-path-4713"
	moved := httptest.NewServer(http.RedirectHandler(there, http.StatusTemporaryRedirect))
	t.Cleanup(moved.Close)
	keys := t.TempDir()
	v := vault.New(vault.Config{File: filepath.Join(keys, "vault.age"), Key: sealed.KeyFile(filepath.Join(keys, "vault.key"))})
	if _, err := v.Set(t.Context(), vault.Credential{Name: "of-notes", Kind: vault.StaticBearer, URL: there, Secret: secret.New(token)}); err != nil {
		t.Fatal(err)
	}
	origin := func(u string) string { return strings.Join(strings.Split(u, "/")[:3], "/") }
	settings := fmt.Sprintf("llm: {provider: echo}\naudit: {file: audit.jsonl}\nmcp: {gateway: {allow: ['%s']}}\nvault: {file: %q, key: {file: %q}}\n",
		"127.0.0.1", filepath.Join(keys, "vault.age"), filepath.Join(keys, "vault.key"))
	for name, c := range map[string]struct {
		url  string
		want []string // that the gateway puts there
	}{
		"forwarded":  {there, []string{"a0 notes POST " + origin(there) + " of-notes/static_bearer 200 answered ", "run test"}},
		"redirected": {moved.URL + "/canary-path-4713", []string{"a0 notes POST " + moved.URL + " / 307 answered ", "a0 notes POST " + origin(there) + " / 0 refused "}},
		"inside":     {"https://10.0.0.1/canary-path-4713", []string{"a0 notes POST https://10.0.0.1 / 0 refused "}},
	} {
		t.Run(name, func(t *testing.T) {
			brings := loadCrew(t, crewOf("mcp_servers: [{name: notes, type: url, url: '"+c.url+"?tenant=canary-query-4713'}], tools: ["+
				uses("notes", "default_config: {permission_policy: {type: always_allow}}")+"]"))
			said := false
			model := modelFunc(func(llm.Request) *llm.Response {
				if said {
					return answer("done")
				}
				said = true
				return calls(llm.ToolCall{ID: "c1", Name: "mcp__notes__echo", Arguments: `{"text":"canary-value-4713"}`})
			})
			r := open(t, map[string]string{"crewhost.yaml": settings}, with(model), func(cfg *runner.Config) { cfg.Crews = []*crew.Crew{brings} })
			if _, err := r.host.Run(t.Context(), brings, nil); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(r.dir, "audit.jsonl")
			var got []string
			for _, rec := range records(t, path) {
				if q := rec.Request; rec.Kind == audit.Forward {
					got = append(got, fmt.Sprintf("%s %s %s %s %s/%s %d %s %s", rec.Agent, rec.Server, q.Method, q.Origin, q.Credential, q.Kind, q.Status, rec.Outcome, rec.Code))
					if rec.Run != "" {
						got = append(got, "run "+rec.Run)
					}
				}
			}
			for _, want := range c.want {
				if !slices.Contains(got, want) {
					t.Errorf("%q is not on record:\n%s", want, strings.Join(got, "\n"))
				}
			}
			text, err := os.ReadFile(path)
			if err != nil || strings.Contains(string(text), "canary") {
				t.Errorf("%v: the log holds a secret:\n%s", err, text)
			}
		})
	}
}
