package server_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"crewhost/mcp/server"
)

// bearer sends a token along.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// O22: the SDK's own client, in each era, calls, hears of changes, and sees the end.
func TestHTTPWithSDKClient(t *testing.T) {
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	for _, version := range []string{modern, "2025-11-25", "2025-06-18", "2025-03-26"} {
		t.Run(version, func(t *testing.T) {
			w := serveHTTP(t, server.HTTPConfig{Tokens: []server.Token{server.NewToken("ci", goodToken)}}, server.Budgets{Keepalive: 20 * time.Millisecond})
			changed := make(chan struct{}, 100)
			client := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, &mcp.ClientOptions{
				ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { changed <- struct{}{} },
			})
			transport := &mcp.StreamableClientTransport{Endpoint: w.url, HTTPClient: &http.Client{Transport: bearer(goodToken)}, MaxRetries: -1}
			session, err := client.Connect(t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: version})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = session.Close() }()
			list, err := session.ListTools(t.Context(), nil)
			if err != nil || len(list.Tools) != 6 {
				t.Fatal(list, err)
			}
			res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"a": strings.Repeat("x", 100_000)}})
			if err != nil || res.IsError {
				t.Fatal(res, err)
			}
			// The stream may not be open yet: a change is made until one is heard of.
			deadline := time.After(20 * time.Second)
			for heard := false; !heard; {
				w.change()
				select {
				case <-changed:
					heard = true
				case <-deadline:
					t.Fatal("a change was not heard of")
				case <-time.After(50 * time.Millisecond):
				}
			}
			w.stop()
			if err := w.served(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A tool's question reaches the client, and its answer the tool, though all places
// are taken: the call has its own.
func TestHTTPQuestionsWithinBudget(t *testing.T) {
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	for _, version := range []string{modern, "2025-11-25"} {
		t.Run(version, func(t *testing.T) {
			w := serveHTTP(t, server.HTTPConfig{}, server.Budgets{ConcurrentRequests: 2})
			client := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, &mcp.ClientOptions{
				ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"word": r.Params.Message + "!"}}, nil
				},
			})
			transport := &mcp.StreamableClientTransport{Endpoint: w.url, DisableStandaloneSSE: true, MaxRetries: -1}
			session, err := client.Connect(t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: version})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = session.Close() }()
			var calling sync.WaitGroup
			calling.Go(func() { w.ask("tools/call", `"name":"wait"`) })
			defer calling.Wait()
			w.waits()
			defer func() { w.release <- struct{}{} }()
			res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "ask"})
			if err != nil || res.IsError || res.Content[0].(*mcp.TextContent).Text != "hello!" {
				t.Errorf("%+v %v\n%s", res, err, w.log)
			}
		})
	}
}
