package server_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"crewhost/mcp/server"
)

// list_changed reaches clients of both eras, once for many changes, each under the
// subscription that asked.
func TestListChanged(t *testing.T) {
	g, reg := guard(t, []tool{echo("a")})
	lib := new(library)
	s := serverOf(t, server.Config{Guard: g, Prompts: lib})
	c := dial(t, s)
	m := c.ask(modernLine(`"sub"`, "subscriptions/listen", `"notifications":{"toolsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":["mem:///a"]}`))
	if want := `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"sub"},"notifications":{"toolsListChanged":true}}}`; m.line != want {
		t.Errorf("got %s\nwant %s", m.line, want)
	}
	// Of two on one session each has its own events.
	m = c.ask(modernLine(`2`, "subscriptions/listen", `"notifications":{"promptsListChanged":true}`))
	if !strings.Contains(m.line, `"io.modelcontextprotocol/subscriptionId":2},"notifications":{"promptsListChanged":true}`) {
		t.Errorf("got %s", m.line)
	}
	old := dial(t, s)
	old.hello("2025-11-25", "{}")
	old.wantPing()

	for i := range 20 {
		if err := reg.Add(echo(fmt.Sprintf("b%d", i))); err != nil {
			t.Fatal(err)
		}
		s.Refresh()
	}
	got := map[string]bool{c.next().line: true, c.next().line: true}
	for _, want := range []string{
		`{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"sub"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/prompts/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":2}}}`,
	} {
		if !got[want] {
			t.Errorf("%s is not among %v", want, got)
		}
	}
	got = map[string]bool{old.next().line: true, old.next().line: true}
	if !got[`{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{}}`] || !got[`{"jsonrpc":"2.0","method":"notifications/prompts/list_changed","params":{}}`] {
		t.Errorf("a session hears %v", got)
	}
	old.wantPing()
	if m := old.ask(legacyLine("1", "tools/list", "")); !strings.Contains(m.line, `"name":"b19"`) {
		t.Errorf("the list is %s", m.line)
	}
	// What changes nothing about tools says nothing of them.
	s.Refresh()
	if m := old.next(); !strings.Contains(m.line, "prompts") {
		t.Errorf("got %s", m.line)
	}
	old.wantPing()
}

// I10: a resource is watched for clients of both eras, up to so many of them, and
// no more when they go.
func TestSubscriptions(t *testing.T) {
	lib := new(library)
	s := serverOf(t, server.Config{Resources: lib, Budgets: server.Budgets{SubscribedURIs: 2, Subscribers: 2}})
	c := dial(t, s)
	c.hello("2025-11-25", "{}")
	for _, uri := range []string{"mem:///a", "mem:///a", "mem:///b"} {
		if m := c.ask(legacyLine("1", "resources/subscribe", `"uri":"`+uri+`"`)); string(m.Result) != "{}" {
			t.Errorf("subscribing: %s", m.line)
		}
	}
	if m := c.ask(legacyLine("1", "resources/subscribe", `"uri":"mem:///c"`)); m.Error == nil || m.Error.Code != server.CodeTooManyListeners {
		t.Errorf("one too many: %s", m.line)
	}
	if m := c.ask(legacyLine("1", "resources/unsubscribe", `"uri":"mem:///b"`)); string(m.Result) != "{}" || lib.stops() != 1 {
		t.Errorf("unsubscribing: %s", m.line)
	}
	if m := c.ask(legacyLine("1", "resources/subscribe", `"uri":"mem:///none"`)); m.Error == nil || m.Error.Code != -32002 {
		t.Errorf("one that isn't there: %s", m.line)
	}
	if m := c.ask(modernLine("5", "subscriptions/listen", `"notifications":{"resourceSubscriptions":["a","b","c"]}`)); m.Error == nil || m.Error.Code != server.CodeTooManyListeners {
		t.Errorf("too many at once: %s", m.line)
	}
	m := c.ask(modernLine("5", "subscriptions/listen", `"notifications":{"resourceSubscriptions":["mem:///none","mem:///c","mem:///c"]}`))
	if !strings.Contains(m.line, `"notifications":{"resourceSubscriptions":["mem:///c"]}`) {
		t.Errorf("listening: %s", m.line)
	}
	if m := c.ask(modernLine("6", "subscriptions/listen", `"notifications":{"resourceSubscriptions":["mem:///c"]}`)); m.Error == nil || m.Error.Code != server.CodeTooManyListeners {
		t.Errorf("one listener too many: %s", m.line)
	}
	lib.change("mem:///a")
	lib.change("mem:///a")
	if m := c.next(); m.line != `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"mem:///a"}}` {
		t.Errorf("got %s", m.line)
	}
	lib.change("mem:///c")
	if m := c.next(); m.line != `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":5},"uri":"mem:///c"}}` {
		t.Errorf("got %s", m.line)
	}
	c.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}`)
	for deadline := time.Now().Add(patience); lib.stops() != 2; {
		if time.Now().After(deadline) {
			t.Fatal("a cancelled subscription is still watched for")
		}
		c.wantPing()
	}
	c.in.Close()
	if err := <-c.done; err != nil || lib.stops() != 3 {
		t.Errorf("at the end: %v, %d watches ended", err, lib.stops())
	}
}

// I10: where more events wait than the buffer holds, the stream ends, so that the
// client knows; a session hears that the list changed.
func TestOverflow(t *testing.T) {
	lib := new(library)
	c := dial(t, serverOf(t, server.Config{Resources: lib, Budgets: server.Budgets{SubscriptionBuffer: 1}}))
	c.hello("2025-11-25", "{}")
	uris := []string{"mem:///1", "mem:///2", "mem:///3"}
	for _, uri := range uris {
		c.ask(legacyLine("1", "resources/subscribe", `"uri":"`+uri+`"`))
	}
	c.ask(modernLine("5", "subscriptions/listen", `"notifications":{"resourceSubscriptions":["`+strings.Join(uris, `","`)+`"]}`))
	for _, uri := range uris {
		lib.change(uri)
	}
	var all []string
	for range 4 {
		all = append(all, c.next().line)
	}
	got := strings.Join(all, "\n")
	for _, want := range []string{
		`{"jsonrpc":"2.0","id":5,"result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/`,
		`"io.modelcontextprotocol/subscriptionId":5},"uri":"mem:///1"}`,
		`"params":{"uri":"mem:///1"}`,
		`{"jsonrpc":"2.0","method":"notifications/resources/list_changed","params":{}}`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is not in\n%s", want, got)
		}
	}
	c.wantPing()
}
