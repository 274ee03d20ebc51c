package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"crewhost/mcp/server"
	"crewhost/tools"
)

// A library has resources and prompts, and completes both.
type library struct {
	mu      sync.Mutex
	watched map[string][]func()
	stopped int
	ask     func(ctx context.Context) string // what a read or a prompt asks first
}

func (l *library) Resources(context.Context) ([]server.Resource, error) {
	return []server.Resource{
		{URI: "mem:///b", Name: "b", Title: "B", Description: "The second.", MIME: "text/plain", Size: 3},
		{URI: "mem:///a"},
	}, nil
}

func (l *library) Templates(context.Context) ([]server.Template, error) {
	return []server.Template{{Template: "mem:///{name}", Name: "any", MIME: "text/plain"}}, nil
}

func (l *library) Read(ctx context.Context, uri string) ([]tools.Content, error) {
	switch uri {
	case "mem:///a":
		return []tools.Content{{Kind: tools.KindResource, MIME: "text/plain", Text: "<a>"}, {Kind: tools.KindResource, URI: "mem:///a#1", Data: []byte{0, 1}}}, nil
	case "mem:///panic":
		panic("inside")
	case "mem:///error":
		return nil, fmt.Errorf("secret inside")
	case "mem:///empty":
		return nil, nil
	case "mem:///ask":
		return []tools.Content{{Kind: tools.KindResource, Text: l.ask(ctx)}}, nil
	}
	return nil, fmt.Errorf("reading %s: %w", uri, server.ErrNotFound)
}

func (l *library) Watch(_ context.Context, uri string, changed func()) (func(), error) {
	if uri == "mem:///none" {
		return nil, server.ErrNotFound
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.watched == nil {
		l.watched = map[string][]func(){}
	}
	l.watched[uri] = append(l.watched[uri], changed)
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.stopped++
	}, nil
}

func (l *library) change(uri string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, changed := range l.watched[uri] {
		changed()
	}
}

func (l *library) stops() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stopped
}

func (l *library) Prompts(context.Context) ([]server.Prompt, error) {
	return []server.Prompt{{Name: "greet", Description: "Greets.", Arguments: []server.PromptArgument{{Name: "who", Title: "Who", Required: true}, {Name: "how"}}}, {Name: "plain"}}, nil
}

func (l *library) Prompt(ctx context.Context, name string, arguments map[string]string) (server.PromptText, error) {
	switch name {
	case "greet":
		return server.PromptText{Description: "A greeting.", Messages: []server.PromptMessage{{Role: "user", Content: tools.Content{Kind: tools.KindText, Text: "Hello, " + arguments["who"]}}}}, nil
	case "ask":
		return server.PromptText{Messages: []server.PromptMessage{{Role: "user", Content: tools.Content{Kind: tools.KindText, Text: l.ask(ctx)}}}}, nil
	}
	return server.PromptText{}, server.ErrNotFound
}

func (l *library) Complete(_ context.Context, ref, argument, written string, others map[string]string) ([]string, bool, error) {
	if ref == "nothing" {
		return nil, false, server.ErrNotFound
	}
	values := []string{ref, argument, written, others["x"]}
	if written == "many" {
		values = make([]string, 150)
	}
	return values, written == "some", nil
}

