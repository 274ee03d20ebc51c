package server

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// What goes in a header too is the same there as in the arguments, however it is
// written; else a router would have seen another call.
func TestMirroredArguments(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","properties":{
		"region":{"type":"string","x-mcp-header":"Region"},
		"limit":{"type":"integer","x-mcp-header":"Limit"},
		"dry":{"type":"boolean","x-mcp-header":"Dry"},
		"at":{"type":"object","properties":{"zone":{"type":"string","x-mcp-header":"Zone"}}},
		"odd":{"type":"string","x-mcp-header":"not a header\r\n"},
		"none":{"type":"string","x-mcp-header":7}
	}}`)
	s := &Server{shelf: &shelf{items: []item{{name: "t", mirrors: mirrors(schema)}}}}
	if n := len(s.shelf.items[0].mirrors); n != 4 {
		t.Fatalf("%d arguments go in headers, want 4", n)
	}
	for _, tt := range []struct {
		arguments string
		headers   string
		fits      bool
	}{
		{`{}`, "", true},
		{``, "", true},
		{`{"region":null}`, "", true},
		{`{"odd":"x","none":"y"}`, "", true},
		{`{"region":"eu"}`, "Region: eu", true},
		{`{"region":"eu"}`, "Region: =?base64?ZXU=?=", true},
		{`{"region":"\u0065u"}`, "Region: eu", true},
		{`{"region":"ZXU="}`, "Region: ZXU=", true},
		{`{"region":"=?base64?ZXU="}`, "Region: =?base64?ZXU=", true},
		{`{"limit":7,"dry":false}`, "Limit: 7; Dry: false", true},
		{`{"limit":7.0}`, "Limit: 7", true},
		{`{"at":{"zone":"a"}}`, "Zone: a", true},

		{`{"region":"eu"}`, "", false},
		{`{"region":"eu"}`, "Region: us", false},
		{`{"region":"eu"}`, "Region: eu; Region: eu", false},
		{`{"region":"eu"}`, "Region: =?base64?ZXU?=", false},
		{`{"region":"eu"}`, "Region: =?base64?Z!U=?=", false},
		{`{}`, "Region: eu", false},
		{`{"region":["eu"]}`, `Region: ["eu"]`, false},
		{`{"limit":7.5}`, "Limit: 7.5", false},
		{`{"limit":9007199254740993}`, "Limit: 9007199254740993", false},
		{`{"dry":true}`, "Dry: TRUE", false},
		{`{"at":{"zone":"a"}}`, "Zone: b", false},
		{`{"at":"a"}`, "Zone: a", false},
	} {
		header := http.Header{}
		for line := range strings.SplitSeq(tt.headers, "; ") {
			if name, value, ok := strings.Cut(line, ": "); ok {
				header.Add("Mcp-Param-"+name, value)
			}
		}
		params := `{"name":"t"}`
		if tt.arguments != "" {
			params = `{"name":"t","arguments":` + tt.arguments + `}`
		}
		refused := s.checkParams(header, "t", json.RawMessage(params))
		if (refused == nil) != tt.fits {
			t.Errorf("%s with %q: %+v", tt.arguments, tt.headers, refused)
		}
		if refused != nil && (refused.status != http.StatusBadRequest || refused.code != codeHeaderMismatch) {
			t.Errorf("%s with %q: status %d, code %d", tt.arguments, tt.headers, refused.status, refused.code)
		}
		if s.checkParams(header, "other", json.RawMessage(params)) != nil {
			t.Error("a tool that is not there is refused for its headers")
		}
	}
	deep := strings.Repeat(`{"properties":{"a":`, 400) + `{"x-mcp-header":"A"}` + strings.Repeat("}}", 400)
	if n := len(mirrors(json.RawMessage(deep))); n != 0 {
		t.Errorf("a header is looked for %d levels deep", 400)
	}
}
