package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"crewhost/config/secret"
)

func same(s string) string { return s }

// Every kind of field takes what it should, and says why it takes nothing else.
func TestFieldParse(t *testing.T) {
	for _, tt := range []struct{ schema, text, want string }{
		{`{"type":"string"}`, "", `""`},
		{`{"type":"string"}`, "<a>\n", `"<a>\n"`},
		{`{"type":"string","minLength":2,"maxLength":3}`, "é", "! it must have from 2 to 3 characters"},
		{`{"type":"string","minLength":2,"maxLength":3}`, "éa", `"éa"`},
		{`{"type":"string","maxLength":1}`, "ab", "! it must have at most 1 characters"},
		{`{"type":"string","pattern":"^a+$"}`, "b", "! it must match ^a+$"},
		{`{"type":"string","pattern":"(?<!x)y"}`, "b", `"b"`},
		{`{"type":"string","format":"email"}`, "a@example.com", `"a@example.com"`},
		{`{"type":"string","format":"email"}`, "A <a@example.com>", "! it must be an e-mail address"},
		{`{"type":"string","format":"uri"}`, "example.com", "! it must be a URL with its scheme"},
		{`{"type":"string","format":"uri"}`, "https://example.com", `"https://example.com"`},
		{`{"type":"string","format":"date"}`, "2026-02-30", "! it must be a date such as 2026-07-28"},
		{`{"type":"string","format":"date"}`, "2026-02-28", `"2026-02-28"`},
		{`{"type":"string","format":"date-time"}`, "2026-02-28", "! it must be a date and time such as 2026-07-28T09:30:00Z"},
		{`{"type":"string","format":"date-time"}`, "2026-02-28T10:00:00+01:00", `"2026-02-28T10:00:00+01:00"`},
		{`{"type":"string"}`, "\xff", "! it must be a text"},
		{`{"type":"string"}`, strings.Repeat("x", 65<<10), "! it is longer than 64 KiB"},
		{`{"type":"integer"}`, " 725653563933458433 ", `725653563933458433`}, // K31
		{`{"type":"integer"}`, "1.0", "! it must be a whole number"},
		{`{"type":"integer"}`, "one", "! it must be a number"},
		{`{"type":"integer"}`, "01", "! it must be a number"},
		{`{"type":"integer","minimum":1,"maximum":5}`, "6", "! it must be from 1 to 5"},
		{`{"type":"integer","minimum":1}`, "0", "! it must be at least 1"},
		{`{"type":"number","exclusiveMinimum":0,"maximum":1}`, "0", "! it must be more than 0 and at most 1"},
		{`{"type":"number","exclusiveMaximum":1}`, "1", "! it must be less than 1"},
		{`{"type":"number"}`, "-1.50", `-1.50`},
		{`{"type":"number"}`, "1e999", "! the number is too large"},
		{`{"type":"number"}`, "true", "! it must be a number"},
		{`{"type":"boolean"}`, "true", `true`},
		{`{"type":"boolean"}`, "yes", "! it must be true or false"},
		{`{"type":"string","enum":["a","b"]}`, "b", `"b"`},
		{`{"enum":["a","b"]}`, "B", "! it must be one of the choices"},
		{`{"type":"string","oneOf":[{"const":"a","title":"A"}]}`, "a", `"a"`},
		{`{"type":"string","oneOf":[{"const":"a","title":"A"}]}`, "A", "! it must be one of the choices"},
		{`{"type":"array","items":{"type":"string","enum":["a","b","c"]},"minItems":1,"maxItems":2}`, "a, c", `["a","c"]`},
		{`{"type":"array","items":{"type":"string","enum":["a","b","c"]},"minItems":1,"maxItems":2}`, "", "! choose from 1 to 2"},
		{`{"type":"array","items":{"type":"string","enum":["a","b","c"]},"minItems":1,"maxItems":2}`, "a,b,c", "! choose from 1 to 2"},
		{`{"type":"array","items":{"anyOf":[{"const":"a,b","title":"x"}]}}`, `["a,b"]`, `["a,b"]`},
		{`{"type":"array","items":{"enum":["a"]}}`, "a,a", "! a choice is there twice"},
		{`{"type":"array","items":{"enum":["a"]}}`, "b", "! each must be one of the choices"},
		{`{"type":"array","items":{"enum":["a"]}}`, "[1]", "! it must be a list of choices"},
		{`{"type":"array","items":{"enum":["a"]}}`, "", `[]`},
	} {
		f, err := field(json.RawMessage(tt.schema), same)
		if err != nil {
			t.Errorf("%s: %v", tt.schema, err)
			continue
		}
		value, err := f.Parse(tt.text)
		got := string(value)
		if err != nil {
			got = "! " + err.Error()
		}
		if got != tt.want {
			t.Errorf("%s takes %.20q as %s, want %s", tt.schema, tt.text, got, tt.want)
		}
	}
}