// Resources, templates, prompts and completion are passed through, in both eras.
func TestResourcesAndPrompts(t *testing.T) {
	lib := new(library)
	c := dial(t, serverOf(t, server.Config{Resources: lib, Prompts: lib}))
	if m := c.hello("2025-11-25", "{}"); !strings.Contains(m.line, `"capabilities":{"completions":{},"logging":{},"prompts":{"listChanged":true},"resources":{"listChanged":true,"subscribe":true},"tools":{"listChanged":true}}`) {
		t.Errorf("capabilities: %s", m.line)
	}
	for _, tt := range []struct{ method, params, want string }{
		{"resources/list", "", `"resources":[{"uri":"mem:///b","name":"b","title":"B","description":"The second.","mimeType":"text/plain","size":3},{"uri":"mem:///a","name":"mem:///a"}]`},
		{"resources/templates/list", "", `"resourceTemplates":[{"uriTemplate":"mem:///{name}","name":"any","mimeType":"text/plain"}]`},
		{"resources/read", `"uri":"mem:///a"`, `"contents":[{"uri":"mem:///a","mimeType":"text/plain","text":"<a>"},{"uri":"mem:///a#1","blob":"AAE="}]`},
		{"resources/read", `"uri":"mem:///empty"`, `"contents":[]`},
		{"prompts/list", "", `"prompts":[{"name":"greet","description":"Greets.","arguments":[{"name":"who","title":"Who","required":true},{"name":"how"}]},{"name":"plain"}]`},
		{"prompts/get", `"name":"greet","arguments":{"who":"you"}`, `"description":"A greeting.","messages":[{"role":"user","content":{"type":"text","text":"Hello, you"}}]`},
		{"completion/complete", `"ref":{"type":"ref/prompt","name":"greet"},"argument":{"name":"who","value":"y"},"context":{"arguments":{"x":"z"}}`, `"completion":{"values":["greet","who","y","z"],"hasMore":false}`},
		{"completion/complete", `"ref":{"type":"ref/resource","uri":"mem:///{name}"},"argument":{"name":"name","value":"y"}`, `"completion":{"values":["mem:///{name}","name","y",""],"hasMore":false}`},
		{"completion/complete", `"ref":{"type":"ref/resource","uri":"mem:///{name}"},"argument":{"name":"name","value":"many"}`, `"hasMore":true`},
		{"completion/complete", `"ref":{"type":"ref/resource","uri":"mem:///{name}"},"argument":{"name":"name","value":"some"}`, `"completion":{"values":["mem:///{name}","name","some",""],"hasMore":true}`},
		{"resources/read", `"uri":"mem:///panic"`, `"code":-32603,"message":"internal error"`},
		{"resources/read", `"uri":"mem:///error"`, `"code":-32603,"message":"internal error"`},
		{"resources/read", `"uri":"mem:///x"`, `,"message":"resource not found","data":{"uri":"mem:///x"}`},
		{"prompts/get", `"name":"x"`, `"code":-32602,"message":"unknown prompt \"x\""`},
		{"completion/complete", `"ref":{"type":"ref/prompt","name":"nothing"},"argument":{"name":"who","value":"y"}`, `"code":-32602`},
	} {
		for _, line := range []string{legacyLine("1", tt.method, tt.params), modernLine("1", tt.method, tt.params)} {
			if m := c.ask(line); !strings.Contains(m.line, tt.want) || strings.Contains(m.line, "inside") {
				t.Errorf("%s\nis answered with\n%s\nwant\n%s", line, m.line, tt.want)
			}
		}
	}
	if m := c.ask(legacyLine("1", "resources/read", `"uri":"mem:///x"`)); m.Error.Code != -32002 {
		t.Errorf("before the modern era: %s", m.line)
	}
	if m := c.ask(modernLine("1", "resources/read", `"uri":"mem:///x"`)); m.Error.Code != -32602 {
		t.Errorf("in the modern era: %s", m.line)
	}
}

// What isn't there is not offered, and not found.
func TestNothingButTools(t *testing.T) {
	c := dial(t, serverOf(t, server.Config{}))
	if m := c.hello("2024-11-05", "{}"); !strings.Contains(m.line, `"capabilities":{"logging":{},"tools":{"listChanged":true}}`) || !strings.Contains(m.line, `"protocolVersion":"2024-11-05"`) {
		t.Errorf("capabilities: %s", m.line)
	}
	for method, params := range map[string]string{
		"resources/list": "", "resources/templates/list": "", "resources/read": `"uri":"a"`, "resources/subscribe": `"uri":"a"`, "resources/unsubscribe": `"uri":"a"`,
		"prompts/list": "", "prompts/get": `"name":"a"`, "completion/complete": `"ref":{"type":"ref/prompt","name":"a"},"argument":{"name":"b","value":""}`,
	} {
		if m := c.ask(legacyLine("1", method, params)); m.Error == nil || m.Error.Code != -32601 {
			t.Errorf("%s: %s", method, m.line)
		}
	}
	if m := c.ask(legacyLine("1", "tools/list", "")); string(m.Result) != `{"tools":[]}` {
		t.Errorf("no tools are %s", m.line)
	}
}

