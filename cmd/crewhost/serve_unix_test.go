//go:build unix

package main

import (
	"io"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
)

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`

// R2: a server that is told to end by SIGTERM has done well; an interrupt is one.
func TestSignalsEndServing(t *testing.T) {
	for name, args := range map[string][]string{
		"stdio": {"mcp", "serve"},
		"HTTP":  {"mcp", "serve", "--http", "127.0.0.1:0"},
	} {
		for signal, want := range map[syscall.Signal]int{syscall.SIGTERM: exitOK, syscall.SIGINT: exitInterrupted} {
			t.Run(name+", "+signal.String(), func(t *testing.T) {
				in, hold, err := os.Pipe()
				if err != nil {
					t.Fatal(err)
				}
				defer in.Close()
				defer hold.Close()
				p := launchOn(t, t.TempDir(), in, args...)
				p.until("serving the tools of this host")
				if err := p.Process.Signal(signal); err != nil {
					t.Fatal(err)
				}
				if code, last := p.exit(); code != want {
					t.Errorf("exit code %d, want %d: %s", code, want, last)
				}
				if p.stdout.Len() > 0 {
					t.Errorf("on stdout: %s", &p.stdout)
				}
			})
		}
	}
}

// K77: also what comes without the end of its line is answered.
func TestLastLineWithoutItsEnd(t *testing.T) {
	p := launchOn(t, t.TempDir(), strings.NewReader(initialize), "mcp", "serve")
	if code, last := p.exit(); code != exitOK || !strings.Contains(p.stdout.String(), `"protocolVersion":"2025-11-25"`) {
		t.Errorf("exit code %d: %s\n%s", code, last, &p.stdout)
	}
}

// Over HTTP a token that a flag names is asked for, and shown nowhere.
func TestServeOverHTTPWithAToken(t *testing.T) {
	const token = "a-token-of-some-length"
	t.Setenv("SERVE_TOKEN", token)
	p := launch(t, t.TempDir(), "mcp", "serve", "--http", "127.0.0.1:0", "--token-env", "SERVE_TOKEN", "-v", "2")
	line := p.until("serving the tools of this host at ")
	url := strings.Fields(line[strings.Index(line, "http://"):])[0]
	url = strings.TrimSuffix(url, ":")
	for authorization, want := range map[string]int{"": http.StatusUnauthorized, "Bearer x" + token: http.StatusUnauthorized, "Bearer " + token: http.StatusOK} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(initialize))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		if authorization != "" {
			req.Header.Set("Authorization", authorization)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != want {
			t.Errorf("%q: %s, want %d: %s, %v", authorization, resp.Status, want, body, err)
		}
	}
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code, last := p.exit(); code != exitOK || strings.Contains(p.seen.String(), token) {
		t.Errorf("exit code %d: %s\n%s", code, last, &p.seen)
	}
}
