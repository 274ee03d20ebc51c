package mcp_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"crewhost/config"
	"crewhost/config/secret"
	"crewhost/mcp"
	"crewhost/mcp/mcptest"
	"crewhost/tools"
)

// browse is somebody who agrees to everything.
func browse(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.Body.Close()
}

// TestLogIn: a server that wants a login fails with a line that says so, and works
// after one, in both eras and on both transports; what is secret is in no report
// (O20, W10).
func TestLogIn(t *testing.T) {
	for _, flags := range [][]string{{"-tools", "echo"}, {"-tools", "echo", "-legacy"}, {"-tools", "echo", "-sse"}} {
		server := remote("notes", mcptest.ProtectedHTTP(t, flags...))
		server.Transport = config.TransportAuto // which is no reason to try the older transport (W3)
		cfg := settings(server)
		cfg.TokenStore, cfg.TokenDir = "file", t.TempDir()
		r := start(t, cfg).only()
		if r.State != mcp.StateFailed || tools.CodeOf(r.Err) != tools.CodeUnauthorized ||
			!strings.Contains(r.Err.Error(), `authorizing: it needs a login: run "crewhost mcp login notes"`) {
			t.Fatal(r.State, r.Err)
		}
		redactor := new(secret.Redactor)
		login, err := mcp.LogIn(t.Context(), cfg, "notes", mcp.Options{Name: "test", Browse: browse, Redactor: redactor})
		if err != nil || !login.Renews || login.Expiry.IsZero() || !strings.HasPrefix(login.Store, "encrypted files in ") {
			t.Fatal(login, err)
		}
		again := start(t, cfg).connected()
		if res := again.call("echo", `{"a":1}`); res.IsError || text(res) != `{"a":1}` {
			t.Errorf("%+v", res)
		}
		if log := again.log.String(); strings.Contains(log, "access-") || strings.Contains(log, "refresh-") {
			t.Error(log)
		}
		if ok, err := mcp.LogOut(t.Context(), cfg, "notes", mcp.Options{}); !ok || err != nil {
			t.Error(ok, err)
		}
		if r := start(t, cfg).only(); r.State != mcp.StateFailed {
			t.Error(r.State)
		}
	}
}

// TestClientCredentials: a server whose settings have a client needs nobody.
func TestClientCredentials(t *testing.T) {
	server := remote("notes", mcptest.ProtectedHTTP(t, "-tools", "echo"))
	server.OAuth = &config.OAuth{
		Grant: config.GrantClientCredentials, ClientID: secret.Literal("robot"),
		ClientSecret: secret.Ref{Source: secret.FromLiteral, Value: secret.New(mcptest.ProtectedSecret)},
	}
	r := start(t, settings(server)).connected()
	if res := r.call("echo", `{}`); res.IsError {
		t.Errorf("%+v", res)
	}
	server.OAuth.ClientSecret.Value = secret.New("another secret")
	failed := start(t, settings(server)).only()
	if failed.State != mcp.StateFailed || tools.CodeOf(failed.Err) != tools.CodeUnauthorized || !strings.Contains(failed.Err.Error(), "the authorization server refused: invalid_grant") {
		t.Error(failed.State, failed.Err)
	}
}

// TestNoLogin: who can't log in, and why.
func TestNoLogin(t *testing.T) {
	url := mcptest.ProtectedHTTP(t)
	static := remote("static", url)
	static.Headers = []config.Variable{{Name: "authorization", Value: secret.Literal("Bearer of-the-settings")}}
	cfg := settings(static, remote("open", mcptest.HTTP(t)), remote("plain", "http://mcp.example.com/"), stdio("started", mcptest.Standard))
	for name, want := range map[string]string{
		"static":  "takes the place of a login",
		"open":    mcp.ErrOpen.Error(),
		"plain":   "https is required",
		"started": "it is started, not called",
		"nobody":  "the settings declare no such MCP server",
	} {
		_, err := mcp.LogIn(t.Context(), cfg, name, mcp.Options{Browse: browse})
		if err == nil || !strings.Contains(err.Error(), want) || tools.CodeOf(err) == "" || (name == "open") != errors.Is(err, mcp.ErrOpen) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	// The header is all that is tried.
	r := start(t, settings(static)).only()
	if r.State != mcp.StateFailed || !strings.Contains(r.Err.Error(), "HTTP status 401") {
		t.Error(r.State, r.Err)
	}
	if slices.ContainsFunc(r.Warnings, func(s string) bool { return strings.Contains(s, "of-the-settings") }) {
		t.Error(r.Warnings)
	}
}