// W7, W10: definitions go out whole, and content in the forms of each revision.
func TestDefinitionsAndContent(t *testing.T) {
	yes, no := true, false
	rich := tool{
		def: tools.Definition{
			Name: "rich", Title: "Rich <&>", Description: "\"quoted\"\u2028",
			InputSchema:  json.RawMessage(`{"type":"object","x-unknown":[1.0,1e400,{"z":1,"a":2}],"properties":{"a":{"const":0.10}}}`),
			OutputSchema: json.RawMessage(`{"type":"object","$defs":{}}`),
			Annotations:  tools.Annotations{ReadOnly: &yes, Destructive: &no},
		},
		call: func(context.Context, tools.Call) (tools.Result, error) {
			return tools.Result{Structured: json.RawMessage(`{"n":1.0}`), Content: []tools.Content{
				{Kind: tools.KindText, Text: "a"},
				{Kind: tools.KindImage, MIME: "image/png", Data: []byte{1}},
				{Kind: tools.KindAudio, MIME: "audio/wav", Data: []byte{2, 3}},
				{Kind: tools.KindResource, URI: "mem:///a", Text: "b"},
				{Kind: tools.KindLink, URI: "mem:///b", Name: "b"},
				{Kind: tools.KindUnknown, Raw: json.RawMessage(`{"type":"smell","x":1}`)},
			}}, nil
		},
	}
	list := named("list", func(context.Context, tools.Call) (tools.Result, error) {
		return tools.Result{Structured: json.RawMessage(`[1]`)}, nil
	})
	s := serverOf(t, server.Config{}, rich, list)
	const definition = `{"name":"rich","title":"Rich <&>","description":"\"quoted\"\u2028","inputSchema":{"type":"object","x-unknown":[1.0,1e400,{"z":1,"a":2}],"properties":{"a":{"const":0.10}}},"outputSchema":{"type":"object","$defs":{}},"annotations":{"readOnlyHint":true,"destructiveHint":false}}`
	const head = `"content":[{"type":"text","text":"a"},{"type":"image","data":"AQ==","mimeType":"image/png"},`
	const resource = `{"type":"resource","resource":{"uri":"mem:///a","text":"b"}},`
	const tail = `,{"type":"text","text":"{\"type\":\"smell\",\"x\":1}"}],"structuredContent":{"n":1.0}}`
	const audio, link = `{"type":"audio","data":"AgM=","mimeType":"audio/wav"},`, `{"type":"resource_link","uri":"mem:///b","name":"b"}`
	const noAudio, noLink = `{"type":"text","text":"[audio, audio/wav, 2 bytes]"},`, `{"type":"text","text":"[resource b: mem:///b]"}`
	for version, want := range map[string]string{
		"2024-11-05": head + noAudio + resource + noLink + tail,
		"2025-03-26": head + audio + resource + noLink + tail,
		"2025-06-18": head + audio + resource + link + tail,
		"2025-11-25": head + audio + resource + link + tail,
	} {
		c := dial(t, s)
		c.hello(version, "{}")
		if m := c.ask(legacyLine("1", "tools/list", "")); !strings.Contains(m.line, definition) {
			t.Errorf("the definition is\n%s\nwant\n%s", m.line, definition)
		}
		if m := c.ask(legacyLine("1", "tools/call", `"name":"rich"`)); !strings.Contains(m.line, want) {
			t.Errorf("%s: %s\nwant %s", version, m.line, want)
		}
		if m := c.ask(legacyLine("1", "tools/call", `"name":"list"`)); string(m.Result) != `{"content":[{"type":"text","text":"[1]"}]}` {
			t.Errorf("a list, before the modern era: %s", m.line)
		}
		if m := c.ask(modernLine("1", "tools/call", `"name":"rich"`)); !strings.Contains(m.line, head+audio+resource+link+tail) {
			t.Errorf("modern: %s", m.line)
		}
		if m := c.ask(modernLine("1", "tools/call", `"name":"list"`)); !strings.Contains(m.line, `"content":[{"type":"text","text":"[1]"}],"structuredContent":[1]}`) {
			t.Errorf("a list: %s", m.line)
		}
	}
}

// I3: what goes out is UTF-8, whatever tools have in their JSON.
func TestAnswersAreUTF8(t *testing.T) {
	odd := tool{
		def: tools.Definition{Name: "odd", InputSchema: json.RawMessage("{\"type\":\"object\",\"title\":\"\xff\"}")},
		call: func(context.Context, tools.Call) (tools.Result, error) {
			return tools.Result{Structured: json.RawMessage("{\"a\":\"\xe2\x28\"}"), Content: []tools.Content{{Kind: tools.KindText, Text: "\xfe"}}}, nil
		},
	}
	c := dial(t, serverOf(t, server.Config{}, odd))
	c.hello("2025-11-25", "{}")
	for _, line := range []string{
		legacyLine("1", "tools/list", ""), modernLine("2", "tools/list", ""),
		legacyLine("3", "tools/call", `"name":"odd"`), modernLine("4", "tools/call", `"name":"odd"`),
	} {
		if m := c.ask(line); m.Error != nil || !utf8.ValidString(m.line) || !strings.Contains(m.line, "\uFFFD") {
			t.Errorf("%.60s: %q", line, m.line)
		}
	}
}

