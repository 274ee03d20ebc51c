package mcp_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crewhost/config"
	"crewhost/mcp"
	"crewhost/mcp/mcptest"
	"crewhost/tools"
)

// Resources are listed and read in both eras; what can't be seen is not in their
// texts (R4), and their data is the server's.
func TestResources(t *testing.T) {
	everyway(t, func(t *testing.T, server func(string) config.Server) {
		r := startWith(t, settings(server("echo")), mcp.Options{Respondent: accepting("who", "me")}).connected()
		list, err := r.Resources(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		want := mcp.ResourceList{
			Resources: []mcp.Resource{
				{URI: "asking:///", Name: "asking", Size: -1},
				{URI: "notes:///tide", Name: "tide", Title: "The tide", Description: "When it is high.", MIME: "text/plain", Size: 11},
			},
			Templates: []mcp.ResourceTemplate{{URITemplate: "notes:///{name}", Name: "note", Description: "Any note."}},
		}
		if diff := cmp.Diff(want, list); diff != "" {
			t.Error(diff)
		}
		contents, err := r.ReadResource(t.Context(), "a", "notes:///tide")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]mcp.ResourceContents{
			{URI: "notes:///tide", MIME: "text/plain", Text: "high at six"},
			{URI: "notes:///tide#chart", MIME: "image/png", Data: []byte("a chart")},
		}, contents); diff != "" {
			t.Error(diff)
		}
		// A read may ask, as a call may. (The SDK's server can't in the legacy era.)
		contents, err = r.ReadResource(t.Context(), "a", "asking:///")
		if r.only().Era == mcp.Modern && (err != nil || len(contents) != 1 || contents[0].Text != `{"q":{"action":"accept","content":{"who":"me"}}}`) {
			t.Errorf("got %+v, %v", contents, err)
		}
		_, err = r.ReadResource(t.Context(), "a", "notes:///none")
		if tools.CodeOf(err) != tools.CodeProtocolError || !strings.Contains(err.Error(), "notes:///none") {
			t.Errorf("got %v", err)
		}
		for _, uri := range []string{"", "a\nb", strings.Repeat("x", 5<<10)} {
			if _, err := r.ReadResource(t.Context(), "a", uri); tools.CodeOf(err) != tools.CodeArgumentsInvalid {
				t.Errorf("%.10q: %v", uri, err)
			}
		}
		if _, err := r.Resources(t.Context(), "b"); err == nil || !strings.Contains(err.Error(), `server "b"`) {
			t.Errorf("got %v", err)
		}
	})
}

func TestPrompts(t *testing.T) {
	everyway(t, func(t *testing.T, server func(string) config.Server) {
		r := startWith(t, settings(server("echo")), mcp.Options{Respondent: accepting("who", "me")}).connected()
		list, err := r.Prompts(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(mcp.PromptList{Prompts: []mcp.Prompt{
			{Name: "asks"},
			{Name: "greet", Title: "Greet", Description: "Greets somebody.", Arguments: []mcp.PromptArgument{
				{Name: "who", Description: "Whom.", Required: true},
			}},
		}}, list); diff != "" {
			t.Error(diff)
		}
		p, err := r.GetPrompt(t.Context(), "a", "greet", map[string]string{"who": "Ada"})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(mcp.PromptText{Description: "A greeting.", Messages: []mcp.PromptMessage{
			{Role: "user", Content: tools.Content{Kind: tools.KindText, Text: "Say hello to Ada."}},
			{Role: "assistant", Content: tools.Content{Kind: tools.KindText, Text: "Hello!"}},
		}}, p); diff != "" {
			t.Error(diff)
		}
		p, err = r.GetPrompt(t.Context(), "a", "asks", nil)
		if err != nil || len(p.Messages) != 1 || !strings.Contains(p.Messages[0].Content.Text, `"who":"me"`) {
			t.Errorf("got %+v, %v", p, err)
		}
		if _, err := r.GetPrompt(t.Context(), "a", "none", nil); tools.CodeOf(err) != tools.CodeProtocolError {
			t.Errorf("got %v", err)
		}
	})
}

// Arguments are completed in both eras, within bounds.
func TestComplete(t *testing.T) {
	everyway(t, func(t *testing.T, server func(string) config.Server) {
		r := startWith(t, settings(server("echo")), mcp.Options{}).connected()
		if !r.Completes("a") || r.Completes("b") {
			t.Errorf("completes: %t, %t", r.Completes("a"), r.Completes("b"))
		}
		for _, tt := range []struct {
			q    mcp.Incomplete
			want mcp.Completion
		}{
			{mcp.Incomplete{Prompt: "greet", Argument: "who", Written: "A", Others: map[string]string{"other": "B"}}, mcp.Completion{Values: []string{"greet who A B"}}},
			{mcp.Incomplete{Template: "notes:///{name}", Argument: "name", Written: "more"}, mcp.Completion{Values: []string{"notes:///{name} name more"}, More: true}},
			{mcp.Incomplete{Prompt: "greet", Argument: "who", Written: "many"}, mcp.Completion{Values: slices.Repeat([]string{"greet who many"}, 100), More: true}},
		} {
			got, err := r.Complete(t.Context(), "a", tt.q)
			if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
				t.Error(err, diff)
			}
		}
		if _, err := r.Complete(t.Context(), "a", mcp.Incomplete{Prompt: "greet", Argument: "who", Written: "fail"}); tools.CodeOf(err) != tools.CodeProtocolError || !strings.Contains(err.Error(), `completion of the prompt "greet"`) {
			t.Errorf("got %v", err)
		}
		for _, q := range []mcp.Incomplete{
			{Argument: "who"}, {Prompt: "greet"}, {Prompt: "greet", Template: "notes:///{name}", Argument: "who"},
			{Prompt: "a\nb", Argument: "who"}, {Template: strings.Repeat("x", 5<<10), Argument: "who"},
		} {
			if _, err := r.Complete(t.Context(), "a", q); tools.CodeOf(err) != tools.CodeArgumentsInvalid {
				t.Errorf("%.20v: %v", q, err)
			}
		}
	})
}

