package mcp

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crewhost/config"
	"crewhost/tools"
)

// R4: what can't be seen is taken out, and counted; what is seen stays.
func TestUnhide(t *testing.T) {
	tags := "\U000e0049\U000e0067\U000e006e"
	for name, tt := range map[string]struct {
		in, want string
		hidden   int
	}{
		"plain":              {"Größe 日本 עברית", "Größe 日本 עברית", 0},
		"line ends":          {"a\r\nb\u2028c\u0085d\te", "a\nb\nc\nd\te", 0},
		"escapes":            {"a\x1b[31mred\x07\x7f\rb", "a[31mredb", 4},
		"directions":         {"a\u202eb\u2066c\u200f", "abc", 3},
		"zero widths":        {"p\u200bay\ufeffment\u2060", "payment", 3},
		"tags":               {"hello" + tags, "hello", 3},
		"selectors as bytes": {"x\ufe01\U000e0101\ufe0f", "x", 3},
		"fillers":            {"a\u3164\u115f\u034fb", "ab", 3},
		"emoji":              {"⚠️ 1️⃣ 👩‍💻 👩🏽‍🚀 ❤️‍🔥", "⚠️ 1️⃣ 👩‍💻 👩🏽‍🚀 ❤️‍🔥", 0},
		"a joiner alone":     {"a\u200db", "ab", 1},
		"seen format signs":  {"\u0600\u06dd", "\u0600\u06dd", 0},
		"bytes":              {"a\xffb", "a�b", 0},
	} {
		got, hidden := unhide(tt.in)
		if got != tt.want || hidden != tt.hidden {
			t.Errorf("%s: got %q, %d hidden; want %q, %d", name, got, hidden, tt.want, tt.hidden)
		}
	}
}

// R4 and W7: texts of a schema are readable, and nothing else of it is changed.
func TestUnhideSchema(t *testing.T) {
	for name, tt := range map[string]struct {
		in, want string
		hidden   int
	}{
		"nothing hidden": {`{"type": "object", "description":"\u0041 \"b\"", "n":1.50}`, `{"type": "object", "description":"\u0041 \"b\"", "n":1.50}`, 0},
		"in a text":      {"{ \"title\" : \"a\u200bb\", \"n\": 1e400}", `{ "title" : "ab", "n": 1e400}`, 1},
		"as an escape":   {`{"properties":{"a":{"description":"x\u202ey"}}}`, `{"properties":{"a":{"description":"xy"}}}`, 1},
		"in a value":     {"{\"enum\":[\"a\u200bb\",\"\U000e0041\"]}", `{"enum":["a\u200bb","\udb40\udc41"]}`, 2},
		"in a key":       {"{\"properties\":{\"a\u200b\":{}}}", `{"properties":{"a\u200b":{}}}`, 1},
		"in a default":   {"{\"default\":{\"description\":\"a\u200b\"}}", `{"default":{"description":"a\u200b"}}`, 1},
		"in data deeper": {"{\"examples\":[[{\"title\":\"\u200b\"}]],\"title\":\"\u200b\"}", `{"examples":[[{"title":"\u200b"}]],"title":""}`, 2},
	} {
		got, hidden := unhideSchema(json.RawMessage(tt.in))
		if string(got) != tt.want || hidden != tt.hidden {
			t.Errorf("%s: got %s, %d hidden; want %s, %d", name, got, hidden, tt.want, tt.hidden)
		}
	}
}

// One line a server says whose texts were changed.
func TestHiddenIsReported(t *testing.T) {
	var listed []json.RawMessage
	for _, name := range strings.Split("abcdefg", "") {
		listed = append(listed, json.RawMessage(`{"name":"`+name+`","description":"x\u200b","inputSchema":{"type":"object","description":"\u200b"}}`))
	}
	c := catalogue(config.Server{Name: "s"}, limitsOf(config.Limits{}), listed, nil)
	want := []string{`hides 14 characters that can't be seen in the texts of 7 of its tools, which are shown without them: "a", "b", "c", "d", "e" and 2 more`}
	if diff := cmp.Diff(want, c.warnings); diff != "" || c.defs[0].Description != "x" {
		t.Errorf("%q: %s", c.defs[0].Description, diff)
	}
}

// A pin holds on to what a server gave, also to what is not shown of it (R4).
func TestDigestsAreOfWhatWasGiven(t *testing.T) {
	digests := func(tool string) tools.Digests {
		t.Helper()
		limits := limitsOf(config.Limits{DescriptionLength: 20})
		c := catalogue(config.Server{Name: "s"}, limits, []json.RawMessage{json.RawMessage(tool)}, nil)
		if len(c.defs) != 1 {
			t.Fatalf("%s: %v", tool, c.skipped)
		}
		return c.defs[0].Digests()
	}
	plain := digests(`{"name":"a","description":"x","inputSchema":{"type":"object"}}`)
	if got := digests(`{"name":"a","description":"x"}`); got != plain {
		t.Error("no schema is another one than that of any object")
	}
	hidden := digests(`{"name":"a","description":"x\u200b","inputSchema":{"type":"object"}}`)
	if hidden.Description == plain.Description || hidden.Definition == plain.Definition || hidden.Schema != plain.Schema {
		t.Error("what hides in a description is not seen")
	}
	if digests(`{"name":"a","description":"x","inputSchema":{"type":"object","title":"\u200b"}}`).Schema == digests(`{"name":"a","description":"x","inputSchema":{"type":"object","title":""}}`).Schema {
		t.Error("what hides in a schema is not seen")
	}
	if digests(`{"name":"a","description":"of twenty characters, and more"}`) == digests(`{"name":"a","description":"of twenty characters, and other"}`) {
		t.Error("what is cut off is not seen")
	}
}

// A schema stays valid JSON with the same shape, whatever is hidden in it.
func FuzzUnhideSchema(f *testing.F) {
	for _, seed := range []string{
		`{"title":"a\u200b","enum":["\u200b",{"title":"\u202e"}],"n":[1,{"a":"\"\\"}]}`,
		"{\"a\u200b\":{\"description\":\"\ufe0f\U000e0041\"}}", `{"title":"\ud83d"}`, "{\"title\":\"\xff\u200b\"}", `{"title":["\u200b"]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, schema []byte) {
		if !json.Valid(schema) || schema[0] != '{' {
			t.Skip()
		}
		clean, hidden := unhideSchema(schema)
		if !json.Valid(clean) {
			t.Fatalf("%q became %q", schema, clean)
		}
		if hidden == 0 && strings.ToValidUTF8(string(clean), "�") != strings.ToValidUTF8(string(schema), "�") {
			t.Errorf("%q became %q", schema, clean)
		}
		if again, _ := unhideSchema(clean); string(again) != string(clean) {
			t.Errorf("%q becomes %q again", clean, again)
		}
		if strings.ContainsFunc(strings.NewReplacer("\n", "", "\t", "", "\r", "").Replace(string(clean)), func(r rune) bool { return unprintable(r) && r != joiner && r != pictured && r != textStyle }) {
			t.Errorf("%q still hides something", clean)
		}
	})
}