// What nests as deep as any reader goes is no part of a message, which would have no
// answer at all.
func TestDepthOfAnswers(t *testing.T) {
	deep := json.RawMessage(`{"a":` + strings.Repeat("[", 9_999) + strings.Repeat("]", 9_999) + `}`)
	odd := tool{
		def:  tools.Definition{Name: "deep", InputSchema: deep, OutputSchema: deep},
		call: func(context.Context, tools.Call) (tools.Result, error) { return tools.Result{Structured: deep}, nil },
	}
	c := dial(t, serverOf(t, server.Config{}, odd))
	if m := c.ask(modernLine("1", "tools/list", "")); !strings.Contains(m.line, `"inputSchema":{"type":"object"}}]`) {
		t.Errorf("the list: %.200s", m.line)
	}
	if m := c.ask(modernLine("2", "tools/call", `"name":"deep"`)); !strings.Contains(m.line, `"text":"{\"a\":[[[`) || strings.Contains(m.line, "structuredContent") {
		t.Errorf("the call: %.200s", m.line)
	}
}

// A schema that would have a client refuse the whole list is made fit.
func TestSchemasThatClientsRefuse(t *testing.T) {
	var all []tool
	for name, schema := range map[string]string{
		"a": ``, "b": `{}`, "c": ` { } `, "d": `{"properties":{}}`, "e": `{"type":"array"}`, "f": `[1]`, "g": `{bad`, "h": `true`, "i": ` {"x":1,"type" : "object"}`,
	} {
		all = append(all, tool{def: tools.Definition{Name: name, InputSchema: json.RawMessage(schema), OutputSchema: json.RawMessage(schema)}})
	}
	c := dial(t, serverOf(t, server.Config{}, all...))
	c.hello("2025-11-25", "{}")
	const none = `"inputSchema":{"type":"object"}`
	for _, tt := range []struct{ line, want string }{
		{legacyLine("1", "tools/list", ""), `[{"name":"a",` + none + `},{"name":"b",` + none + `},{"name":"c",` + none + `},{"name":"d","inputSchema":{"type":"object","properties":{}}},{"name":"e",` + none +
			`},{"name":"f",` + none + `},{"name":"g",` + none + `},{"name":"h",` + none + `},{"name":"i","inputSchema":{"x":1,"type":"object"},"outputSchema":{"x":1,"type":"object"}}]`},
		{modernLine("1", "tools/list", ""), `{"name":"d","inputSchema":{"type":"object","properties":{}},"outputSchema":{"properties":{}}},{"name":"e",` + none + `,"outputSchema":{"type":"array"}},`},
	} {
		if m := c.ask(tt.line); !strings.Contains(m.line, tt.want) {
			t.Errorf("got %s\nwant %s", m.line, tt.want)
		}
	}
}

// Progress is told where the client has given a token; it grows, is not told too
// often, and never after the answer.
func TestProgress(t *testing.T) {
	var kept func(tools.Progress)
	s := serverOf(t, server.Config{}, named("steps", func(_ context.Context, c tools.Call) (tools.Result, error) {
		if kept = c.Progress; kept != nil {
			for i := range 1000 {
				c.Progress(tools.Progress{Done: float64(i + 1), Total: 1000, Message: "on"})
				c.Progress(tools.Progress{Done: 1})
			}
		}
		return tools.Text("done"), nil
	}))
	c := dial(t, s)
	c.hello("2025-11-25", "{}")
	for _, lines := range [][2]string{
		{legacyLine("1", "tools/call", `"name":"steps"`), legacyLine("1", "tools/call", `"name":"steps","_meta":{"progressToken":"tok"}`)},
		{modernLine("1", "tools/call", `"name":"steps"`), strings.Replace(modernLine("1", "tools/call", `"name":"steps"`), `"_meta":{`, `"_meta":{"progressToken":"tok",`, 1)},
	} {
		if m := c.ask(lines[0]); m.Method != "" || kept != nil {
			t.Errorf("nobody asked for %s", m.line)
		}
		c.say(lines[1])
		last, n := 0.0, 0
		for {
			m := c.next()
			if m.Method == "" {
				break
			}
			var p struct {
				ProgressToken   string
				Progress, Total float64
				Message         string
			}
			if err := json.Unmarshal(m.Params, &p); err != nil || m.Method != "notifications/progress" || p.ProgressToken != "tok" || p.Progress <= last || p.Total != 1000 || p.Message != "on" {
				t.Errorf("after %v: %s", last, m.line)
			}
			last = p.Progress
			n++
		}
		if last != 1000 || n > 20 {
			t.Errorf("%d notices, the last of %v", n, last)
		}
		kept(tools.Progress{Done: 2000})
		c.wantPing()
	}
}
