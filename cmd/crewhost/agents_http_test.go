package main

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"crewhost/mcp/mcptest"
)

// A6: a server over HTTP that an agent brings along is connected, or is not, and
// whatever it answers, nobody hears where it is.
func TestAgentsServersOverHTTP(t *testing.T) {
	served, err := mcptest.Handler("-tools", "echo")
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		what, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		status, _ := strconv.Atoi(what)
		switch what {
		case "well":
			served.ServeHTTP(w, r)
		case "moved":
			http.Redirect(w, r, "https://elsewhere.example.com/deep-path", http.StatusPermanentRedirect)
		case "breaks":
			panic(http.ErrAbortHandler)
		default:
			w.Header().Set("Www-Authenticate", `Bearer resource_metadata="http://`+r.Host+`/deep-path"`)
			w.WriteHeader(status)
			fmt.Fprintf(w, "<address>It at %s</address>", r.Host)
		}
	}))
	t.Cleanup(server.Close)
	for what, says := range map[string]string{
		"well": "", "401": "HTTP status 401 Unauthorized", "403": "HTTP status 403 Forbidden", "404": "HTTP status 404 Not Found",
		"500": "HTTP status 500", "503": "HTTP status 503", "moved": "it redirects to another origin, where no header or message is sent", "breaks": "the connection to it broke",
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for name, text := range map[string]string{
				"crewhost.yaml": "llm: {provider: echo}\nmcp: {gateway: {allow: [127.0.0.1]}}\n",
				"crew.yaml": "name: C\ngoal: G\nagents: {one: {role: R, goal: G, mcp_servers: [{name: notes, type: url, url: '" + server.URL + "/" + what + "/deep-path?tenant=deep-query'}]," +
					" tools: [{type: mcp_toolset, mcp_server_name: notes}]}}\ntasks: {only: {description: D, expectedOutput: E, agent: one}}\n",
			} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			for args, fails := range map[string]bool{
				"run --validate crew.yaml": true, "run --validate --format json crew.yaml": true, "run --list-tools crew.yaml": false, "run crew.yaml --events jsonl": true,
			} {
				out, code := crewhostIn(t, dir, args)
				if (code == exitOK) != (says == "" || !fails) {
					t.Errorf("crewhost %s: exit code %d\n%s", args, code, out)
				}
				if !strings.Contains(out, says) {
					t.Errorf("crewhost %s does not say %q:\n%s", args, says, out)
				}
				for _, mark := range []string{strings.TrimPrefix(server.URL, "http://"), "deep-", "elsewhere.example.com"} {
					if strings.Contains(out, mark) {
						t.Errorf("crewhost %s tells of %q:\n%s", args, mark, out)
					}
				}
			}
		})
	}
}

// crewhostIn runs the program in a folder, and returns all that it said.
func crewhostIn(t *testing.T, dir, args string) (said string, code int) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "crewhost")
	if err := os.Symlink(self, link); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	cmd := exec.CommandContext(t.Context(), link, strings.Fields(args)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &out
	cmd.Env = append(os.Environ(), "XDG_CONFIG_HOME="+dir, "XDG_STATE_HOME="+dir, "GORACE="+noSleepAtExit)
	if err := cmd.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatal(err)
	}
	return out.String(), cmd.ProcessState.ExitCode()
}
