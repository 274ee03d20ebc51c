package mcp_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"crewhost/config"
	"crewhost/config/secret"
	"crewhost/mcp"
	"crewhost/mcp/mcptest"
	"crewhost/tools"

	"log/slog"
)

// K55: a secret appears in no report, error or log, wherever it was put and
// however the server repeats it; that a variable is there may be seen.
func TestSecretsStaySecret(t *testing.T) {
	const token = "sk-test-123"
	variable := func(name, format string) secret.Text {
		return secret.NewText(fmt.Sprintf(format, "${TOKEN}"), fmt.Sprintf(format, token), secret.New(token))
	}
	// Exit writes its arguments and environment to stderr and ends.
	process := stdio("process", mcptest.Exit)
	process.Args = append(process.Args, variable("TOKEN", "--token=%s"))
	process.Env = []config.Variable{
		{Name: "TOKEN", Value: variable("TOKEN", "%s")},
		{Name: "LITERAL", Value: secret.Literal("literal-value-456")},
	}
	url := serve(t, func(w http.ResponseWriter, r *http.Request, _ message) {
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprintf(w, "%s may not, nor %s, with %s", r.Header.Get("Authorization"), r.Header.Get("X-Key"), r.URL.RawQuery)
	})
	refused := remote("refused", url)
	refused.URL = secret.NewText(url+"?key=${TOKEN}&plain=query-value-789", url+"?key="+token+"&plain=query-value-789", secret.New(token))
	refused.Headers = []config.Variable{
		{Name: "Authorization", Value: variable("TOKEN", "Bearer %s")},
		{Name: "X-Key", Value: secret.Literal("literal-header-012")},
	}
	dead := remote("dead", "http://127.0.0.1:1/?key=query-value-789")
	banner := stdio("banner", mcptest.Scripted, "-banner", "token is "+token+strings.Repeat(".", 55)+token) // over the cut
	banner.Env = process.Env

	log := new(lines)
	reg := new(tools.Registry)
	sessions, err := mcp.Startup(t.Context(), settings(process, refused, dead, banner), reg, mcp.Options{
		Name: "test", Redactor: new(secret.Redactor),
		Logger: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug - 4})),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer sessions.Close()
	all := log.String()
	for _, r := range sessions.Reports() {
		all += fmt.Sprintf("%v %+v %q\n", r.Err, r, r.Warnings)
	}
	for _, hidden := range []string{token[:8], "literal-value-456", "literal-header-012", "query-value-789"} {
		if strings.Contains(all, hidden) {
			t.Errorf("%s is in\n%s", hidden, all)
		}
	}
	for _, shown := range []string{"--token=${TOKEN}", "TOKEN=•••", "(it wants credentials, or refuses those it got; crewhost vault set keeps some for its URL): •••", "token is •••", "127.0.0.1:1: connect"} {
		if !strings.Contains(all, shown) {
			t.Errorf("no %s in\n%s", shown, all)
		}
	}
}
