package mcp

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"crewhost/config"
	"crewhost/tools"
)

// A list of tools of any kind becomes definitions that can be registered, shown
// and offered, within the limits; or it is none.
func FuzzCatalogue(f *testing.F) {
	for _, seed := range []string{
		`[{"name":"a","description":"d","inputSchema":{"type":"object"},"outputSchema":{},"annotations":{"readOnlyHint":true}}]`,
		`[{"name":"a"},{"name":"a"},{"name":""},{"name":null},{"name":5},7,null,[],{}]`,
		`[{"name":"\u202e","title":["x"],"description":{"a":1},"inputSchema":[],"outputSchema":"x","annotations":[]}]`,
		"[{\"name\":\"a\",\"description\":\"\U000e0041\\ud800\",\"inputSchema\":{\"title\":\"\u200b\",\"x\":[1e999]}}]",
		`[{"NAME":"a","Name":"b","name":"c","inputschema":{"a":1},"inputSchema":{"b":2}}]`,
		`[{"name":"` + strings.Repeat("n", 40) + `","description":"` + strings.Repeat("é", 60) + `","inputSchema":{"a":"` + strings.Repeat("s", 200) + `"}}]`,
	} {
		f.Add([]byte(seed))
	}
	limits := limitsOf(config.Limits{NameLength: 32, DescriptionLength: 100, SchemaBytes: 200})
	f.Fuzz(func(t *testing.T, list []byte) {
		var listed []json.RawMessage
		if json.Unmarshal(list, &listed) != nil {
			t.Skip()
		}
		c := catalogue(config.Server{Name: "s", DisabledTools: []string{"off"}}, limits, listed, map[string]bool{"refused": true})
		if len(c.defs)+len(c.skipped) > len(listed) || len(c.warnings) > maxWarnings+2 {
			t.Errorf("%d tools, %d skipped, %d warnings of %d", len(c.defs), len(c.skipped), len(c.warnings), len(listed))
		}
		seen := ""
		for _, d := range c.defs {
			switch {
			case d.Name <= seen:
				t.Errorf("%q comes after %q", d.Name, seen)
			case len(d.Name) > limits.NameLength || strings.ContainsFunc(d.Name, unprintable):
				t.Errorf("the name %q", d.Name)
			case len(d.Description) > limits.DescriptionLength+len("…") || !utf8.ValidString(d.Description):
				t.Errorf("the description %q", d.Description)
			case !json.Valid(d.InputSchema) || d.InputSchema[0] != '{' || len(d.InputSchema) > limits.SchemaBytes:
				t.Errorf("the schema %s", d.InputSchema)
			case d.OutputSchema != nil && (!json.Valid(d.OutputSchema) || d.OutputSchema[0] != '{'):
				t.Errorf("the output schema %s", d.OutputSchema)
			}
			if again, n := unhide(d.Description); n > 0 || again != d.Description {
				t.Errorf("the description %q hides %d", d.Description, n)
			}
			seen = d.Name
		}
		for _, skip := range c.skipped {
			if line := skip.String(); strings.ContainsFunc(line, unprintable) {
				t.Errorf("the line %q", line)
			}
		}
	})
}

// A result of any kind is a result that fits, or an error; a failure has words.
func FuzzResult(f *testing.F) {
	for _, seed := range []string{
		`{"content":[{"type":"text","text":"x"},{"type":"image","data":"QUJD","mimeType":"image/png"}],"structuredContent":{"a":1e999}}`,
		`{"isError":true}`, `{"isError":true,"content":[{"type":"text","text":" "}]}`, `{"content":{"type":"text","text":"x"}}`, `{"content":"x"}`,
		`{"content":[{"type":"resource","resource":{"uri":"a","blob":"!"}},{"type":"resource_link","uri":""},null,7,[]]}`,
		`{"content":null,"structuredContent":[1,2]}`, `[]`, `null`, ` {"content":[]} `, `{"CONTENT":[1],"isError":"true"}`,
		`{"content":[{"type":"text","text":"` + strings.Repeat("é", 300) + `"},{"type":"hologram","v":"` + strings.Repeat("x", 100) + `"}]}`,
	} {
		f.Add([]byte(seed))
	}
	limits := config.Limits{TextChars: 250, ResultBytes: 400}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if !json.Valid(raw) {
			t.Skip() // a message that is none does not come this far
		}
		res, err := parseResult("x", raw)
		if err != nil {
			return
		}
		if res.IsError && !worded(res.Content) {
			t.Errorf("%s failed without a word", raw)
		}
		if res.Structured != nil && !json.Valid(res.Structured) {
			t.Errorf("%s: structured %s", raw, res.Structured)
		}
		res, bad := fit(res, limits)
		if bad != nil {
			if bad.code != tools.CodeResultTooLarge {
				t.Errorf("%s: %v", raw, bad)
			}
			return
		}
		size := len(res.Structured)
		for _, c := range res.Content {
			size += len(c.Text) + len(c.Data) + len(c.Raw) + len(c.URI) + len(c.Name) + len(c.MIME)
			if !utf8.ValidString(c.Text) || c.Raw != nil && !json.Valid(c.Raw) {
				t.Errorf("%s: %+v", raw, c)
			}
		}
		if size > limits.ResultBytes+100 { // a note of what was left out
			t.Errorf("%s: %d bytes", raw, size)
		}
	})
}

// What is left of a result for the SDK is something that the SDK can read, if the
// result was one.
func FuzzReduce(f *testing.F) {
	for _, seed := range []string{
		`{"tools":[{"name":"a","inputSchema":{"type":"object"}},{"name":5},{}],"nextCursor":5}`, `{"tools":null}`, `{"tools":{}}`,
		`{"content":[{"type":"hologram"}],"resultType":"input_required","inputRequests":{},"requestState":"s"}`, `{"content":7}`, `{}`, `null`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, result []byte) {
		if !json.Valid(result) {
			t.Skip()
		}
		list, call := reduce(methodListTools, result), reduce(methodCallTool, result)
		if !json.Valid(list) || !json.Valid(call) {
			t.Fatalf("%s became %s and %s", result, list, call)
		}
		var page struct {
			Tools []json.RawMessage `json:"tools"`
		}
		var tools sdk.ListToolsResult
		if json.Unmarshal(result, &page) == nil {
			if err := json.Unmarshal(list, &tools); err != nil {
				t.Errorf("%s became %s: %v", result, list, err)
			}
		}
	})
}

// The answer in a body of HTTP is found, and what is none is not taken for one.
func FuzzBody(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":7,"result":{}}`, `[{"jsonrpc":"2.0","id":8,"result":1},{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"x"}}]`,
		`{"jsonrpc":"2.0","id":"7","result":{}}`, `{"jsonrpc":"2.0","method":"x"}`, `<html>`, ``, ` [] `, `{"id":7}`, `{"jsonrpc":"2.0","id":7.0,"result":{}}`,
	} {
		f.Add([]byte(seed))
	}
	id, err := jsonrpc.MakeID(7.0)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		m := &mender{limit: 1 << 20, redact: asIs}
		answer, known := m.find(body, &jsonrpc.Request{ID: id, Method: methodCallTool})
		if answer != nil && (answer.ID != id || !known) {
			t.Errorf("%q: %+v", body, answer)
		}
		if line := m.snippet(body); strings.ContainsFunc(line, unprintable) || len(line) > maxDetail+len("…") {
			t.Errorf("%q is shown as %q", body, line)
		}
	})
}