// What no form can show is refused, with the field that is to blame.
func TestFieldsRefused(t *testing.T) {
	many := make([]string, maxFields+1)
	for i := range many {
		many[i] = fmt.Sprintf(`"f%d":{"type":"string"}`, i)
	}
	for schema, want := range map[string]string{
		`[]`:                "not that of an object",
		`{"type":"string"}`: "not that of an object",
		`{"properties":[]}`: "no list of properties",
		`{"properties":{"a\nb":{"type":"string"}}}`:                        "a name that can't be shown",
		`{"properties":{"":{"type":"string"}}}`:                            "a name that can't be shown",
		`{"properties":{"a":5}}`:                                           `the field "a" of its form has a schema that can't be read`,
		`{"properties":{"a":{"type":"object"}}}`:                           "no plain value",
		`{"properties":{"a":{"type":["string","null"]}}}`:                  "can't be read",
		`{"properties":{"a":{"type":"array"}}}`:                            "no plain value",
		`{"properties":{"a":{"type":"array","items":{"type":"string"}}}}`:  "has 0 choices",
		`{"properties":{"a":{"type":"array","items":{"type":"integer"}}}}`: "no plain value",
		`{"properties":{"a":{"type":"integer","enum":[1]}}}`:               "choices that are not texts",
		`{"properties":{"a":{"enum":[1]}}}`:                                "choices that are not texts",
		`{"properties":{"a":{"oneOf":[{"title":"x"}]}}}`:                   "choices that are not texts",
		`{"properties":{"a":{"enum":["x","x"]}}}`:                          "a choice that can't be shown",
		`{"properties":{"a":{"enum":["x\u202ey"]}}}`:                       "a choice that can't be shown",
		`{"properties":{"a":{"type":"string"}},"required":["b"]}`:          "does not describe",
		`{"properties":{` + strings.Join(many, ",") + `}}`:                 "has 51 fields",
	} {
		if _, err := fields(json.RawMessage(schema), same); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v", schema, err)
		}
	}
	for _, schema := range []string{``, `null`, `{}`, `{"type":"object","properties":{}}`} {
		if list, err := fields(json.RawMessage(schema), same); err != nil || len(list) != 0 {
			t.Errorf("%s: %v, %v", schema, list, err)
		}
	}
}

// Proposals that the field itself would refuse are not made.
func TestFieldDefaults(t *testing.T) {
	for schema, want := range map[string]string{
		`{"type":"string","default":"x"}`:                                 "x",
		`{"type":"string","default":""}`:                                  "",
		`{"type":"string","default":5}`:                                   "none",
		`{"type":"string","default":"a\u202eb"}`:                          "none",
		`{"type":"integer","default":3}`:                                  "3",
		`{"type":"integer","default":3.5}`:                                "none",
		`{"type":"boolean","default":false}`:                              "false",
		`{"enum":["a"],"default":"b"}`:                                    "none",
		`{"enum":["a"],"default":"a"}`:                                    "a",
		`{"type":"array","items":{"enum":["a","b"]},"default":["b","a"]}`: "b, a",
		`{"type":"string","default":null}`:                                "none",
	} {
		f, err := field(json.RawMessage(schema), same)
		got := f.Default
		if !f.HasDefault {
			got = "none"
		}
		if err != nil || got != want {
			t.Errorf("%s proposes %q, %v", schema, got, err)
		}
	}
}

// The time of a call stands still while it is paused, however often and deep.
func TestLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, l, stop := withLimit(t.Context(), 10*time.Second)
		defer stop()
		time.Sleep(6 * time.Second)
		outer, inner := l.pause(), l.pause()
		time.Sleep(time.Hour)
		outer()
		time.Sleep(time.Hour)
		inner()
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if ctx.Err() != nil {
			t.Fatal("ended early")
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if !errors.Is(context.Cause(ctx), errToolTimeout) {
			t.Errorf("ended by %v", context.Cause(ctx))
		}
		l.pause()() // too late, and harmless
	})
}

