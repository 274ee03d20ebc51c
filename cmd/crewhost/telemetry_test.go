package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
)

// collected is what a collector got, of one script.
type collected struct {
	mu   sync.Mutex
	text strings.Builder
}

// ServeHTTP implements [http.Handler]. Nothing is taken without the key.
func (c *collected) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil || r.Header.Get("Authorization") != "Bearer collector-canary" {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_, _ = c.text.Write(body)
}

type collectedKey struct{}

// collect starts a collector for a script, at COLLECTOR_URL.
func collect(env *testscript.Env) {
	c := &collected{}
	server := httptest.NewServer(c)
	env.Defer(server.Close)
	env.Setenv("COLLECTOR_URL", server.URL)
	env.Values[collectedKey{}] = c
}

// hasCollected NAME… wants the collector to have got all of the names.
func hasCollected(ts *testscript.TestScript, neg bool, args []string) {
	c, ok := ts.Value(collectedKey{}).(*collected)
	if !ok || neg || len(args) == 0 {
		ts.Fatalf("usage: collected NAME…")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range args {
		if !strings.Contains(c.text.String(), `"name":"`+name+`"`) {
			ts.Fatalf("no %s in\n%s", name, c.text.String())
		}
	}
}
