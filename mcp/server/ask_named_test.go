package server_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"crewhost/mcp/server"
	"crewhost/tools"
)

// A question with a name can be answered before it is asked, and once; with what is
// no answer it is asked all the same.
func TestAskByName(t *testing.T) {
	both := asking("both", func(ctx context.Context, c server.Caller) (string, error) {
		one, err := elicit(server.AskAs(ctx, "who"), c, "One?")
		if err != nil {
			return "", err
		}
		two, err := elicit(server.AskAs(ctx, "who"), c, "Two?")
		return one + ", " + two, err
	})
	c := dial(t, serverOf(t, server.Config{}, append(askers(), both)...))
	r := roundOf(t, c.ask(ask("1", "both", `"inputResponses":{"who":`+accept("Ada")+`,"more":`+accept("no")+`}`)))
	if got := strings.Join(r.keys(), " "); got != "who" {
		t.Errorf("the question is named %q", got)
	}
	if m := c.ask(ask("2", "both", again(r, `"who":`+accept("Eve")))); !strings.Contains(m.line, `"text":"accept Ada, accept Eve"`) {
		t.Errorf("got %s", m.line)
	}
	for _, brought := range []string{`"who":{"action":"accept","content":{"name":7}}`, `"other":` + accept("Ada"), `"who":{"roots":[]}`} {
		r = roundOf(t, c.ask(ask("1", "both", `"inputResponses":{`+brought+`}`)))
		if got := strings.Join(r.keys(), " "); got != "who" {
			t.Errorf("with %s the question is named %q", brought, got)
		}
	}
	// Nobody can answer what has no name before it is asked.
	r = roundOf(t, c.ask(ask("1", "name", `"inputResponses":{"q1":`+accept("Ada")+`,"":`+accept("Ada")+`}`)))
	if got := strings.Join(r.keys(), " "); got != "q1" {
		t.Errorf("the question is named %q", got)
	}
}

// A question has whatever name the tool gives it.
func TestAskByAnOddName(t *testing.T) {
	const name = "wer\u00a0bist \\du\a\x7f\"?"
	odd := asking("odd", func(ctx context.Context, c server.Caller) (string, error) {
		return elicit(server.AskAs(ctx, name), c, "Who?")
	})
	c := dial(t, serverOf(t, server.Config{}, odd))
	if got := roundOf(t, c.ask(ask("1", "odd", ""))).keys(); len(got) != 1 || got[0] != name {
		t.Errorf("the question is named %q", got)
	}
}

// Where a tool can't do without what its client has not said that it can, a modern
// client is told what that is, and another gets a failure.
func TestAskWithoutAbility(t *testing.T) {
	needs := named("needs", func(ctx context.Context, _ tools.Call) (tools.Result, error) {
		caller, ok := server.CallerFrom(ctx)
		if !ok {
			return tools.Result{}, errors.New("nobody calls")
		}
		_, err := caller.Sample(ctx, []byte(`{"messages":[],"maxTokens":9}`))
		return tools.Result{}, err
	})
	c := dial(t, serverOf(t, server.Config{}, needs))
	if m := c.ask(modernLine("1", "tools/call", `"name":"needs"`)); m.Error == nil || m.Error.Code != -32021 || !strings.Contains(m.line, `"data":{"requiredCapabilities":{"sampling":{}}}`) {
		t.Errorf("in the modern era: %s", m.line)
	}
	c.hello("2025-11-25", "{}")
	if m := c.ask(legacyLine("2", "tools/call", `"name":"needs"`)); !strings.Contains(m.line, `"isError":true`) {
		t.Errorf("before: %s", m.line)
	}
}

// A version that is refused is refused by the request's id, and one that differs
// between header and message is a mismatch.
func TestHTTPVersionsThatDiffer(t *testing.T) {
	w := serveHTTP(t, server.HTTPConfig{}, server.Budgets{})
	body := strings.Replace(`{"jsonrpc":"2.0","id":301,"method":"server/discover","params":{`+modernMeta+`}}`, modern, "v9", 1)
	for header, want := range map[string]string{"v9": "-32022", modern: "-32020"} {
		g := w.send("POST", body, "Mcp-Protocol-Version", header, "Mcp-Method", "server/discover")
		if g.status != 400 || !strings.Contains(g.body, `"id":301`) || !strings.Contains(g.body, `"code":`+want) {
			t.Errorf("%s: %d %s", header, g.status, g.body)
		}
	}
}