// Lists end, whatever the server does (K19, W7).
func TestPager(t *testing.T) {
	page := func(items, cursor string) string {
		if cursor != "" {
			cursor = `,"nextCursor":` + cursor
		}
		return `{"things":[` + items + `]` + cursor + `}`
	}
	for name, tt := range map[string]struct {
		answer func(n int) string
		items  int
		warns  string
		fails  string
	}{
		"one page":     {func(int) string { return page("1,2", "") }, 2, "", ""},
		"no list":      {func(int) string { return `{}` }, 0, "", ""},
		"two pages":    {func(n int) string { return page("1", []string{`"x"`, "null"}[n-1]) }, 2, "", ""},
		"empty cursor": {func(n int) string { return page("1", []string{`""`, ""}[n-1]) }, 2, "", ""},
		"repeated":     {func(int) string { return page("1", `"x"`) }, 2, `repeats the cursor "x"`, ""},
		"endless":      {func(n int) string { return page("", fmt.Sprintf(`"%d"`, n)) }, 0, "more than 5 pages", ""},
		"many":         {func(int) string { return page("1,2,3,4,5,6,7,8,9,10,11", `"x"`) }, 10, "more than 10 things", ""},
		"no object":    {func(int) string { return `5` }, 0, "", "is not one"},
		"strange list": {func(int) string { return `{"things":5}` }, 0, "", "is not one"},
		"strange":      {func(int) string { return page("1", "5") }, 0, "", "a cursor"},
		"long cursor":  {func(int) string { return page("1", `"`+strings.Repeat("x", maxCursor+1)+`"`) }, 0, "", "too long"},
	} {
		var warnings []string
		p := pager{what: "things", member: "things", items: 10, pages: 5, warn: func(s string) { warnings = append(warnings, s) }}
		n := 0
		items, err := p.read(t.Context(), func(context.Context, *string) (json.RawMessage, error) {
			n++
			return json.RawMessage(tt.answer(n)), nil
		})
		if len(items) != tt.items || (err == nil) != (tt.fails == "") || err != nil && !strings.Contains(err.Error(), tt.fails) ||
			!strings.Contains(strings.Join(warnings, "\n"), tt.warns) || tt.warns == "" && len(warnings) > 0 {
			t.Errorf("%s: %d items, %v, %q", name, len(items), err, warnings)
		}
	}
}

func TestMembersOf(t *testing.T) {
	got, err := membersOf(json.RawMessage(` {"b":1,"a":{"x":[1.0]},"b":2} `))
	if diff := cmp.Diff([]string{"b=2", `a={"x":[1.0]}`}, func() (s []string) {
		for _, m := range got {
			s = append(s, m.name+"="+string(m.value))
		}
		return
	}()); diff != "" || err != nil {
		t.Error(diff, err)
	}
	for _, raw := range []string{"", "5", "[]", "{", `{"a"}`, `{"a":1`, `{5:1}`} {
		if _, err := membersOf(json.RawMessage(raw)); err == nil {
			t.Errorf("%s has members", raw)
		}
	}
}

// FuzzQuestion: whatever a server asks, what is shown can be shown, and what the
// field proposes it takes itself.
func FuzzQuestion(f *testing.F) {
	f.Add([]byte(`{"message":"?","requestedSchema":{"type":"object","properties":{"a":{"type":"integer","default":3}},"required":["a"]}}`), "3")
	f.Add([]byte(`{"mode":"url","url":"https://example.com/","message":"\u202e"}`), "")
	f.Add([]byte(`{"requestedSchema":{"properties":{"a":{"type":"array","items":{"anyOf":[{"const":"x"}]},"default":["x"]}}}}`), `["x"]`)
	f.Add([]byte(`{"requestedSchema":{"properties":{"a":{"type":"string","pattern":"((a*)*)*b","format":"email"}}}}`), "a@b")
	f.Fuzz(func(t *testing.T, params []byte, text string) {
		s := &session{masks: &masks{shared: new(secret.Redactor)}}
		q, err := s.question("", params)
		if err != nil {
			return
		}
		if len(q.Message) > maxAsking+len("…") || readable(q.Message) != q.Message {
			t.Errorf("message %q", q.Message)
		}
		for _, field := range q.Fields {
			for _, shown := range []string{field.Name, field.Title, field.Description, field.Takes()} {
				if oneLine(shown, 4*maxFieldText) != shown {
					t.Errorf("shown %q", shown)
				}
			}
			if field.HasDefault {
				if _, err := field.Parse(field.Default); err != nil {
					t.Errorf("proposes %q: %v", field.Default, err)
				}
			}
			if value, err := field.Parse(text); err == nil && !json.Valid(value) {
				t.Errorf("%q became %s", text, value)
			}
		}
	})
}

// FuzzSampleRequest: what is taken has messages with roles and content.
func FuzzSampleRequest(f *testing.F) {
	f.Add([]byte(`{"maxTokens":5,"messages":[{"role":"user","content":{"type":"text","text":"x"}}],"stopSequences":["y"]}`))
	f.Add([]byte(`{"maxTokens":1e99,"messages":[{"role":"assistant","content":[{"type":"image","data":"aGk=","mimeType":"image/png"}]}]}`))
	f.Fuzz(func(t *testing.T, params []byte) {
		r, _, err := sampleRequest(params)
		if err != nil {
			return
		}
		if len(r.Messages) == 0 || r.MaxTokens < 0 {
			t.Errorf("took %+v", r)
		}
		for _, m := range r.Messages {
			if len(m.Content) == 0 || m.Role != "user" && m.Role != "assistant" {
				t.Errorf("took %+v", m)
			}
		}
	})
}
