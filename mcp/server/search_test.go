package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"crewhost/mcp/server"
	"crewhost/tools"
	"crewhost/tools/permission"
)

func described(name, description string, call func(context.Context, tools.Call) (tools.Result, error)) tool {
	t := named(name, call)
	t.def.Description = description
	return t
}

// found is what tool_search answers with, and tool_call.
type found struct {
	StructuredContent struct {
		Tools []struct {
			Name, Description string
			InputSchema       map[string]any
		}
		Total  int
		Notice string
	}
	Content []struct{ Type, Text string }
	IsError bool
}

func (f found) names() string {
	var names []string
	for _, t := range f.StructuredContent.Tools {
		names = append(names, t.Name)
	}
	return strings.Join(names, " ")
}

func (c *client) found(line string) found {
	c.t.Helper()
	m := c.ask(line)
	var f found
	if m.Error != nil || json.Unmarshal(m.Result, &f) != nil || len(f.Content) == 0 {
		c.t.Fatalf("%.300s\nis answered with\n%.1000s", line, m.line)
	}
	return f
}

func searchFor(query, more string) string {
	return modernLine("1", "tools/call", `"name":"tool_search","arguments":{"query":"`+query+`"`+more+`}`)
}

func callFound(name, arguments string) string {
	return modernLine("1", "tools/call", `"name":"tool_call","arguments":{"name":"`+name+`","arguments":`+arguments+`}`)
}