// A server without resources and prompts is asked for neither.
func TestNothingOffered(t *testing.T) {
	r := startWith(t, settings(stdio("a", mcptest.Scripted)), mcp.Options{}).connected()
	list, err := r.Resources(t.Context(), "a")
	if err != nil || len(list.Resources)+len(list.Templates)+len(list.Warnings) > 0 {
		t.Errorf("got %+v, %v", list, err)
	}
	prompts, err := r.Prompts(t.Context(), "a")
	if err != nil || len(prompts.Prompts) > 0 {
		t.Errorf("got %+v, %v", prompts, err)
	}
	if _, err := r.ReadResource(t.Context(), "a", "a:b"); tools.CodeOf(err) != tools.CodeMethodNotFound {
		t.Errorf("got %v", err)
	}
	if _, err := r.Complete(t.Context(), "a", mcp.Incomplete{Prompt: "a", Argument: "b"}); r.Completes("a") || tools.CodeOf(err) != tools.CodeMethodNotFound {
		t.Errorf("got %v", err)
	}
	if log := text(r.call("log", "")); strings.Contains(log, "resources/") || strings.Contains(log, "prompts/") || strings.Contains(log, "completion/") {
		t.Errorf("on the wire: %s", log)
	}
}

// R5: agents reach resources only where the settings say so, by tools that come
// before those of servers (O12).
func TestResourceTools(t *testing.T) {
	everyway(t, func(t *testing.T, server func(string) config.Server) {
		cfg := settings(server("echo,"+mcp.ReadResourceTool), stdio("b", mcptest.Scripted, "-list", "[]"))
		r := startWith(t, cfg, mcp.Options{}).connected()
		if _, ok := r.reg.Lookup(mcp.ListResourcesTool); ok {
			t.Error("the tools are there without a setting")
		}
		cfg.ResourceTools = true
		r = startWith(t, cfg, mcp.Options{}).connected()
		if s := r.Reports()[0].Skipped; len(s) != 1 || s[0].Holder != "a built-in tool" {
			t.Errorf("skipped %+v", s)
		}
		tool, ok := r.reg.Lookup(mcp.ReadResourceTool)
		if !ok || string(tool.Definition().InputSchema) != `{"type":"object","properties":{"server":{"type":"string","enum":["a"],"description":"The server, by its name in the settings."},"uri":{"type":"string","description":"The URI of the resource."}},"required":["server","uri"],"additionalProperties":false}` {
			t.Errorf("schema %s", tool.Definition().InputSchema)
		}
		want := "asking:/// asking\nnotes:///tide tide (text/plain): When it is high.\nTemplates, whose parts in braces are to be filled in:\nnotes:///{name} note: Any note.\n"
		if got := text(r.call(mcp.ListResourcesTool, `{"server":"a"}`)); got != want {
			t.Errorf("got %s", got)
		}
		if got := text(r.call(mcp.ListResourcesTool, `{"server":"b"}`)); !strings.Contains(got, "offers no resources") {
			t.Errorf("got %s", got)
		}
		res := r.call(mcp.ReadResourceTool, `{"server":"a","uri":"notes:///tide"}`)
		if diff := cmp.Diff(tools.Result{Content: []tools.Content{
			{Kind: tools.KindResource, URI: "notes:///tide", MIME: "text/plain", Text: "high at six"},
			{Kind: tools.KindResource, URI: "notes:///tide#chart", MIME: "image/png", Data: []byte("a chart")},
		}}, res); diff != "" {
			t.Error(diff)
		}
		for args, says := range map[string]string{
			``:                              `"server" is missing`,
			`{"server":"a"}`:                `"uri" is missing`,
			`{"server":5,"uri":"x"}`:        "must be a string",
			`{"server":"a","url":"x"}`:      `no argument "url"`,
			`[]`:                            "not one JSON object",
			`{"server":"c","uri":"x"}`:      "no such MCP server",
			`{"server":"b","uri":"x"}`:      "offers no resources",
			`{"server":"a","uri":"n:none"}`: "n:none",
		} {
			if res := r.call(mcp.ReadResourceTool, args); !res.IsError || !strings.Contains(text(res), says) {
				t.Errorf("%s: got %+v", args, res)
			}
		}
		// The policy and the tool read the server's name alike.
		scoped := tool.(interface {
			Server(json.RawMessage) string
		})
		if got := scoped.Server(json.RawMessage(`{"server":"b","uri":"x","server":"a"}`)); got != "a" {
			t.Errorf("server %q", got)
		}
		if got := scoped.Server(json.RawMessage(`{"Server":"a","uri":"x"}`)); got != "" {
			t.Errorf("server %q", got)
		}
	})
}
