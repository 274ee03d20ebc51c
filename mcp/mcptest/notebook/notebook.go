// Package notebook is a small MCP server: a notebook about the tides that a crew of
// agents can search and add to. It knows a few facts from the start and keeps new
// notes until it ends.
//
//	err := notebook.Run(ctx) // on stdio
//
// Its tools are search_notes, list_notes and add_note. The program is
// mcp/mcptest/notes.
package notebook

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Run serves a notebook on stdio until stdin ends.
func Run(ctx context.Context) error { return newServer().Run(ctx, &mcp.StdioTransport{}) }

// facts are the notes that are there from the start.
var facts = []note{
	{"cause", "Tides come from the pull of the Moon and, a little less than half as strong, of the Sun."},
	{"rhythm", "Most coasts have two high and two low waters in a lunar day of 24 hours and 50 minutes."},
	{"spring tides", "At new and full moon, Sun and Moon pull along one line: the range is largest."},
	{"neap tides", "At the half moons, Sun and Moon pull at right angles: the range is smallest."},
	{"bay of fundy", "The Bay of Fundy in Canada has the largest range on Earth, about 16 metres."},
	{"mediterranean", "The Mediterranean has hardly any tide: its strait is too narrow to let the wave in."},
	{"power", "The tidal power station at La Rance in France has worked since 1966, at up to 240 megawatts."},
}

type note struct{ topic, text string }

func (n note) String() string { return n.topic + ": " + n.text }

// notebook holds notes; its methods are the tools.
type notebook struct {
	mu    sync.Mutex
	notes []note
}

type addInput struct {
	Topic string `json:"topic" jsonschema:"what the note is about, in a word or two"`
	Text  string `json:"text" jsonschema:"the note itself, one or two sentences"`
}

func (b *notebook) add(_ context.Context, _ *mcp.CallToolRequest, in addInput) (*mcp.CallToolResult, any, error) {
	n := note{strings.TrimSpace(in.Topic), strings.TrimSpace(in.Text)}
	if n.topic == "" || n.text == "" {
		return nil, nil, fmt.Errorf("a note needs a topic and a text")
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.notes = append(b.notes, n)
	return text(fmt.Sprintf("Noted. The notebook holds %d notes.", len(b.notes))), nil, nil
}

type listInput struct{}

func (b *notebook) list(context.Context, *mcp.CallToolRequest, listInput) (*mcp.CallToolResult, any, error) {
	return b.find("", "The notebook is empty.")
}

type searchInput struct {
	Query string `json:"query" jsonschema:"a word or words that a note must hold, in any order"`
}

func (b *notebook) search(_ context.Context, _ *mcp.CallToolRequest, in searchInput) (*mcp.CallToolResult, any, error) {
	return b.find(in.Query, fmt.Sprintf("No note holds all of %q. Try a single word.", in.Query))
}

// find returns the notes that hold every word of the query, a line each.
func (b *notebook) find(query, none string) (*mcp.CallToolResult, any, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	words := strings.Fields(strings.ToLower(query))
	var found []string
	for _, n := range b.notes {
		if holds(strings.ToLower(n.String()), words) {
			found = append(found, "- "+n.String())
		}
	}
	if len(found) == 0 {
		return text(none), nil, nil
	}
	return text(strings.Join(found, "\n")), nil, nil
}

func holds(s string, words []string) bool {
	for _, word := range words {
		if !strings.Contains(s, word) {
			return false
		}
	}
	return true
}

func text(s string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}
}

// newServer returns a server with a notebook of its own.
func newServer() *mcp.Server {
	b := &notebook{notes: append([]note(nil), facts...)}
	server := mcp.NewServer(&mcp.Implementation{Name: "notes", Version: "1.0.0"}, &mcp.ServerOptions{
		Instructions: "A notebook about the tides. Search it before you write; add what you conclude.",
	})
	readOnly := &mcp.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true}
	mcp.AddTool(server, &mcp.Tool{Name: "search_notes", Description: "Find the notes that hold all words of a query.", Annotations: readOnly}, b.search)
	mcp.AddTool(server, &mcp.Tool{Name: "list_notes", Description: "List every note, oldest first.", Annotations: readOnly}, b.list)
	mcp.AddTool(server, &mcp.Tool{Name: "add_note", Description: "Add a note to the notebook."}, b.add)
	return server
}