// I11: past the threshold a search stands in for the list, and a call goes the way of
// all calls, under the tool's own name.
func TestSearchStandsIn(t *testing.T) {
	said := echo("echo").call
	g, reg := guard(t, []tool{
		described("lamp_on", "Switches a light on.", said), described("file_delete", "Deletes a file.", said), described("secret", "Deletes all secrets.", said),
	}, "secret")
	var mu sync.Mutex
	var seen []string
	g.Observe = func(o permission.Observation) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, o.Request.Tool+" "+string(o.Outcome))
	}
	s := serverOf(t, server.Config{Guard: g, Budgets: server.Budgets{SearchThreshold: 3}})
	c := dial(t, s)
	c.hello("2025-11-25", "{}")
	list := func() string {
		t.Helper()
		var l struct{ Tools []struct{ Name string } }
		if m := c.ask(legacyLine("1", "tools/list", "")); json.Unmarshal(m.Result, &l) != nil {
			t.Fatal(m.line)
		}
		var names []string
		for _, tool := range l.Tools {
			names = append(names, tool.Name)
		}
		return strings.Join(names, " ")
	}
	if got := list(); got != "file_delete lamp_on secret" {
		t.Errorf("at the threshold %s are listed", got)
	}
	if m := c.ask(modernLine("1", "tools/call", `"name":"tool_search","arguments":{"query":"a"}`)); m.Error == nil || m.Error.Code != -32602 {
		t.Errorf("there is a search at the threshold: %s", m.line)
	}
	// Clients hear that there is another list, and once: it does not change with the
	// tools behind it.
	if err := reg.Add(described("tool_call", "Dances.", said)); err != nil {
		t.Fatal(err)
	}
	s.Refresh()
	if m := c.next(); m.Method != "notifications/tools/list_changed" {
		t.Errorf("past the threshold the server says %s", m.line)
	}
	if got := list(); got != "tool_call tool_search" {
		t.Errorf("past the threshold %s are listed", got)
	}

	for query, want := range map[string]string{"erase a document": "file_delete", "turn the lamp on": "lamp_on", "lamp_on": "lamp_on", "dance": "tool_call"} {
		if f := c.found(searchFor(query, `,"limit":1`)); f.names() != want || f.StructuredContent.Total != 4 || f.IsError {
			t.Errorf("%s: %+v", query, f)
		}
	}
	f := c.found(searchFor("light", ""))
	if len(f.StructuredContent.Tools) != 1 || f.StructuredContent.Tools[0].InputSchema["type"] != "object" || f.StructuredContent.Tools[0].Description == "" {
		t.Errorf("a definition is %+v", f.StructuredContent.Tools)
	}
	if f := c.found(searchFor("zzzz", "")); f.names() != "" || f.StructuredContent.Notice == "" {
		t.Errorf("of an unknown word: %+v", f)
	}
	for line, want := range map[string]string{
		callFound("lamp_on", `{"room":1e400}`):                                             `{"room":1e400}`,
		callFound("lamp_on", `null`):                                                       `{}`,
		callFound("tool_call", `{"steps":2}`):                                              `{"steps":2}`, // that is served, and not this one again
		modernLine("1", "tools/call", `"name":"lamp_on","arguments":{"a":1}`):              `{"a":1}`,
		legacyLine("1", "tools/call", `"name":"tool_call","arguments":{"name":"lamp_on"}`): `{}`,
	} {
		if f := c.found(line); f.IsError || f.Content[0].Text != want {
			t.Errorf("%s: %+v", line, f)
		}
	}
	for line, want := range map[string]string{
		callFound("secret", `{}`):                             `"secret"`, // the policy's word
		callFound("lampon", `{}`):                             "lamp_on",
		callFound("tool_search", `{}`):                        "There is no tool",
		callFound("lamp_on", `[]`):                            "must be a JSON object",
		callFound("", `{}`):                                   "must be the name",
		searchFor(" ", ""):                                    "must say",
		searchFor("a", `,"limit":"x"`):                        "not an integer",
		modernLine("1", "tools/call", `"name":"tool_search"`): "must say",
	} {
		if f := c.found(line); !f.IsError || !strings.Contains(f.Content[0].Text, want) {
			t.Errorf("%s: %+v", line, f)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if got := strings.Join(seen, ", "); strings.Count(got, "lamp_on succeeded") != 4 || strings.Count(got, "secret denied") != 1 || strings.Count(got, "tool_call succeeded") != 1 || len(seen) != 6 {
		t.Errorf("the log of calls has %s", got)
	}
}

// I11: so many results a search, so much output, so many calls at a time for one
// client, while others go on.
func TestSearchBudgets(t *testing.T) {
	all := []tool{
		described("large", "Says much.", func(context.Context, tools.Call) (tools.Result, error) {
			return tools.Result{
				Content:    []tools.Content{{Kind: tools.KindText, Text: "begin" + strings.Repeat("é\x01", 40_000)}, {Kind: tools.KindImage, MIME: "image/png", Data: make([]byte, 90_000)}, {Kind: tools.KindText, Text: "end"}},
				Structured: json.RawMessage(`{"n":1}`),
			}, nil
		}),
		described("structured", "Says much, as data.", func(context.Context, tools.Call) (tools.Result, error) {
			return tools.Result{Structured: json.RawMessage(`{"n":"` + strings.Repeat("x", 90_000) + `"}`)}, nil
		}),
	}
	running, release := make(chan struct{}, 10), make(chan struct{})
	all = append(all, described("wait", "Waits.", func(ctx context.Context, _ tools.Call) (tools.Result, error) {
		running <- struct{}{}
		select {
		case <-release:
			return tools.Text("done"), nil
		case <-ctx.Done():
			return tools.Result{}, ctx.Err()
		}
	}))
	for i := range 30 {
		one := described(fmt.Sprintf("kite_%02d", i), "Flies a kite.", echo("").call)
		if i < 3 {
			one.def.InputSchema = json.RawMessage(`{"type":"object","description":"` + strings.Repeat("w ", 20_000) + `"}`)
		}
		all = append(all, one)
	}
	const most = 64 << 10
	s := serverOf(t, server.Config{Budgets: server.Budgets{SearchThreshold: 1, SearchCalls: 2, SearchBytes: most}}, all...)
	c := dial(t, s)
	if f := c.found(searchFor("kite_29", `,"limit":1`)); len(f.StructuredContent.Tools) != 1 {
		t.Errorf("got %s", f.names())
	}
	f := c.found(searchFor("fly", `,"limit":1000`))
	if n := len(f.StructuredContent.Tools); n != 17 || !strings.HasPrefix(f.StructuredContent.Notice, "3 more") || !strings.HasSuffix(f.StructuredContent.Notice, "kite_00, kite_01, kite_02") {
		t.Errorf("of 30 tools %d are found, %q", n, f.StructuredContent.Notice)
	}
	m := c.ask(searchFor("kite_01", ""))
	if !strings.Contains(m.line, "more than may be said at once: ") || len(m.line) > most {
		t.Errorf("a definition that is too large: %d bytes, %.300s", len(m.line), m.line)
	}
	for _, line := range []string{callFound("large", "{}"), legacyLine("1", "tools/call", `"name":"tool_call","arguments":{"name":"structured"}`)} {
		if strings.Contains(line, "structured") {
			c.hello("2025-11-25", "{}")
		}
		m := c.ask(line)
		if len(m.line) > most+500 || !strings.Contains(m.line, "The result was cut: it has ") {
			t.Errorf("%s: %d bytes, ends with %s", line, len(m.line), m.line[max(0, len(m.line)-200):])
		}
	}
	if f := c.found(callFound("large", "{}")); len(f.Content) < 2 || !strings.HasPrefix(f.Content[0].Text, "begin") || len(f.Content[0].Text) < 15_000 {
		t.Errorf("%d blocks are left of a large result", len(f.Content))
	}

	for i := range 2 {
		c.say(modernLine(fmt.Sprint(10+i), "tools/call", `"name":"tool_call","arguments":{"name":"wait"}`))
		<-running
	}
	if m := c.ask(callFound("wait", "{}")); m.Error == nil || m.Error.Code != server.CodeTooManyCalls {
		t.Errorf("a third call at a time: %s", m.line)
	}
	c.found(searchFor("fly", ""))
	other := dial(t, s)
	if f := other.found(callFound("kite_00", "{}")); f.IsError {
		t.Errorf("another client: %+v", f)
	}
	close(release)
	for range 2 {
		if m := c.next(); !strings.Contains(m.line, "done") {
			t.Errorf("got %s", m.line)
		}
	}
	if f := c.found(callFound("kite_00", "{}")); f.IsError {
		t.Errorf("after them: %+v", f)
	}
}

// I11: a search among 10,000 tools, as a client has it.
func BenchmarkSearchAmong10000(b *testing.B) {
	all := make([]tool, 10_000)
	for i := range all {
		all[i] = described(fmt.Sprintf("service_%d_tool_%d", i%97, i), fmt.Sprintf("Does thing number %d for service %d, and tells how it went.", i, i%97), echo("").call)
	}
	c := dial(b, serverOf(b, server.Config{Budgets: server.Budgets{SearchThreshold: 100}}, all...))
	c.found(searchFor("thing", "")) // makes the index
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		c.found(searchFor(fmt.Sprintf("how did thing %d go", i%10_000), ""))
	}
}
