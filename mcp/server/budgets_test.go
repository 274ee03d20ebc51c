package server_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"crewhost/mcp/server"
)

// I13: what can't be meant is refused before anything is served, all at once and
// each by its name.
func TestBudgetsThatCantBeMeant(t *testing.T) {
	wrong := server.Budgets{
		RequestBytes: -1, ConcurrentRequests: -1, ResponseBytes: -1, MetadataBytes: -1, PageSize: 101, Grace: -1,
		SubscriptionBuffer: -1, Subscribers: -1, SubscribedURIs: -1, Keepalive: -1,
		SearchThreshold: -1, SearchResults: -1, SearchCalls: -1, SearchBytes: -1,
	}
	err := wrong.Check()
	if err == nil {
		t.Fatal("no error")
	}
	for _, name := range []string{
		"request bytes: -1 ", "concurrent requests: ", "response bytes: ", "metadata bytes: ", "page size: 101 is above 100", "grace: -1ns",
		"subscription buffer: ", "subscribers: ", "subscribed URIs: ", "keepalive: ",
		"search threshold: ", "search results: ", "search calls: ", "search bytes: ",
	} {
		if !strings.Contains("\n"+err.Error(), "\n"+name) {
			t.Errorf("%q is not in\n%v", name, err)
		}
	}
	if _, err := server.New(server.Config{Budgets: wrong}); err == nil || strings.Count(err.Error(), "\n") != 16 {
		t.Errorf("New: %v", err)
	}
	for _, fine := range []server.Budgets{{}, {PageSize: 100, Grace: time.Nanosecond, RequestBytes: 1}} {
		if err := fine.Check(); err != nil {
			t.Error(err)
		}
	}
}

// I9: a request for which there is no place is refused at once, by an error of its
// own, and the others go on. A listening stream holds its place (I10).
func TestBusy(t *testing.T) {
	w := newWaiting()
	c := dial(t, serverOf(t, server.Config{Budgets: server.Budgets{ConcurrentRequests: 3}}, w.tool("wait"), echo("echo")))
	c.hello("2025-11-25", "{}")
	c.say(legacyLine("1", "tools/call", `"name":"wait"`), modernLine("2", "tools/call", `"name":"wait"`))
	w.begun(t, 2)
	if m := c.ask(modernLine("3", "subscriptions/listen", `"notifications":{"toolsListChanged":true}`)); m.Method != "notifications/subscriptions/acknowledged" {
		t.Fatalf("listening: %s", m.line)
	}
	for _, line := range []string{
		legacyLine("4", "tools/call", `"name":"echo"`), modernLine("4", "tools/call", `"name":"echo"`),
		legacyLine("4", "tools/list", ""), modernLine("4", "subscriptions/listen", `"notifications":{}`),
	} {
		if m := c.ask(line); m.Error == nil || m.Error.Code != server.CodeBusy || string(m.ID) != "4" {
			t.Errorf("%s\nis answered with %s", line, m.line)
		}
	}
	c.wantPing()
	c.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}`)
	w.release <- struct{}{}
	c.next()
	if m := c.ask(legacyLine("5", "tools/call", `"name":"echo"`)); m.Error != nil {
		t.Errorf("with a place again: %s", m.line)
	}
	w.release <- struct{}{}
	c.next()
}

// I9, K83: what is too large is refused by an error of its own, and the stream goes
// on.
func TestTooLarge(t *testing.T) {
	big := strings.Repeat("x", 3000)
	c := dial(t, serverOf(t, server.Config{Budgets: server.Budgets{RequestBytes: 6000, ResponseBytes: 2000, MetadataBytes: 1000}}, echo("echo")))
	c.hello("2025-11-25", "{}")
	for name, tt := range map[string]struct {
		line string
		id   string
		code int
	}{
		"an answer":           {legacyLine("1", "tools/call", `"name":"echo","arguments":{"x":"`+big+`"}`), "1", server.CodeResponseTooLarge},
		"a modern answer":     {modernLine("2", "tools/call", `"name":"echo","arguments":{"x":"`+big+`"}`), "2", server.CodeResponseTooLarge},
		"metadata":            {legacyLine(`"m"`, "tools/list", `"_meta":{"x":"`+big+`"}`), `"m"`, server.CodeMetadataTooLarge},
		"a request":           {legacyLine("4", "tools/call", `"name":"echo","arguments":{"x":"`+big+big+`"}`), "4", server.CodeRequestTooLarge},
		"a request, id last":  {`{"jsonrpc":"2.0","method":"tools/list","params":{"x":"` + big + big + `"},"id":"z"}`, `"z"`, server.CodeRequestTooLarge},
		"something":           {big + big + big, "null", server.CodeRequestTooLarge},
		"an argument, though": {legacyLine("5", "tools/call", `"name":"echo","arguments":{"x":"`+big[:100]+`"}`), "5", 0},
	} {
		m := c.ask(tt.line)
		if string(m.ID) != tt.id || (m.Error != nil) != (tt.code != 0) || m.Error != nil && m.Error.Code != tt.code {
			t.Errorf("%s: %.200s", name, m.line)
		}
	}
	c.say(`{"jsonrpc":"2.0","method":"notifications/x","params":{"x":"` + big + big + `"}}`)
	c.wantPing()
}

// I9: the cursor is opaque, pages are of the size that the settings say, and in
// ordinal order (O8).
func TestPages(t *testing.T) {
	var all []tool
	for _, name := range []string{"e", "B", "a", "d", "é", "A", "z"} {
		all = append(all, echo(name))
	}
	c := dial(t, serverOf(t, server.Config{Budgets: server.Budgets{PageSize: 3}}, all...))
	c.hello("2025-11-25", "{}")
	var names []string
	var sizes []int
	for cursor := ""; ; {
		m := c.ask(legacyLine("1", "tools/list", cursor))
		var page struct {
			Tools      []struct{ Name string }
			NextCursor string
		}
		if err := json.Unmarshal(m.Result, &page); err != nil {
			t.Fatal(err, m.line)
		}
		sizes = append(sizes, len(page.Tools))
		for _, tool := range page.Tools {
			names = append(names, tool.Name)
		}
		if page.NextCursor == "" {
			break
		}
		cursor = `"cursor":"` + page.NextCursor + `"`
	}
	if got := strings.Join(names, " "); got != "A B a d e z é" || len(sizes) != 3 {
		t.Errorf("got %s in pages of %d", got, sizes)
	}
	for _, cursor := range []string{`"cursor":"nonsense"`, `"cursor":"cmVzb3VyY2VzAGE"`, `"cursor":"!"`} {
		if m := c.ask(legacyLine("1", "tools/list", cursor)); m.Error == nil || m.Error.Code != -32602 || !strings.Contains(m.line, "a list of tools gave: begin again without one") {
			t.Errorf("%s: %s", cursor, m.line)
		}
	}
}
