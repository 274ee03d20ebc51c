package notebook

import (
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func TestNotebook(t *testing.T) {
	here, there := mcp.NewInMemoryTransports()
	server, err := newServer().Connect(t.Context(), there, nil)
	if err != nil {
		t.Fatal(err)
	}
	client, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).Connect(t.Context(), here, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		client.Close()
		_ = server.Wait()
	})
	call := func(name string, args map[string]any) (string, bool) {
		t.Helper()
		res, err := client.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: args})
		if err != nil {
			t.Fatal(err)
		}
		return res.Content[0].(*mcp.TextContent).Text, res.IsError
	}
	if got, _ := call("search_notes", map[string]any{"query": "range moon"}); strings.Count(got, "\n") != 1 || !strings.Contains(got, "spring tides") {
		t.Error(got)
	}
	if got, _ := call("search_notes", map[string]any{"query": "volcano"}); !strings.HasPrefix(got, "No note") {
		t.Error(got)
	}
	if got, failed := call("add_note", map[string]any{"topic": "volcano", "text": "It has no tide."}); failed || got != "Noted. The notebook holds 8 notes." {
		t.Error(got)
	}
	if _, failed := call("add_note", map[string]any{"topic": " ", "text": "x"}); !failed {
		t.Error("an empty topic was taken")
	}
	if got, _ := call("list_notes", nil); strings.Count(got, "\n") != len(facts) || !strings.HasSuffix(got, "- volcano: It has no tide.") {
		t.Error(got)
	}
}
